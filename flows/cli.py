"""The command `aucdist`: the table of its commands. A new command is a model, a function and a row here."""

import gc
import logging
import os
import signal
import sys
from typing import Any

import click

from flows.command import OK, TERMINATED, Command, report_errors

COMMANDS: tuple[Command, ...] = (
    Command(
        "init",
        ("Look at a file and write a commented configuration: label, identifiers, dates, categories, missing values."),
        page="your-own-csv",
        model="flows.init.run:InitConfig",
        function="flows.init.run:init",
        lines="flows.init.run:init_lines",
    ),
    Command(
        "train",
        ("Train a model, evaluate it, and write the run folder: model, metrics, history, configuration and report."),
        page="train",
        model="flows.train.config:TrainOptions",
        function="flows.train.run:train",
        lines="flows.progress.console:trained_lines",
        flow="flows.orchestration.flows:train_auc",
        more=(
            "If Prefect has an API configured, this starts its flow train-auc; otherwise the same stages run as "
            "plain functions."
        ),
    ),
    Command(
        "cv",
        ("Choose parameters by cross-validation, fit all training rows with them, and write the run folder."),
        page="cross-validate",
        model="flows.cv.config:CvOptions",
        function="flows.cv.run:cross_validate",
        lines="flows.progress.console:search_lines",
        flow="flows.orchestration.flows:cross_validate",
        more=(
            "The result of each fold is stored when it is done: if a search is interrupted, run the same command "
            "again to resume it."
        ),
    ),
    Command(
        "compare",
        "Compare runs on the same test rows: paired tests, confidence intervals, and a report.",
        page="compare",
        model="flows.compare.run:CompareConfig",
        function="flows.compare.run:compare",
        lines="flows.compare.run:compared_lines",
    ),
    Command(
        "threshold",
        "Change the threshold of a trained model without a fit: a new run folder, or a new version of a model store.",
        page="alert-queue",
        model="flows.threshold.run:ThresholdConfig",
        function="flows.threshold.run:change_threshold",
        lines="flows.threshold.run:threshold_lines",
        more=(
            "The rows that set the threshold when the model was trained set it again: calibration rows, or training rows out of "
            "fold, or as the fit knows them. For older runs the test rows do, and the report says so."
        ),
    ),
    Command(
        "promote",
        "Make the model of a run the one in use: a new version in a model store.",
        page="in-service",
        model="flows.promote.decision:PromoteConfig",
        function="flows.promote.run:promote_run",
        lines="flows.promote.store:promotion_lines",
        more=(
            "With --if, the run and the version in use score the same rows, the run's test rows or those of "
            "--data. A paired test by flipped signs compares their AUC, or the partial AUC that the run was trained for. "
            "The exit code is 0 whether or not the condition holds.\n\nWith models:/NAME it goes to MLflow at "
            "MLFLOW_TRACKING_URI: a run with metrics and report, a version of the registered model that "
            "mlflow.pyfunc loads, and the alias champion, or that of models:/NAME@ALIAS."
        ),
    ),
    Command(
        "rollback",
        ("Go back to an earlier version of a model: by default the one that the version in use has replaced."),
        page="in-service",
        model="flows.promote.store:RollbackConfig",
        function="flows.promote.store:rollback",
        lines="flows.promote.store:rollback_lines",
    ),
    Command(
        "models",
        "Say which version of a model is in use, and what has changed when.",
        page="in-service",
        model="flows.promote.store:StoreConfig",
        function="flows.promote.store:history",
        lines="flows.promote.store:history_lines",
    ),
    Command(
        "reproduce",
        "Reproduce the tables and figures of a paper and compare them with the printed ones.",
        page="reproduce",
        model="flows.reproduce.config:ReproduceOptions",
        function="flows.reproduce.run:reproduce",
        lines="flows.reproduce.page:reproduced_lines",
        flow="flows.orchestration.flows:reproduce_paper",
        more=(
            "The result is a page and a CSV for each table. The result of each fold is stored: run the command "
            "again to resume."
        ),
    ),
    Command(
        "shard",
        ("Write a data set as shards: rows in random order, each shard with its share of the positives."),
        page="shard",
        model="flows.shard.config:ShardConfig",
        function="flows.shard.run:shard",
        lines="flows.shard.run:shard_lines",
        flow="flows.orchestration.flows:shard_data",
        more=(
            "A data set that is at the target stays until all shards are written. If sharding is interrupted, run"
            " the same command again, with the same source and options, to resume it."
        ),
    ),
    Command(
        "score",
        (
            "Score the rows of a data set: Parquet files with row_id, score, prediction, and the probability if "
            "the model has one."
        ),
        page="score",
        model="flows.score.run:ScoreConfig",
        function="flows.score.run:score",
        lines="flows.score.run:score_lines",
        flow="flows.orchestration.flows:score",
        more=(
            "The rows need no label. They are read as the training rows were: the model knows how. If scoring is "
            "interrupted, run the same command again to resume it."
        ),
    ),
    Command(
        "watch",
        (
            "Compare new rows with the training rows of a model, and their labels, when known, with what its run "
            "promised."
        ),
        page="in-service",
        model="flows.watch.run:WatchConfig",
        function="flows.watch.run:watch",
        lines="flows.watch.run:watch_lines",
        flow="flows.orchestration.flows:watch",
        more=(
            "The page index.html in the folder of --state shows all batches. The exit code is 3 if there are alarms."
        ),
    ),
    Command(
        "keep-current",
        ("Keep a model current: train on the newest rows, compare, promote, score and watch. Once a night, say."),
        page="in-service",
        model="flows.keep_current.config:KeepCurrentOptions",
        function="flows.keep_current.run:keep_current",
        lines="flows.keep_current.run:keep_current_lines",
        flow="flows.orchestration.flows:keep_current",
        more="One run at a time works on a store. The exit code is 3 if the new rows raise alarms.",
    ),
    Command(
        "explain",
        "Say what each feature, and each pair of features, adds to the score of each row.",
        page="additive",
        model="flows.explain.run:ExplainConfig",
        function="flows.explain.run:explain",
        lines="flows.explain.run:explanation_lines",
        more=(
            "For linear models and models of binned features. The contributions of a row and the constant add up "
            "to its score."
        ),
    ),
    Command(
        "audit",
        "Write a page and a JSON file of evidence about a run, or train it again and compare digests.",
        page="audit",
        model="flows.audit.run:AuditConfig",
        function="flows.audit.run:audit",
        lines="flows.audit.run:audit_lines",
        more=(
            "Certificate, proved directions, operating point and its guarantee, calibration, figures of named groups, reasons of "
            "alerts, limits of drift, and digests. With --verify the exit code is 1 if the repeated run is another one."
        ),
    ),
    Command(
        "export",
        ("Write a model for another system: an ONNX graph, a query in SQL, a JSON file or a scorecard."),
        page="take-elsewhere",
        model="flows.export.run:ExportConfig",
        function="flows.export.run:export",
        lines="flows.export.run:export_lines",
    ),
    Command(
        "simulate",
        ("Write simulated rows as shards, one after the other: two Gaussians, as many rows as the disk can take."),
        page="shard",
        model="flows.shard.run:SimulateConfig",
        function="flows.shard.run:simulate",
        lines="flows.shard.run:shard_lines",
    ),
    Command(
        "up",
        "Start a Prefect server here and serve all flows, until Ctrl-C.",
        page="train",
        model="flows.up.run:UpConfig",
        function="flows.up.run:up",
        shows_progress=False,
        more=("Then, in another terminal in the same folder: `prefect deployment run train-auc/local --watch`."),
    ),
    Command(
        "data list",
        "List the data sets of the catalog: format, rows, features, and whether they are here.",
        page="shard",
        model="flows.data.run:ListConfig",
        function="flows.data.run:list_data",
        lines="flows.data.run:list_lines",
    ),
    Command(
        "data show",
        "Show the catalog's entry of a data set, or what the manifest says of shards.",
        page="shard",
        model="flows.data.run:ShowConfig",
        function="flows.data.run:show",
        lines="flows.data.run:show_lines",
    ),
    Command(
        "data fetch",
        "Download data sets of the catalog to the folder of data sets, and check them.",
        page="data-set",
        model="flows.data.run:FetchConfig",
        function="flows.data.run:fetch_data",
        lines="flows.data.run:fetch_lines",
        more=(
            "A file is there whole, with the checksum of the catalog, or not at all; what is there already stays. The folder is "
            "AUCDIST_DATA."
        ),
    ),
    Command(
        "data preview",
        ("Read a data set and show what becomes of each column, before any fit: numbers, categories, parts of dates."),
        page="shard",
        model="flows.data.preview:PreviewConfig",
        function="flows.data.preview:preview",
        lines="flows.data.preview:preview_lines",
    ),
    Command(
        "data verify",
        (
            "Read data sets and check them: every hash and count of shards, and what the catalog says of other "
            "data sets."
        ),
        page="shard",
        model="flows.data.run:VerifyConfig",
        function="flows.data.run:verify",
        lines="flows.data.run:verified_lines",
        after="flows.data.run:refuse_faults",
    ),
)
"""All commands. tests/flows/test_commands.py checks that deployments, configuration reference and documentation have them."""

GROUPS = {"data": "The catalog of data sets, and what is in a data set."}
"""Words below which there are several commands, and what they are about."""


class Commands(click.Group):
    """The commands below a word; a command's modules are imported when it is asked for.

    `above`: the word, with a blank behind it; empty for `aucdist` itself.
    """

    def __init__(self, above: str = "", **options: Any):
        super().__init__(**options)
        self.above = above
        self.rows = {row.name.removeprefix(above): row for row in COMMANDS if row.name.startswith(above)}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Let the URLs among the arguments enter before anything can print them.

        Those of ``--set`` enter when they are parsed as YAML.
        """
        if self.above:
            return super().parse_args(ctx, args)
        after_set = [before == "--set" for before in ("", *args)]
        return super().parse_args(ctx, [a if s else _entered(a) for a, s in zip(args, after_set, strict=False)])

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table, groups at their first command."""
        return list(dict.fromkeys(name.partition(" ")[0] for name in self.rows))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command or a group by its name."""
        if not self.above and cmd_name in GROUPS:
            return Commands(f"{cmd_name} ", name=cmd_name, help=GROUPS[cmd_name], no_args_is_help=True)
        return self.rows[cmd_name].as_click() if cmd_name in self.rows else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands with their summaries, without importing their modules."""
        width = formatter.width - 6 - max(map(len, self.list_commands(ctx)))
        rows = [
            (name, make_short(GROUPS[name] if name in GROUPS else self.rows[name].summary, width))
            for name in self.list_commands(ctx)
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _entered(argument: str) -> str:
    option, equals, value = argument.partition("=") if argument.startswith("--") else ("", "", argument)
    if option == "--set" or ":" not in value:
        return argument
    from aucdist.data.storage.urls import SCHEME, enter

    return f"{option}{equals}{enter(value)}" if SCHEME.match(value) else argument


def make_short(text: str, width: int) -> str:
    """Return a text of at most so many characters, cut between words."""
    if len(text) <= width:
        return text
    return f"{text[: max(width - 3, 1)].rpartition(' ')[0]}..."


def _print_version(ctx: click.Context, option: click.Parameter, asked: bool) -> None:
    if asked:
        from aucdist import __version__

        click.echo(f"aucdist {__version__}")
        ctx.exit(OK)


def _set_log(ctx: click.Context, option: click.Parameter, kind: str | None) -> None:
    from flows.progress.console import LOG_FORMAT, log_format

    with report_errors(debug=False):
        if kind is not None:
            os.environ[LOG_FORMAT] = kind  # where the flows read it, too
        log_format()


app = Commands(
    name="aucdist", no_args_is_help=True,
    help="Train linear and additive models that rank a rare class above the rest, by a loss over all pairs of a positive and a "
    "negative row, and prove how close to the optimum they are. In Python: help('aucdist').",
    epilog="Exit codes: 0 done, 1 the run failed, 2 wrong input, 3 alarms of `watch`, 130 interrupted, 143 terminated.",
    params=[
        click.Option(
            ["--version"], is_flag=True, expose_value=False, is_eager=True, callback=_print_version, help="Show the version."
        ),
        click.Option(
            ["--log"], metavar="text|json", expose_value=False, callback=_set_log,
            help="How progress and errors are written to stderr. [env: AUCDIST_LOG; default: text]",
        ),
    ],
)  # fmt: skip


def _on_sigterm(number: int, frame: object) -> None:
    raise SystemExit(TERMINATED)  # unwinds, so that unfinished folders are removed and worker processes end


def _on_sighup(number: int, frame: object) -> None:
    os.kill(os.getpid(), signal.SIGTERM)  # whose handler may write a checkpoint first


def _on_sigint(number: int, frame: object) -> None:
    for name in ("distributed", "tornado", "asyncio"):  # what its workers miss from now on is nobody's error
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    raise KeyboardInterrupt


def main() -> None:
    """Run the command."""
    # What is imported stays, and looking through it for garbage would take a tenth of the time of a short command.
    gc.set_threshold(50_000, 10, 10)
    signal.signal(signal.SIGINT, _on_sigint)
    signal.signal(signal.SIGTERM, _on_sigterm)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # else it was started by nohup
        signal.signal(signal.SIGHUP, _on_sighup)
    try:
        app()
    except ModuleNotFoundError as error:
        from aucdist.extras import explain_missing

        sys.exit(f"error: {explain_missing(error)}")


if __name__ == "__main__":
    main()

"""The command `export`: write a model as a file that another system reads."""

from collections.abc import Iterator
from dataclasses import replace
from inspect import signature
from typing import Annotated

from aucdist.data.block import Block
from aucdist.data.storage.files import absolute, check_not_existing, exists, shown, write_bytes
from aucdist.errors import InputError, Json, counted, unknown
from aucdist.export import TARGETS, Scaling
from aucdist.export.cards import CARD_SUFFIXES, card_rows, losses_of_card
from aucdist.model.files import load_model, load_two_classes, model_folder
from flows.compute.clusters import Stages, Workers, s3_as_configured
from flows.config.cluster import S3Option
from flows.config.loading import AtLeastTwo, Cli, FileOption, FolderArgument, Strict, Text, TextList
from flows.progress import RunObserver
from flows.rows.source import open_source
from flows.run_folder.folder import CONFIG, METRICS, data_config, read_metrics

OPTIONS = {name: signature(make).parameters for name, (make, _) in TARGETS.items()}
"""The options of each format, among them the model."""
SCALING = vars(Scaling())


class ExportConfig(Strict):
    """A model, and the file that another system reads."""

    model: FolderArgument
    """A run folder, a model, a model store, or a version in a store, such as store@3: a folder or URL."""
    to: Annotated[str, Cli(metavar="|".join(TARGETS))]
    """The format: a graph for ONNX runtimes, a query in SQL, a JSON file, or a scorecard of whole points."""
    output: FileOption = None
    """The file to write. By default it is named after the run and written to the current folder."""
    table: Annotated[Text, Cli(metavar="NAME")] = "rows"
    """For sql: the table with the rows."""
    ids: Annotated[TextList, Cli(flag="--id", metavar="COLUMN")]
    """For sql: a column of the table that the query returns with the scores. May be repeated. By default these are the columns
    that the model reads."""
    contributions: bool = False
    """For onnx, sql and json: also export what each feature adds to a score."""
    rows: Annotated[AtLeastTwo | None, Cli(metavar="N")] = None
    """For a scorecard: the largest number of lines. Each category counts as one line."""
    total: Annotated[int | None, Cli(metavar="N")] = None
    """For a scorecard: the number of points between the lowest and the highest possible sum. The default is 1000."""
    points_to_double_odds: Annotated[float | None, Cli(metavar="N")] = None
    """For a scorecard: the number of points that double the odds, in place of `total`. The model needs logistic
    probabilities."""
    base_points: Annotated[float, Cli(metavar="N")] = 0.0
    """For a scorecard: the points of a row with the odds `base_odds`."""
    base_odds: Annotated[float, Cli(metavar="N")] = 1.0
    """For a scorecard: the odds of the positive class, positive to negative."""
    force: bool = False
    """Replace the file if it exists."""
    s3: S3Option
    """How s3:// URLs are reached."""

    def _check(self) -> None:
        if self.to not in TARGETS:
            raise unknown("target", self.to, TARGETS)
        for name, field in type(self).model_fields.items():
            option = "scaling" if name in SCALING else name
            owners = [to for to, options in OPTIONS.items() if option in options]
            if owners and self.to not in owners and getattr(self, name) != field.default:
                raise InputError(
                    f"`{name}` belongs to {', '.join(owners)}, and this is an export to {self.to}: leave `{name}` out"
                )
        self.scaling().check()
        if self.to == "scorecard" and self.suffix not in CARD_SUFFIXES:
            raise unknown("suffix of a scorecard's file:", self.suffix, CARD_SUFFIXES)

    @property
    def suffix(self) -> str:
        """The suffix of the file."""
        if self.to != "scorecard":
            return self.to
        return (self.output or "json").rpartition("/")[2].rpartition(".")[2]

    def scaling(self) -> Scaling:
        """Return the scaling of the points of a scorecard."""
        return Scaling(self.points_to_double_odds, self.base_points, self.base_odds, self.total)


def export(config: ExportConfig, observer: RunObserver) -> Json:
    """Write a model as a file for another system.

    Raises
    ------
    InputError
        If there is no such model, the target cannot express it, or the file already exists.
    """
    with s3_as_configured(config, observer):
        observer.stage("export")
        folder, is_card = model_folder(config.model), config.to == "scorecard"
        output = config.output or f"{_name_of(folder)}{'.card' * is_card}.{config.suffix}"
        if not config.force:
            check_not_existing(output)
        model = load_two_classes(folder, "a scorecard") if is_card else load_model(folder)
        options = config.model_dump() | {"model": model, "scaling": config.scaling()}
        make, content = TARGETS[config.to]
        made = make(**{name: options[name] for name in OPTIONS[config.to]})
        facts: Json = {}
        if is_card:
            # The effect of rounding is computed on the rows of the run, if they can be read.
            try:
                measured = losses_of_card(model, made, rows_of_run(folder.rpartition("/")[0], observer))
            except InputError as e:
                measured = {"not_measured": str(e).rstrip(".")}
            made = replace(made, rounding=made.rounding | measured)
            facts = {"lines": len(card_rows(made)), "rounding": made.rounding}
        data = content(made, config.suffix, f"Scorecard of {_name_of(folder)}")
        write_bytes(output, data, new=not config.force)
    return {
        "model": shown(config.model), "output": shown(output), "to": config.to, "bytes": len(data),
        "columns": model.schema.columns(), **facts,
    }  # fmt: skip


def export_lines(result: Json) -> list[str]:
    """Return the lines that `aucdist export` prints."""
    lines = f"{counted(result['lines'], 'line')}, " if "lines" in result else ""
    return [f"{result['output']}: {lines}{counted(len(result['columns']), 'column')}, {result['bytes']:,} bytes"]


def _name_of(folder: str) -> str:
    """Return the name of the run whose model is in a folder."""
    # The name "model" is avoided, because model.json in a run folder would be taken for its model.
    run, _, name = absolute(folder).rpartition("/")
    return (name == "model" and run.rpartition("/")[2]) or "model"


def rows_of_run(run: str, observer: RunObserver) -> Iterator[tuple[str, Block]]:
    """Read the rows of a run again, and yield its training rows and its test rows."""
    if not exists(f"{run}/{METRICS}") or not exists(f"{run}/{CONFIG}"):
        raise InputError("the model is not in the folder of a run, whose rows are needed: give the run folder")
    rows = open_source(data_config(run), encode=False).prepare(Workers(), observer, Stages(observer))
    if read_metrics(run)["data"]["fingerprint"] != rows.fingerprint:
        raise InputError(
            "the data have changed since the run: restore the files that it was trained on, or train again"
        )
    for name, part in (("train", rows.train), ("train", rows.calibration), ("test", rows.test)):
        for block in () if part is None else part.blocks():
            yield name, block

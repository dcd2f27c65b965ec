"""Compare runs on the same test rows: paired tests, confidence intervals, decisions and a report."""

import itertools
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import cached_property, partial
from typing import Annotated

import numpy as np
import pandas as pd
from numpy import ndarray

from aucdist.data.own_files import json_text, jsonable
from aucdist.data.storage.files import exists, shown
from aucdist.errors import InputError, Json
from aucdist.metrics import (
    GroupMetric,
    ScoreCounts,
    average_precision_difference,
    group_auc,
    group_metric_difference,
    group_ndcg,
)
from aucdist.metrics.compare import Difference, auc_test, holm, partial_auc_test
from aucdist.metrics.decisions import Costs, DecisionCosts, mean_cost_difference
from aucdist.metrics.intervals import bootstrap_interval
from aucdist.metrics.named import NAMED_METRICS
from aucdist.metrics.partial import partial_auc_interval
from aucdist.metrics.ranking import auc, auc_interval, average_precision_interval
from aucdist.parameters import frozen
from aucdist.report.comparison import comparison_sentences, decision_lines, render_comparison_page, warnings_of_runs
from aucdist.report.text import warning_texts
from aucdist.store import resolve
from aucdist.text import sentence, value_text
from flows.config.loading import Cli, Rate, Strict, flattened
from flows.run_folder.folder import (
    METRICS,
    SCORES,
    configuration_of,
    members_of,
    read_metrics,
    read_scores,
    run_folder,
    table_counts,
    timestamped,
)
from flows.run_folder.results import point_of

RESAMPLES = 500
BY_BOOTSTRAP = ("g_mean", "balanced_accuracy")
OF_ROWS = ("group", "grade", "cost")
SAME_SCORES = 1e-9
"""The largest variation of the differences between the scores of two runs, relative to the scores, if only their thresholds
differ."""
NO_DIFFERENCE = Difference(0.0, 0.0, 0.0, 1.0, 0.95, "same-scores", 0)
"""The comparison of a ranking metric if the scores are the same."""
IGNORED_KEYS = (
    "output", "name", "cluster", "checkpoint", "s3", "cache", "performance_report", "baselines", "operating_point"
)  # fmt: skip
"""Keys of a configuration that do not affect the scores."""


@frozen
class Run:
    """The content of a run folder, with its test rows in the order of their ids.

    A run of two classes has one class, whose name is empty.
    """

    url: str
    name: str
    about: Json
    table: pd.DataFrame

    @property
    def several(self) -> bool:
        """Whether the run has several classes, each fitted against the rest."""
        return "classes" in self.about

    @cached_property
    def row_id(self) -> ndarray:
        """The ids of the test rows, ascending."""
        return self.table["row_id"].to_numpy()

    @cached_property
    def y(self) -> ndarray:
        """The labels of a run of two classes, -1 and +1."""
        return self.labels("")

    @cached_property
    def counts(self) -> ScoreCounts:
        """The counts of the scores of a run of two classes."""
        return table_counts(self.table)

    def column(self, name: str) -> ndarray | None:
        """Return the group, grade or cost of each test row, or None if the rows have none."""
        return self.table[name].to_numpy() if name in self.table else None

    def labels(self, name: str) -> ndarray:
        """Return +1 for the rows of a class and -1 for the others."""
        if not self.several:
            return self.table["y"].to_numpy()
        return np.where(members_of(self.table["label"].to_numpy(), [name], topics=self.about["topics"])[:, 0], 1, -1)

    def score(self, name: str = "") -> ndarray:
        """Return the scores of a class."""
        return self.table[f"score {name}" if name else "score"].to_numpy()

    def wrong(self, name: str = "") -> ndarray:
        """Return whether the prediction of each row is wrong for a class."""
        return (self.score(name) > 0) != (self.labels(name) > 0)

    def ranks_like(self, other: "Run") -> bool:
        """Return whether the scores of another run of two classes are the same up to a constant.

        This is so if only the threshold differs.
        """
        scores = self.score()
        return bool(np.ptp(scores - other.score()) <= SAME_SCORES * np.abs(scores).max())


class CompareConfig(Strict):
    """Runs to compare on the same test rows."""

    runs: Annotated[list[str], Cli(position=1, metavar="RUN RUN ...")]
    """Run folders (paths or URLs), or versions in model stores. Other folders are skipped."""
    output: Annotated[str, Cli(metavar="URL")] = "comparisons"
    """The folder or URL below which the folder of the report is made."""
    max_fpr: Rate = None
    """Also compare the partial AUC up to this false positive rate, such as 0.01."""


def compare(config: CompareConfig) -> Json:
    """Compare runs, and write a folder with a report.

    Returns
    -------
    dict
        What ``aucdist compare --json`` prints.

    Raises
    ------
    InputError
        If there are fewer than two runs, if one is damaged or has no test scores, or if their test rows or classes differ.
    """
    urls, max_fpr = [url.rstrip("/") for url in config.runs], config.max_fpr
    skipped = [shown(url) for url in urls if not exists(f"{resolve(url, METRICS)}/{METRICS}")]
    named = [url for url in urls if shown(url) not in skipped]
    runs = [read_run(resolve(url, METRICS)) for url in named]
    folders = list(map(shown, named))
    # The names of the configurations, if they differ, or else those of the folders, or else their paths.
    names, ends = [run.name for run in runs], [folder.rpartition("/")[2] for folder in folders]
    names = next((chosen for chosen in (names, ends) if len(set(chosen)) == len(runs)), folders)
    runs = [replace(run, name=name) for run, name in zip(runs, names, strict=True)]
    comparable(runs, skipped)
    if (several := runs[0].several) and max_fpr is not None:
        raise InputError(
            "max_fpr is for runs of two classes; runs of several are compared by the AUC of each class: leave max_fpr out"
        )
    with run_folder(config.output, timestamped("compare")) as folder:
        compared = jsonable(_compared_classes(runs) if several else _compared(runs, max_fpr))
        result = {"run": folder.url} | compared | {"settings": differing_settings(runs), "skipped": skipped}
        (folder.draft / "report.html").write_text(
            render_comparison_page(result, [] if several else [(run.name, run.counts) for run in runs]),
            encoding="utf-8",
        )
        (folder.draft / "comparison.json").write_text(json_text(result), "utf-8")
        folder.publish()
    return result


def compared_lines(result: Json) -> list[str]:
    """Return the lines that `aucdist compare` prints."""
    return [
        *(f"skipped {folder}: it is not the folder of a run" for folder in result["skipped"]),
        *comparison_sentences(result),
        *decision_lines(result),
        *(f"warning: {text}" for text in warnings_of_runs(result)),
        f"report: {result['run']}/report.html",
    ]


def read_run(url: str) -> Run:
    """Return the content of a run folder, or of a version in a model store."""
    about = read_metrics(url)
    if not exists(f"{url}/{SCORES}"):
        raise InputError(
            f"{shown(url)} has no {SCORES}: the run had no test rows, or was made by an early version of aucdist. "
            "Train again with `data.test`"
        )
    table = read_scores(url)
    if "classes" in about and not {"topics", "metrics"} <= about.keys():
        raise InputError(f"{shown(url)} is damaged: its {METRICS} has no topics, or no metrics. Copy the run again")
    if "weight" in table:
        raise InputError(
            f"{shown(url)}: its test rows are weighted, so the number of independent rows is unknown: compare runs "
            "without weights"
        )
    return Run(url, about["name"], about, table)


def comparable(runs: Sequence[Run], skipped: Sequence[str]) -> None:
    """Raise an InputError if runs cannot be compared.

    This is so if there are fewer than two, if one occurs twice, or if their kinds or their test rows differ.
    """
    if len(runs) < 2:
        more = f". These have no {METRICS}: {', '.join(skipped)}" if skipped else ""
        raise InputError(f"name two or more run folders; the arguments name {len(runs)}{more}")
    if len({run.url for run in runs}) < len(runs):
        raise InputError("a run is given twice: name each run once")
    first = runs[0]
    for run in runs[1:]:
        if run.several != first.several:
            raise InputError(
                f"{shown(run.url)} is a run of {'several' if run.several else 'two'} classes, and {shown(first.url)} is not: "
                "compare runs of one kind"
            )
        label = "label" if run.several else "y"
        if not first.table[["row_id", label]].equals(run.table[["row_id", label]]):
            raise InputError(
                f"{shown(run.url)} and {shown(first.url)} have different test rows ({len(run.table):,} and "
                f"{len(first.table):,}), or other classes: runs are compared on the same rows, so give both the same data, "
                "`positive` and `data.test`"
            )
        for key in OF_ROWS:
            values, others_values = run.column(key), first.column(key)
            if values is not None and others_values is not None and not np.array_equal(values, others_values):
                raise InputError(
                    f"{shown(run.url)} and {shown(first.url)} have different {key}s of the same test rows: use the same data"
                )


def _compared(runs: Sequence[Run], max_fpr: float | None) -> Json:
    y, areas = runs[0].y, _areas_in_groups(runs)
    # The costs of wrong decisions on the test rows are compared if the operating points have costs.
    costs = common_costs([run.about.get("operating_point") for run in runs])
    column = next((values for run in runs if (values := run.column("cost")) is not None), None)
    cost = None if costs is None or (costs.differ_by_row and column is None) else costs.of_rows(y > 0, column)
    tests: dict[str, list[Json]] = {}

    def paired(test: Callable[..., Difference]) -> list[Json]:
        return _pair_tests(runs, lambda a, b, _: NO_DIFFERENCE if a.ranks_like(b) else test(y, a.score(), b.score()))

    if areas:
        tests["group_auc"] = _pair_tests(runs, lambda a, b, _: group_metric_difference(areas[a.name], areas[b.name]))
        if (grade := runs[0].column("grade")) is not None:
            gains = {
                run.name: group_ndcg(
                    grade - min(0.0, float(grade.min())), run.score(), groups=runs[0].column("group"), k=10
                )
                for run in runs
            }
            tests["group_ndcg@10"] = _pair_tests(
                runs, lambda a, b, _: group_metric_difference(gains[a.name], gains[b.name])
            )
    tests["auc"] = paired(auc_test)
    if max_fpr is not None:
        tests["partial_auc"] = paired(partial(partial_auc_test, max_fpr=max_fpr))
    if cost is not None:
        tests["expected_cost"] = _pair_tests(
            runs, lambda a, b, _: mean_cost_difference(y > 0, (a.wrong(), b.wrong()), cost)
        )
    tests["average_precision"] = paired(average_precision_difference)
    return {
        **({} if max_fpr is None else {"max_fpr": max_fpr}),
        "n_pos": int((y == 1).sum()),
        "n_neg": int((y == -1).sum()),
        "runs": [_row(run, max_fpr, areas.get(run.name), cost) for run in runs],
        "same_scores": [
            {"first": a.name, "second": b.name, "threshold_difference": float(np.median(b.score() - a.score()))}
            for a, b in itertools.combinations(runs, 2)
            if a.ranks_like(b)
        ],
        "differences": tests,
    }


def _about(run: Run) -> Json:
    about = run.about
    return {
        "name": run.name,
        "run": shown(run.url),
        "estimator": about["estimator"],
        "solver": about["solver"],
        "seconds": about["seconds"]["fit"],
        "warnings": warning_texts(about | {"run": shown(run.url)}),
    }


def _row(run: Run, max_fpr: float | None, in_groups: GroupMetric | None, cost: ndarray | None) -> Json:
    estimates: Json = {}
    with warnings.catch_warnings(record=True, action="always") as caught:
        if in_groups is not None:
            estimates["group_auc"] = in_groups.interval()
        estimates["auc"] = auc_interval(run.counts)
        if max_fpr is not None:
            estimates["partial_auc"] = partial_auc_interval(run.counts, max_fpr)
        if cost is not None:
            estimates["expected_cost"] = DecisionCosts.of(run.y > 0, run.wrong(), cost).interval()
        estimates["average_precision"] = average_precision_interval(run.counts)
    for name in BY_BOOTSTRAP:
        estimates[name] = bootstrap_interval(run.counts, NAMED_METRICS[name].evaluate, n_resamples=RESAMPLES)
    row = _about(run) | {name: {"value": e.value, "interval": [e.low, e.high]} for name, e in estimates.items()}
    row["warnings"] = list(dict.fromkeys([*row["warnings"], *(sentence(str(warning.message)) for warning in caught)]))
    return row | {"decisions": run.about.get("operating_point") or point_of(run.counts, 0.0, {}, "test", None)}


def _pair_tests(
    runs: Sequence[Run], test: Callable[[Run, Run, str], Difference], classes: Sequence[str] = ("",)
) -> list[Json]:
    """Return the test of every pair of runs, for each class if there are several.

    The p-values of all tests are corrected by Holm's method.
    """
    tests = [
        ({"class": name} if name else {}) | {"first": a.name, "second": b.name} | asdict(test(a, b, name))
        for name in classes
        for a, b in itertools.combinations(runs, 2)
    ]
    return [t | {"p_holm": p} for t, p in zip(tests, holm([result["p_value"] for result in tests]), strict=True)]


def _areas_in_groups(runs: Sequence[Run]) -> dict[str, GroupMetric]:
    """Return the AUC within groups of each run. It is empty if a run has no groups, or if no group has a pair.

    All runs are measured with the groups, the grades and the group weights of the first run.
    """
    if any(run.column("group") is None for run in runs):
        return {}
    grade = runs[0].column("grade")
    y = runs[0].y if grade is None else grade
    weight = runs[0].about.get("groups", {}).get("group_weight", "pairs")  # missing in older runs
    try:
        return {
            run.name: group_auc(y, run.score(), groups=runs[0].column("group"), group_weight=weight) for run in runs
        }
    except InputError:  # no group has a pair
        return {}


def common_costs(points: Sequence[Json | None]) -> Costs | None:
    """Return the costs that all runs were trained for, according to their operating points.

    None if there are none or if runs differ.
    """
    costs = [point["target"]["cost"] for point in points if point and "cost" in point["target"]]
    return Costs(**costs[0]) if costs and all(cost == costs[0] for cost in costs) else None


# ---- several classes: a paired test for each class, with p-values corrected for all tests --------------------------------------


def _compared_classes(runs: Sequence[Run]) -> Json:
    tested = [[row["name"] for row in run.about["classes"] if row["test_auc"] is not None] for run in runs]
    classes = [name for name in tested[0] if all(name in others for others in tested[1:])]
    if not classes:
        raise InputError("no class has test rows in every run: compare runs of the same classes")
    labels = {name: runs[0].labels(name) for name in classes}

    compared = {
        "topics": runs[0].about["topics"],
        "runs": [
            _about(run) | {key: run.about["metrics"][key] for key in ("test_auc", "test_auc_weighted", "test_accuracy")}
            for run in runs
        ],
        "classes": [
            {
                "name": name,
                "n_pos": int((y > 0).sum()),
                "n_neg": int((y < 0).sum()),
                "auc": {run.name: auc(ScoreCounts.from_scores(y, run.score(name))) for run in runs},
            }
            for name, y in labels.items()
        ],
        "differences": _pair_tests(
            runs, lambda a, b, name: auc_test(labels[name], a.score(name), b.score(name)), classes
        ),
    }
    points = [row.get("operating_point") for run in runs for row in run.about["classes"] if row["name"] in labels]
    if (costs := common_costs(points)) is not None:
        column = runs[0].column("cost")
        compared["cost_differences"] = _pair_tests(
            runs,
            lambda a, b, name: mean_cost_difference(
                labels[name] > 0, (a.wrong(name), b.wrong(name)), costs.of_rows(labels[name] > 0, column)
            ),
            classes,
        )
    return compared


# ---- names and settings of runs ----------------------------------------------------------------------------------------------


def differing_settings(runs: Sequence[Run]) -> list[Json]:
    """Return the settings that differ between the runs that have them.

    A feature map counts as one setting, and so does the operating point. Parameters that a search chose replace those of the
    configuration. A parameter that an estimator does not have is left out for its runs.

    Returns
    -------
    list of dict
        Each has ``setting``, the name, and ``values``, a text for each run that has the setting.
    """
    settings = list(map(_run_settings, runs))
    one_estimator = len({run.about["estimator"] for run in runs}) == 1
    values = {
        key: {
            run.name: value_text(setting.get(key))
            for run, setting in zip(runs, settings, strict=True)
            if one_estimator or key in setting or not key.startswith("model.")
        }
        for key in dict.fromkeys(key for setting in settings for key in setting)
    }
    return [{"setting": key, "values": texts} for key, texts in values.items() if len(set(texts.values())) > 1]


def _run_settings(run: Run) -> Json:
    config: Json = {}
    with suppress(InputError):  # versions in a store have no `config.yaml`
        config = configuration_of(run.url)
    model = config.pop("model", {}) | run.about.get("search", {"best": {}})["best"]
    return (
        {f"model.{key}": value for key, value in model.items()}
        | flattened({key: value for key, value in config.items() if key not in IGNORED_KEYS})
        | {"operating_point": run.about.get("operating_point", {}).get("target", config.get("operating_point"))}
    )

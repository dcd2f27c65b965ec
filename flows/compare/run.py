"""Compares runs on the same test rows, and on the same folds: paired tests, confidence intervals and a report."""

import itertools
import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from aucdist.data.storage.files import exists, shown
from aucdist.errors import InputError
from aucdist.metrics.compare import (
    Difference,
    corrected_t_test,
    delong_test,
    holm,
    partial_delong_test,
    precision_test,
)
from aucdist.metrics.costs import COST_COLUMN, costs_of_labels, mean_cost_difference, mean_cost_interval
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.groups import OfGroups, auc_of_groups, ndcg_of_groups, paired_groups_test
from aucdist.metrics.intervals import bootstrap_interval
from aucdist.metrics.measures import MEASURES
from aucdist.metrics.partial import check_max_fpr, partial_auc_interval
from aucdist.metrics.ranking import auc_interval, average_precision_interval
from aucdist.report.classes_comparison import classes_sentences
from aucdist.report.comparison import Comparison, render_comparison_page, sentences
from aucdist.search.choice import groups_test
from aucdist.store.history import resolve
from flows.compare.classes import compare_classes
from flows.compare.labels import settings_of, unique_names
from flows.config.base import Cli, Strict
from flows.json_values import jsonable
from flows.progress.console import RunObserver
from flows.run_folder.costs import common_cost
from flows.run_folder.folder import METRICS, read_about, run_folder, timestamped
from flows.run_folder.scores import SCORES, read_scores

RESAMPLES = 500
BY_BOOTSTRAP = ("g_mean", "balanced_accuracy")


@dataclass(frozen=True, eq=False)
class Run:
    """The content of a run folder, with its test rows in the order of their ids."""

    url: str
    name: str
    about: dict[str, Any]
    row_id: np.ndarray
    y: np.ndarray
    scores: np.ndarray
    counts: ScoreCounts
    group: np.ndarray | None = None
    grade: np.ndarray | None = None
    cost: np.ndarray | None = None

    @property
    def wrong(self) -> np.ndarray:
        """Whether the run's threshold decides a row wrongly."""
        return (self.scores > self.about["threshold"]) != (self.y > 0)

    def measure(self, measure: str) -> Callable[[ScoreCounts], float]:
        """Return a measure as a function of counts, with the run's own threshold."""
        return lambda counts: MEASURES[measure].of(counts, self.about["threshold"])


class CompareConfig(Strict):
    """Runs on the same test rows."""

    runs: Annotated[list[str], Cli(place=1, metavar="RUN RUN ...")] = Field(
        description="Run folders, paths or URLs, or versions in model stores; other folders are skipped"
    )
    output: Annotated[str, Cli(metavar="URL")] = Field(
        default="runs", description="Where the folder of the report is made"
    )
    max_fpr: Annotated[float | None, Cli()] = Field(
        default=None, ge=0.0, le=1.0,
        description="Compares the partial AUC up to this false positive rate as well, such as 0.01",
    )  # fmt: skip


def compare(config: CompareConfig, observer: RunObserver) -> dict[str, Any]:
    """Compare runs, and write a folder with a report.

    Returns what ``aucdist compare --json`` prints.
    Raises InputError if `max_fpr` is not above 0 and at most 1, if there are fewer than two runs, if one is damaged or
        has no test scores, or if their test rows differ.
    """
    urls, output, max_fpr = config.runs, config.output, config.max_fpr
    if max_fpr is not None:
        check_max_fpr(max_fpr)
    urls = [url.rstrip("/") for url in urls]
    skipped = [shown(url) for url in urls if not exists(f"{resolve(url, METRICS)}/{METRICS}")]
    found = [resolve(url, METRICS) for url in urls if shown(url) not in skipped]
    if any("classes" in read_about(url) for url in found):
        if max_fpr is not None:
            raise InputError(
                "max_fpr is for runs of two classes: runs of several are compared by the AUC of each class"
            )
        return compare_classes(found, output, skipped)
    runs = _with_unique_names([read_run(url) for url in found])
    comparable(runs, skipped)
    with run_folder(output, timestamped("compare")) as folder:
        result = {"run": folder.url, **_compared(runs, max_fpr), "skipped": skipped}
        page = render_comparison_page(Comparison(result, [(run.name, run.counts) for run in runs]))
        (folder.draft / "report.html").write_text(page, encoding="utf-8")
        (folder.draft / "comparison.json").write_text(json.dumps(result, indent=2, allow_nan=False) + "\n", "utf-8")
        folder.publish()
    return result


def _compared(runs: Sequence[Run], max_fpr: float | None) -> dict[str, Any]:
    y = runs[0].y
    areas = _pairs(runs, lambda a, b: delong_test(y, a.scores, b.scores))
    precisions = _pairs(runs, lambda a, b: precision_test(y, a.scores, b.scores))
    folds = _over_folds(runs)
    areas_in_groups, cost = _areas_in_groups(runs), _cost_of_rows(runs)
    tests = _within_groups(runs, areas_in_groups) | {"auc": areas}
    if max_fpr is not None:
        tests["partial_auc"] = _pairs(
            runs, lambda a, b: partial_delong_test(y, a.scores, b.scores, max_fpr, standardized=True)
        )
    if cost is not None:
        tests["expected_cost"] = _pairs(runs, lambda a, b: mean_cost_difference(y > 0, (a.wrong, b.wrong), cost))
    tests |= {"average_precision": precisions} | ({} if folds is None else {"folds": folds})
    return jsonable(
        {
            **({} if max_fpr is None else {"max_fpr": max_fpr}),
            "n_pos": int((y == 1).sum()),
            "n_neg": int((y == -1).sum()),
            "runs": [_row(run, max_fpr, areas_in_groups.get(run.name), cost) for run in runs],
            "differences": tests,
        }
    )


def _row(run: Run, max_fpr: float | None, in_groups: OfGroups | None, cost: np.ndarray | None) -> dict[str, Any]:
    about, found = run.about, {}
    if in_groups is not None:
        found["group_auc"] = {"value": in_groups.mean, "interval": list(in_groups.interval())}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        spread = auc_interval(run.counts)
        if max_fpr is not None:
            top = partial_auc_interval(run.counts, max_fpr, standardized=True)
            found["partial_auc"] = {"value": top.value, "interval": [top.low, top.high]}
        precision = average_precision_interval(run.counts)
    found["average_precision"] = {"value": precision.value, "interval": [precision.low, precision.high]}
    if cost is not None:
        mean = mean_cost_interval(run.y > 0, run.wrong, cost)
        found["expected_cost"] = {"value": mean.value, "interval": [mean.low, mean.high]}
    for name in BY_BOOTSTRAP:
        measure = run.measure(name)
        estimate = bootstrap_interval(run.counts, measure, n_resamples=RESAMPLES)
        found[name] = {"value": estimate.value, "interval": [estimate.low, estimate.high]}
    return {
        "name": run.name,
        "run": shown(run.url),
        "estimator": about["estimator"],
        "solver": about["solver"],
        "seconds": about["seconds"]["fit"],
        "auc": {"value": spread.auc, "interval": [spread.low, spread.high]},
        **found,
        "warnings": [str(w.message) for w in caught],
    }


def _pairs(runs: Sequence[Run], test: Callable[[Run, Run], Difference]) -> list[dict[str, Any]]:
    """Return the test of every pair of runs, with p-values corrected for the number of pairs."""
    pairs = list(itertools.combinations(runs, 2))
    found = [test(a, b) for a, b in pairs]
    corrected = holm([difference.p_value for difference in found])
    return [
        {"first": a.name, "second": b.name, **asdict(difference), "p_holm": p}
        for (a, b), difference, p in zip(pairs, found, corrected, strict=True)
    ]


def _areas_in_groups(runs: Sequence[Run]) -> dict[str, OfGroups]:
    """Return the AUC within groups of each run; none where a run has no groups, or no group has a pair.

    All runs are measured by the groups of the first one, by its grades if it has some, and by what it lets a group weigh.
    """
    if any(run.group is None for run in runs):
        return {}
    y = runs[0].y if runs[0].grade is None else runs[0].grade
    weight = runs[0].about.get("groups", {}).get("group_weight", "pairs")  # older runs do not say
    try:
        return {run.name: auc_of_groups(y, run.scores, groups=runs[0].group, group_weight=weight) for run in runs}
    except InputError:  # no group has a pair
        return {}


def _cost_of_rows(runs: Sequence[Run]) -> np.ndarray | None:
    """Return what a wrong decision on each test row costs, by the operating points of the runs; None where they do not say it."""
    cost = common_cost([run.about.get("operating_point") for run in runs])
    column = next((run.cost for run in runs if run.cost is not None), None)
    if cost is None or (COST_COLUMN in cost.values() and column is None):
        return None
    return costs_of_labels(runs[0].y, column, cost)


def _within_groups(runs: Sequence[Run], areas: dict[str, OfGroups]) -> dict[str, list[dict[str, Any]]]:
    """Return the tests of the AUC within groups, and of NDCG where labels are grades; none where runs have no such AUC."""
    if not areas:
        return {}
    groups, grade = runs[0].group, runs[0].grade
    found = {"group_auc": _pairs(runs, lambda a, b: paired_groups_test(areas[a.name], areas[b.name]))}
    if grade is not None:
        y = grade - min(0.0, float(grade.min()))
        gains = {run.name: ndcg_of_groups(y, run.scores, groups=groups, k=10) for run in runs}
        found["ndcg@10"] = _pairs(runs, lambda a, b: paired_groups_test(gains[a.name], gains[b.name]))
    return found


def _over_folds(runs: Sequence[Run]) -> list[dict[str, Any]] | None:
    """Return the tests over the folds of the searches behind the runs; None unless all used the same folds and metric."""
    searches: list[dict[str, Any]] = [run.about["search"] for run in runs if "search" in run.about]
    if len(searches) < len(runs):
        return None
    same = [
        (search["folds"], search["metric"], run.about["data"]["fingerprint"], run.about["n_samples"])
        for search, run in zip(searches, runs, strict=True)
    ]
    values = {run.name: _chosen(search) for run, search in zip(runs, searches, strict=True)}
    if any(one != same[0] for one in same) or not all(values.values()):
        return None
    share = searches[0]["test_over_train"]
    shares = {run.name: search.get("groups") for run, search in zip(runs, searches, strict=True)}

    def test(a: Run, b: Run) -> Difference:
        first, second = shares[a.name], shares[b.name]
        within = groups_test(first, second, share) if first and second else None
        return within or corrected_t_test(np.subtract(values[a.name], values[b.name]).tolist(), share)

    return _pairs(runs, test)


def _chosen(search: dict[str, Any]) -> list[float]:
    """Return the score of each fold, of what it chose if the search was nested, else of the best; [] if a fold failed."""
    if search["nested"]:
        values = [choice["value"] for choice in search["nested"]]
    else:
        values = next(row["folds"] for row in search["table"] if row["parameters"] == search["best"])
    return [] if None in values else values


def read_run(url: str) -> Run:
    """Return the content of a run folder, or of a version in a model store."""
    about = read_about(url)
    if not exists(f"{url}/{SCORES}"):
        raise InputError(
            f"{shown(url)} has no {SCORES}: the run had no test rows, or is older than aucdist compare. "
            "Train again with `data.test`"
        )
    table = read_scores(url)
    if about.get("threshold") is None:
        raise InputError(f"{shown(url)} is damaged: its {METRICS} has no threshold")
    if "weight" in table:
        raise InputError(
            f"{shown(url)}: its test rows are weighted; weights do not say how many independent rows there are"
        )
    y, scores = table["y"].to_numpy(), table["score"].to_numpy()
    more = [table[name].to_numpy() if name in table else None for name in ("group", "grade", "cost")]
    counts = ScoreCounts.from_scores(y, scores)
    return Run(url, about["name"], about, table["row_id"].to_numpy(), y, scores, counts, *more)


def _with_unique_names(runs: list[Run]) -> list[Run]:
    """Return the runs with unique names."""
    names = unique_names(
        [run.name for run in runs], [run.url for run in runs], [settings_of(run.url, run.about) for run in runs]
    )
    return [Run(**{**vars(run), "name": name}) for run, name in zip(runs, names, strict=True)]


def comparable(runs: Sequence[Run], skipped: Sequence[str] = ()) -> None:
    """Refuse runs that cannot be compared: fewer than two, one twice, or different test rows."""
    if len(runs) < 2:
        more = f"; not the folder of a run, for want of {METRICS}: {', '.join(skipped)}" if skipped else ""
        raise InputError(f"at least two runs are needed to compare, and {len(runs)} were found{more}")
    if len({run.url for run in runs}) < len(runs):
        raise InputError("a run is given twice")
    first = runs[0]
    for run in runs[1:]:
        if not (np.array_equal(run.row_id, first.row_id) and np.array_equal(run.y, first.y)):
            raise InputError(
                f"{shown(run.url)} and {shown(first.url)} have different test rows ({len(run.y):,} and {len(first.y):,}): "
                "runs are compared on the same rows, so give both the same `data.test`"
            )
        for what, one, other in (
            ("groups", run.group, first.group), ("grades", run.grade, first.grade), ("costs", run.cost, first.cost)
        ):  # fmt: skip
            if one is not None and other is not None and not np.array_equal(one, other):
                raise InputError(f"{shown(run.url)} and {shown(first.url)} have different {what} of the same test rows")


def compared_lines(result: dict[str, Any]) -> list[str]:
    """Return what `aucdist compare` prints."""
    skipped = [f"skipped {folder}: it is not the folder of a run" for folder in result["skipped"]]
    said = classes_sentences(result) if "classes" in result else sentences(result)
    return [*skipped, *said, f"report: {result['run']}/report.html"]

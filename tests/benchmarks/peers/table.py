"""The table of the suite `peers`: rows of AUC and time for each system, and a summary for each data set.

Goals and times are those of the mean over the splits of a data set. An AUC with its interval, and a test of two AUCs, need one
set of test rows: they are of the first split, as are the columns about its choice and its last fit.
"""

import math
import statistics
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from aucdist.metrics import roc_auc_interval
from aucdist.metrics.compare import Difference, auc_test, holm
from benchmarks.common import Row
from benchmarks.peers.contestant import CHOICE_ROWS, BudgetPoint
from benchmarks.peers.referee import Trial
from benchmarks.peers.system import LINEAR, OTHER, OURS, System

NEAR = (1e-3, 1e-4)
"""A time is that of the first budget from which on the AUC stays at most so far below the best final one of a linear system."""

LEVEL = 0.95
MANY_ROWS, BAR_OF_MANY, BAR_OF_FEW = 100_000, 1.0, 2.0
"""How many times the fastest linear peer's time ours may take: 1.0 above so many training rows, 2.0 below."""

EVEN = 1.05
"""Times within this ratio of each other are a tie."""

BEFORE_OR_EQUAL = "before or equal"
"""Whether ours reaches the larger distance, and the fastest linear peer that reads all rows reaches it in no less time."""

CUT_OFF, FAILED = "cut off by the limit", "failed after its first fits"
"""Why a comparison is excluded from wins and ties."""


class CurvePoint(NamedTuple):
    """A budget on the splits of a data set: the median of the seconds, the mean of the test AUCs."""

    seconds: float
    auc: float


@dataclass(frozen=True)
class Contest:
    """A data set after all trials.

    Attributes
    ----------
    name : str
    rows : int
        Training rows of a split.
    y_test : ndarray
        The labels of the test rows of the first split.
    trials : mapping of str to sequence of Trial
        The trials of each system, by its name.
    n_splits : int
    """

    name: str
    rows: int
    y_test: np.ndarray
    trials: Mapping[str, Sequence[Trial]]
    n_splits: int = 1

    @cached_property
    def curves(self) -> dict[str, list[list[CurvePoint]]]:
        """The curve of each trial of each system: seconds against AUC, a point for each budget."""
        return {name: [self._curve(trial) for trial in trials] for name, trials in self.trials.items()}

    def _curve(self, trial: Trial) -> list[CurvePoint]:
        """Return the means over all splits; no point for a trial that ended before, but with one split what it reached."""
        if trial.note and self.n_splits > 1:
            return []
        return mean_curve([split.points for split in trial.splits])


def mean_curve(splits: Sequence[Sequence[BudgetPoint]]) -> list[CurvePoint]:
    """Return for each budget the median of the seconds and the mean of the AUCs; a split that ended before keeps its last fit."""
    curve = []
    for number in range(max(map(len, splits), default=0)):
        reached = [points[min(number, len(points) - 1)] for points in splits]
        seconds, areas = [point.seconds for point in reached], [point.auc for point in reached]
        curve.append(CurvePoint(statistics.median(seconds), statistics.fmean(areas)))
    return curve


def result_rows(contests: Sequence[Contest], systems: Sequence[System]) -> Iterator[Row]:
    """Yield a row for each data set and system, then a summary for each data set, then a summary of all.

    Each AUC is compared with that of our system with the best AUC over the folds, by DeLong's test on the same test rows, with
    p-values corrected by Holm's method over all comparisons of the run. Times are compared with that of our fastest system. A
    peer that the time limit cut off, in its choice or in its fits, or that failed after its first fits, is excluded from wins and
    ties, and the summaries count such comparisons; a loss against it counts.
    """
    tests: dict[tuple[str, str], Difference] = {}
    for contest in contests:
        ours = our_choice(contest, systems)
        for system in systems:
            if system is not ours and (test := _auc_test(contest, ours, system)) is not None:
                tests[contest.name, system.name] = test
    corrected = dict(zip(tests, holm([test.p_value for test in tests.values()]), strict=True))
    rows = [_system_row(contest, systems, s, tests, corrected) for contest in contests for s in systems]
    yield from rows
    summaries = [_data_set_summary(c, systems, [row for row in rows if row["data"] == c.name]) for c in contests]
    yield from summaries
    if summaries:
        yield _total(summaries)


def our_choice(contest: Contest, systems: Sequence[System]) -> System:
    """Return our system with the best AUC over the folds, which do not contain the test rows."""

    def mean_auc(system: System) -> float:
        choice = contest.trials[system.name][0].first.choice
        return 0.0 if choice is None or choice.mean_auc is None else choice.mean_auc

    return max((s for s in systems if s.kind == OURS), key=mean_auc)


def _auc_test(contest: Contest, ours: System, peer: System) -> Difference | None:
    first, second = (contest.trials[s.name][0].first.scores for s in (ours, peer))
    if first is None or second is None or min((contest.y_test == 1).sum(), (contest.y_test == -1).sum()) < 2:
        return None
    return auc_test(contest.y_test, first, second, LEVEL)


def _system_row(
    contest: Contest,
    systems: Sequence[System],
    system: System,
    tests: Mapping[tuple[str, str], Difference],
    corrected: Mapping[tuple[str, str], float],
) -> Row:
    trial, key = contest.trials[system.name][0], (contest.name, system.name)
    first, curve = trial.first, contest.curves[system.name][0]
    row: Row = {**_data_columns(contest), "system": system.name, "kind": system.kind}
    if first.scores is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # with few positives the interval is wide, as the row shows
            interval = roc_auc_interval(contest.y_test, first.scores, level=LEVEL)
        row |= {"AUC": interval.value, "low": interval.low, "high": interval.high}
    if curve:
        row["mean AUC"] = curve[-1].auc
    if key in tests:
        difference, p = tests[key].value, corrected[key]
        row |= {"ours less it": difference, "p, Holm": p, "ours, AUC": _auc_verdict(difference, p)}
        reason = CUT_OFF if trial.cut_off(system) else FAILED if trial.note else ""
        if system.kind != OURS and reason and row["ours, AUC"] != "loses":
            row["excluded"] = reason
    row |= _time_columns(contest, systems, system)
    if first.points:
        last = first.points[-1]
        row |= {"budget": last.budget, "fit s": last.seconds, "gap": last.gap}
    row |= {"value": first.value, "choice s": first.choice_seconds, "warm-up s": trial.warm_up, "peak MiB": trial.peak}
    drawn = " ".join(f"{point.seconds:.6g}:{point.auc:.6f}" for point in curve)
    return row | {"note": _note(contest, trial, system), "curve": drawn}


def _data_columns(contest: Contest) -> Row:
    choice_rows = min(contest.rows, CHOICE_ROWS)
    return {
        "data": contest.name,
        "train rows": contest.rows,
        "choice rows": choice_rows,
        "splits": contest.n_splits,
    }


def _time_columns(contest: Contest, systems: Sequence[System], system: System) -> Row:
    best = best_linear_auc(contest, systems)
    row: Row = {}
    for near in NEAR:
        theirs, fastest = _times(contest, system, best - near), _fastest(contest, systems, OURS, best - near)
        row[f"s to {near:g}"] = _median(theirs)
        row[f"times ours to {near:g}"] = (
            None if fastest is None else _median_ratio(theirs, _times(contest, fastest, best - near))
        )
    if system.kind != OURS and contest.trials[system.name][0].first.points:
        ours = _fastest(contest, systems, OURS, best - NEAR[0])
        row["ours, time"] = _time_verdict(row[f"times ours to {NEAR[0]:g}"], row[f"s to {NEAR[0]:g}"], ours)
    return row


def _note(contest: Contest, trial: Trial, system: System) -> str:
    tried, grid = trial.values_tried, len(system.grid)
    choice = "" if tried is None or tried == grid else f"chose from {tried} of {grid}"
    ended_early = contest.n_splits > 1 and trial.note and trial.splits
    where = f"split {len(trial.splits)} of {contest.n_splits}" if ended_early else ""
    return ", ".join(part for part in (choice, trial.note, where) if part)


def best_linear_auc(contest: Contest, systems: Sequence[System]) -> float:
    """Return the best final test AUC of our systems and the linear peers, a mean over the splits; nan if none was fitted."""
    names = [s.name for s in systems if s.kind != OTHER]
    return max((curve[-1].auc for name in names for curve in contest.curves[name] if curve), default=math.nan)


def seconds_to(curve: Sequence[CurvePoint], goal: float) -> float | None:
    """Return the seconds of the first budget from which on the AUC is at least the goal, or None.

    On few test rows a fit that has hardly started may reach the goal by chance and fall below it again.
    """
    seconds = None
    for point in reversed(curve):
        if point.auc < goal:
            break
        seconds = point.seconds
    return seconds


def _times(contest: Contest, system: System, goal: float) -> list[float | None]:
    return [seconds_to(curve, goal) for curve in contest.curves[system.name]]


def _fastest(contest: Contest, systems: Sequence[System], kind: str, goal: float) -> System | None:
    """Return the system of a kind that reaches the goal first, or None if none does."""
    medians = {s: _median(_times(contest, s, goal)) for s in systems if s.kind == kind}
    known = {s: seconds for s, seconds in medians.items() if seconds is not None}
    return min(known, key=lambda s: known[s], default=None)


def _median(seconds: Sequence[float | None]) -> float | None:
    known = [s for s in seconds if s is not None]
    return statistics.median(known) if known else None


def _median_ratio(theirs: Sequence[float | None], ours: Sequence[float | None]) -> float | None:
    """Return the median of the ratios of the repeats."""
    return _median([a / b if a is not None and b is not None else None for a, b in zip(theirs, ours, strict=False)])


def _auc_verdict(difference: float, p: float) -> str:
    if p >= 1 - LEVEL:
        return "ties"
    return "wins" if difference > 0 else "loses"


def _time_verdict(ratio: float | None, theirs: float | None, ours: System | None) -> str:
    """Return which one reaches the larger distance first; a system that never does is last."""
    if ratio is None:
        return "ties" if ours is None and theirs is None else "wins" if theirs is None else "loses"
    if 1 / EVEN <= ratio <= EVEN:
        return "ties"
    return "wins" if ratio > 1 else "loses"


def _data_set_summary(contest: Contest, systems: Sequence[System], rows: Sequence[Row]) -> Row:
    """Return the summary of a data set: AUC against every linear peer, and time against the fastest ones.

    Those are the fastest of all linear peers, and the fastest of those that read all rows, as ours do.
    """
    compared = [row for row in rows if row["kind"] == LINEAR and "ours, AUC" in row]
    verdicts = [row["ours, AUC"] for row in compared if "excluded" not in row]
    goal = best_linear_auc(contest, systems) - NEAR[0]
    ours, peer = (_fastest(contest, systems, kind, goal) for kind in (OURS, LINEAR))
    reader = _fastest(contest, [s for s in systems if s.reads_all_rows], LINEAR, goal)
    ratio, reader_ratio = (_ratio(contest, ours, other, goal) for other in (peer, reader))
    bar = BAR_OF_MANY if contest.rows > MANY_ROWS else BAR_OF_FEW
    return {
        **_data_columns(contest), "system": "all linear peers", "kind": "summary",
        "wins": verdicts.count("wins"), "ties": verdicts.count("ties"), "loses": verdicts.count("loses"),
        **{f"excluded, {reason}": sum(row.get("excluded") == reason for row in compared) for reason in (CUT_OFF, FAILED)},
        "ours by folds": our_choice(contest, systems).name, "our fastest": ours and ours.name,
        "their fastest": peer and peer.name, "times the fastest": ratio, "bar": bar,
        "within the bar": ours is not None and (ratio is None or ratio <= bar),
        "fastest that reads all rows": reader and reader.name, "times the fastest that reads all rows": reader_ratio,
        BEFORE_OR_EQUAL: ours is not None and (reader is None or (reader_ratio is not None and reader_ratio <= EVEN)),
    }  # fmt: skip


def _ratio(contest: Contest, ours: System | None, peer: System | None, goal: float) -> float | None:
    """Return how many times the seconds of a peer ours takes; None if one of them does not reach the goal."""
    if ours is None or peer is None:
        return None
    return _median_ratio(_times(contest, ours, goal), _times(contest, peer, goal))


def _total(summaries: Sequence[Row]) -> Row:
    total: Row = {"data": "all", "system": "all linear peers", "kind": "summary", "data sets": len(summaries)}
    total["never significantly below"] = sum(summary["loses"] == 0 for summary in summaries)
    for key in (
        "wins",
        "ties",
        "loses",
        f"excluded, {CUT_OFF}",
        f"excluded, {FAILED}",
        "within the bar",
        BEFORE_OR_EQUAL,
    ):
        total[key] = sum(summary[key] for summary in summaries)
    return total

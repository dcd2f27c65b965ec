"""The suite `top`: how well systems rank the top of the list, and what a small false positive rate costs in passes.

Every system chooses its value (lam, or the size of trees) by the partial AUC at 0.01 on a third of the training rows, held out at
random within each class, and then fits all of them. ``aucdist top`` is whichever of our systems for the top the same held-out
rows rank first: that is what one would deploy, and what every peer is compared with, by a paired test of the partial AUC on the
test rows, corrected by Holm's method within a data set. Data sets with fewer than 100 positive test rows are left out. A system
that is not installed has a row that says so.
"""

import importlib
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from aucdist.data.block import Block
from aucdist.errors import InputError
from aucdist.metrics.compare import Difference, holm, partial_auc_test
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.decisions import recall_at_fpr
from aucdist.metrics.partial import partial_auc
from benchmarks.common import Row, chosen_names
from benchmarks.peers.contestant import middle_out, stratified_subset
from benchmarks.peers.data_sets import TrainAndTest, top_data_sets
from benchmarks.peers.passes import PASSES_DATA, passes_to_gap
from benchmarks.peers.system import LINEAR, OURS, System
from benchmarks.peers.top_systems import SYSTEMS, TOP

MIN_POSITIVES = 100
MAX_FPR = 0.01
HELD_OUT = 1 / 3
OURS_CHOSEN = "aucdist top"
LIMIT = 300.0

CONDITIONS = f"every system chooses its value by the partial AUC at {MAX_FPR:g} on held-out training rows"
"""Stated in the first line of the output and on the page."""


@dataclass
class Entry:
    """What a system reached on a data set.

    Attributes
    ----------
    system : System
    note : str
        Why it did not run; else empty.
    value : float or None
        The chosen value.
    held_out : float
        The partial AUC on the held-out rows at the value.
    seconds : float
        Of the fit of all training rows.
    scores : ndarray of shape (n_test,)
    gap : float or None
        The certified relative gap, if the system has one.
    """

    system: System
    note: str = ""
    value: float | None = None
    held_out: float = -np.inf
    seconds: float = 0.0
    scores: np.ndarray = field(default_factory=lambda: np.zeros(0))
    gap: float | None = None


def top(slow_peers: bool, *, only: str | None = None, limit: float = LIMIT) -> Iterator[Row]:
    """Compare systems at the top of the list on all data sets, then count passes.

    Parameters
    ----------
    slow_peers : bool
        Also use the largest data set.
    only : str, optional
        Names of data sets, separated by commas; None for all.
    limit : float
        Seconds after which a system tries no further value on a data set.

    Raises
    ------
    InputError
        For an unknown data set, or a limit below 1.
    """
    if limit < 1:
        raise InputError(f"--limit must be at least 1; got {limit}")
    known = top_data_sets(slow_peers)
    chosen = chosen_names(only, known)
    outcomes: dict[str, dict[str, str]] = {}
    for name in chosen:
        (rows,) = known[name](1)
        n_pos = int((rows[1].y > 0).sum())
        if n_pos < MIN_POSITIVES:
            print(f"{name}: {n_pos} positive test rows, left out", file=sys.stderr, flush=True)
        else:
            yield from compare_on(name, rows, limit, outcomes)
        if name in PASSES_DATA:
            yield from passes_to_gap(name, rows[0])
    yield from summary_rows(outcomes)


def compare_on(name: str, rows: TrainAndTest, limit: float, outcomes: dict[str, dict[str, str]]) -> Iterator[Row]:
    """Yield a row for each system, and record under its name how it compares with ours on this data set."""
    train, test = rows
    entries = [run_system(system, train, test, limit) for system in SYSTEMS]
    ours = max((e for e in entries if e.system in TOP and not e.note), key=lambda e: e.held_out)
    peers = [e for e in entries if e.system not in TOP and not e.note]
    tests = dict(
        zip([e.system.name for e in peers], _tests(test.y, ours.scores, [e.scores for e in peers]), strict=True)
    )
    yield {**_row(name, ours, test.y), "system": OURS_CHOSEN, "note": ours.system.name}
    for entry in entries:
        row = _row(name, entry, test.y)
        if entry.system.name in tests:
            difference, p = tests[entry.system.name]
            outcome = "ties" if p > 0.05 else "wins" if difference.value > 0 else "loses"
            outcomes.setdefault(entry.system.name, {})[name] = outcome
            row |= {"aucdist minus this": difference.value, "p": p, "aucdist": outcome}
        yield row


def run_system(system: System, train: Block, test: Block, limit: float) -> Entry:
    """Choose the value of a system, fit it to all training rows, and score the test rows."""
    try:
        importlib.import_module(system.package)
    except ImportError:
        return Entry(system, "not installed")
    reason = system.reason_to_skip(not isinstance(train.X, np.ndarray), train.n_features)
    if reason is not None:
        return Entry(system, reason)
    try:
        value, held_out = choose_value(system, train.X, train.y, limit)
        start = time.perf_counter()
        model = system.fit(train.X, train.y, value, system.choice_budget, 1)
        seconds = time.perf_counter() - start
        scores = np.asarray(model.scores(test.X), dtype=np.float64).ravel()
    except Exception as error:  # a peer may fail in any way, and the others count all the same
        return Entry(system, f"not run here: {type(error).__name__}: {str(error).splitlines()[:1]}")
    return Entry(system, "", value, held_out, seconds, scores, model.gap)


def choose_value(system: System, X: Any, y: np.ndarray, limit: float) -> tuple[float, float]:
    """Return the value with the largest partial AUC on held-out rows, and that; of equal ones the larger value.

    Values are tried from the middle of the grid outwards, and none once `limit` seconds are over.
    """
    held_out = np.zeros(len(y), dtype=bool)
    held_out[stratified_subset(y, round(HELD_OUT * len(y)))] = True
    start = time.perf_counter()
    tried: list[tuple[float, float]] = []
    for value in middle_out(system.grid):
        if tried and time.perf_counter() - start > limit:
            break
        model = system.fit(X[~held_out], y[~held_out], value, system.choice_budget, 1)
        tried.append((_partial_auc(y[held_out], np.asarray(model.scores(X[held_out])).ravel(), MAX_FPR), value))
    best, value = max(tried)
    return value, best


def _partial_auc(y: np.ndarray, scores: np.ndarray, max_fpr: float) -> float:
    return partial_auc(ScoreCounts.from_scores(y, scores), max_fpr, standardized=True)


def _tests(y: np.ndarray, ours: np.ndarray, others: Sequence[np.ndarray]) -> list[tuple[Difference, float]]:
    """Return the paired test of ours against each of the others, with corrected p-values."""
    tests = [partial_auc_test(y, ours, scores, MAX_FPR, standardized=True) for scores in others]
    return list(zip(tests, holm([difference.p_value for difference in tests]), strict=True))


def _row(name: str, entry: Entry, y: np.ndarray) -> Row:
    row: Row = {"data": name, "system": entry.system.name, "kind": entry.system.kind, "note": entry.note}
    if entry.note:
        return row
    counts = ScoreCounts.from_scores(y, entry.scores)
    return row | {
        "value": entry.value, "AUC": partial_auc(counts, 1.0),
        "partial AUC 0.01": partial_auc(counts, 0.01, standardized=True),
        "partial AUC 0.05": partial_auc(counts, 0.05, standardized=True),
        "recall at FPR 0.001": recall_at_fpr(counts, 1e-3), "recall at FPR 0.01": recall_at_fpr(counts, 1e-2),
        "seconds": entry.seconds, "relative gap": entry.gap,
    }  # fmt: skip


def summary_rows(outcomes: dict[str, dict[str, str]]) -> Iterator[Row]:
    """Yield for each peer on how many data sets ours is significantly better, not different, or significantly worse."""
    kinds = {system.name: system.kind for system in SYSTEMS}
    for name, of_sets in outcomes.items():
        counted = {
            outcome: sum(of_set == outcome for of_set in of_sets.values()) for outcome in ("wins", "ties", "loses")
        }
        yield {"data": f"all {len(of_sets)}", "system": name, "kind": kinds[name], **counted}
    linear = [of_sets for name, of_sets in outcomes.items() if kinds[name] == LINEAR]
    sets = {data for of_sets in linear for data in of_sets}
    above = sum(any(of_sets.get(data) == "wins" for of_sets in linear) for data in sets)
    below = sum(any(of_sets.get(data) == "loses" for of_sets in linear) for data in sets)
    if sets:
        yield {
            "data": f"all {len(sets)}", "system": "data sets where aucdist top is above, below some linear peer", "kind": OURS,
            "wins": above, "loses": below,
        }  # fmt: skip

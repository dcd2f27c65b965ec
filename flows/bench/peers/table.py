"""The judge: what the turns of all contestants come to, row by row."""

import math
import statistics
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from aucdist.metrics import roc_auc_interval
from aucdist.metrics.compare import Difference, delong_test, holm
from flows.bench.common import Row
from flows.bench.peers.referee import Turn
from flows.bench.peers.system import LINEAR, OTHER, OURS, System

NEAR = (1e-3, 1e-4)
"""Times are those of the first budget from which on the AUC stays at most so far below the best final one of a linear system."""

LEVEL = 0.95
MANY_ROWS, BAR_OF_MANY, BAR_OF_FEW = 100_000, 1.0, 2.0
"""How many times the fastest linear peer's time ours may take: 1.0 above so many training rows, 2.0 below."""

EVEN = 1.05
"""Times within this ratio of each other are a tie."""


@dataclass(frozen=True)
class Played:
    """A data set after all turns: its training rows, the labels of its test rows, and the turns by system."""

    name: str
    rows: int
    y_test: np.ndarray
    turns: Mapping[str, Sequence[Turn]]


def table(played: Sequence[Played], systems: Sequence[System]) -> Iterator[Row]:
    """Give a row for each data set and system, then one for each data set, then what they come to.

    The AUC of all is compared with that of ours which had the best one over the folds: by DeLong's test on the same test rows,
    the p-values corrected by Holm's method over all comparisons of the run. Times are compared between our fastest and theirs.
    """
    tests: dict[tuple[str, str], Difference | None] = {}
    for one in played:
        ours = ours_of(one, systems)
        tests |= {(one.name, s.name): _test(one, ours, s) for s in systems if s is not ours}
    known = {place: test for place, test in tests.items() if test is not None}
    corrected = dict(zip(known, holm([test.p_value for test in known.values()]), strict=True))
    rows = [_row(one, systems, s, known, corrected) for one in played for s in systems]
    yield from rows
    ends = [_end(one, systems, [row for row in rows if row["data"] == one.name]) for one in played]
    yield from ends
    if ends:
        yield _sum(ends)


def ours_of(one: Played, systems: Sequence[System]) -> System:
    """Return ours that a user would take: the one with the best AUC over the folds, which know nothing of the test rows."""
    ours = [s for s in systems if s.kind == OURS]
    return max(ours, key=lambda s: one.turns[s.name][0].by_folds or 0.0)


def _test(one: Played, ours: System, peer: System) -> Difference | None:
    first, second = (one.turns[s.name][0].scores for s in (ours, peer))
    if first is None or second is None or min((one.y_test == 1).sum(), (one.y_test == -1).sum()) < 2:
        return None
    return delong_test(one.y_test, first, second, LEVEL)


def _row(
    one: Played,
    systems: Sequence[System],
    system: System,
    tests: Mapping[tuple[str, str], Difference],
    corrected: Mapping[tuple[str, str], float],
) -> Row:
    turns, place = one.turns[system.name], (one.name, system.name)
    turn, test, p = turns[0], tests.get(place), corrected.get(place)
    row: Row = {"data": one.name, "train rows": one.rows, "system": system.name, "kind": system.kind}
    if turn.scores is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # with few positives the interval is what it is
            interval = roc_auc_interval(one.y_test, turn.scores, LEVEL)
        row |= {"AUC": interval.auc, "low": interval.low, "high": interval.high}
    if test is not None and p is not None:
        row |= {"ours less it": test.value, "p, Holm": p, "ours, AUC": _verdict(test.value, p)}
    best = best_linear(one, systems)
    for near in NEAR:
        theirs, mine = _times(one, system, best - near), _fastest(one, systems, OURS, best - near)
        row[f"s to {near:g}"] = _median(theirs)
        row[f"times ours to {near:g}"] = None if mine is None else _ratio(theirs, _times(one, mine, best - near))
    if system.kind != OURS and turn.rungs:
        ours = _fastest(one, systems, OURS, best - NEAR[0])
        row["ours, time"] = _in_time(row[f"times ours to {NEAR[0]:g}"], row[f"s to {NEAR[0]:g}"], ours)
    if turn.rungs:
        budget, seconds_of_last, _, gap = turn.rungs[-1]
        row |= {"budget": budget, "fit s": seconds_of_last, "gap": gap}
    row |= {"value": turn.value, "choice s": turn.choice, "warm-up s": turn.warm, "peak MiB": turn.peak}
    curve = " ".join(f"{seconds:.6g}:{area:.6f}" for _, seconds, area, _ in turn.rungs)
    return row | {"note": _note(turn, system), "curve": curve}


def _note(turn: Turn, system: System) -> str:
    cut = turn.tried is not None and turn.tried < len(system.grid)
    return ", ".join(
        part for part in (f"chose from {turn.tried} of {len(system.grid)}" if cut else "", turn.note) if part
    )


def best_linear(one: Played, systems: Sequence[System]) -> float:
    """Return the best AUC on the test rows that ours or a linear peer ended with; nan if none ended."""
    linear = [s.name for s in systems if s.kind != OTHER]
    return max((turn.rungs[-1][2] for name in linear for turn in one.turns[name] if turn.rungs), default=math.nan)


def first_within(turn: Turn, goal: float) -> float | None:
    """Return the seconds of the first fit from which on the AUC is at least the goal, or None.

    On few test rows a fit that has hardly begun may come near by chance, and leave again.
    """
    seconds = None
    for rung in reversed(turn.rungs):
        if rung[2] < goal:
            break
        seconds = rung[1]
    return seconds


def _times(one: Played, system: System, goal: float) -> list[float | None]:
    return [first_within(turn, goal) for turn in one.turns[system.name]]


def _fastest(one: Played, systems: Sequence[System], kind: str, goal: float) -> System | None:
    """Return who of a kind comes to the goal first, or None if none does."""
    medians = {s: _median(_times(one, s, goal)) for s in systems if s.kind == kind}
    known = {s: seconds for s, seconds in medians.items() if seconds is not None}
    return min(known, key=lambda s: known[s], default=None)


def _median(seconds: Sequence[float | None]) -> float | None:
    known = [s for s in seconds if s is not None]
    return statistics.median(known) if known else None


def _ratio(theirs: Sequence[float | None], ours: Sequence[float | None]) -> float | None:
    """Return the median of the ratios of the repeats."""
    return _median([a / b if a is not None and b is not None else None for a, b in zip(theirs, ours, strict=False)])


def _verdict(difference: float, p: float) -> str:
    if p >= 1 - LEVEL:
        return "ties"
    return "wins" if difference > 0 else "loses"


def _in_time(ratio: float | None, theirs: float | None, ours: System | None) -> str:
    """Say who comes first to within the larger distance; who never comes is last."""
    if ratio is None:
        return "ties" if ours is None and theirs is None else "wins" if theirs is None else "loses"
    if 1 / EVEN <= ratio <= EVEN:
        return "ties"
    return "wins" if ratio > 1 else "loses"


def _end(one: Played, systems: Sequence[System], rows: Sequence[Row]) -> Row:
    """Return what a data set comes to: AUC against every linear peer, time against the fastest of them.

    Whom the limit of time kept from its choice or from its end is no peer to win against; to lose against it counts.
    """
    linear = {row["system"]: row for row in rows if row["kind"] == LINEAR}
    verdicts = [
        r["ours, AUC"] for r in linear.values() if "ours, AUC" in r and not (r["note"] and r["ours, AUC"] != "loses")
    ]
    goal = best_linear(one, systems) - NEAR[0]
    ours, peer = (_fastest(one, systems, kind, goal) for kind in (OURS, LINEAR))
    ratio = None if ours is None or peer is None else _ratio(_times(one, ours, goal), _times(one, peer, goal))
    bar = BAR_OF_MANY if one.rows > MANY_ROWS else BAR_OF_FEW
    return {
        "data": one.name, "train rows": one.rows, "system": "all linear peers", "kind": "summary",
        "wins": verdicts.count("wins"), "ties": verdicts.count("ties"), "loses": verdicts.count("loses"),
        "ours by folds": ours_of(one, systems).name, "our fastest": ours and ours.name, "their fastest": peer and peer.name,
        "times the fastest": ratio, "bar": bar, "within the bar": ours is not None and (ratio is None or ratio <= bar),
    }  # fmt: skip


def _sum(ends: Sequence[Row]) -> Row:
    total: Row = {"data": "all", "system": "all linear peers", "kind": "summary", "data sets": len(ends)}
    total["never significantly below"] = sum(end["loses"] == 0 for end in ends)
    for key in ("wins", "ties", "loses", "within the bar"):
        total[key] = sum(end[key] for end in ends)
    return total

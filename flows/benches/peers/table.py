"""The judge: what the turns of all contestants come to, row by row."""

import math
import statistics
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from aucdist.metrics import roc_auc_interval
from aucdist.metrics.compare import Difference, delong_test, holm
from flows.benches.common import Row
from flows.benches.peers.referee import Turn
from flows.benches.peers.system import LINEAR, OTHER, OURS, System

NEAR = (1e-3, 1e-4)
"""Times are those of the shortest fit whose AUC is at most so far below the best that a linear system reached."""

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

    The first of `systems` is ours that all others are compared with: by DeLong's test on the same test rows, the p-values
    corrected by Holm's method over all comparisons of the run.
    """
    tests = {(one.name, s.name): _test(one, systems[0], s) for one in played for s in systems[1:]}
    known = {place: test for place, test in tests.items() if test is not None}
    corrected = dict(zip(known, holm([test.p_value for test in known.values()]), strict=True))
    rows = [_row(one, systems, s, known, corrected) for one in played for s in systems]
    yield from rows
    ends = [_end(one, systems, [row for row in rows if row["data"] == one.name]) for one in played]
    yield from ends
    if ends:
        yield _sum(ends)


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
        seconds = [first_within(t, best - near) for t in turns]
        row[f"s to {near:g}"] = _median(seconds)
        row[f"times ours to {near:g}"] = _ratio(seconds, [first_within(t, best - near) for t in _ours(one, systems)])
    ratio = row[f"times ours to {NEAR[0]:g}"]
    if system is not systems[0] and turn.rungs:
        row["ours, time"] = _in_time(ratio, row[f"s to {NEAR[0]:g}"], _ours(one, systems)[0], best)
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


def _ours(one: Played, systems: Sequence[System]) -> Sequence[Turn]:
    return one.turns[systems[0].name]


def best_linear(one: Played, systems: Sequence[System]) -> float:
    """Return the best AUC on the test rows that ours or a linear peer reached at any budget; nan if none reached any."""
    linear = [s.name for s in systems if s.kind != OTHER]
    areas = [rung[2] for name in linear for turn in one.turns[name] for rung in turn.rungs]
    return max(areas, default=math.nan)


def first_within(turn: Turn, goal: float) -> float | None:
    """Return the time of the shortest fit whose AUC is at least the goal, or None."""
    return min((rung[1] for rung in turn.rungs if rung[2] >= goal), default=None)


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


def _in_time(ratio: float | None, theirs: float | None, ours: Turn, best: float) -> str:
    """Say who comes first to within the larger distance; who never comes is last."""
    if ratio is None:
        mine = first_within(ours, best - NEAR[0])
        return "ties" if mine is None and theirs is None else "wins" if theirs is None else "loses"
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
    best, near = best_linear(one, systems), NEAR[0]
    times = {name: row[f"s to {near:g}"] for name, row in linear.items() if row[f"s to {near:g}"] is not None}
    bar = BAR_OF_MANY if one.rows > MANY_ROWS else BAR_OF_FEW
    end: Row = {
        "data": one.name, "train rows": one.rows, "system": "all linear peers", "kind": "summary",
        "wins": verdicts.count("wins"), "ties": verdicts.count("ties"), "loses": verdicts.count("loses"), "bar": bar,
    }  # fmt: skip
    fastest = min(times, key=lambda name: times[name], default=None)
    for ours in (s for s in systems if s.kind == OURS):
        mine = [first_within(turn, best - near) for turn in one.turns[ours.name]]
        times_of_it = None
        if fastest is not None:
            peer = [first_within(turn, best - near) for turn in one.turns[fastest]]
            times_of_it = _ratio(mine, peer)
        within = _median(mine) is not None and (times_of_it is None or times_of_it <= bar)
        end |= {f"{ours.name}, times the fastest": times_of_it, f"{ours.name}, within the bar": within}
    return end | {"fastest": fastest}


def _sum(ends: Sequence[Row]) -> Row:
    total: Row = {"data": "all", "system": "all linear peers", "kind": "summary", "data sets": len(ends)}
    total["never significantly below"] = sum(end["loses"] == 0 for end in ends)
    total["wins"], total["ties"], total["loses"] = (sum(end[key] for end in ends) for key in ("wins", "ties", "loses"))
    for key in (key for key in ends[0] if key.endswith(", within the bar")):
        total[key] = sum(end[key] for end in ends)
    return total

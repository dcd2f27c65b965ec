"""The rows of a batch in the bins of a profile, and what has moved."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from aucdist.data.block import Block
from aucdist.drift.profile import RARE, Profile, WatchedColumn
from aucdist.drift.statistics import kolmogorov_smirnov, more_than, psi, total_variation
from aucdist.kernels.row_statistics import count_numbers
from aucdist.maps.bins import Columns
from aucdist.metrics.compare import holm

ALPHA = 0.001
"""Of all tests of a batch together, by Holm: one false alarm in about a thousand batches."""
LEAST = {
    "moved": 0.1,
    "score": 0.1,
    "class score": 0.1,
    "missing": 0.02,
    "unknown": 0.01,
    "outside": 0.01,
    "rare": 0.05,
}
"""What a difference must be, besides significant, to raise an alarm: a PSI, or a share of the rows above that of the training."""


@dataclass(frozen=True, eq=False)
class BatchCounts:
    """Rows of a batch in the cells of a profile; those of several parts merge by ``+``.

    Attributes
    ----------
    cells : ndarray of int64
        Rows of each cell, column by column.
    outside : ndarray of shape (n_columns,), int64
        Rows outside of the range of the training rows.
    score : ndarray of int64
        Rows of each bin of the score; of several classes of the score of each, one class after the other.
    rare : int
        Rows with a value outside of the training range, or in a cell of fewer than `RARE` training rows.
    """

    rows: int
    cells: np.ndarray
    outside: np.ndarray
    score: np.ndarray
    rare: int

    def __add__(self, other: "BatchCounts") -> "BatchCounts":
        """Return the counts of the rows of both."""
        return BatchCounts(
            self.rows + other.rows, self.cells + other.cells, self.outside + other.outside, self.score + other.score,
            self.rare + other.rare,
        )  # fmt: skip

    @classmethod
    def of(cls, profile: Profile, block: Block, scores: np.ndarray) -> "BatchCounts":
        """Return the counts of some rows.

        Parameters
        ----------
        block : Block
            Rows encoded as the training rows.
        scores : ndarray of shape (n_samples,), or of several classes (n_samples, n_classes)
        """
        values, n = Columns(block), block.n_samples
        counts, outside, rare = [], np.zeros(len(profile.columns), dtype=np.int64), np.zeros(n, dtype=bool)
        for k, column in enumerate(profile.columns):
            known_rarely, found = np.array(column.counts) < RARE, np.zeros(column.n_cells, dtype=np.int64)
            if column.kind == "numbers":
                x, edges = values.column(column.at[0]), np.array(column.edges, dtype=np.float64)
                outside[k] = count_numbers(x, edges, column.low, column.high, known_rarely, found, rare)
            else:
                cells = column.cells(values, n)
                found += np.bincount(cells, minlength=column.n_cells)
                rare |= known_rarely[cells]
            counts.append(found)
        bins = [
            np.bincount(bins.cells(column), minlength=len(bins.counts))
            for bins, column in zip(profile.scores.values(), np.atleast_2d(scores.T), strict=True)
        ]
        cells = np.concatenate([*counts, np.zeros(0, dtype=np.int64)])
        return cls(n, cells, outside, np.concatenate(bins), int(np.count_nonzero(rare)))

    @classmethod
    def none(cls, profile: Profile) -> "BatchCounts":
        """Return the counts of no rows."""
        n_cells = sum(column.n_cells for column in profile.columns)
        n_bins = sum(len(bins.counts) for bins in profile.scores.values())
        nothing = [np.zeros(n, dtype=np.int64) for n in (n_cells, len(profile.columns), n_bins)]
        return cls(0, nothing[0], nothing[1], nothing[2], 0)


def moved(profile: Profile, batch: BatchCounts) -> dict[str, Any]:
    """Return how far a batch is from the training rows, and which differences raise an alarm.

    Of each column: the PSI; the distance of Kolmogorov and Smirnov between the distribution functions (categories: the total
    variation) with its p-value; the shares of missing values and of unknown categories, and of values outside of the training
    range, each with the p-value for being no higher than in the training. Of the score the PSI and the distance. The p-values of
    a batch are corrected together by Holm. An alarm needs ``p_holm < ALPHA`` and the size in `LEAST`.

    Returns
    -------
    dict
        ``rows``; ``columns``, sorted by their PSI; ``score``, of several classes the one that has moved most, with its ``class``,
        and ``scores`` of all; ``rare``; ``alarms``, each with ``what``, ``column``, ``value`` and
        ``p``. In types of JSON.
    """
    tests: list[dict[str, Any]] = []
    columns, place = [], 0
    for k, column in enumerate(profile.columns):
        counts = batch.cells[place : place + column.n_cells]
        place += column.n_cells
        columns.append(_column(profile, column, counts, int(batch.outside[k]), batch.rows, tests))
    scores = _scores(profile, batch)
    for one in scores:
        what = "score" if one["class"] is None else "class score"
        tests.append({"what": what, "column": one["class"], "value": one["psi"], "p": one["p"]})
    rare = _rare(profile, batch)
    tests.append({"what": "rare", "column": None, "value": rare["share"] - rare["expected"], "p": rare["p"]})
    for test, corrected in zip(tests, holm([test["p"] for test in tests]), strict=True):
        test["p"] = corrected
    alarms = [test for test in tests if batch.rows and test["p"] < ALPHA and test["value"] >= LEAST[test["what"]]]
    columns.sort(key=lambda one: -one["psi"])
    score = max(scores, key=lambda one: one["psi"])
    found = {"rows": batch.rows, "columns": columns, "score": score, "rare": rare, "alarms": alarms}
    if score["class"] is None:
        del score["class"]
        return found
    return found | {"scores": sorted(scores, key=lambda one: -one["psi"])}


def _scores(profile: Profile, batch: BatchCounts) -> list[dict[str, Any]]:
    """Return PSI and distance of the score, or of the score of each class."""
    found, place = [], 0
    for name, bins in profile.scores.items():
        reference, counts = np.array(bins.counts), batch.score[place : place + len(bins.counts)]
        place += len(bins.counts)
        distance, p = kolmogorov_smirnov(reference, counts)
        found.append({"class": name, "psi": psi(reference, counts), "distance": distance, "p": p, "rows": bins.rows})
    return found


def _column(
    profile: Profile, column: WatchedColumn, counts: np.ndarray, outside: int, rows: int, tests: list[dict[str, Any]]
) -> dict[str, Any]:
    reference = np.array(column.counts)
    distance, p = (kolmogorov_smirnov if column.kind == "numbers" else total_variation)(reference, counts)
    index = psi(reference, counts)
    none, before = int(counts[0]), int(reference[0])
    what = "missing" if column.kind == "numbers" else "unknown"
    tests.append({"what": "moved", "column": column.name, "value": index, "p": p})
    share, share_before = _share(none, rows), _share(before, profile.rows)
    p_none = more_than(none, rows, before, profile.rows)
    tests.append({"what": what, "column": column.name, "value": share - share_before, "p": p_none})
    beyond = _share(outside, rows)
    if column.kind == "numbers":
        # Of as many new rows as there were, two are expected outside.
        tests.append(
            {"what": "outside", "column": column.name, "value": beyond, "p": more_than(outside, rows, 2, profile.rows)}
        )
    return {
        "name": column.name, "kind": column.kind, "psi": index, "distance": distance, "p": p, what: share,
        f"{what}_before": share_before, "outside": beyond,
    }  # fmt: skip


def _rare(profile: Profile, batch: BatchCounts) -> dict[str, Any]:
    """Return the share of rows that the training hardly knew; what is expected of it is an upper bound."""
    before = sum(n for column in profile.columns for n in column.counts if n < RARE)
    before = min(before + 2 * len(profile.columns), profile.rows)
    return {
        "share": _share(batch.rare, batch.rows),
        "expected": _share(before, profile.rows),
        "p": more_than(batch.rare, batch.rows, before, profile.rows),
    }


def _share(count: int, rows: int) -> float:
    return count / rows if rows else 0.0


def total(parts: Sequence[BatchCounts], profile: Profile) -> BatchCounts:
    """Return the counts of all parts."""
    found = BatchCounts.none(profile)
    for part in parts:
        found = found + part
    return found

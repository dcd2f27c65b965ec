"""Find what makes a test too optimistic: columns that reveal the label, order, time, and test rows that are also training rows.

There is also a check for columns that have the same effect. The checks use the training rows, or a sample of them. They return
warnings and change nothing.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy import ndarray

from aucdist.data.block import Block, as_dense
from aucdist.data.dataset import Schema
from aucdist.data.own_files import REPAIR, parse_npy
from aucdist.drift.columns import (
    IDENTIFIER,
    MIN_CLASS_ROWS,
    NEARLY_UNIQUE,
    SUSPICIOUS_AUC,
    auc_and_revealing_value,
    auc_of_column,
    missing_value_warning,
)
from aucdist.engine.blocks import Blocks, Summary, gather_sample
from aucdist.errors import InputError, counted
from aucdist.kernels.random import hash_ids
from aucdist.parameters import frozen
from aucdist.selection import digests_of

MAX_ROWS = 20_000
"""The largest number of rows that are examined. If there are more, half are taken from each class."""
SEED = 2**62 + 1
"""A seed that no split uses. Training rows have the larger random numbers of their split, so a small share would otherwise be
empty."""
MAX_FEATURES = 2000
"""Features are not examined if there are more than this."""
MANY_KNOWN = 0.01
"""A warning is given if more than this share of the test rows equals training rows. The section on the data counts them all."""
MAX_LATER_SHARE = 0.05
"""A warning is given if more than this share of the training rows is later than half of the test rows."""
REPORTED_AUC = SUSPICIOUS_AUC - 0.002
"""The AUC from which a column is reported. It is a little lower than for `init`, which looks at all rows, because the AUC of
training rows may be lower."""
MAX_NAMED = 5
COLLINEAR = 0.99
"""Columns are named as pairs if their absolute correlation is above this."""
MAX_PAIRS = 3
MAX_PRODUCTS = 2 * 10**9
"""The number of products of two values up to which all rows of a sample are used for correlations, about 0.1 CPU seconds."""
MAX_KEPT = 2**16
"""The number of digests that are kept, which take 512 KiB. With fewer different rows, all digests are kept; with more,
those with the smallest numbers."""


Warned = tuple[str, str]
"""A warning: a key, which stays the same in later versions, and a text of one or two sentences. Settings in backticks, such as
``data.test=...``, are for ``--set``: `aucdist.report.text.warning_texts` makes commands of them."""


def without(columns: Sequence[str]) -> str:
    """Return the setting that leaves columns out."""
    return f"`data.source.drop={json.dumps(columns, ensure_ascii=False)}`"


class Sample(NamedTuple):
    """Some rows of a data set, in the order of their ids.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_features), float64
        The values of the features.
    positive : ndarray of shape (n_rows,), bool
        Whether each row is positive.
    row_id : ndarray of shape (n_rows,), int64
        The ids of the rows, ascending.
    negatives_for_one : float
        The number of negative rows of the data set for which each negative row of the sample stands.
    """

    values: ndarray
    positive: ndarray
    row_id: ndarray
    negatives_for_one: float = 1.0


def sample_of(blocks: Blocks) -> Sample:
    """Return at most `MAX_ROWS` rows, chosen by their ids, so that they do not depend on the blocks."""
    wide = blocks.n_features > MAX_FEATURES
    rates = [min(1.0, MAX_ROWS / 2 / max(1, n)) for n in (blocks.n_neg, blocks.n_pos)]

    def sampled(block: Block) -> Summary:
        """Return the rows whose hashed ids are small enough, with their first features."""
        share = np.where(block.y == 1, rates[1], rates[0])
        rows = block.take(hash_ids(block.row_id, SEED) / 2.0**64 <= share)
        return [rows.with_X(rows.X[:, : 0 if wide else None])]

    rows = gather_sample(blocks, sampled)
    return Sample(as_dense(rows.X).astype(np.float64, copy=False), rows.y == 1, rows.row_id, rates[1] / rates[0])


class ColumnRanking(NamedTuple):
    """The ranking of the rows by a single column.

    Attributes
    ----------
    auc : float
        The AUC of the column.
    value : str
        A description of a value with which nearly all rows are positive. Empty if there is none.
    rows, positives : int
        The numbers of rows and of positive rows with this value in the sample.
    """

    auc: float
    value: str = ""
    rows: int = 0
    positives: int = 0


def rank_by_each_column(sample: Sample, schema: Schema) -> dict[str, ColumnRanking]:
    """Return the ranking by each single column: numbers by their values, categories by their share of positive rows."""
    if not sample.values.shape[1]:
        return {}
    alone_by_column: dict[str, ColumnRanking] = {}
    for column, features in schema.by_column().items():
        if column in schema.categories:
            flags = sample.values[:, list(features)]
            code = np.where((flags > flags.min(axis=0)).any(axis=1), np.argmax(flags, axis=1), flags.shape[1])
            alone_by_column[column] = _column_ranking(code, sample, [*features.values(), "another value"])
        else:
            each = [_column_ranking(sample.values[:, j], sample, None) for j in features]
            alone_by_column[column] = max(each, key=lambda separation: separation.auc)
    return alone_by_column


def _column_ranking(values: ndarray, sample: Sample, categories: list[str] | None) -> ColumnRanking:
    distinct, at = np.unique(values, return_inverse=True)
    rows = np.bincount(at, minlength=len(distinct))
    positives = np.bincount(at, sample.positive, len(distinct)).astype(np.int64)
    auc, first = auc_and_revealing_value(
        distinct if categories is None else None, rows, positives, sample.negatives_for_one
    )
    if first is None:
        return ColumnRanking(auc)
    if categories is not None:
        value = f"the value {categories[int(distinct[first])]}"
    elif np.isnan(distinct[first]):
        value = "no value"
    else:  # the numbers may be scaled
        value = {0: "its smallest value", len(distinct) - 1: "its largest value"}.get(first, "one of its values")
    return ColumnRanking(auc, value, int(rows[first]), int(positives[first]))


def column_warnings(sample: Sample, schema: Schema) -> list[Warned]:
    """Return warnings about suspicious columns of the training rows.

    Parameters
    ----------
    sample : Sample
        A sample of the training rows.
    schema : Schema
        The names of features and classes.
    """
    return [*_revealing_columns(sample, schema), *islice(_doubtful_columns(sample, schema), MAX_NAMED), *_order(sample)]


def _revealing_columns(sample: Sample, schema: Schema) -> Iterator[Warned]:
    columns = rank_by_each_column(sample, schema)
    named = sorted(
        (name for name, column in columns.items() if column.auc >= REPORTED_AUC or column.value),
        key=lambda name: (-columns[name].auc, name),
    )
    for name in named[:MAX_NAMED]:
        column = columns[name]
        reason = (
            f": of {column.rows:,} rows with {column.value}, {column.positives:,} are positive. If that becomes known"
            if column.auc < REPORTED_AUC
            else f" alone has an AUC of {column.auc:.4f}: if it becomes known"
            if column.auc < 1.0
            else " alone tells the classes apart without an error: if it becomes known"
        )
        yield (
            "column-reveals-label",
            f"Column {name!r}{reason} only after the label, leave it out with {without([name])}.",
        )
    if (more := len(named) - MAX_NAMED) > 0:
        yield (
            "column-reveals-label",
            f"{counted(more, 'more column')} give{'s' * (more == 1)} the label away in one of these ways.",
        )


def _doubtful_columns(sample: Sample, schema: Schema) -> Iterator[Warned]:
    for j, name in enumerate(schema.feature_names[: sample.values.shape[1]]):
        values = sample.values[:, j]
        distinct = np.unique(values[~np.isnan(values)])
        if len(values) <= MIN_CLASS_ROWS or len(distinct) < 3 or name.removesuffix(".days") in schema.dates:
            continue  # a split by time removes the date, and `date_warnings` reports other splits
        # It is 0 if the values rise, or fall, from each row to the next, 1 if some neighbours are equal, and 2 if they rise and
        # fall.
        steps = np.ptp(np.sign(np.diff(values)))
        if len(distinct) >= NEARLY_UNIQUE * len(values) and (IDENTIFIER.fullmatch(name) or steps == 0.0):
            yield (
                "column-numbers-rows",
                f"Column {name!r} differs in {'nearly ' * (len(distinct) < len(values))}every row and numbers the rows: leave it "
                f"out with {without([name])}, because new rows have other numbers.",
            )
        elif steps <= 1.0:
            yield (
                "rows-in-order-of-column",
                f"The rows are in the order of column {name!r}. If it is a time, new rows come later, and a test on random rows "
                f"may be too good: test on the last rows with `data.test={{time: {json.dumps(name)}, last: 0.2}}`.",
            )
        if said := missing_value_warning(distinct):
            yield "number-for-missing", f"Column {name!r} {said}."


def _order(sample: Sample) -> Iterator[Warned]:
    position = auc_of_column(
        sample.row_id.astype(np.float64), np.ones_like(sample.row_id), sample.positive.astype(np.int64)
    )
    if position >= SUSPICIOUS_AUC:
        yield (
            "rows-in-order-of-classes",
            f"The rows are in the order of their classes, so the row number alone has an AUC of {position:.4f}. Check that no "
            "feature depends on that order, as the date of loading, a batch or a device may: it would give the label away.",
        )


def collinear(sample: Sample, schema: Schema) -> Iterator[Warned]:
    """Warn of pairs of columns with equal or nearly collinear features. A missing value counts as 0.

    Features that differ from the median in fewer than `MIN_CLASS_ROWS` rows are left out, because few rows agree by chance.
    """
    n_rows, n_features = sample.values.shape
    rows = np.nan_to_num(sample.values[:: 1 + n_rows * n_features**2 // MAX_PRODUCTS])
    varied = np.flatnonzero(np.count_nonzero(rows != np.median(rows, axis=0), axis=0) >= MIN_CLASS_ROWS)
    column_of = {j: name for name, features in schema.by_column().items() for j in features}
    rows = rows[:, varied] / np.abs(rows[:, varied]).max(axis=0)  # the squares of large values may not be finite
    rows -= rows.mean(axis=0)
    rows /= np.linalg.norm(rows, axis=0)
    related = varied[np.argwhere(np.triu(np.abs(rows.T @ rows) > COLLINEAR, 1))].tolist()
    pairs = sorted({(column_of[i], column_of[j]) for i, j in related if column_of[i] != column_of[j]})
    if pairs:
        shown = ", columns ".join(f"{first!r} and {second!r}" for first, second in pairs[:MAX_PAIRS])
        yield (
            "collinear-columns",
            f"Columns {shown}{f', and others ({len(pairs)} pairs)' * (len(pairs) > MAX_PAIRS)} have features that are equal or "
            f"nearly so (absolute correlation above {COLLINEAR}). Weights, shapes and reasons divide one effect between them: to "
            f"read these, leave one of each pair out with {without(sorted({second for _, second in pairs[:MAX_PAIRS]}))}.",
        )


def date_warnings(train: Sample, test: Sample, schema: Schema) -> Iterator[Warned]:
    """Warn of columns of dates in which training rows are later than test rows."""
    for name, parts in schema.dates.items():
        part = next((part for part in ("days", "year") if part in parts), None)
        if part is None:
            continue
        j = schema.feature_names.index(f"{name}.{part}")
        if j >= train.values.shape[1] or np.isnan(test.values[:, j]).all():
            continue
        later = float(np.mean(train.values[:, j] > np.nanmedian(test.values[:, j])))
        if later > MAX_LATER_SHARE:
            yield (
                "dates-split-at-random",
                f"By column {name!r}, {later:.0%} of the training rows are later than half of the test rows, but a model in use "
                f"is trained on earlier rows only. Test on the last rows with `data.test={{time: {json.dumps(name)}, last: "
                f"0.2}}`, and choose settings with `folds={{time: {json.dumps(f'{name}.days')}}}; grid={{lam: [1e-2, 1e-3, "
                "1e-4]}`.",
            )


def leak_warnings(train: Blocks, test: Blocks | None, schema: Schema, *, known: int, checked: int) -> Iterator[Warned]:
    """Warn of everything that may make a test too optimistic, and of collinear columns.

    Parameters
    ----------
    train : Blocks
        The training rows.
    test : Blocks or None
        The test rows, if there are any.
    schema : Schema
        The names of features and classes.
    known, checked : int
        The number of test rows that are also training rows, and the number of test rows that could be looked up.

    Yields
    ------
    Warned
    """
    sample = sample_of(train)
    yield from column_warnings(sample, schema)
    if test is not None and schema.dates:
        yield from date_warnings(sample, sample_of(test), schema)
    if known > MANY_KNOWN * checked:
        yield (
            "test-rows-in-training",
            f"{100 * known / checked:.3g} % of the test rows that were compared with the training rows have the same features as "
            f"a training row ({known:,} of {checked:,}). If they are copies of one case, choose settings with "
            "`folds={duplicates: together}; grid={lam: [1e-2, 1e-3, 1e-4]}`, and test on other cases.",
        )
    yield from collinear(sample, schema)


# ---- rows that are also training rows ---------------------------------------------------------------------------------


@frozen
class RowDigests:
    """The digests of rows, or of a sample of them. Digests of several blocks can be merged by ``+``, in any order.

    A digest is a pseudo-random number that depends only on the features of a row. The smallest `MAX_KEPT` digests are kept, and
    the range that they cover. If the digest of another row lies in this range, the row can be looked up: it was a training row if
    its digest is kept, and otherwise it was not. The rows that can be looked up are a random share of all rows.

    Attributes
    ----------
    kept : ndarray of shape (n_kept,), uint64
        The distinct digests, ascending.
    """

    kept: ndarray

    def __add__(self, other: "RowDigests") -> "RowDigests":
        """Return the digests of the rows of both."""
        return RowDigests(np.union1d(self.kept, other.kept)[:MAX_KEPT])

    def look_up(self, digests: ndarray) -> tuple[int, int]:
        """Return the number of digests that can be looked up, and the number of these that are stored."""
        if not len(self.kept):
            return 0, 0
        if len(self.kept) == MAX_KEPT:
            digests = digests[digests <= self.kept[-1]]
        known = np.isin(digests, self.kept)
        return len(digests), int(known.sum())

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> "RowDigests":
        """Return the digests in a ``.npy`` file.

        Raises
        ------
        InputError
            If it is damaged.
        """
        kept = parse_npy(data, np.uint64, None, where)
        if len(kept) > MAX_KEPT or not (kept[:-1] < kept[1:]).all():
            raise InputError(f"{where} is damaged: its numbers do not ascend, or are too many. {REPAIR}")
        return cls(kept)


def row_digests(block: Block) -> RowDigests:
    """Return the digests of the rows of a block."""
    return RowDigests(smallest(digests_of(block), MAX_KEPT))


def smallest(numbers: ndarray, n: int) -> ndarray:
    """Return the `n` smallest distinct numbers, ascending. If there are fewer, return all of them."""
    if len(numbers) > 2 * n + 1:
        least = np.unique(np.partition(numbers, 2 * n)[: 2 * n + 1])  # most rows occur once
        if len(least) >= n:
            return least[:n]
    return np.unique(numbers)[:n]


def count_known(block: Block, known: RowDigests) -> ndarray:
    """Return the result of `RowDigests.look_up` for the rows of a block."""
    return np.array(known.look_up(digests_of(block)))

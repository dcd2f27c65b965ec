"""Statistics of the columns of a sharded data set, which merge over its shards: a sharded data set states them beside the names.

They are the ranges that ``aucdist data verify`` holds the values of each shard against.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from aucdist.data.block import Block, n_rows
from aucdist.data.ranges import ranges_of
from aucdist.errors import InputError
from aucdist.kernels.rows import CsrRows

COLUMNS = ("count", "mean", "low", "high")
CHUNK = 4096  # rows that are turned into float64 at a time


@dataclass(frozen=True, eq=False)
class ColumnStatistics:
    """Statistics of the values of each column that are not missing, which merge by ``+``.

    `count`, of shape (n_features,), int64: values that are not missing; zeros that CSR rows do not store are values.
    `mean`, `low` and `high`, of shape (n_features,), float64: the mean, the least and the greatest value; 0, inf and
        -inf where there is no value.
    """

    count: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def __add__(self, other: "ColumnStatistics") -> "ColumnStatistics":
        count = self.count + other.count
        share = other.count / np.maximum(count, 1)
        return ColumnStatistics(
            count,
            self.mean * (1.0 - share) + other.mean * share,  # no difference of the means, which may overflow
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
        )

    @classmethod
    def of(cls, block: Block) -> "ColumnStatistics":
        """Return the statistics of a block."""
        rows, ranges = block.rows, ranges_of(block.rows)
        d, count, mean = block.n_features, np.zeros(block.n_features, dtype=np.int64), np.zeros(block.n_features)
        if isinstance(rows, CsrRows):
            there = ~np.isnan(rows.values)
            x, column = rows.values[there].astype(np.float64), rows.indices[there]
            count = n_rows(rows) - np.bincount(rows.indices, minlength=d) + np.bincount(column, minlength=d)
            mean = np.bincount(column, x / np.maximum(count, 1)[column], minlength=d).astype(
                np.float64
            )  # int64 without values
            return cls(count, mean, ranges.low, ranges.high)
        found = cls(count, mean, ranges.low, ranges.high)
        for start in range(0, block.n_samples, CHUNK):
            x = rows.values[start : start + CHUNK].astype(np.float64)
            there = ~np.isnan(x)
            count = there.sum(axis=0)
            # Each value is divided before they are added, so that the largest floats have a mean.
            mean = (np.where(there, x, 0.0) / np.maximum(count, 1)).sum(axis=0)
            found += cls(count, mean, ranges.low, ranges.high)
        return found

    def include(self, other: "ColumnStatistics") -> bool:
        """Tell whether all values of `other`, which are some of these, lie within the ranges."""
        some = other.count > 0
        return bool(
            (other.count <= self.count).all()
            and (other.low >= self.low)[some].all()
            and (other.high <= self.high)[some].all()
        )


def to_parquet(names: Sequence[str] | None, statistics: ColumnStatistics | None) -> bytes:
    """Return a Parquet file with a row for each feature: its name and its statistics, as far as they are given."""
    columns: dict[str, pa.Array] = {} if names is None else {"name": pa.array(names, pa.string())}
    if statistics is not None:
        columns |= {name: pa.array(getattr(statistics, name)) for name in COLUMNS}
    out = io.BytesIO()
    # Compressed well: most features of a wide sparse shard do not occur in it.
    pq.write_table(pa.table(columns), out, compression="zstd")
    return out.getvalue()


def from_table(table: pa.Table) -> ColumnStatistics | None:
    """Return the statistics in such a file; None where it has none.

    Raises InputError if they are not numbers.
    """
    if not set(COLUMNS) <= set(table.column_names):
        return None
    count, *rest = (table[name] for name in COLUMNS)
    if count.type != pa.int64() or any(column.type != pa.float64() or column.null_count for column in rest):
        raise InputError("the statistics of the features are damaged")
    return ColumnStatistics(np.asarray(count), *(np.asarray(column) for column in rest))

"""Statistics of the features within either class: they merge, and lie in a file with a row for each feature."""

import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from aucdist.data.block import Block
from aucdist.data.preprocess import Moments, moments

COLUMNS = ("mean", "variance", "low", "high")


@dataclass(frozen=True, eq=False)
class Statistics:
    """Statistics of the features within either class, which merge by ``+``."""

    negative: Moments
    positive: Moments

    def __add__(self, other: "Statistics") -> "Statistics":
        return Statistics(self.negative + other.negative, self.positive + other.positive)

    @classmethod
    def of(cls, block: Block) -> "Statistics":
        """Return the statistics of a block."""
        return cls(moments(block.take(block.y == -1).rows), moments(block.take(block.y == 1).rows))


def to_parquet(names: Sequence[str] | None, statistics: Statistics | None) -> bytes:
    """Return a file with a row for each feature: its name, and its statistics within either class.

    Parameters
    ----------
    names : sequence of str or None
    statistics : Statistics or None
        What is None is left out.
    """
    columns: dict[str, pa.Array] = {} if names is None else {"name": pa.array(names, pa.string())}
    for kind in ("negative", "positive") if statistics else ():
        part: Moments = getattr(statistics, kind)
        variance = part.m2 / max(1, part.count)
        for name, values in zip(COLUMNS, (part.mean, variance, part.low, part.high), strict=True):
            columns[f"{kind}_{name}"] = pa.array(values)
    out = io.BytesIO()
    # Compressed well: most features of a wide sparse shard do not occur in it.
    pq.write_table(pa.table(columns), out, compression="zstd")
    return out.getvalue()


def from_table(table: pa.Table, n_neg: int, n_pos: int) -> Statistics | None:
    """Return the statistics in such a file, which are those of so many rows of either class; None where it has none."""
    if f"negative_{COLUMNS[0]}" not in table.column_names:
        return None

    def part(kind: str, count: int) -> Moments:
        mean, variance, low, high = (np.asarray(table[f"{kind}_{name}"]) for name in COLUMNS)
        return Moments(count, mean, variance * count, low, high)

    return Statistics(part("negative", n_neg), part("positive", n_pos))

"""Simulate rows, for benchmarks and for data sets larger than the memory."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from aucdist.data.block import Block
from aucdist.data.dataset import Schema
from aucdist.data.formats.base import PART_BYTES
from aucdist.data.shards.block_file import Form
from aucdist.data.shards.manifest import Manifest, Shard, commit, write_shard
from aucdist.data.sources import Dtype


def simulate(
    n_samples: int, n_features: int, positive_share: float, *, seed: int, shift: float = 1.2, index: int = 0
) -> Block:
    """Draw rows from two Gaussian distributions with identity covariance.

    Parameters
    ----------
    positive_share : float
        The probability that a row is positive, between 0 and 1.
    seed : int
        The seed determines the direction between the class means. The rows also depend on `index`.
    shift : float, default=1.2
        Distance between the class means; the best AUC is the normal distribution function at ``shift / sqrt(2)``.
    index : int, default=0
        The index of the block in the data set. It changes the rows and their ids, but not their distribution.

    Returns
    -------
    Block
        Dense, float64.

    """
    direction = np.random.default_rng(seed).normal(size=n_features)
    direction *= shift / np.linalg.norm(direction)
    r = np.random.default_rng((seed, index))
    positive = r.random(n_samples) < positive_share
    X = r.normal(size=(n_samples, n_features)) + positive[:, None] * direction
    ids = np.arange(index * n_samples, (index + 1) * n_samples)
    return Block.of(X, np.where(positive, 1, -1), row_id=ids, index=index)


@dataclass(frozen=True)
class Simulation:
    """A sharded data set of simulated rows, written shard by shard, so that it may be larger than any memory.

    Attributes
    ----------
    positive_share : float
        As in `simulate`.
    rows_per_shard : int or None
        The number of rows of each shard; the last one may have fewer. None means the number that takes 64 MiB.
    dtype : str
        ``float32`` or ``float64``.
    shift : float
        As in `simulate`.
    """

    rows: int
    features: int
    positive_share: float
    rows_per_shard: int | None = None
    dtype: Dtype = "float32"
    seed: int = 0
    shift: float = 1.2

    @property
    def per_shard(self) -> int:
        """Rows of each shard but the last."""
        return self.rows_per_shard or max(1, PART_BYTES // (self.features * np.dtype(self.dtype).itemsize))

    @property
    def n_shards(self) -> int:
        """Number of shards."""
        return math.ceil(self.rows / self.per_shard)

    def block(self, index: int) -> Block:
        """Draw the rows of one shard."""
        first = index * self.per_shard
        n = min(self.per_shard, self.rows - first)
        block = simulate(n, self.features, self.positive_share, seed=self.seed, shift=self.shift, index=index)
        return replace(block.with_X(block.X.astype(self.dtype)), row_id=first + np.arange(n))

    def write(self, url: str, index: int) -> Shard:
        """Draw the rows of one shard, and write it into the folder."""
        return write_shard(self.block(index), url, index)

    def commit(self, url: str, shards: Sequence[Shard]) -> Manifest:
        """Write the manifest of all shards, which makes them the data set in the folder."""
        schema = Schema(tuple(f"x{i}" for i in range(1, self.features + 1)), "y", ("1",), ("-1",), {})
        form = Form("dense", self.dtype, self.features, False)
        return commit(url, schema, form, shards, origin={"simulated": asdict(self)})

"""Rows that no process holds: they are read block by block where they are needed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from aucdist.data.block import Block
from aucdist.data.dataset import Schema
from aucdist.data.preprocess import Preprocessor
from aucdist.data.shards.block_reader import ParallelMap
from aucdist.data.shards.manifest import Manifest
from aucdist.data.shards.shard import read_shard
from aucdist.engine.blocks import Blocks, Loader, LocalBlocks, load
from flows.compute.cache import choose_cache, threads_that_fit, worker_memory
from flows.compute.workers import Workers
from flows.config.data import CacheMode
from flows.progress.console import RunObserver
from flows.rows.encoding import Encoding


@dataclass(frozen=True, eq=False)
class LazyRows:
    """Rows that are read block by block; see `flows.rows.base.Rows`.

    Attributes
    ----------
    loader : callable
        ``loader(item) -> Block``; it is sent to the workers.
    items : sequence
        What the loader takes for each block: its number, or what is kept of it there.
    n_samples, n_features, n_pos : int
    n_bytes, largest_block : int
        Bytes that all blocks take in memory, and the largest of them.
    """

    loader: Loader
    items: Sequence[Any]
    n_samples: int
    n_features: int
    n_pos: int
    n_bytes: int
    largest_block: int

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return len(self.items)

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks, read in this process."""
        for item in self.items:
            yield load(self.loader, item)

    def without_copies(self) -> "LazyRows":
        """Return the same rows, which are read from where they are stored: the copies of what was parsed go."""
        return replace(self, items=range(self.n_blocks))

    def row_ids_and_labels(self, parallel_map: ParallelMap) -> tuple[np.ndarray, np.ndarray]:
        """Return id and label of every row, block by block; the rows are read once."""
        parts = parallel_map(partial(_row_ids_and_labels, self.loader), self.items)
        row_id, y = (np.concatenate(column) for column in zip(*parts, strict=True))
        return row_id, y

    def fit(self, encoding: Encoding, parallel_map: ParallelMap) -> Preprocessor:
        """Return what an encoding learns from the rows, by reading them on the workers."""
        return encoding.fit(self.items, load=self.loader, each=parallel_map)

    def transform(self, preprocessor: Preprocessor) -> "LazyRows":
        """Return the same rows with features that are encoded each time they are read."""
        return replace(self, loader=EncodedLoader(self.loader, preprocessor))

    def for_workers(self, schema: Schema, workers: Workers, folder: str) -> "LazyRows":
        """Return these rows: all workers can read them."""
        return self

    def partition(self, part: str, schema: Schema, cache: CacheMode, workers: Workers, observer: RunObserver) -> Blocks:
        """Return the rows as blocks of the engine; see `flows.rows.base.Rows`."""
        stream, why = self.choose_cache(cache, workers)
        observer.note(f"the {part} rows {why}")
        blocks = self.load(workers, stream=stream)
        read_anew = sum(not (info.lasting or info.copied) for info in blocks.infos)
        if read_anew:
            observer.note(
                f"{read_anew} of {blocks.n_blocks} blocks of the {part} rows have no copy on the local disk, and are decoded "
                "for each pass: copies leave a fifth of the disk free, unless AUCDIST_SCRATCH_BYTES says how many bytes they may "
                "take"
            )
        return blocks

    def choose_cache(self, cache: CacheMode, workers: Workers) -> tuple[bool, str]:
        """Decide whether the blocks are streamed, and say why; see `flows.compute.cache.choose_cache`."""
        return choose_cache(cache, self.n_bytes, self.largest_block, worker_memory(workers.client))

    def load(self, workers: Workers, *, stream: bool = False) -> Blocks:
        """Load the blocks on the workers, or with `stream` have them read for each step."""
        if workers.client is None:
            n_jobs = threads_that_fit(workers.n_jobs, self.largest_block) if stream else workers.n_jobs
            return LocalBlocks.load(self.loader, self.n_blocks, stream=stream, n_jobs=n_jobs, items=self.items)
        from aucdist.engine.dask import DaskBlocks

        return DaskBlocks.load(workers.client, self.loader, self.n_blocks, stream=stream, items=self.items)


@dataclass(frozen=True, eq=False)
class EncodedLoader:
    """Reads blocks and encodes their features: ``loader(item) -> Block``."""

    loader: Loader
    preprocessor: Preprocessor

    def __call__(self, item: Any) -> Block:
        """Read and encode a block."""
        return self.preprocessor.transform(self.loader(item))


def sharded_rows(manifest: Manifest) -> LazyRows:
    """Return the rows of a sharded data set; each shard is a block."""
    sizes = [shard.memory for shard in manifest.shards]
    return LazyRows(
        partial(read_shard, manifest.url), range(len(sizes)), manifest.n_samples, manifest.n_features, manifest.n_pos,
        sum(sizes), max(sizes),
    )  # fmt: skip


def _row_ids_and_labels(loader: Loader, item: Any) -> tuple[np.ndarray, np.ndarray]:
    block = loader(item)
    return block.row_id, block.y

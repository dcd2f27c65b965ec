"""Files that the workers read themselves, part by part: no row goes through this process, and nothing is written before."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from aucdist.data.formats.parts import split_source
from aucdist.data.shards.block_reader import BlockReader, ParallelMap, default_parts, open_parts
from aucdist.data.sources.source import Source
from aucdist.data.storage.files import shown
from aucdist.engine.blocks import Loader
from aucdist.errors import InputError
from flows.compute.stages import StageRunner
from flows.compute.workers import Workers
from flows.config.data import DataConfig, source_of
from flows.progress.console import RunObserver
from flows.rows.base import TrainTestRows
from flows.rows.lazy import LazyRows
from flows.rows.lazy_split import split_and_encode


@dataclass(frozen=True)
class FilePartSource:
    """Files that have been divided into parts, but not read; see `flows.rows.base.RowSource`.

    Attributes
    ----------
    name : str
    source : Source
    n_blocks : int
        Number of parts.
    config : DataConfig
    encode : bool
    """

    name: str
    source: Source
    n_blocks: int
    config: DataConfig
    encode: bool
    needs_workers = True

    def prepare(self, workers: Workers, observer: RunObserver, run_stage: StageRunner) -> TrainTestRows:
        """Return the training rows and test rows; see `flows.rows.base.RowSource`."""
        parallel_map = workers.parallel_map(observer)
        rows, train = run_stage("survey", self.survey, workers, parallel_map, retry=True)
        found: TrainTestRows = run_stage(
            "split and scale", split_and_encode, rows, train, self.config, self.encode, parallel_map
        )
        return found

    def survey(self, workers: Workers, parallel_map: ParallelMap) -> tuple[TrainTestRows, LazyRows]:
        """Parse every part once, where it will be used, to number the rows and to find classes, features and categories.

        Parameters
        ----------
        workers : Workers
        parallel_map : ParallelMap
            Parses the parts there.

        Returns
        -------
        rows : TrainTestRows
            With a test fraction still among the training rows.
        train : LazyRows
            Its training rows.
        """
        reader, items = open_parts(
            self.source, each=parallel_map, hold=workers.hold, n_parts=self.n_blocks, name=self.name
        )
        train, test, config = _lazy_rows(reader, items, workers.scratch), None, self.config.test
        if config is not None and config.fraction is None:
            test_reader, items = open_parts(
                source_of(config), each=parallel_map, hold=workers.hold, schema=reader.schema, name=config.name or ""
            )
            test = _lazy_rows(test_reader, items, workers.scratch)
        return TrainTestRows(self.name, self.source, reader.schema, reader.fingerprint, train, test), train


def open_file_parts(config: DataConfig, n_blocks: int | None = None, *, encode: bool = True) -> FilePartSource:
    """Divide the files of the training data into about `n_blocks` parts, by default one for each 64 MiB.

    Raises
    ------
    InputError
        If there is nothing to read, or if the files cannot be reached.
    """
    source = source_of(config)
    if source.format_of().is_sharded:
        raise InputError("shards are always read directly: leave `direct` out")
    if config.positive is not None:
        source = source.model_copy(update={"positive": config.positive})
    n_parts = len(split_source(source, n_blocks or default_parts(source)))
    return FilePartSource(config.name or shown(str(source.source)), source, n_parts, config, encode)


def _lazy_rows(reader: BlockReader, items: Sequence[Any], scratch: str) -> LazyRows:
    loader: Loader = reader.saved(scratch) if scratch else reader.read
    share = max(reader.rows) / reader.n_samples
    return LazyRows(
        loader, items, reader.n_samples, reader.form.n_features, reader.n_pos, reader.memory,
        int(share * reader.memory),
    )  # fmt: skip

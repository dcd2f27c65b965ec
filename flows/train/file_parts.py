"""Files that the workers read themselves, part by part: no row goes through this process, and nothing is written before."""

from collections.abc import Callable
from dataclasses import dataclass

from aucdist.data.block import Block
from aucdist.data.formats.parts import split_source
from aucdist.data.preprocess import Preprocessor
from aucdist.data.shards.block_reader import BlockReader, ParallelMap, default_parts, open_reader
from aucdist.data.sources.source import Source
from aucdist.data.storage.files import shown
from aucdist.errors import InputError
from flows.compute.lazy_rows import Remote
from flows.config.data import DataConfig
from flows.train.stages import Opened, source_named


@dataclass(frozen=True)
class FileParts:
    """Files that have been cut into parts, but not read.

    Attributes
    ----------
    name : str
    source : Source
    n_parts : int
    """

    name: str
    source: Source
    n_parts: int

    def n_blocks(self, wanted: int | None) -> int:
        """Return the number of blocks; it was asked for when the files were cut."""
        return self.n_parts


def cut(config: DataConfig, wanted: int | None) -> FileParts:
    """Cut the files of the training data into about as many parts as are wanted, by default one for every 64 MiB.

    Raises
    ------
    InputError
        If there is nothing to read, or if the place cannot be reached.
    """
    source = source_named(config.name, config.source)
    if source.format_of().is_sharded:
        raise InputError("shards are always read directly: leave `direct` out")
    if config.positive is not None:
        source = source.model_copy(update={"positive": config.positive})
    n_parts = len(split_source(source, wanted or default_parts(source)))
    return FileParts(config.name or shown(str(source.source)), source, n_parts)


def survey(found: FileParts, config: DataConfig, each: ParallelMap, scratch: str) -> Opened[Remote]:
    """Read every part once, where it will be worked on, to number the rows and to learn classes, features and categories.

    Parameters
    ----------
    found : Cut
    config : DataConfig
    each : Each
        Reads the parts.
    scratch : str
        A folder that every worker can read; empty where this process reads the parts.
    """
    opening = open_reader(found.source, each=each, n_parts=found.n_parts, name=found.name)
    test = None
    if config.test is not None and config.test.fraction is None:
        apart = source_named(config.test.name, config.test.source)
        test = _remote(open_reader(apart, each=each, schema=opening.schema, name=config.test.name or ""), scratch)
    nothing = Preprocessor((), "none", None, None)
    return Opened(
        found.name, found.source, _remote(opening, scratch), test, opening.schema, nothing, opening.fingerprint
    )


def _remote(opening: BlockReader, scratch: str) -> Remote:
    loader: Callable[[int], Block] = opening.saved(scratch) if scratch else opening.read
    share = max(opening.rows) / opening.n_samples
    return Remote(
        loader, opening.n_blocks, opening.n_samples, opening.form.n_features, opening.n_pos, opening.memory,
        int(share * opening.memory),
    )  # fmt: skip

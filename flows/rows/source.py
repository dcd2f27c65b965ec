"""Opens the rows of a data set, whichever way they are read."""

from aucdist.data.sources.catalog import refuse_absent
from flows.config.data import DataConfig, source_of
from flows.rows.base import RowSource
from flows.rows.file_parts import open_file_parts
from flows.rows.in_memory import read_rows
from flows.rows.shards import open_shards


def open_source(config: DataConfig, n_blocks: int | None = None, encode: bool = True) -> RowSource:
    """Open a data set as far as that takes no workers: files are read into this process, unless the workers are to read them.

    Parameters
    ----------
    config : DataConfig
    n_blocks : int, optional
        Blocks that its rows are partitioned into; by default one for each 64 MiB. Shards are the blocks that they are.
    encode : bool, default=True
        Whether the features are encoded as configured, learning from all training rows. A search leaves that to its folds.

    Raises
    ------
    InputError
        If the data set cannot be opened as configured.
    """
    refuse_absent(ref.name for ref in (config, config.test) if ref is not None and ref.name is not None)
    if config.direct:
        return open_file_parts(config, n_blocks, encode=encode)
    if source_of(config).format_of().is_sharded:
        return open_shards(config, n_blocks, encode=encode)
    return read_rows(config, n_blocks, encode=encode)

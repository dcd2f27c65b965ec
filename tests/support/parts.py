"""What a reader gives of a source that is read in parts."""

from typing import Any

import numpy as np

from aucdist.data.block import Block
from aucdist.data.shards.reading import BlockReader, open_rows
from aucdist.data.sources import Source


def dense(block: Block) -> np.ndarray:
    """Return the features of a block, whatever kind of rows it has."""
    return block.X if isinstance(block.X, np.ndarray) else block.X.toarray()


def all_blocks(reader: BlockReader) -> list[Block]:
    """Read every block."""
    return [reader.read(index) for index in range(reader.n_blocks)]


def in_parts(source: Source, n_parts: int, **options: Any) -> list[Block]:
    """Read a source in so many parts."""
    return all_blocks(open_rows(source, n_parts=n_parts, **options))

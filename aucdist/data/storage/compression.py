"""Compressed files: gzip, bzip2, xz and Zstandard, by the ending of the name."""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa

from aucdist.data.storage import files
from aucdist.errors import InputError

OPENERS: dict[str, Callable[[io.BytesIO], Any]] = {
    ".gz": lambda raw: gzip.GzipFile(fileobj=raw),
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
    ".zst": lambda raw: pa.CompressedInputStream(raw, "zstd"),
}
BOM = b"\xef\xbb\xbf"
CHUNK = 2**22
# Tables of numbers shrink to a tenth. What grows more than this was made to fill the memory, or is not worth reading.
MOST_GROWTH = 500
ALWAYS_ALLOWED = 2**26
SURELY_ALLOWED = 2**30
"""From here on the part that has been unpacked is judged, too: a large bomb fills the memory before its end."""


def is_packed(url: str) -> bool:
    """Tell whether a file is compressed, by the ending of its name."""
    return Path(urlsplit(url).path).suffix in OPENERS


def unpacked(data: bytes, url: str) -> bytes:
    """Return what is in a file: decompressed if its name ends in .gz, .bz2, .xz or .zst, and without a byte order mark.

    Raises InputError if the file is truncated or damaged, if nothing is in it, or if it would grow beyond all measure.
    """
    if is_packed(url):
        try:
            data = _expanded(data, url)
        except (OSError, EOFError, ValueError, lzma.LZMAError, zlib.error) as e:
            if isinstance(e, InputError):
                raise
            raise InputError(f"{files.shown(url)} is truncated or damaged: {e}") from None
    data = data.removeprefix(BOM)
    if not data or data.isspace():
        raise InputError(f"{files.shown(url)} is empty")
    return data


def _expanded(data: bytes, url: str) -> bytes:
    limit = max(ALWAYS_ALLOWED, MOST_GROWTH * len(data))
    pieces, size = [], 0
    raw = io.BytesIO(data)
    try:
        with OPENERS[Path(urlsplit(url).path).suffix](raw) as file:
            while piece := file.read(CHUNK):
                pieces.append(piece)
                size += len(piece)
                allowed = min(limit, max(SURELY_ALLOWED, MOST_GROWTH * raw.tell()))
                if size > allowed:
                    raise InputError(
                        f"{files.shown(url)}: {raw.tell()} bytes unpack to more than {allowed}; if it is no trap, unpack it by "
                        "hand"
                    )
        return b"".join(pieces)
    except MemoryError:
        raise InputError(
            f"{files.shown(url)}: {len(data)} bytes unpack to more than {size}, which do not fit into the memory; unpack it by "
            "hand, so that it can be read in parts"
        ) from None

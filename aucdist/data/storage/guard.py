"""Checks of everything that is read from outside: regular files, size, expansion, progress, and disk space.

Code that reads bytes from outside calls these functions before it allocates memory or disk space for them, for all formats. The
general limits are in this module. A format with another limit has it beside its reader.
"""

import asyncio
import bz2
import gzip
import importlib
import io
import lzma
import os
import shutil
import stat
import struct
import time
import zipfile
import zlib
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from xml.parsers import expat

from aucdist.data.storage.urls import name_of, shown
from aucdist.errors import InputError, as_input_error

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

ALWAYS_ALLOWED = 2**26
"""The number of bytes to which any file may expand."""
MAX_GROWTH = 500
"""The largest expansion by decompression. Tables of numbers shrink to a tenth; files beyond this limit are probably attacks."""
SURELY_ALLOWED = 2**30
"""The number of unpacked bytes from which the expansion is checked during decompression, before the memory is full."""
MAX_CONFIGURATION = 2**22
"""The size limit of a YAML file, in bytes."""
MAX_UNSTATED = 2**31
"""The size limit of a download whose size the server does not state, in bytes."""
DOWNLOAD_LIMIT = "AUCDIST_DOWNLOAD_BYTES"
MIN_FREE_BYTES = 2**30
"""The number of bytes of the disk that a download leaves free."""
MIN_BYTES_PER_SECOND = 2**10
"""The lowest average speed of a transfer after `SLOW_START_SECONDS`, in bytes per second. Slower transfers are cancelled."""
SLOW_START_SECONDS = 60.0
"""The number of seconds during which a transfer may be slower, because connections and disks start slowly."""
BETWEEN_CHECKS = 5.0
"""The number of seconds between two checks."""
TRUSTED = "if you trust the file, "


# ---- memory and disk ------------------------------------------------------------------------------------------------------

MAX_SHEET_ROWS = 2**20
"""The largest number of rows of a spreadsheet."""
ALWAYS_ALLOWED_SPAN = 2**22
"""The number of rows times columns that the cells of a sheet may always span, including empty cells."""
MAX_SPAN_PER_CELL = 20
"""The cells of a sheet may span more if this is at most so many cells for each cell that is not empty."""


def total_memory() -> int:
    """Return the number of bytes of physical memory, or a very large number if the system does not state it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 2**62


def check_fits(n_bytes: int, subject: str) -> None:
    """Raise an InputError unless this number of bytes fits into the memory of this machine.

    `subject` names the file or data set.
    """
    if n_bytes > (most := total_memory()):
        raise InputError(
            f"{subject} would need {n_bytes} bytes, more than this machine's memory of {most}: use a larger machine, or "
            "fewer rows or columns"
        )


def collected(parts: Iterable[T], size: Callable[[T], int], subject: str) -> list[T]:
    """Collect the parts of an answer of unknown length, such as the result of a query.

    Parameters
    ----------
    parts : iterable
        The parts.
    size : callable
        Returns the bytes of a part in memory.
    subject : str
        The name of the answer in error messages.

    Returns
    -------
    list

    Raises
    ------
    InputError
        As soon as the parts exceed a quarter of the memory of the machine, because encoding makes copies.
    """
    kept, n_bytes = [], 0
    for part in parts:
        kept.append(part)
        check_fits(4 * (n_bytes := n_bytes + size(part)), subject)
    return kept


def check_download(n_bytes: int, stated: int | None, folder: Path, subject: str) -> None:
    """Raise an InputError if a download is too large, according to the bytes received or to the size that the server states.

    The disk of `folder` must have space for the rest.
    """
    limit = os.environ.get(DOWNLOAD_LIMIT, "")
    most = int(limit) if limit.isdecimal() else None if stated is not None else MAX_UNSTATED
    if most is not None and n_bytes > most:
        raise InputError(
            f"cannot read {subject}: {'' if stated else 'the server does not state its size, and '}it has more than {most} "
            f"bytes; download it by hand, or set a larger {DOWNLOAD_LIMIT}"
        )
    check_fits(n_bytes, subject)
    check_disk((stated or n_bytes) - n_bytes, folder, f"cannot read {subject}", "AUCDIST_CACHE")


def check_disk(n_bytes: int, folder: Path, failure: str, other: str) -> None:
    """Raise an InputError if the disk of a folder has no space for this number of bytes. The folder need not exist yet.

    `failure` says what cannot be done, and `other` what to change.
    """
    while not folder.exists():
        folder = folder.parent
    disk = shutil.disk_usage(folder)
    if disk.free - n_bytes < min(MIN_FREE_BYTES, disk.total // 20):
        raise InputError(f"{failure}: the disk of {folder} would be full; make room, or name another {other}")


# ---- files ------------------------------------------------------------------------------------------------------------------


def check_regular(path: Path, url: str) -> None:
    """Raise an InputError if a local path is a pipe, a socket or a device. A file, a folder, or no file at all is accepted."""
    try:
        info = path.stat()
    except (OSError, ValueError):
        return  # reading the file will raise the error
    if not (stat.S_ISREG(info.st_mode) or stat.S_ISDIR(info.st_mode)):
        raise InputError(
            f"cannot read {shown(url)}: it is a pipe, a socket or a device, which cannot be read again; save it as a file"
        )


def read_configuration(path: Path) -> str:
    """Return the text of a YAML file.

    Raises
    ------
    InputError
        If the file cannot be read, is not a regular file, is too large, or is not in UTF-8.
    """
    check_regular(path, str(path))
    with as_input_error(f"cannot read {path}", OSError, ValueError), path.open("rb") as file:
        data = file.read(MAX_CONFIGURATION + 1)
        if len(data) > MAX_CONFIGURATION:
            raise InputError(
                f"cannot read {path}: a configuration has at most {MAX_CONFIGURATION} bytes. If these are data, name "
                "the YAML file that describes them"
            )
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise InputError(
                f"cannot read {path}: it is not UTF-8 text. Save it in your editor with the encoding UTF-8, or convert it, as in "
                "`iconv -f latin1 -t utf-8 OLD > NEW`"
            ) from None


# ---- progress -------------------------------------------------------------------------------------------------------------


class TooSlow(OSError):
    """A transfer is too slow."""


class Progress:
    """The speed of a transfer, compared with `MIN_BYTES_PER_SECOND`."""

    def __init__(self) -> None:
        self._start, self.received = time.monotonic(), 0

    def add(self, n_bytes: int) -> None:
        """Count bytes.

        Raises
        ------
        TooSlow
            If fewer than `MIN_BYTES_PER_SECOND` have arrived per second on average, after a grace period.
        """
        self.received += n_bytes
        if time.monotonic() - self._start > SLOW_START_SECONDS + self.received / MIN_BYTES_PER_SECOND:
            raise TooSlow


async def watched(transfer: Awaitable[T], progress: Progress) -> T:
    """Return the result of a transfer. Cancel the transfer if it is too slow, even if no bytes arrive.

    Raises
    ------
    TooSlow
        If it is too slow.
    """
    task = asyncio.ensure_future(transfer)
    try:
        while not (await asyncio.wait({task}, timeout=BETWEEN_CHECKS))[0]:
            progress.add(0)
        return task.result()
    finally:
        task.cancel()


# ---- expansion ------------------------------------------------------------------------------------------------------------


def check_growth(packed: int, unpacked: int, where: str, remedy: str, growth: int = MAX_GROWTH) -> None:
    """Raise an InputError if a file expands by more than the limit.

    Parameters
    ----------
    packed : int
        The number of bytes of the file.
    unpacked : int
        The number of bytes of its content, or of the table that it becomes.
    where : str
        The name of the data in error messages.
    remedy : str
        What users can do if they trust the file, for the message.
    growth : int, default=MAX_GROWTH
        The largest factor by which the file may expand.
    """
    limit = max(ALWAYS_ALLOWED, growth * packed)
    if unpacked > limit:
        raise InputError(
            f"{where}: {packed} bytes expand to {unpacked}, and at most {limit} are read; {TRUSTED}{remedy}"
        )
    check_fits(unpacked, where)


def _zip(raw: io.BytesIO, where: str) -> Any:
    """Return the only file of an archive."""
    archive = zipfile.ZipFile(raw)
    members = [name for name in archive.namelist() if not name.endswith("/") and not name.startswith("__MACOSX/")]
    if len(members) != 1:
        raise InputError(
            f"{where} has {len(members)} files ({', '.join(members[:5])}), but one is expected: extract it, and name its folder"
        )
    if archive.getinfo(members[0]).flag_bits & 1:
        raise InputError(f"{where} is encrypted: decrypt and extract it first")
    return archive.open(members[0])


OPENERS: dict[str, Callable[[io.BytesIO, str], Any]] = {
    ".gz": lambda raw, _: gzip.GzipFile(fileobj=raw), ".bz2": lambda raw, _: bz2.BZ2File(raw),
    ".xz": lambda raw, _: lzma.LZMAFile(raw),  # noqa: SIM115
    ".zst": lambda raw, _: importlib.import_module("pyarrow").CompressedInputStream(raw, "zstd"), ".zip": _zip,
}  # fmt: skip
MAGIC_BYTES = {
    b"\x1f\x8b\x08": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\0": ".xz", b"\x28\xb5\x2f\xfd": ".zst", b"PK\x03\x04": ".zip",
}  # fmt: skip
"""The first bytes of compressed files, by format."""
WORKBOOK_MEMBER = b"[Content_Types].xml"
"""A file in each workbook of a spreadsheet, which is an archive of many files and is not unpacked here."""
BOM = b"\xef\xbb\xbf"
BYTES_AT_ONCE = 2**22


def packing_of(url: str, head: bytes = b"") -> str:
    """Return the suffix of file names for this kind of compression, by the name or the first bytes.

    It is empty without compression.
    """
    suffix = Path(name_of(url)).suffix.lower()
    if suffix in OPENERS:
        return suffix
    kind = next((kind for first, kind in MAGIC_BYTES.items() if head.startswith(first)), "")
    return "" if kind == ".zip" and (suffix == ".xlsx" or WORKBOOK_MEMBER in head) else kind


def unpacked(data: bytes, url: str) -> bytes:
    """Return the content of a file. It is decompressed if it is gzip, bzip2, xz, Zstandard or a zip of one file.

    The name or the first bytes tell the kind of compression. A byte order mark is removed.

    Raises
    ------
    InputError
        If the file is truncated or damaged, if it is empty, or if it expands too much.
    """
    if packing := packing_of(url, data):
        kinds = OSError, EOFError, ValueError, RuntimeError, zipfile.BadZipFile, lzma.LZMAError, zlib.error
        with as_input_error(f"{shown(url)} is truncated or damaged", *kinds):
            limit, pieces, size, raw = max(ALWAYS_ALLOWED, MAX_GROWTH * len(data)), [], 0, io.BytesIO(data)
            try:
                with OPENERS[packing](raw, shown(url)) as file:
                    while piece := file.read(BYTES_AT_ONCE):
                        pieces.append(piece)
                        size += len(piece)
                        allowed = min(limit, max(SURELY_ALLOWED, MAX_GROWTH * raw.tell()))
                        if size > allowed:
                            raise InputError(
                                f"{shown(url)}: {raw.tell()} compressed bytes expand to over {allowed}; {TRUSTED}extract it first"
                            )
                data = b"".join(pieces)
            except MemoryError:
                raise InputError(
                    f"{shown(url)}: {len(data)} compressed bytes expand to more than {size}, which do not fit into the memory; "
                    "extract it first, so that it can be read in parts"
                ) from None
    data = data.removeprefix(BOM)
    if not data or data.isspace():
        raise InputError(f"{shown(url)} is empty: write it again, or name another file")
    return data


def size_of_arrow(data: "pa.Buffer") -> int:
    """Return the number of bytes of memory that an Arrow stream states, without decompressing it.

    Each value counts as at least eight bytes, even in a column of nulls, which has no bytes.

    Raises
    ------
    ValueError
        If the stream is damaged.
    """
    import pyarrow as pa

    size = 0
    for message in pa.ipc.MessageReader.open_stream(data):
        if message.type not in ("record batch", "dictionary"):
            continue
        header = _Table(message.metadata.to_pybytes()).below(2)
        batch = header.below(1) if message.type == "dictionary" else header
        body, compressed = message.body, batch.at(3) is not None
        stored = 0
        for offset, length in batch.pairs(2):
            stated = struct.unpack_from("<q", body, offset)[0] if compressed and length >= 8 else -1
            stored += length if stated < 0 else stated  # -1 means that the buffer is not compressed
        size += max(stored, sum(8 * max(length, 0) for length, _ in batch.pairs(1)))
    return size


class _Table:
    """A table of a flatbuffer, which is the format of Arrow's metadata."""

    def __init__(self, data: bytes, place: int | None = None):
        self.data = data
        self.place = struct.unpack_from("<I", data, 0)[0] if place is None else place

    def at(self, number: int) -> int | None:
        """Return the position of a field, or None if the table does not have it."""
        vtable = self.place - struct.unpack_from("<i", self.data, self.place)[0]
        size, entry = struct.unpack_from("<H", self.data, vtable)[0], 4 + 2 * number
        offset = struct.unpack_from("<H", self.data, vtable + entry)[0] if entry + 2 <= size else 0
        return self.place + offset if offset else None

    def target(self, number: int) -> int:
        """Return the position that a field refers to."""
        if (place := self.at(number)) is None:
            raise ValueError(f"field {number} is missing")
        return int(place + struct.unpack_from("<I", self.data, place)[0])

    def below(self, number: int) -> "_Table":
        """Return the table that a field refers to."""
        return _Table(self.data, self.target(number))

    def pairs(self, number: int) -> Iterator[tuple[int, int]]:
        """Return the pairs of integers of 64 bits that a field refers to."""
        if self.at(number) is None:
            return iter(())
        place = self.target(number)
        count = struct.unpack_from("<I", self.data, place)[0]
        return struct.iter_unpack("<qq", self.data[place + 4 : place + 4 + 16 * count])


def check_sheet(file: Any, where: str) -> None:
    """Raise an InputError if the bounding rectangle of a sheet is far larger than the number of its cells.

    This is the case if a cell is in the last column, for example. Code that reads the sheet fills the rectangle. `file` is the
    XML of the sheet.
    """
    rows = columns = cells = row = column = 0
    farthest = ""

    def start(tag: str, attributes: dict[str, str]) -> None:
        """Count the rows and cells of a sheet by its XML elements."""
        nonlocal rows, columns, cells, row, column, farthest
        kind, place = tag.rpartition(":")[2], attributes.get("r", "")
        if kind == "row":
            row, column = int(place) if place else row + 1, 0
        elif kind == "c":
            cells, column = cells + 1, column + 1
            if letters := place.rstrip("0123456789"):
                row, column = int(place[len(letters) :] or row), 0
                for letter in letters.upper():
                    column = 26 * column + ord(letter) - 64
        if row > rows or column > columns:
            rows, columns, farthest = max(rows, row), max(columns, column), place or f"row {row}"
        if rows > MAX_SHEET_ROWS:
            raise InputError(
                f"{where}: row {rows} is beyond the limit of {MAX_SHEET_ROWS} rows of a sheet: save the table as CSV"
            )

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    while piece := file.read(BYTES_AT_ONCE):
        parser.Parse(piece, False)
    if rows * columns > max(ALWAYS_ALLOWED_SPAN, MAX_SPAN_PER_CELL * cells):
        raise InputError(
            f"{where}: its {cells} cells span {rows} rows of {columns} columns, because one is in {farthest}: delete the cells "
            "that are far from the table, or save the table as CSV"
        )

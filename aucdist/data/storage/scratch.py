"""Copies of decoded rows on the local disk, as raw arrays that are memory-mapped, so that rows are decoded only once.

Decoding and checking a shard takes ten times as long as reading it. So a process writes the rows of the first reading into a
file without a name, which the system removes when the process ends for any reason. A block is memory-mapped while a step works
on it. This is as fast as rows in memory as long as the system keeps the pages of the file, which count as its cache and may be
dropped.

Copies are made as long as a fifth of the disk stays free. ``AUCDIST_SCRATCH_BYTES`` sets another limit for a process; with 0,
there are no copies. Blocks without a copy are read from their source. Copies that have not been used for a while are not
removed to make room, because a fit reads its blocks in turn, and would remove each copy just before it is used again. Copies
end with their blocks. Several copies are in one file, which ends with the last of them.
"""

import functools
import mmap
import os
import pickle
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

from aucdist.errors import InputError
from aucdist.parameters import frozen

Kept = TypeVar("Kept")

LIMIT = "AUCDIST_SCRATCH_BYTES"
SHARE_THAT_STAYS_FREE = 0.2
"""The share of the disk that is left free."""
FILE_BYTES = 2**29
"""The size after which a new file is started. A file is only removed with its last copy, but only few files can be open."""
ALIGNMENT = 64
"""The alignment of arrays in a copy, in bytes. It is a cache line of the processor. A copy begins at a page, because a memory map
has to."""


class AnonymousFile:
    """A file without a name, which the system removes with the last reference to it. It is created when it is first written."""

    def __init__(self, folder: Path | None = None):
        self._folder, self._lock = folder, threading.Lock()
        self.end = 0
        """The number of bytes of the file."""

    @functools.cached_property
    def descriptor(self) -> int:
        """The descriptor by which the system knows the file."""
        with tempfile.TemporaryFile(dir=self._folder) as file:
            descriptor = os.dup(file.fileno())
        # There is no `__del__`, because another thread could get the file from a weak reference while it runs.
        weakref.finalize(self, os.close, descriptor).atexit = False
        return descriptor

    def append(self, data: bytes) -> int:
        """Write bytes at the end, and return the offset where they begin. Any thread may call this."""
        with self._lock:
            start, self.end = self.end, self.end + len(data)
            self.write(data, start)
        return start

    def write(self, data: bytes | memoryview, start: int) -> None:
        """Write bytes at an offset. The system may accept them in several pieces."""
        unwritten = memoryview(data)
        while unwritten.nbytes:
            n_written = os.pwrite(self.descriptor, unwritten, start)
            unwritten, start = unwritten[n_written:], start + n_written


class _Mapping(mmap.mmap):
    """A memory mapping that arrays refer to."""

    file: AnonymousFile


@frozen
class MappedCopy:
    """An object in a file: a block, or the rows of a file.

    Parameters
    ----------
    file : AnonymousFile
        The file.
    start, size : int
        The offset of the object in the file, and its number of bytes.
    pieces : tuple of tuple (int, int)
        The offset of each piece after `start`, and its number of bytes. The first piece is the object without its arrays. Only
        this process, which wrote it, reads it. The other pieces are the arrays.
    """

    file: AnonymousFile
    start: int
    size: int
    pieces: tuple[tuple[int, int], ...]

    def read(self) -> Any:
        """Return the object. Its arrays are mapped as long as they are used."""
        # The mapping is private and writable, because kernels were compiled for writable arrays. They do not write to them.
        mapped = _Mapping(
            self.file.descriptor, self.size, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE, offset=self.start
        )
        mapped.file = self.file
        view = memoryview(mapped)
        structure, *arrays = (view[at : at + size] for at, size in self.pieces)
        return pickle.loads(structure, buffers=arrays)


class Stored(Generic[Kept]):
    """An object that is not kept in memory. It is computed when it is needed, and mapped from the local disk if there is a copy.

    Parameters
    ----------
    make : callable
        ``make(item)`` computes the object. It is picklable, always gives the same result, and runs again where this object is
        sent.
    item : object
        The argument.
    """

    def __init__(self, make: Callable[[Any], Kept], item: Any):
        self.make, self.item = make, item
        self._copy: MappedCopy | None = None

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_copy": None}

    @property
    def copied(self) -> bool:
        """Whether the local disk has a copy."""
        return self._copy is not None

    def read(self) -> Kept:
        """Return the object. Write a copy, unless there is one already or the disk has no space."""
        if self._copy is not None:
            stored: Kept = self._copy.read()
            return stored
        made = self.make(self.item)
        self._copy = scratch().copy(made)
        return made


class Scratch:
    """Copies on the local disk.

    Parameters
    ----------
    folder : Path
        The folder of the copies. On a file system in memory, no copies are made.
    limit : int, optional
        The largest number of bytes of all copies. By default, a fifth of the disk must stay free.
    """

    def __init__(self, folder: Path, limit: int | None = None):
        self.folder, self._limit = folder, limit
        self._lock, self._files = threading.Lock(), weakref.WeakSet[AnonymousFile]()
        self._works = limit != 0 and not _is_memory(folder)

    @property
    def used(self) -> int:
        """The number of bytes of the files that have copies."""
        return sum(file.end for file in self._files)

    def copy(self, made: Any) -> MappedCopy | None:
        """Write a copy of an object. Return None if there is no space."""
        buffers: list[pickle.PickleBuffer] = []
        structure = pickle.dumps(made, protocol=5, buffer_callback=buffers.append)
        raw, pieces, size = [memoryview(structure), *(buffer.raw() for buffer in buffers)], [], 0
        for piece in raw:
            pieces.append((size, piece.nbytes))
            size += -(-piece.nbytes // ALIGNMENT) * ALIGNMENT
        if not self._works or not any(piece.nbytes for piece in raw[1:]):
            return None
        try:
            size = -(-size // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
            with self._lock:
                disk = shutil.disk_usage(self.folder)
                fits = disk.free - size >= SHARE_THAT_STAYS_FREE * disk.total
                if not (fits if self._limit is None else self.used + size <= self._limit):
                    return None
                file = next((file for file in self._files if file.end + size <= FILE_BYTES), None)
                file = AnonymousFile(self.folder) if file is None else file
                self._files.add(file)
                start, file.end = file.end, file.end + size
                os.ftruncate(file.descriptor, file.end)  # a mapping must not extend beyond the end of the file
            for (at, _), piece in zip(pieces, raw, strict=True):
                file.write(piece, start + at)
        except OSError:  # if the disk is full or the folder was removed, the fit continues without a copy
            self._works = False
            return None
        return MappedCopy(file, start, size, tuple(pieces))


def _is_memory(folder: Path, mounts: Path = Path("/proc/mounts")) -> bool:
    """Return whether a folder is on a file system in memory, where copies would save nothing. Return False if this is unknown."""
    try:
        lines = [line.split() for line in mounts.read_text().splitlines()]
    except OSError:
        return False
    place = folder.resolve()
    points = [(len(Path(line[1]).parts), line[2]) for line in lines if place.is_relative_to(line[1])]
    return max(points, default=(0, ""))[1] in ("tmpfs", "ramfs")


def limit_from_environment() -> int | None:
    """Return the limit in bytes that the environment sets, or None.

    Raises
    ------
    InputError
        If the setting is not a number of bytes.
    """
    limit = os.environ.get(LIMIT, "").strip()
    if not limit:
        return None
    if not limit.isdecimal():
        raise InputError(f"{LIMIT} must be a number of bytes, such as 100000000000, or 0 for no copies; got {limit!r}")
    return int(limit)


_lock = threading.Lock()
_scratch: Scratch | None = None


def scratch() -> Scratch:
    """Return the copies of this process. They are in the folder for temporary files, unless `use_folder` was called."""
    global _scratch
    with _lock:
        # The folder of a worker is removed when the worker ends.
        if _scratch is None or not _scratch.folder.is_dir():
            limit = limit_from_environment()
            try:
                _scratch = Scratch(Path(tempfile.gettempdir()), limit)
            except FileNotFoundError:  # there is no writable folder for temporary files
                _scratch = Scratch(Path(os.curdir), limit=0)
        return _scratch


def use_folder(folder: Path) -> None:
    """Write copies into this folder from now on."""
    global _scratch
    with _lock:
        if _scratch is None or _scratch.folder != folder:
            _scratch = Scratch(folder, limit_from_environment())


def _forget() -> None:
    """Forget the copies in a forked process, which must write its own files."""
    global _scratch, _lock
    _scratch, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget)

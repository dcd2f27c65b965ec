"""Files as Arrow reads them: mapped into memory where they are local, in ranges where they are not."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from aucdist.data.storage import files
from aucdist.errors import InputError


class RangeFile(io.RawIOBase):
    """A remote file that is read range by range, all of them of one version of it."""

    def __init__(self, url: str):
        self._url = url
        self._stat = files.stat(url)
        self._at = 0

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def seekable(self) -> bool:
        """Tell that it can be read from anywhere."""
        return True

    def tell(self) -> int:
        """Return where the next byte is read."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to an offset from the start, from here, or from the end."""
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._stat.size}[whence]
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill the buffer as far as the file goes."""
        end = min(self._at + len(buffer), self._stat.size)
        data = files.read_range(self._url, self._at, end, self._stat) if end > self._at else b""
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def local_path(url: str) -> Path | None:
    """Return the path of a local file, be it given as a path or as a URL; None for a remote one."""
    parts = urlsplit(url)
    if "://" not in url:
        return Path(url)
    if parts.scheme != "file":
        return None
    as_listed = Path(url.partition("://")[2])  # as `files.expand` lists it, such as city=a%2Fb of a Hive partition
    return as_listed if as_listed.is_absolute() and as_listed.exists() else Path(unquote(parts.path))


def absolute(url: str) -> str:
    """Return a URL, or the absolute path of a local one: workers may have another working folder."""
    local = local_path(url)
    return url if local is None else str(local.absolute())


@contextmanager
def opened(url: str) -> Iterator[pa.NativeFile]:
    """Open a file so that only what is asked for is read; a file of the web comes by way of the download cache.

    Raises InputError if the file is missing, empty or unreadable, or its store cannot be reached.
    """
    path = local_path(url)
    with files.explained(url, "read"):
        if path is not None:
            files.check_regular(path, url)
            if path.stat().st_size == 0:
                raise InputError(f"{files.shown(url)} is empty")
        if path is not None:
            file = pa.memory_map(str(path))
        elif files.is_web(url):
            file = pa.BufferReader(files.read_bytes(url))
        else:
            file = pa.PythonFile(RangeFile(url), mode="r")
    with file:
        yield file


def read_buffer(url: str) -> pa.Buffer:
    """Return all bytes of a file, those of a local one without a copy. Errors as `opened`."""
    if local_path(url) is None:
        return pa.py_buffer(files.read_bytes(url))
    with opened(url) as file:
        return file.read_buffer()

"""Read and write files by path or URL. Patterns and folders stand for the files in them.

Every function raises an InputError if a store cannot be reached, or if reading, writing or removing fails.
"""

import errno
import functools
import hashlib
import re
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import fsspec
from fsspec.spec import AbstractBufferedFile

from aucdist.data.storage import s3, web
from aucdist.data.storage.faults import StorageError, retried, storage_errors
from aucdist.data.storage.guard import check_fits, check_regular, packing_of, unpacked
from aucdist.data.storage.urls import S3_SCHEMES, is_s3, is_web, require, reveal, shown
from aucdist.errors import InputError
from aucdist.extras import load_optional

if TYPE_CHECKING:
    import pyarrow as pa


NO_DATA = re.compile(r"(^|/)[._]|/$")
"""Paths below a folder that are not read: hidden files, markers such as ``_SUCCESS``, and S3's objects of folders."""


@dataclass(frozen=True)
class Stat:
    """The version of a file: its size in bytes, and its ETag. For a local file, the time of the last change replaces the ETag."""

    size: int
    etag: str


def files_of(source: str | list[str]) -> list[str]:
    """Return the files of a source, sorted within each of its paths and URLs.

    A folder or a prefix that ends in a slash means all files below it, except for those whose name starts with a dot or an
    underscore (markers of other tools). ``*``, ``?`` and ``[...]`` match names, unless a file has exactly this name.

    Raises
    ------
    InputError
        If nothing matches.
    """
    if isinstance(source, list):
        return [url for part in source for url in files_of(part)]
    url = require(source)
    if is_web(url):
        return [url]
    with store(url, "read") as (fs, path):
        if path == "/":
            raise InputError(
                f"{shown(url)} is the root folder, not a data set: name a file, or a folder of files of one kind"
            )
        if any(c in path for c in "*?[") and not retried(fs.exists, path):
            paths = retried(lambda: [p for p in fs.glob(path) if not fs.isdir(p)])
        elif url.endswith("/") or _is_folder(fs, path):
            paths = [p for p in retried(fs.find, path) if not NO_DATA.search(p.removeprefix(path))]
        else:
            return [url]
    if not paths:
        raise InputError(f"nothing matches {shown(url)}: there is no file to read. Correct the path")
    return [fs.unstrip_protocol(p) for p in sorted(paths)]


def _is_folder(fs: Any, path: str) -> bool:
    try:
        return bool(retried(fs.isdir, path))
    except PermissionError:  # an object may be read without the permission to list the bucket
        return False


def read_bytes(url: str, sha256: str | None = None) -> bytes:
    """Return the content of a file as it is stored. Files on the web are read through the download cache.

    Raises
    ------
    InputError
        If the file is empty or unreadable.
    """
    with storage_errors(url, "read"):
        data = downloaded(url, sha256).read_bytes() if is_web(url) else read_range(url, 0)
    if not data:
        raise InputError(f"{shown(url)} is empty: write it again, or name another file")
    return data


def downloaded(url: str, sha256: str | None = None, received: web.Received = lambda n, stated: None) -> Path:
    """Return the cached copy of a file on the web: see `aucdist.data.storage.web.cached_copy`.

    Parameters
    ----------
    url : str
        The URL of the file.
    sha256 : str, optional
        The checksum that the file must have.
    received : web.Received, optional
        Called with the number of bytes received, and the total if the server states it.
    """
    with store(url, "read") as (fs, _):
        return retried(web.cached_copy, url, sha256, functools.partial(web.download, fs, url, received))


def stat(url: str) -> Stat:
    """Return the size of a file and an identifier of its version."""
    with store(url, "read") as (fs, path):
        info = retried(fs.info, path)
        if info["type"] == "directory":
            raise FileNotFoundError
    tag = info.get("ETag") or (f"{info['mtime']:.6f}" if "mtime" in info else "")
    return Stat(int(info["size"] or 0), str(tag).strip('"'))


def read_range(url: str, start: int, end: int | None = None, version: str = "") -> bytes:
    """Return the bytes from `start` up to `end` (exclusive), or to the end of the file.

    Parameters
    ----------
    url : str
        The path or URL of the file.
    start : int
        The offset of the first byte.
    end : int, optional
        The offset after the last byte.
    version : str, default=""
        The ETag that `stat` returned. The file must still have it. Files on the web are not checked.

    Raises
    ------
    InputError
        If the file has changed.
    """
    if end is not None and end <= start:
        return b""
    with store(url, "read") as (fs, path):
        if is_s3(url):
            data, etag = retried(s3.read_object, fs, path, start, end)
        else:
            if end is None and "file" in fs.protocol:
                check_fits(fs.size(path) or 0, shown(url))
            data = retried(fs.cat_file, path, start, end)
            etag = stat(url).etag if version and not is_web(url) else ""
    if version and etag and etag != version:
        raise StorageError(f"{shown(url)} has changed since it was first read: start again when it is complete")
    return bytes(data)


def write_bytes(url: str, data: bytes, *, new: bool = False) -> None:
    """Write a file atomically, and create its folders.

    A local file is written to a temporary name and renamed. Object stores show an object only when it is complete.

    Parameters
    ----------
    url : str
        The path or URL of the file.
    data : bytes
        The content of the file.
    new : bool, default=False
        Whether a local file must not exist yet. If two processes write it at the same time, one of them gets an error.
    """
    with store(url, "write") as (fs, path):
        if "file" in fs.protocol:
            with _aside(Path(path), data) as aside:
                if new:
                    try:
                        Path(path).touch(exist_ok=False)
                    except FileExistsError:
                        check_not_existing(url)
                aside.replace(path)
        elif is_s3(url):
            # The object becomes visible only when all parts have arrived.
            retried(fs.pipe_file, path, data, chunksize=s3.PART)
        else:
            fs.pipe_file(path, data)


def create_bytes(url: str, data: bytes) -> bool:
    """Create a small file unless it exists, and return whether it now has these bytes.

    If several processes write the file, one of them succeeds, and all of them learn which one. S3 guarantees this for objects
    of one part in buckets without versions. Other object stores do not guarantee it.
    """
    with store(url, "write") as (fs, path):
        if is_s3(url):
            return retried(s3.create, fs, path, data)
        if "file" in fs.protocol:
            with _aside(Path(path), data) as aside:
                try:
                    Path(path).hardlink_to(aside)
                    return True
                except FileExistsError:
                    return Path(path).read_bytes() == data
                except OSError as e:
                    if e.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS):  # The file system has no links.
                        raise
        raise InputError(
            f"{shown(url)}: this file must never be overwritten, and only S3 and local disks with hard links ensure this: "
            "name a folder on one of them"
        )


def exists(url: str) -> bool:
    """Return whether there is a file or a folder at a URL."""
    with store(url, "read") as (fs, path):
        # If the folder of a local path may not be read, fsspec reports that the path does not exist.
        return Path(path).exists() if "file" in fs.protocol else bool(retried(fs.exists, path))


def check_not_existing(url: str) -> None:
    """Raise an InputError if there is such a file or folder."""
    if exists(url):
        raise InputError(
            f"{shown(url)} already exists: choose another file with --output, or overwrite it with --force"
        )


def names_in(url: str) -> list[str]:
    """Return the sorted names of the files and folders in a folder. There are none if the folder does not exist."""
    with store(url, "read") as (fs, path):
        try:
            places = retried(fs.ls, path, detail=False)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(place.rstrip("/").rpartition("/")[2] for place in places)


def remove(url: str) -> None:
    """Remove a file, or a folder with its content, if it exists."""
    with store(url, "write") as (fs, path):
        if retried(fs.exists, path):
            retried(fs.rm, path, recursive=True)


def remove_files(folder: str, names: Sequence[str]) -> None:
    """Remove some files of a folder if they exist, and then the folder if it is empty.

    Links and folders are not followed, so the content of other folders stays.
    """
    with store(folder, "write") as (fs, path):
        if "file" in fs.protocol:
            for name in names:
                file = Path(path, name)
                if file.is_symlink() or not file.is_dir():
                    file.unlink(missing_ok=True)
            with suppress(OSError):  # the folder may have other files, or another run may have removed it
                Path(path).rmdir()
        elif names:
            retried(fs.rm, [f"{path}/{name}" for name in names])


def check_not_link(folder: str) -> None:
    """Raise an InputError if a folder is a link. Nothing should be written to or removed from the folder behind it."""
    fs, path = open_fs(folder)
    if "file" in fs.protocol and Path(path).is_symlink():
        raise InputError(f"{shown(folder)} is a link to another folder: remove the link")


@contextmanager
def _aside(target: Path, data: bytes) -> Iterator[Path]:
    """Write bytes to a temporary file next to the target.

    The file is removed at the end, and is never read if the process is killed.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = target.with_name(f".{uuid.uuid4().hex}.part")
    try:
        aside.write_bytes(data)
        yield aside
    finally:
        aside.unlink(missing_ok=True)


@contextmanager
def store(url: str, action: str) -> Iterator[tuple[Any, str]]:
    """Yield what `open_fs` returns. Exceptions of the file system become StorageErrors, as in `storage_errors`."""
    with storage_errors(url, action):
        yield open_fs(url)


def open_fs(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, with short timeouts, and the path on it.

    Raises
    ------
    InputError
        If URLs of this kind are not supported.
    """
    url, named = reveal(url), url
    if "\0" in url:
        raise InputError(f"{shown(named)!r} is neither a path nor a URL: correct it")
    # fsspec is not used, because it would expand `~` and interpret `file:a` and `a::b`.
    if (local := local_path(url)) is not None:
        check_regular(local, named)
        return fsspec.filesystem("file"), str(local.absolute())
    scheme = url.split("://", 1)[0]
    if scheme in S3_SCHEMES:
        load_optional("s3fs")
        # The ARN of an access point is also accepted.
        if not re.fullmatch(r"[A-Za-z0-9._:-]+", bucket := urlsplit(url).netloc):
            raise InputError(
                f"{shown(named)}: S3 has no bucket of this name; write s3://BUCKET/KEY, with letters, digits, dots and hyphens "
                "in BUCKET"
            )
        # `url_to_fs` is not used, because it would treat ``::`` in a key as a chain of URLs.
        kind = fsspec.get_filesystem_class(scheme)
        fs = kind(**s3.s3_options(bucket), **kind._get_kwargs_from_urls(url))
        fs.retries = 1  # s3fs does not retry, because it would do so without jitter
        fs._list_pages = functools.partial(s3.pages, fs)
        return fs, kind._strip_protocol(url)
    options = web.web_options() if is_web(url) else {}
    try:
        return fsspec.url_to_fs(url, **options)
    except (ValueError, ImportError):
        raise InputError(
            f"{shown(named)}: URLs of {scheme}:// cannot be opened; use a path, file://, s3:// or https://. A database is the "
            "`source` in a YAML file with `format: sql`"
        ) from None


class RangeFile(AbstractBufferedFile):
    """A remote file that is read in ranges, which all belong to the same version."""

    def __init__(self, url: str, version: Stat):
        self.version = version.etag
        super().__init__(None, url, cache_type="none", size=version.size)

    def _fetch_range(self, start: int, end: int) -> bytes:
        return read_range(self.path, start, min(end, self.size), self.version)


def sha256_of(data: bytes) -> str:
    """Return the SHA-256 of bytes in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def local_path(url: str) -> Path | None:
    """Return the path of a local file, given as a path or a URL, or None for remote files."""
    scheme, is_url, path = url.partition("://")
    if not is_url:
        return Path(url)
    if scheme.lower() != "file":
        return None
    # A path from `files_of` is not decoded, because city=a%2Fb is the folder of a Hive partition.
    as_listed = Path(path)
    return as_listed if as_listed.is_absolute() and as_listed.exists() else Path("/" + unquote(path.partition("/")[2]))


def absolute(url: str) -> str:
    """Return a URL, or the absolute path of a local file, without a slash at the end. Workers may have another working folder."""
    local = local_path(url)
    return url.rstrip("/") if local is None else str(local.absolute())


@contextmanager
def opened(url: str, *, mapped: bool = False) -> Iterator["pa.NativeFile"]:
    """Open a file for reading in pieces. Files on the web are read through the download cache, and compressed ones decompressed.

    Parameters
    ----------
    url : str
        The path or URL of the file.
    mapped : bool, default=False
        Whether to map a local file into memory. Nothing may overwrite such a file in place, because truncating it would kill
        this process.

    Raises
    ------
    InputError
        If the file is missing, empty or unreadable, or its store cannot be reached.
    """
    import pyarrow as pa

    path = local_path(url)
    with storage_errors(url, "read"):
        if is_web(url) or packing_of(url):
            file = pa.BufferReader(unpacked(read_bytes(url), url))
        elif path is not None:
            check_regular(path, url)
            if path.stat().st_size == 0:
                raise InputError(f"{shown(url)} is empty: write it again, or name another file")
            file = (pa.memory_map if mapped else pa.OSFile)(str(path))
        else:
            file = pa.PythonFile(RangeFile(url, stat(url)), mode="r")
    with file:
        yield file


def read_buffer(url: str) -> "pa.Buffer":
    """Return the content of a file that aucdist wrote.

    Local files are memory-mapped without a copy. The errors are those of `opened`.
    """
    import pyarrow as pa

    if local_path(url) is None:
        return pa.py_buffer(read_bytes(url))
    with opened(url, mapped=True) as file:
        return file.read_buffer()

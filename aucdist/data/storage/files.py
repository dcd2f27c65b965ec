"""Bytes in and out, by path or URL: which files a source means, what is in them, and errors that say what to do."""

import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import fsspec

from aucdist.data.storage import s3
from aucdist.data.storage.download import fetch
from aucdist.data.storage.network_errors import AIOHTTP, BOTO, Exceptions, loaded
from aucdist.data.storage.retries import code_of, response_of, retried
from aucdist.errors import InputError
from aucdist.extras import load_optional

NO_IDENTITY = ("NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError", "ProfileNotFound")
"""Exceptions of botocore: it found no credentials, or not all."""


@dataclass(frozen=True)
class Stat:
    """What tells a file from another version of it: its size in bytes, and its ETag (of a local file: when it was changed)."""

    size: int
    etag: str


def data_root() -> Path:
    """Return the folder below which relative paths lie: AUCDIST_DATA, or ``../shared/data`` beside the checkout."""
    default = Path(__file__).resolve().parents[4] / "shared" / "data"
    return Path(os.environ.get("AUCDIST_DATA") or default)


def locate(source: str) -> str:
    """Return a URL as it is, and a path as an absolute one."""
    return source if "://" in source else str(data_root() / source)


def shown(url: str) -> str:
    """Return a URL for messages: without user, password and query, where secrets may stand."""
    try:
        parts = urlsplit(url)
    except ValueError:  # brackets that hold no address; what is a password in there cannot be told
        scheme, there, _ = url.partition("://")
        return f"{scheme}://(no valid URL)" if there else url
    if not parts.scheme or not parts.netloc:
        return url
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def expand(source: str | list[str]) -> list[str]:
    """Return the files that a source means, sorted within each part of it.

    A folder or prefix ending in a slash means all files below it, but for those whose name starts with a dot or an
    underscore (markers of other tools); ``*``, ``?`` and ``[...]`` match names.

    Raises
    ------
    InputError
        If nothing matches, or if the place cannot be reached.
    """
    if isinstance(source, list):
        return [url for part in source for url in expand(part)]
    url = locate(source)
    if is_web(url):
        return [url]
    with explained(url, "read"):
        fs, path = open_fs(url)
        found = retried(lambda: _found(fs, path, url.endswith("/")))
    if found is None:
        return [url]
    if not found:
        raise InputError(f"nothing matches {shown(url)}: there is no file to read")
    return [fs.unstrip_protocol(p) for p in sorted(found)]


def _found(fs: Any, path: str, folder: bool) -> list[str] | None:
    """Return the files that a pattern or a folder means; None where the path is a file's own, if anything's."""
    if any(c in path for c in "*?["):
        return [p for p in fs.glob(path) if not fs.isdir(p)]
    if folder or fs.isdir(path):
        return [p for p in fs.find(path) if not _marker(p.removeprefix(path))]
    return None


def _marker(path: str) -> bool:
    """Tell whether a path below a folder is no data: a hidden file, one like ``_SUCCESS``, or S3's mark of a folder."""
    return path.endswith("/") or any(part[:1] in (".", "_") for part in path.split("/") if part)


def is_web(url: str) -> bool:
    """Tell whether a URL is one of the web, where files are downloaded and folders cannot be listed."""
    return url.startswith(("https://", "http://"))


def read_bytes(url: str, sha256: str | None = None) -> bytes:
    """Return the bytes of a file as they are stored; a file of the web comes by way of the download cache.

    Raises
    ------
    InputError
        If the file is missing, empty or unreadable, or the place cannot be reached.
    """
    with explained(url, "read"):
        fs, path = open_fs(url)
        if is_web(url):
            data = retried(lambda: fetch(url, sha256, lambda to: fs.get_file(path, to))).read_bytes()
        elif is_s3(url):
            data = retried(lambda: s3.read(fs, path)[0])
        else:
            data = fs.cat_file(path)
    if not data:
        raise InputError(f"{shown(url)} is empty")
    return data


def stat(url: str) -> Stat:
    """Return the size of a file and what tells this version of it from another.

    Raises
    ------
    InputError
        If the file is missing, or the place cannot be reached.
    """
    with explained(url, "read"):
        fs, path = open_fs(url)
        info = retried(lambda: fs.info(path))
        if info["type"] == "directory":
            raise FileNotFoundError
    tag = info.get("ETag") or (f"{info['mtime']:.6f}" if "mtime" in info else "")
    return Stat(int(info["size"] or 0), str(tag).strip('"'))


def read_range(url: str, start: int, end: int, version: Stat | None = None) -> bytes:
    """Return the bytes from `start` to before `end`, or to the end of the file where it is shorter.

    Parameters
    ----------
    url : str
    start, end : int
        Counted from 0.
    version : Stat, optional
        What `stat` told of the file: the bytes must still belong to it. Files of the web are not checked.

    Raises
    ------
    InputError
        If the file is missing or has changed, or the place cannot be reached.
    """
    if end <= start:
        return b""
    with explained(url, "read"):
        fs, path = open_fs(url)
        if is_s3(url):
            data, etag = retried(lambda: s3.read(fs, path, start, end))
        else:
            data, etag = retried(lambda: fs.cat_file(path, start, end)), "" if is_web(url) else stat(url).etag
    if version is not None and etag and etag != version.etag:
        raise InputError(f"{shown(url)} has changed since it was first read: start again when it is complete")
    return bytes(data)


def write_bytes(url: str, data: bytes) -> None:
    """Write a file so that it is there whole or not at all; folders are made.

    A local file is written aside and renamed; object stores show an object only when all of it has arrived.

    Raises
    ------
    InputError
        If the place is not writable or cannot be reached.
    """
    with explained(url, "write"):
        fs, path = open_fs(url)
        if "file" in fs.protocol:
            with _aside(Path(path), data) as aside:
                aside.replace(path)
        elif is_s3(url):
            retried(lambda: s3.write(fs, path, data))
        else:
            fs.pipe_file(path, data)


def create_bytes(url: str, data: bytes) -> bool:
    """Write a small file unless there is one of that name, and tell whether it now has these bytes.

    Of several writers one wins, and all of them learn which. S3 holds this for objects of one part and buckets without
    versions; other stores than S3 and local files cannot hold it.

    Raises
    ------
    InputError
        If the place is not writable or cannot be reached.
    """
    with explained(url, "write"):
        fs, path = open_fs(url)
        if is_s3(url):
            return retried(lambda: s3.create(fs, path, data))
        if "file" not in fs.protocol:
            raise InputError(
                f"{shown(url)}: only on S3 and local disks can a file be written that must not be there yet"
            )
        with _aside(Path(path), data) as aside:
            try:
                Path(path).hardlink_to(aside)
            except FileExistsError:
                return Path(path).read_bytes() == data
    return True


def exists(url: str) -> bool:
    """Tell whether there is a file or a folder.

    Raises
    ------
    InputError
        If the place cannot be reached.
    """
    with explained(url, "read"):
        fs, path = open_fs(url)
        return bool(retried(lambda: fs.exists(path)))


def is_vacant(url: str) -> bool:
    """Tell whether nothing is in a folder, or there is none.

    Raises
    ------
    InputError
        If the place cannot be reached.
    """
    with explained(url, "read"):
        fs, path = open_fs(url)
        return not retried(lambda: fs.exists(path) and fs.find(path))


def names_in(url: str) -> list[str]:
    """Return the names of what lies directly in a folder, sorted; none where there is no folder.

    Raises
    ------
    InputError
        If the place cannot be reached.
    """
    with explained(url, "read"):
        fs, path = open_fs(url)
        try:
            found = retried(lambda: fs.ls(path, detail=False))
        except FileNotFoundError:
            return []
        return sorted(place.rstrip("/").rpartition("/")[2] for place in found)


def remove(url: str) -> None:
    """Remove a file, or a folder with all that is in it, if it is there.

    Raises
    ------
    InputError
        If it cannot be removed, or the place cannot be reached.
    """
    with explained(url, "write"):
        fs, path = open_fs(url)
        if retried(lambda: fs.exists(path)):
            retried(lambda: fs.rm(path, recursive=True))


def remove_files(folder: str, names: Sequence[str]) -> None:
    """Remove some files of a folder, as far as they are there, and then the folder if it is empty.

    Folders and links are not followed: what is in another folder stays.

    Raises
    ------
    InputError
        If a file cannot be removed, or the folder cannot be reached.
    """
    with explained(folder, "write"):
        fs, path = open_fs(folder)
        if "file" in fs.protocol:
            for name in names:
                file = Path(path, name)
                if file.is_symlink() or not file.is_dir():
                    file.unlink(missing_ok=True)
            with suppress(OSError):  # something else is in it, or another run has removed it
                Path(path).rmdir()
        elif names:
            retried(lambda: fs.rm([f"{path}/{name}" for name in names]))


def refuse_link(folder: str) -> None:
    """Do nothing unless a folder is a link to another one, in which nothing should be written or removed.

    Raises
    ------
    InputError
        If it is.
    """
    fs, path = open_fs(folder)
    if "file" in fs.protocol and Path(path).is_symlink():
        raise InputError(f"{shown(folder)} is a link to another folder: remove it")


@contextmanager
def _aside(target: Path, data: bytes) -> Iterator[Path]:
    """Write the bytes to a file beside the target, which is gone in the end, or after a kill is one that nobody reads."""
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = target.with_name(f".{uuid.uuid4().hex}.part")
    try:
        aside.write_bytes(data)
        yield aside
    finally:
        aside.unlink(missing_ok=True)


def is_s3(url: str) -> bool:
    """Tell whether a URL is one of S3."""
    return url.startswith(tuple(f"{scheme}://" for scheme in s3.SCHEMES))


def open_fs(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, with short time-outs, and the path on it.

    Raises
    ------
    InputError
        If nothing here can open such a URL.
    """
    scheme = url.split("://", 1)[0] if "://" in url else "file"
    if scheme in s3.SCHEMES:
        load_optional("s3fs")
        known = s3.options(urlsplit(url).netloc)
    else:
        known = _web_options() if is_web(url) else {}
    try:
        fs, path = fsspec.url_to_fs(url, **known)
    except (ValueError, ImportError):
        raise InputError(
            f"{shown(url)}: URLs of {scheme}:// cannot be opened; use a path, file://, s3:// or https://"
        ) from None
    if scheme in s3.SCHEMES:
        fs.retries = 1  # tries of s3fs, which know no jitter
    return fs, path


def _denied() -> Exceptions:
    return (PermissionError, *loaded(BOTO, *NO_IDENTITY))


def _unreachable() -> Exceptions:
    return (*loaded(BOTO, "BotoCoreError"), *loaded(AIOHTTP, "ClientError"), TimeoutError, ConnectionError)


def _web_options() -> dict[str, Any]:
    """Return how to connect to a web server, as fsspec takes it."""
    timeout = load_optional("aiohttp").ClientTimeout(
        total=None, sock_connect=s3.CONNECT_SECONDS, sock_read=s3.READ_SECONDS
    )
    return {"client_kwargs": {"timeout": timeout, "trust_env": True}}


@contextmanager
def explained(url: str, what: str) -> Iterator[None]:
    """Turn what a file system raises into an `InputError`. Its own text is left out where it could hold a secret."""
    name = shown(url)
    remote = "://" in url and not url.startswith("file://")
    try:
        yield
    except InputError:
        raise
    except FileNotFoundError as e:
        hint = "no such bucket" if code_of(e.__cause__) == "NoSuchBucket" else "no such file or folder"
        root = "" if remote or what == "write" else f" (relative paths lie below AUCDIST_DATA, here {data_root()})"
        raise InputError(f"cannot {what} {name}: {hint}{root}") from None
    except _denied() as e:
        hint = "check the credentials (environment or profile) and the rights" if remote else "check its permissions"
        raise InputError(f"cannot {what} {name}: access denied ({type(e).__name__}); {hint}") from None
    except loaded(BOTO, "ClientError") as e:
        code = response_of(e).get("Error", {}).get("Code", "unknown")
        raise InputError(f"cannot {what} {name}: the server answered {code}") from None
    except loaded(AIOHTTP, "ClientResponseError") as e:
        raise InputError(f"cannot {what} {name}: the server answered {getattr(e, 'status', '?')}") from None
    except loaded(BOTO, "FlexibleChecksumError"):
        raise InputError(f"cannot {what} {name}: what arrives has not the checksum that it was stored with") from None
    except _unreachable() as e:
        at = shown(str(getattr(e, "kwargs", {}).get("endpoint_url", "")))
        raise InputError(
            f"cannot {what} {name}: {at or 'the server'} cannot be reached ({type(e).__name__}); "
            "check the address and the network"
        ) from None
    except s3.Changed:
        raise InputError(f"cannot {what} {name}: it changed meanwhile; try again when nothing writes to it") from None
    except OSError as e:
        answer = code_of(e.__cause__)
        reason = f"the server answered {answer}" if answer else os.strerror(e.errno) if e.errno else type(e).__name__
        raise InputError(f"cannot {what} {name}: {reason}") from None

"""Bytes in and out, by path or URL: which files a source means, what is in them, and errors that say what to do."""

import bz2
import gzip
import lzma
import os
import uuid
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import aiohttp
import fsspec
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError  # type: ignore[import-untyped]

from aucdist.data.download import fetch
from aucdist.errors import InputError

# Nobody should wait for a minute to learn that an address is wrong.
CONNECT_SECONDS, READ_SECONDS = 3, 10
OPTIONS: dict[str, dict[str, Any]] = {
    "s3": {
        "use_listings_cache": False,
        "config_kwargs": {
            "connect_timeout": CONNECT_SECONDS,
            "read_timeout": READ_SECONDS,
            "retries": {"total_max_attempts": 2, "mode": "standard"},
        },
    },
    "https": {
        "client_kwargs": {
            "timeout": aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=READ_SECONDS),
            "trust_env": True,
        }
    },
}
OPTIONS["s3a"] = OPTIONS["s3"]
OPTIONS["http"] = OPTIONS["https"]
DECOMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.decompress,
    ".bz2": bz2.decompress,
    ".xz": lzma.decompress,
}


def data_root() -> Path:
    """Return the folder below which relative paths lie: AUCDIST_DATA, or ``../shared/data`` beside the checkout."""
    default = Path(__file__).resolve().parents[3] / "shared" / "data"
    return Path(os.environ.get("AUCDIST_DATA") or default)


def locate(source: str) -> str:
    """Return a URL as it is, and a path as an absolute one."""
    return source if "://" in source else str(data_root() / source)


def shown(url: str) -> str:
    """Return a URL for messages: without user, password and query, where secrets may stand."""
    parts = urlsplit(url)
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
        if any(c in path for c in "*?["):
            found = [p for p in fs.glob(path) if not fs.isdir(p)]
        elif url.endswith("/") or fs.isdir(path):
            found = [p for p in fs.find(path) if not _marker(p.removeprefix(path))]
        else:
            return [url]
    if not found:
        raise InputError(f"nothing matches {shown(url)}: there is no file to read")
    return [fs.unstrip_protocol(p) for p in sorted(found)]


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
        if is_web(url):
            fs, path = open_fs(url)
            data = fetch(url, sha256, lambda target: fs.get_file(path, target)).read_bytes()
        else:
            fs, path = open_fs(url)
            data = fs.cat_file(path)
    if not data:
        raise InputError(f"{shown(url)} is empty")
    return bytes(data)


def unpacked(data: bytes, url: str) -> bytes:
    """Return what is in a file: decompressed if its name ends in .gz, .bz2 or .xz, and without a byte order mark.

    Raises
    ------
    InputError
        If the file is truncated or damaged, or if nothing is in it.
    """
    unpack = DECOMPRESS.get(Path(urlsplit(url).path).suffix)
    if unpack is not None:
        try:
            data = unpack(data)
        except (OSError, EOFError, ValueError, lzma.LZMAError, zlib.error) as e:
            raise InputError(f"{shown(url)} is truncated or damaged: {e}") from None
    data = data.removeprefix(b"\xef\xbb\xbf")
    if not data or data.isspace():
        raise InputError(f"{shown(url)} is empty")
    return data


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
        if "file" not in fs.protocol:
            fs.pipe_file(path, data)
            return
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = target.with_name(f".{uuid.uuid4().hex}.part")
        try:
            aside.write_bytes(data)
            aside.replace(target)
        finally:
            aside.unlink(missing_ok=True)


def open_fs(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, with short time-outs, and the path on it.

    Raises
    ------
    InputError
        If nothing here can open such a URL.
    """
    scheme = url.split("://", 1)[0] if "://" in url else "file"
    try:
        fs, path = fsspec.url_to_fs(url, **OPTIONS.get(scheme, {}))
    except (ValueError, ImportError):
        raise InputError(
            f"{shown(url)}: URLs of {scheme}:// cannot be opened; use a path, file://, s3:// or https://"
        ) from None
    if scheme in ("s3", "s3a"):
        fs.retries = 1  # tries of s3fs, each of which is `total_max_attempts` tries of botocore
    return fs, path


@contextmanager
def explained(url: str, what: str) -> Iterator[None]:
    """Turn what a file system raises into an `InputError`. Its own text is left out where it could hold a secret."""
    name = shown(url)
    remote = "://" in url and not url.startswith("file://")
    try:
        yield
    except InputError:
        raise
    except FileNotFoundError:
        hint = "no such file, folder or bucket" if remote else "no such file or folder"
        root = "" if remote or what == "write" else f" (relative paths lie below AUCDIST_DATA, here {data_root()})"
        raise InputError(f"cannot {what} {name}: {hint}{root}") from None
    except (PermissionError, NoCredentialsError) as e:
        hint = "check the credentials (environment or profile) and the rights" if remote else "check its permissions"
        raise InputError(f"cannot {what} {name}: access denied ({type(e).__name__}); {hint}") from None
    except ClientError as e:
        code = e.response.get("Error", {}).get("Code", "unknown")
        raise InputError(f"cannot {what} {name}: the server answered {code}") from None
    except aiohttp.ClientResponseError as e:
        raise InputError(f"cannot {what} {name}: the server answered {e.status}") from None
    except (BotoCoreError, aiohttp.ClientError, TimeoutError, ConnectionError) as e:
        at = shown(str(getattr(e, "kwargs", {}).get("endpoint_url", "")))
        raise InputError(
            f"cannot {what} {name}: {at or 'the server'} cannot be reached ({type(e).__name__}); "
            "check the address and the network"
        ) from None
    except OSError as e:
        reason = os.strerror(e.errno) if e.errno else type(e).__name__
        raise InputError(f"cannot {what} {name}: {reason}") from None

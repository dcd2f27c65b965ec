"""S3 connections, and two operations that s3fs lacks: reading one version of an object, and writing without replacing.

botocore finds the credentials in the environment, the profile, or the identity of the pod or machine. No function here takes,
keeps or shows credentials. All other settings come from the environment as well, so that workers get them from the run that
starts them: AWS_ENDPOINT_URL, AWS_DEFAULT_REGION and AWS_PROFILE as in other tools, and

* AUCDIST_S3_ANONYMOUS: buckets that are read without credentials, separated by commas;
* AUCDIST_S3_REQUESTER_PAYS: buckets whose owner makes the reader pay.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

from fsspec.asyn import sync

from aucdist.data.storage.faults import BadAnswer, ObjectChanged, code_of
from aucdist.data.storage.guard import MIN_BYTES_PER_SECOND, Progress, check_fits, watched
from aucdist.data.storage.urls import shown
from aucdist.data.storage.web import CONNECT_SECONDS, READ_SECONDS
from aucdist.errors import InputError

PART = 16 * 2**20  # the bytes of a part; S3 accepts 10 000 parts, so 160 GB in one object
PARTS_AT_ONCE = 4
BYTES_AT_ONCE = 2**20
MAX_LISTED = 10**6
"""The largest number of objects in a listing."""
ALWAYS_ALLOWED_PAGES = 100
"""The number of pages that a listing may always have."""
MIN_OBJECTS_PER_PAGE = 100
"""A listing may have more pages if it has at least this many objects per page."""


def s3_options(bucket: str) -> dict[str, Any]:
    """Return the options of s3fs, without credentials, which botocore finds."""
    return {
        "anon": bucket in _buckets("AUCDIST_S3_ANONYMOUS"),
        "requester_pays": bucket in _buckets("AUCDIST_S3_REQUESTER_PAYS"),
        "use_listings_cache": False,
        "max_concurrency": PARTS_AT_ONCE,
        "config_kwargs": {
            "connect_timeout": CONNECT_SECONDS,
            "read_timeout": READ_SECONDS,
            # These are quick retries of single requests. `retried` handles longer faults.
            "retries": {"total_max_attempts": 2, "mode": "standard"},
        },
    }


def _buckets(variable: str) -> set[str]:
    return {name.strip() for name in os.environ.get(variable, "").split(",")} - {""}


def read_object(fs: Any, path: str, start: int = 0, end: int | None = None) -> tuple[bytes, str]:
    """Return the bytes from `start` up to `end` (exclusive) of an object, and its ETag. Large ranges are read in parallel.

    Raises
    ------
    ObjectChanged
        If the object was replaced between two parts.
    """
    data, etag = sync(fs.loop, _read, fs, path, start, end)
    return data, etag


async def _read(fs: Any, path: str, start: int, end: int | None) -> tuple[bytes, str]:
    bucket, key, version = fs.split_path(path)
    names = {"Bucket": bucket, "Key": key} | ({"VersionId": version} if version else {})

    async def part(first: int, last: int) -> tuple[bytes, str, int]:
        """Return a range of the object, its ETag, and the size of the object."""
        progress = Progress()
        answer = await watched(fs._call_s3("get_object", **names, Range=f"bytes={first}-{last - 1}"), progress)

        async def received(body: Any) -> bytes:
            """Read the body of an answer, which must not be longer than requested."""
            data = bytearray()
            while chunk := await body.read(BYTES_AT_ONCE):  # after the last chunk, the client compares the checksum
                data += chunk
                progress.add(len(chunk))
                if len(data) > last - first:
                    raise BadAnswer(f"more than the {last - first} bytes that were asked for")
            return bytes(data)

        async with answer["Body"] as body:
            data = await watched(received(body), progress)
        size = _size(answer, len(data))
        if len(data) != min(last, size) - first:
            raise BadAnswer(f"{len(data)} bytes where {last - first} were asked for")
        return data, str(answer.get("ETag", "")).strip('"'), size

    first_end = start + PART if end is None else min(end, start + PART)
    try:
        data, etag, size = await part(start, first_end)
    except OSError as e:
        if code_of(e.__cause__) == "InvalidRange":  # The object is empty, or has nothing after `start`.
            return b"", ""
        raise
    stop = size if end is None else min(end, size)
    check_fits(stop - start, f"s3://{bucket}/{key}")
    pieces = [data]
    for first in range(first_end, stop, PART * PARTS_AT_ONCE):
        group = range(first, min(first + PART * PARTS_AT_ONCE, stop), PART)
        for piece, tag, _ in await asyncio.gather(*(part(p, min(p + PART, stop)) for p in group)):
            if tag != etag:
                raise ObjectChanged
            pieces.append(piece)
    return b"".join(pieces), etag


def _size(answer: Any, n_bytes: int) -> int:
    """Return the size of an object from an answer, which states it if only a part was sent."""
    stated = answer.get("ContentRange")
    if stated is None:
        return n_bytes
    size = str(stated).rpartition("/")[2]
    if not size.isascii() or not size.isdigit():
        raise BadAnswer(f"Content-Range {str(stated)[:80]!r}")
    return int(size)


async def pages(fs: Any, method: str, **names: Any) -> AsyncIterator[dict[str, Any]]:
    """Yield the pages of a listing, as s3fs does, but stop if a server announces further pages without an end.

    Raises
    ------
    BadAnswer
        If the pages repeat or are nearly empty.
    InputError
        If more than `MAX_LISTED` objects are listed.
    """
    progress, n_pages, n_listed, before = Progress(), 0, 0, ""
    async for page in type(fs)._list_pages(fs, method, **names):
        keys = [entry.get("Key", "") for kind in ("Contents", "Versions") for entry in page.get(kind) or []]
        n_pages, n_new = n_pages + 1, len(keys) + len(page.get("CommonPrefixes") or [])
        n_listed += n_new
        if n_listed > MAX_LISTED:
            raise InputError(
                f"{shown('s3://' + str(names.get('Bucket')))} lists more than {MAX_LISTED:,} objects below this path: "
                "name a narrower one"
            )
        if (keys and keys[0] == before) or n_pages > ALWAYS_ALLOWED_PAGES + n_listed / MIN_OBJECTS_PER_PAGE:
            raise BadAnswer("its listing has no end")
        before = keys[0] if keys else before
        progress.add(MIN_BYTES_PER_SECOND * n_new)
        yield page


def create(fs: Any, path: str, data: bytes) -> bool:
    """Create a small object unless it exists, and return whether it now has these bytes."""
    try:
        fs.pipe_file(path, data, mode="create")
    except OSError as e:
        if not isinstance(e, FileExistsError) and code_of(e.__cause__) not in ("PreconditionFailed", "412"):
            raise
        # The object may come from an earlier attempt whose answer was lost.
        return read_object(fs, path)[0] == data
    return True

"""S3: how to connect, and what s3fs leaves open: reads that belong to one version of an object, and writes that never replace.

Credentials are found by botocore, which looks at the environment, the profile, and the identity of the pod or machine; no
function here takes, keeps or shows one. Everything else comes from the environment too, so that the workers a run starts have
it from the run: AWS_ENDPOINT_URL, AWS_DEFAULT_REGION and AWS_PROFILE as everywhere, and

* AUCDIST_S3_ANONYMOUS: buckets that are read without credentials, separated by commas;
* AUCDIST_S3_REQUESTER_PAYS: buckets whose owner lets the reader pay.
"""

import asyncio
import os
from typing import Any

import fsspec
from fsspec.asyn import sync

from aucdist.data.storage.retries import code_of

# Nobody should wait for a minute to learn that an address is wrong.
CONNECT_SECONDS, READ_SECONDS = 3, 10
PART = 16 * 2**20  # of an object, for each of PARTS_AT_ONCE requests; S3 takes 10 000 parts, so 160 GB in one object
PARTS_AT_ONCE = 4
SCHEMES = ("s3", "s3a")


class Changed(Exception):
    """An object is not the one it was when its first bytes were read."""


def options(bucket: str) -> dict[str, Any]:
    """Return how to connect, as s3fs takes it; without credentials, which are botocore's to find."""
    return {
        "anon": bucket in _buckets("AUCDIST_S3_ANONYMOUS"),
        "requester_pays": bucket in _buckets("AUCDIST_S3_REQUESTER_PAYS"),
        "use_listings_cache": False,
        "max_concurrency": PARTS_AT_ONCE,
        "config_kwargs": {
            "connect_timeout": CONNECT_SECONDS,
            "read_timeout": READ_SECONDS,
            # Quick tries of each request, parts of an object among them; `retries` waits out what lasts longer.
            "retries": {"total_max_attempts": 2, "mode": "standard"},
        },
    }


def forget_connections() -> None:
    """Connect anew from now on: s3fs keeps connections, whatever the environment has become."""
    fsspec.get_filesystem_class("s3").clear_instance_cache()


def _buckets(variable: str) -> set[str]:
    return {name.strip() for name in os.environ.get(variable, "").split(",")} - {""}


def read(fs: Any, path: str, start: int = 0, end: int | None = None) -> tuple[bytes, str]:
    """Return the bytes from `start` to before `end` of an object, and its ETag; large ones come in several parts at once.

    Raises
    ------
    Changed
        If the object was replaced between two parts.
    """
    data, etag = sync(fs.loop, _read, fs, path, start, end)
    return data, etag


async def _read(fs: Any, path: str, start: int, end: int | None) -> tuple[bytes, str]:
    bucket, key, version = fs.split_path(path)
    place = {"Bucket": bucket, "Key": key} | ({"VersionId": version} if version else {})
    at_once = asyncio.Semaphore(PARTS_AT_ONCE)

    async def part(first: int, last: int) -> tuple[bytes, str, int]:
        async with at_once:
            answer = await fs._call_s3("get_object", **place, Range=f"bytes={first}-{last - 1}")
            async with answer["Body"] as body:
                return await body.read(), answer["ETag"].strip('"'), int(answer["ContentRange"].rpartition("/")[2])

    first_end = start + PART if end is None else min(end, start + PART)
    try:
        data, etag, size = await part(start, first_end)
    except OSError as e:
        if code_of(e.__cause__) == "InvalidRange":  # an empty object, or nothing after `start`
            return b"", ""
        raise
    stop = size if end is None else min(end, size)
    rest = await asyncio.gather(*(part(p, min(p + PART, stop)) for p in range(first_end, stop, PART)))
    if any(tag != etag for _, tag, _ in rest):
        raise Changed
    return b"".join([data, *(chunk for chunk, _, _ in rest)]), etag


def write(fs: Any, path: str, data: bytes) -> None:
    """Write an object: a large one in parts, of which nothing shows unless all of them have arrived."""
    fs.pipe_file(path, data, chunksize=PART)


def create(fs: Any, path: str, data: bytes) -> bool:
    """Write a small object unless there is one, and tell whether it is there with these bytes, ours or another's."""
    try:
        fs.pipe_file(path, data, mode="create")
    except OSError as e:
        if not isinstance(e, FileExistsError) and code_of(e.__cause__) not in ("PreconditionFailed", "412"):
            raise
        # It may be ours all the same: a try that was answered too late, or not at all.
        return read(fs, path)[0] == data
    return True

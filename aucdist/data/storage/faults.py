"""Errors of file systems and stores: which errors a retry may avoid, and how to explain the others.

The exceptions of S3 and web clients are looked up by name, so that clients that are not in use need not be imported.
"""

import errno
import logging
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from socket import gaierror
from typing import Any, ParamSpec, TypeVar

from aucdist.data.storage.guard import MIN_BYTES_PER_SECOND, TooSlow
from aucdist.data.storage.urls import shown
from aucdist.errors import InputError, RunError

BOTO, AIOHTTP = "botocore.exceptions", "aiohttp"

Exceptions = tuple[type[BaseException], ...]
P = ParamSpec("P")
T = TypeVar("T")

RETRY_SECONDS = 5.0
"""The number of seconds after the first failure for which a call is repeated. A user should not wait long to learn that an
address is wrong."""
LONG_RETRY_SECONDS = 90.0
"""The number of seconds within `long_retries`. A run should not be lost because a server is restarted."""

FIRST_WAIT, MAX_WAIT = 0.1, 5.0
DISK_FULL_ERRORS = errno.ENOSPC, errno.EDQUOT
"""The errors that mean that a disk or a quota is full."""
BUSY_STATUS = {429, 500, 502, 503, 504}
BUSY_CODES = {"SlowDown", "RequestTimeout", "ConditionalRequestConflict"}

_log = logging.getLogger(__name__)
_random = random.Random()  # a separate generator, so that seeded random numbers do not depend on the network
_retries_are_long: ContextVar[bool] = ContextVar("retries_are_long", default=False)
NO_IDENTITY = ("NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError", "ProfileNotFound")
"""Exceptions of botocore about missing or incomplete credentials."""


def loaded(module: str, *names: str) -> Exceptions:
    """Return exception classes of a module for an ``except`` clause. There are none if the module has not been imported."""
    imported = sys.modules.get(module)
    return () if imported is None else tuple(getattr(imported, name) for name in names)


class StorageError(InputError):
    """A file or a store cannot be read or written. The data may be valid, and a later attempt may succeed."""


class ObjectChanged(Exception):
    """An object was replaced while it was read."""


class BadAnswer(Exception):
    """The answer of a server violates the protocol of S3."""


@contextmanager
def long_retries() -> Iterator[None]:
    """Use the longer time limit for retries in this context, because an error would end a run."""
    token = _retries_are_long.set(True)
    try:
        yield
    finally:
        _retries_are_long.reset(token)


def retried(function: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """Return the result of a function. After a temporary error, the function is called again.

    The wait is drawn between 0 and a limit that doubles each time, so that many workers do not retry at the same moment.
    """
    limit, deadline = FIRST_WAIT, None
    while True:
        try:
            return function(*args, **options)
        except Exception as error:
            now, wait = time.monotonic(), _random.uniform(0.0, limit)
            deadline = deadline or now + (LONG_RETRY_SECONDS if _retries_are_long.get() else RETRY_SECONDS)
            if not may_pass(error) or now + wait > deadline:
                raise
            _log.info("%s; trying again in %.1f s", type(error).__name__, wait)
        time.sleep(wait)
        limit = min(2.0 * limit, MAX_WAIT)


def may_pass(error: BaseException) -> bool:
    """Return whether a retry may succeed after this error of a store."""
    if isinstance(error, loaded(AIOHTTP, "ClientResponseError")):
        return getattr(error, "status", None) in BUSY_STATUS
    # s3fs converts answers of the server to built-in exceptions. The cause of these has the answer.
    server_error = loaded(BOTO, "ClientError")
    answered = error if isinstance(error, server_error) else error.__cause__
    if isinstance(answered, server_error):
        status = response_of(answered).get("ResponseMetadata", {}).get("HTTPStatusCode")
        return status in BUSY_STATUS or code_of(answered) in BUSY_CODES
    if isinstance(error, loaded(BOTO, "SSLError") + loaded(AIOHTTP, "ClientSSLError")):
        return False
    s3_errors = loaded(BOTO, "ConnectionError", "HTTPClientError", "IncompleteReadError", "FlexibleChecksumError")
    web_errors = loaded(AIOHTTP, "ClientPayloadError", "ClientConnectionError")
    return isinstance(error, (*s3_errors, *web_errors, ConnectionError, TimeoutError))


def response_of(error: BaseException | None) -> dict[str, Any]:
    """Return the answer of an S3 server. It is empty if the error is not an answer."""
    return dict(getattr(error, "response", {})) if isinstance(error, loaded(BOTO, "ClientError")) else {}


def code_of(error: BaseException | None) -> str:
    """Return the code in the answer of a server, such as ``NoSuchKey``. It is empty if there was no answer."""
    return str(response_of(error).get("Error", {}).get("Code", ""))


@contextmanager
def storage_errors(url: str, action: str) -> Iterator[None]:
    """Convert exceptions of file systems to StorageErrors, without texts that could contain a secret.

    A full disk becomes a RunError, because the input is not wrong.
    """
    remote = "://" in url and not url.startswith("file://")
    try:
        yield
    except InputError:
        raise
    except Exception as e:
        if (reason := _reason(e, remote)) is None:
            raise
        full = getattr(e, "errno", None) in DISK_FULL_ERRORS
        kind = RunError if full else StorageError
        raise kind(f"cannot {action} {shown(url)}: {reason}{'; make room' * full}") from None


def _reason(e: Exception, remote: bool) -> str | None:
    """Explain an exception of a file system or a store. Return None for other exceptions."""
    kind = type(e).__name__
    if isinstance(e, FileNotFoundError):
        return "no such bucket" if code_of(e.__cause__) == "NoSuchBucket" else "no such file or folder"
    if isinstance(e, (PermissionError, *loaded(BOTO, *NO_IDENTITY))):
        credentials = "the credentials (environment or profile) and" * remote
        return (
            f"access denied ({getattr(e.__cause__, 'operation_name', kind)}); check {credentials or 'its'} permissions"
        )
    if isinstance(e, loaded(BOTO, "ClientError") + loaded(AIOHTTP, "ClientResponseError")):
        return f"the server answered {code_of(e) or getattr(e, 'status', 'unknown')}"
    if isinstance(e, loaded(BOTO, "FlexibleChecksumError")):
        return "the data received do not match the stored checksum"
    if isinstance(e, TooSlow):
        return f"the server sends less than {MIN_BYTES_PER_SECOND} bytes a second"
    if isinstance(e, BadAnswer):
        return f"the server does not answer as S3 does ({e})"
    if isinstance(
        e, (*loaded(BOTO, "BotoCoreError"), *loaded(AIOHTTP, "ClientError"), TimeoutError, ConnectionError, gaierror)
    ):
        at = shown(str(getattr(e, "kwargs", {}).get("endpoint_url", "")))
        return f"{at or 'the server'} cannot be reached ({kind}); check the address and the network"
    if isinstance(e, ObjectChanged):
        return "it changed meanwhile; try again when nothing writes to it"
    if isinstance(e, FileExistsError | NotADirectoryError):
        return "one of its folders is a file; name a folder"
    if isinstance(e, OSError):
        answer = code_of(e.__cause__)
        return f"the server answered {answer}" if answer else os.strerror(e.errno) if e.errno else kind
    if "Invalid endpoint" in str(e):
        return "AWS_ENDPOINT_URL, or endpoint_url of the profile, is no address of a server, such as https://host:9000"
    if remote and isinstance(e, KeyError | ValueError | TypeError | AttributeError | IndexError):
        # Clients of stores parse headers and XML without checks, so an invalid answer may raise any exception.
        return f"the server's answer cannot be understood ({kind})"
    return None

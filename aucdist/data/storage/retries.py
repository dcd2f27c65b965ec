"""Another try where a store failed for the moment: it was busy, went away, or broke off in the middle."""

import logging
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

import aiohttp
from botocore import exceptions as boto  # type: ignore[import-untyped]

T = TypeVar("T")

OPENING, WORKING = 5.0, 90.0
"""Seconds after the first failure in which to try again: nobody should wait long to learn that an address is wrong, and no
run should be lost because a server was restarted."""

FIRST_WAIT, LONGEST_WAIT = 0.1, 5.0
BUSY = {429, 500, 502, 503, 504}
BUSY_CODES = {"SlowDown", "RequestTimeout", "ConditionalRequestConflict"}
GONE = (
    boto.ConnectionError, boto.HTTPClientError, boto.IncompleteReadError, boto.FlexibleChecksumError,
    aiohttp.ClientPayloadError, aiohttp.ClientConnectionError, ConnectionError, TimeoutError,
)  # fmt: skip
FOR_GOOD = (boto.SSLError, aiohttp.ClientSSLError)

_log = logging.getLogger(__name__)
_dice = random.Random()  # its own, so that nobody's seeded numbers depend on the network
_working: ContextVar[bool] = ContextVar("working", default=False)


@contextmanager
def patient() -> Iterator[None]:
    """Wait for a store as long as the work that depends on it is worth, not as long as a user at a prompt would."""
    token = _working.set(True)
    try:
        yield
    finally:
        _working.reset(token)


def retried(call: Callable[[], T]) -> T:
    """Return what a call returns, trying again after errors that may pass.

    The wait is drawn between 0 and a limit that doubles each time, so that many workers do not come back all at once.
    """
    limit, deadline = FIRST_WAIT, None
    while True:
        try:
            return call()
        except Exception as error:
            now, wait = time.monotonic(), _dice.uniform(0.0, limit)
            deadline = deadline or now + (WORKING if _working.get() else OPENING)
            if not may_pass(error) or now + wait > deadline:
                raise
            _log.info("%s; trying again in %.1f s", type(error).__name__, wait)
        time.sleep(wait)
        limit = min(2.0 * limit, LONGEST_WAIT)


def may_pass(error: BaseException) -> bool:
    """Tell whether an error of a store is one that another try may not meet."""
    if isinstance(error, aiohttp.ClientResponseError):
        return error.status in BUSY
    # s3fs turns the server's answers into errors of Python's own, and keeps the answer as their cause.
    answered = error if isinstance(error, boto.ClientError) else error.__cause__
    if isinstance(answered, boto.ClientError):
        status = answered.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        return status in BUSY or code_of(answered) in BUSY_CODES
    return isinstance(error, GONE) and not isinstance(error, FOR_GOOD)


def code_of(error: BaseException | None) -> str:
    """Return the code in a server's answer, such as ``NoSuchKey``; empty where there was no answer."""
    return str(error.response.get("Error", {}).get("Code", "")) if isinstance(error, boto.ClientError) else ""

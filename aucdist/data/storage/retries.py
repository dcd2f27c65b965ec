"""Another try where a store failed for the moment: it was busy, went away, or broke off in the middle."""

import logging
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from aucdist.data.storage.network_errors import AIOHTTP, BOTO, Exceptions, loaded

T = TypeVar("T")

OPENING, WORKING = 5.0, 90.0
"""Seconds after the first failure in which to try again: nobody should wait long to learn that an address is wrong, and no
run should be lost because a server was restarted."""

FIRST_WAIT, LONGEST_WAIT = 0.1, 5.0
BUSY = {429, 500, 502, 503, 504}
BUSY_CODES = {"SlowDown", "RequestTimeout", "ConditionalRequestConflict"}

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
    if isinstance(error, loaded(AIOHTTP, "ClientResponseError")):
        return getattr(error, "status", None) in BUSY
    # s3fs turns the server's answers into errors of Python's own, and keeps the answer as their cause.
    server_error = loaded(BOTO, "ClientError")
    answered = error if isinstance(error, server_error) else error.__cause__
    if isinstance(answered, server_error):
        status = response_of(answered).get("ResponseMetadata", {}).get("HTTPStatusCode")
        return status in BUSY or code_of(answered) in BUSY_CODES
    return isinstance(error, _lost_connection()) and not isinstance(error, _bad_certificate())


def _lost_connection() -> Exceptions:
    of_s3 = loaded(BOTO, "ConnectionError", "HTTPClientError", "IncompleteReadError", "FlexibleChecksumError")
    of_web = loaded(AIOHTTP, "ClientPayloadError", "ClientConnectionError")
    return (*of_s3, *of_web, ConnectionError, TimeoutError)


def _bad_certificate() -> Exceptions:
    return loaded(BOTO, "SSLError") + loaded(AIOHTTP, "ClientSSLError")


def response_of(error: BaseException | None) -> dict[str, Any]:
    """Return what an S3 server answered; empty where the error is not an answer."""
    return dict(getattr(error, "response", {})) if isinstance(error, loaded(BOTO, "ClientError")) else {}


def code_of(error: BaseException | None) -> str:
    """Return the code in a server's answer, such as ``NoSuchKey``; empty where there was no answer."""
    return str(response_of(error).get("Error", {}).get("Code", ""))

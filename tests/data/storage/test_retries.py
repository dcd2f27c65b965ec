"""When to try again, how long to wait, and when to give up."""

import aiohttp
import pytest
from botocore import exceptions as boto

from aucdist.data.storage import faults
from aucdist.data.storage.faults import long_retries, may_pass, retried


class Clock:
    """Time that passes only in sleep."""

    def __init__(self, monkeypatch):
        self.now, self.waits = 0.0, []
        monkeypatch.setattr(faults.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(faults.time, "sleep", self.sleep)

    def sleep(self, seconds):
        self.now += seconds
        self.waits.append(seconds)


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def answered(code, status):
    return boto.ClientError({"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}, "GetObject")


def translated(code, status):
    error = OSError(16, "busy")
    error.__cause__ = answered(code, status)
    return error


def failing(times, error):
    left = [error] * times

    def call():
        if left:
            raise left.pop()
        return "done"

    return call


PASSING = {
    "slow down": answered("SlowDown", 503),
    "internal error, as s3fs words it": translated("InternalError", 500),
    "too many requests": answered("TooManyRequests", 429),
    "time-out reported by the server": translated("RequestTimeout", 400),
    "nobody listens": boto.EndpointConnectionError(endpoint_url="http://x", error="refused"),
    "no answer": boto.ReadTimeoutError(endpoint_url="http://x", error="late"),
    "body cut off": aiohttp.ClientPayloadError("short"),
    "reset": ConnectionResetError(),
    "damaged on the way": boto.FlexibleChecksumError(error_msg="crc"),
}
LASTING = {
    "no such key": translated("NoSuchKey", 404),
    "denied": answered("AccessDenied", 403),
    "wrong secret": PermissionError("no"),
    "no credentials": boto.NoCredentialsError(),
    "certificate": boto.SSLError(endpoint_url="https://x", error="self-signed"),
    "disk": OSError(28, "no space left"),
    "ours": ValueError("x"),
}


@pytest.mark.parametrize("error", PASSING.values(), ids=PASSING)
def test_transient_errors_are_tried_until_they_pass(clock, error):
    assert may_pass(error)
    assert retried(failing(5, error)) == "done"
    assert len(clock.waits) == 5


@pytest.mark.parametrize("error", LASTING.values(), ids=LASTING)
def test_permanent_errors_are_not_tried_again(clock, error):
    assert not may_pass(error)
    with pytest.raises(type(error)):
        retried(failing(1, error))
    assert clock.waits == []


def test_waits_are_drawn_below_a_limit_that_doubles_up_to_the_longest(clock):
    drawn = set()
    for _ in range(50):
        clock.waits.clear()
        with long_retries():
            retried(failing(8, ConnectionResetError()))
        limits = [min(faults.FIRST_WAIT * 2.0**k, faults.MAX_WAIT) for k in range(8)]
        assert all(0.0 <= wait <= limit for wait, limit in zip(clock.waits, limits, strict=True))
        drawn.update(clock.waits)
    assert len(drawn) == 400
    assert max(drawn) > 0.9 * faults.MAX_WAIT


def test_a_user_waits_for_seconds_and_a_fit_for_longer(clock):
    for patience, wait in ((faults.RETRY_SECONDS, retried), (faults.LONG_RETRY_SECONDS, long_retries()(retried))):
        start = clock.now
        with pytest.raises(ConnectionResetError):
            wait(failing(10**6, ConnectionResetError()))
        assert patience - faults.MAX_WAIT < clock.now - start <= patience

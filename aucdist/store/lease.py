"""One holder at a time of a store: a lease that is renewed while its holder lives, on a folder or S3.

``leases/00000007.json`` is the seventh lease: a file that is created once, so that of several that want it one has it. Its holder
rewrites ``00000007.alive`` again and again, and ends it by ``00000007.done``. A lease that is done, or was not renewed for a
while, because its holder was killed, makes way for the next number.
"""

import os
import re
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from pydantic import with_config
from pydantic_core import to_json
from typing_extensions import TypedDict

from aucdist.data.own_files import OPEN, read_json
from aucdist.data.storage import files
from aucdist.errors import InputError

LEASES = "leases"
RENEWED = 20.0
"""Seconds between two renewals."""
EXPIRED = 300.0
"""Seconds without a renewal after which a holder counts as dead. Clocks of machines may differ by less."""
LEASE = re.compile(r"([0-9]{8})\.json")


@with_config(OPEN)
class Alive(TypedDict):
    """The file of a sign of life."""

    time: float


class Holder(Alive):
    """The file of a lease."""

    what: str
    host: str
    process: int


@contextmanager
def lease(
    url: str, what: str, *, renewed: float = RENEWED, expired: float = EXPIRED, clock: Callable[[], float] = time.time
) -> Iterator["Lease"]:
    """Hold the lease of a store while the context lasts.

    `what`: who holds it, for the error of the others.
    `renewed` and `expired`: seconds, as the constants.
    `clock`: returns the time in seconds since 1970.
    Raises InputError if another one holds it.
    """
    held = _take(url.rstrip("/"), what, expired, clock)
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(renewed):
            with suppress(InputError):  # the store cannot be reached: the next renewal may
                held.renew()

    thread = threading.Thread(target=renew, daemon=True, name="lease")
    thread.start()
    try:
        yield held
    finally:
        ended.set()
        thread.join()
        with suppress(InputError):  # it expires then
            held.end()


class Lease:
    """A lease that this process holds."""

    def __init__(self, url: str, number: int, clock: Callable[[], float]):
        self.url, self.number, self._clock = url, number, clock

    def renew(self) -> None:
        """Say that the holder is alive."""
        files.write_bytes(f"{_at(self.url, self.number)}.alive", to_json({"time": self._clock()}))

    def end(self) -> None:
        """Make way for the next one."""
        files.write_bytes(f"{_at(self.url, self.number)}.done", b"done\n")

    def check(self) -> None:
        """Raise an InputError if another one has taken the lease, because this process did not renew it in time."""
        if max(_numbers(self.url), default=0) != self.number:
            raise InputError(
                f"another run has taken {files.shown(self.url)}, because this one did not renew its lease in time: nothing was "
                "changed after that"
            )


def _take(url: str, what: str, expired: float, clock: Callable[[], float]) -> Lease:
    last = max(_numbers(url), default=0)
    if last and not files.exists(f"{_at(url, last)}.done"):
        try:
            taken = read_json(f"{_at(url, last)}.json", Holder)
            alive = f"{_at(url, last)}.alive"
            seen = read_json(alive, Alive)["time"] if files.exists(alive) else taken["time"]
        except InputError as error:
            raise InputError(
                f"who holds {files.shown(url)} is unknown: {error}. If no run works on it, remove the file"
            ) from None
        if abs(clock() - seen) < expired:  # a time further in the future is no sign of life, either
            raise InputError(
                f"{files.shown(url)} is in use by {taken['what']} on {taken['host']} (process {taken['process']}): wait until it "
                f"has ended. If it was killed, this is so for {expired:g} seconds"
            )
    about = {
        "what": what, "host": socket.gethostname(), "process": os.getpid(), "time": clock(), "key": uuid.uuid4().hex,
    }  # fmt: skip
    if not files.create_bytes(f"{_at(url, last + 1)}.json", to_json(about)):
        raise InputError(f"{files.shown(url)} was taken by another run at the same moment: wait until it has ended")
    return Lease(url, last + 1, clock)


def _numbers(url: str) -> list[int]:
    return [int(lease[1]) for name in files.names_in(f"{url}/{LEASES}") if (lease := LEASE.fullmatch(name))]


def _at(url: str, number: int) -> str:
    return f"{url}/{LEASES}/{number:08d}"

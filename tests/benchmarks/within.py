"""A fit that is ended after so many CPU seconds: it runs in a copy of this process."""

import multiprocessing
import resource
import signal
import time
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from aucdist.errors import RunError

T = TypeVar("T")


def within(seconds: int, work: Callable[[], T]) -> T:
    """Return what a function returns, which is run in a copy of this process with its libraries loaded.

    Parameters
    ----------
    seconds : int
        CPU seconds after which the copy is ended.
    work : callable
        What it returns comes back pickled.

    Raises
    ------
    RunError
        If it has not ended by then, or failed.
    """
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(there, seconds, work))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python 3.12 warns of copies of a process with threads; this one needs none
        process.start()
    there.close()
    try:
        done, value = here.recv()
    except EOFError:
        done, value = False, None
    process.join()
    if done:
        return value  # type: ignore[no-any-return]
    late = process.exitcode == -signal.SIGXCPU
    raise RunError(f"not done in {seconds} CPU seconds" if late else value or f"its process ended: {process.exitcode}")


def _send(result: Connection, seconds: int, work: Callable[[], Any]) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    try:
        outcome = work()
    except Exception as error:  # of any library: the row says which
        result.send((False, f"{type(error).__name__}: {error}"))
    else:
        result.send((True, outcome))


def cpu_seconds() -> float:
    """Return the CPU seconds of this process, and of those of `within` that have ended."""
    copies = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + copies.ru_utime + copies.ru_stime

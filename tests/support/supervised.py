"""A cluster that somebody looks after: a scheduler and workers, each started again whenever it ends."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil

DASK = Path(sys.executable).with_name("dask")


def worker_command(address: str) -> list[str]:
    """Return the command of a worker with one thread."""
    return [
        str(DASK), "worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--death-timeout", "10",
    ]  # fmt: skip


@contextmanager
def started_worker(address: str, folder: Path) -> Iterator[None]:
    """Run one more worker, which nobody starts again, until it ends or the context does."""
    process = subprocess.Popen(
        worker_command(address), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        yield
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def supervised(
    folder: Path, host: str = "127.0.0.1", far: list[str] | None = None, workers: int = 2
) -> Iterator[tuple[dict[str, Any], Callable[[], int]]]:
    """Start a scheduler and workers, each started again whenever it ends, with whatever code; give their configuration.

    The last worker starts with the command `far`.
    """
    with socket.socket() as s:
        s.bind((host, 0))
        port = s.getsockname()[1]
    address = f"tcp://{host}:{port}"
    scheduler = [DASK, "scheduler", "--host", host, "--port", str(port), "--no-dashboard"]
    by_worker = [worker_command(address)] * workers
    if far:
        by_worker[-1] = [*far, *by_worker[-1]]
    with ExitStack() as stack:
        for command in (scheduler, *by_worker):
            process = subprocess.Popen(
                ["bash", "-c", 'while true; do "$@"; sleep 0.2; done', "-", *map(str, command)], cwd=folder,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
                env=os.environ | {"DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "15s"},
            )  # fmt: skip
            stack.callback(process.wait)
            stack.callback(os.killpg, process.pid, signal.SIGKILL)

        def pid_of_scheduler() -> int:
            for process in psutil.process_iter(["cmdline"]):
                line = process.info["cmdline"] or []
                if "scheduler" in line and str(port) in line and "bash" not in line[0]:
                    return int(process.pid)
            raise RuntimeError("no scheduler runs")

        yield {
            "kind": "address", "address": address, "scratch": str(folder / "scratch"), "workers": workers, "timeout": 60,
        }, pid_of_scheduler  # fmt: skip

"""A cluster that somebody looks after: a scheduler and two workers, each started again whenever it ends."""

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


@contextmanager
def supervised(
    folder: Path, host: str = "127.0.0.1", far: list[str] | None = None
) -> Iterator[tuple[dict[str, Any], Callable[[], int]]]:
    """Start a scheduler and two workers, each started again whenever it ends, with whatever code; give their configuration."""
    with socket.socket() as s:
        s.bind((host, 0))
        port = s.getsockname()[1]
    address = f"tcp://{host}:{port}"
    scheduler = [DASK, "scheduler", "--host", host, "--port", str(port), "--no-dashboard"]
    worker = [
        DASK,
        "worker",
        address,
        "--nthreads",
        "1",
        "--no-nanny",
        "--no-dashboard",
        "--death-timeout",
        "10",
    ]
    with ExitStack() as stack:
        for command in (scheduler, worker, [*(far or []), *worker]):
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
            "kind": "address", "address": address, "scratch": str(folder / "scratch"), "workers": 2, "timeout": 60,
        }, pid_of_scheduler  # fmt: skip

"""Run a small flow again and again on one Prefect server and one Dask cluster, and see whether anything grows.

Run by `make soak`, or by hand: ``python tests/infra/soak.py --runs 200``. Memory and open files of the server, the scheduler, the
workers and the process of the flow are looked at after each run, and the tasks that the scheduler holds; the last quarter is held
against the second.
"""

import argparse
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table

HERE = Path(sys.executable).parent
LOCAL = ("--dashboard-address", "127.0.0.1:0")
SHORT_LOGS = {
    f"DASK_DISTRIBUTED__ADMIN__{name}": "100"
    for name in ("LOG_LENGTH", "LOW_LEVEL_LOG_LENGTH", "SYSTEM_MONITOR__LOG_LENGTH")
} | {"DASK_DISTRIBUTED__SCHEDULER__EVENTS_CLEANUP_DELAY": "1s"}
"""Dask keeps so many entries of each of its own logs, by default as many as an hour brings, and what it noted of a client for an
hour after it has left: a soak is over before it forgets, and would take that for growth."""

GROWTH = 1.05
"""More memory than this in the last quarter, as a multiple of the second quarter's, counts as growth."""


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@contextmanager
def started(*command: Any, **environment: str) -> Iterator[psutil.Process]:
    """Run a command for as long as the context lasts."""
    process = subprocess.Popen(
        list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        env=os.environ | environment,
    )  # fmt: skip
    try:
        yield psutil.Process(process.pid)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for(url: str) -> None:
    """Wait until a server answers."""
    end = time.monotonic() + 120
    while True:
        try:
            urllib.request.urlopen(url, timeout=1).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


def look(processes: dict[str, list[psutil.Process]]) -> dict[str, float]:
    """Return memory in MiB and open files of each process with its children; this one's children are the others."""
    figures = {}
    for name, group in processes.items():
        children = [child for parent in group if parent.pid != os.getpid() for child in parent.children(recursive=True)]
        everyone = {p.pid: p for p in (*group, *children)}.values()
        figures[f"{name}, MiB"] = sum(p.memory_info().rss for p in everyone) / 2**20
        figures[f"{name}, open files"] = float(sum(p.num_fds() for p in everyone))
    return figures


def shorten_names() -> None:
    """Let Dask remember the names of a thousand tasks, not of a hundred thousand: more than these runs have, some fifty MiB."""
    import functools
    import sys

    from dask.utils import key_split

    short = functools.lru_cache(1000)(key_split.__wrapped__)
    for module in list(sys.modules.values()):
        if getattr(module, "key_split", None) is key_split:
            module.key_split = short  # type: ignore[attr-defined]


def soak(runs: int, folder: Path) -> list[dict[str, float]]:
    """Return what was seen after each run."""
    scheduler_port, api_port = free_port(), free_port()
    address, api = f"tcp://127.0.0.1:{scheduler_port}", f"http://127.0.0.1:{api_port}/api"
    os.environ |= {"PREFECT_API_URL": api, "PREFECT_HOME": str(folder / "prefect"), "PREFECT_LOGGING_LEVEL": "WARNING"}
    worker = (HERE / "dask", "worker", address, "--nthreads", "1", *LOCAL, "--local-directory", folder)
    with ExitStack() as stack:
        server = stack.enter_context(
            started(HERE / "prefect", "server", "start", "--host", "127.0.0.1", "--port", api_port)
        )
        scheduler = stack.enter_context(
            started(HERE / "dask", "scheduler", "--host", "127.0.0.1", "--port", scheduler_port, *LOCAL, **SHORT_LOGS)
        )
        workers = [stack.enter_context(started(*worker, **SHORT_LOGS)) for _ in range(2)]
        wait_for(f"{api}/health")
        from distributed import Client

        from flows.orchestration.flows import train_auc
        from flows.train.config import TrainConfig

        asked = TrainConfig.model_validate(
            {
                "name": "soak",
                "data": {"name": "digits", "test": {"fraction": 0.2}, "scale": "standard"},
                "cluster": {"kind": "address", "address": address, "scratch": str(folder / "scratch"), "workers": 2},
                "blocks": 2,
                "output": str(folder / "runs"),
            }
        )
        watcher = stack.enter_context(Client(address))
        watcher.wait_for_workers(len(workers))
        watcher.run_on_scheduler(shorten_names)
        watcher.run(shorten_names)
        everyone = {"server": [server], "scheduler": [scheduler], "workers": workers, "flow": [psutil.Process()]}
        seen = []
        for number in range(1, runs + 1):
            train_auc(asked)
            tasks = watcher.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))
            clients = watcher.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.clients))
            seen.append({"tasks left": tasks, "clients left": clients, "scratch left": _left(folder), **look(everyone)})
            if number % 20 == 0:
                print(f"{number} of {runs} runs", file=sys.stderr, flush=True)
    return seen


def _left(folder: Path) -> int:
    scratch = folder / "scratch"
    return len(list(scratch.iterdir())) if scratch.is_dir() else 0


def main() -> int:
    """Print the table, and return 1 if anything grew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="aucdist-soak-") as where:
        seen = soak(asked.runs, Path(where))
    quarter = max(1, asked.runs // 4)
    table, grew = Table("what", "after the first run", "second quarter", "last quarter", "grew"), False
    for what in seen[0]:
        values = [row[what] for row in seen]
        early, late = statistics.median(values[quarter : 2 * quarter] or values), statistics.median(values[-quarter:])
        grows = late > GROWTH * early if "MiB" in what else late > early
        grew |= grows
        table.add_row(what, f"{values[0]:.0f}", f"{early:.0f}", f"{late:.0f}", "yes" if grows else "no")
    Console(width=120).print(table)
    return int(grew)


if __name__ == "__main__":
    sys.exit(main())

"""Processes as forks of one that has imported all they need and loaded kernels: a start takes a fraction of a second, not four.

They are Dask's workers, the contestants of the benchmarks, and programs that tests kill. Runs that tests start as commands have
workers as users have them, spawned.
"""

import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing.context import ForkServerProcess
from multiprocessing.forkserver import ensure_running, set_forkserver_preload
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

IMPORTED = [
    "aucdist.engine.dask", "aucdist.engine.worker_part", "aucdist.estimators", "dask.array", "dask.dataframe",
    "distributed.nanny", "distributed.http.worker", "pyarrow.parquet", "pytest", "flows.cv.run",
    "support.loaded_kernels",
]  # fmt: skip
"""What workers and programs import for most tests: five seconds of each start."""

CALM = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.worker.memory.monitor-interval": "500ms",
}
"""Settings of Dask for a cluster that waits. With its defaults, an idle cluster of two workers takes a tenth of a core to look
at itself, and each process of the tests keeps one until the end; with these it takes a sixth of that."""


def fork_server() -> None:
    """Start the process whose forks the others are, unless it runs already; it finds modules of the tests by the variable."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", str(Path(__file__).parents[1]), prepend=os.pathsep)
        set_forkserver_preload(IMPORTED)
        ensure_running()


def with_environment(environment: dict[str, str], target: Callable[[], Any]) -> None:
    """Run the target with this environment alone: that of the fork's origin is from before the tests."""
    os.environ.clear()
    os.environ.update(environment)
    target()


@contextmanager
def forked_workers() -> Iterator[None]:
    """Let the nannies of this process fork their workers, which get the environment that they would inherit if spawned."""
    import dask.config
    from distributed import nanny

    def process(target: Callable[[], Any], **more: Any) -> Any:
        fork_server()
        return nanny_process(target=partial(with_environment, dict(os.environ), target), **more)

    nanny_process = nanny.AsyncProcess
    with (
        dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"} | CALM),
        mock.patch.object(nanny, "AsyncProcess", process),
    ):
        yield


class Forked(ForkServerProcess):
    """A process with the environment that it would inherit if spawned."""

    def start(self) -> None:
        self.environment = dict(os.environ)
        fork_server()
        super().start()

    def run(self) -> None:
        with_environment(self.environment, super().run)


def start_program(code: str, *args: str, cwd: Path, output: Path) -> Forked:
    """Start Python code with these arguments in a folder; what it prints goes to a file."""
    process = Forked(target=_run_program, args=(code, args, cwd, output))
    process.start()
    return process


def _run_program(code: str, args: tuple[str, ...], cwd: Path, output: Path) -> None:
    os.chdir(cwd)
    printed = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(printed, stream)
    sys.argv = ["aucdist", *args]
    exec(code, {"__name__": "__main__"})


@contextmanager
def forked_processes(module: Any) -> Iterator[None]:
    """Let a module that spawns processes fork them."""
    context = multiprocessing.get_context("forkserver")
    with (
        mock.patch.object(context, "Process", Forked),
        mock.patch.object(module.multiprocessing, "get_context", return_value=context),
    ):
        yield

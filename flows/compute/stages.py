"""Stages of a run: each is reported to the observer, timed, and run by the pipeline."""

import time
from collections.abc import Callable
from typing import Any, Protocol

from flows.progress.console import RunObserver

COMPILING = "compiling kernels, once per machine"


class StageRunner(Protocol):
    """Runs one stage: as a plain function (`call_stage`), or as a Prefect task (`flows.orchestration.tasks.run_as_task`)."""

    def __call__(self, name: str, stage: Callable[..., Any], *args: Any, retry: bool = False) -> Any:
        """Return what ``stage(*args)`` returns; with `retry` an error of storage is worth another attempt."""


def call_stage(name: str, stage: Callable[..., Any], *args: Any, retry: bool = False) -> Any:
    """Return what ``stage(*args)`` returns."""
    return stage(*args)


class Stages:
    """The stages of one run.

    `observer`: is called with the name of each stage when it starts.
    `seconds`, dict of str to float: wall time of each stage so far, in order; of a stage that ran twice, the last. The time in
        which this process compiled kernels stands apart, under `COMPILING`.
    """

    def __init__(self, observer: RunObserver, run_stage: StageRunner = call_stage):
        from aucdist.kernels import rows  # loads Numba
        from aucdist.kernels.compiling import cache_folder

        self._observer, self._run_stage = observer, run_stage
        if not any(cache_folder(rows.__file__).rglob("*.nbi")):
            observer.note("compiling kernels, once per machine: this run takes some seconds more")
        self.seconds: dict[str, float] = {}

    def __call__(self, name: str, stage: Callable[..., Any], *args: Any, retry: bool = False) -> Any:
        """Run a stage and return its result; as a `StageRunner`."""
        from numba.core.event import install_timer  # loads Numba

        self._observer.stage(name)
        start = time.perf_counter()
        with install_timer("numba:compile", lambda seconds: None) as compiling:
            result = self._run_stage(name, stage, *args, retry=retry)
        compiled = compiling.duration if compiling.done else 0.0
        self.seconds[name] = time.perf_counter() - start - compiled
        if compiled:
            self.seconds[COMPILING] = self.seconds.get(COMPILING, 0.0) + compiled
        return result

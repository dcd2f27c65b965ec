"""The time of a stage does not count the compilation of kernels, which stands apart."""

import time

import pytest
from numba.core.event import end_event, start_event

from flows.compute.stages import COMPILING, Stages
from flows.progress.console import LineObserver


def test_compiling_stands_apart() -> None:
    def work() -> str:
        start_event("numba:compile")
        time.sleep(0.2)
        end_event("numba:compile")
        return "done"

    stages = Stages(LineObserver(lambda text: None))
    assert stages("fit", work) == "done"
    assert stages.seconds["fit"] < 0.1
    assert stages.seconds[COMPILING] == pytest.approx(0.2, abs=0.1)
    stages("evaluate", lambda: None)
    assert list(stages.seconds) == ["fit", COMPILING, "evaluate"]

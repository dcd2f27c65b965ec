"""Fixtures that every test may use."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from support.forked_workers import forked_workers

# Nothing that is imported or collected becomes garbage; `pytest_collection_finish` switches the collector on.
gc.disable()
# Before NumPy is imported: the tests' processes take all cores, and threads of BLAS and OpenMP beside them would wait for each
# other by computing, as long as they compute. Tests of several threads ask for them by threadpoolctl.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# The same examples each time, so that what passed here passes everywhere; HYPOTHESIS_PROFILE=explore looks for new ones.
# No test depends on how fast the machine is, so no deadline and no limit on the time that making examples takes.
NO_CLOCK = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
# As plain Python, kernels are a hundred times slower, and a few examples show that they are the code that is compiled.
EXAMPLES = 15 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 40
settings.register_profile("fixed", derandomize=True, max_examples=EXAMPLES, **NO_CLOCK)
settings.register_profile("explore", max_examples=1000, **NO_CLOCK)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


LONGEST_FIRST = ("flows", "engine", "report", "estimators")
"""Folders whose files take up to minutes. Begun last, one of them would keep one process busy and leave the others idle."""


def pytest_xdist_auto_num_workers() -> int:
    """Run one process more than there are cores: many tests wait, for commands, servers and workers that they started."""
    return 1 + (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the folders of `LONGEST_FIRST` and the files beside this one before the others."""
    here = Path(__file__).parent
    items.sort(key=lambda item: item.path.relative_to(here).parts[0] not in LONGEST_FIRST and item.path.parent != here)


def pytest_collection_finish() -> None:
    """Leave tests and modules out of garbage collections, which take long over so many, and collect less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _forked_workers() -> Iterator[None]:
    with forked_workers():
        yield


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """Two worker processes for all tests of a process: starting them takes longer than most of these tests."""
    from aucdist.engine.dask import local_cluster

    with local_cluster(2, memory_limit="1GiB") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def client(cluster: Any) -> Iterator[Any]:
    """A client of the shared workers. It is not Dask's default client; tests that kill workers start their own."""
    from distributed import Client

    with Client(cluster, set_as_default=False) as client:
        yield client


@pytest.fixture(scope="session")
def _chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from support.browser import browser, installed

    if installed() is None:
        pytest.skip("no Chromium found (Debian: apt-get install chromium)")
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def chromium(_chromium: Any) -> Any:
    """The Chromium of all tests of a process, which has no messages yet."""
    _chromium.messages.clear()
    return _chromium


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real data sets; a test that needs it is skipped where there is none."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("AUCDIST_DATA", default))
    if not (folder / "MANIFEST.csv").is_file():
        pytest.skip(f"no real data sets at {folder}: set AUCDIST_DATA")
    return folder

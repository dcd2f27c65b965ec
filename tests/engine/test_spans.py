"""A cluster that serves run after run keeps nothing of the runs that ended."""

import dask
import pytest
from distributed import Client, LocalCluster, span

from aucdist.data.shards.simulate import simulate
from aucdist.engine.dask import DaskBlocks, connect
from aucdist.engine.spans import NAME


def block(index):
    return simulate(50, 3, 0.2, seed=0, index=index)


def step(block, memory):
    return memory, {"rows": block.n_samples}


@pytest.fixture(scope="module")
def address():
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def watcher(address):
    with Client(address, set_as_default=False) as client:
        yield client


def run(address):
    with connect(address) as client:
        blocks = DaskBlocks.load(client, block, 2)
        for _ in range(10):
            assert blocks.reduce(step) == {"rows": 100}


def spans(client):
    def found(dask_scheduler):
        return {span.name: len(span.groups) for span in dask_scheduler.extensions["spans"].spans.values()}

    return client.run_on_scheduler(found)


def figures(client):
    return max(client.run(lambda dask_worker: len(dask_worker.digests_total)).values())


def test_spans_groups_and_figures_do_not_pile_up(address, watcher):
    run(address)
    once = spans(watcher)[(NAME,)]
    assert once >= 10  # Dask keeps them; or it does not any more, and this module can go
    many = figures(watcher)
    for _ in range(4):
        run(address)
    assert (
        spans(watcher)[(NAME,)] <= 2 * once
    )  # the last run's, and those of the one before that were not forgotten yet
    assert figures(watcher) <= 2 * many


def test_the_spans_of_others_stay(address, watcher):
    with span("mine"):
        assert watcher.submit(sum, (1, 2), pure=False).result() == 3
    run(address)
    assert ("mine",) in spans(watcher)


def test_nothing_of_the_users_is_annotated(address):
    with connect(address) as client:
        DaskBlocks.load(client, block, 2).reduce(step)
        assert "span" not in dask.get_annotations()

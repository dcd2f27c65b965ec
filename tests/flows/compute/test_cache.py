"""Whether rows stay in memory or are read again: the rule, and its message."""

import threading

import pytest

from aucdist.errors import InputError
from flows.compute.clusters import choose_cache, worker_memory

GIB = 2**30
TWO = [(GIB, 1), (GIB, 1)]


@pytest.mark.parametrize(
    ("cache", "memory", "rooms", "stream"),
    [
        ("auto", GIB, TWO, False),
        ("auto", GIB + 1, TWO, True),
        ("memory", 8 * GIB, TWO, False),
        ("stream", 1, TWO, True),
        ("auto", 800 * GIB, [(0, 4)], False),
        ("auto", 800 * GIB, [(0, 4), (GIB, 1)], False),
    ],
)
def test_auto_keeps_what_fits_in_half_of_the_memory(cache, memory, rooms, stream):
    found, why = choose_cache(cache, memory, 2**20, rooms)
    assert found is stream
    assert ("are streamed" in why) is stream


def test_it_says_why():
    assert choose_cache("auto", 8 * GIB, 2**26, TWO)[1] == "are streamed (8 GiB of rows, 2 GiB of memory on 2 workers)"
    assert (
        choose_cache("auto", 900, 900, [(0, 1)])[1]
        == "are kept in memory (900 B of rows, no limit of memory on 1 worker)"
    )


def test_blocks_that_are_too_large_to_stream_are_refused():
    assert choose_cache("auto", 8 * GIB, GIB // 8, TWO)[0]
    with pytest.raises(
        InputError, match=r"blocks of up to 128 MiB are too large .* by 1 thread in 1 GiB .*rows_per_shard"
    ):
        choose_cache("auto", 8 * GIB, GIB // 8 + 2**20 // 2, TWO)
    with pytest.raises(InputError, match="by 4 threads in 1 GiB"):
        choose_cache("stream", 8 * GIB, GIB // 16, [(8 * GIB, 1), (GIB, 4)])


def test_the_room_of_workers_and_of_this_process():
    from aucdist.engine.dask import local_client

    assert worker_memory(None)[0][0] > 2**28
    with local_client(2, threads=2, memory_limit="700MiB") as client:
        assert worker_memory(client) == [(700 * 2**20, 2)] * 2


def test_the_room_of_workers_is_that_of_the_next_where_all_are_lost():
    from distributed import LocalCluster

    options = {"dashboard_address": None, "threads_per_worker": 2, "memory_limit": "700MiB", "processes": False}
    with LocalCluster(n_workers=0, **options) as cluster, cluster.get_client() as client:
        coming = threading.Timer(0.5, cluster.scale, (1,))
        coming.start()
        assert worker_memory(client) == [(700 * 2**20, 2)]
        coming.join()

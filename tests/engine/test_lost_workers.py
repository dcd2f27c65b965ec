"""What a fit on a cluster goes through: lost, hung and moved workers, clients that reach the scheduler alone, Ctrl-C."""

import asyncio
import contextlib
import itertools
import os
import signal
import threading
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
from distributed import Client
from support.chains import EXPECTED, N_BLOCKS, VALUES, add, chain_of, load, rows

from aucdist.data.block import into_blocks
from aucdist.data.storage.scratch import AnonymousFile
from aucdist.engine import worker_calls, worker_part
from aucdist.engine.dask import DaskBlocks, local_client
from aucdist.engine.worker_calls import Call
from aucdist.engine.worker_part import FEW_BYTES
from aucdist.errors import ClusterLost, RunError


@pytest.fixture(scope="module")
def client():
    with local_client(2, threads=2, memory_limit="1GiB") as client:
        yield client


@pytest.fixture
def mortal():
    """A client of workers that the test may kill: one that is killed while it starts is given up by its nanny."""
    with local_client(2, threads=2, memory_limit="1GiB") as client:
        yield client


def until(holds):
    """Wait until something holds; it fails by the test's own time limit, if at all."""
    while not holds():
        time.sleep(0.02)


@contextlib.contextmanager
def meanwhile(holds, act):
    """Act in another thread once something holds."""
    helper = threading.Thread(target=lambda: until(holds) or act())
    helper.start()
    yield
    helper.join()


def process_at(client, address):
    return client.run(os.getpid, workers=[address])[address]


def address_of(client, blocks, i):
    (addresses,) = client.who_has([blocks._parts.futures[i]]).values()
    return addresses[0]


def kill(client, blocks, i=0):
    os.kill(process_at(client, address_of(client, blocks, i)), signal.SIGKILL)


def states(client, blocks):
    """Return the numbers of the states that each part has on its worker."""

    def states_on(dask_worker, keys=tuple(f.key for f in blocks._parts.futures)):
        return {key: sorted(dask_worker.data[key].memories) for key in keys if key in dask_worker.data}

    return {key: held for answer in client.run(states_on).values() for key, held in answer.items()}


# ---- where blocks lie, and what is kept ----------------------------------------------------------------------------------


def test_adjacent_blocks_are_on_one_worker(client):
    blocks = DaskBlocks.load(client, load, N_BLOCKS)
    numbers = client.gather([client.submit(lambda part: part.numbers, f) for f in blocks._parts.futures])
    assert numbers == [[0, 1, 2], [3, 4, 5]]
    assert len({address_of(client, blocks, i) for i in range(2)}) == 2
    assert chain_of(blocks) == EXPECTED


def test_blocks_wherever_they_lie_give_the_same_sums(client):
    addresses = sorted(client.nthreads())
    futures = [client.submit(load, i, workers=[addresses[i % 2]], pure=False) for i in range(N_BLOCKS)]
    blocks = DaskBlocks.of_futures(client, futures)
    assert [info.n_samples for info in blocks.infos] == [load(i).n_samples for i in range(N_BLOCKS)]
    assert chain_of(blocks) == EXPECTED


def test_workers_keep_what_is_needed_and_no_more(client):
    blocks = DaskBlocks.load(client, load, N_BLOCKS)
    for value in VALUES:
        blocks.reduce(add, value)
        assert all(len(held) <= 2 for held in states(client, blocks).values())
    branch = blocks.fork()
    assert branch.reduce(add, 1.0) == blocks.fork().reduce(add, 1.0)
    empty = blocks.without_memory()
    assert chain_of(empty) == EXPECTED
    del branch, empty
    blocks.reduce(add, 1.0)
    blocks.reduce(add, 1.0)
    assert all(len(held) == 2 for held in states(client, blocks).values())


def test_a_part_ends_with_its_blocks(client):
    blocks = DaskBlocks.load(client, load, N_BLOCKS)
    blocks.reduce(add, 1.0)
    keys = [f.key for f in blocks._parts.futures]

    def held():
        return client.run(lambda dask_worker: [key for key in keys if key in dask_worker.data])

    assert sorted(itertools.chain(*held().values())) == sorted(keys)
    del blocks
    until(lambda: not any(held().values()))


def test_a_worker_uses_its_threads(client, tmp_path):
    def meet(block, memory, folder):
        """Wait until two blocks of this worker were begun."""
        mine = folder / str(os.getpid())
        mine.mkdir(exist_ok=True)
        (mine / str(block.index)).touch()
        while len(list(mine.iterdir())) < 2:
            time.sleep(0.01)
        return None, {"n": 1}

    assert DaskBlocks.load(client, load, N_BLOCKS).reduce(meet, tmp_path) == {"n": N_BLOCKS}


# ---- losses --------------------------------------------------------------------------------------------------------------


def assert_goes_on_after(harm, client):
    """Do harm to the workers after two calls, and check that all sums are as they would have been."""
    blocks = DaskBlocks.load(client, load, N_BLOCKS)
    sums = [blocks.reduce(add, value) for value in VALUES[:2]]
    harm(blocks)
    assert sums + [blocks.reduce(add, value) for value in VALUES[2:]] == EXPECTED


def test_a_fit_and_its_branch_go_on_after_both_workers_are_killed(mortal):
    blocks = DaskBlocks.load(mortal, load, N_BLOCKS)
    sums = [blocks.reduce(add, value) for value in VALUES[:2]]
    branch = blocks.fork()
    for pid in mortal.run(os.getpid).values():
        os.kill(pid, signal.SIGKILL)
    assert sums + [blocks.reduce(add, value) for value in VALUES[2:]] == EXPECTED
    assert sums + [branch.reduce(add, value) for value in VALUES[2:]] == EXPECTED


def die_once(block, memory, value, flag):
    """Kill the worker in the middle of a step, but only while the file is there."""
    if block.index == 4 and Path(flag).exists():
        Path(flag).unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return add(block, memory, value)


def test_a_worker_killed_in_a_step_and_again_while_it_is_repeated(mortal, tmp_path):
    blocks = DaskBlocks.load(mortal, load, N_BLOCKS)
    sums = []
    for n, value in enumerate(VALUES):
        flag = tmp_path / str(n)
        if n in (2, 3):
            flag.touch()
        sums.append(blocks.reduce(die_once, value, str(flag)))
        if n == 2:  # when the third step is repeated for the loss in the fourth, it kills once more
            flag.touch()
    assert sums == EXPECTED


def test_a_part_that_was_moved_is_found(client):
    def move(blocks):
        part, here = blocks._parts.futures[0], address_of(client, blocks, 0)
        client.replicate([part], n=2)

        def remove(dask_scheduler, key=part.key):
            dask_scheduler.request_remove_replicas(here, [key], stimulus_id="test")

        # As Dask does when it retires a worker: the copy elsewhere stays, with the memory; the one here goes.
        client.run_on_scheduler(remove)
        until(lambda: here not in client.who_has([part])[part.key])

    assert_goes_on_after(move, client)


async def close_threads_first(dask_worker):
    """Close a worker as Dask does, with time between the end of its threads and that of its connections."""
    dask_worker.executors["default"].shutdown()
    asyncio.get_running_loop().call_later(1, lambda: asyncio.ensure_future(dask_worker.close()))


def test_a_worker_that_closes_while_it_still_answers_is_lost_and_no_more(mortal):
    assert_goes_on_after(
        lambda blocks: mortal.run(close_threads_first, workers=[address_of(mortal, blocks, 0)]), mortal
    )


def stop_myself(block, memory, value, flag):
    if block.index == 0 and Path(flag).exists():
        Path(flag).unlink()
        os.kill(os.getpid(), signal.SIGSTOP)
    return add(block, memory, value)


async def give_up(dask_scheduler, address):
    """Do what the scheduler does by itself when a worker has sent no heartbeat for `worker-ttl`."""
    await dask_scheduler.restart_workers([address], wait_for_workers=False, stimulus_id="test")


def test_a_hung_worker_that_dask_gives_up_is_left(mortal, tmp_path, monkeypatch):
    monkeypatch.setattr(worker_calls, "SECONDS_BETWEEN_LOOKS", 0.1)
    blocks = DaskBlocks.load(mortal, load, N_BLOCKS)
    flag = tmp_path / "flag"
    flag.touch()
    address = address_of(mortal, blocks, 0)

    with meanwhile(lambda: not flag.exists(), lambda: mortal.run_on_scheduler(give_up, address=address)):
        assert [blocks.reduce(stop_myself, value, str(flag)) for value in VALUES] == EXPECTED


def test_a_hung_worker_that_comes_back_goes_on(mortal, tmp_path):
    blocks = DaskBlocks.load(mortal, load, N_BLOCKS)
    flag = tmp_path / "flag"
    flag.touch()
    pid = process_at(mortal, address_of(mortal, blocks, 0))
    with meanwhile(lambda: not flag.exists(), lambda: time.sleep(0.3) or os.kill(pid, signal.SIGCONT)):
        assert [blocks.reduce(stop_myself, value, str(flag)) for value in VALUES] == EXPECTED


def test_a_step_that_kills_each_worker_is_an_error_and_no_endless_loop(mortal):
    def deadly(block, memory):
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(RunError, match="several workers were lost, one after the other, in step 'deadly'"):
        DaskBlocks.load(mortal, load, 1).reduce(deadly)


def test_without_any_worker_the_cluster_is_lost_after_a_while(monkeypatch):
    monkeypatch.setattr(worker_calls, "SECONDS_WITHOUT_WORKERS", 0.5)
    with local_client(1, memory_limit="1GiB") as alone:
        blocks = DaskBlocks.load(alone, load, 2)
        blocks.reduce(add, 1.0)
        (pid,) = alone.run(os.getpid).values()
        alone.cluster.scale(0)
        until(lambda: not (alone.nthreads() or psutil.pid_exists(pid)))  # a worker that closes may still answer
        with pytest.raises(ClusterLost, match=r"no worker was connected for 0\.5 s in step 'add'"):
            blocks.reduce(add, 1.0)


def test_a_lost_scheduler_is_a_lost_cluster():
    with local_client(1, memory_limit="1GiB") as other:
        blocks = DaskBlocks.load(other, load, 2)
        other.close()
        with pytest.raises(ClusterLost, match="the scheduler was lost"):
            blocks.reduce(add, 1.0)


# ---- errors and ends -----------------------------------------------------------------------------------------------------


class Strange(Exception):
    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


def test_errors_arrive_with_their_place_and_those_that_cannot_travel_as_words(client):
    def fails(block, memory):
        raise OSError(f"block {block.index} cannot be read")  # which is no lost worker

    def strange(block, memory):
        raise Strange("this", "that")

    blocks = DaskBlocks.load(client, load, 1)
    with pytest.raises(OSError, match="block 0 cannot be read") as raised:
        blocks.reduce(fails)
    assert "in fails" in raised.value.__notes__[0]
    with pytest.raises((RunError, Strange), match="this and that"):
        blocks.reduce(strange)


def wait_for(block, memory, folder, name):
    """Say that the block was begun, and wait for the file."""
    Path(folder, f"begun-{block.index}").touch()
    for _ in range(1200):
        if Path(folder, name).exists():
            return memory, {"n": 1}
        time.sleep(0.05)
    raise AssertionError("nobody wrote the file")


def stopped(dask_worker):
    return [event.is_set() for event in dask_worker.plugins[worker_part.StepRunner.name]._running.values()]


def begun(folder):
    return sorted(int(p.name.partition("-")[2]) for p in folder.glob("begun-*"))


@pytest.fixture
def interruptible():
    """Ctrl-C raises KeyboardInterrupt, also where the shell lets its background jobs ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_at_once_and_workers_start_no_more_blocks(tmp_path):
    with local_client(1, memory_limit="1GiB") as alone:
        blocks = DaskBlocks.load(alone, load, N_BLOCKS)
        before = blocks.reduce(add, 1.0)
        main = threading.main_thread().ident
        interrupt = meanwhile(lambda: begun(tmp_path), lambda: signal.pthread_kill(main, signal.SIGINT))
        with interrupt, pytest.raises(KeyboardInterrupt):
            blocks.reduce(wait_for, str(tmp_path), "never")
        assert begun(tmp_path) == [0]  # it came back while block 0 still waited
        until(lambda: list(alone.run(stopped).values()) == [[True]])
        (tmp_path / "never").touch()
        # The blocks are as they were.
        assert blocks.reduce(add, 0.0)["totals"] == before["totals"]
        assert begun(tmp_path) == [0]


def test_the_scheduler_sees_that_somebody_works(client, monkeypatch):
    blocks = DaskBlocks.load(client, load, N_BLOCKS)
    monkeypatch.setattr(worker_calls, "SECONDS_BETWEEN_KEEPALIVES", 0.0)
    blocks.reduce(add, 1.0)
    first = blocks._parts._keepalive
    assert first is not None
    monkeypatch.setattr(worker_calls, "SECONDS_BETWEEN_KEEPALIVES", 1e9)
    blocks.reduce(add, 1.0)
    assert blocks._parts._keepalive is first


# ---- through the scheduler -----------------------------------------------------------------------------------------------


@pytest.fixture
def far(mortal, monkeypatch):
    """A client whose own calls to workers fail, as behind a firewall."""
    with Client(mortal.scheduler.address, set_as_default=False) as far:
        direct = far.rpc.connect
        scheduler = far.scheduler.address

        async def connect(addr, *args, **kwargs):
            if addr != scheduler:
                raise OSError(f"no way to {addr}")
            return await direct(addr, *args, **kwargs)

        monkeypatch.setattr(far.rpc, "connect", connect)
        monkeypatch.setattr(worker_calls, "SECONDS_TO_REACH", 0.2)  # in which the scheduler loses none of them
        yield far


def test_a_client_that_reaches_the_scheduler_alone_says_so_once_and_works(far, mortal):
    with pytest.warns(RuntimeWarning, match="reaches the scheduler but not the workers"):
        blocks = DaskBlocks.load(far, load, N_BLOCKS)
    with warnings.catch_warnings(action="error"):
        assert chain_of(blocks) == EXPECTED
        for n in (1, FEW_BYTES):  # large arrays travel beside the message
            assert blocks.sum(lambda block, values: values, np.full(n, 0.25)).tolist() == [0.25 * N_BLOCKS] * n
        assert_goes_on_after(lambda again: kill(mortal, again, 1), far)


def test_workers_that_die_when_they_are_first_called_say_nothing_of_the_others(mortal, monkeypatch):
    with Client(mortal.scheduler.address, set_as_default=False) as near:
        processes = near.run(os.getpid)
        direct = near.rpc.connect

        async def connect(addr, *args, **kwargs):
            if addr in processes:
                with contextlib.suppress(ProcessLookupError):  # it was called before
                    os.kill(processes[addr], signal.SIGKILL)
                raise ConnectionRefusedError(f"{addr} is dead")
            return await direct(addr, *args, **kwargs)

        monkeypatch.setattr(near.rpc, "connect", connect)
        # A warning that workers cannot be reached would be an error.
        assert chain_of(DaskBlocks.load(near, load, N_BLOCKS)) == EXPECTED
        assert worker_calls._direct[near]


def test_a_worker_that_dies_while_it_gets_the_handlers_is_no_error(mortal, monkeypatch, tmp_path):
    died = tmp_path / "died"

    class Dying(worker_part.StepRunner):
        def setup(self, worker):
            with contextlib.suppress(FileExistsError):
                died.touch(exist_ok=False)
                os._exit(1)
            super().setup(worker)

    monkeypatch.setattr(worker_calls, "StepRunner", Dying)
    assert chain_of(DaskBlocks.load(mortal, load, N_BLOCKS)) == EXPECTED
    assert died.exists()


def test_a_scheduler_that_is_lost_while_its_workers_are_first_called_is_named(mortal, monkeypatch):
    with Client(mortal.scheduler.address, set_as_default=False) as near:

        async def lost():
            raise OSError("closed")

        monkeypatch.setattr(near, "nthreads", lost)  # a mock: no real scheduler ends just then
        with pytest.raises(ClusterLost, match="the scheduler was lost: closed"):
            worker_calls.install(near)


def test_calls_are_as_they_were_when_they_were_made():
    w = np.zeros(3)
    call = Call(add, (w,), AnonymousFile())
    w += 1
    (_, (sent,)) = worker_part.unpack(call.data)
    assert sent.tolist() == [0, 0, 0]


def test_a_step_that_was_stopped_is_no_error_of_the_step():
    """A part may be taken away in mid-step, as when the scheduler is lost: whoever asked looks for it again."""
    runner, stop = worker_part.StepRunner(), threading.Event()
    runner._worker = SimpleNamespace(state=SimpleNamespace(nthreads=1))
    part = worker_part.Part(range(N_BLOCKS), into_blocks(rows(), N_BLOCKS))
    call = worker_part.pack((add, (1.0,)))
    stop.set()
    assert runner._work(part, None, 1, call, stop) == {"has": None}
    assert part.memories == {}
    assert set(runner._work(part, None, 1, call, threading.Event())) == {"nodes", "buffers", "changed"}

"""The slow network of `limited_network`: packets and connections as they are passed on, and fits over it as they are here."""

import asyncio
import itertools
import multiprocessing
import os
import shutil
import socket

import numpy as np
import pytest
from benchmarks import scale
from benchmarks.scale_model import ClusterSize, Constants, Run, Traffic, Workload

from aucdist.data.shards.simulate import Simulation
from aucdist.engine.blocks import LocalBlocks
from aucdist.engine.dask import DaskBlocks
from aucdist.solvers.base import solve
from aucdist.solvers.pairs.cutting_planes import AllPairs
from infra import limited_network as slow


def packet(to: str, content: bytes) -> bytes:
    """Return a packet of version 4 to an address."""
    return bytes([0x45]) + bytes(15) + socket.inet_aton(to) + content


def test_packets_come_to_the_host_that_they_are_for():
    ends = {host: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM) for host in ("10.213.8.1", "10.213.8.2")}
    hosts = {socket.inet_aton(host): pair[0].fileno() for host, pair in ends.items()}
    process = multiprocessing.get_context("fork").Process(target=slow.carry, args=(hosts, 1e9, 1e-3), daemon=True)
    process.start()
    try:
        first, second = (pair[1] for pair in ends.values())
        first.send(packet("10.213.8.9", b"to nobody"))
        for k in range(3):
            first.send(packet("10.213.8.2", b"%d" % k))
        assert [second.recv(99)[20:] for _ in range(3)] == [b"0", b"1", b"2"]
        second.send(packet("10.213.8.1", b"back"))
        assert first.recv(99)[20:] == b"back"
    finally:
        process.kill()
        process.join()
        for end in itertools.chain(*ends.values()):
            end.close()


def test_connections_are_passed_on_both_ways():
    async def echo(reader, writer):
        writer.write((await reader.readexactly(4)).upper())
        writer.close()

    async def both():
        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        passing = asyncio.create_task(slow.forward("127.0.0.1", port, server.sockets[0].getsockname()))
        while True:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                break
            except ConnectionRefusedError:
                await asyncio.sleep(0.01)
        writer.write(b"rows")
        found = await reader.read()
        writer.close()
        passing.cancel()
        server.close()
        return found

    assert asyncio.run(both()) == b"ROWS"


def test_a_row_has_the_parts_of_the_prediction():
    traffic = Traffic(10**6, 10**5, 10**4)
    workload = Workload(1000, 20, 8, 6, reductions=23, in_memory=traffic, sent=traffic, client=0.01)
    run = Run(workload, ClusterSize(8, 2, 125e6, 2e-3), 0.5)
    row = slow.row_of(("few rows", run, [10**6, 2 * 10**6]), Constants(0.0, 5e-9, 1e-3, 2e-4, 4e-9, 1.1, 3.0), False)
    assert sum(row[f"{part} s"] for part in ("compute", "latency", "bytes", "client")) == pytest.approx(row["model s"])
    assert (row["delay ms"], row["Mbit/s"], row["cores"], row["MB sent"]) == (2.0, 1000.0, 2, "1.0 + 2.0")


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("ip"), reason="namespaces need root, and `ip`")
def test_fits_over_a_slow_network_have_the_same_bits():
    simulation = Simulation(20_000, 5, 0.05, rows_per_shard=2500)
    here = LocalBlocks.load(simulation.block, simulation.n_shards)
    expected = solve(AllPairs().rounds(here, scale.LAM, np.zeros(5)), tol=0.0, max_passes=3).w
    with slow.cluster(ClusterSize(3, 2, 1000 * slow.MBIT, 2e-3)) as (client, names):
        there = DaskBlocks.load(client, simulation.block, simulation.n_shards)
        found = solve(AllPairs().rounds(there, scale.LAM, np.zeros(5)), tol=0.0, max_passes=3).w
        assert len(slow.sent(names)) == 4
    assert found.tobytes() == expected.tobytes()

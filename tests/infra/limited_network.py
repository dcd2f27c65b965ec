"""Fits over a slow network: workers in network namespaces of their own, held against the model of `benchmarks.scale`.

Run as root: ``python tests/infra/limited_network.py --output docs/benchmarks/scale-delays.csv``. Each host sends through a token
bucket of the kernel (tc tbf). A process in between (`carry`) gives each packet its delay, which the kernel's netem would do if it
were everywhere, and holds what a host receives to the same bandwidth. It has the processor before all others.

With ``--rows s3://bucket/rows``, and the endpoint and the credentials of an S3 server on this machine in the environment, eight
workers read `ROWS` rows from it over that network, and keep them; they are written there unless they are there. The fits count,
and the reading does not. No packet leaves this machine.
"""

import argparse
import asyncio
import fcntl
import multiprocessing
import os
import select
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dask
import pandas as pd
from benchmarks import scale
from benchmarks.about import Measurement
from benchmarks.common import seconds_of
from benchmarks.scale_model import ClusterSize, Constants, Run, Workload, bytes_moved, fit_constants, predict
from distributed import LocalCluster

from aucdist.data.shards.manifest import read_manifest
from aucdist.data.shards.simulate import Simulation
from aucdist.engine.dask import DaskBlocks, connect
from aucdist.errors import InputError
from flows.rows.rows import Rows

SUBNET = "10.213.8"
MTU = 9000
MBIT = 125_000.0

NETWORKS = [(2, 50, 5e-4), (2, 50, 5e-3), (2, 1000, 5e-4), (2, 1000, 5e-3), (4, 1000, 5e-4)]
"""Workers, Mbit/s and seconds of one way: to what is measured there, and on this machine alone, the model is fitted."""

HELD_OUT = [(1, 200, 2e-3), (2, 200, 5e-4), (2, 200, 5e-3), (4, 200, 2e-3), (8, 1000, 2e-4), (8, 1000, 2e-3)]
"""Nothing that is measured there is used."""

STORED = 8
"""So many workers fit rows from the S3 server, too."""

ROWS = Simulation(10_000_000, 20, 1e-3, rows_per_shard=156_250)
PORT = 17481
CONDITIONS = (
    "hosts are network namespaces of one machine, whose cores all workers share; delays of one way, and bandwidth, by a process "
    "that carries the packets; rows in the workers' memory; the fastest of several fits"
)

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000


def sh(command: str) -> None:
    """Run a command, and raise with what it said if it fails."""
    done = subprocess.run(command.split(), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{command}: {done.stderr.strip()}")


def tunnel(name: str) -> int:
    """Make a network device whose packets come out of the file that is returned, and go in there."""
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    return fd


def carry(hosts: dict[bytes, int], bandwidth: float, delay: float) -> None:
    """Take packets from each host to the one that they are for: after the delay, and no more than its cable takes in."""
    with suppress(PermissionError):  # else packets would wait for workers that compute
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    owner = {fd: host for host, fd in hosts.items()}
    on_the_way: dict[int, deque[tuple[float, bytes]]] = {fd: deque() for fd in owner}
    free = dict.fromkeys(owner, 0.0)
    while True:
        now = time.monotonic()
        for fd, packets in on_the_way.items():
            while packets and packets[0][0] <= now:
                os.write(fd, packets.popleft()[1])
        due = min((packets[0][0] for packets in on_the_way.values() if packets), default=None)
        wait = None if due is None else max(0.0, due - time.monotonic())
        for fd in select.select(owner, [], [], wait)[0]:
            packet = os.read(fd, 65536)
            to = hosts.get(packet[16:20])
            if packet[0] >> 4 == 4 and to is not None:
                free[to] = max(free[to], time.monotonic()) + len(packet) / bandwidth
                on_the_way[to].append((free[to] + delay, packet))


@contextmanager
def network(workers: int, bandwidth: float, delay: float) -> Iterator[list[str]]:
    """Make a host for each worker beside this one, which is 10.213.8.1, and return the names of their namespaces."""
    names = [f"aucdist-net{i}" for i in range(workers)]
    with ExitStack() as stack:
        hosts = {}
        for i in range(workers + 1):
            device, address = f"aucdist-tun{i}", f"{SUBNET}.{i + 1}"
            hosts[bytes(map(int, address.split(".")))] = fd = tunnel(device)
            stack.callback(os.close, fd)
            inside = ""
            if i:
                name = names[i - 1]
                subprocess.run(["ip", "netns", "del", name], capture_output=True)
                sh(f"ip netns add {name}")
                stack.callback(sh, f"ip netns del {name}")
                sh(f"ip link set {device} netns {name}")
                inside = f"-n {name} "
                sh(f"ip -n {name} link set lo up")
            sh(f"ip {inside}addr add {address}/24 dev {device}")
            sh(f"ip {inside}link set {device} mtu {MTU} txqueuelen 10000 up")
            rate = int(8 * bandwidth)
            sh(
                f"tc {inside}qdisc add dev {device} root tbf rate {rate}bit burst {max(2 * MTU, rate // 2000)} limit 16mb"
            )
        carrier = multiprocessing.get_context("fork").Process(target=carry, args=(hosts, bandwidth, delay), daemon=True)
        carrier.start()
        stack.callback(carrier.join)
        stack.callback(carrier.kill)
        yield names


@contextmanager
def cluster(place: ClusterSize, *, s3: bool = False) -> Iterator[tuple[Any, list[str]]]:
    """Start a scheduler here and each worker on a host of its own; give the client, and the hosts' names.

    With `s3` the workers reach the S3 server of the environment.
    """
    with ExitStack() as stack:
        names = stack.enter_context(network(place.workers, place.bandwidth, place.delay))
        if s3:
            stack.enter_context(s3_server())
        stack.enter_context(dask.config.set({"distributed.scheduler.work-stealing": False}))
        here = LocalCluster(n_workers=0, host=f"{SUBNET}.1", dashboard_address=None, silence_logs="ERROR")
        scheduler = stack.enter_context(here)
        for i, name in enumerate(names):
            command = [sys.executable, "-m", "distributed.cli.dask_worker", scheduler.scheduler_address]
            options = ["--host", f"{SUBNET}.{i + 2}", "--nthreads", "1", "--no-nanny", "--no-dashboard"]
            process = subprocess.Popen(
                ["ip", "netns", "exec", name, *command, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
        client = stack.enter_context(connect(scheduler.scheduler_address))
        client.wait_for_workers(place.workers, timeout=60)
        yield client, names


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(2**16):
            writer.write(data)
            await writer.drain()
    writer.close()


async def forward(host: str, port: int, to: tuple[str, int]) -> None:
    """Accept connections, and pass on what comes to a server on this machine that listens elsewhere, and its answers."""

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_connection(*to)
        await asyncio.gather(_pass_on(reader, to_server), _pass_on(from_server, writer))

    async with await asyncio.start_server(accept, host, port) as server:
        await server.serve_forever()


@contextmanager
def s3_server() -> Iterator[None]:
    """Let workers in namespaces reach the S3 server of the environment, which listens on loopback."""
    given = urlsplit(os.environ["AWS_ENDPOINT_URL"])
    place = (f"{SUBNET}.1", PORT, (str(given.hostname), int(given.port or 80)))
    process = multiprocessing.get_context("fork").Process(target=lambda: asyncio.run(forward(*place)), daemon=True)
    process.start()
    os.environ["AWS_ENDPOINT_URL"] = f"http://{SUBNET}.1:{PORT}"
    try:
        yield
    finally:
        os.environ["AWS_ENDPOINT_URL"] = given.geturl()
        process.kill()
        process.join()


def sent(names: list[str]) -> list[int]:
    """Return the bytes that this host and each worker's has sent."""
    places = ["", *(f"ip netns exec {name} " for name in names)]
    read = [f"{p}cat /sys/class/net/aucdist-tun{i}/statistics/tx_bytes" for i, p in enumerate(places)]
    return [int(subprocess.run(one.split(), capture_output=True, check=True).stdout) for one in read]


Measured = tuple[str, Run, list[int]]
"""The name of a fit, the fit, and what each host sent meanwhile."""


def measured(
    networks: Sequence[tuple[int, float, float]], loads: dict[str, Workload], url: str | None = None
) -> Iterator[Measured]:
    """Measure each case on each network; on one of `STORED` workers also the fit to the rows at `url`."""
    for workers, mbit, delay in networks:
        place = ClusterSize(workers, min(workers, os.cpu_count() or 1), mbit * MBIT, delay)
        with ExitStack() as stack:
            stored = url is not None and workers == STORED
            client, names = stack.enter_context(cluster(place, s3=stored))
            scale.compile_on_workers(client, workers)
            fits = {name: partial(_on_simulated, client, name) for name in loads if name in scale.CASES}
            if stored:
                fits[f"{ROWS.rows} rows from S3"] = partial(_on_stored, client, str(url))
            for name, make in fits.items():
                yield _fastest(name, make, loads[name], place, names)


def _on_simulated(client: Any, name: str) -> DaskBlocks:
    simulation = scale.CASES[name][0]
    return DaskBlocks.load(client, simulation.block, simulation.n_shards)


def _on_stored(client: Any, url: str) -> DaskBlocks:
    rows = Rows.of_shards(read_manifest(url))
    return DaskBlocks.load(client, rows.loader, rows.n_blocks)


def _fastest(
    name: str, make: Callable[[], DaskBlocks], load: Workload, place: ClusterSize, names: list[str], times: int = 3
) -> Measured:
    """Fit several times; the fastest fit counts, and what it sent."""
    blocks, fits = make(), []
    for _ in range(times):
        before = sent(names)
        seconds = seconds_of(partial(scale.fit_passes, blocks))
        fits.append((seconds, [b - a for a, b in zip(before, sent(names), strict=True)]))
    seconds, bytes_sent = min(fits)
    return name, Run(load, place, seconds), bytes_sent


def write_rows(url: str) -> None:
    """Write the rows there, unless they are there."""
    with suppress(InputError):
        if read_manifest(url).n_samples == ROWS.rows:
            return
    ROWS.commit(url, [ROWS.write(url, i) for i in range(ROWS.n_shards)])


def row_of(one: Measured, constants: Constants, used: bool) -> dict[str, Any]:
    """Return the row of a fit: measured, what the model says of it in all and in parts, and its network."""
    name, run, bytes_sent = one
    parts = predict(constants, run.workload, run.cluster)
    return {
        **scale.prediction_row(name, run, constants, used), **{f"{part} s": seconds for part, seconds in parts.items()},
        "cores": run.cluster.cores, "Mbit/s": run.cluster.bandwidth / MBIT, "delay ms": 1e3 * run.cluster.delay,
        "reductions": run.workload.reductions, "MB counted": bytes_moved(run.workload, run.workload.sent, run.cluster) / 1e6,
        "MB sent": " + ".join(f"{n / 1e6:.1f}" for n in bytes_sent),
    }  # fmt: skip


def main() -> None:
    """Measure here and on the networks, fit, and print the constants and every run beside what the model says of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", metavar="URL", help="a folder of an S3 server on this machine")
    parser.add_argument("--output", help="write the table as CSV, too, and a JSON file of versions and machine")
    asked = parser.parse_args()
    about = Measurement(f"python tests/infra/limited_network.py --output {asked.output}")
    loads = scale.all_workloads()
    if asked.rows:
        write_rows(asked.rows)
        loads[f"{ROWS.rows} rows from S3"] = scale.count_workload(ROWS)
    known: list[Measured] = [(name, run, []) for name, run in scale.measure_runs(scale.local_clusters())]
    known += list(measured(NETWORKS, loads))
    constants = fit_constants([run for name, run, _ in known if scale.CASES[name][1]])
    print(scale.constants_row(constants))
    rows = [row_of(one, constants, scale.CASES[one[0]][1]) for one in known]
    for one in measured(HELD_OUT, loads, asked.rows):
        rows.append(row_of(one, constants, used=False))
        print(rows[-1], flush=True)
    table = pd.concat([pd.DataFrame([scale.constants_row(constants)]), pd.DataFrame(rows)])
    print(pd.DataFrame(rows).to_string(index=False, float_format="{:.3g}".format))
    if asked.output:
        table.to_csv(asked.output, index=False)
        Path(asked.output).with_suffix(".json").write_text(about.to_json(CONDITIONS), encoding="utf-8")


if __name__ == "__main__":
    main()

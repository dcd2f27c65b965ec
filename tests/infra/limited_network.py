"""Fits over a slow network: workers in network namespaces of their own, held against the model of `benchmarks.scale`.

Run as root: ``python tests/infra/limited_network.py --output runs.csv``. Each host sends through a token bucket of the kernel
(tc tbf). A process in between (`carry`) gives each packet its delay, which the kernel's netem would do if it were everywhere,
and holds what a host receives to the same bandwidth.
"""

import argparse
import fcntl
import multiprocessing
import os
import select
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import dask
import pandas as pd
from benchmarks import scale
from benchmarks.scale_model import ClusterSize, Run, bytes_moved, fit_constants
from distributed import LocalCluster

from aucdist.engine.dask import connect

SUBNET = "10.213.8"
MTU = 9000
MBIT = 125_000.0

NETWORKS = [(2, 50, 5e-4), (2, 50, 5e-3), (2, 1000, 5e-4), (2, 1000, 5e-3), (4, 1000, 5e-4)]
"""Workers, Mbit/s and seconds of one way: to what is measured there, and on this machine alone, the model is fitted."""

HELD_OUT = [(1, 200, 2e-3), (2, 200, 5e-4), (2, 200, 5e-3), (4, 200, 2e-3)]
"""Nothing that is measured there is used."""

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
def cluster(place: ClusterSize) -> Iterator[tuple[Any, list[str]]]:
    """Start a scheduler here and each worker on a host of its own; give the client, and the hosts' names."""
    with ExitStack() as stack:
        names = stack.enter_context(network(place.workers, place.bandwidth, place.delay))
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


def sent(names: list[str]) -> list[int]:
    """Return the bytes that this host and each worker's has sent."""
    places = ["", *(f"ip netns exec {name} " for name in names)]
    read = [f"{p}cat /sys/class/net/aucdist-tun{i}/statistics/tx_bytes" for i, p in enumerate(places)]
    return [int(subprocess.run(one.split(), capture_output=True, check=True).stdout) for one in read]


def measured(
    networks: Sequence[tuple[int, float, float]], loads: dict[str, Any]
) -> Iterator[tuple[str, Run, list[int]]]:
    """Measure each case on each network, and what each host sent meanwhile."""
    for workers, mbit, delay in networks:
        place = ClusterSize(workers, min(workers, os.cpu_count() or 1), mbit * MBIT, delay)
        with cluster(place) as (client, names):
            scale.compile_on_workers(client, workers)
            for name, load in loads.items():
                before = sent(names)
                for _, run in scale.measure_on(client, place, {name: load}, times=1):
                    yield name, run, [b - a for a, b in zip(before, sent(names), strict=True)]


def main() -> None:
    """Measure here and on the networks, fit, and print the constants and every run beside what the model says of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", help="write the table as CSV, too")
    asked = parser.parse_args()
    loads = scale.all_workloads()
    known: list[tuple[str, Run, list[int]]] = [
        (name, run, []) for name, run in scale.measure_runs(scale.local_clusters())
    ]
    known += list(measured(NETWORKS, loads))
    constants = fit_constants([run for name, run, _ in known if scale.CASES[name][1]])
    print(scale.constants_row(constants))
    rows = [(*one, scale.CASES[one[0]][1]) for one in known] + [(*one, False) for one in measured(HELD_OUT, loads)]
    table = pd.DataFrame(
        {
            **scale.prediction_row(name, run, constants, used),
            "Mbit/s": run.cluster.bandwidth / MBIT, "delay ms": 1e3 * run.cluster.delay,
            "MB counted": bytes_moved(run.workload, run.cluster) / 1e6,
            "MB sent": " + ".join(f"{n / 1e6:.1f}" for n in bytes_sent),
        } for name, run, bytes_sent, used in rows
    )  # fmt: skip
    print(table.to_string(index=False, float_format="{:.3g}".format))
    if asked.output:
        table.to_csv(asked.output, index=False)


if __name__ == "__main__":
    main()

"""Break things in the middle of a fit, again and again, and see whether the fit ends, and with the same bits.

Run by `make faults`, or by hand: ``PYTHONPATH=tests python tests/infra/faults.py --times 5 --only link-cut``. The link that is
cut needs root (network namespaces), and so does the full disk (a mount); S3 needs the lab of AUCDIST_TEST_S3. What cannot be done
here is a row that says so.
"""

import argparse
import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import boto3
import numpy as np
from distributed import Client
from rich.console import Console
from rich.table import Table
from support.broken_runs import HERE, LONGEST, MODEL, ROUNDS, NotHere, Run, config, undisturbed
from support.supervised import started_worker, supervised

LAB = Path(os.environ.get("AUCDIST_LABS", Path(__file__).resolve().parents[3] / "shared" / "labs")) / "s3"
SUBNET = "10.213.7"

LARGE = {"model": MODEL | {"max_passes": 6}}
LONGER = MODEL | {"lam": 1e-6, "max_passes": 1500}
"""A fit that is still running when new workers have started."""


# ---- the faults -------------------------------------------------------------------------------------------------------


def worker_killed(data: str, folder: Path) -> np.ndarray:
    """SIGKILL of one of two workers."""
    run = Run(config(data, folder), folder)
    run.wait_for_round()
    os.kill(run.workers()[0], signal.SIGKILL)
    return run.weights()


def both_workers_killed(data: str, folder: Path) -> np.ndarray:
    """SIGKILL of both workers at once."""
    run = Run(config(data, folder), folder)
    run.wait_for_round()
    for pid in run.workers():
        os.kill(pid, signal.SIGKILL)
    return run.weights()


def worker_killed_in_a_step(data: str, folder: Path) -> np.ndarray:
    """SIGKILL of one of two workers at five moments of a fit, whatever it is doing; its nanny starts it anew each time."""
    run = Run(config(data, folder), folder)
    for number in range(5):
        run.wait_for_round(ROUNDS + 9 * number)
        time.sleep(0.013 * number)  # the rounds are as long as they are: this falls into other steps of one
        if len(workers := run.workers()) == 2:
            os.kill(workers[number % 2], signal.SIGKILL)
    return run.weights()


def killed_while_made_again(data: str, folder: Path) -> np.ndarray:
    """SIGKILL of one of two workers, and of the other while Dask makes the first one's blocks again there."""
    run = Run(config(data, folder), folder)
    run.wait_for_round()
    first, second = run.workers()[:2]
    os.kill(first, signal.SIGKILL)
    time.sleep(0.1)
    os.kill(second, signal.SIGKILL)
    return run.weights()


def worker_hangs(data: str, folder: Path) -> np.ndarray:
    """SIGSTOP of one of two workers for a minute."""
    return _stopped(data, folder, 60)


def worker_never_wakes(data: str, folder: Path) -> np.ndarray:
    """SIGSTOP of one of two workers for good: Dask gives it up after its time to live, here 30 s, and starts another."""
    return _stopped(data, folder, None, DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL="30s")


def worker_stopped(data: str, folder: Path) -> np.ndarray:
    """SIGSTOP of one of two workers for 30 s."""
    return _stopped(data, folder, 30)


def _stopped(data: str, folder: Path, seconds: float | None, **environment: str) -> np.ndarray:
    run = Run(config(data, folder), folder, **environment)
    run.wait_for_round()
    pid = run.workers()[0]
    os.kill(pid, signal.SIGSTOP)
    if seconds is not None:
        time.sleep(seconds)
        with suppress(ProcessLookupError):  # its nanny may have replaced it
            os.kill(pid, signal.SIGCONT)
    return run.weights()


def flow_killed(data: str, folder: Path) -> np.ndarray:
    """SIGKILL of the run itself; it is started again."""
    run = Run(config(data, folder), folder)
    run.wait_for_round()
    run.process.kill()
    run.process.wait()
    return _goes_on(data, folder)


def flow_terminated(data: str, folder: Path) -> np.ndarray:
    """SIGTERM to the run itself, which ends with 143; it is started again."""
    run = Run(config(data, folder), folder)
    run.wait_for_round()
    run.process.terminate()
    if (code := run.process.wait(60)) != 143:
        raise RuntimeError(f"SIGTERM ended the run with {code}")
    return _goes_on(data, folder)


def _goes_on(data: str, folder: Path) -> np.ndarray:
    again = Run(config(data, folder), folder)
    weights = again.weights()
    if not any("resumes from the checkpoint" in line for line in again.said):
        raise RuntimeError("the run began anew")
    return weights


def scheduler_killed(data: str, folder: Path) -> np.ndarray:
    """SIGKILL of the scheduler; a supervisor restarts it and the workers."""
    with supervised(folder) as (there, pid_of_scheduler):
        run = Run(config(data, folder, cluster=there), folder)
        run.wait_for_round()
        os.kill(pid_of_scheduler(), signal.SIGKILL)
        weights = run.weights()
    if not any("the scheduler was lost" in line for line in run.said):
        raise RuntimeError("the scheduler was not missed")
    return weights


def scheduler_killed_for_good(data: str, folder: Path) -> np.ndarray:
    """The same without checkpoints: the run says what was lost and ends with 1; another one begins anew."""
    with supervised(folder) as (there, pid_of_scheduler):
        anew = config(data, folder, cluster=there)
        del anew["checkpoint"]
        run = Run(anew, folder)
        run.wait_for_round()
        os.kill(pid_of_scheduler(), signal.SIGKILL)
        if run.process.wait(LONGEST) != 1 or not any("the scheduler was lost" in line for line in run.said):
            raise RuntimeError(f"exit code {run.process.returncode}: {''.join(run.said)[-500:]}")
        return Run(anew, folder).weights()


def cluster_scaled(data: str, folder: Path) -> np.ndarray:
    """The cluster grows from one worker to three and shrinks to one, which is not the first."""
    with ExitStack() as stack:
        there, _ = stack.enter_context(supervised(folder, workers=0))
        stack.enter_context(started_worker(there["address"], folder))
        run = Run(config(data, folder, cluster=there | {"workers": 1}, model=LONGER), folder)
        run.wait_for_round()
        client = stack.enter_context(Client(there["address"]))
        (first,) = client.nthreads()
        for _ in range(2):
            stack.enter_context(started_worker(there["address"], folder))
        client.wait_for_workers(3, timeout=LONGEST)
        another = next(worker for worker in client.nthreads() if worker != first)
        client.retire_workers([first, another])
        if run.process.poll() is not None:
            raise RuntimeError("the run had ended before the cluster shrank")
        return run.weights()


def link_cut(data: str, folder: Path) -> np.ndarray:
    """The link to one of two workers is cut for good."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        raise NotHere("network namespaces need root and iproute2")
    with far_host() as (name, cable):
        prefix = ["ip", "netns", "exec", name]
        with supervised(folder, host=f"{SUBNET}.1", far=prefix) as (there, _):
            # Dask waits 30 s for a silent connection by itself.
            run = Run(config(data, folder, cluster=there), folder, DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP="15s")
            run.wait_for_round()
            subprocess.run(["ip", "link", "set", cable, "down"], check=True)
            return run.weights()


def s3_down(data: str, folder: Path) -> np.ndarray:
    """The S3 server killed for 10 s, while each pass reads from it."""
    if "AUCDIST_TEST_S3" not in os.environ or not (LAB / "up.sh").is_file():
        raise NotHere("no S3 lab: AUCDIST_TEST_S3 and AUCDIST_LABS")
    client = boto3.client("s3", endpoint_url=os.environ["AUCDIST_TEST_S3"])
    bucket = f"faults-{os.getpid()}"
    client.create_bucket(Bucket=bucket)
    try:
        for file in Path(data).iterdir():
            client.upload_file(str(file), bucket, f"copy/{file.name}")
        run = Run(config(f"s3://{bucket}/copy", folder, cache="stream"), folder)
        run.wait_for_round()
        subprocess.run([LAB / "down.sh", "--kill"], check=True, capture_output=True)
        time.sleep(10)
        for _ in range(3):  # on a busy machine a start may have to be repeated
            if subprocess.run([LAB / "up.sh"], capture_output=True).returncode == 0:
                break
        return run.weights()
    finally:
        for item in client.list_objects_v2(Bucket=bucket).get("Contents", []):
            client.delete_object(Bucket=bucket, Key=item["Key"])
        client.delete_bucket(Bucket=bucket)


def memory_limit(data: str, folder: Path) -> np.ndarray:
    """Workers whose limit is below what the rows take: they read them for each pass, and none is restarted."""
    there = {"kind": "local", "workers": 2, "memory_limit": "1GiB"}
    large = config(f"{data}-large", folder, cluster=there, **LARGE)
    run = Run(large, folder)
    run.wait_for_round(1)
    before = set(run.workers())
    weights = run.weights()
    if any("restart" in line.lower() for line in run.said) or len(before) != 2:
        raise RuntimeError("a worker was restarted")
    return weights


def disk_full(data: str, folder: Path) -> np.ndarray:
    """No space where checkpoints go."""
    if os.geteuid() != 0:
        raise NotHere("a small file system needs root")
    small = folder / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", small]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        raise NotHere("no file system can be mounted")
    try:
        run = Run(config(data, folder, checkpoint={"rounds": 5, "url": str(small / "checkpoints")}), folder)
        weights = run.weights()
    finally:
        subprocess.run(["umount", small], check=True)
    if not any("no checkpoint could be written" in line and "space" in line for line in run.said):
        raise RuntimeError(f"the full disk was not reported: {''.join(run.said)[-300:]}")
    return weights


FAULTS: dict[str, Callable[[str, Path], np.ndarray]] = {
    "worker-killed": worker_killed,
    "both-workers-killed": both_workers_killed,
    "worker-killed-in-a-step": worker_killed_in_a_step,
    "killed-while-made-again": killed_while_made_again,
    "worker-stopped": worker_stopped,
    "worker-hangs": worker_hangs,
    "worker-never-wakes": worker_never_wakes,
    "scheduler-killed": scheduler_killed,
    "scheduler-killed-for-good": scheduler_killed_for_good,
    "cluster-scaled": cluster_scaled,
    "flow-killed": flow_killed,
    "flow-terminated": flow_terminated,
    "link-cut": link_cut,
    "s3-down": s3_down,
    "memory-limit": memory_limit,
    "disk-full": disk_full,
}

SETTINGS: dict[str, dict[str, Any]] = {
    "memory-limit": LARGE | {"cache": "stream"},
    "cluster-scaled": {"model": LONGER},
}
"""How the undisturbed run of a fault is configured, where it is not as of the others."""


# ---- a host of its own ------------------------------------------------------------------------------------------------


@contextmanager
def far_host() -> Iterator[tuple[str, str]]:
    """Make a network namespace with one cable to here; give its name, and that of our end of the cable."""
    name, here, there = "aucdist-far", "aucdist0", "aucdist1"
    subprocess.run(["ip", "netns", "del", name], capture_output=True)
    with ExitStack() as stack:
        for command in (
            f"ip netns add {name}",
            f"ip link add {here} type veth peer name {there} netns {name}",
            f"ip addr add {SUBNET}.1/24 dev {here}",
            f"ip link set {here} up",
            f"ip -n {name} addr add {SUBNET}.2/24 dev {there}",
            f"ip -n {name} link set {there} up",
            f"ip -n {name} link set lo up",
        ):
            if (done := subprocess.run(command.split(), capture_output=True, text=True)).returncode != 0:
                raise NotHere(f"{command}: {done.stderr.strip()}")
            if "netns add" in command:
                stack.callback(subprocess.run, ["ip", "netns", "del", name], capture_output=True)
                # The cable goes with the namespace, but not before its last process is gone.
                stack.callback(subprocess.run, ["ip", "link", "del", here], capture_output=True)
        yield name, here


# ---- the table --------------------------------------------------------------------------------------------------------


def tried(name: str, times: int, data: str, expected: np.ndarray, parent: Path) -> dict[str, Any]:
    """Try a fault so many times, and return its row of the table."""
    row: dict[str, Any] = {
        "fault": name,
        "what": FAULTS[name].__doc__,
        "tried": 0,
        "survived": 0,
        "same bits": 0,
        "note": "",
    }
    for number in range(times):
        folder = parent / f"{name}-{number}"
        folder.mkdir()
        try:
            weights = FAULTS[name](data, folder)
        except NotHere as why:
            return row | {"note": f"not run here: {why}"}
        except Exception as error:
            row |= {"tried": row["tried"] + 1, "note": f"{type(error).__name__}: {error}"[:200]}
            continue
        row["tried"] += 1
        row["survived"] += 1
        row["same bits"] += weights.tobytes() == expected.tobytes()
        shutil.rmtree(folder, ignore_errors=True)
    return row


def main() -> int:
    """Try all faults, print the table, and return 1 if one was not survived with the same bits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=5, help="how often each fault is tried")
    parser.add_argument("--only", nargs="*", choices=FAULTS, default=list(FAULTS), help="some of the faults")
    parser.add_argument("--output", help="write the table as CSV, too")
    asked = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="aucdist-faults-") as where:
        parent = Path(where)
        data = str(parent / "data")
        for place, n, n_shards in ((data, 120_000, 12), (f"{data}-large", 6_000_000, 96)):
            if place == data or "memory-limit" in asked.only:
                size = ["--rows", str(n), "--features", "50", "--rows-per-shard", str(n // n_shards)]
                simulate = ["simulate", place, *size]
                subprocess.run([HERE / "aucdist", *simulate], check=True, capture_output=True)
        weights: dict[str, np.ndarray] = {}
        for name in asked.only:
            start, settings = time.monotonic(), SETTINGS.get(name, {})
            if (kind := json.dumps(settings)) not in weights:
                rows_of = f"{data}-large" if name == "memory-limit" else data
                weights[kind] = undisturbed(rows_of, parent / f"undisturbed-{len(weights)}", **settings)
            rows.append(tried(name, asked.times, data, weights[kind], parent))
            rows[-1]["seconds"] = round(time.monotonic() - start)
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    table = Table(*rows[0])
    for row in rows:
        table.add_row(*map(str, row.values()))
    Console(width=160).print(table)
    if asked.output:
        with Path(asked.output).open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    return int(any(row["same bits"] < row["tried"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())

"""Whole runs of `aucdist train` on simulated rows: seconds of each stage, and peak memory.

Run by hand, each with ``--output docs/benchmarks/large-....csv``:

* ``python tests/infra/large_runs.py rows``: many rows on two workers that stream them;
* ``python tests/infra/large_runs.py maps``: codes of bins beside the features as they are;
* ``python tests/infra/large_runs.py shapes``: codes of many rows, the same fit in one process, on two workers, and killed and
  resumed, and ten pairs. The digests of the weights must agree.

The largest takes 9 GB of disk for its rows, as much for copies, and ten minutes. Memory is what no other process shares, looked
at four times a second.
"""

import argparse
import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
import yaml
from benchmarks.about import Measurement

from aucdist.data.shards.manifest import read_manifest
from aucdist.engine.checkpoint import MANIFEST
from aucdist.errors import InputError
from aucdist.model import load_model

ROUNDS = 2
"""So many of them are between two checkpoints of a run that is killed."""
HERE = Path(sys.executable).parent
CONDITIONS = "aucdist train, one thread a process, lam 1e-3, gap 1e-3; runs of 20 000 rows before, which compile"
STREAMED_BY_TWO: dict[str, Any] = {"cluster": {"kind": "local", "workers": 2}, "cache": "stream"}
CARRIERS: dict[str, dict[str, Any]] = {
    "one process": {"cluster": {"kind": "none", "n_jobs": 1}},
    "one process, streamed": {"cluster": {"kind": "none", "n_jobs": 1}, "cache": "stream"},
    "two threads, streamed": {"cluster": {"kind": "none", "n_jobs": 2}, "cache": "stream"},
    "two workers": {"cluster": {"kind": "local", "workers": 2}},
    "two workers, streamed": STREAMED_BY_TWO,
}
MAPS: dict[str, dict[str, Any]] = {
    "linear": {},
    "64 bins": {"map": "bins", "bins": 64},
    "64 bins, 10 pairs": {"map": "bins", "bins": 64, "interactions": 10},
}


@dataclass(frozen=True)
class Case:
    """A run: what the table calls it, its rows, where they are, the map of its model, and whether it is killed on its way."""

    columns: dict[str, str]
    rows: int
    features: int
    share: float
    carrier: dict[str, Any]
    features_map: dict[str, Any] = field(default_factory=dict)
    killed: bool = False


CASES = {
    "rows": [
        Case({"run": "few positives"}, 100_000_000, 20, 1e-3, STREAMED_BY_TWO),
        Case({"run": "balanced"}, 20_000_000, 20, 0.5, STREAMED_BY_TWO),
    ],
    "maps": [
        Case({"features map": name, "carrier": where}, 581_012, 54, 0.18, carrier, features)
        for name, features in MAPS.items()
        for where, carrier in CARRIERS.items()
        if where != "two threads, streamed"
    ],
    "shapes": [
        *(
            Case({"features map": "64 bins", "carrier": where}, 100_000_000, 20, 1e-3, carrier, MAPS["64 bins"], killed)
            for where, carrier, killed in (
                ("two threads, streamed", CARRIERS["two threads, streamed"], False),
                ("two workers, streamed", STREAMED_BY_TWO, False),
                ("two workers, killed and resumed", STREAMED_BY_TWO, True),
            )
        ),
        Case(
            {"features map": "64 bins, 10 pairs", "carrier": "two workers, streamed"},
            10_000_000,
            50,
            1e-3,
            STREAMED_BY_TWO,
            MAPS["64 bins, 10 pairs"],
        ),
    ],
}


def peak_memory(process: subprocess.Popen[bytes]) -> tuple[int, int]:
    """Wait for a process, and return the most bytes that it took by itself, and all its children together."""
    own = of_children = 0
    parent = psutil.Process(process.pid)
    while process.poll() is None:
        with suppress(psutil.NoSuchProcess):  # one of them has just ended
            own = max(own, parent.memory_full_info().uss)
            of_children = max(
                of_children, sum(child.memory_full_info().uss for child in parent.children(recursive=True))
            )
        time.sleep(0.25)
    return own, of_children


def simulated(case: Case, folder: Path) -> Path:
    """Return the folder of the rows of a case, which are written unless they are there."""
    data = folder / f"rows-{case.rows}x{case.features}"
    try:
        there = read_manifest(str(data)).n_samples == case.rows
    except InputError:
        there = False
    if not there:
        size = ["--rows", str(case.rows), "--features", str(case.features), "--positive-share", str(case.share)]
        subprocess.run([HERE / "aucdist", "simulate", data, *size], check=True, capture_output=True)
    return data


def write_config(case: Case, data: Path, folder: Path) -> Path:
    """Write the configuration of a run and return its path."""
    config = {
        "name": "large",
        "data": {"source": {"source": str(data), "format": "shards"}, "test": {"fraction": 0.1}},
        "model": {"solver": "all-pairs", "lam": 1e-3, "tol": 1e-3}
        | ({"features": case.features_map} if case.features_map else {}),
        "output": str(folder / "runs"),
    }
    if case.killed:
        config["checkpoint"] = {"rounds": ROUNDS}
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(config | case.carrier))
    return path


def command(case: Case, config: Path, errors: int) -> subprocess.Popen[bytes]:
    """Start a run, with room for copies of its rows, in a session of its own."""
    copies = str(2 * 4 * case.rows * case.features)  # of each process; the rows are half of it
    return subprocess.Popen(
        [HERE / "aucdist", "train", config, "--json"], stdout=subprocess.PIPE, stderr=errors,
        env=os.environ | {"AUCDIST_SCRATCH_BYTES": copies}, start_new_session=True,
    )  # fmt: skip


def kill_in_fit(process: subprocess.Popen[bytes], checkpoints: Path) -> None:
    """Kill a run and its workers, at once, when it has written a checkpoint."""
    while process.poll() is None and not list(checkpoints.glob(f"*/{MANIFEST}*")):
        time.sleep(0.1)
    if process.poll() is not None:
        raise RuntimeError("the run ended before it had written a checkpoint")
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def cpu_seconds() -> float:
    """Return the CPU seconds of this process's children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(case: Case, folder: Path, rows: Path) -> dict[str, Any]:
    """Return the row of a run; that of a killed one has the seconds of the command that resumed it."""
    config = write_config(case, simulated(case, rows), folder)
    if case.killed:
        with command(case, config, subprocess.DEVNULL) as process:
            kill_in_fit(process, folder / "runs" / ".checkpoints")
    start, cpu = time.perf_counter(), cpu_seconds()
    errors = folder / "errors"
    with errors.open("wb") as file, command(case, config, file.fileno()) as process:
        own, of_workers = peak_memory(process)
        assert process.stdout is not None
        said = process.stdout.read()
    if process.returncode:
        raise RuntimeError(f"{case.columns}: {errors.read_text(encoding='utf-8')[-2000:]}")
    result = json.loads(said.splitlines()[-1])
    whole, cpu = time.perf_counter() - start, cpu_seconds() - cpu
    metrics = json.loads((Path(result["run"]) / "metrics.json").read_text())
    memory = own + of_workers
    weights = hashlib.sha256(load_model(f"{result['run']}/model").coef.tobytes()).hexdigest()[:16]
    return {
        **case.columns, "rows": case.rows, "features": case.features, "positive share": case.share,
        "passes": result["passes"], "relative gap": result["certificate"]["relative_gap"],
        "slack": result["certificate"]["slack"], **{f"{stage} s": seconds for stage, seconds in result["seconds"].items()},
        "whole run s": whole, "CPU s": cpu, "client MiB": own / 2**20, "workers MiB": of_workers / 2**20,
        "bytes of the workers a row": of_workers / case.rows, "all MiB": memory / 2**20,
        "test AUC": metrics["metrics"]["test_auc"], "AUC error": metrics["details"]["train"]["auc_error"],
        "digest of the weights": weights,
    }  # fmt: skip


def main() -> None:
    """Measure all cases of a set and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", choices=CASES)
    parser.add_argument(
        "--output", required=True, help="write the table as CSV, and a JSON file of versions and machine"
    )
    parser.add_argument("--rows", type=Path, help="a folder where simulated rows stay, and are found again")
    parser.add_argument("--share", type=float, default=1.0, help="measure with this share of the rows")
    asked = parser.parse_args()
    said = f"python tests/infra/large_runs.py {asked.cases} --output docs/benchmarks/{Path(asked.output).name}"
    about = Measurement(said + (f" --share {asked.share:g}" if asked.share < 1 else ""))
    rows = []
    cases = [replace(case, rows=int(asked.share * case.rows)) for case in CASES[asked.cases]]
    warm_up = [replace(case, rows=20_000, killed=False) for case in cases]  # compiles what each of them needs
    for case in [*warm_up, *cases]:
        with tempfile.TemporaryDirectory(prefix="aucdist-large-") as folder:
            rows.append(measured(case, Path(folder), asked.rows or Path(folder)))
        print(json.dumps(rows[-1]), flush=True)
        pd.DataFrame(rows[len(warm_up) :]).to_csv(asked.output, index=False, float_format="%.6g")
    Path(asked.output).with_suffix(".json").write_text(about.to_json(CONDITIONS), encoding="utf-8")


if __name__ == "__main__":
    main()

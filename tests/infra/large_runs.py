"""Whole runs of `aucdist train` on simulated rows: seconds of each stage, and peak memory.

Run by hand: ``python tests/infra/large_runs.py rows --output docs/benchmarks/large-runs.csv`` for many rows on two workers that
stream them, and ``python tests/infra/large_runs.py maps --output docs/benchmarks/large-maps.csv`` for codes of bins beside the
features as they are. The largest takes 9 GB of disk for its rows, as much for copies, and ten minutes. Memory is what no other
process shares, looked at four times a second.
"""

import argparse
import json
import os
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

from flows.bench.about import Measurement

HERE = Path(sys.executable).parent
CONDITIONS = "aucdist train, one thread a process, lam 1e-3, gap 1e-3; runs of 20 000 rows before, which compile"
STREAMED_BY_TWO: dict[str, Any] = {"cluster": {"kind": "local", "workers": 2}, "cache": "stream"}
CARRIERS: dict[str, dict[str, Any]] = {
    "one process": {"cluster": {"kind": "none", "n_jobs": 1}},
    "one process, streamed": {"cluster": {"kind": "none", "n_jobs": 1}, "cache": "stream"},
    "two workers": {"cluster": {"kind": "local", "workers": 2}},
    "two workers, streamed": STREAMED_BY_TWO,
}
MAPS: dict[str, dict[str, Any]] = {
    "linear": {},
    "64 bins": {"map": "bins", "bins": 64},
    "64 bins, 10 pairs": {"map": "bins", "bins": 64, "pairs": 10},
}


@dataclass(frozen=True)
class Case:
    """A run: what the table calls it, the size of its rows, where they are, and the map of its model."""

    columns: dict[str, str]
    rows: int
    features: int
    share: float
    carrier: dict[str, Any]
    features_map: dict[str, Any] = field(default_factory=dict)


CASES = {
    "rows": [
        Case({"run": "few positives"}, 100_000_000, 20, 1e-3, STREAMED_BY_TWO),
        Case({"run": "balanced"}, 20_000_000, 20, 0.5, STREAMED_BY_TWO),
    ],
    "maps": [
        Case({"features map": name, "carrier": where}, 581_012, 54, 0.18, carrier, features)
        for name, features in MAPS.items()
        for where, carrier in CARRIERS.items()
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


def measured(case: Case, folder: Path) -> dict[str, Any]:
    """Return the row of a run."""
    data, run = folder / "rows", folder / "config.yaml"
    size = ["--rows", str(case.rows), "--features", str(case.features), "--positive-share", str(case.share)]
    subprocess.run([HERE / "aucdist", "simulate", data, *size], check=True, capture_output=True)
    config = {
        "name": "large",
        "data": {"source": {"source": str(data), "format": "shards"}, "test": {"fraction": 0.1}},
        "model": {"solver": "all-pairs", "lam": 1e-3, "tol": 1e-3}
        | ({"features": case.features_map} if case.features_map else {}),
        "output": str(folder / "runs"),
    }
    run.write_text(yaml.safe_dump(config | case.carrier))
    copies = str(2 * 4 * case.rows * case.features)  # of each process; the rows are half of it
    start = time.perf_counter()
    with subprocess.Popen(
        [HERE / "aucdist", "train", run, "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=os.environ | {"AUCDIST_SCRATCH_BYTES": copies},
    ) as process:  # fmt: skip
        own, of_workers = peak_memory(process)
        assert process.stdout is not None
        result = json.loads(process.stdout.read().splitlines()[-1])
        whole = time.perf_counter() - start
    metrics = json.loads((Path(result["run"]) / "metrics.json").read_text())
    memory = own + of_workers
    return {
        **case.columns, "rows": case.rows, "features": case.features, "positive share": case.share,
        "passes": result["passes"], "relative gap": result["certificate"]["relative_gap"],
        "slack": result["certificate"]["slack"], **{f"{stage} s": seconds for stage, seconds in result["seconds"].items()},
        "whole run s": whole, "client MiB": own / 2**20, "workers MiB": of_workers / 2**20,
        "bytes of the workers a row": of_workers / case.rows, "all MiB": memory / 2**20,
        "test AUC": metrics["metrics"]["test_auc"], "AUC error": metrics["details"]["train"]["auc_error"],
    }  # fmt: skip


def main() -> None:
    """Measure all cases of a set and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", choices=CASES)
    parser.add_argument(
        "--output", required=True, help="write the table as CSV, and a JSON file of versions and machine"
    )
    asked = parser.parse_args()
    about = Measurement(f"python tests/infra/large_runs.py {asked.cases} --output {asked.output}")
    rows = []
    warm_up = [replace(case, rows=20_000) for case in CASES[asked.cases]]  # compiles what each of them needs
    for case in [*warm_up, *CASES[asked.cases]]:
        with tempfile.TemporaryDirectory(prefix="aucdist-large-") as folder:
            rows.append(measured(case, Path(folder)))
        print(json.dumps(rows[-1]), flush=True)
    pd.DataFrame(rows[len(warm_up) :]).to_csv(asked.output, index=False, float_format="%.6g")
    Path(asked.output).with_suffix(".json").write_text(about.to_json(CONDITIONS), encoding="utf-8")


if __name__ == "__main__":
    main()

"""Whole runs of `aucdist train` on simulated rows, on two workers that stream them: seconds of each stage, and peak memory.

Run by hand: ``python tests/infra/large_runs.py --output docs/benchmarks/large-runs.csv``. The largest takes 9 GB of disk for its
rows, as much for copies, and ten minutes. Memory is what no other process shares, looked at four times a second.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
import yaml

from flows.bench.about import Measurement

HERE = Path(sys.executable).parent
FEATURES = 20
CONDITIONS = "aucdist train, two worker processes with a thread each, rows streamed from copies, lam 1e-3, gap 1e-3"
CASES = {"few positives": (100_000_000, 1e-3), "balanced": (20_000_000, 0.5)}
"""Rows, and the share of the positives."""


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


def measured(name: str, rows: int, share: float, folder: Path) -> dict[str, Any]:
    """Return the row of a run."""
    data, run = folder / "rows", folder / "config.yaml"
    size = ["--rows", str(rows), "--features", str(FEATURES), "--positive-share", str(share)]
    subprocess.run([HERE / "aucdist", "simulate", data, *size], check=True, capture_output=True)
    config = {
        "name": "large",
        "data": {"source": {"source": str(data), "format": "shards"}, "test": {"fraction": 0.1}},
        "model": {"solver": "all-pairs", "lam": 1e-3, "tol": 1e-3},
        "cluster": {"kind": "local", "workers": 2},
        "cache": "stream",
        "output": str(folder / "runs"),
    }
    run.write_text(yaml.safe_dump(config))
    copies = str(2 * 4 * rows * FEATURES)  # of each process; the rows are half of it
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
    return {
        "run": name, "rows": rows, "features": FEATURES, "positive share": share, "passes": result["passes"],
        "relative gap": result["certificate"]["relative_gap"], "slack": result["certificate"]["slack"],
        **{f"{stage} s": seconds for stage, seconds in result["seconds"].items()}, "whole run s": whole,
        "client MiB": own / 2**20, "workers MiB": of_workers / 2**20,
        "bytes of the workers a row": of_workers / rows, "AUC error": metrics["details"]["train"]["auc_error"],
    }  # fmt: skip


def main() -> None:
    """Measure all cases and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=CASES, default=list(CASES))
    parser.add_argument(
        "--output", required=True, help="write the table as CSV, and a JSON file of versions and machine"
    )
    asked = parser.parse_args()
    about = Measurement(f"python tests/infra/large_runs.py --output {asked.output}")
    rows = []
    for name in asked.only:
        with tempfile.TemporaryDirectory(prefix="aucdist-large-") as folder:
            rows.append(measured(name, *CASES[name], Path(folder)))
        print(json.dumps(rows[-1]), flush=True)
    pd.DataFrame(rows).to_csv(asked.output, index=False)
    Path(asked.output).with_suffix(".json").write_text(about.to_json(CONDITIONS), encoding="utf-8")


if __name__ == "__main__":
    main()

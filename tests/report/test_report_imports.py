"""The library loads no reports; benches and papers load their optional packages where they use them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPORT = ["aucdist.report", "matplotlib", "jinja2"]
FIT = """
import numpy as np
from aucdist import PairwiseHingeClassifier
X = np.random.default_rng(0).normal(size=(60, 3))
PairwiseHingeClassifier().fit(X, X[:, 0] > 0).decision_function(X)
"""
TESTS = Path(__file__).resolve().parents[1]
PEERS = ["imblearn", "statsmodels", "skglm", "dask_ml", "lightgbm", "xgboost", "vowpalwabbit", "liblinear", "sksurv"]


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import aucdist", REPORT),
        (FIT, REPORT),
        ("import flows.reproduce.config, flows.reproduce.run", [*PEERS, *REPORT[1:]]),
        (
            "import flows.bench.suites, flows.bench.output, benchmarks.peers.suite, benchmarks.link",
            [*PEERS, *REPORT[1:]],
        ),
    ],
    ids=["import", "fit", "reproduce", "bench"],
)
def test_packages_are_loaded_where_they_are_used(code: str, absent: list[str]) -> None:
    code += f"\nimport sys; print([m for m in {absent!r} if m in sys.modules])"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"

"""`roc_auc_score` against scikit-learn's own tests of its function for two classes, run with ours in its place."""

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import UndefinedMetricWarning

from aucdist.metrics import roc_auc_score

TESTS = Path(__file__).parents[1]
MODULES = ("test_ranking", "test_common")
CHOSEN = (
    "(test_ranking and (partial_roc_auc or non_binary_class or scale_invariance or roc_curve or at_thresholds) and not toydata)"
    " or (test_common and (roc_auc_score or partial_roc_auc) and not (multilabel or polars))"
)
"""Of scikit-learn's tests those that call the function for two classes; `toydata` and `multilabel` go on to several labels."""


def test_scikit_learns_own_tests_pass(tmp_path):
    """In a process of its own, because scikit-learn's tests need other settings of pytest than ours."""
    command = [sys.executable, "-m", "pytest", "-p", "support.ours_in_sklearn", "-p", "no:cacheprovider", "-q", "-rA"]
    command += ["-c", os.devnull, "--rootdir", str(tmp_path), "-k", CHOSEN, "--pyargs"]
    command += [f"sklearn.metrics.tests.{module}" for module in MODULES]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS.parent), str(TESTS)]), "PYTEST_ADDOPTS": ""}
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert found.returncode == 0, found.stdout[-5000:]
    assert sum(line.startswith("PASSED") for line in found.stdout.splitlines()) >= 25 + 13  # of the two modules


@pytest.mark.parametrize("max_fpr", [None, 0.3])
def test_one_class_warns_and_gives_nan(max_fpr):
    with pytest.warns(UndefinedMetricWarning, match="Only one class is present in y_true"):
        assert math.isnan(roc_auc_score([1, 1], [0.1, 0.2], max_fpr=max_fpr))
    with pytest.warns(UndefinedMetricWarning, match="Only one class"):
        assert math.isnan(roc_auc_score([0, 1], [0.1, 0.2], sample_weight=[1, 0], max_fpr=max_fpr))


def test_pos_label_may_be_the_smaller_one():
    y, scores = np.array(["ham", "spam", "ham", "spam"]), [0.4, 0.1, 0.3, 0.35]
    assert roc_auc_score(y, scores, pos_label="ham") == pytest.approx(0.75)
    assert roc_auc_score(y, scores) == pytest.approx(0.25)

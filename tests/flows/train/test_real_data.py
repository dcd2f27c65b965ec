"""The figures that the README's configurations promise, on the real data sets."""

import pytest

from flows.progress.console import LineObserver
from flows.train.config import load_train
from flows.train.run import train


@pytest.mark.parametrize(
    ("config", "rows", "auc", "passes"),
    [
        pytest.param("kddcup99", (395_217, 118, 4_228), 0.998, 100, marks=pytest.mark.slow),
        ("a9a", (32_561, 123, 7_841), 0.899, 40),
    ],
)
def test_certified_within_the_passes(data_dir, tmp_path, monkeypatch, config, rows, auc, passes):
    monkeypatch.setenv("AUCDIST_DATA", str(data_dir))
    result = train(load_train(config, ["cluster=none"], str(tmp_path)), LineObserver(lambda text: None))
    assert (result["n_samples"], result["n_features"], result["n_pos"]) == rows
    assert result["certificate"]["status"] == "converged"
    assert result["certificate"]["relative_gap"] <= 1e-3
    assert result["metrics"]["test_auc"] >= auc
    assert result["passes"] <= passes

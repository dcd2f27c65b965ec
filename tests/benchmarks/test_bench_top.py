"""The suite `top` with systems that do almost nothing. No time is asserted."""

import numpy as np
import pytest
from support.contestants import broken, means

from aucdist.data.shards.sharding import simulate
from aucdist.errors import InputError
from aucdist.metrics.compare import holm, partial_auc_test
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.partial import partial_auc
from benchmarks.peers import passes as passes_suite, top as suite, top_systems
from benchmarks.peers.system import LINEAR, OTHER, OURS, FittedModel, System

ROWS = tuple(simulate(n, 3, 0.3, seed=0, index=i) for i, n in enumerate((500, 600)))


def first_feature(X, y, value, budget, threads):
    """Fit nothing; score by the first column."""
    return FittedModel(lambda X: X[:, 0])


GOOD = System("good", "numpy", means, (16,), 16, OURS)
POOR = System("poor", "numpy", first_feature, (16,), 16, LINEAR)
FAILS = System("fails", "numpy", broken, (16,), 16, LINEAR)
GONE = System("gone", "no_such_package", means, (16,), 16, OTHER)
DENSE = System("dense", "numpy", means, (16,), 16, OTHER, max_features=2)


def of(train, test):
    """Return a data set with these rows, whatever the number of splits."""
    return lambda n_splits: [(train, test)]


@pytest.fixture
def few_systems(monkeypatch):
    monkeypatch.setattr(suite, "TOP", (GOOD,))
    monkeypatch.setattr(suite, "SYSTEMS", (GOOD, POOR, FAILS, GONE, DENSE))
    few = simulate(300, 3, 0.1, seed=1, index=0)
    monkeypatch.setattr(
        suite, "top_data_sets", lambda slow: {name: of(*ROWS) for name in ("a9a", "other")} | {"few": of(few, few)}
    )


def test_rows_measure_and_compare_the_top(few_systems, capsys):
    table = list(suite.top(False))
    rows = {(row["data"], row["system"]): row for row in table}
    assert "few: 31 positive test rows, left out" in capsys.readouterr().err
    ours, poor = rows["a9a", "aucdist top"], rows["a9a", "poor"]
    assert ours["note"] == "good"
    train, test = ROWS
    scores = [s.fit(train.X, train.y, row["value"], 16, 1).scores(test.X) for s, row in ((GOOD, ours), (POOR, poor))]
    counts = ScoreCounts.from_scores(test.y, scores[0])
    assert ours["partial AUC 0.05"] == partial_auc(counts, 0.05, standardized=True)
    test_of = partial_auc_test(test.y, *scores, 0.01, standardized=True)
    assert poor["aucdist minus this"] == test_of.value
    assert poor["p"] == holm([test_of.p_value])[0]
    assert poor["aucdist"] == ("ties" if poor["p"] > 0.05 else "wins" if test_of.value > 0 else "loses")
    assert rows["a9a", "fails"]["note"].startswith("not run here: ")
    assert rows["a9a", "gone"]["note"] == "not installed"
    assert rows["a9a", "dense"]["note"].startswith("not run here: a matrix")
    summary = rows["all 2", "poor"]
    assert summary["wins"] + summary["ties"] + summary["loses"] == 2
    assert summary[poor["aucdist"]] == 2


def test_passes_can_be_counted_alone(monkeypatch):
    monkeypatch.setattr(passes_suite, "data_sets", lambda slow: {"a9a": of(*ROWS), "other": of(*ROWS)})
    monkeypatch.setattr(passes_suite, "BETAS", (1.0, 0.1))
    assert [(row["data"], row["value"]) for row in passes_suite.passes(False)] == [("a9a", 1.0), ("a9a", 0.1)]
    with pytest.raises(InputError, match="data set"):
        next(passes_suite.passes(False, only="other"))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "system", [s for s in top_systems.SYSTEMS if s.package in ("aucdist", "sklearn")], ids=lambda s: s.name
)
def test_systems_score_the_rows(system):
    train, test = ROWS
    scores = system.fit(train.X, train.y, 1e-2, 20, 1).scores(test.X)
    assert scores.shape == (600,)
    assert np.isfinite(scores).all()

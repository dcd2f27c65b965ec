"""The suite `curves` with systems that need no fit, and its peers on a few rows. No time is asserted."""

import os

import numpy as np
import pytest

from aucdist.data.shards.sharding import simulate
from aucdist.errors import RunError
from aucdist.metrics.compare import holm, partial_auc_test
from aucdist.search.auto import auto_search
from benchmarks.peers import curves as suite
from benchmarks.tree_systems import Contestant
from benchmarks.within import cpu_seconds, within

ROWS = [tuple(simulate(n, 3, 0.3, seed=seed, index=i) for i, n in enumerate((500, 600))) for seed in (0, 1, 2)]


def by(*weights):
    return lambda train: (lambda X: X @ np.array(weights), "")


def by_means(train):
    w = train.X[train.y > 0].mean(axis=0) - train.X[train.y < 0].mean(axis=0)
    return lambda X: X @ w, "means"


def broken(train):
    raise ZeroDivisionError("oops")


SYSTEMS = [
    Contestant("auto", by_means, ours=True),
    Contestant("poor", by(0.0, 0.0, 1.0)),
    Contestant("broken", broken),
    Contestant("slow", by_means, slow=True),
]


@pytest.fixture
def sets(monkeypatch):
    few = simulate(300, 3, 0.05, seed=1, index=0)
    known = {"one": lambda splits: ROWS[:splits], "few": lambda splits: [(few, few)]}
    monkeypatch.setattr(suite, "top_data_sets", lambda slow_peers: known)


def test_a_row_for_each_split_and_the_majority_of_the_tests(sets, capsys):
    rows = list(suite.curves(False, contestants=SYSTEMS))
    assert "few: fewer than 100 positive test rows" in capsys.readouterr().err
    assert [(row["data"], row["split"], row["system"]) for row in rows[:-1]] == [
        ("one", split, name) for split in range(3) for name in ("auto", "poor", "broken")
    ]
    assert rows[2]["chosen"] == "failed: ZeroDivisionError: oops"
    outcomes = []
    for split, (train, test) in enumerate(ROWS):
        scores = [fit(train)[0](test.X) for fit in (by_means, by(0.0, 0.0, 1.0))]
        expected, poor = partial_auc_test(test.y, *scores, suite.MAX_FPR), rows[3 * split + 1]
        assert poor["aucdist minus this"] == expected.value
        assert poor["p"] == holm([expected.p_value])[0]
        outcomes.append(poor["aucdist"])
    most = max(("wins", "ties", "loses"), key=outcomes.count)
    mean = np.mean([rows[3 * split + 1]["aucdist minus this"] for split in range(3)])
    assert rows[-1] == {"data": "all 1", "system": "poor", "aucdist minus this": mean, "p": 1.0} | {
        name: int(name == most) for name in ("wins", "ties", "loses")
    }


def test_differences_of_the_sets_are_ranked_by_their_size():
    seven = {f"set {d}": [{"aucdist": "ties", "aucdist minus this": d / 100}] for d in (-2, 1, 3, 4, 5, 6, 7)}
    two = seven | {"set 3": [{"aucdist": "wins", "aucdist minus this": d} for d in (0.02, 0.03, 0.04)]}
    for compared, wins in ((seven, 0), (two, 1)):
        (row,) = suite.summary({"peer": compared})
        assert (row["wins"], row["ties"], row["loses"]) == (wins, 7 - wins, 0)
        assert row["aucdist minus this"] == pytest.approx(0.24 / 7)
        # of the 128 choices of signs 3 have negative ranks that add up to 2 at most, and as many the positive ones
        assert row["p"] == pytest.approx(6 / 2**7)


def test_peers_have_at_least_as_many_settings_as_auto_and_trees_as_large():
    search = auto_search(suite.PairwiseHingeClassifier(max_fpr=suite.BETA), n_pos=500, n_neg=900, n_features=20)
    for grid, expected in ((suite.LIGHTGBM, 45), (suite.XGBOOST, 36)):
        assert len(search.settings) <= np.prod([len(values) for values in grid.values()]) == expected
    maps = [dict(point)["features"] for point in search.settings]
    forests = [setting for setting in maps if isinstance(setting, dict) and setting.get("map") == "leaves"]
    assert (
        max(forest["leaves"] for forest in forests)
        <= max(suite.LIGHTGBM["num_leaves"])
        <= 2 ** max(suite.XGBOOST["max_depth"])
    )
    assert (
        max(forest["trees"] for forest in forests)
        <= max(suite.LIGHTGBM["n_estimators"])
        == max(suite.XGBOOST["n_estimators"])
    )


def test_more_rows_than_the_choice_takes(monkeypatch):
    from sklearn.linear_model import LogisticRegression

    train, _ = ROWS[0]
    monkeypatch.setattr(suite, "CHOICE_ROWS", 100)
    few = suite.rows_of_choice(train)
    assert few.n_samples == 100
    assert abs((few.y > 0).mean() - (train.y > 0).mean()) < 0.01
    assert set(few.row_id) < set(train.row_id)
    score, chosen = suite._tuned(LogisticRegression, {"C": [1e-6, 1.0]})(train)
    all_rows = LogisticRegression(C=float(chosen.split()[1])).fit(train.X, train.y > 0)
    np.testing.assert_array_equal(score(train.X), all_rows.predict_proba(train.X)[:, 1])
    monkeypatch.setattr(suite, "CHOICE_ROWS", 500)
    assert suite.rows_of_choice(train) is train


def never_ends() -> None:
    while True:
        pass


def test_work_in_a_copy_of_the_process_comes_back_or_says_why_not():
    start = cpu_seconds()
    np.testing.assert_array_equal(within(60, lambda: np.arange(3)), [0, 1, 2])
    assert cpu_seconds() > start
    with pytest.raises(RunError, match=r"^ZeroDivisionError: division by zero$"):
        within(60, lambda: 1 / 0)
    with pytest.raises(RunError, match=r"^its process ended: 7$"):
        within(60, lambda: os._exit(7))
    with pytest.raises(RunError, match=r"^not done in 1 CPU seconds$"):
        within(1, never_ends)

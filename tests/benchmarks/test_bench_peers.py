"""The suite `peers`: the referee with contestants that do almost nothing. No time is asserted."""

from dataclasses import replace

import numpy as np
import pytest
from support.contestants import broken, dies, endless, first_feature, late, means, nan
from support.forked_workers import forked_processes

from aucdist.data.shards.sharding import simulate
from aucdist.errors import InputError
from aucdist.metrics.compare import auc_test, holm
from benchmarks import suites
from benchmarks.peers import referee, suite
from benchmarks.peers.contestant import Choice, choose_value, stratified_subset
from benchmarks.peers.referee import run_contest
from benchmarks.peers.system import LINEAR, OURS, System
from benchmarks.peers.table import Contest, result_rows

TRAIN, TEST = (simulate(n, 3, 0.3, seed=0, index=i) for i, n in enumerate((400, 300)))
ROWS = [(TRAIN, TEST)]

GOOD = System("good", "numpy", means, (1, 2, 4, 8, 16, 32), 4, OURS)
POOR = System("poor", "numpy", first_feature, (1, 2, 4, 8), 4, LINEAR)


@pytest.fixture(scope="module", autouse=True)
def forked():
    """Start contestants in a fraction of a second."""
    with forked_processes(referee):
        yield


@pytest.fixture(scope="module")
def contested(tmp_path_factory):
    systems = (GOOD, POOR, System("gone", "no_such_package", means, (1,), 1))
    lines = []
    trials = run_contest(
        ROWS, systems, tmp_path_factory.mktemp("rows"), threads=2, repeats=2, limit=30.0, log=lines.append
    )
    return systems, Contest("fake", TRAIN.n_samples, TEST.y, trials), lines


def test_a_trial_ends_when_the_scores_no_longer_change(contested):
    _, contest, lines = contested
    trial, later = contest.trials["good"]
    (first,), (second,) = trial.splits, later.splits
    # The two largest values turn the ranking round; of equals, the larger is taken.
    assert first.value == 1e-2 == second.value
    assert first.choice_seconds is not None
    assert first.choice.tried == 5
    assert second.choice is None
    # Budgets 1 and 2 give constant scores, which is no end; 4, 8 and 16 the same ones, which is.
    assert [point.budget for point in first.points] == [1, 2, 4, 8, 16]
    assert [point.gap for point in first.points] == [1.0, 0.5, 0.25, 0.125, 0.0625]
    assert first.points[0].auc == 0.5 < first.points[-1].auc
    assert [point.budget for point in contest.trials["poor"][0].first.points] == [1, 2, 4]
    assert trial.peak > 1
    assert any("good: AUC" in line for line in lines)


def test_a_system_that_reports_its_end_stops_there(tmp_path):
    systems = [System("late", "numpy", late, (1, 2, 4, 8, 16, 32), 4, OURS)]
    trials = run_contest(ROWS, systems, tmp_path, threads=1, repeats=1, limit=30.0)
    assert [point.budget for point in trials["late"][0].first.points] == [1, 2, 4, 8, 16]


def test_a_missing_package_is_a_row(contested):
    systems, contest, _ = contested
    assert [trial.note for trial in contest.trials["gone"]] == ["not installed"]  # not asked again
    row = next(row for row in result_rows([contest], systems) if row["system"] == "gone")
    assert row["note"] == "not installed"
    assert "AUC" not in row


def test_the_table_compares_on_the_same_rows_and_corrects(contested):
    systems, contest, _ = contested
    other = Contest("other", contest.rows, contest.y_test, contest.trials)
    rows = {(row["data"], row["system"]): row for row in result_rows([contest, other], systems)}
    good, poor = rows["fake", "good"], rows["fake", "poor"]
    test = auc_test(TEST.y, contest.trials["good"][0].first.scores, contest.trials["poor"][0].first.scores)
    assert good["AUC"] == pytest.approx(first_auc(contest, "good"), abs=1e-12)
    assert poor["ours less it"] == test.value == pytest.approx(good["AUC"] - poor["AUC"], abs=1e-12)
    assert poor["p, Holm"] == holm([test.p_value] * 2)[0] > test.p_value
    assert poor["ours, AUC"] == ("wins" if poor["p, Holm"] < 0.05 else "ties")
    assert poor["low"] < poor["AUC"] < poor["high"]
    assert good["gap"] == 0.0625
    assert "gap" in poor
    assert poor["gap"] is None
    assert "ours, AUC" not in good


def first_auc(contest: Contest, name: str) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(contest.y_test, contest.trials[name][0].first.scores))


@pytest.mark.parametrize(
    ("fit", "note"),
    [
        (broken, "not run here: ValueError: no such luck"),
        (dies, "not run here: its process died"),
        (nan, "not run here: ArithmeticError: scores that are not finite"),
    ],
)
def test_a_contestant_that_breaks_is_a_row(tmp_path, fit, note):
    trials = run_contest(ROWS, [System("it", "numpy", fit, (1,), 1)], tmp_path, threads=1, repeats=2, limit=30.0)
    assert [trial.note for trial in trials["it"]] == [note]


def test_an_endless_contestant_is_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(referee, "GRACE", 0.5)
    trials = run_contest(ROWS, [System("it", "numpy", endless, (1,), 1)], tmp_path, threads=1, repeats=1, limit=0.1)
    assert [trial.note for trial in trials["it"]] == ["over time"]
    assert trials["it"][0].splits == []


class Clock:
    """A clock that advances by one at each look."""

    now = 0

    def __call__(self) -> float:
        self.now += 1
        return self.now


def choose_in(n_fits: int, grid: tuple[float, ...]) -> Choice:
    """Return the choice of a system that is cut off after so many fits, three of which make a value."""
    return choose_value(replace(GOOD, grid=grid), TRAIN.X, TRAIN.y, 1, deadline=n_fits, clock=Clock())


@pytest.mark.parametrize("n_values", range(6))
def test_a_choice_that_is_cut_off_keeps_the_best_value_in_any_order_of_the_grid(n_values):
    turned = [GOOD.grid[k:] + GOOD.grid[:k] for k in range(len(GOOD.grid))]
    choices = {choose_in(3 * n_values, grid[::way]) for grid in turned for way in (1, -1)}
    (choice,) = choices  # whatever the order
    assert choice.tried == n_values
    # From the middle outwards: 1e-3, 1e-4, 1e-2, 1e-5, 1e-1. Of equally good ones the larger, and 1e-1 is poor.
    assert choice.value == (1e-2 if n_values >= 3 else 1e-3)
    assert (choice.mean_auc is None) == (n_values == 0)


def test_a_subset_keeps_the_classes_shares():
    y = np.repeat([1, -1], [30, 970])
    rows = stratified_subset(y, 100)
    assert len(np.unique(rows)) == len(rows) == 100
    assert (y[rows] == 1).sum() == 3
    assert (y[stratified_subset(y, 10)] == 1).sum() == 2
    assert len(stratified_subset(y, 5000)) == 1000


def test_the_suite_runs(monkeypatch, capsys):
    monkeypatch.setattr(suite, "SYSTEMS", (GOOD, POOR))
    monkeypatch.setattr(suite, "data_sets", lambda slow_peers: {"tiny": lambda splits: ROWS})
    lines = []
    table = suites.bench(
        suites.load_suite("peers"), slow_peers=False, log=lines.append, only="tiny", threads=1, repeats=1
    )
    assert list(table["system"]) == ["good", "poor", "all linear peers", "all linear peers"]
    assert "tiny: 400 x 3 to train" in capsys.readouterr().err
    assert "three folds of at most 50000 training rows" in lines[0]
    assert "three folds of at most 50000 training rows" in table.attrs["conditions"]
    assert not any("curve" in line for line in lines)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"only": "a9b"}, "unknown data set 'a9b'"),
        ({"threads": 0}, "--threads must be at least 1; got 0"),
        ({"repeats": 0}, "--repeats must be at least 1; got 0"),
        ({"splits": 0}, "--splits must be at least 1; got 0"),
    ],
)
def test_wrong_input_is_refused_before_work(options, words):
    with pytest.raises(InputError, match=words):
        suites.bench(suites.load_suite("peers"), slow_peers=False, log=lambda line: None, **options)


@pytest.mark.parametrize(
    "system", [s for s in suite.SYSTEMS if s.package in ("aucdist", "sklearn")], ids=lambda s: s.name
)
def test_systems_that_are_always_installed_rank(system):
    import warnings

    with warnings.catch_warnings(action="ignore"):
        fitted = system.fit(TRAIN.X, TRAIN.y, 1e-2, system.choice_budget, 1)
    scores = fitted.scores(TEST.X)
    assert scores[TEST.y > 0].mean() > scores[TEST.y < 0].mean() + 0.01
    assert (fitted.gap is not None) == (system.kind == OURS)

"""The suites `peers` and `limits`: the referee with contestants that do almost nothing. No time is asserted."""

import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from support.contestants import broken, dies, endless, first_feature, late, means, nan
from support.forked_workers import forked_processes

from aucdist.data.shards.simulate import simulate
from aucdist.errors import InputError
from aucdist.metrics.compare import delong_test, holm
from benchmarks import limits as limits_suite
from benchmarks import suites
from benchmarks.peers import linear, referee, suite
from benchmarks.peers.contestant import Choice, choose_value, middle_out, stratified_subset
from benchmarks.peers.data_sets import MIN_IMBALANCE, N_KEEL, data_sets, imbalanced_keel_sets
from benchmarks.peers.linear import skglm, with_ones
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
    _, one, lines = contested
    trial, later = one.trials["good"]
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
    assert [point.budget for point in one.trials["poor"][0].first.points] == [1, 2, 4]
    assert trial.peak > 1
    assert any("good: AUC" in line for line in lines)


def test_a_system_that_reports_its_end_stops_there(tmp_path):
    systems = [System("late", "numpy", late, (1, 2, 4, 8, 16, 32), 4, OURS)]
    trials = run_contest(ROWS, systems, tmp_path, threads=1, repeats=1, limit=30.0)
    assert [point.budget for point in trials["late"][0].first.points] == [1, 2, 4, 8, 16]


def test_a_missing_package_is_a_row(contested):
    systems, one, _ = contested
    assert [trial.note for trial in one.trials["gone"]] == ["not installed"]  # not asked again
    row = next(row for row in result_rows([one], systems) if row["system"] == "gone")
    assert row["note"] == "not installed"
    assert "AUC" not in row


def test_the_table_compares_on_the_same_rows_and_corrects(contested):
    systems, one, _ = contested
    other = Contest("other", one.rows, one.y_test, one.trials)
    rows = {(row["data"], row["system"]): row for row in result_rows([one, other], systems)}
    good, poor = rows["fake", "good"], rows["fake", "poor"]
    test = delong_test(TEST.y, one.trials["good"][0].first.scores, one.trials["poor"][0].first.scores)
    assert good["AUC"] == pytest.approx(first_auc(one, "good"), abs=1e-12)
    assert poor["ours less it"] == test.value == pytest.approx(good["AUC"] - poor["AUC"], abs=1e-12)
    assert poor["p, Holm"] == holm([test.p_value] * 2)[0] > test.p_value
    assert poor["ours, AUC"] == ("wins" if poor["p, Holm"] < 0.05 else "ties")
    assert poor["low"] < poor["AUC"] < poor["high"]
    assert good["gap"] == 0.0625
    assert "gap" in poor
    assert poor["gap"] is None
    assert "ours, AUC" not in good


def first_auc(one: Contest, name: str) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(one.y_test, one.trials[name][0].first.scores))


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


def test_sparse_and_wide_rows_are_not_for_all(tmp_path):
    dense, narrow = (
        System("d", "numpy", means, (1,), 1, dense=True),
        System("n", "numpy", means, (1,), 1, max_features=5),
    )
    assert dense.reason_to_skip(True, 3) == "not run here: takes no sparse rows"
    assert dense.reason_to_skip(False, 3) is None
    assert narrow.reason_to_skip(True, 6) == "not run here: a matrix of 6 by 6 features"
    assert narrow.reason_to_skip(True, 5) is None


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
    found = {choose_in(3 * n_values, grid[::way]) for grid in turned for way in (1, -1)}
    (choice,) = found  # whatever the order
    assert choice.tried == n_values
    # From the middle outwards: 1e-3, 1e-4, 1e-2, 1e-5, 1e-1. Of equally good ones the larger, and 1e-1 is poor.
    assert choice.value == (1e-2 if n_values >= 3 else 1e-3)
    assert (choice.mean_auc is None) == (n_values == 0)


def test_a_value_cut_off_between_its_folds_does_not_count():
    assert choose_in(5, GOOD.grid).tried == 1


def test_values_are_tried_from_the_middle_outwards():
    assert middle_out((1e-1, 1e-2, 1e-3, 1e-4, 1e-5)) == [1e-3, 1e-4, 1e-2, 1e-5, 1e-1]
    assert middle_out((127.0, 7.0, 15.0, 31.0, 63.0)) == [31.0, 15.0, 63.0, 7.0, 127.0]


DENSE_OR_CSR = pytest.mark.parametrize("as_rows", [np.asarray, sp.csr_matrix], ids=["dense", "CSR"])


@DENSE_OR_CSR
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_skglm_gets_dense_float32_rows_as_float64(as_rows, dtype):
    rows = with_ones(as_rows(TRAIN.X.astype(dtype)), TRAIN.y)
    assert rows.shape == (TRAIN.n_samples, TRAIN.n_features + 1)
    assert rows.dtype == (dtype if sp.issparse(rows) else "float64")


@DENSE_OR_CSR
@pytest.mark.filterwarnings("ignore:Passing in a compiled")
def test_skglm_scores_alike_from_float32_rows(as_rows):
    pytest.importorskip("skglm")
    given = (with_ones(as_rows(TRAIN.X.astype(dtype)), TRAIN.y) for dtype in ("float32", "float64"))
    found, wanted = (skglm(rows, TRAIN.y, 1e-2, 100, 1).scores(TEST.X) for rows in given)
    np.testing.assert_allclose(found, wanted, atol=1e-4)


def test_the_choice_ends_at_its_deadline():
    assert choose_value(GOOD, TRAIN.X, TRAIN.y, 1, deadline=0.0) == Choice(GOOD.grid[2], 0, None)


def test_a_subset_keeps_the_classes_shares():
    y = np.repeat([1, -1], [30, 970])
    rows = stratified_subset(y, 100)
    assert len(np.unique(rows)) == len(rows) == 100
    assert (y[rows] == 1).sum() == 3
    assert (y[stratified_subset(y, 10)] == 1).sum() == 2
    assert len(stratified_subset(y, 5000)) == 1000


def test_the_suite_runs_and_has_a_figure(monkeypatch, capsys):
    monkeypatch.setattr(suite, "SYSTEMS", (GOOD, POOR))
    monkeypatch.setattr(suite, "data_sets", lambda slow_peers: {"tiny": lambda splits: ROWS})
    lines = []
    found = suites.bench(
        suites.load_suite("peers"), slow_peers=False, log=lines.append, only="tiny", threads=1, repeats=1
    )
    assert list(found["system"]) == ["good", "poor", "all linear peers", "all linear peers"]
    assert "tiny: 400 x 3 to train" in capsys.readouterr().err
    assert "three folds of at most 50000 training rows" in lines[0]
    assert "three folds of at most 50000 training rows" in found.attrs["conditions"]
    assert not any("curve" in line for line in lines)
    ET.fromstring(suite.figure(found))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"only": "a9b"}, "unknown data set 'a9b'"),
        ({"threads": 0}, "--threads is 0"),
        ({"repeats": 0}, "--repeats is 0"),
        ({"splits": 0}, "--splits is 0"),
    ],
)
def test_wrong_input_is_refused_before_work(given, words):
    with pytest.raises(InputError, match=words):
        suites.bench(suites.load_suite("peers"), slow_peers=False, log=lambda line: None, **given)


def test_a_suite_refuses_the_options_of_another():
    with pytest.raises(InputError, match="limits does not take --only"):
        suites.bench(suites.load_suite("limits"), slow_peers=False, log=lambda line: None, only="a9a")


def test_the_sets_are_chosen_by_their_rule():
    names = imbalanced_keel_sets()
    assert len(set(names)) == N_KEEL == 20
    assert "yeast4" in names  # 51 positives, 28 negatives to each
    assert "pima" not in names
    assert MIN_IMBALANCE == 9
    assert set(data_sets(True)) - set(data_sets(False)) == {"simulated-10m"}
    assert set(names) < set(data_sets(False))


def test_every_system_has_a_choice_budget_and_five_values():
    for system in suite.SYSTEMS:
        assert len(system.grid) == 5
        assert list(system.budgets) == sorted(set(system.budgets))
        assert system.choice_budget <= system.budgets[-1]
    assert suite.SYSTEMS[0].kind == OURS
    assert len({system.name for system in suite.SYSTEMS}) == len(suite.SYSTEMS)


@pytest.mark.parametrize(
    "system", [s for s in suite.SYSTEMS if s.package in ("aucdist", "sklearn")], ids=lambda s: s.name
)
def test_systems_that_are_always_installed_rank(system):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = system.fit(TRAIN.X, TRAIN.y, 1e-2, system.choice_budget, 1)
    scores = fitted.scores(TEST.X)
    assert scores[TEST.y > 0].mean() > scores[TEST.y < 0].mean() + 0.01
    assert (fitted.gap is not None) == (system.kind == OURS)


OURS_ALONE = pytest.mark.parametrize("system", [s for s in suite.SYSTEMS if s.kind == OURS], ids=lambda s: s.name)


def threads_of_fits(monkeypatch, block_rows: int) -> list[tuple[int, int]]:
    """Return a list that gets the number of blocks and of threads of each fit on blocks that the benchmark makes."""
    from aucdist.engine import blocks

    found = []

    class Recorded(blocks.LocalBlocks):
        def __init__(self, parts, *, n_jobs=None):
            super().__init__(parts, n_jobs=n_jobs)
            found.append((len(parts), n_jobs))

    monkeypatch.setattr(blocks, "LocalBlocks", Recorded)
    monkeypatch.setattr(linear, "BLOCK_ROWS", block_rows)
    return found


@OURS_ALONE
@DENSE_OR_CSR
def test_ours_use_the_threads_on_a_block_for_each(system, as_rows, monkeypatch):
    X = as_rows(TRAIN.X)
    alone = system.fit(X, TRAIN.y, 1e-2, system.choice_budget, 1).scores(TEST.X)
    found = threads_of_fits(monkeypatch, block_rows=200)
    shared = system.fit(X, TRAIN.y, 1e-2, system.choice_budget, 2).scores(TEST.X)
    assert found == [(2, 2)]
    np.testing.assert_allclose(shared, alone, atol=0.02 * np.ptp(alone))


@OURS_ALONE
@pytest.mark.parametrize(("threads", "block_rows"), [(1, 1), (2, 201)], ids=["one thread", "few rows"])
def test_ours_fit_the_rows_as_they_are_with_one_thread_or_few_rows(system, threads, block_rows, monkeypatch):
    alone = system.fit(TRAIN.X, TRAIN.y, 1e-2, system.choice_budget, 1).scores(TEST.X)
    found = threads_of_fits(monkeypatch, block_rows)
    again = system.fit(TRAIN.X, TRAIN.y, 1e-2, system.choice_budget, threads).scores(TEST.X)
    assert found == []
    np.testing.assert_array_equal(again, alone)


def test_limits_on_tiny_arrays(monkeypatch, tmp_path):
    for name, value in (("N_ROWS", 600), ("N_FEATURES", 5), ("N_WIDE", 50), ("DENSITY", 0.1), ("TEXT_ROWS", 100)):
        monkeypatch.setattr(limits_suite, name, value)
    found = pd.DataFrame(limits_suite.limits(False))
    kernels = set(found["kernel"])
    assert {"project, dense", "accumulate, CSR", "pair sweep", "hinge dual epoch, dense", "svmlight parse"} < kernels
    assert (found["share of the copy"] > 0).all()
    # X w reads each value once, of 8 bytes, and writes n sums.
    row = found[found["kernel"] == "project, dense"].iloc[0]
    assert row["GB"] == pytest.approx((600 * 5 * 8 + 600 * 8) / 1e9)
    assert row["operations per byte"] == pytest.approx(2 * 600 * 5 / (600 * 6 * 8))
    fits = found[found["passes"].notna()]
    assert (fits["gap"] <= [1e-2, 1e-3, 1e-4]).all()
    svg = limits_suite.figure(found)
    assert "hinge dual epoch, dense" in svg
    ET.fromstring(svg)

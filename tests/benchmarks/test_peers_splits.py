"""Several splits of a data set in the suite `peers`: which sets have them, the process that runs them, and their means."""

from dataclasses import replace

import numpy as np
import pytest
from support.contestants import means, slow_to_choose, slow_to_fit
from support.forked_workers import forked_processes

from aucdist.data.shards.sharding import simulate
from benchmarks import common
from benchmarks.peers import data_sets as sets, referee
from benchmarks.peers.contestant import BudgetPoint, choose_value
from benchmarks.peers.referee import OVER_TIME, SplitResult, Trial, run_contest
from benchmarks.peers.system import LINEAR, OURS, System
from benchmarks.peers.table import CUT_OFF, FAILED, Contest, CurvePoint, best_linear_auc, mean_curve, result_rows

GOOD = System("good", "numpy", means, (1, 2, 4, 8, 16, 32), 4, OURS)
SPLITS = [tuple(simulate(n, 3, 0.3, seed=seed, index=i) for i, n in enumerate((400, 300))) for seed in range(3)]


@pytest.fixture(scope="module", autouse=True)
def forked():
    """Start contestants in a fraction of a second."""
    with forked_processes(referee):
        yield


def contest_of(system: System, folder, *, splits=SPLITS, repeats=1, limit=30.0) -> list[Trial]:
    return run_contest(splits, [system], folder, threads=1, repeats=repeats, limit=limit)[system.name]


# ---- which data sets ----------------------------------------------------------------------------------------------------


def test_a_small_set_is_split_by_the_seeds_from_zero_on(data_dir, monkeypatch):
    monkeypatch.setenv("AUCDIST_DATA", str(data_dir))
    splits = sets.random_splits("glass2", 3)
    assert len(splits) == 3
    for seed, rows in enumerate(splits):
        for block, expected in zip(rows, common.split_and_scale("glass2", seed), strict=True):
            np.testing.assert_array_equal(block.row_id, expected.row_id)
            np.testing.assert_array_equal(block.X, expected.X)
    assert len({tuple(test.row_id) for _, test in splits}) == 3
    np.testing.assert_array_equal(splits[0][1].row_id, common.split_and_scale("glass2")[1].row_id)


# ---- the process --------------------------------------------------------------------------------------------------------


def test_each_split_has_its_own_choice_and_fits(tmp_path):
    first, second = contest_of(GOOD, tmp_path, repeats=2)
    assert first.note == second.note == ""
    assert len(first.splits) == len(second.splits) == len(SPLITS)
    for (train, test), split, again in zip(SPLITS, first.splits, second.splits, strict=True):
        alone = choose_value(GOOD, train.X, train.y, 1, deadline=np.inf)
        assert split.choice == alone
        assert again.choice is None
        assert again.value == split.value == alone.value
        np.testing.assert_array_equal(split.scores, means(train.X, train.y, split.value, 16, 1).scores(test.X))
        assert [point.budget for point in split.points] == [point.budget for point in again.points] == [1, 2, 4, 8, 16]
    assert len({split.choice.mean_auc for split in first.splits}) == len(SPLITS)


@pytest.mark.parametrize("fit", [slow_to_fit, slow_to_choose], ids=["fits", "choice"])
def test_after_a_split_that_is_cut_off_no_other_is_run(tmp_path, fit):
    system = System("slow", "numpy", fit, (1, 2), 2)
    trials = contest_of(system, tmp_path, repeats=2, limit=1.0)
    assert [trial.note for trial in trials] == [OVER_TIME]  # nor in another turn
    assert trials[0].cut_off(system)
    assert len(trials[0].splits) == 1
    assert len(trials[0].first.points) >= 1
    assert trials[0].peak > 1
    contest = Contest("it", 400, SPLITS[0][1].y, {"slow": trials}, len(SPLITS))
    row = next(iter(result_rows([contest], [replace(system, kind=OURS)])))
    assert row["note"].endswith("over time, split 1 of 3")
    assert row["AUC"] > 0


# ---- means --------------------------------------------------------------------------------------------------------------


def split_of(*points: tuple[float, float], scores=None, choice=None) -> SplitResult:
    made = [BudgetPoint(2**k, seconds, auc, None) for k, (seconds, auc) in enumerate(points)]
    return SplitResult(choice=choice, points=made, scores=scores)


def test_a_curve_has_mean_aucs_and_median_seconds_and_a_split_that_ended_keeps_its_last_fit():
    splits = [split_of((1.0, 0.5), (2.0, 0.6), (3.0, 0.9)), split_of((2.0, 0.7), (9.0, 0.8)), split_of((6.0, 0.9))]
    curve = mean_curve([split.points for split in splits])
    assert [point.seconds for point in curve] == [2.0, 6.0, 6.0]
    assert [point.auc for point in curve] == pytest.approx([2.1 / 3, 2.3 / 3, 2.6 / 3])
    assert mean_curve([splits[0].points]) == [CurvePoint(1.0, 0.5), CurvePoint(2.0, 0.6), CurvePoint(3.0, 0.9)]
    assert mean_curve([]) == []


def contest_with_means(**peer) -> tuple[tuple[System, ...], Contest]:
    """Return a contest on two splits: the one that ours ends with a worse AUC on the first split, but with a better mean."""
    y = np.where(np.random.default_rng(0).random(400) < 0.3, 1, -1)
    systems = (System("ours", "numpy", means, (1,), 1, OURS), System("peer", "numpy", means, (1,), 1, LINEAR))
    ours = Trial(splits=[split_of((1.0, 0.6), (5.0, 0.80), scores=0.1 * y), split_of((3.0, 0.7), (7.0, 0.90))])
    theirs = Trial(splits=[split_of((2.0, 0.84), scores=0.2 * y), split_of((2.0, 0.84))])
    for name, value in peer.items():
        setattr(theirs, name, value)
    return systems, Contest("made", 280, y, {"ours": [ours], "peer": [theirs]}, 2)


def test_goals_and_times_are_of_the_means_and_the_auc_is_of_the_first_split():
    systems, contest = contest_with_means()
    assert best_linear_auc(contest, systems) == pytest.approx(0.85)
    ours, peer, end, _ = result_rows([contest], systems)
    assert ours["mean AUC"] == pytest.approx(0.85)
    assert peer["mean AUC"] == pytest.approx(0.84)
    assert ours["AUC"] == peer["AUC"] == 1.0  # the made-up scores of the first split rank without an error
    assert ours["s to 0.001"] == 6.0
    assert peer["s to 0.001"] is None
    assert ours["curve"] == "2:0.650000 6:0.850000"
    assert [row["splits"] for row in (ours, peer, end)] == [2, 2, 2]
    assert end["our fastest"] == "ours"
    assert ours["fit s"] == 5.0


@pytest.mark.parametrize(("note", "reason"), [(OVER_TIME, CUT_OFF), ("not run here: ValueError: oops", FAILED)])
def test_a_system_that_ended_before_the_last_split_has_no_mean(note, reason):
    systems, contest = contest_with_means(note=note, splits=[split_of((2.0, 0.99), scores=np.zeros(400))])
    assert best_linear_auc(contest, systems) == pytest.approx(0.85)
    _, peer, end, _ = result_rows([contest], systems)
    assert "mean AUC" not in peer
    assert peer["s to 0.001"] is None
    assert peer["curve"] == ""
    assert peer["AUC"] == 0.5
    assert peer["excluded"] == reason
    assert peer["note"] == f"{note}, split 1 of 2"
    assert end["their fastest"] is None

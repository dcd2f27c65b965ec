"""The table and the figure of the suite `peers`, on made-up trials."""

import numpy as np
import pytest
from support.contestants import means

from benchmarks.peers.contestant import BudgetPoint, Choice
from benchmarks.peers.referee import SplitResult, Trial
from benchmarks.peers.system import LINEAR, OTHER, OURS, System
from benchmarks.peers.table import Contest, CurvePoint, best_linear_auc, our_choice, result_rows, seconds_to


def trial_of(*rungs: tuple[float, float], scores: np.ndarray | None = None) -> Trial:
    points = [BudgetPoint(k, seconds, area, None) for k, (seconds, area) in enumerate(rungs)]
    return Trial(splits=[SplitResult(points=points, scores=scores)])


def made_up(rows: int = 50_000) -> tuple[tuple[System, ...], Contest]:
    systems = tuple(
        System(name, "numpy", means, (1,), 1, kind)
        for name, kind in (("ours", OURS), ("quick", LINEAR), ("slow", LINEAR), ("trees", OTHER))
    )
    random = np.random.default_rng(0)
    y = np.where(random.random(4000) < 0.3, 1, -1)
    good, bad = y + random.normal(size=4000), 0.1 * y + random.normal(size=4000)
    trials = {
        "ours": [trial_of((1.0, 0.8), (3.0, 0.9), scores=good), trial_of((2.0, 0.8), (4.0, 0.9), scores=good)],
        "quick": [trial_of((2.0, 0.8995), scores=bad), trial_of((2.0, 0.8995), scores=bad)],
        "slow": [trial_of((1.0, 0.7), scores=good), trial_of((1.0, 0.7), scores=good)],
        "trees": [trial_of((9.0, 0.99), scores=y.astype(float))] * 2,
    }
    return systems, Contest("made", rows, y, trials)


def test_times_are_to_the_best_of_the_linear_systems_and_ratios_medians_of_pairs():
    systems, contest = made_up()
    assert best_linear_auc(contest, systems) == 0.9
    rows = {(row["system"], row["kind"]): row for row in result_rows([contest], systems)}
    quick, slow, trees = rows["quick", LINEAR], rows["slow", LINEAR], rows["trees", OTHER]
    assert rows["ours", OURS]["s to 0.001"] == 3.5
    assert quick["s to 0.001"] == 2.0
    assert quick["times ours to 0.001"] == pytest.approx((2 / 3 + 2 / 4) / 2)
    assert quick["s to 0.0001"] is None
    assert quick["ours, time"] == "loses"
    assert quick["ours, AUC"] == "wins"
    assert slow["s to 0.001"] is None
    assert slow["ours, time"] == "wins"
    assert slow["ours, AUC"] == "ties"
    assert trees["ours, AUC"] == "loses"
    assert trees["curve"] == "9:0.990000"


def test_the_summary_compares_our_time_with_the_bar():
    systems, contest = made_up()
    end, total = list(result_rows([contest], systems))[-2:]
    assert end["their fastest"] == "quick"
    assert end["times the fastest"] == pytest.approx((3 / 2 + 4 / 2) / 2)
    assert (end["wins"], end["ties"], end["loses"]) == (1, 1, 0)  # trees do not count
    assert end["bar"] == 2.0
    assert end["within the bar"]
    assert total["data sets"] == total["never significantly below"] == total["within the bar"] == 1
    large = list(result_rows([made_up(200_000)[1]], systems))[-2]
    assert large["bar"] == 1.0
    assert not large["within the bar"]


@pytest.mark.parametrize(
    ("seconds", "auc", "ratio", "before"),
    [
        (2.0, 0.9, 0.5, True),
        (4.1, 0.9, 1.025, True),  # within `EVEN` of each other
        (4.3, 0.9, 1.075, False),
        (2.0, 0.8, None, False),  # ours does not reach the goal
    ],
)
def test_ours_is_compared_with_the_fastest_peer_that_reads_all_rows(seconds, auc, ratio, before):
    systems, contest = contest_with_a_sample(trial_of((seconds, auc)), trial_of((4.0, 0.9)))
    end, total = list(result_rows([contest], systems))[-2:]
    assert end["their fastest"] == "sample"
    assert end["fastest that reads all rows"] == "peer"
    assert end["times the fastest that reads all rows"] == pytest.approx(ratio)
    assert end["before or equal"] is before
    assert total["before or equal"] == int(before)


@pytest.mark.parametrize(("auc", "before"), [(0.9, True), (0.8, False)])
def test_ours_is_before_peers_that_never_reach_the_goal(auc, before):
    systems, contest = contest_with_a_sample(trial_of((9.0, auc)), trial_of((4.0, 0.8)))
    end = list(result_rows([contest], systems))[-2]
    assert end["fastest that reads all rows"] is end["times the fastest that reads all rows"] is None
    assert end["before or equal"] is before


def contest_with_a_sample(ours: Trial, peer: Trial) -> tuple[tuple[System, ...], Contest]:
    """Return a contest with a further peer, which reaches the goal before the others but reads a sample only."""
    systems = (
        System("ours", "numpy", means, (1,), 1, OURS),
        System("peer", "numpy", means, (1,), 1, LINEAR),
        System("sample", "numpy", means, (1,), 1, LINEAR, reads_all_rows=False),
    )
    trials = {"ours": [ours], "peer": [peer], "sample": [trial_of((1.0, 0.9))]}
    return systems, Contest("made", 50_000, np.array([-1, 1]), trials)


def test_to_win_against_one_that_was_cut_short_does_not_count():
    systems, contest = made_up()
    contest.trials["quick"][0].first.choice = Choice(1e-2, 2, 0.7)
    contest.trials["slow"][0].note = "over time"
    rows = list(result_rows([contest], systems))
    assert [row["note"] for row in rows[1:3]] == ["chose from 2 of 5", "over time"]
    assert (rows[-1]["wins"], rows[-1]["ties"], rows[-1]["loses"]) == (0, 0, 0)
    ours, quick = (contest.trials[name][0].first for name in ("ours", "quick"))
    ours.scores, quick.scores = quick.scores, ours.scores
    assert list(result_rows([contest], systems))[-1]["loses"] == 2  # a loss does count


def curve_of(*points: tuple[float, float]) -> list[CurvePoint]:
    return [CurvePoint(*point) for point in points]


def test_a_goal_that_is_lost_again_does_not_count():
    assert seconds_to(curve_of((1.0, 0.9), (2.0, 0.7), (3.0, 0.9)), 0.9) == 3.0
    assert seconds_to(curve_of((1.0, 0.9), (2.0, 0.7)), 0.9) is None


def test_ours_in_auc_is_the_one_with_the_best_folds_and_in_time_the_fastest():
    systems, data = made_up()
    hare = System("hare", "numpy", means, (1,), 1, OURS)
    data.trials["hare"] = [trial_of((0.5, 0.9), scores=data.trials["quick"][0].first.scores)] * 2
    data.trials["ours"][0].first.choice, data.trials["hare"][0].first.choice = Choice(1.0, 5, 0.8), Choice(1.0, 5, 0.7)
    systems = (hare, *systems)
    rows = {row["system"]: row for row in result_rows([data], systems)}
    assert our_choice(data, systems).name == "ours"
    assert rows["hare"]["ours, AUC"] == "wins"
    assert "ours, AUC" not in rows["ours"]
    end = list(result_rows([data], systems))[-2]
    assert (end["ours by folds"], end["our fastest"]) == ("ours", "hare")
    assert end["times the fastest"] == pytest.approx(0.25)
    assert rows["quick"]["times ours to 0.001"] == pytest.approx(4.0)
    assert rows["quick"]["ours, time"] == "wins"

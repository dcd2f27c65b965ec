"""The table and the figure of the suite `peers`, on made-up trials."""

import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import pytest
from support.contestants import means

from benchmarks.panels import panels
from benchmarks.peers import suite
from benchmarks.peers.contestant import BudgetPoint, Choice
from benchmarks.peers.referee import OVER_TIME, SplitResult, Trial
from benchmarks.peers.system import LINEAR, OTHER, OURS, System
from benchmarks.peers.table import (
    CUT_OFF,
    FAILED,
    Contest,
    CurvePoint,
    best_linear_auc,
    our_choice,
    result_rows,
    seconds_to,
)


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
    systems, one = made_up()
    assert best_linear_auc(one, systems) == 0.9
    rows = {(row["system"], row["kind"]): row for row in result_rows([one], systems)}
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
    systems, one = made_up()
    end, total = list(result_rows([one], systems))[-2:]
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
    systems, one = contest_with_a_sample(trial_of((seconds, auc)), trial_of((4.0, 0.9)))
    end, total = list(result_rows([one], systems))[-2:]
    assert end["their fastest"] == "sample"
    assert end["fastest that reads all rows"] == "peer"
    assert end["times the fastest that reads all rows"] == pytest.approx(ratio)
    assert end["before or equal"] is before
    assert total["before or equal"] == int(before)


@pytest.mark.parametrize(("auc", "before"), [(0.9, True), (0.8, False)])
def test_ours_is_before_peers_that_never_reach_the_goal(auc, before):
    systems, one = contest_with_a_sample(trial_of((9.0, auc)), trial_of((4.0, 0.8)))
    end = list(result_rows([one], systems))[-2]
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


def test_the_undersampled_peer_alone_does_not_read_all_rows():
    assert [s.name for s in suite.SYSTEMS if not s.reads_all_rows] == ["RandomUnderSampler, logistic"]


def test_to_win_against_one_that_was_cut_short_does_not_count():
    systems, one = made_up()
    one.trials["quick"][0].first.choice = Choice(1e-2, 2, 0.7)
    one.trials["slow"][0].note = "over time"
    rows = list(result_rows([one], systems))
    assert [row["note"] for row in rows[1:3]] == ["chose from 2 of 5", "over time"]
    assert (rows[-1]["wins"], rows[-1]["ties"], rows[-1]["loses"]) == (0, 0, 0)
    ours, quick = (one.trials[name][0].first for name in ("ours", "quick"))
    ours.scores, quick.scores = quick.scores, ours.scores
    assert list(result_rows([one], systems))[-1]["loses"] == 2  # a loss does count


def test_the_table_counts_the_comparisons_that_it_excludes():
    systems, one = made_up()
    whole = list(result_rows([one], systems))
    assert all("excluded" not in row for row in whole)
    assert [row[f"excluded, {CUT_OFF}"] for row in whole[-2:]] == [0, 0]
    one.trials["quick"][0].first.choice = Choice(1e-2, 2, 0.7)
    one.trials["slow"][0].note = "not run here: ValueError: after two fits"
    *_, quick, slow, trees, end, total = result_rows([one], systems)
    assert (quick["excluded"], slow["excluded"]) == (CUT_OFF, FAILED)
    assert "excluded" not in trees
    for summary in (end, total):
        assert (summary[f"excluded, {CUT_OFF}"], summary[f"excluded, {FAILED}"]) == (1, 1)
        assert (summary["wins"], summary["ties"]) == (0, 0)
    one.trials["slow"][0].note = OVER_TIME
    assert list(result_rows([one], systems))[-1][f"excluded, {CUT_OFF}"] == 2


def test_the_table_states_the_rows_of_the_choice():
    systems, one = made_up(200_000)
    assert [row["choice rows"] for row in list(result_rows([one], systems))[:-1]] == [50_000] * 5
    assert next(iter(result_rows([made_up(1234)[1]], systems)))["choice rows"] == 1234


def curve_of(*points: tuple[float, float]) -> list[CurvePoint]:
    return [CurvePoint(*point) for point in points]


def test_a_system_that_never_reaches_the_goal_has_no_time():
    assert seconds_to(curve_of((1.0, 0.7), (2.0, 0.9), (3.0, 0.9)), 0.9) == 2.0
    assert seconds_to([], 0.5) is None


def test_a_goal_that_is_lost_again_does_not_count():
    assert seconds_to(curve_of((1.0, 0.9), (2.0, 0.7), (3.0, 0.9)), 0.9) == 3.0
    assert seconds_to(curve_of((1.0, 0.9), (2.0, 0.7)), 0.9) is None


def test_ours_in_auc_is_the_one_with_the_best_folds_and_in_time_the_fastest():
    systems, one = made_up()
    hare = System("hare", "numpy", means, (1,), 1, OURS)
    one.trials["hare"] = [trial_of((0.5, 0.9), scores=one.trials["quick"][0].first.scores)] * 2
    one.trials["ours"][0].first.choice, one.trials["hare"][0].first.choice = Choice(1.0, 5, 0.8), Choice(1.0, 5, 0.7)
    systems = (hare, *systems)
    rows = {row["system"]: row for row in result_rows([one], systems)}
    assert our_choice(one, systems).name == "ours"
    assert rows["hare"]["ours, AUC"] == "wins"
    assert "ours, AUC" not in rows["ours"]
    end = list(result_rows([one], systems))[-2]
    assert (end["ours by folds"], end["our fastest"]) == ("ours", "hare")
    assert end["times the fastest"] == pytest.approx(0.25)
    assert rows["quick"]["times ours to 0.001"] == pytest.approx(4.0)
    assert rows["quick"]["ours, time"] == "wins"


def test_the_figure_has_a_panel_for_each_data_set():
    systems, one = made_up()
    other = Contest("other", one.rows, one.y_test, one.trials)
    svg = suite.figure(pd.DataFrame(result_rows([one, other], systems)))
    root = ET.fromstring(svg)
    assert len(root.findall("{http://www.w3.org/2000/svg}svg")) == 2
    assert "other, best AUC of a linear system 0.9000" in svg


def test_panels_lie_side_by_side_then_below():
    one = '<svg width="10pt" height="5pt" viewBox="0 0 10 5"></svg>'
    root = ET.fromstring(panels([one] * 3, columns=2))
    assert root.get("viewBox") == "0 0 20 10"
    assert [(part.get("x"), part.get("y")) for part in root] == [("0", "0"), ("10", "0"), ("0", "5")]

"""The suites `peers` and `limits`: the referee with contestants that do almost nothing. No time is asserted."""

import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import pytest
from support.contestants import broken, dies, endless, first_feature, late, means, nan

from aucdist.data.shards.simulate import simulate
from aucdist.errors import InputError
from aucdist.metrics.compare import delong_test, holm
from flows.bench import limits as limits_suite
from flows.bench import suites
from flows.bench.panels import panels
from flows.bench.peers import referee, suite
from flows.bench.peers.contest import chosen, subset
from flows.bench.peers.referee import Turn, contest
from flows.bench.peers.sets import LOPSIDED, N_KEEL, keel, sets
from flows.bench.peers.system import LINEAR, OTHER, OURS, System
from flows.bench.peers.table import Played, best_linear, first_within, ours_of, table

TRAIN, TEST = (simulate(n, 3, 0.3, seed=0, index=i) for i, n in enumerate((400, 300)))


GOOD = System("good", "numpy", means, (1, 2, 4, 8, 16, 32), 4, OURS)
POOR = System("poor", "numpy", first_feature, (1, 2, 4, 8), 4, LINEAR)


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    systems = (GOOD, POOR, System("gone", "no_such_package", means, (1,), 1))
    told = []
    turns = contest(
        TRAIN, TEST, systems, tmp_path_factory.mktemp("rows"), threads=2, repeats=2, limit=30.0, hear=told.append
    )
    return systems, Played("fake", TRAIN.n_samples, TEST.y, turns), told


def test_the_referee_chooses_climbs_and_ends_where_the_scores_stay(played):
    _, one, told = played
    first, second = one.turns["good"]
    # The two largest values turn the ranking round; of equals, the larger is taken.
    assert first.value == 1e-2 == second.value
    assert first.choice is not None
    assert first.tried == 5
    assert second.choice is None
    # Budgets 1 and 2 give constant scores, which is no end; 4, 8 and 16 the same ones, which is.
    assert [rung[0] for rung in first.rungs] == [1, 2, 4, 8, 16]
    assert [rung[3] for rung in first.rungs] == [1.0, 0.5, 0.25, 0.125, 0.0625]
    assert first.rungs[0][2] == 0.5 < first.rungs[-1][2]
    assert [rung[0] for rung in one.turns["poor"][0].rungs] == [1, 2, 4]
    assert first.peak > 1
    assert any("good: AUC" in line for line in told)


def test_who_tells_when_it_ended_climbs_until_then(tmp_path):
    systems = [System("late", "numpy", late, (1, 2, 4, 8, 16, 32), 4, OURS)]
    turns = contest(TRAIN, TEST, systems, tmp_path, threads=1, repeats=1, limit=30.0)
    assert [rung[0] for rung in turns["late"][0].rungs] == [1, 2, 4, 8, 16]


def test_a_missing_package_is_a_row(played):
    systems, one, _ = played
    assert [turn.note for turn in one.turns["gone"]] == ["not installed"]  # not asked again
    row = next(row for row in table([one], systems) if row["system"] == "gone")
    assert row["note"] == "not installed"
    assert "AUC" not in row


def test_the_table_compares_on_the_same_rows_and_corrects(played):
    systems, one, _ = played
    other = Played("other", one.rows, one.y_test, one.turns)
    rows = {(row["data"], row["system"]): row for row in table([one, other], systems)}
    good, poor = rows["fake", "good"], rows["fake", "poor"]
    test = delong_test(TEST.y, one.turns["good"][0].scores, one.turns["poor"][0].scores)
    assert good["AUC"] == pytest.approx(first_auc(one, "good"), abs=1e-12)
    assert poor["ours less it"] == test.value == pytest.approx(good["AUC"] - poor["AUC"], abs=1e-12)
    assert poor["p, Holm"] == holm([test.p_value] * 2)[0] > test.p_value
    assert poor["ours, AUC"] == ("wins" if poor["p, Holm"] < 0.05 else "ties")
    assert poor["low"] < poor["AUC"] < poor["high"]
    assert good["gap"] == 0.0625
    assert "gap" in poor
    assert poor["gap"] is None
    assert "ours, AUC" not in good


def first_auc(one: Played, name: str) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(one.y_test, one.turns[name][0].scores))


@pytest.mark.parametrize(
    ("fit", "note"),
    [
        (broken, "not run here: ValueError: no such luck"),
        (dies, "not run here: its process died"),
        (nan, "not run here: ArithmeticError: scores that are not finite"),
    ],
)
def test_a_contestant_that_breaks_is_a_row(tmp_path, fit, note):
    turns = contest(TRAIN, TEST, [System("it", "numpy", fit, (1,), 1)], tmp_path, threads=1, repeats=2, limit=30.0)
    assert [turn.note for turn in turns["it"]] == [note]


def test_one_that_does_not_come_back_is_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(referee, "GRACE", 0.5)
    turns = contest(TRAIN, TEST, [System("it", "numpy", endless, (1,), 1)], tmp_path, threads=1, repeats=1, limit=0.1)
    assert [turn.note for turn in turns["it"]] == ["over time"]
    assert turns["it"][0].rungs == []


def test_sparse_and_wide_rows_are_not_for_all(tmp_path):
    dense, narrow = System("d", "numpy", means, (1,), 1, dense=True), System("n", "numpy", means, (1,), 1, widest=5)
    assert dense.why_not(True, 3) == "not run here: takes no sparse rows"
    assert dense.why_not(False, 3) is None
    assert narrow.why_not(True, 6) == "not run here: a matrix of 6 by 6 features"
    assert narrow.why_not(True, 5) is None


def test_the_choice_ends_at_its_deadline():
    assert chosen(GOOD, TRAIN.X, TRAIN.y, 1, deadline=0.0) == (GOOD.grid[2], 0, -1.0)


def test_a_subset_keeps_the_classes_shares():
    y = np.repeat([1, -1], [30, 970])
    rows = subset(y, 100)
    assert len(np.unique(rows)) == len(rows) == 100
    assert (y[rows] == 1).sum() == 3
    assert (y[subset(y, 10)] == 1).sum() == 2
    assert len(subset(y, 5000)) == 1000


# ---- the judge, on turns made up --------------------------------------------------------------------------------------


def turn(*rungs: tuple[float, float], scores: np.ndarray | None = None) -> Turn:
    return Turn(rungs=[(k, seconds, area, None) for k, (seconds, area) in enumerate(rungs)], scores=scores)


def made_up(rows: int = 50_000) -> tuple[tuple[System, ...], Played]:
    systems = tuple(
        System(name, "numpy", means, (1,), 1, kind)
        for name, kind in (("ours", OURS), ("quick", LINEAR), ("slow", LINEAR), ("trees", OTHER))
    )
    random = np.random.default_rng(0)
    y = np.where(random.random(4000) < 0.3, 1, -1)
    good, bad = y + random.normal(size=4000), 0.1 * y + random.normal(size=4000)
    turns = {
        "ours": [turn((1.0, 0.8), (3.0, 0.9), scores=good), turn((2.0, 0.8), (4.0, 0.9), scores=good)],
        "quick": [turn((2.0, 0.8995), scores=bad), turn((2.0, 0.8995), scores=bad)],
        "slow": [turn((1.0, 0.7), scores=good), turn((1.0, 0.7), scores=good)],
        "trees": [turn((9.0, 0.99), scores=y.astype(float))] * 2,
    }
    return systems, Played("made", rows, y, turns)


def test_times_are_to_the_best_of_the_linear_systems_and_ratios_medians_of_pairs():
    systems, one = made_up()
    assert best_linear(one, systems) == 0.9
    rows = {(row["system"], row["kind"]): row for row in table([one], systems)}
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


def test_the_summary_holds_ours_to_its_bar():
    systems, one = made_up()
    end, total = list(table([one], systems))[-2:]
    assert end["their fastest"] == "quick"
    assert end["times the fastest"] == pytest.approx((3 / 2 + 4 / 2) / 2)
    assert (end["wins"], end["ties"], end["loses"]) == (1, 1, 0)  # trees do not count
    assert end["bar"] == 2.0
    assert end["within the bar"]
    assert total["data sets"] == total["never significantly below"] == total["within the bar"] == 1
    large = list(table([made_up(200_000)[1]], systems))[-2]
    assert large["bar"] == 1.0
    assert not large["within the bar"]


def test_to_win_against_one_that_was_cut_short_does_not_count():
    systems, one = made_up()
    one.turns["quick"][0].tried = 2
    one.turns["slow"][0].note = "over time"
    rows = list(table([one], systems))
    assert [row["note"] for row in rows[1:3]] == ["chose from 2 of 5", "over time"]
    assert (rows[-1]["wins"], rows[-1]["ties"], rows[-1]["loses"]) == (0, 0, 0)
    one.turns["ours"][0].scores, one.turns["quick"][0].scores = (
        one.turns[name][0].scores for name in ("quick", "ours")
    )
    assert list(table([one], systems))[-1]["loses"] == 2  # to a cut one, it does


def test_who_never_comes_near_has_no_time():
    assert first_within(turn((1.0, 0.7), (2.0, 0.9), (3.0, 0.9)), 0.9) == 2.0
    assert first_within(turn(), 0.5) is None


def test_who_leaves_again_has_not_come():
    assert first_within(turn((1.0, 0.9), (2.0, 0.7), (3.0, 0.9)), 0.9) == 3.0
    assert first_within(turn((1.0, 0.9), (2.0, 0.7)), 0.9) is None


def test_ours_in_auc_is_the_one_with_the_best_folds_and_in_time_the_fastest():
    systems, one = made_up()
    hare = System("hare", "numpy", means, (1,), 1, OURS)
    one.turns["hare"] = [turn((0.5, 0.9), scores=one.turns["quick"][0].scores)] * 2
    one.turns["ours"][0].by_folds, one.turns["hare"][0].by_folds = 0.8, 0.7
    systems = (hare, *systems)
    rows = {row["system"]: row for row in table([one], systems)}
    assert ours_of(one, systems).name == "ours"
    assert rows["hare"]["ours, AUC"] == "wins"
    assert "ours, AUC" not in rows["ours"]
    end = list(table([one], systems))[-2]
    assert (end["ours by folds"], end["our fastest"]) == ("ours", "hare")
    assert end["times the fastest"] == pytest.approx(0.25)
    assert rows["quick"]["times ours to 0.001"] == pytest.approx(4.0)
    assert rows["quick"]["ours, time"] == "wins"


def test_the_picture_has_a_panel_for_each_data_set():
    systems, one = made_up()
    other = Played("other", one.rows, one.y_test, one.turns)
    svg = suite.picture(pd.DataFrame(table([one, other], systems)))
    root = ET.fromstring(svg)
    assert len(root.findall("{http://www.w3.org/2000/svg}svg")) == 2
    assert "other, best AUC of a linear system 0.9000" in svg


def test_panels_lie_side_by_side_then_below():
    one = '<svg width="10pt" height="5pt" viewBox="0 0 10 5"></svg>'
    root = ET.fromstring(panels([one] * 3, columns=2))
    assert root.get("viewBox") == "0 0 20 10"
    assert [(part.get("x"), part.get("y")) for part in root] == [("0", "0"), ("10", "0"), ("0", "5")]


# ---- the suites -------------------------------------------------------------------------------------------------------


def test_the_suite_runs_on_a_set_and_its_table_can_be_drawn(monkeypatch, capsys):
    monkeypatch.setattr(suite, "SYSTEMS", (GOOD, POOR))
    monkeypatch.setattr(suite, "sets", lambda slow_peers: {"tiny": lambda: (TRAIN, TEST)})
    said = []
    found = suites.bench("peers", slow_peers=False, say=said.append, only="tiny", threads=1, repeats=1)
    assert list(found["system"]) == ["good", "poor", "all linear peers", "all linear peers"]
    assert "tiny: 400 x 3 to train" in capsys.readouterr().err
    assert not any("curve" in line for line in said)
    ET.fromstring(suites.picture("peers", found))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"only": "a9b"}, "unknown data set 'a9b'"),
        ({"threads": 0}, "--threads is 0"),
        ({"repeats": 0}, "--repeats is 0"),
    ],
)
def test_wrong_input_is_refused_before_work(given, words):
    with pytest.raises(InputError, match=words):
        suites.bench("peers", slow_peers=False, say=lambda line: None, **given)


def test_a_suite_refuses_the_options_of_another():
    with pytest.raises(InputError, match="limits does not take --only"):
        suites.bench("limits", slow_peers=False, say=lambda line: None, only="a9a")


def test_the_sets_are_chosen_by_their_rule():
    names = keel()
    assert len(set(names)) == N_KEEL == 20
    assert "yeast4" in names  # 51 positives, 28 negatives to each
    assert "pima" not in names
    assert LOPSIDED == 9
    assert set(sets(True)) - set(sets(False)) == {"simulated-10m"}
    assert set(names) < set(sets(False))


def test_every_system_has_a_usual_budget_and_five_values():
    for system in suite.SYSTEMS:
        assert len(system.grid) == 5
        assert list(system.budgets) == sorted(set(system.budgets))
        assert system.usual <= system.budgets[-1]
    assert suite.SYSTEMS[0].kind == OURS
    assert len({system.name for system in suite.SYSTEMS}) == len(suite.SYSTEMS)


@pytest.mark.parametrize(
    "system", [s for s in suite.SYSTEMS if s.package in ("aucdist", "sklearn")], ids=lambda s: s.name
)
def test_what_is_always_installed_ranks(system):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = system.fit(TRAIN.X, TRAIN.y, 1e-2, system.usual, 1)
    scores = fitted.scores(TEST.X)
    assert scores[TEST.y > 0].mean() > scores[TEST.y < 0].mean() + 0.01
    assert (fitted.gap is not None) == (system.kind == OURS)


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
    assert suites.picture("limits", found) == limits_suite.picture(found)
    svg = limits_suite.picture(found)
    assert "hinge dual epoch, dense" in svg
    ET.fromstring(svg)

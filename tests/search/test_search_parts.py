"""Grid, folds, choice and schedule of a search."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
from scipy import stats

from aucdist import PairwiseHingeClassifier, UnivariateRankingClassifier
from aucdist.data.block import Block
from aucdist.data.label_sets import LabelSets
from aucdist.engine.blocks import LocalBlocks
from aucdist.engine.view import ClassBlocks
from aucdist.errors import InputError, RunError
from aucdist.maps import MAPS
from aucdist.maps.bins import BinExpander, BinMap
from aucdist.metrics.groups import GroupMetric
from aucdist.metrics.named import NAMED_METRICS, find_metric
from aucdist.search import choice, fold_scores as fold_module
from aucdist.search.fold_scores import score_settings
from aucdist.search.folds import Fold, Folds, masked_blocks
from aucdist.search.schedule import fit_settings, halve, paths_of, race, settings_of_grid
from aucdist.selection import fold_numbers

AUC, LOSS = NAMED_METRICS["auc"], NAMED_METRICS["brier_loss"]


def row(lam, values, passes=1000, **more):
    results = tuple({"error": "broken"} if v is None else {"value": v} for v in values)
    return choice.SettingScores({"lam": lam, **more}, results, passes)


# ---- grid ----


def test_settings_of_a_grid_are_all_combinations():
    settings = settings_of_grid(PairwiseHingeClassifier(), {"lam": [1, 0.1], "tol": [1e-3, 1e-2]})
    assert settings == [{"lam": lam, "tol": tol} for lam, tol in itertools.product([1, 0.1], [1e-3, 1e-2])]


@pytest.mark.parametrize(
    ("grid", "said"),
    [
        ({}, "the grid is empty"),
        ({"lam": []}, "no values for lam"),
        ({"lam": [1.0, 1.0]}, "a value of lam twice"),
        ({"lamb": [1.0]}, r"unknown parameter of PairwiseHingeClassifier: 'lamb'. Did you mean 'lam'"),
        ({"lam": [1.0, -1.0]}, "lam must be .*; got -1.0"),
        ({"solver": ["all-pears"]}, "unknown solver"),
    ],
)
def test_a_grid_that_cannot_be_tried_is_refused(grid, said):
    with pytest.raises(InputError, match=said):
        settings_of_grid(PairwiseHingeClassifier(), grid)


def test_directions_of_a_map_in_the_grid_are_a_parameter():
    grid = {"features": [None, {"map": "bins", "monotone": "auto"}, "bins"], "lam": [1.0]}
    assert settings_of_grid(PairwiseHingeClassifier(), grid) == [
        {"features": None, "lam": 1.0, "monotone": None},
        {"features": {"map": "bins"}, "lam": 1.0, "monotone": "auto"},
        {"features": "bins", "lam": 1.0, "monotone": None},
    ]
    assert settings_of_grid(PairwiseHingeClassifier(), {"features": ["bins"]}) == [{"features": "bins"}]
    with pytest.raises(InputError, match="mixes all features"):
        settings_of_grid(PairwiseHingeClassifier(), {"features": [{"map": "nystroem", "monotone": "auto"}]})
    with pytest.raises(InputError, match="unknown parameter of the feature map 'bins': 'monotone'"):
        settings_of_grid(UnivariateRankingClassifier(), {"features": [{"map": "bins", "monotone": "auto"}]})


def test_paths_run_along_lam_where_the_solver_gains_by_it():
    model = PairwiseHingeClassifier()
    settings = settings_of_grid(model, {"tol": [1e-3, 1e-2], "lam": [1, 0.1, 0.01]})
    assert paths_of(model, settings) == [[0, 1, 2], [3, 4, 5]]
    settings = settings_of_grid(model, {"lam": [1, 0.1], "solver": ["all-pairs", "sdcd"]})
    assert paths_of(model, settings) == [[0, 2], [1], [3]]


# ---- folds ----


def cuts(n=60, **more):
    y = np.where(np.arange(n) % 4, -1, 1)
    return Folds(np.arange(n) * 3, y, 3, **more)


def test_sides_are_by_row_id_and_part_the_rows():
    split = cuts(repeats=2, seed=5)
    assert len(split.outer()) == 6
    for cut in split.outer():
        train, held_out = split.masks(cut)
        assert (train ^ held_out)[::3].all()
        assert not (train | held_out)[np.arange(len(train)) % 3 > 0].any()
        assert split.sizes(cut) == (train.sum(), held_out.sum())
    assert (split.masks(Fold(0, 0)).train != split.masks(Fold(1, 0)).train).any()


def test_inner_folds_part_the_training_rows_of_their_fold():
    split = cuts(n_inner=4)
    for cut in split.outer():
        whole, seen = split.masks(cut).train, np.zeros(178, dtype=int)
        for inner in split.inner(cut):
            train, held_out = split.masks(inner)
            assert ((train | held_out) == whole).all()
            seen += held_out
        assert (seen[whole] == 1).all()


def test_more_folds_than_rows_of_a_class_are_refused_at_once():
    y = np.repeat([1, -1], [8, 50])
    ids = np.arange(58)
    Folds(ids, y, 4, n_inner=6).check()
    with pytest.raises(InputError, match="8 positive rows cannot be divided into 9 folds"):
        Folds(ids, y, 9).check()
    with pytest.raises(InputError, match="6 positive rows cannot be divided into 7 folds"):
        Folds(ids, y, 4, n_inner=7).check()
    one = "1 positive row cannot be divided into 2 folds: ask for fewer folds, add rows, or name the settings yourself"
    with pytest.raises(InputError, match=one):
        Folds(ids[7:], y[7:], 2).check()


def test_folds_without_groups_are_fold_numbers():
    from aucdist.engine.blocks import block_seed

    split = cuts(seed=9)
    fold = fold_numbers(split.row_id, split.y, 3, block_seed(9, 0, 0))
    assert split.masks(Fold(0, 1)).held_out[::3].tolist() == (fold == 1).tolist()


# ---- choice ----


def test_the_best_has_the_best_mean_and_the_larger_lam_among_equals():
    rows = [row(1.0, [0.8, 0.9]), row(0.1, [0.9, 0.9]), row(0.5, [0.9, 0.9]), row(0.01, [None, 1.0])]
    assert choice.choose(rows, AUC, "best") == 2
    assert choice.choose(rows, LOSS, "best") == 0
    assert rows[3].mean is None
    assert rows[3].errors == ["broken"]


def test_one_standard_error_takes_the_largest_lam_that_is_good_enough():
    rows = [row(10.0, [0.7, 0.8]), row(1.0, [0.86, 0.9]), row(0.1, [0.87, 0.91]), row(0.01, [0.8, 0.98])]
    best = rows[2]
    assert choice.choose(rows[:3], AUC, "best") == 2
    assert best.standard_error == pytest.approx(0.02)
    assert choice.choose(rows[:3], AUC, "one-se") == 1
    assert choice.choose(rows, AUC, "one-se") == 1  # the best is now rows[3] or rows[2], both far from rows[0]


def test_the_simplest_feature_map_that_is_good_enough_gets_the_lam_that_is_best_for_it():
    rows = [
        row(1.0, [0.7, 0.8], features=None),
        row(1.0, [0.85, 0.87], features="bins"),
        row(0.1, [0.89, 0.905], features="bins"),
        row(1.0, [0.88, 0.92], features={"map": "bins", "interactions": 10}),
        row(0.1, [0.6, 0.6], features={"map": "bins", "interactions": 10}),
    ]
    assert choice.choose(rows, AUC, "best") == 3
    assert choice.choose(rows, AUC, "simplest") == 2
    assert choice.choose([rows[0], rows[3], rows[4]], AUC, "simplest") == 1


def test_settings_that_were_dropped_on_the_way_are_no_candidates():
    rows = [row(1.0, [0.99, 0.99], passes=10), row(0.1, [0.9, 0.9]), row(0.01, [0.8, 0.8])]
    assert choice.choose(rows, AUC, "best") == 1
    assert choice.choose(rows, AUC, "one-se") == 1


def test_collapsed_settings_win_only_where_there_are_no_others():
    collapsed, partly = (
        choice.SettingScores(
            {"lam": lam}, tuple({"value": 0.9, "collapsed": is_so} for is_so in (True, last)), max_passes=1000
        )
        for lam, last in ((1.0, True), (0.1, False))
    )
    other = row(0.01, [0.7, 0.6])
    for rule in ("best", "one-se", "simplest"):
        assert choice.choose([collapsed, other], AUC, rule) == 1
        assert choice.choose([collapsed, partly], AUC, rule) == 1
        assert choice.choose([other, partly], AUC, rule) == 1
        assert choice.choose([collapsed, row(0.01, [None, 0.6])], AUC, rule) == 0


def test_choose_fails_without_a_complete_setting():
    with pytest.raises(RunError, match="every setting failed; the first error: broken"):
        choice.choose([row(1.0, [None, 0.9])], AUC, "best")


def test_interval_is_the_corrected_t_cut_off_at_the_ends():
    values = [0.9, 0.92, 0.95, 0.93, 0.91]
    low, high = choice.interval(values, AUC, 0.25, 100)
    reach = stats.t.ppf(0.975, 4) * np.std(values, ddof=1) * math.sqrt(0.2 + 0.25)
    assert (low, high) == pytest.approx((np.mean(values) - reach, np.mean(values) + reach))
    assert choice.interval([0.9, 1.0], AUC, 0.25, 100)[1] == 1.0
    assert choice.interval([0.5, 3.0], NAMED_METRICS["log_loss"], 0.25, 100)[1] > 1
    assert choice.interval([0.0, 0.01], LOSS, 0.25, 100)[0] == 0.0


def test_no_interval_has_a_width_of_zero():
    assert choice.interval([1.0] * 5, AUC, 0.25, 30) == (pytest.approx(0.05 ** (1 / 30)), 1.0)
    assert choice.interval([0.3] * 5, NAMED_METRICS["log_loss"], 0.25, 30) is None


# ---- course ----


def answers(jobs, asked):
    asked.append(jobs)
    return [[{"value": 0.5 + 0.1 * setting["lam"] + 0.001 * job.fold.fold} for setting in job.settings] for job in jobs]


def test_fit_settings_runs_one_job_for_each_path_and_fold():
    model, asked = PairwiseHingeClassifier(max_passes=77), []
    settings = settings_of_grid(model, {"lam": [1.0, 2.0], "tol": [1e-3, 1e-2]})
    (rows,) = fit_settings(model, settings, [[Fold(0, 0), Fold(0, 1)]], 77, lambda jobs: answers(jobs, asked))
    assert len(asked) == 1
    assert len(asked[0]) == 4
    assert [r.parameters for r in rows] == settings
    assert rows[2].values == pytest.approx([0.7, 0.701])
    assert {r.max_passes for r in rows} == {77}


def test_halving_gives_the_better_ones_more_passes():
    model, asked = PairwiseHingeClassifier(max_passes=100), []
    settings = [{"lam": float(i)} for i in range(1, 10)]
    rows = halve(model, settings, [Fold(0, 0), Fold(0, 1)], AUC, lambda jobs: answers(jobs, asked), (5, 3))
    tried = [(jobs[0].max_passes, [p["lam"] for p in jobs[0].settings]) for jobs in asked]
    assert tried == [(5, [*range(1, 10)]), (15, [7, 8, 9]), (100, [9])]
    assert [r.max_passes for r in rows] == [5] * 6 + [15] * 2 + [100]
    assert choice.choose(rows, AUC, "best") == 8


def test_halving_drops_what_failed_first():
    model = PairwiseHingeClassifier(max_passes=20)

    def answer(jobs):
        return [[{"error": "x"} if p["lam"] > 2 else {"value": p["lam"]} for p in job.settings] for job in jobs]

    settings = [{"lam": float(i)} for i in (1, 2, 3, 4)]
    rows = halve(model, settings, [Fold(0, 0), Fold(0, 1)], AUC, answer, (5, 2))
    assert [r.max_passes for r in rows] == [10, 20, 5, 5]


def test_jobs_of_all_sets_of_folds_run_together():
    model, asked = PairwiseHingeClassifier(max_passes=10), []
    settings = [{"lam": 1.0}, {"lam": 2.0}]
    first, second = fit_settings(model, settings, [[Fold(0, 0)], [Fold(0, 1)]], 10, lambda jobs: answers(jobs, asked))
    assert [job.fold.fold for job in asked[0]] == [0, 1]
    assert (first[0].values[0], second[0].values[0]) == pytest.approx((0.6, 0.601))


@pytest.fixture
def maps_of_letters(monkeypatch):
    """Let a race take letters as the names of feature maps, all equally complex."""
    for name in "abcdefgh":
        monkeypatch.setitem(MAPS, name, BinExpander)


def raced(settings, value, n_folds, n_first=1, model=None):
    """Return the rows of a race, and the fold, the map and the values of lam of each job; a path ends where it gets worse."""
    asked = []

    def answer(jobs):
        results = []
        for job in jobs:
            asked.append((job.fold.fold, job.settings[0]["features"], [p["lam"] for p in job.settings]))
            values = [value(job.fold.fold, p["features"], p["lam"]) for p in job.settings]
            always = job.n_always or len(values)
            worse = [k for k in range(always - 1, len(values)) if values[k] < max(values[: k + 1])]
            end = worse[0] + 1 if worse else len(values)
            results.append([{"value": v} for v in values[:end]] + [{}] * (len(values) - end))
        return results

    folds = [Fold(0, k) for k in range(n_folds)]
    return race(model or PairwiseHingeClassifier(), settings, folds, AUC, n_first, answer), asked


BEST_LAM = {"a": 1e-3, "b": 1.0, "c": 1.0, "d": 1e-1}


def better_in_alphabetical_order(fold, name, lam):
    return 0.9 - 0.02 * "abcd".index(name) - 0.01 * abs(math.log10(lam / BEST_LAM[name]))


@pytest.mark.usefixtures("maps_of_letters")
def test_the_better_half_of_the_maps_races_on_beside_its_best_lam():
    lams = [1.0, 1e-1, 1e-2, 1e-3, 1e-4]
    settings = [{"features": name, "lam": lam} for name in "dcba" for lam in lams]
    rows, asked = raced(settings, better_in_alphabetical_order, 3)
    # b has lost after the second fold, and the value of lam after the best one of a is no longer tried
    later = [(1, "a", lams), (1, "b", [1.0, 1e-1]), (2, "a", lams[:4])]
    assert asked == [*((0, name, lams) for name in "dcba"), *later]
    assert [row.parameters for row in rows] == settings
    counts = [sum(value is not None for value in row.values) for row in rows]
    assert counts == [1, 1, 1, 0, 0] * 2 + [2, 2, 1, 0, 0] + [3, 3, 3, 3, 2]
    assert rows[0].mean is None
    assert settings[choice.choose(rows, AUC, "best")] == {"features": "a", "lam": 1e-3}
    longer, asked = raced(settings, better_in_alphabetical_order, 5)
    assert [row.results for row in longer] == [row.results for row in rows]  # one map is left after three folds
    assert max(fold for fold, _, _ in asked) == 2


def test_the_average_precision_decides_where_the_auc_does_not():
    def setting(features, aucs, precisions):
        results = [{"value": v, "average_precision": p} for v, p in zip(aucs, precisions, strict=True)]
        return choice.SettingScores({"features": features, "lam": 1.0}, tuple(results), 10)

    simple = setting(None, [0.90, 0.91, 0.92], [0.50, 0.51, 0.52])
    level = setting({"map": "bins"}, [0.91, 0.90, 0.92], [0.60, 0.62, 0.61])
    worse = setting({"map": "leaves"}, [0.85, 0.86, 0.86], [0.80, 0.81, 0.82])
    assert choice.choose([simple, level, worse], AUC, "simplest") == 1
    without = [
        choice.SettingScores(r.parameters, tuple({"value": v} for v in r.values), 10) for r in (simple, level, worse)
    ]
    assert choice.choose(without, AUC, "simplest") == 0


@pytest.mark.usefixtures("maps_of_letters")
def test_a_solver_without_a_path_goes_along_lam_one_value_at_a_time():
    settings = [{"features": name, "lam": lam} for name in "ba" for lam in (1.0, 1e-1, 1e-2, 1e-3, 1e-4)]
    model = PairwiseHingeClassifier(solver="sdcd")
    _, asked = raced(settings, better_in_alphabetical_order, 1, model=model)
    first = [(0, name, [lam]) for name in "ba" for lam in (1.0, 1e-1, 1e-2)]
    assert asked == [*first, (0, "a", [1e-3]), (0, "a", [1e-4])]


def test_a_simple_map_that_is_hardly_worse_on_the_first_fold_stays_in_the_race():
    maps = [None, {"map": "bins"}, {"map": "bins", "interactions": 3}, {"map": "leaves"}]
    best = {repr(features): value for features, value in zip(maps, (0.898, 0.88, 0.9, 0.9), strict=True)}
    settings = [{"features": features, "lam": 1.0} for features in maps]

    def value(fold, features, lam):
        return best[repr(features)] + (fold == 1) * 0.02 * (features is None)

    rows, asked = raced(settings, value, 3)
    assert [features for fold, features, _ in asked if fold == 1] == [maps[2], maps[3], None]
    assert settings[choice.choose(rows, AUC, "simplest")]["features"] is None


@pytest.mark.usefixtures("maps_of_letters")
def test_a_map_leaves_after_one_fold_only_if_it_is_far_behind_and_after_two_by_more_than_chance():
    best = {"a": 0.9, "b": 0.8999, "c": 0.87, "d": 0.5}  # b is level but for a difference without any spread
    settings = [{"features": name, "lam": 1.0} for name in "abcdefgh"]
    _, asked = raced(settings, lambda fold, name, lam: best.get(name, 0.4), 3)
    assert [name for fold, name, _ in asked if fold == 1] == [
        "a",
        "b",
    ]  # c is 6 times a twentieth of what a lacks behind
    assert [name for fold, name, _ in asked if fold == 2] == ["a", "b"]


@pytest.mark.parametrize(("wide", "tried"), [(0.95, True), (0.85, False)])
def test_landmarks_of_half_the_width_are_tried_where_the_wide_ones_are_good(wide, tried):
    maps = [
        {"map": "bins"},
        *({"map": "nystroem", "sigma": s} for s in ("median", "half-median")),
        {"map": "leaves"},
        None,
    ]
    best = {repr(features): v for features, v in zip(maps, (0.86, wide, 0.97, 0.9, 0.75), strict=True)}
    settings = [{"features": features, "lam": 1.0} for features in maps]
    rows, _ = raced(settings, lambda _, features, lam: best[repr(features)], 2)
    assert rows[2].complete == tried


@pytest.mark.usefixtures("maps_of_letters")
def test_a_race_whose_folds_are_all_needed_drops_no_map():
    settings, folds = [{"features": name, "lam": 1.0} for name in "abcd"], [Fold(0, k) for k in range(3)]
    rows = race(PairwiseHingeClassifier(), settings, folds, AUC, 3, lambda jobs: answers(jobs, []))
    assert all(row.complete for row in rows)


@pytest.mark.usefixtures("maps_of_letters")
def test_a_map_that_left_comes_back_where_the_others_fail():
    settings = [{"features": name, "lam": lam} for name in "abcd" for lam in (1.0, 1e-1)]

    def answer(jobs):
        return [
            [
                {"error": "x"}
                if job.fold.fold == 2 and p["features"] in "ab"
                else {"value": 0.9 - 0.1 * "abcd".index(p["features"])}
                for p in job.settings
            ]
            for job in jobs
        ]

    folds = [Fold(0, k) for k in range(3)]
    rows = race(PairwiseHingeClassifier(), settings, folds, AUC, 1, answer)
    assert settings[choice.choose(rows, AUC, "best")]["features"] == "c"


# ---- one fold of a search: rows are mapped once for all models along lam ----------------------


@pytest.mark.parametrize("metric", ["auc", "expected_cost@1,5"])
def test_rows_are_mapped_once_for_all_values_of_lam(metric, monkeypatch):
    r = np.random.default_rng(0)
    X = r.normal(size=(400, 3))
    blocks = LocalBlocks([Block.of(X, np.where(X[:, 0] + r.normal(size=400) > 1, 1, -1))])
    inside = r.random(400) < 0.7
    train, held_out = masked_blocks(blocks, inside), masked_blocks(blocks, ~inside)
    named = find_metric(metric)
    sizes, map_one = [], BinMap.map_block
    monkeypatch.setattr(BinMap, "map_block", lambda self, block: sizes.append(block.n_samples) or map_one(self, block))
    settings = [{"features": "bins", "lam": lam} for lam in (1e-1, 1e-2, 1e-3)]
    results = score_settings(PairwiseHingeClassifier(tol=1e-6), settings, train, held_out, named)
    assert sizes.count((~inside).sum()) == 1
    assert sizes.count(inside.sum()) <= 2  # for the fit, and for the thresholds
    alone = [
        score_settings(PairwiseHingeClassifier(tol=1e-6), [p], train, held_out, named)[0]["value"] for p in settings
    ]
    np.testing.assert_allclose([result["value"] for result in results], alone, atol=2e-2)


def test_a_path_ends_at_the_first_value_that_is_not_better(monkeypatch):
    r = np.random.default_rng(4)
    X = r.normal(size=(300, 30))
    blocks = LocalBlocks([Block.of(X, np.where(X[:, 0] + r.normal(size=300) > 1, 1, -1))])
    inside = r.random(300) < 0.5
    train, held_out = masked_blocks(blocks, inside), masked_blocks(blocks, ~inside)
    estimator, metric = PairwiseHingeClassifier(tol=1e-6), find_metric("auc")
    settings = [{"lam": lam} for lam in (1.0, 1e-1, 1e-2, 1e-3, 1e-4)]
    scored, count = [], fold_module.count_scores
    monkeypatch.setattr(fold_module, "count_scores", lambda *args: scored.append(args[0].n_samples) or count(*args))
    values = [result["value"] for result in score_settings(estimator, settings, train, held_out, metric)]
    assert len(scored) == 5  # the held-out rows are scored once for each fit, and both metrics count the same scores
    end = next(k for k in range(1, 5) if values[k] <= max(values[:k]))  # it overfits for a small lam
    ended = score_settings(estimator, settings, train, held_out, metric, n_always=2)
    assert [result.get("value") for result in ended] == values[: end + 1] + [None] * (4 - end)
    assert 0.0 < ended[0]["average_precision"] < 1.0
    assert (
        len([result for result in score_settings(estimator, settings, train, held_out, metric, n_always=4) if result])
        >= 4
    )


@pytest.mark.filterwarnings("ignore:the minimum is near w = 0")
def test_a_fit_for_the_top_collapses_where_its_objective_is_that_of_weights_of_0():
    r = np.random.default_rng(1)
    X = r.normal(size=(200, 3))
    blocks = LocalBlocks([Block.of(X, np.where(X[:, 0] + 2.0 * r.normal(size=200) > 1, 1, -1))])
    inside = r.random(200) < 0.7
    train, held_out = masked_blocks(blocks, inside), masked_blocks(blocks, ~inside)

    def collapses(value, **others):
        settings = [{"lam": lam, "max_fpr": value, **others} for lam in (1e-1, 1e-2, 1e-3)]
        scores = score_settings(PairwiseHingeClassifier(tol=3e-2), settings, train, held_out, AUC)
        return [score["collapsed"] for score in scores], scores[1]["value"]

    top, area = collapses(0.01)
    assert top == [True] * 3
    assert area > 0.7  # The path ends at weights of nearly 0, which rank well, ...
    assert not PairwiseHingeClassifier(lam=1e-2, max_fpr=0.01).fit(blocks).coef_.any()  # ... and a fit without it at 0.
    assert collapses(None)[0] == [False] * 3
    assert not collapses(0.01, features="bins")[0][2]


@pytest.mark.parametrize(
    "features", ["bins", {"map": "bins", "interactions": 2}, {"map": "nystroem", "landmarks": 8}, None]
)
def test_a_map_without_labels_is_fitted_once_for_all_classes(features, monkeypatch):
    r = np.random.default_rng(1)
    X = r.normal(size=(600, 3))
    codes = np.argmax(X + 0.3 * r.normal(size=(600, 3)), axis=1).astype(np.int32)
    blocks = [
        Block.of(X[side], np.where(codes[side] == 0, 1, -1), code=codes[side], row_id=side, index=index)
        for index, side in enumerate(np.array_split(np.arange(600), 2))
    ]
    rows = ClassBlocks(LocalBlocks(blocks), LabelSets.of_classes(["a", "b", "c"]))
    inside = r.random(600) < 0.7
    train, held_out = (rows.then(partial(masked_blocks, inside=side)) for side in (inside, ~inside))
    fits, sizes, fit, map_one = [], [], BinExpander.fit_blocks, BinMap.map_block
    estimator, metric = PairwiseHingeClassifier(tol=1e-6, random_state=0), find_metric("auc")
    settings = [{"features": features, "lam": lam} for lam in (1e-1, 1e-2)]
    alone = [score_settings(estimator, settings, train.of_class(k), held_out.of_class(k), metric) for k in range(3)]
    monkeypatch.setattr(BinExpander, "fit_blocks", lambda self, *args: fits.append(1) or fit(self, *args))
    monkeypatch.setattr(BinMap, "map_block", lambda self, block: sizes.append(block.n_samples) or map_one(self, block))
    together = score_settings(estimator, settings, train, held_out, metric)
    for i, result in enumerate(together):
        assert result["classes"] == [of_class[i]["value"] for of_class in alone]  # to the last bit
        assert result["passes"] == sum(of_class[i]["passes"] for of_class in alone)
    if features == "bins":
        assert len(fits) == 1
        assert sum(sizes) == 600
    elif isinstance(features, dict) and features["map"] == "bins":
        assert len(fits) == 3


# ---- the spread of groups is that of drawing them with replacement, over folds and in pairs ---


AREA = NAMED_METRICS["group_auc"]


def fold(values, weights, names):
    metric = GroupMetric(np.asarray(values), np.asarray(weights, dtype=float), 0, np.asarray(names))
    return {"value": metric.mean, "groups": choice.group_shares(metric)}


def folds_of(values, weights, n_folds=4):
    """Return the results of folds of groups, and their mean by place of the groups that are drawn."""
    names = np.arange(len(values))
    parts = [names[names % n_folds == k] for k in range(n_folds)]
    return [fold(values[part], weights[part], part) for part in parts]


def test_the_standard_error_is_that_of_drawing_groups(monkeypatch):
    monkeypatch.setattr(choice, "MAX_BUNDLES", 2**40)  # each group by itself
    r = np.random.default_rng(0)
    values, weights = r.random(400), r.integers(1, 9, 400).astype(float)
    shares = choice.mean_group_shares(folds_of(values, weights))
    means = np.zeros(2000)
    for b in range(2000):
        count = r.multinomial(400, np.full(400, 1 / 400))
        for k in range(4):
            w = (count * weights)[k::4]
            means[b] += w @ values[k::4] / w.sum() / 4
    assert choice.standard_error(shares) == pytest.approx(means.std(), rel=0.08)
    test = choice.corrected_groups_test(shares, 0.25)
    assert test.high - test.low == pytest.approx(2 * 1.966 * means.std() * np.sqrt(2.25), rel=0.08)
    assert test.value == pytest.approx(np.mean([v["value"] for v in folds_of(values, weights)]))
    assert choice.corrected_groups_test({"0": [0.25, 0.5], "1": [0.25, 0.5]}, 0.25) is None


def test_bundles_and_repeats_change_little():
    r = np.random.default_rng(1)
    values, weights = r.random(5000), np.ones(5000)
    once = folds_of(values, weights)
    shares = choice.mean_group_shares(once)
    assert len(shares) <= choice.MAX_BUNDLES
    assert choice.standard_error(shares) == pytest.approx(np.std(values) / np.sqrt(5000), rel=0.1)
    assert choice.standard_error(choice.mean_group_shares(once + once)) == pytest.approx(
        choice.standard_error(shares), rel=1e-9
    )  # no new groups
    assert choice.mean_group_shares([*once, {"value": 0.5}]) is None
    assert choice.mean_group_shares([fold([0.5], [1.0], [0]), fold([0.6], [1.0], [0])]) is None


def test_with_a_group_for_each_fold_it_is_the_error_of_the_folds():
    values = [0.6, 0.7, 0.65, 0.9]
    results = [fold([v], [3.0], [k]) for k, v in enumerate(values)]
    assert choice.standard_error(choice.mean_group_shares(results)) == pytest.approx(np.std(values, ddof=1) / 2)
    assert choice.interval(values, AREA, 1 / 3, 4, shares=choice.mean_group_shares(results)) == pytest.approx(
        choice.interval(values, AREA, 1 / 3, 4)
    )


def test_one_standard_error_and_the_interval_are_of_the_groups():
    r = np.random.default_rng(2)
    level = r.random(40)
    spread = [
        choice.SettingScores({"lam": lam}, tuple(folds_of(level + gain, np.ones(40))), 9)
        for lam, gain in ((1.0, 0.0), (0.1, 0.03))
    ]
    error = spread[1].standard_error
    assert spread[1].summary()["standard_error"] == error == choice.standard_error(spread[1].shares)
    assert error > 0.03
    assert choice.choose(spread, AREA, "one-se") == 0
    low, high = choice.interval(spread[0].values, AREA, 1 / 3, 40, shares=spread[0].shares)
    assert low < spread[0].mean - 2 * error < spread[0].mean + 2 * error < high

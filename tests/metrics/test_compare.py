"""Flipped signs against all flips and DeLong's normal test, the macro AUC, the corrected t-test and Holm."""

import itertools

import numpy as np
import pytest
from scipy import stats

from aucdist import metrics
from aucdist.errors import InputError
from aucdist.metrics import compare
from aucdist.metrics.groups import group_auc, group_metric_difference
from aucdist.metrics.intervals import bootstrap_interval, t_quantile
from aucdist.metrics.ranking import auc as auc_of, auc_interval, average_precision, delong_variance


def sample(n_pos=40, n_neg=60, seed=0, ties=True):
    r = np.random.default_rng(seed)
    y = np.repeat([1, -1], [n_pos, n_neg])
    first = r.normal(size=len(y)) + (y == 1)
    second = first + r.normal(size=len(y))
    return y, np.round(first, 1) if ties else first, np.round(second, 1) if ties else second


def twin(y, scores):
    """Placements pair by pair, and their sample covariance by the definition."""
    pos, neg = [s[y == 1] for s in scores], [s[y == -1] for s in scores]
    wins = [(p[:, None] > n[None, :]) + 0.5 * (p[:, None] == n[None, :]) for p, n in zip(pos, neg, strict=True)]
    by_pos, by_neg = [w.mean(axis=1) for w in wins], [w.mean(axis=0) for w in wins]
    k = len(scores)
    covariance = np.empty((k, k))
    for a, b in itertools.product(range(k), range(k)):
        terms = []
        for parts in (by_pos, by_neg):
            n = len(parts[a])
            mean_a, mean_b = sum(parts[a]) / n, sum(parts[b]) / n
            terms.append(
                sum((u - mean_a) * (v - mean_b) for u, v in zip(parts[a], parts[b], strict=True)) / (n - 1) / n
            )
        covariance[a, b] = sum(terms)
    return by_pos, by_neg, [w.mean() for w in wins], covariance


@pytest.mark.parametrize("seed", range(4))
def test_placements_are_those_of_the_pairs(seed):
    y, first, second = sample(seed=seed)
    by_pos, by_neg, areas, covariance = twin(y, [first, second])
    for i, scores in enumerate((first, second)):
        of_pos, of_neg = compare.placements(y, scores)
        np.testing.assert_allclose(of_pos, by_pos[i], atol=1e-15)
        np.testing.assert_allclose(of_neg, by_neg[i], atol=1e-15)
        (area,), parts = compare._areas((y == 1)[:, None], scores[:, None], ddof=1)
        assert area == pytest.approx(areas[i])
        assert parts @ parts == pytest.approx(covariance[i, i], rel=1e-12)


@pytest.mark.parametrize(("n_pos", "n_neg"), [(400, 600), (600, 400)])
def test_with_many_rows_the_test_is_delongs(n_pos, n_neg):
    y, first, second = sample(n_pos, n_neg, seed=3)
    _, _, areas, covariance = twin(y, [first, second])
    error = np.sqrt(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
    difference = compare.auc_test(y, first, second)
    value = areas[0] - areas[1]
    assert difference.value == pytest.approx(value)
    assert difference.p_value == pytest.approx(2 * stats.norm.sf(abs(value / error)), rel=0.3, abs=0.003)
    assert (difference.low, difference.high) == pytest.approx(stats.norm.interval(0.95, value, error), abs=0.15 * error)
    labels = np.where(y == 1, "rare", "common")
    assert metrics.roc_auc_difference(labels.tolist(), first.tolist(), second) == difference
    by_name = metrics.average_precision_difference(labels.tolist(), first.tolist(), second, pos_label="rare")
    assert by_name == metrics.average_precision_difference(y, first, second)
    turned = compare.auc_test(y, second, first)
    assert (turned.value, turned.low) == pytest.approx((-difference.value, -difference.high), abs=0.05 * error)


def all_flips(parts, carried, difference):
    """Return how often the sum of flipped parts, less the difference, is at least as large, and at least as small."""
    moved = np.array(parts) - difference * np.array(carried)
    sums = np.array([np.dot(signs, moved) for signs in itertools.product((1, -1), repeat=len(moved))])
    return np.mean(sums >= moved.sum() - 1e-12), np.mean(sums <= moved.sum() + 1e-12)


@pytest.mark.parametrize("n", [4, 6, 9, 12])
def test_few_rows_have_the_p_value_of_all_flips_and_the_interval_that_belongs_to_it(n):
    r = np.random.default_rng(n)
    parts, carried = r.normal(0.5, 1, n) / n / 4, np.full(n, 1 / n)
    flip_test = compare.sign_flip_test(parts, carried, 0.9)
    assert flip_test.p_value == pytest.approx(min(1.0, 2 * min(all_flips(parts, carried, 0.0))))
    assert (flip_test.low > 0 or flip_test.high < 0) == (flip_test.p_value <= 0.1)
    for end, inside in ((flip_test.low, 1e-6), (flip_test.high, -1e-6)):
        if abs(end) < 1:
            assert min(all_flips(parts, carried, end + inside)) > 0.05
            assert min(all_flips(parts, carried, end - inside)) <= 0.05
    assert flip_test.n_deciding == n


def test_many_rows_beside_few_count_as_a_normal_error():
    r = np.random.default_rng(5)
    few = r.normal(0.6, 1, 12) / 12
    many = r.normal(0, 1, 3000)
    many = (many - many.mean()) * 0.02 / np.sqrt(3000)
    carried = np.concatenate([np.full(12, 1 / 12), np.zeros(3000)])
    mixed = compare.sign_flip_test(np.concatenate([few, many]), carried, 0.95, most=4.0)
    alone = compare.sign_flip_test(few, np.full(12, 1 / 12), 0.95, most=4.0)
    assert mixed.p_value == pytest.approx(alone.p_value, abs=0.02)
    assert (mixed.low, mixed.high) == pytest.approx((alone.low, alone.high), abs=0.05)
    assert mixed.n_deciding == 12
    large = compare.sign_flip_test(np.concatenate([few + 0.4, many]), carried, 0.95, most=9.0)
    assert 2**-13 <= large.p_value < 0.01


@pytest.mark.parametrize(
    ("second", "value", "p_value"),
    [(lambda s, y: s, 0.0, 1.0), (lambda s, y: 2 * s + 1, 0.0, 1.0), (lambda s, y: -s, 1.0, 2 * 0.5**5)],
    ids=["the same", "same order", "reversed"],
)
def test_no_interval_of_a_difference_has_a_width_of_zero(second, value, p_value):
    y = np.repeat([1, -1], [5, 20])
    first = np.where(y == 1, 2.0, 1.0)
    difference = compare.auc_test(y, first, second(first, y))
    assert (difference.value, difference.p_value, difference.method) == (value, p_value, "exact-bound")
    assert difference.low <= difference.value <= difference.high
    assert difference.high - difference.low > 0.4


def test_bootstrap_interval_of_the_auc_is_about_delongs():
    y, scores, _ = sample(150, 300, ties=False)
    counts = metrics.ScoreCounts.from_scores(y, scores)
    bootstrap = bootstrap_interval(counts, auc_of, n_resamples=400, seed=1)
    low, high = bootstrap.low, bootstrap.high
    spread = 1.96 * np.sqrt(delong_variance(counts))
    assert low == pytest.approx(metrics.roc_auc_score(y, scores) - spread, abs=0.014)
    assert high == pytest.approx(metrics.roc_auc_score(y, scores) + spread, abs=0.014)
    assert bootstrap_interval(counts, auc_of, n_resamples=400, seed=1) == bootstrap


def test_bootstrap_of_a_perfect_ranking_is_not_a_point():
    counts = metrics.ScoreCounts.from_scores(np.repeat([1, -1], [9, 30]), np.repeat([1.0, 0.0], [9, 30]))
    bootstrap = bootstrap_interval(counts, average_precision, n_resamples=100)
    assert (bootstrap.low, bootstrap.high) == (pytest.approx(0.05 ** (1 / 9)), 1.0)


TESTS = {
    "auc": compare.auc_test,
    "partial": lambda y, a, b: compare.partial_auc_test(y, a, b, 0.2),
    "precision": metrics.average_precision_difference,
    "groups": lambda y, a, b: group_metric_difference(
        *(group_auc(y, s, groups=np.arange(len(y)) % 10) for s in (a, b))
    ),
}


@pytest.mark.parametrize("test", TESTS)
def test_equal_models_do_not_differ_and_near_ones_differ_little(test):
    y, first, second = sample(80, 200, seed=5)
    apart, same = TESTS[test](y, first, second), TESTS[test](y, first, first * 2)
    assert apart.low < apart.value < apart.high
    assert (same.value, same.p_value, same.method, same.n_deciding) == (0.0, 1.0, "exact-bound", 0)
    assert same.low < 0 < same.high
    near = TESTS[test](y, first, first + 1e-2 * second)
    assert near.high - near.low < 0.5 * (apart.high - apart.low)
    assert TESTS[test](y, first, second) == apart


@pytest.mark.parametrize(("test", "n_pos"), [("auc", 2), ("auc", 5), ("partial", 10), ("precision", 2), ("groups", 10)])
def test_few_positives_do_not_make_equal_models_differ(test, n_pos):
    r, y, rejected, better = np.random.default_rng(n_pos), np.repeat([1, -1], [n_pos, 200]), 0, 0
    for _ in range(40):
        shared, eps, other = r.normal(size=(3, len(y)))
        difference = TESTS[test](y, shared + eps + 1.4 * (y == 1), shared + other + 1.4 * (y == 1))
        rejected, better = rejected + (difference.p_value < 0.05), better + (difference.low > 0)
    assert rejected <= 6  # of 40; 2 are expected, and more than 6 have the probability .003
    assert better <= 4


def rows_of_classes(n=300, k=4, seed=0, *, topics=False):
    """Return members, and the scores of two models, one better than the other, with ties."""
    r = np.random.default_rng(seed)
    members = r.random((n, k)) < 0.3 if topics else r.integers(k, size=n)[:, np.newaxis] == np.arange(k)
    return members, *((members * slope + r.normal(size=(n, k))).round(1) for slope in (1.5, 0.8))


def test_the_error_of_the_macro_auc_is_that_of_resampled_rows():
    members, first, other = rows_of_classes(topics=True)
    difference = compare.macro_auc_test(members, first, other)
    r, drawn = np.random.default_rng(1), []
    for _ in range(400):
        at = r.integers(len(members), size=len(members))
        areas = [compare.macro_auc_interval(members[at], scores[at]).value for scores in (first, other)]
        drawn.append(areas[0] - areas[1])
    assert (difference.high - difference.low) / (2 * 1.959963984540054) == pytest.approx(np.std(drawn), rel=0.15)
    assert difference.value == pytest.approx(np.mean(drawn), abs=0.01)
    assert 0 < difference.low < difference.value < difference.high


def test_a_small_class_does_not_make_equal_models_differ():
    r, rejected = np.random.default_rng(0), 0
    members = np.repeat([0, 1, 2], [60, 30, 4])[:, np.newaxis] == np.arange(3)
    for _ in range(40):
        shared, eps, other = r.normal(size=(3, *members.shape))
        rejected += (
            compare.macro_auc_test(members, shared + eps + 1.2 * members, shared + other + 1.2 * members).p_value < 0.05
        )
    assert rejected <= 6  # of 40; 2 are expected, and more than 6 have the probability .003


def test_one_class_has_the_interval_of_its_auc_and_small_classes_are_left_out():
    members, scores, _ = rows_of_classes(80)
    area = compare.macro_auc_interval(members[:, :1], scores[:, :1])
    with pytest.warns(
        metrics.IntervalWarning,
        match="the smaller class has 16 rows, and with this AUC a reliable interval needs at least 52",
    ):
        expected = auc_interval(metrics.ScoreCounts.from_scores(np.where(members[:, 0], 1, -1), scores[:, 0]))
    assert (area.value, area.low, area.high) == pytest.approx((expected.value, expected.low, expected.high), rel=1e-9)
    members[:, 2] = False
    members[0, 2] = True
    assert compare.measured_classes(members).tolist() == [0, 1, 3]
    with pytest.raises(InputError, match="each class needs at least two rows"):
        compare.macro_auc_interval(members, scores)


def test_an_interval_of_classes_that_are_ranked_rightly_is_not_a_point():
    members = np.arange(30)[:, np.newaxis] % 3 == np.arange(3)
    bounds = compare.macro_auc_interval(members, members.astype(float))
    assert (bounds.value, bounds.high) == (1.0, 1.0)
    assert bounds.low == pytest.approx(0.05 ** (1 / 10))


def test_corrected_t_test_is_that_of_nadeau_and_bengio():
    d = np.array([0.01, 0.03, -0.005, 0.02, 0.015])
    t_test = compare.corrected_t_test(d, 0.25)
    t = d.mean() / np.sqrt((1 / 5 + 0.25) * d.var(ddof=1))
    assert t_test.p_value == pytest.approx(2 * stats.t.sf(abs(t), 4))
    assert compare.corrected_t_test(d, 0.0).p_value == pytest.approx(stats.ttest_1samp(d, 0).pvalue)
    assert t_test.high - t_test.value == pytest.approx(stats.t.ppf(0.975, 4) * d.mean() / t)
    assert t_quantile(0.9, 7) == pytest.approx(stats.t.ppf(0.95, 7))


def test_equal_differences_leave_the_interval_open():
    t_test = compare.corrected_t_test([0.1] * 5, 0.25)
    assert (t_test.low, t_test.high, t_test.p_value) == (-np.inf, np.inf, 2 * 0.5**5)
    assert compare.corrected_t_test([0.0, 0.0], 0.25).p_value == 1.0


@pytest.mark.parametrize("p", [[0.01, 0.04, 0.03], [0.5, 0.001, 0.9, 0.02], [0.2], []])
def test_holm_is_statsmodels(p):
    from statsmodels.stats.multitest import multipletests  # half a second, for all processes that collect tests

    assert compare.holm(p) == pytest.approx(multipletests(p, method="holm")[1].tolist() if p else [])


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: compare.placements(np.array([1, 1]), np.zeros(2)), "one class only .2 positive and 0 negative rows."),
        (lambda: compare.placements(np.array([1, 0]), np.zeros(2)), "label at position 1"),
        (lambda: compare.placements(np.array([1, -1]), np.array([0, np.inf])), "score at position 1"),
        (lambda: compare.placements(np.array([1, -1]), np.zeros(3)), "y_score has 3 values, but y_true"),
        (lambda: compare.auc_test(np.array([1, -1, -1]), np.arange(3.0), np.zeros(3)), "each class needs at least two rows"),
        (lambda: metrics.average_precision_difference([1, -1, -1], np.arange(3.0), np.zeros(3)), "two rows of each class"),
        (lambda: compare.auc_test(np.array([1, -1] * 2), np.arange(4.0), np.zeros(4), level=1.0), "level must be .*; got 1.0"),
        (lambda: compare.corrected_t_test([0.1], 0.25), "at least two folds"),
        (lambda: compare.corrected_t_test([0.1, np.nan], 0.25), "not finite"),
        (lambda: compare.corrected_t_test([0.1, 0.2], -1), "test_over_train must be .*; got -1"),
        (lambda: bootstrap_interval(metrics.ScoreCounts.from_scores(np.array([1, -1]), np.zeros(2)), auc_of, n_resamples=9), "9"),
        (
            lambda: bootstrap_interval(
                metrics.ScoreCounts.from_scores(np.array([1, -1]), np.zeros(2), np.array([1, 0.5])), auc_of
            ),
            "weighted rows",
        ),
    ],
)  # fmt: skip
def test_bad_input(call, said):
    with pytest.raises(InputError, match=said):
        call()

"""Metrics on counts against plain Python that looks at every pair, and against scikit-learn."""

import math
import warnings
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import sklearn.metrics as sk
from hypothesis import given, settings, strategies as st
from scipy import integrate, stats

from aucdist.errors import InputError
from aucdist.metrics import IntervalWarning, decisions, ranking
from aucdist.metrics.counts import ScoreCounts

SCORES = st.sampled_from([-3.0, -0.5, -0.0, 0.0, 0.1, 0.2, 0.30000000000000004, 1.0, 2.0])
BOTH = st.tuples(st.lists(SCORES, min_size=1, max_size=25), st.lists(SCORES, min_size=1, max_size=25))
AT_LEAST_TWO = st.tuples(st.lists(SCORES, min_size=2, max_size=20), st.lists(SCORES, min_size=2, max_size=20))
WEIGHTS = st.integers(1, 40).map(lambda k: k / 8)


def rows_of(pos, neg):
    return np.repeat([1, -1], [len(pos), len(neg)]), np.array([*pos, *neg], dtype=float)


def count(pos, neg, weight=None):
    return ScoreCounts.from_scores(*rows_of(pos, neg), weight)


def right(p: float, q: float) -> Fraction:
    return Fraction(2 * (p > q) + (p == q), 2)


def slow_auc(pos, neg) -> Fraction:
    return sum((right(p, q) for p in pos for q in neg), Fraction(0)) / (len(pos) * len(neg))


def slow_delong(pos, neg) -> Fraction:
    area = slow_auc(pos, neg)
    of_pos = [sum(right(p, q) for q in neg) / Fraction(len(neg)) for p in pos]
    of_neg = [sum(right(p, q) for p in pos) / Fraction(len(pos)) for q in neg]
    total = Fraction(0)
    for placements in (of_pos, of_neg):
        n = len(placements)
        total += sum((v - area) ** 2 for v in placements) / ((n - 1) * n)
    return total


def interval(counts, level=0.95):
    with warnings.catch_warnings(action="ignore", category=IntervalWarning):
        return ranking.auc_interval(counts, level)


# AUC ----------------------------------------------------------------------------------------------------------------


@given(BOTH)
def test_auc_is_the_count_over_all_pairs_to_the_bit(rows):
    assert ranking.auc(count(*rows)) == float(slow_auc(*rows))


@given(BOTH, st.data())
def test_weighted_auc_is_the_weighted_count(rows, data):
    pos, neg = rows
    a = data.draw(st.lists(WEIGHTS, min_size=len(pos), max_size=len(pos)))
    b = data.draw(st.lists(WEIGHTS, min_size=len(neg), max_size=len(neg)))
    pairs = [(float(right(p, q)), v * w) for p, v in zip(pos, a, strict=True) for q, w in zip(neg, b, strict=True)]
    expected = sum(r * w for r, w in pairs) / sum(w for _, w in pairs)
    assert ranking.auc(count(pos, neg, np.array([*a, *b]))) == pytest.approx(expected, rel=1e-13, abs=1e-15)


@pytest.mark.parametrize("scale", [10**3, 10**8, 10**10])  # below 2**53 pairs, below 2**63, and above
def test_auc_stays_exact_beyond_the_integers_of_float64_and_of_int64(scale):
    random = np.random.default_rng(3)
    for _ in range(20):
        pos, neg = random.integers(0, scale, (2, 15))
        counts = ScoreCounts(np.arange(15.0), pos.astype(float), neg.astype(float), int(pos.sum()), int(neg.sum()))
        p, q = pos.tolist(), neg.tolist()
        twice = sum(p[i] * q[j] * (2 * (i > j) + (i == j)) for i in range(15) for j in range(15))
        assert ranking.auc(counts) == float(Fraction(twice, 2 * sum(p) * sum(q)))
        products = [sum(p[i + 1 :]) * sum(q[: i + 1]) for i in range(15)]
        assert decisions.best_threshold(counts) == products.index(max(products)) + 0.5


@pytest.fixture(scope="module")
def many():
    random = np.random.default_rng(5)
    y = np.where(random.random(5000) < 0.1, 1, -1)
    return y, np.round(random.normal(size=5000) + 0.8 * (y > 0), 2), random.integers(0, 5, 5000) / 4


@pytest.mark.parametrize(
    "measure",
    [
        ranking.auc, ranking.delong_variance, ranking.auc_interval, ranking.average_precision, ranking.roc_curve,
        ranking.roc_band, decisions.best_threshold,
    ],
)  # fmt: skip
@pytest.mark.parametrize(("pos", "neg"), [([], [1.0, 2.0]), ([1.0], []), ([], [])])
def test_a_missing_class_is_refused(measure, pos, neg):
    with pytest.raises(InputError, match=f"{len(pos)} positive and {len(neg)} negative rows"):
        measure(count(pos, neg))


# DeLong -------------------------------------------------------------------------------------------------------------


@given(AT_LEAST_TWO)
def test_delong_variance_is_that_of_the_placements(rows):
    assert ranking.delong_variance(count(*rows)) == pytest.approx(float(slow_delong(*rows)), rel=1e-10, abs=1e-18)


@given(AT_LEAST_TWO, st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_interval_holds_the_auc_and_turns_with_the_scores(rows, level):
    pos, neg = rows
    bounds, mirror = interval(count(pos, neg), level), interval(count(neg, pos), level)
    assert 0 <= bounds.low <= bounds.value <= bounds.high <= 1
    assert (mirror.low, mirror.high) == pytest.approx((1 - bounds.high, 1 - bounds.low), abs=1e-12)
    wider = interval(count(pos, neg), 0.999)
    assert wider.low <= bounds.low
    assert bounds.high <= wider.high


def test_the_ends_of_the_interval_are_as_far_from_the_area_as_students_t_allows():
    r = np.random.default_rng(4)
    pos, neg = r.normal(1.2, 1, 12).round(1).tolist(), r.normal(0, 1, 30).round(1).tolist()
    area, bounds = float(slow_auc(pos, neg)), interval(count(pos, neg))
    assert bounds.method == "score"

    def spread(a):  # of the placements of normal scores with the AUC a, by integration
        d = math.sqrt(2) * stats.norm.ppf(a)
        return integrate.quad(lambda x: stats.norm.cdf(x) ** 2 * stats.norm.pdf(x - d), -12, 12)[0] - a**2

    variance = (12 * float(slow_delong(pos, neg)) + 20 * spread(area) * (1 / 12 + 1 / 30)) / 32
    for end in (bounds.low, bounds.high):
        error = math.sqrt(variance * spread(end) / spread(area))
        assert abs(end - area) / error == pytest.approx(stats.t.ppf(0.975, 31), rel=1e-6)


def slow_precision(pos, neg):
    """The average precision over positives that weigh w each, negatives v each."""
    above = [(sum(w for q, w in pos if q >= p), sum(v for q, v in neg if q >= p)) for p, _ in pos]
    total = sum(w for _, w in pos)
    return sum(w * t / (t + f) for (_, w), (t, f) in zip(pos, above, strict=True)) / total


@given(AT_LEAST_TWO)
@settings(max_examples=40)
def test_the_jackknife_leaves_out_each_row_and_keeps_the_weight_of_its_class(rows):
    pos, neg = rows
    counts = count(pos, neg)
    of_pos, of_neg = ranking.precision_jackknife(counts)
    heavy, light = len(pos) / (len(pos) - 1), len(neg) / (len(neg) - 1)
    without_pos = [
        slow_precision([(q, heavy) for j, q in enumerate(pos) if j != i], [(q, 1) for q in neg])
        for i in range(len(pos))
    ]
    without_neg = [
        slow_precision([(q, 1) for q in pos], [(q, light) for j, q in enumerate(neg) if j != i])
        for i in range(len(neg))
    ]
    for scores, values, without in ((pos, of_pos, without_pos), (neg, of_neg, without_neg)):
        n = len(scores)
        jackknife = values[np.searchsorted(counts.values, np.array(scores) + 0.0)]
        np.testing.assert_allclose(jackknife, (n - 1) / n * (np.mean(without) - np.array(without)), atol=1e-12)


@pytest.mark.parametrize(
    ("pos", "neg", "low", "high"),
    [
        ([2.0] * 20, [1.0] * 30, 0.05 ** (1 / 20), 1.0),  # all pairs right
        ([1.0] * 30, [2.0] * 20, 0.0, 1 - 0.05 ** (1 / 20)),  # all wrong
        ([1.0] * 20, [1.0] * 20, 0.05 ** (1 / 20) / 2, 1 - 0.05 ** (1 / 20) / 2),  # all tied
        ([5.0], [1.0, 2.0, 7.0, 8.0], 0.05 * 0.5, 1 - 0.05 * 0.5),  # one row says next to nothing
        ([5.0], [1.0], 0.05, 1.0),
    ],
)
def test_interval_where_there_is_no_variance(pos, neg, low, high):
    bounds = interval(count(pos, neg))
    assert bounds.method == "exact-bound"
    assert (bounds.low, bounds.high) == pytest.approx((low, high), rel=1e-12)


@pytest.mark.parametrize("m", [1, 2, 8])
@pytest.mark.parametrize("theta", [0.02, 0.3, 0.7, 0.94, 0.99])
def test_the_bound_holds_its_level_where_it_can_be_computed(m, theta):
    # Scores of -1, 0 or 1 with one negative at 0: m positives are right independently, each with probability theta.
    missed = 0.0
    for k in range(m + 1):
        bounds = interval(count([1.0] * k + [-1.0] * (m - k), [0.0]), 0.95)
        missed += math.comb(m, k) * theta**k * (1 - theta) ** (m - k) * (not bounds.low <= theta <= bounds.high)
    assert missed <= 0.05


def test_an_interval_of_few_rows_warns_and_says_how_many_an_auc_near_0_or_1_needs():
    random = np.random.default_rng(0)
    good, many = random.normal(1.0, 1, 150), random.normal(0, 1, 400)
    ranking.auc_interval(count(good, many))
    ranking.auc_interval(count(good + 100, many))  # AUC 1: the bound is exact
    with pytest.warns(IntervalWarning, match="has 9 rows, and with this AUC a reliable interval needs at least 13"):
        ranking.auc_interval(count(good[:9] - 1, many))
    with pytest.warns(IntervalWarning, match="has 1 row, and"):
        ranking.auc_interval(count(good[:1], many))
    rare = count([*(good[1:] + 100), 0.0], many)
    with pytest.warns(IntervalWarning, match=r"smaller class has 150 rows, and with this AUC .* at least [\d,]{4,}"):
        ranking.auc_interval(rare)
    with pytest.warns(IntervalWarning, match=r"smaller class has 150 rows, and with this AUC .* at least [\d,]{4,}"):
        ranking.auc_interval(count([*(good[1:] - 100), 0.0], many))
    with pytest.warns(IntervalWarning, match=r"smaller class has 1,500 rows, and with this AUC .* at least 7,500"):
        ranking.auc_interval(count([*random.normal(100, 1, 1499), -100.0], random.normal(0, 1, 4000)))
    with pytest.warns(IntervalWarning, match=r"has 10 rows, and with this AUC .* at least [1-4]\d\. Test on more rows"):
        ranking.auc_interval(count(np.arange(10) + 0.5, np.arange(400) / 60))


def test_no_interval_for_weights_a_level_out_of_range_or_one_row():
    heavy = count([1.0, 2.0], [0.0, 3.0], np.array([1.0, 2, 1, 1]))
    for refused in (ranking.auc_interval, ranking.roc_band):
        with pytest.raises(InputError, match="weights"):
            refused(heavy)
    for level in (0.49, 1.0, float("nan")):
        with pytest.raises(InputError, match="level"):
            ranking.auc_interval(count([1.0], [0.0]), level)


# Curves and thresholds ----------------------------------------------------------------------------------------------


@given(BOTH)
def test_roc_curve_and_average_precision_equal_scikit_learn(rows):
    y, scores = rows_of(*rows)
    counts = count(*rows)
    for ours, theirs in zip(
        ranking.roc_curve(counts), sk.roc_curve(y, scores, drop_intermediate=False)[:2], strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-14)
    assert ranking.average_precision(counts) == pytest.approx(sk.average_precision_score(y, scores), rel=1e-12)


def test_weighted_curves_equal_scikit_learn(many):
    y, scores, weight = many
    counts = ScoreCounts.from_scores(y, scores, weight)
    assert ranking.average_precision(counts) == pytest.approx(
        sk.average_precision_score(y, scores, sample_weight=weight), rel=1e-12
    )
    kept = weight > 0
    theirs = sk.roc_curve(y[kept], scores[kept], sample_weight=weight[kept], drop_intermediate=False)
    for ours, their in zip(ranking.roc_curve(counts), theirs[:2], strict=True):
        np.testing.assert_allclose(ours, their, rtol=1e-12)


@given(BOTH)
def test_roc_band_holds_the_curve(rows):
    counts = count(*rows)
    fpr, tpr = ranking.roc_curve(counts)
    fpr_low, fpr_high, tpr_low, tpr_high = ranking.roc_band(counts)
    for low, point, high in ((fpr_low, fpr, fpr_high), (tpr_low, tpr, tpr_high)):
        assert (low <= point + 1e-12).all()
        assert (point <= high + 1e-12).all()
        assert (low >= 0).all()
        assert (high <= 1).all()


def test_roc_band_is_wilsons_interval():
    scipy_stats = pytest.importorskip("scipy.stats")
    counts = count([3.0] * 7 + [0.0] * 13, [3.0] * 2 + [0.0] * 48)
    band = [side[1] for side in ranking.roc_band(counts)]
    expected = [scipy_stats.binomtest(k, n).proportion_ci(math.sqrt(0.95), "wilson") for k, n in ((2, 50), (7, 20))]
    assert band == pytest.approx([*expected[0], *expected[1]], rel=1e-9)


def slow_g_mean(pos, neg, threshold) -> Fraction:
    """The square, which has no rounding."""
    return Fraction(sum(p > threshold for p in pos), len(pos)) * Fraction(sum(q <= threshold for q in neg), len(neg))


@given(BOTH)
def test_best_threshold_beats_every_cut_and_takes_the_lowest_false_positive_rate(rows):
    pos, neg = rows
    threshold = decisions.best_threshold(count(pos, neg))
    values = sorted({*pos, *neg})
    cuts = [-math.inf, *[(a + b) / 2 for a, b in pairwise(values)], values[-1]]
    best = max(slow_g_mean(pos, neg, c) for c in cuts)
    assert slow_g_mean(pos, neg, threshold) == best
    assert threshold == max(c for c in cuts if slow_g_mean(pos, neg, c) == best)


@pytest.mark.parametrize(
    ("low", "high"),
    [(1.0, np.nextafter(1.0, 2)), (-1e308, 1e308), (1e308, 1.7e308), (0.0, 5e-324), (-5e-324, 0.0), (5e-324, 1e-323)],
)
def test_threshold_separates_even_neighbouring_floats(low, high):
    assert low <= decisions.best_threshold(count([high], [low])) < high


@given(BOTH, SCORES | st.sampled_from([0.15, -math.inf, math.inf]))
def test_confusion_and_its_rates_equal_counting(rows, threshold):
    pos, neg = rows
    table = decisions.confusion(count(pos, neg), threshold)
    y, scores = rows_of(pos, neg)
    predicted = np.where(scores > threshold, 1, -1)
    (tn, fp), (fn, tp) = sk.confusion_matrix(y, predicted, labels=[-1, 1]).tolist()
    assert table == {"tp": tp, "fp": fp, "tn": tn, "fn": fn}
    assert all(type(v) is int for v in table.values())
    assert decisions.recall(table) == pytest.approx(sk.recall_score(y, predicted))
    assert decisions.specificity(table) == pytest.approx(sk.recall_score(y, predicted, pos_label=-1))
    assert decisions.precision(table) == pytest.approx(sk.precision_score(y, predicted, zero_division=0))
    assert decisions.balanced_accuracy(table) == pytest.approx(sk.balanced_accuracy_score(y, predicted))
    assert decisions.g_mean(table) == pytest.approx(math.sqrt(slow_g_mean(pos, neg, threshold)))


def test_confusion_with_weights_one_class_and_no_threshold():
    heavy = count([1.0, 2.0], [0.0, 3.0], np.array([1.0, 2, 0.5, 1]))
    assert decisions.confusion(heavy, 1.0) == {"tp": 2.0, "fp": 1.0, "tn": 0.5, "fn": 1.0}
    assert decisions.best_threshold(heavy) == 0.5
    alone = decisions.confusion(count([1.0, 2.0], []), 1.5)
    assert alone == {"tp": 1, "fp": 0, "tn": 0, "fn": 1}
    assert decisions.g_mean(alone) == 0.0
    with pytest.raises(InputError, match=r"threshold must be a number that is not NaN.*; got nan"):
        decisions.confusion(heavy, float("nan"))

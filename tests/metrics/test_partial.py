"""Partial AUCs, and precision and recall at each other, against all pairs, slow twins, numerical derivatives and samples."""

import warnings
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
import sklearn.metrics as sk
from hypothesis import given, strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import beta, norm

from aucdist import metrics
from aucdist.errors import InputError
from aucdist.metrics import (
    IntervalWarning,
    partial as of_counts,
    partial_roc_auc_difference,
    partial_roc_auc_interval,
    partial_roc_auc_score,
)
from aucdist.metrics.compare import auc_test, partial_auc_test
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.decisions import precision_at_recall, recall_at_precision
from aucdist.metrics.named import find_metric
from aucdist.metrics.partial import partial_auc, partial_auc_interval, placements_up_to, two_way_partial_auc
from aucdist.metrics.ranking import auc, auc_interval, delong_variance

area, area_interval, area_test = (
    partial(function, standardized=False) for function in (partial_auc, partial_auc_interval, partial_auc_test)
)
SCORES = st.integers(-3, 3).map(float)
ROWS = st.lists(st.tuples(SCORES, st.integers(1, 5)), min_size=1, max_size=12)
RATES = st.fractions(Fraction(1, 50), 1, max_denominator=999)


def slow_area(pos, neg, max_fpr):
    """Return the partial AUC by looking at every pair of weighted rows, in fractions."""
    n_pos, n_neg = (sum(weight for _, weight in rows) for rows in (pos, neg))
    total = Fraction(0)
    for y, weight in neg:
        above = sum(w for score, w in neg if score > y)
        tied = sum(w for score, w in neg if score == y)
        # The part of the rows with this score that belongs to the highest max_fpr * n_neg negatives.
        part = min(max((max_fpr * n_neg - above) / Fraction(tied), Fraction(0)), Fraction(1))
        for x, w in pos:
            total += w * weight * (part if x > y else part * part / 2 if x == y else 0)
    return total / (n_pos * n_neg)


def count(pos, neg, weights=True):
    y = np.repeat([1, -1], [len(pos), len(neg)])
    scores, weight = (np.array([row[k] for row in [*pos, *neg]], dtype=float) for k in (0, 1))
    return ScoreCounts.from_scores(y, scores, weight if weights else None)


def sample(seed, n_pos, n_neg, shift, ties=False):
    random = np.random.default_rng(seed)
    y = np.repeat([1, -1], [n_pos, n_neg])
    scores = random.normal(size=len(y)) + shift * (y > 0)
    return y, np.round(scores, 1) if ties else scores


@given(ROWS, ROWS, RATES)
def test_area_is_that_of_all_pairs(pos, neg, rate):
    expected = float(slow_area(pos, neg, rate))
    assert area(count(pos, neg), float(rate)) == pytest.approx(expected, rel=1e-12, abs=1e-15)
    plain = [(score, 1) for score, _ in pos], [(score, 1) for score, _ in neg]
    expected = float(slow_area(*plain, rate))
    assert area(count(*plain, weights=False), float(rate)) == pytest.approx(expected, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("rate", [1e-3, 0.05, 0.3, 0.999, 1.0])
def test_standardized_area_is_that_of_scikit_learn(rate):
    y, scores = sample(0, 40, 400, 1.0, ties=True)
    weight = np.random.default_rng(1).uniform(0.1, 3, len(y))
    for given_weight in (None, weight):
        expected = sk.roc_auc_score(y, scores, max_fpr=rate, sample_weight=given_weight)
        standardized = partial_roc_auc_score(y, scores, max_fpr=rate, sample_weight=given_weight)
        assert standardized == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("n_pos", "weight"), [(20, 0.25), (80, 1.0), (200, 1.0)])
def test_of_few_positives_a_part_of_the_auc_counts(n_pos, weight):
    counts = ScoreCounts.from_scores(*sample(3, n_pos, 900, 1.0, ties=True))
    partial, of_all = partial_auc(counts, 0.05), auc(counts)
    assert partial < of_all
    shrunk = find_metric("shrunk_partial_auc@0.05").evaluate(counts, 0.0)
    assert shrunk == pytest.approx(weight * partial + (1 - weight) * of_all, rel=1e-14)


def test_sums_over_many_rows_are_exact():
    """With 1e18 pairs float64 drops units; the counts of whole groups are added up as integers."""
    n = 10**9
    values, pos, neg = np.array([1.0, 2.0, 3.0]), np.array([1.0, 0.0, n - 1.0]), np.array([n / 2, n / 2, 0.0])
    counts = ScoreCounts(values, pos, neg, n, n)
    assert area(counts, 0.5) == float(Fraction((n - 1) * (n // 2), n * n))


def test_up_to_a_rate_of_1_it_is_delongs():
    y, scores = sample(4, 70, 300, 1.0, ties=True)
    counts = ScoreCounts.from_scores(y, scores)
    assert area(counts, 1.0) == auc(counts)
    of_pos, of_neg = placements_up_to(counts, 1.0)
    variance = of_counts.variance_of(of_pos, counts.pos) / 70 + of_counts.variance_of(of_neg, counts.neg) / 300
    assert variance == pytest.approx(delong_variance(counts), rel=1e-12)
    with warnings.catch_warnings(action="ignore", category=IntervalWarning):
        partial, other = area_interval(counts, 1.0), auc_interval(counts)
    assert (partial.low, partial.high) == pytest.approx((other.low, other.high), rel=1e-12)
    second = scores + np.random.default_rng(0).normal(size=len(y))
    at_rate, two = area_test(y, scores, second, 1.0), auc_test(y, scores, second)
    assert (at_rate.low, at_rate.high, at_rate.p_value) == pytest.approx((two.low, two.high, two.p_value), abs=0.01)


def test_standardizing_maps_value_and_bounds():
    y, scores = sample(5, 100, 1000, 1.5)
    plain = partial_roc_auc_interval(y, scores, max_fpr=0.05, standardized=False)
    mapped = partial_roc_auc_interval(y, scores, max_fpr=0.05)
    least, most = 0.05**2 / 2, 0.05
    for name in ("value", "low", "high"):
        expected = 0.5 + 0.5 * (getattr(plain, name) - least) / (most - least)
        assert getattr(mapped, name) == pytest.approx(expected, rel=1e-12)
    second = scores + np.random.default_rng(0).normal(size=len(y))
    plain = partial_roc_auc_difference(y, scores, second, max_fpr=0.05, standardized=False)
    mapped = partial_roc_auc_difference(y, scores, second, max_fpr=0.05)
    assert plain.value == pytest.approx(
        partial_roc_auc_score(y, scores, max_fpr=0.05, standardized=False)
        - partial_roc_auc_score(y, second, max_fpr=0.05, standardized=False)
    )
    assert mapped.p_value == plain.p_value
    ratio = 0.5 / (most - least)
    for name in ("value", "low", "high"):
        assert getattr(mapped, name) == pytest.approx(ratio * getattr(plain, name), rel=1e-12)


def test_without_a_variance_there_is_a_bound():
    y = np.repeat([1, -1], [60, 1000])
    perfect = ScoreCounts.from_scores(y, y.astype(float))
    bounds = area_interval(perfect, 0.1)
    assert (bounds.value, bounds.high, bounds.method) == (0.1, 0.1, "exact-bound")
    assert 0.9 * 0.1 < bounds.low < 0.1
    reverse = ScoreCounts.from_scores(y, -y.astype(float))
    bounds = area_interval(reverse, 0.1)
    assert (bounds.value, bounds.low, bounds.method) == (0.0, 0.0, "exact-bound")
    # The curve that jumps from 0 to 1 just where the 100th highest negative is unlikely to lie below.
    assert bounds.high == pytest.approx(0.1 - beta.ppf(0.05, 100, 901), rel=1e-9)
    tied = area_interval(ScoreCounts.from_scores(y, np.zeros(len(y))), 0.1)
    assert (tied.value, tied.method) == (pytest.approx(0.005), "exact-bound")
    # Markov's: as shares of 0.1, from 0.05 times the value to 1 - 0.05 times what it lacks.
    assert (tied.low, tied.high) == (pytest.approx(0.1 * 0.05 * 0.05), pytest.approx(0.1 * (1 - 0.05 * 0.95)))
    same = area_test(y, y.astype(float), 2.0 * y, 0.1)
    assert (same.value, same.p_value, same.method) == (0.0, 1.0, "exact-bound")
    assert same.low < 0.0 < same.high


@pytest.mark.parametrize("n_neg", [30, 400])
def test_the_bound_holds_for_every_roc_curve(n_neg):
    """No rising ROC curve below the bound lets a sample be perfect with a probability above 5 %."""
    n_pos, rate = 25, 0.2
    low, _ = of_counts._bound(1.0, n_pos, n_neg, rate, 0.95)
    _, high = of_counts._bound(0.0, n_pos, n_neg, rate, 0.95)
    random, u = np.random.default_rng(0), (np.arange(50_000) + 0.5) / 50_000
    lowest = 1 - (1 - u) ** (1 / n_neg)  # quantiles of the highest negative's false positive rate
    for _ in range(200):
        cuts, heights = (
            np.sort(random.uniform(0, rate, 3)),
            np.sort(random.choice([0, 1, random.random(), random.random()], 3)),
        )
        widths = np.diff(np.concatenate(([0.0], cuts)))
        area = float(widths @ heights) + (rate - cuts[-1])
        scale = low * rate / area  # lower the curve to the area of the bound
        curve = np.append(np.minimum(heights * scale, 1.0), min(scale, 1.0))
        share = (float(widths @ curve[:-1]) + (rate - cuts[-1]) * curve[-1]) / rate
        if share > low + 1e-12:
            continue
        at = np.searchsorted(cuts, lowest)
        reached = np.where(lowest > rate, 1.0, curve[np.minimum(at, 3)])
        assert (reached**n_pos).mean() <= 0.05 + 1e-3
    assert 0 <= low < 1
    assert 0 < high <= 1


def test_input_is_checked():
    y, scores = sample(6, 60, 300, 1.0)
    counts = ScoreCounts.from_scores(y, scores)
    for wrong in (0.0, -0.1, 1.1, float("nan")):
        with pytest.raises(InputError, match=r"max_fpr must be .* above 0 and at most 1"):
            area(counts, wrong)
    with pytest.raises(InputError, match="level"):
        area_interval(counts, 0.1, 0.2)
    with pytest.raises(InputError, match="weighted"):
        area_interval(ScoreCounts.from_scores(y, scores, np.full(len(y), 2.0)), 0.1)
    with pytest.raises(InputError, match="two rows"):
        area_test(np.array([1, -1, -1]), np.arange(3.0), np.arange(3.0), 0.5)
    with pytest.warns(IntervalWarning, match=r"60 positives \(at least 50 are needed\) and 3 negatives up to max_fpr"):
        area_interval(counts, 0.01)


# ---- recall at a precision, precision at a recall, and the two-way partial AUC ------------------


REGIONS = [(0.0, 0.0371), (0.0, 0.271), (0.0, 1.0), (0.31, 0.47), (0.62, 0.83), (0.87, 1.0)]


def thresholds(pos, neg):
    """Yield recall and precision of every threshold that flags a row, in fractions."""
    for cut in {score for score, _ in [*pos, *neg]}:
        caught, false = (sum(w for score, w in rows if score >= cut) for rows in (pos, neg))
        yield Fraction(caught, sum(w for _, w in pos)), Fraction(caught, caught + false)


def slow_two_way(pos, neg, min_tpr, max_fpr):
    """Return the area of each piece of the ROC curve within the region, in fractions."""
    n_pos, n_neg = (sum(w for _, w in rows) for rows in (pos, neg))
    u = v = area = Fraction(0)
    for cut in sorted({score for score, _ in [*pos, *neg]}, reverse=True):
        du, dv = (Fraction(sum(w for score, w in rows if score == cut), n) for rows, n in ((neg, n_neg), (pos, n_pos)))
        # Of the piece from (u, v) to (u + du, v + dv) the part with v >= min_tpr and u <= max_fpr.
        first = min(max((min_tpr - v) / dv, Fraction(0)), Fraction(1)) if dv else Fraction(int(v < min_tpr))
        last = min(max((max_fpr - u) / du, Fraction(0)), Fraction(1)) if du else Fraction(1)
        if last > first:
            area += (last - first) * du * ((v + first * dv) + (v + last * dv) - 2 * min_tpr) / 2
        u, v = u + du, v + dv
    return area / ((1 - min_tpr) * max_fpr)


@given(ROWS, ROWS, RATES, st.booleans())
def test_metrics_at_a_threshold_are_the_best_of_all_thresholds(pos, neg, share, weights):
    rows = (pos, neg) if weights else ([(x, 1) for x, _ in pos], [(x, 1) for x, _ in neg])
    counts, points = count(*rows), list(thresholds(*rows))
    # The share is that of a float, so that a point that just meets it is judged alike.
    floor = Fraction(float(share))
    recall = max((r for r, p in points if float(p) >= floor), default=Fraction(0))
    assert recall_at_precision(counts, float(share)) == pytest.approx(float(recall), abs=1e-15)
    precision = max(p for r, p in points if float(r) >= floor)
    assert precision_at_recall(counts, float(share)) == pytest.approx(float(precision), abs=1e-15)


@given(ROWS, ROWS, RATES, st.fractions(0, Fraction(998, 999), max_denominator=999))
def test_two_way_area_is_that_of_the_pieces_of_the_curve(pos, neg, max_fpr, min_tpr):
    two_way = two_way_partial_auc(count(pos, neg), float(min_tpr), float(max_fpr))
    assert two_way == pytest.approx(float(slow_two_way(pos, neg, min_tpr, max_fpr)), rel=1e-11, abs=1e-13)


@pytest.mark.parametrize(("min_tpr", "max_fpr"), REGIONS)
def test_placements_are_the_derivatives_by_the_rows_weights(min_tpr, max_fpr):
    random = np.random.default_rng(3)
    y = np.repeat([1, -1], [25, 40])
    scores = np.round(random.normal(size=65) + 0.8 * (y > 0), 1)
    counts = ScoreCounts.from_scores(y, scores)
    placed = placements_up_to(counts, max_fpr, min_tpr)
    at, step, region = np.searchsorted(counts.values, scores), 1e-6, (1 - min_tpr) * max_fpr
    for row in range(0, 65, 3):
        own, n = (placed[0], 25) if y[row] == 1 else (placed[1], 40)
        mean = own[at[y == y[row]]].mean()
        slopes = []
        for sign in (1, -1):
            weight = np.ones(65)
            weight[row] += sign * step
            slopes.append(two_way_partial_auc(ScoreCounts.from_scores(y, scores, weight), min_tpr, max_fpr) * region)
        expected = (own[at[row]] - mean) / n
        assert (slopes[0] - slopes[1]) / (2 * step) == pytest.approx(expected, abs=2e-8)


def test_perfect_reverse_and_wrong_input():
    y = np.repeat([1, -1], [100, 400])
    perfect, reverse = (ScoreCounts.from_scores(y, sign * y.astype(float)) for sign in (1, -1))
    assert two_way_partial_auc(perfect, 0.4, 0.1) == 1.0
    assert two_way_partial_auc(reverse, 0.4, 0.1) == 0.0
    bounds = of_counts.two_way_partial_auc_interval(perfect, 0.4, 0.1)
    assert (bounds.low, bounds.high, bounds.method) == (pytest.approx(0.05), 1.0, "exact-bound")
    with pytest.warns(IntervalWarning, match="beyond min_tpr"):
        of_counts.two_way_partial_auc_interval(perfect, 0.9, 0.1)
    # 60 of 120 positives are above all negatives, 10 above 95 % of them, and 50 below all of them.
    scores = np.concatenate(
        [np.arange(1000.0, 1060), np.linspace(950.1, 950.9, 10), np.arange(-50.0, 0), np.arange(1000.0)]
    )
    few = ScoreCounts.from_scores(np.repeat([1, -1], [120, 1000]), scores)
    with pytest.warns(IntervalWarning, match=r"10 of these positives rank within max_fpr \(at least 30\)"):
        of_counts.two_way_partial_auc_interval(few, 0.5, 0.1)
    with warnings.catch_warnings(action="error"):
        of_counts.two_way_partial_auc_interval(few, 0.3, 0.1)
    for wrong, said in (
        ((1.0, 0.1), "min_tpr must be .*; got 1.0"),
        ((-0.1, 0.1), "min_tpr"),
        ((0.5, 0.0), "max_fpr must be .*; got 0.0"),
    ):
        with pytest.raises(InputError, match=said):
            two_way_partial_auc(perfect, *wrong)
    for measure in (recall_at_precision, precision_at_recall):
        with pytest.raises(InputError, match="must be a number above 0 and at most 1"):
            measure(perfect, 0.0)


def test_names_hold_their_parameters():
    random = np.random.default_rng(0)
    y = np.repeat([1, -1], [50, 200])
    counts = ScoreCounts.from_scores(y, random.normal(size=250) + (y > 0))
    for name, given_, value in (
        ("recall_at_precision", {"min_precision": 0.4}, recall_at_precision(counts, 0.4)),
        ("precision_at_recall", {"min_recall": 0.4}, precision_at_recall(counts, 0.4)),
        ("precision_at_k", {"k": 20}, find_metric("recall_at_k@20").evaluate(counts, 0.0) * 50 / 20),
        ("two_way_partial_auc", {"min_tpr": 0.2, "max_fpr": 0.3}, two_way_partial_auc(counts, 0.2, 0.3)),
    ):
        measure = find_metric(name, **given_)
        assert measure.evaluate(counts) == find_metric(measure.name).evaluate(counts) == pytest.approx(value, rel=1e-15)
        assert (measure.sign, measure.needs) == (1, "ranking")
    for name, said in (
        ("two_way_partial_auc@0.5", "needs max_fpr, the largest false positive rate"),
        ("precision_at_k@0", "k must be a number above 0 and finite; got 0.0"),
        ("recall_at_precision@a", "a number for each of min_precision; got 'a'"),
        ("two_way_partial_auc@1,0.5", "min_tpr must be .*; got 1.0"),
        ("partial_auc@0.1,0.2", "a number for each of max_fpr; got '0.1,0.2'"),
        ("partial_auc@cost_column", "a number for each of max_fpr; got 'cost_column'"),
    ):
        with pytest.raises(InputError, match=said):
            find_metric(name)
    told = "k applies to metric recall_at_k and precision_at_k and group_ndcg and group_recall, not to 'auc'"
    with pytest.raises(InputError, match=told):
        find_metric("auc", k=3)
    with pytest.raises(InputError, match=r"'partial_auc@0\.1' has its parameters after @: leave max_fpr out"):
        find_metric("partial_auc@0.1", max_fpr=0.2)
    with pytest.raises(InputError, match="unknown parameter of a metric: 'foo'"):
        find_metric("auc", foo=3)


def meant(name, n_pos, n_neg, shift):
    """Return the metric of normal scores that are `shift` apart, with these shares of the classes."""
    share = n_pos / (n_pos + n_neg)

    def precision(cut):
        return share * norm.sf(cut - shift) / (share * norm.sf(cut - shift) + (1 - share) * norm.sf(cut))

    if name == "recall_at_precision":
        return norm.sf(brentq(lambda cut: precision(cut) - 0.3, -5, 8) - shift)
    return precision(norm.isf(0.6) + shift)


def two_way_area(shift, min_tpr, max_fpr):
    """Return the two-way partial AUC of normal scores that are `shift` apart."""
    start = norm.sf(norm.isf(min_tpr) + shift)
    return quad(lambda u: norm.sf(norm.isf(u) - shift) - min_tpr, start, max_fpr)[0] / ((1 - min_tpr) * max_fpr)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "at"),
    [
        ("recall_at_precision", {"min_precision": 0.3, "n_resamples": 200}),
        ("precision_at_recall", {"min_recall": 0.6, "n_resamples": 200}),
    ],
)
def test_intervals_cover(name, at):
    """Intervals of 95 % cover at least 91 % of 250 samples of 150 positives and 3000 negatives."""
    y, truth, covered = np.repeat([1, 0], [150, 3000]), meant(name, 150, 3000, 1.5), 0
    for seed in range(250):
        scores = np.random.default_rng(seed).normal(size=3150) + 1.5 * y
        with warnings.catch_warnings(action="error"):
            bounds = getattr(metrics, f"{name}_interval")(y, scores, **at)
        covered += bounds.low <= truth <= bounds.high
    assert covered / 250 > 0.91


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_pos", "min_tpr", "max_fpr", "within", "warned"),
    [(120, 0.5, 0.1, 10, (0.9, 1.0)), (300, 0.6, 0.2, 60, (0.0, 0.01)), (150, 0.5, 0.2, 50, (0.0, 0.01))],
)
def test_two_way_intervals_cover_or_warn(n_pos, min_tpr, max_fpr, within, warned):
    """Intervals of 95 % cover at least 92 % of 300 samples, or nearly all samples give a warning.

    `within`: the expected number of positives beyond `min_tpr` that rank within `max_fpr`.
    """
    shift = norm.isf(max_fpr) - norm.isf(min_tpr + within / n_pos)
    y, truth, covered, n_warned = np.repeat([1, 0], [n_pos, 2000]), two_way_area(shift, min_tpr, max_fpr), 0, 0
    for seed in range(300):
        scores = np.random.default_rng(seed).normal(size=len(y)) + shift * y
        with warnings.catch_warnings(record=True, action="always") as caught:
            bounds = metrics.two_way_partial_auc_interval(y, scores, min_tpr, max_fpr)
        n_warned += any("rank within max_fpr (at least 30)" in str(warning.message) for warning in caught)
        covered += bounds.low <= truth <= bounds.high
    assert warned[0] <= n_warned / 300 <= warned[1]
    assert (covered / 300 > 0.92) == (warned[1] < 0.5)

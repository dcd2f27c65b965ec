"""The partial AUC against all pairs, its variance against numerical derivatives, its intervals against simulated samples."""

import warnings
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
import sklearn.metrics as sk
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

from aucdist.errors import InputError
from aucdist.metrics import IntervalWarning, partial_roc_auc_difference, partial_roc_auc_interval, partial_roc_auc_score
from aucdist.metrics.compare import auc_test, partial_auc_test
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.measures import find_measure
from aucdist.metrics.partial import _bound, partial_auc, partial_auc_interval, placements_up_to, variance_of
from aucdist.metrics.ranking import auc, auc_interval, delong_variance

area, area_interval, area_test = (
    partial(function, standardized=False) for function in (partial_auc, partial_auc_interval, partial_auc_test)
)
SCORES = st.integers(-3, 3).map(float)
ROWS = st.lists(st.tuples(SCORES, st.integers(1, 5)), min_size=1, max_size=12)
RATES = st.fractions(Fraction(1, 50), 1).filter(lambda rate: rate.denominator < 1000)


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
        found = partial_roc_auc_score(y, scores, max_fpr=rate, sample_weight=given_weight)
        assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("n_pos", "weight"), [(20, 0.25), (80, 1.0), (200, 1.0)])
def test_of_few_positives_a_part_of_the_auc_counts(n_pos, weight):
    counts = ScoreCounts.from_scores(*sample(3, n_pos, 900, 1.0, ties=True))
    partial, of_all = partial_auc(counts, 0.05), auc(counts)
    assert partial < of_all
    found = find_measure("shrunk_partial_auc@0.05").of(counts, 0.0)
    assert found == pytest.approx(weight * partial + (1 - weight) * of_all, rel=1e-14)


def test_sums_over_many_rows_are_exact():
    """With 1e18 pairs float64 drops units; the counts of whole groups are added up as integers."""
    n = 10**9
    values, pos, neg = np.array([1.0, 2.0, 3.0]), np.array([1.0, 0.0, n - 1.0]), np.array([n / 2, n / 2, 0.0])
    counts = ScoreCounts(values, pos, neg, n, n)
    assert area(counts, 0.5) == float(Fraction((n - 1) * (n // 2), n * n))


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("rate", [0.0371, 0.271, 1.0])
def test_placements_are_the_derivatives_by_the_rows_weights(rate, ties):
    """The influence of a row: how the area changes when its class is mixed with a little more of it."""
    y, scores = sample(3, 12, 60, 1.0, ties)
    ones, step = np.ones(len(y)), 1e-6
    counts = ScoreCounts.from_scores(y, scores)
    at = np.searchsorted(counts.values, scores)
    for label, placement in zip((1, -1), placements_up_to(counts, rate), strict=True):
        rows = np.flatnonzero(y == label)
        expected = placement[at][rows] - placement[at][rows].mean()
        for i, influence in zip(rows, expected, strict=True):
            areas = []
            for sign in (1, -1):
                weight = ones.copy()
                weight[i] += sign * step
                areas.append(area(ScoreCounts.from_scores(y, scores, weight), rate))
            assert (areas[0] - areas[1]) / (2 * step) * len(rows) == pytest.approx(influence, abs=1e-6)


def test_up_to_a_rate_of_1_it_is_delongs():
    y, scores = sample(4, 70, 300, 1.0, ties=True)
    counts = ScoreCounts.from_scores(y, scores)
    assert area(counts, 1.0) == auc(counts)
    of_pos, of_neg = placements_up_to(counts, 1.0)
    variance = variance_of(of_pos, counts.pos) / 70 + variance_of(of_neg, counts.neg) / 300
    assert variance == pytest.approx(delong_variance(counts), rel=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IntervalWarning)
        found, other = area_interval(counts, 1.0), auc_interval(counts)
    assert (found.low, found.high) == pytest.approx((other.low, other.high), rel=1e-12)
    second = scores + np.random.default_rng(0).normal(size=len(y))
    one, two = area_test(y, scores, second, 1.0), auc_test(y, scores, second)
    assert (one.low, one.high, one.p_value) == pytest.approx((two.low, two.high, two.p_value), abs=0.01)


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
    found = area_interval(perfect, 0.1)
    assert (found.value, found.high, found.method) == (0.1, 0.1, "exact-bound")
    assert 0.9 * 0.1 < found.low < 0.1
    reverse = ScoreCounts.from_scores(y, -y.astype(float))
    found = area_interval(reverse, 0.1)
    assert (found.value, found.low, found.method) == (0.0, 0.0, "exact-bound")
    # The curve that jumps from 0 to 1 just where the 100th highest negative is unlikely to lie below.
    assert found.high == pytest.approx(0.1 - beta.ppf(0.05, 100, 901), rel=1e-9)
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
    low, _ = _bound(1.0, n_pos, n_neg, rate, 0.95)
    _, high = _bound(0.0, n_pos, n_neg, rate, 0.95)
    random, u = np.random.default_rng(0), (np.arange(200_000) + 0.5) / 200_000
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
        with pytest.raises(InputError, match=r"max_fpr is .* above 0 and at most 1"):
            area(counts, wrong)
    with pytest.raises(InputError, match="level"):
        area_interval(counts, 0.1, 0.2)
    with pytest.raises(InputError, match="weighted"):
        area_interval(ScoreCounts.from_scores(y, scores, np.full(len(y), 2.0)), 0.1)
    with pytest.raises(InputError, match="two rows"):
        area_test(np.array([1, -1, -1]), np.arange(3.0), np.arange(3.0), 0.5)
    with pytest.warns(IntervalWarning, match=r"60 positives and 3 negatives up to max_fpr"):
        area_interval(counts, 0.01)

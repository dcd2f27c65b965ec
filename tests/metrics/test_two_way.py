"""Recall at a precision, precision at a recall, and the two-way partial AUC against slow twins, with ties and weights."""

import itertools
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm

from aucdist import metrics
from aucdist.errors import InputError
from aucdist.metrics import IntervalWarning
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.decisions import precision_at_recall, recall_at_precision
from aucdist.metrics.measures import find_measure, measure_name
from aucdist.metrics.partial import (
    partial_auc,
    placements_up_to,
    two_way_partial_auc,
    two_way_partial_auc_interval,
)

ROWS = st.lists(st.tuples(st.integers(-3, 3).map(float), st.integers(1, 5)), min_size=1, max_size=10)
SHARES = st.fractions(Fraction(1, 50), 1, max_denominator=999)


def count(pos, neg, weights=True):
    y = np.repeat([1, -1], [len(pos), len(neg)])
    scores, weight = (np.array([row[k] for row in [*pos, *neg]], dtype=float) for k in (0, 1))
    return ScoreCounts.from_scores(y, scores, weight if weights else None)


def thresholds(pos, neg):
    """Yield recall and precision of every threshold that flags a row, in fractions."""
    for cut in {score for score, _ in [*pos, *neg]}:
        found, false = (sum(w for score, w in rows if score >= cut) for rows in (pos, neg))
        yield Fraction(found, sum(w for _, w in pos)), Fraction(found, found + false)


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


@given(ROWS, ROWS, SHARES, st.booleans())
def test_measures_at_a_threshold_are_the_best_of_all_thresholds(pos, neg, share, weights):
    rows = (pos, neg) if weights else ([(x, 1) for x, _ in pos], [(x, 1) for x, _ in neg])
    counts, points = count(*rows), list(thresholds(*rows))
    # The share is that of a float, so that a point that just meets it is judged alike.
    wanted = Fraction(float(share))
    recall = max((r for r, p in points if float(p) >= wanted), default=Fraction(0))
    assert recall_at_precision(counts, float(share)) == pytest.approx(float(recall), abs=1e-15)
    precision = max(p for r, p in points if float(r) >= wanted)
    assert precision_at_recall(counts, float(share)) == pytest.approx(float(precision), abs=1e-15)


@given(ROWS, ROWS, SHARES, st.fractions(Fraction(1, 50), Fraction(998, 999), max_denominator=999))
def test_two_way_area_is_that_of_the_pieces_of_the_curve(pos, neg, max_fpr, min_tpr):
    found = two_way_partial_auc(count(pos, neg), float(min_tpr), float(max_fpr))
    assert found == pytest.approx(float(slow_two_way(pos, neg, min_tpr, max_fpr)), rel=1e-11, abs=1e-13)


@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(1, 9))
def test_two_way_area_is_the_share_of_pairs_of_the_lowest_positives_and_the_highest_negatives(seed, hard, top):
    scores = np.random.default_rng(seed).permutation(30).astype(float)
    pos, neg = np.sort(scores[:10]), np.sort(scores[10:])[::-1]
    right = sum(x > y for x, y in itertools.product(pos[:hard], neg[: 2 * top]))
    counts = ScoreCounts.from_scores(np.repeat([1, -1], [10, 20]), scores)
    assert two_way_partial_auc(counts, 1 - hard / 10, top / 10) == pytest.approx(right / (hard * 2 * top), abs=1e-12)


@settings(max_examples=30)
@given(ROWS, ROWS, SHARES)
def test_without_a_least_rate_it_is_the_partial_auc(pos, neg, max_fpr):
    counts, rate = count(pos, neg), float(max_fpr)
    assert two_way_partial_auc(counts, 0.0, rate) == pytest.approx(
        partial_auc(counts, rate, standardized=False) / rate, rel=1e-12, abs=1e-14
    )


@pytest.mark.parametrize(("min_tpr", "max_fpr"), [(0.0, 0.13), (0.31, 0.47), (0.62, 0.83), (0.87, 1.0)])
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
    found = two_way_partial_auc_interval(perfect, 0.4, 0.1)
    assert (found.low, found.high, found.method) == (pytest.approx(0.05), 1.0, "exact-bound")
    with pytest.warns(IntervalWarning, match="beyond min_tpr"):
        two_way_partial_auc_interval(perfect, 0.9, 0.1)
    for wrong, said in (((1.0, 0.1), "min_tpr is 1.0"), ((-0.1, 0.1), "min_tpr"), ((0.5, 0.0), "max_fpr is 0.0")):
        with pytest.raises(InputError, match=said):
            two_way_partial_auc(perfect, *wrong)
    for measure in (recall_at_precision, precision_at_recall):
        with pytest.raises(InputError, match="above 0 and at most 1 is needed"):
            measure(perfect, 0.0)


def test_names_hold_their_parameters():
    random = np.random.default_rng(0)
    y = np.repeat([1, -1], [50, 200])
    counts = ScoreCounts.from_scores(y, random.normal(size=250) + (y > 0))
    for name, given_, value in (
        ("recall_at_precision", {"min_precision": 0.4}, recall_at_precision(counts, 0.4)),
        ("precision_at_recall", {"min_recall": 0.4}, precision_at_recall(counts, 0.4)),
        ("precision_at_k", {"k": 20}, find_measure("recall_at_k@20").of(counts, 0.0) * 50 / 20),
        ("two_way_partial_auc", {"min_tpr": 0.2, "max_fpr": 0.3}, two_way_partial_auc(counts, 0.2, 0.3)),
    ):
        found = find_measure(measure_name(name, **given_))
        assert found.of(counts, 0.0) == pytest.approx(value, rel=1e-15)
        assert (found.sign, found.needs) == (1, "ranking")
    for name, said in (
        ("two_way_partial_auc@0.5", "needs max_fpr, the largest false positive rate"),
        ("precision_at_k@0", "k is 0.0; a number above 0 and finite is needed"),
        ("recall_at_precision@a", "'a' is not min_precision"),
        ("two_way_partial_auc@1,0.5", "min_tpr is 1.0"),
        ("partial_auc@0.1,0.2", "'0.1,0.2' is not max_fpr"),
        ("partial_auc@cost_column", "'cost_column' is not max_fpr"),
    ):
        with pytest.raises(InputError, match=said):
            find_measure(name)
    with pytest.raises(InputError, match="k applies to metric recall_at_k and precision_at_k and ndcg, not to 'auc'"):
        measure_name("auc", k=3)


def meant(name, n_pos, n_neg, shift):
    """Return the measure of normal scores that are `shift` apart, with these shares of the classes."""
    share = n_pos / (n_pos + n_neg)

    def precision(cut):
        return share * norm.sf(cut - shift) / (share * norm.sf(cut - shift) + (1 - share) * norm.sf(cut))

    if name == "recall_at_precision":
        return norm.sf(brentq(lambda cut: precision(cut) - 0.3, -5, 8) - shift)
    if name == "precision_at_recall":
        return precision(norm.isf(0.6) + shift)
    start = norm.sf(norm.isf(0.5) + shift)
    return quad(lambda u: norm.sf(norm.isf(u) - shift) - 0.5, start, 0.2)[0] / (0.5 * 0.2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "at"),
    [
        ("recall_at_precision", {"min_precision": 0.3, "n_resamples": 200}),
        ("precision_at_recall", {"min_recall": 0.6, "n_resamples": 200}),
        ("two_way_partial_auc", {"min_tpr": 0.5, "max_fpr": 0.2}),
    ],
)
def test_intervals_cover(name, at):
    """Intervals of 95 % cover at least 91 % of 250 samples of 150 positives and 3000 negatives."""
    y, truth, covered = np.repeat([1, 0], [150, 3000]), meant(name, 150, 3000, 1.5), 0
    for seed in range(250):
        scores = np.random.default_rng(seed).normal(size=3150) + 1.5 * y
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = getattr(metrics, f"{name}_interval")(y, scores, **at)
        covered += found.low <= truth <= found.high
    assert covered / 250 > 0.91

"""Metrics of probabilities against scikit-learn, plain sums, and pooling by hand."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn import metrics as peer
from sklearn.isotonic import IsotonicRegression
from support import link_twins as twin

from aucdist import metrics
from aucdist.errors import InputError
from aucdist.metrics import probability as of_counts
from aucdist.metrics.counts import ScoreCounts

ROWS = st.lists(
    st.tuples(st.booleans(), st.integers(0, 8), st.integers(0, 3)), min_size=2, max_size=60
).filter(lambda rows: len({y for y, _, w in rows if w > 0}) == 2)  # fmt: skip


def unpacked(rows):
    y, p, weight = (np.array(column) for column in zip(*rows, strict=True))
    return y.astype(int), p / 8, weight.astype(float)


@given(ROWS)
def test_brier_and_log_loss_are_scikit_learns(rows):
    y, p, weight = unpacked(rows)
    assert metrics.brier_score_loss(y, p, sample_weight=weight) == pytest.approx(
        peer.brier_score_loss(y, p, sample_weight=weight)
    )
    kept = np.clip(p, 1e-15, 1 - 1e-15)
    exact = -np.average(np.where(y == 1, np.log(kept), np.log1p(-kept)), weights=weight)
    assert metrics.log_loss(y, p, sample_weight=weight) == pytest.approx(exact, rel=1e-12)
    if p.min() > 0 and p.max() < 1:
        assert exact == pytest.approx(peer.log_loss(y, p, sample_weight=weight))


def test_a_certainty_that_fails_costs_a_finite_loss():
    assert metrics.log_loss([0, 1], [1.0, 0.0]) == pytest.approx(-math.log(1e-15), rel=1e-3)
    assert metrics.log_loss([0, 1], [0.0, 1.0]) == pytest.approx(0.0, abs=1e-14)


@given(ROWS)
def test_hull_by_pooling_and_by_isotonic_regression(rows):
    y, p, weight = unpacked(rows)
    counts = ScoreCounts.from_scores(2 * y - 1, p, weight)
    hull = of_counts.hull_probabilities(counts)
    np.testing.assert_allclose(hull, twin.pools(counts.values, counts.pos, counts.neg), atol=1e-12)
    y, p, weight = (column[weight > 0] for column in (y, p, weight))
    fit = IsotonicRegression().fit(p, y, sample_weight=weight).predict(p)
    calibration = np.average((p - fit) ** 2, weights=weight)
    refinement = np.average((fit - y) ** 2, weights=weight)
    assert metrics.calibration_loss(y, p, sample_weight=weight) == pytest.approx(calibration, abs=1e-12)
    assert metrics.refinement_loss(y, p, sample_weight=weight) == pytest.approx(refinement, abs=1e-12)
    value = metrics.refinement_loss(y, p, sample_weight=weight)
    assert value <= metrics.brier_score_loss(y, p, sample_weight=weight) + 1e-12


def test_the_two_losses_make_up_the_brier_score_where_probabilities_are_constant_on_segments():
    y = np.array([0, 0, 1, 0, 1, 1, 0, 1])
    p = np.array([0.1, 0.1, 0.1, 0.4, 0.4, 0.4, 0.9, 0.9])  # observed 1/3, 2/3, 1/2: the last two are one segment
    p[3:] = 0.6
    parts = metrics.calibration_loss(y, p) + metrics.refinement_loss(y, p)
    assert metrics.brier_score_loss(y, p) == pytest.approx(parts, rel=1e-12)


@pytest.mark.parametrize("binning", ["quantile", "uniform"])
def test_reliability_bin_by_bin(binning):
    r = np.random.default_rng(0)
    p = r.random(2000) ** 3
    y = (r.random(2000) < p).astype(int)
    curve = metrics.reliability_curve(y, p, 7, binning=binning)
    edges = np.quantile(p, np.arange(1, 7) / 7) if binning == "quantile" else np.arange(1, 7) / 7
    bins = np.searchsorted(edges, p, side="right")
    for b in range(7):
        assert curve.weight[b] == pytest.approx((bins == b).sum(), abs=1)
        assert curve.predicted[b] == pytest.approx(p[bins == b].mean(), abs=1e-3)
        assert curve.observed[b] == pytest.approx(y[bins == b].mean(), abs=5e-3)
    assert curve.weight.sum() == 2000
    assert (curve.low <= curve.observed).all()
    assert (curve.observed <= curve.high).all()
    gaps = np.abs(curve.predicted - curve.observed)
    ece = metrics.expected_calibration_error(y, p, 7, binning=binning)
    assert ece == pytest.approx(curve.weight @ gaps / 2000, rel=1e-12)


def test_wilsons_interval():
    from statsmodels.stats.proportion import proportion_confint  # half a second, for all processes that collect tests

    curve = metrics.reliability_curve([1, 1, 1, 0, 0, 0, 0, 0, 0, 0], np.full(10, 0.3))
    assert (curve.low[0], curve.high[0]) == pytest.approx(proportion_confint(3, 10, method="wilson"), rel=1e-12)


def test_intervals_cover():
    r = np.random.default_rng(1)
    inside = []
    for _ in range(200):
        p = np.repeat([0.02, 0.1, 0.3, 0.6], 400)
        curve = metrics.reliability_curve((r.random(1600) < p).astype(int), p, 4)
        inside.append((curve.low <= curve.predicted) & (curve.predicted <= curve.high))
    assert 0.92 < np.mean(inside) < 0.98


def test_equal_probabilities_share_a_bin_and_weights_have_no_interval():
    curve = metrics.reliability_curve([0, 1] * 50, np.repeat([0.2, 0.7], 50), 10, sample_weight=np.full(100, 2.0))
    assert len(curve.weight) == 2
    assert np.isnan(curve.low).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.brier_score_loss([0, 1], [0.2, 1.2]), "there is 1.2: use predict_proba"),
        (lambda: metrics.log_loss([0, 1], [-0.2, 0.2]), "there is -0.2"),
        (lambda: metrics.brier_score_loss([0, 0], [0.2, 0.2]), "the labels must be of two classes"),
        (lambda: metrics.reliability_curve([0, 1], [0.2, 0.3], 0), "n_bins must be .*; got 0"),
        (lambda: metrics.reliability_curve([0, 1], [0.2, 0.3], binning="equal"), "quantile, uniform"),
        (lambda: metrics.reliability_curve([0, 1], [0.2, 0.3], level=1.0), "level must be .*; got 1.0"),
        (lambda: of_counts.refinement_loss(ScoreCounts.from_scores(np.array([]), np.array([]))), "no rows"),
    ],
)
def test_refused(call, message):
    with warnings.catch_warnings(), pytest.raises(InputError, match=message):
        call()


def test_venn_abers_is_isotonic_regression_with_the_row_added():
    random = np.random.default_rng(0)
    scores = random.integers(0, 12, 80) / 4
    y = (random.random(80) < 1 / (1 + np.exp(2 - scores))).astype(int)
    new = np.r_[-1.0, 0.1, 1.25, 1.26, 5.0]
    venn_abers = metrics.venn_abers_probabilities(y, scores, new)
    for label in (0, 1):
        for k, score in enumerate(new):
            fit = IsotonicRegression().fit(np.r_[scores, score], np.r_[y, label])
            assert venn_abers[label][k] == pytest.approx(fit.predict([score])[0])
    assert (venn_abers[0] < venn_abers[1]).all()


def test_one_of_both_venn_abers_probabilities_is_calibrated():
    """The mean of the one of the true label is the share of positives, within three standard errors of 3 000 rows."""
    random, chosen, labels = np.random.default_rng(1), [], []
    for _ in range(300):
        scores = random.normal(size=60)
        y = random.random(60) < 1 / (1 + np.exp(1 - 2 * scores))
        if 0 < y[:50].sum() < 50:
            lower, upper = metrics.venn_abers_probabilities(y[:50], scores[:50], scores[50:])
            chosen.append(np.where(y[50:], upper, lower))
            labels.append(y[50:])
    difference = np.concatenate(chosen) - np.concatenate(labels)
    assert abs(difference.mean()) < 3 * difference.std() / math.sqrt(difference.size)


def test_venn_abers_of_many_rows_is_that_of_cells(monkeypatch):
    random = np.random.default_rng(2)
    scores = random.normal(size=3000)
    y = random.random(3000) < 1 / (1 + np.exp(1 - 2 * scores))
    whole = metrics.venn_abers_probabilities(y, scores, [-1.0, 0.0, 1.0])
    monkeypatch.setattr(of_counts, "MAX_CELLS", 200)
    cells = metrics.venn_abers_probabilities(y, scores, [-1.0, 0.0, 1.0])
    assert np.abs(np.subtract(whole, cells)).max() < 0.05
    with pytest.raises(InputError, match="is not finite"):
        metrics.venn_abers_probabilities(y, scores, [math.nan])

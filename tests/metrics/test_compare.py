"""Paired DeLong, bootstrap, the corrected t-test and Holm, against slow twins and SciPy."""

import itertools

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from aucdist.errors import InputError
from aucdist.metrics import ScoreCounts, roc_auc_difference, roc_auc_score
from aucdist.metrics.compare import (
    corrected_t_test,
    delong_covariance,
    delong_test,
    holm,
    paired_bootstrap,
    placements,
    t_quantile,
)
from aucdist.metrics.intervals import bootstrap_interval
from aucdist.metrics.ranking import auc as auc_of
from aucdist.metrics.ranking import average_precision, delong_variance

pytestmark = pytest.mark.nojit


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
def test_placements_and_covariance_are_those_of_the_pairs(seed):
    y, first, second = sample(seed=seed)
    by_pos, by_neg, areas, covariance = twin(y, [first, second])
    for i, scores in enumerate((first, second)):
        of_pos, of_neg = placements(y, scores)
        np.testing.assert_allclose(of_pos, by_pos[i], atol=1e-15)
        np.testing.assert_allclose(of_neg, by_neg[i], atol=1e-15)
    found, spread = delong_covariance(y, [first, second])
    np.testing.assert_allclose(found, areas, atol=1e-14)
    np.testing.assert_allclose(spread, covariance, atol=1e-15, rtol=1e-12)
    counts = ScoreCounts.from_scores(y, first)
    assert spread[0, 0] == pytest.approx(delong_variance(counts), rel=1e-12)


def test_delong_test_is_a_normal_test_on_the_difference():
    y, first, second = sample(seed=3)
    _, _, areas, covariance = twin(y, [first, second])
    error = np.sqrt(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
    found = delong_test(y, first, second)
    z = (areas[0] - areas[1]) / error
    assert found.value == pytest.approx(areas[0] - areas[1])
    assert found.p_value == pytest.approx(2 * stats.norm.sf(abs(z)), rel=1e-9)
    assert (found.low, found.high) == pytest.approx(
        stats.norm.interval(0.95, areas[0] - areas[1], error), rel=1e-9
    )  # fmt: skip
    labels = np.where(y == 1, "rare", "common")
    assert roc_auc_difference(labels.tolist(), first.tolist(), second) == found
    turned = delong_test(y, second, first)
    assert (turned.value, turned.low) == pytest.approx((-found.value, -found.high))


@pytest.mark.parametrize(
    ("second", "value", "p_value"),
    [(lambda s, y: s, 0.0, 1.0), (lambda s, y: 2 * s + 1, 0.0, 1.0), (lambda s, y: -s, 1.0, 2 * 0.5**5)],
    ids=["the same", "same order", "reversed"],
)
def test_no_interval_of_a_difference_has_a_width_of_zero(second, value, p_value):
    y = np.repeat([1, -1], [5, 20])
    first = np.where(y == 1, 2.0, 1.0)
    found = delong_test(y, first, second(first, y))
    assert (found.value, found.p_value, found.method) == (value, p_value, "exact-bound")
    assert found.low <= found.value <= found.high
    assert found.high - found.low > 0.4


def test_delong_test_holds_its_level():
    r = np.random.default_rng(1)
    y = np.repeat([1, -1], [60, 200])
    signal = (y == 1) * 1.0
    p = [
        delong_test(y, signal + r.normal(size=260), signal + r.normal(size=260)).p_value for _ in range(400)
    ]  # fmt: skip
    assert 0.02 < np.mean(np.array(p) < 0.05) < 0.09


def test_bootstrap_interval_of_the_auc_is_about_delongs():
    y, scores, _ = sample(150, 300, ties=False)
    counts = ScoreCounts.from_scores(y, scores)
    found = bootstrap_interval(counts, auc_of, n_resamples=400, seed=1)
    low, high = found.low, found.high
    spread = 1.96 * np.sqrt(delong_variance(counts))
    assert low == pytest.approx(roc_auc_score(y, scores) - spread, abs=0.012)
    assert high == pytest.approx(roc_auc_score(y, scores) + spread, abs=0.012)
    assert bootstrap_interval(counts, auc_of, n_resamples=400, seed=1) == found


def test_bootstrap_of_a_perfect_ranking_is_not_a_point():
    counts = ScoreCounts.from_scores(np.repeat([1, -1], [9, 30]), np.repeat([1.0, 0.0], [9, 30]))
    found = bootstrap_interval(counts, average_precision, n_resamples=100)
    assert (found.low, found.high) == (pytest.approx(0.05 ** (1 / 9)), 1.0)


def resampled(y, scores, n_resamples, seed):
    """Yield the AUC of each model over the same resamples, each class drawn on its own, positives first."""
    random = np.random.default_rng(seed)
    classes = [np.flatnonzero(y == label) for label in (1, -1)]
    for _ in range(n_resamples):
        rows = np.concatenate([rows[random.integers(len(rows), size=len(rows))] for rows in classes])
        yield [roc_auc_score(y[rows], s[rows]) for s in scores]


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_paired_bootstrap_is_that_of_resampled_rows(level):
    y, first, second = sample(12, 15, seed=3)
    found = paired_bootstrap(y, first, second, auc_of, level, n_resamples=100, seed=7)
    slow = np.array([one - other for one, other in resampled(y, (first, second), 100, 7)])
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(slow, [(1 - level) / 2, (1 + level) / 2])))
    tail = min((slow <= 0).mean(), (slow >= 0).mean())
    assert found.p_value == pytest.approx(min(1.0, max(2 * tail, 0.01)))
    assert 0.01 < found.p_value < 1.0
    assert found.value == pytest.approx(roc_auc_score(y, first) - roc_auc_score(y, second))


def test_paired_bootstrap_sees_what_is_paired():
    y, first, second = sample(80, 200, seed=5)
    apart = paired_bootstrap(y, first, second, average_precision, n_resamples=300)
    assert apart.low < apart.value < apart.high
    near = paired_bootstrap(y, first, first + 1e-3 * second, average_precision, n_resamples=300)
    assert near.high - near.low < 0.2 * (apart.high - apart.low)
    same = paired_bootstrap(y, first, first * 2, average_precision, n_resamples=100)
    assert (same.value, same.p_value, same.method) == (0.0, 1.0, "exact-bound")


def test_corrected_t_test_is_that_of_nadeau_and_bengio():
    d = np.array([0.01, 0.03, -0.005, 0.02, 0.015])
    found = corrected_t_test(d, 0.25)
    t = d.mean() / np.sqrt((1 / 5 + 0.25) * d.var(ddof=1))
    assert found.p_value == pytest.approx(2 * stats.t.sf(abs(t), 4))
    assert corrected_t_test(d, 0.0).p_value == pytest.approx(stats.ttest_1samp(d, 0).pvalue)
    assert found.high - found.value == pytest.approx(stats.t.ppf(0.975, 4) * d.mean() / t)
    assert t_quantile(0.9, 7) == pytest.approx(stats.t.ppf(0.95, 7))


def test_equal_differences_leave_the_interval_open():
    found = corrected_t_test([0.1] * 5, 0.25)
    assert (found.low, found.high, found.p_value) == (-np.inf, np.inf, 2 * 0.5**5)
    assert corrected_t_test([0.0, 0.0], 0.25).p_value == 1.0


@pytest.mark.parametrize("p", [[0.01, 0.04, 0.03], [0.5, 0.001, 0.9, 0.02], [0.2], []])
def test_holm_is_statsmodels(p):
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1].tolist() if p else [])


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: placements(np.array([1, 1]), np.zeros(2)), "rows of both classes"),
        (lambda: placements(np.array([1, 0]), np.zeros(2)), "label at position 1"),
        (lambda: placements(np.array([1, -1]), np.array([0, np.inf])), "score at position 1"),
        (lambda: placements(np.array([1, -1]), np.zeros(3)), "3 scores, but labels"),
        (lambda: delong_covariance(np.array([1, -1, -1]), [np.arange(3.0)]), "two rows of each class"),
        (lambda: delong_test(np.array([1, -1] * 2), np.arange(4.0), np.zeros(4), level=1.0), "level is 1.0"),
        (lambda: corrected_t_test([0.1], 0.25), "at least two folds"),
        (lambda: corrected_t_test([0.1, np.nan], 0.25), "not finite"),
        (lambda: corrected_t_test([0.1, 0.2], -1), "test_over_train is -1"),
        (lambda: bootstrap_interval(ScoreCounts.from_scores(np.array([1, -1]), np.zeros(2)), auc_of, n_resamples=9), "9"),
        (
            lambda: bootstrap_interval(
                ScoreCounts.from_scores(np.array([1, -1]), np.zeros(2), np.array([1, 0.5])), auc_of
            ),
            "weighted rows",
        ),
    ],
)  # fmt: skip
def test_bad_input(call, said):
    with pytest.raises(InputError, match=said):
        call()

"""Measures by name, the precision-recall curve and its band."""

import numpy as np
import pytest
from sklearn import metrics as sk
from threadpoolctl import threadpool_limits

from aucdist import metrics
from aucdist.errors import InputError
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.measures import MEASURES, find_measure
from aucdist.metrics.ranking import pr_band, pr_curve


@pytest.fixture
def rows():
    r = np.random.default_rng(0)
    y = np.where(r.random(300) < 0.2, 1, -1)
    return y, np.round(1 / (1 + np.exp(-r.normal(size=300) - y)), 2)


def test_measures_are_scikit_learns(rows):
    y, p = rows
    counts = ScoreCounts.from_scores(y, p)
    decided = np.where(p > 0.4, 1, -1)
    tpr, tnr = sk.recall_score(y, decided), sk.recall_score(y, decided, pos_label=-1)
    expected = {
        "auc": sk.roc_auc_score(y, p),
        "average_precision": sk.average_precision_score(y, p),
        "g_mean": np.sqrt(tpr * tnr),
        "balanced_accuracy": sk.balanced_accuracy_score(y, decided),
        "brier_loss": sk.brier_score_loss(y, p),
        "log_loss": sk.log_loss(y, p),
    }
    for name, value in expected.items():
        assert MEASURES[name].of(counts, 0.4) == pytest.approx(value, abs=1e-12)
        assert MEASURES[name].sign == (-1 if "loss" in name else 1)
    with pytest.raises(InputError, match=r"unknown metric 'acu'. Did you mean 'auc'"):
        find_measure("acu")


def test_precision_recall_is_scikit_learns(rows):
    y, p = rows
    our_recall, our_precision = pr_curve(ScoreCounts.from_scores(y, p))
    precision, recall, _ = sk.precision_recall_curve(y, p)
    # Theirs ascends, and ends at a point that no threshold reaches.
    np.testing.assert_allclose(our_precision, precision[:-1][::-1])
    np.testing.assert_allclose(our_recall, recall[:-1][::-1])


def test_the_band_holds_the_curve_and_is_never_of_no_width(rows):
    y, p = rows
    counts = ScoreCounts.from_scores(y, p)
    _, precision = pr_curve(counts)
    recall_low, recall_high, precision_low, precision_high = pr_band(counts)
    assert (precision_low <= precision).all()
    assert (precision <= precision_high + 1e-12).all()
    assert (recall_low < recall_high).all()
    assert (precision_low < precision_high).all()
    with pytest.raises(InputError, match="weighted"):
        pr_band(ScoreCounts.from_scores(y, p, np.full(300, 0.5)))
    with pytest.raises(InputError, match="rows of both classes"):
        pr_curve(ScoreCounts.from_scores(np.array([-1]), np.zeros(1)))


def test_counts_of_other_scores(rows):
    y, p = rows
    counts = ScoreCounts.from_scores(y, p)
    found, expected = counts.mapped(lambda v: np.round(v, 1)), ScoreCounts.from_scores(y, np.round(p, 1))
    for name in ("values", "pos", "neg"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert (found.rows_pos, found.rows_neg, found.weighted) == (counts.rows_pos, counts.rows_neg, False)


IN_ONE_ORDER = [
    *(name for name, measure in MEASURES.items() if measure.needs != "groups"),
    *("partial_auc@0.2", "shrunk_partial_auc@0.2", "two_way_partial_auc@0.2,0.9", "precision_at_recall@0.5"),
]


@pytest.mark.parametrize("measure", IN_ONE_ORDER)
def test_a_measure_has_the_same_bits_with_any_number_of_blas_threads(many_rows, measure):
    """Products of long vectors are not BLAS's, which adds up the parts of two threads in another order than one."""
    counts = ScoreCounts.from_scores(*many_rows)
    assert_same_with_two_threads(lambda: find_measure(measure).of(counts, 0.4))


@pytest.mark.parametrize(
    "interval",
    [
        metrics.roc_auc_interval,
        metrics.average_precision_interval,
        lambda y, p: metrics.partial_roc_auc_interval(y, p, max_fpr=0.2),
        lambda y, p: metrics.roc_auc_difference(y, p, np.roll(p, 1)),
        lambda y, p: metrics.partial_roc_auc_difference(y, p, np.sqrt(np.roll(p, 1)), max_fpr=0.2),
    ],
)
def test_an_interval_has_the_same_bits_with_any_number_of_blas_threads(many_rows, interval):
    assert_same_with_two_threads(lambda: interval(*many_rows))


@pytest.fixture(scope="module")
def many_rows():
    r = np.random.default_rng(0)
    y = np.where(r.random(50_000) < 0.2, 1, -1)
    return y, 1 / (1 + np.exp(-r.normal(size=len(y)) - y))


def assert_same_with_two_threads(measured):
    """Check that one thread and two give the same number; 50,000 products are enough for BLAS to divide them."""
    results = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            results.append(measured())
    assert results[0] == results[1]

"""Metrics by name, the precision-recall curve and its band."""

import functools
import inspect
import math
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics as sk
from sklearn.exceptions import UndefinedMetricWarning
from support.forked_workers import start_program
from threadpoolctl import threadpool_limits

from aucdist import metrics
from aucdist.errors import InputError
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.named import NAMED_METRICS, find_metric
from aucdist.metrics.ranking import pr_band, pr_curve


@pytest.fixture
def rows():
    r = np.random.default_rng(0)
    y = np.where(r.random(300) < 0.2, 1, -1)
    return y, np.round(1 / (1 + np.exp(-r.normal(size=300) - y)), 2)


def test_metrics_are_scikit_learns(rows):
    y, p = rows
    counts = ScoreCounts.from_scores(y, p)
    decided = np.where(p > 0.4, 1, -1)
    tpr, tnr = sk.recall_score(y, decided), sk.recall_score(y, decided, pos_label=-1)
    expected = {
        "auc": sk.roc_auc_score(y, p), "average_precision": sk.average_precision_score(y, p), "g_mean": np.sqrt(tpr * tnr),
        "balanced_accuracy": sk.balanced_accuracy_score(y, decided), "brier_loss": sk.brier_score_loss(y, p),
        "log_loss": sk.log_loss(y, p),
    }  # fmt: skip
    for name, value in expected.items():
        assert NAMED_METRICS[name].evaluate(counts, 0.4) == pytest.approx(value, abs=1e-12)
        assert NAMED_METRICS[name].sign == (-1 if "loss" in name else 1)
    with pytest.raises(InputError, match=r"unknown metric 'acu'. Did you mean 'auc'"):
        find_metric("acu")


def test_the_page_about_searches_names_every_measure_and_what_it_needs():
    page = Path(__file__).parents[2].joinpath("docs/pages/how-to/cross-validation.md").read_text(encoding="utf-8")
    for metric in NAMED_METRICS.values():
        lines = [line for line in page.splitlines() if f"`{metric.kind}`" in line]
        needs = ("operating_point.cost",) if metric.needs == "costs" else metric.parameter_names
        assert any(all(f"`{name}`" in line for name in needs) for line in lines), metric.kind
        assert metric.title.format(**dict.fromkeys(metric.parameter_names, 1))


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
    with pytest.raises(InputError, match="one class only"):
        pr_curve(ScoreCounts.from_scores(np.array([-1]), np.zeros(1)))


def test_counts_of_other_scores(rows):
    y, p = rows
    counts = ScoreCounts.from_scores(y, p)
    mapped, expected = counts.mapped(lambda v: np.round(v, 1)), ScoreCounts.from_scores(y, np.round(p, 1))
    for name in ("values", "pos", "neg"):
        np.testing.assert_array_equal(getattr(mapped, name), getattr(expected, name))
    assert (mapped.rows_pos, mapped.rows_neg, mapped.weighted) == (counts.rows_pos, counts.rows_neg, False)


IN_ONE_ORDER = [
    *(name for name, metric in NAMED_METRICS.items() if metric.needs != "groups" and not metric.parameter_names),
    *("partial_auc@0.2", "shrunk_partial_auc@0.2", "two_way_partial_auc@0.2,0.9", "precision_at_recall@0.5"),
]


@pytest.mark.parametrize("measure", IN_ONE_ORDER)
def test_a_metric_has_the_same_bits_with_any_number_of_blas_threads(many_rows, measure):
    """Products of long vectors are not BLAS's, which adds up the parts of two threads in another order than one."""
    counts = ScoreCounts.from_scores(*many_rows)
    assert_same_with_two_threads(lambda: find_metric(measure).evaluate(counts, 0.4))


@pytest.mark.parametrize(
    "interval",
    [
        metrics.roc_auc_interval,
        metrics.average_precision_interval,
        lambda y, p: metrics.partial_roc_auc_interval(y, p, max_fpr=0.2),
        lambda y, p: metrics.roc_auc_difference(y, p, np.roll(p, 1)),
        lambda y, p: metrics.partial_roc_auc_difference(y, p, np.sqrt(np.roll(p, 1)), max_fpr=0.2),
        lambda y, p: metrics.average_precision_difference(y, p, np.roll(p, 1)),
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


# ---- the functions a user calls: any two labels, any array-like ------------------------------


Y, SCORES, WEIGHT = [0, 1, 1, 0, 1, 0], [0.1, 0.4, 0.35, 0.8, 0.8, 0.3], [1.0, 2.0, 0.5, 1.0, 0.0, 3.0]


@pytest.mark.parametrize(
    "labels", [(0, 1), (-1, 1), (1, 2), (False, True), (0.5, 2.5), ("no", "yes"), ("10", "9")], ids=str
)
@pytest.mark.parametrize("form", [list, tuple, np.array, pd.Series])
def test_the_larger_of_any_two_labels_is_positive(labels, form):
    y = form([labels[k] for k in Y])
    assert metrics.roc_auc_score(y, form(SCORES)) == pytest.approx(sk.roc_auc_score(Y, SCORES))
    assert metrics.average_precision_score(y, SCORES) == pytest.approx(sk.average_precision_score(Y, SCORES))
    predicted = form([labels[k] for k in [0, 1, 0, 1, 1, 0]])
    assert metrics.confusion_counts(y, predicted) == {"tp": 2, "fp": 1, "tn": 2, "fn": 1}
    assert metrics.g_mean_score(y, predicted) == pytest.approx(2 / 3)


def test_weights_mean_what_they_mean_in_scikit_learn():
    assert metrics.roc_auc_score(Y, SCORES, sample_weight=WEIGHT) == pytest.approx(
        sk.roc_auc_score(Y, SCORES, sample_weight=WEIGHT)
    )
    assert metrics.average_precision_score(Y, SCORES, sample_weight=WEIGHT) == pytest.approx(
        sk.average_precision_score(Y, SCORES, sample_weight=WEIGHT)
    )
    predicted = [0, 1, 0, 1, 1, 0]
    table = metrics.confusion_counts(Y, predicted, WEIGHT)
    (tn, fp), (fn, tp) = sk.confusion_matrix(Y, predicted, sample_weight=WEIGHT).tolist()
    assert table == {"tp": tp, "fp": fp, "tn": tn, "fn": fn}


def test_interval_gives_auc_bounds_and_level():
    random = np.random.default_rng(2)
    y = np.repeat(["a", "b"], 200)
    scores = random.normal(size=400) + (y == "b")
    bounds = metrics.roc_auc_interval(y, scores, level=0.9)
    assert bounds.value == pytest.approx(sk.roc_auc_score(y, scores))
    assert bounds.level == 0.9
    assert bounds.low < bounds.value < bounds.high
    with pytest.warns(metrics.IntervalWarning):
        metrics.roc_auc_interval(Y, SCORES)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1, 1, 1], "must be of two classes, and they are of 1: 1"),
        ([0, 1, 2], "they are of 3: 0, 1, 2"),
        ([], "they are of 0"),
        ([[0, 1], [1, 0]], "one dimension"),
        ([0.0, 1.0, np.nan], "position 2 .* missing"),
        ([0.0, np.nan, np.nan], "position 1 .* missing"),
        ([None, 1, 0], "position 0 .* missing"),
        (np.array(["a", "b", None], dtype=object), "position 2 .* missing"),
        (np.array(["a", 1, 0], dtype=object), "cannot be compared"),
        ([0, 1], r"inconsistent numbers of samples: \[2, 3\]"),
    ],
)
def test_bad_labels_are_named(y, message):
    with pytest.raises(InputError, match=message):
        metrics.average_precision_score(y, [0.1, 0.2, 0.3])


def test_what_is_masked_is_refused_and_not_taken_from_below_the_mask():
    y, scores = np.array([0, 0, 1, 1]), np.array([0.1, 0.2, 0.3, 0.9])
    mask = [False, False, False, True]
    with pytest.raises(InputError, match=r"the score at position 3 .* is not finite"):
        metrics.average_precision_score(y, np.ma.array(scores, mask=mask))
    with pytest.raises(InputError, match=r"the score at position 3 .* is not finite"):
        metrics.roc_auc_difference(y, scores, np.ma.array(scores, mask=mask))
    with pytest.raises(InputError, match=r"the score at position 3 .* is not finite"):
        metrics.average_precision_difference(y, scores, np.ma.array(scores, mask=mask))
    with pytest.raises(InputError, match=r"the value of y_true at position 3 .* is masked"):
        metrics.average_precision_score(np.ma.array(y, mask=mask), scores)
    with pytest.raises(InputError, match=r"the weight of row 3 \(counted from 0\) is nan"):
        metrics.average_precision_score(y, scores, sample_weight=np.ma.array([1, 1, 1, 1], mask=mask))
    assert (
        metrics.average_precision_score(np.ma.array(y), np.ma.array(scores))
        == metrics.average_precision_score(y, scores)
        == 1.0
    )


@pytest.mark.parametrize("predicted", [[0, 1, 2], [0, 1, "1"], [0, 1, np.nan]])
def test_a_predicted_label_that_is_not_in_the_truth_is_named(predicted):
    with pytest.raises(InputError, match=r"predicted label at position|y_pred at position 2 .* is missing"):
        metrics.confusion_counts([0, 1, 1], predicted)


def test_non_finite_scores_are_refused():
    with pytest.raises(InputError, match="score at position 1"):
        metrics.average_precision_score([0, 1], [0.0, np.inf])


def test_intervals_refuse_weights_but_not_masks():
    y, scores = ["no", "no", "yes", "yes"], [0.1, 0.4, 0.3, 0.9]
    with pytest.raises(InputError, match="no interval for weighted rows"):
        metrics.recall_at_fpr_interval(y, scores, max_fpr=0.5, sample_weight=[1, 2, 1, 1])
    bounds = metrics.recall_at_fpr_interval(y, scores, max_fpr=0.5, sample_weight=[1, 1, 0, 1], n_resamples=100)
    assert bounds.value == 1.0


@pytest.mark.parametrize("name", [n for n in metrics.__all__ if inspect.isfunction(getattr(metrics, n))])
def test_functions_take_labels_first_and_a_positive_label_that_must_be_there(name):
    parameters = inspect.signature(getattr(metrics, name)).parameters
    assert next(iter(parameters)) == (
        "first" if name == "group_metric_difference" else "y_true"
    )  # it takes two metrics
    if "pos_label" in parameters and set(parameters) <= {"y_true", "y_score", "y_proba", "sample_weight", "pos_label"}:
        with pytest.raises(InputError, match="got 'maybe'"):
            getattr(metrics, name)(["no", "yes"], [0.1, 0.2], pos_label="maybe")


def test_dask_collections_are_counted_chunk_by_chunk():
    da = pytest.importorskip("dask.array")
    rng = np.random.default_rng(5)
    y, scores, weight = rng.random(90) < 0.3, rng.normal(size=90).round(1), rng.integers(0, 2, 90)
    y[:30] = False
    chunks = ((30, 0, 25, 35),)
    lazy = [da.from_array(values, chunks=chunks) for values in (np.where(y, "yes", "no"), scores)]
    for measure in (
        metrics.roc_auc_score,
        metrics.average_precision_score,
        functools.partial(metrics.recall_at_k, k=9),
    ):
        assert measure(*lazy) == measure(y, scores)
    weights = da.from_array(weight, chunks=chunks)
    of_all = metrics.roc_auc_score(y, scores, sample_weight=weight)
    assert metrics.roc_auc_score(*lazy, sample_weight=weights) == of_all
    assert metrics.roc_auc_score(*lazy, pos_label="no") == metrics.roc_auc_score(~y, scores)
    with pytest.raises(InputError, match="must be dask collections too"):
        metrics.roc_auc_score(y, lazy[1])
    with pytest.raises(InputError, match="chunks: take them from one DataFrame"):
        metrics.roc_auc_score(lazy[0], da.from_array(scores, chunks=30))
    with pytest.raises(InputError, match="the labels must be of two classes"):
        metrics.recall_at_k(da.zeros(90, chunks=30), da.from_array(scores, chunks=30), k=3)


# ---- `roc_auc_score` against scikit-learn's own tests of its function for two classes, run with ours in its place ----


MODULES = ("test_ranking", "test_common")
CHOSEN = (
    "(test_ranking and (partial_roc_auc or non_binary_class or scale_invariance or roc_curve or at_thresholds) and not toydata)"
    " or (test_common and (roc_auc_score or partial_roc_auc) and not (multilabel or polars))"
)
"""Of scikit-learn's tests those that call the function for two classes; `toydata` and `multilabel` go on to several labels."""


RUN_PYTEST = "import pytest, sys; sys.exit(pytest.main(sys.argv[1:]))"


def test_scikit_learns_own_tests_pass(tmp_path, monkeypatch):
    """In a process of its own, because scikit-learn's tests need other settings of pytest than ours."""
    words = ["-p", "support.ours_in_sklearn", "-p", "no:cacheprovider", "-q", "-rA", "-c", os.devnull, "--rootdir", "."]
    words += ["-k", CHOSEN, "--pyargs", *(f"sklearn.metrics.tests.{module}" for module in MODULES)]
    monkeypatch.setenv("PYTEST_ADDOPTS", "")
    process = start_program(RUN_PYTEST, *words, cwd=tmp_path, output=tmp_path / "printed")
    process.join()
    printed = (tmp_path / "printed").read_text(encoding="utf-8")
    assert process.exitcode == 0, printed[-5000:]
    assert sum(line.startswith("PASSED") for line in printed.splitlines()) >= 25 + 13  # of the two modules


@pytest.mark.parametrize("max_fpr", [None, 0.3])
def test_one_class_warns_and_gives_nan(max_fpr):
    with pytest.warns(UndefinedMetricWarning, match="Only one class is present in y_true"):
        assert math.isnan(metrics.roc_auc_score([1, 1], [0.1, 0.2], max_fpr=max_fpr))
    with pytest.warns(UndefinedMetricWarning, match="Only one class"):
        assert math.isnan(metrics.roc_auc_score([0, 1], [0.1, 0.2], sample_weight=[1, 0], max_fpr=max_fpr))

"""The functions a user calls: any two labels, any array-like."""

import functools
import inspect

import numpy as np
import pandas as pd
import pytest
import sklearn.metrics as sk

from aucdist import metrics
from aucdist.errors import InputError
from aucdist.metrics import (
    IntervalWarning,
    average_precision_score,
    confusion_counts,
    g_mean_score,
    roc_auc_interval,
    roc_auc_score,
)

Y, SCORES, WEIGHT = [0, 1, 1, 0, 1, 0], [0.1, 0.4, 0.35, 0.8, 0.8, 0.3], [1.0, 2.0, 0.5, 1.0, 0.0, 3.0]


@pytest.mark.parametrize(
    "labels", [(0, 1), (-1, 1), (1, 2), (False, True), (0.5, 2.5), ("no", "yes"), ("10", "9")], ids=str
)
@pytest.mark.parametrize("form", [list, tuple, np.array, pd.Series])
def test_the_larger_of_any_two_labels_is_positive(labels, form):
    y = form([labels[k] for k in Y])
    assert roc_auc_score(y, form(SCORES)) == pytest.approx(sk.roc_auc_score(Y, SCORES))
    assert average_precision_score(y, SCORES) == pytest.approx(sk.average_precision_score(Y, SCORES))
    predicted = form([labels[k] for k in [0, 1, 0, 1, 1, 0]])
    assert confusion_counts(y, predicted) == {"tp": 2, "fp": 1, "tn": 2, "fn": 1}
    assert g_mean_score(y, predicted) == pytest.approx(2 / 3)


def test_weights_mean_what_they_mean_in_scikit_learn():
    assert roc_auc_score(Y, SCORES, sample_weight=WEIGHT) == pytest.approx(
        sk.roc_auc_score(Y, SCORES, sample_weight=WEIGHT)
    )
    assert average_precision_score(Y, SCORES, sample_weight=WEIGHT) == pytest.approx(
        sk.average_precision_score(Y, SCORES, sample_weight=WEIGHT)
    )
    predicted = [0, 1, 0, 1, 1, 0]
    table = confusion_counts(Y, predicted, WEIGHT)
    (tn, fp), (fn, tp) = sk.confusion_matrix(Y, predicted, sample_weight=WEIGHT).tolist()
    assert table == {"tp": tp, "fp": fp, "tn": tn, "fn": fn}


def test_interval_gives_auc_bounds_and_level():
    random = np.random.default_rng(2)
    y = np.repeat(["a", "b"], 200)
    scores = random.normal(size=400) + (y == "b")
    found = roc_auc_interval(y, scores, level=0.9)
    assert found.auc == pytest.approx(sk.roc_auc_score(y, scores))
    assert found.level == 0.9
    assert found.low < found.auc < found.high
    with pytest.warns(IntervalWarning):
        roc_auc_interval(Y, SCORES)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1, 1, 1], "two different labels; it holds 1: 1"),
        ([0, 1, 2], "it holds 3: 0, 1, 2"),
        ([], "it holds 0"),
        ([[0, 1], [1, 0]], "one dimension"),
        ([0.0, 1.0, np.nan], "position 2 .* missing"),
        ([0.0, np.nan, np.nan], "position 1 .* missing"),
        ([None, 1, 0], "cannot be compared"),
        ([0, 1], r"inconsistent numbers of samples: \[2, 3\]"),
    ],
)
def test_bad_labels_are_named(y, message):
    with pytest.raises(InputError, match=message):
        average_precision_score(y, [0.1, 0.2, 0.3])


@pytest.mark.parametrize("predicted", [[0, 1, 2], [0, 1, "1"], [0, 1, np.nan]])
def test_a_predicted_label_that_is_not_in_the_truth_is_named(predicted):
    with pytest.raises(InputError, match="predicted label at position"):
        confusion_counts([0, 1, 1], predicted)


def test_non_finite_scores_are_refused():
    with pytest.raises(InputError, match="score at position 1"):
        average_precision_score([0, 1], [0.0, np.inf])


def test_intervals_refuse_weights_but_not_masks():
    y, scores = ["no", "no", "yes", "yes"], [0.1, 0.4, 0.3, 0.9]
    with pytest.raises(InputError, match="no interval for weighted rows"):
        metrics.recall_at_fpr_interval(y, scores, max_fpr=0.5, sample_weight=[1, 2, 1, 1])
    found = metrics.recall_at_fpr_interval(y, scores, max_fpr=0.5, sample_weight=[1, 1, 0, 1], n_resamples=100)
    assert found.value == 1.0


@pytest.mark.parametrize("name", [n for n in metrics.__all__ if inspect.isfunction(getattr(metrics, n))])
def test_functions_take_labels_first_and_a_positive_label_that_must_be_there(name):
    parameters = inspect.signature(getattr(metrics, name)).parameters
    assert next(iter(parameters)) == "y_true"
    if "pos_label" in parameters and set(parameters) <= {"y_true", "y_score", "y_proba", "sample_weight", "pos_label"}:
        with pytest.raises(InputError, match="pos_label is 'maybe'"):
            getattr(metrics, name)(["no", "yes"], [0.1, 0.2], pos_label="maybe")


def test_dask_collections_are_counted_chunk_by_chunk():
    da = pytest.importorskip("dask.array")
    rng = np.random.default_rng(5)
    y, scores, weight = rng.random(90) < 0.3, rng.normal(size=90).round(1), rng.integers(0, 2, 90)
    y[:30] = False
    chunks = ((30, 0, 25, 35),)
    lazy = [da.from_array(values, chunks=chunks) for values in (np.where(y, "yes", "no"), scores)]
    for measure in (roc_auc_score, average_precision_score, functools.partial(metrics.recall_at_k, k=9)):
        assert measure(*lazy) == measure(y, scores)
    weights = da.from_array(weight, chunks=chunks)
    of_all = metrics.roc_auc_score(y, scores, sample_weight=weight)
    assert metrics.roc_auc_score(*lazy, sample_weight=weights) == of_all
    assert metrics.roc_auc_score(*lazy, pos_label="no") == metrics.roc_auc_score(~y, scores)
    with pytest.raises(InputError, match="must be dask collections too"):
        metrics.roc_auc_score(y, lazy[1])
    with pytest.raises(InputError, match="chunks: take them from one DataFrame"):
        metrics.roc_auc_score(lazy[0], da.from_array(scores, chunks=30))
    with pytest.raises(InputError, match="two different labels"):
        metrics.recall_at_k(da.zeros(90, chunks=30), da.from_array(scores, chunks=30), k=3)

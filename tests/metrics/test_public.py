"""A measure of counts becomes a function of labels and scores: its signature, its docstring and its errors."""

import inspect

import numpy as np
import pytest

from aucdist import metrics
from aucdist.errors import InputError
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.public import public_metric, with_bootstrap

Y, SCORES = ["no", "no", "yes", "yes"], [0.1, 0.4, 0.3, 0.9]


def share_above(counts, least, *, strict=True):
    """Return the share of the positives above a score.

    Parameters
    ----------
    counts : ScoreCounts
        Of any rows.
    least : float
        The score.
    strict : bool
        Whether rows at the score are left out.

    Examples
    --------
    >>> 1
    1
    """
    above = counts.values > least if strict else counts.values >= least
    return float(counts.pos[above].sum()) / counts.n_pos


SHARE = public_metric(share_above, "share_above")


def test_signature_and_docstring_are_those_of_the_measure_with_the_data_in_place_of_the_counts():
    assert list(inspect.signature(SHARE).parameters) == [
        "y_true",
        "y_score",
        "least",
        "strict",
        "sample_weight",
        "pos_label",
    ]
    text = inspect.getdoc(SHARE)
    assert "counts" not in text
    order = [
        "y_true : ",
        "y_score : ",
        "least : ",
        "strict : ",
        "sample_weight : ",
        "pos_label : ",
        "Raises",
        "Examples",
    ]
    assert sorted(order, key=text.index) == order
    assert (SHARE.__name__, SHARE.__module__) == ("share_above", "aucdist.metrics")


def test_values_are_those_of_the_counts():
    weight = [1.0, 2.0, 3.0, 1.0]
    counts = ScoreCounts.from_scores(np.array([-1, -1, 1, 1]), np.array(SCORES), np.array(weight))
    assert SHARE(Y, SCORES, 0.3, sample_weight=weight) == share_above(counts, 0.3) == 0.25
    assert SHARE(y_true=Y, y_score=SCORES, least=0.3, strict=False, sample_weight=weight) == 1.0
    assert SHARE(Y, SCORES, 0.3, pos_label="no") == 0.5


def test_wrong_calls_name_what_is_wrong():
    with pytest.raises(TypeError, match="missing a required argument: 'least'"):
        SHARE(Y, SCORES)
    with pytest.raises(TypeError, match="unexpected keyword argument 'lest'"):
        SHARE(Y, SCORES, 0.3, lest=0.3)
    with pytest.raises(InputError, match="pos_label is 'maybe'"):
        SHARE(Y, SCORES, 0.3, pos_label="maybe")


def test_the_bootstrap_adds_its_parameters_and_keeps_the_value():
    interval = with_bootstrap(share_above, "least=0.3", "")
    names = list(inspect.signature(interval).parameters)
    assert names == ["counts", "least", "strict", "level", "n_resamples", "seed"]
    lifted = public_metric(interval, "share_above_interval")
    found = lifted(Y, SCORES, least=0.3, strict=False, n_resamples=100, level=0.9, seed=3)
    assert (found.value, found.level, found.method) == (1.0, 0.9, "bootstrap")
    assert 0 < found.low < found.high == 1.0


def test_intervals_refuse_weights_but_not_masks():
    mask = [1, 1, 0, 1]
    with pytest.raises(InputError, match="no interval for weighted rows"):
        metrics.recall_at_fpr_interval(Y, SCORES, max_fpr=0.5, sample_weight=[1, 2, 1, 1])
    found = metrics.recall_at_fpr_interval(Y, SCORES, max_fpr=0.5, sample_weight=mask, n_resamples=100)
    assert found.value == 1.0


@pytest.mark.parametrize("name", [n for n in metrics.__all__ if inspect.isfunction(getattr(metrics, n))])
def test_every_function_takes_labels_first_and_says_so(name):
    function = getattr(metrics, name)
    parameters = list(inspect.signature(function).parameters)
    assert parameters[0] == "y_true"
    assert "counts :" not in inspect.getdoc(function)

"""What a newcomer meets first: errors that show the way, and plots."""

import copy
import pickle

import matplotlib as mpl
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from aucdist import HingeClassifier, LinkClassifier, PairwiseHingeClassifier
from aucdist.errors import InputError

X = np.random.default_rng(0).normal(size=(60, 3))
Y = np.where(X[:, 0] + np.random.default_rng(1).normal(size=60) > 0.3, "yes", "no")


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (PairwiseHingeClassifier(), "fit it with calibration='logit', or fit a LinkClassifier"),
        (HingeClassifier(), "this HingeClassifier gives no probabilities: fit a LinkClassifier"),
    ],
)
def test_an_estimator_without_probabilities_says_what_has_them(estimator, words):
    model = estimator.fit(X, Y)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match=words):
        _ = model.predict_proba
    with pytest.raises(AttributeError, match="has no attribute 'predict_probabilities'"):
        _ = model.predict_probabilities
    again = pickle.loads(pickle.dumps(copy.deepcopy(model)))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_an_estimator_with_probabilities_has_them():
    for model in (LinkClassifier(), PairwiseHingeClassifier(calibration="logit")):
        assert model.fit(X, Y).predict_proba(X).shape == (60, 2)


def test_more_and_fewer_classes():
    with pytest.raises(InputError, match=r"one class only \('no'\), but two"):
        PairwiseHingeClassifier().fit(X, np.full(60, "no"))
    with pytest.raises(InputError, match=r"one class only \(1\), but two"):
        PairwiseHingeClassifier().fit(X, np.ones(60, dtype=int))


def test_plots_of_a_fit():
    mpl.use("agg")
    from matplotlib import pyplot as plt

    model = PairwiseHingeClassifier(tol=1e-2).fit(X, Y)
    history = model.plot_history()
    assert history.line_.get_xdata().tolist() == model.history_["passes"].tolist()
    assert history.ax_.get_yscale() == "log"
    shown = model.plot_roc(X, Y, ax=history.figure_.add_subplot())
    assert shown.roc_auc > 0.5
    plt.close("all")


def test_plots_of_gains_and_shapes_and_importances():
    mpl.use("agg")
    from matplotlib import pyplot as plt

    rows = np.array([[3.0, 0], [2, 0], [1, 0], [1, 1], [0, 0], [0, 1]])
    y = np.array(["yes", "yes", "no", "yes", "no", "no"])
    line = PairwiseHingeClassifier(tol=1e-2, lam=1e-6).fit(rows[:, :1], y)
    (gains, _) = line.plot_gains(rows[:, :1], y).get_lines()
    assert gains.get_xdata().tolist() == pytest.approx([0, 1 / 6, 2 / 6, 4 / 6, 1])  # two rows are tied
    assert gains.get_ydata().tolist() == pytest.approx([0, 1 / 3, 2 / 3, 1, 1])
    with pytest.raises(InputError, match="no row of y is of the positive class 'yes'"):
        line.plot_gains(rows[:, :1], np.full(6, "no"))
    assert not hasattr(line, "feature_importances_")
    rows = np.random.default_rng(0).normal(size=(1000, 3))
    model = PairwiseHingeClassifier(features={"map": "bins", "pairs": 1}, tol=1e-2).fit(
        rows, rows[:, 0] * rows[:, 1] > 0
    )
    figure = model.plot_shapes()
    moving = [shape for shape in model.shapes().shapes if shape.spread > 0]
    assert len(figure.axes) == len(moving)
    (pair,) = model.shapes().pairs
    expected = np.zeros(3)
    for shape in model.shapes().shapes:
        expected[shape.feature] = shape.spread
    expected[list(pair.features)] += pair.spread / 2
    assert model.feature_importances_.tolist() == pytest.approx(expected)
    plt.close("all")


def test_a_callback_that_prints(capsys):
    PairwiseHingeClassifier(tol=1e-2).fit(X, Y, callback=print)
    assert "relative_gap" in capsys.readouterr().out


def test_the_index_in_a_pyarrow_table_is_no_feature():
    rows = pd.DataFrame({"a": [1.0, 2, 3, 4, 5, 6], "b": [0.0, 1, 0, 1, 0, 1]}, index=[5, 4, 3, 2, 1, 0])
    y = [0, 0, 1, 0, 1, 1]
    table = pa.Table.from_pandas(rows)
    assert "__index_level_0__" in table.column_names
    model = PairwiseHingeClassifier().fit(table, y)
    assert list(model.feature_names_in_) == ["a", "b"]
    assert np.array_equal(model.decision_function(table), model.decision_function(rows))
    assert "__index_level_0__" not in model.explain(table)

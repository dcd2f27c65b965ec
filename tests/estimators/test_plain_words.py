"""What a newcomer meets first: errors that show the way, and plots."""

import copy
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn import config_context
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import aucdist
from aucdist import HingeClassifier, LinkClassifier, PairwiseHingeClassifier
from aucdist.errors import InputError
from aucdist.estimators import display

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


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("reasons", "has no attribute 'reasons': use aucdist.model.as_model"),
        ("save", "has no attribute 'save': use aucdist.model.write_model"),
        ("feature_importances_", "this model has no shapes: fit it with features='bins'. The weights are coef_"),
    ],
)
def test_an_attribute_that_is_elsewhere_is_named(name, words):
    model = PairwiseHingeClassifier().fit(X, Y)
    with pytest.raises(AttributeError, match=words):
        getattr(model, name)
    several = PairwiseHingeClassifier().fit(X, np.arange(60) % 3)
    with pytest.raises(AttributeError, match=r"has a model for each class: see `estimators_\[k\].history_`"):
        _ = several.history_


def test_the_package_says_where_models_and_metrics_are():
    assert aucdist.model.load_model is not None
    with pytest.raises(AttributeError, match=r"no attribute 'load'. .* aucdist.model has load_model and write_model"):
        _ = aucdist.load


def test_more_and_fewer_classes():
    with pytest.raises(InputError, match=r"y holds one class only \('no'\); at least two"):
        PairwiseHingeClassifier().fit(X, np.full(60, "no"))
    with pytest.raises(InputError, match=r"y holds one class only \(1\); at least two"):
        PairwiseHingeClassifier().fit(X, np.ones(60, dtype=int))


@pytest.mark.parametrize(("labels", "kind"), [([True, False], "bool"), ([1, 0], "int")])
def test_labels_of_dtype_object_are_strings(labels, kind):
    y = np.array(labels * 30, dtype=object)
    with pytest.raises(InputError, match=f"Unknown label type: y is an object array of {kind}. Convert it"):
        PairwiseHingeClassifier().fit(X, y)
    assert PairwiseHingeClassifier().fit(X, np.array(["yes", "no"] * 30, dtype=object)).classes_.tolist() == [
        "no",
        "yes",
    ]


def pyplot():
    """Return matplotlib's, which takes half a second, for all processes that collect tests."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot

    return pyplot


def test_plots_of_gains_and_shapes_and_importances():
    plt = pyplot()
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
    model = PairwiseHingeClassifier(features={"map": "bins", "interactions": 1}, tol=1e-2).fit(
        rows, rows[:, 0] * rows[:, 1] > 0
    )
    figure = model.plot_shapes()
    moving = [shape for shape in model.shapes().shapes if shape.spread > 0]
    assert len(figure.axes) == len(moving)
    (pair,) = model.shapes().interactions
    expected = np.zeros(3)
    for shape in model.shapes().shapes:
        expected[shape.feature] = shape.spread
    expected[list(pair.features)] += pair.spread / 2
    assert model.feature_importances_.tolist() == pytest.approx(expected)
    plt.close("all")


def test_importances_of_columns_are_deviations_of_what_they_add():
    random = np.random.default_rng(0)
    rows = pd.DataFrame({"a": random.choice(["p", "q", "r"], 600, p=[0.1, 0.2, 0.7]), "b": random.normal(size=600)})
    y = rows["b"] + 2.0 * (rows["a"] == "q") + random.normal(size=600) > 1.0
    model = PairwiseHingeClassifier(features="bins").fit(rows, y)
    added = model.explain(rows).drop(columns="constant").std(ddof=0)
    assert pd.Series(model.feature_importances_, model.feature_names_in_).to_dict() == pytest.approx(added.to_dict())


@pytest.mark.parametrize(("classes", "warned"), [(("bad", "good"), True), (("ok", "other"), True), ((0, 1), False)])
def test_a_large_class_that_only_the_alphabet_makes_positive(classes, warned):
    y = np.array(classes)[(np.arange(len(Y)) % 10 > 0).astype(int)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        PairwiseHingeClassifier(tol=0.1).fit(X, y)
    said = [str(warning.message) for warning in caught if "alphabetical" in str(warning.message)]
    assert len(said) == warned
    if warned:
        assert f"{classes[1]!r} is the positive class" in said[0]
        assert f"it has 90% of the rows: if {classes[0]!r} is the class to find" in said[0]


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


# ---- what a notebook shows of a model ---------------------------------------------------------


@pytest.fixture(scope="module")
def rows():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return X.iloc[:, :4], y


def test_a_model_that_is_not_fitted_is_scikit_learns_diagram():
    shown = PairwiseHingeClassifier()._repr_html_()
    assert "PairwiseHingeClassifier" in shown
    assert "aucdist-model" not in shown


def test_a_fitted_one_says_what_is_proved_and_draws_its_shapes(rows):
    model = PairwiseHingeClassifier(features="bins", lam=1e-2).fit(*rows)
    shown = model._repr_html_()
    assert "% above the minimum" in shown
    assert f"{model.certificate_.primal:.5g}"[:5] in shown
    assert str(model.n_passes_) in shown
    assert shown.count("<svg role") == 4
    assert all(name in shown for name in rows[0].columns)
    asked = re.sub(r'xmlns(:\w+)?="[^"]*"', "", shown[shown.index('<div class="aucdist-model">') :])
    assert "://" not in asked
    again = model._repr_html_()
    ids = [set(re.findall(r' id="([^"]+)"', text[text.index("aucdist-model") :])) for text in (shown, again)]
    assert ids[0]
    assert not ids[0] & ids[1]  # both may stand on one page


@pytest.mark.parametrize("error", [AttributeError, InputError])
def test_an_error_while_shapes_are_drawn_is_not_hidden(rows, monkeypatch, error):
    model = PairwiseHingeClassifier(features="bins", lam=1e-2).fit(*rows)

    def broken(*_, **__):
        raise error("broken")

    monkeypatch.setattr("aucdist.report.sections.shape_text", broken)
    with pytest.raises(error, match="broken"):
        model._html_repr()


def test_several_classes_have_a_row_each(monkeypatch):
    X, y = load_iris(return_X_y=True)
    model = PairwiseHingeClassifier(lam=1e-2).fit(X, np.array(["a<b", "c", "d"])[y])
    shown = model._repr_html_()
    assert "a&lt;b" in shown
    assert shown.count("above the minimum") == 3
    monkeypatch.setattr(display, "MAX_CLASSES", 2)
    assert "and 1 more classes" in model._repr_html_()


def test_a_pipeline_and_other_models(rows):
    pipeline = make_pipeline(StandardScaler(), LinkClassifier(lam=1e-2)).fit(*rows)
    assert "LinkClassifier" in pipeline._repr_html_()
    assert "above the minimum" in pipeline[-1]._repr_html_()
    with config_context(display="text"):
        assert not hasattr(pipeline[-1], "_repr_html_")

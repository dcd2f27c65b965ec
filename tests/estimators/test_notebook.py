"""What a notebook shows of a model."""

import re

import numpy as np
import pytest
from sklearn import config_context
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from aucdist import LinkClassifier, PairwiseHingeClassifier
from aucdist.estimators import display


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


def test_several_classes_have_a_row_each(monkeypatch):
    X, y = load_iris(return_X_y=True)
    model = PairwiseHingeClassifier(lam=1e-2).fit(X, np.array(["a<b", "c", "d"])[y])
    shown = model._repr_html_()
    assert "a&lt;b" in shown
    assert shown.count("above the minimum") == 3
    monkeypatch.setattr(display, "MOST_CLASSES", 2)
    assert "and 1 more classes" in model._repr_html_()


def test_a_pipeline_and_other_models(rows):
    pipeline = make_pipeline(StandardScaler(), LinkClassifier(lam=1e-2)).fit(*rows)
    assert "LinkClassifier" in pipeline._repr_html_()
    assert "above the minimum" in pipeline[-1]._repr_html_()
    with config_context(display="text"):
        assert not hasattr(pipeline[-1], "_repr_html_")

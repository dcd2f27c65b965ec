"""scikit-learn's own search and joblib over Dask work with our estimators."""

import joblib
import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from aucdist import PairwiseHingeClassifier, PairwiseSquareClassifier
from aucdist.data.block import Block
from aucdist.engine.blocks import LocalBlocks
from aucdist.engine.dask import local_client
from aucdist.estimators import HingeClassifier
from aucdist.metrics.measures import MEASURES
from aucdist.search.fold import score_path

FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)


@pytest.fixture(scope="module")
def data():
    r = np.random.default_rng(0)
    y = r.random(240) < 0.25
    return r.normal(size=(240, 5)) + 0.7 * y[:, None], np.where(y, "rare", "usual")


@pytest.mark.parametrize(
    "model",
    [PairwiseHingeClassifier(), PairwiseSquareClassifier(), HingeClassifier(random_state=0)],
    ids=lambda model: type(model).__name__,
)
def test_grid_search_over_a_pipeline(model, data):
    X, y = data
    pipeline = make_pipeline(StandardScaler(), model)
    name = type(model).__name__.lower()
    grid = {f"{name}__lam": [1.0, 1e-2]}
    found = GridSearchCV(pipeline, grid, scoring="roc_auc", cv=FOLDS, error_score="raise").fit(X, y)
    assert found.best_score_ > 0.7
    assert found.best_estimator_.predict(X).dtype == y.dtype
    scores = cross_val_score(found.best_estimator_, X, y, cv=FOLDS, scoring="roc_auc", error_score="raise")
    assert scores.mean() == pytest.approx(found.best_score_)


def test_our_folds_score_as_scikit_learns_do(data):
    X, y = data
    lams = [1.0, 0.1, 1e-2]
    found = GridSearchCV(PairwiseHingeClassifier(tol=1e-6), {"lam": lams}, scoring="roc_auc", cv=FOLDS).fit(X, y)
    labels = np.where(y == found.classes_[1], 1, -1)
    for k, (train, test) in enumerate(FOLDS.split(X, y)):
        sides = [LocalBlocks([Block.of(X[rows], labels[rows])]) for rows in (train, test)]
        ours = score_path(PairwiseHingeClassifier(tol=1e-6), [{"lam": lam} for lam in lams], *sides, MEASURES["auc"])
        theirs = found.cv_results_[f"split{k}_test_score"]
        assert [result["value"] for result in ours] == pytest.approx(theirs, abs=2e-3)


@pytest.mark.slow
def test_joblib_over_dask(data):
    X, y = data
    search = GridSearchCV(PairwiseHingeClassifier(), {"lam": [1.0]}, scoring="roc_auc", cv=2, n_jobs=2)
    here = search.fit(X, y).cv_results_["mean_test_score"]
    with local_client(2, memory_limit="1GiB"), joblib.parallel_backend("dask"):
        there = search.fit(X, y).cv_results_["mean_test_score"]
    np.testing.assert_array_equal(here, there)

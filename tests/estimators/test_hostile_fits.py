"""Values, parameters and interruptions that a fit must answer with one sentence, and without a trace on the estimator."""

import itertools

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from aucdist import UnivariateRankingClassifier, lam_path
from aucdist.errors import InputError
from aucdist.estimators import ESTIMATORS, PairwiseHingeClassifier, PairwiseSquareClassifier
from aucdist.solvers.base import Round, solve

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(60, 3))
Y = (X[:, 0] + RANDOM.normal(size=60) > 0).astype(int)
OUT_OF_RANGE = "numbers of the fit became too large for float64 .* scale the features"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("size", [1e200, 1e308])
@pytest.mark.parametrize(("name", "solver"), [(name, s) for name, kind in ESTIMATORS.items() for s in kind.solvers])
def test_a_feature_beyond_all_measure(name: str, solver: str, size: float) -> None:
    rows = X.copy()
    rows[:, 1] *= size / 5
    try:
        fitted = ESTIMATORS[name](solver=solver, max_passes=20).fit(rows, Y)
    except InputError:
        return
    assert np.isfinite(fitted.coef_).all()


@pytest.mark.parametrize(
    ("model", "rows"),
    [
        (PairwiseHingeClassifier(), X * [1.0, 1e200, 1.0]),
        (PairwiseHingeClassifier(lam=1e-308), X),
        (PairwiseSquareClassifier(solver="svrg"), X * [1.0, 1e200, 1.0]),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
def test_overflows_have_a_sentence(model: PairwiseHingeClassifier, rows: np.ndarray) -> None:
    with pytest.raises(InputError, match=OUT_OF_RANGE):
        model.fit(rows, Y)
    with pytest.raises(NotFittedError):
        model.predict(rows)


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
def test_a_path_of_lam_ends_with_the_same_sentence() -> None:
    with pytest.raises(InputError, match=OUT_OF_RANGE):
        lam_path(PairwiseHingeClassifier(), X * [1.0, 1e200, 1.0], Y, lams=[1.0, 0.1])


def test_integers_are_regularisation_strengths_too() -> None:
    of_int, same = (PairwiseHingeClassifier(lam=lam).fit(X, Y).coef_ for lam in (10**11, 1e11))
    assert (of_int == same).all()


class Interrupted(PairwiseHingeClassifier):
    """Is interrupted when it has read its data."""

    def _fit(self, *args: object, **options: object) -> None:  # type: ignore[override]
        raise KeyboardInterrupt


def test_an_interrupted_fit_leaves_the_one_before() -> None:
    model = PairwiseHingeClassifier().fit(pd.DataFrame(X, columns=list("abc")), Y)
    before = {
        name: np.asarray(value, dtype=object).tolist() for name, value in vars(model).items() if name != "_records"
    }
    model.__class__ = Interrupted
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :2], np.where(Y, "yes", "no"))
    after = {
        name: np.asarray(value, dtype=object).tolist() for name, value in vars(model).items() if name != "_records"
    }
    assert after == before
    assert (model.n_features_in_, model.coef_.shape, model.classes_.tolist()) == (3, (1, 3), [0, 1])


TABLES = {
    "pandas": lambda: pd.DataFrame(X[:, [0, 0, 1]], columns=list("aab")),
    "pyarrow": lambda: pa.table([pa.array(X[:, j]) for j in (0, 0, 1)], names=list("aab")),
}


@pytest.mark.parametrize("kind", TABLES)
def test_two_columns_of_one_name(kind: str) -> None:
    with pytest.raises(InputError, match="two columns are called 'a'"):
        PairwiseHingeClassifier().fit(TABLES[kind](), Y)


# ---- steps that are too long ------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        PairwiseSquareClassifier().set_params(solver="tpauc", solver__eta=1e3),
        PairwiseSquareClassifier().set_params(solver="opauc", solver__eta=1e3),
        UnivariateRankingClassifier().set_params(solver="uni-squ", solver__eta=1e3),
        UnivariateRankingClassifier().set_params(solver="uni-exp", solver__eta=1e3),
    ],
    ids=lambda model: model.solver,
)
def test_steps_that_diverge_leave_the_weights_of_the_last_finite_round(model):
    r = np.random.default_rng(0)
    y = np.where(r.random(400) < 0.15, 1, -1)
    X = r.normal(size=(400, 5)) + 0.8 * (y[:, None] > 0)
    with pytest.warns(ConvergenceWarning, match="diverged.*eta. is too large"):
        model.fit(X, y)
    assert model.certificate_.status == "diverged"
    assert model.certificate_.primal == 1.0
    assert not model.coef_.any()
    assert len(model.history_) == 1


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_the_round_before_is_the_outcome(bad):
    rounds = [Round(np.full(2, k), primal, 0.0, k) for k, primal in enumerate((1.0, 0.9, bad, 0.1))]
    solution = solve(itertools.islice(rounds, 4), tol=0.0, max_passes=10)
    assert solution.certificate.status == "diverged"
    assert (solution.certificate.primal, solution.passes, solution.w[0]) == (0.9, 1, 1.0)
    assert solution.history["round"].tolist() == [1, 2]

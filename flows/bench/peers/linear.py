"""Ours, and the linear peers that are estimators of scikit-learn or made like one."""

# The peers are optional, and some have no types.
# mypy: disable-error-code="import-not-found,import-untyped"

from typing import Any

import numpy as np
import scipy.sparse as sp

from flows.bench.peers.system import OURS, Fitted, System, by_weights

DOUBLING = tuple(2**k for k in range(10))
WIDEST = 5000


def hinge_pairs(X: Any, y: np.ndarray, lam: float, budget: int, threads: int) -> Fitted:
    """Fit our estimator of the pairwise hinge by cutting planes."""
    from aucdist import PairwiseHingeClassifier

    model = PairwiseHingeClassifier(lam=lam, max_passes=budget).fit(X, y)
    return _certified(model)


def square_pairs(X: Any, y: np.ndarray, lam: float, budget: int, threads: int) -> Fitted:
    """Fit our estimator of the pairwise square: in closed form, or by SVRG where there are too many features for it."""
    from aucdist import PairwiseSquareClassifier

    solver = "exact" if X.shape[1] <= WIDEST else "svrg"
    model = PairwiseSquareClassifier(lam=lam, solver=solver, max_passes=budget, random_state=0).fit(X, y)
    return _certified(model)


def _certified(model: Any) -> Fitted:
    c = model.certificate_
    return by_weights(model.coef_, c.relative_gap, c.status != "max-passes")


def ramp_pairs(X: Any, y: np.ndarray, lam: float, budget: int, threads: int) -> Fitted:
    """Fit our estimator of the pairwise ramp by L-BFGS; no lower bound of it is known, so its gap is 1."""
    from aucdist import PairwiseRampClassifier

    model = PairwiseRampClassifier(lam=lam, max_passes=budget).fit(X, y)
    return _certified(model)


def logit(X: Any, y: np.ndarray, lam: float, budget: int, threads: int) -> Fitted:
    """Fit our estimator of the logistic loss by Newton's method."""
    from aucdist import LinkClassifier

    model = LinkClassifier(link="logit", lam=lam, max_passes=budget).fit(X, y)
    return _certified(model)


def _logistic(solver: str, X: Any, y: np.ndarray, lam: float, budget: int) -> Fitted:
    from sklearn.linear_model import LogisticRegression

    C = 1.0 / (lam * len(y))
    model = LogisticRegression(C=C, solver=solver, max_iter=budget, random_state=0).fit(int32(X), y)
    return by_weights(model.coef_)


def lbfgs(X: Any, y: np.ndarray, lam: float, budget: int, threads: int) -> Fitted:
    """Fit scikit-learn's LogisticRegression by its default solver."""
    return _logistic("lbfgs", X, y, lam, budget)


def newton_cholesky(X: Any, y: np.ndarray, lam: float, budget: int, threads: int) -> Fitted:
    """Fit scikit-learn's LogisticRegression by the solver it recommends for many more rows than features."""
    return _logistic("newton-cholesky", X, y, lam, budget)


def liblinear(X: Any, y: np.ndarray, lam: float, budget: int, threads: int) -> Fitted:
    """Fit scikit-learn's LogisticRegression by the liblinear that comes with it."""
    return _logistic("liblinear", X, y, lam, budget)


def saga(X: Any, y: np.ndarray, lam: float, budget: int, threads: int) -> Fitted:
    """Fit scikit-learn's LogisticRegression by the solver it recommends for large data."""
    return _logistic("saga", X, y, lam, budget)


def linear_svc(X: Any, y: np.ndarray, lam: float, budget: int, threads: int) -> Fitted:
    """Fit scikit-learn's LinearSVC: the squared hinge, primal or dual as it sees fit."""
    from sklearn.svm import LinearSVC

    model = LinearSVC(C=0.5 / (lam * len(y)), max_iter=budget, random_state=0).fit(int32(X), y)
    return by_weights(model.coef_)


def sgd(X: Any, y: np.ndarray, lam: float, budget: int, threads: int) -> Fitted:
    """Fit scikit-learn's SGDClassifier with averaged weights, as its guide advises."""
    from sklearn.linear_model import SGDClassifier

    model = SGDClassifier("log_loss", alpha=lam, max_iter=budget, tol=None, average=True, random_state=0)
    return by_weights(model.fit(X, y).coef_)


def liblinear_official(X: Any, y: np.ndarray, lam: float, budget: int, threads: int) -> Fitted:
    """Train liblinear's own package: logistic, primal, to a tolerance of a tenth to the power of the budget."""
    from liblinear.liblinearutil import train

    model = train(
        y.astype(float), _float64(X), f"-s 0 -c {1.0 / (lam * len(y)):.17g} -e {10.0 ** (1 - budget)} -B 1 -q"
    )
    sign = 1.0 if model.get_labels()[0] == 1 else -1.0  # weights belong to the label that it met first
    return by_weights(sign * np.array(model.get_decfun()[0]))


def with_ones(X: Any, y: np.ndarray) -> Any:
    """Append the column that stands for an intercept, which skglm's L-BFGS does not know."""
    ones = np.ones((len(y), 1), dtype=X.dtype)
    return sp.hstack([X, ones], format="csc") if sp.issparse(X) else np.hstack([X, ones])


def skglm(X: Any, y: np.ndarray, lam: float, budget: int, threads: int) -> Fitted:
    """Solve skglm's logistic datafit with an L2 penalty by its L-BFGS, the solver for smooth penalties."""
    from skglm.datafits import Logistic
    from skglm.penalties import L2
    from skglm.solvers import LBFGS
    from skglm.utils.jit_compilation import compiled_clone

    solver = LBFGS(max_iter=budget)
    w, _, _ = solver.solve(X, y.astype(X.dtype), compiled_clone(Logistic()), compiled_clone(L2(lam)))
    return by_weights(w[:-1])


def dask_ml(X: Any, y: np.ndarray, lam: float, budget: int, threads: int) -> Fitted:
    """Fit dask-ml's LogisticRegression by L-BFGS on a chunk for each thread."""
    import dask
    import dask.array as da
    from dask_ml.linear_model import LogisticRegression

    rows = -(-len(y) // threads)
    model = LogisticRegression(solver="lbfgs", C=1.0 / (lam * len(y)), max_iter=budget)
    with dask.config.set(scheduler="threads", num_workers=threads):
        model.fit(da.from_array(X, (rows, X.shape[1])), da.from_array((y > 0).astype(float), rows))
    return by_weights(model.coef_)


def undersampled(X: Any, y: np.ndarray, lam: float, budget: int, threads: int) -> Fitted:
    """Fit imbalanced-learn's pipeline of random undersampling and logistic regression."""
    from imblearn.under_sampling import RandomUnderSampler

    return _resampled(RandomUnderSampler(random_state=0), X, y, lam, budget)


def oversampled(X: Any, y: np.ndarray, lam: float, budget: int, threads: int) -> Fitted:
    """Fit imbalanced-learn's pipeline of SMOTE and logistic regression."""
    from imblearn.over_sampling import SMOTE

    return _resampled(SMOTE(random_state=0), X, y, lam, budget)


def _resampled(sampler: Any, X: Any, y: np.ndarray, lam: float, budget: int) -> Fitted:
    from imblearn.pipeline import make_pipeline
    from sklearn.linear_model import LogisticRegression

    model = make_pipeline(sampler, LogisticRegression(C=1.0 / (lam * len(y)), max_iter=budget)).fit(X, y)
    return by_weights(model[-1].coef_)


def survival(X: Any, y: np.ndarray, lam: float, budget: int, threads: int) -> Fitted:
    """Fit scikit-survival's ranking machine, which is that of the squared hinge over pairs.

    Rows of the smaller class die at 1, the others are alive at 2; so pairs of both classes compare, and, because it breaks
    ties of time at random, some pairs within the smaller class.
    """
    from sksurv.svm import FastSurvivalSVM
    from sksurv.util import Surv

    positive = y > 0
    few = positive if positive.sum() <= len(y) / 2 else ~positive
    alpha = 1.0 / (lam * few.sum() * (~few).sum())
    model = FastSurvivalSVM(alpha=alpha, rank_ratio=1.0, max_iter=budget, random_state=0)
    model.fit(X, Surv.from_arrays(few, np.where(few, 1.0, 2.0)))
    # Its weights rank by time: those who die first, the smaller class, come lowest.
    return by_weights(-model.coef_ if few is positive else model.coef_)


def int32(X: Any) -> Any:
    """Return X with the indices that liblinear takes."""
    if sp.issparse(X):
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X


def _float64(X: Any) -> Any:
    return X.astype(np.float64, copy=False)


SYSTEMS = (
    System("aucdist pairwise hinge", "aucdist", hinge_pairs, DOUBLING, 512, OURS),
    System("aucdist pairwise square", "aucdist", square_pairs, DOUBLING, 512, OURS),
    System("aucdist pairwise ramp", "aucdist", ramp_pairs, DOUBLING, 512, OURS),
    System("aucdist logit", "aucdist", logit, DOUBLING, 512, OURS),
    System("LogisticRegression lbfgs", "sklearn", lbfgs, DOUBLING, 128),
    System("LogisticRegression newton-cholesky", "sklearn", newton_cholesky, DOUBLING[:7], 64, widest=WIDEST),
    System("LogisticRegression liblinear", "sklearn", liblinear, DOUBLING, 128),
    System("LogisticRegression saga", "sklearn", saga, DOUBLING, 128),
    System("LinearSVC", "sklearn", linear_svc, DOUBLING, 512),
    System("SGDClassifier", "sklearn", sgd, DOUBLING[:8], 8),
    System("liblinear-official", "liblinear", liblinear_official, (1, 2, 3, 4, 5, 6), 3),
    System("skglm", "skglm", skglm, DOUBLING, 128, form=with_ones),
    System("dask-ml", "dask_ml", dask_ml, DOUBLING, 128, dense=True),
    System("RandomUnderSampler, logistic", "imblearn", undersampled, DOUBLING, 128),
    System("SMOTE, logistic", "imblearn", oversampled, DOUBLING, 128),
    System("FastSurvivalSVM", "sksurv", survival, DOUBLING[:8], 32, dense=True),
)

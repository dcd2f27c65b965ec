"""Our systems, and the linear peers with an interface like scikit-learn's.

With several threads ours fit blocks of rows, one for each thread, if a block gets `BLOCK_ROWS` rows at least. A user who wants
two threads has to make the blocks: it is a part of the fit and is timed.
"""

# The peers are optional, and some have no type annotations.
# mypy: disable-error-code="import-not-found,import-untyped"

from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.peers.system import OURS, FittedModel, System, linear_model

DOUBLING = tuple(2**k for k in range(10))
MAX_GRAM_FEATURES = 5000

BLOCK_ROWS = 10_000
"""Rows that a thread gets at least; with fewer for each thread one thread reads the rows as they are."""


def _fit_ours(model: Any, X: Any, y: np.ndarray, threads: int) -> FittedModel:
    """Fit an estimator of ours: with several threads on blocks, if there are enough rows, else on the rows as they are."""
    from aucdist.engine.blocks import LocalBlocks

    n_blocks = min(threads, len(y) // BLOCK_ROWS)
    if n_blocks > 1:
        model.fit(LocalBlocks.of(X, y, n_blocks=n_blocks, n_jobs=threads))
    else:
        model.fit(X, y)
    c = model.certificate_
    return linear_model(model.coef_, c.relative_gap, c.status != "max-passes")


def hinge_pairs(X: Any, y: np.ndarray, lam: float, budget: int, threads: int) -> FittedModel:
    """Fit our estimator of the pairwise hinge by cutting planes."""
    from aucdist import PairwiseHingeClassifier

    return _fit_ours(PairwiseHingeClassifier(lam=lam, max_passes=budget), X, y, threads)


def square_pairs(X: Any, y: np.ndarray, lam: float, budget: int, threads: int) -> FittedModel:
    """Fit our estimator of the pairwise square: in closed form, or by SVRG with too many features for that."""
    from aucdist import PairwiseSquareClassifier

    solver = "exact" if X.shape[1] <= MAX_GRAM_FEATURES else "svrg"
    model = PairwiseSquareClassifier(lam=lam, solver=solver, max_passes=budget, random_state=0)
    return _fit_ours(model, X, y, threads)


def ramp_pairs(X: Any, y: np.ndarray, lam: float, budget: int, threads: int) -> FittedModel:
    """Fit our estimator of the pairwise ramp by L-BFGS; no lower bound of it is known, so its gap is 1."""
    from aucdist import PairwiseRampClassifier

    return _fit_ours(PairwiseRampClassifier(lam=lam, max_passes=budget), X, y, threads)


def logit(X: Any, y: np.ndarray, lam: float, budget: int, threads: int) -> FittedModel:
    """Fit our estimator of the logistic loss by Newton's method."""
    from aucdist import LinkClassifier

    return _fit_ours(LinkClassifier(link="logit", lam=lam, max_passes=budget), X, y, threads)


def _logistic(solver: str, X: Any, y: np.ndarray, lam: float, budget: int) -> FittedModel:
    from sklearn.linear_model import LogisticRegression

    C = 1.0 / (lam * len(y))
    model = LogisticRegression(C=C, solver=solver, max_iter=budget, random_state=0).fit(with_int32_indices(X), y)
    return linear_model(model.coef_)


def lbfgs(X: Any, y: np.ndarray, lam: float, budget: int, threads: int) -> FittedModel:
    """Fit scikit-learn's LogisticRegression by its default solver."""
    return _logistic("lbfgs", X, y, lam, budget)


def newton_cholesky(X: Any, y: np.ndarray, lam: float, budget: int, threads: int) -> FittedModel:
    """Fit scikit-learn's LogisticRegression by the solver it recommends for many more rows than features."""
    return _logistic("newton-cholesky", X, y, lam, budget)


def liblinear(X: Any, y: np.ndarray, lam: float, budget: int, threads: int) -> FittedModel:
    """Fit scikit-learn's LogisticRegression by the liblinear that comes with it."""
    return _logistic("liblinear", X, y, lam, budget)


def saga(X: Any, y: np.ndarray, lam: float, budget: int, threads: int) -> FittedModel:
    """Fit scikit-learn's LogisticRegression by the solver it recommends for large data."""
    return _logistic("saga", X, y, lam, budget)


def linear_svc(X: Any, y: np.ndarray, lam: float, budget: int, threads: int) -> FittedModel:
    """Fit scikit-learn's LinearSVC: the squared hinge, with its automatic choice of primal or dual."""
    from sklearn.svm import LinearSVC

    model = LinearSVC(C=0.5 / (lam * len(y)), max_iter=budget, random_state=0).fit(with_int32_indices(X), y)
    return linear_model(model.coef_)


def sgd(X: Any, y: np.ndarray, lam: float, budget: int, threads: int) -> FittedModel:
    """Fit scikit-learn's SGDClassifier with averaged weights, as its user guide recommends."""
    from sklearn.linear_model import SGDClassifier

    model = SGDClassifier("log_loss", alpha=lam, max_iter=budget, tol=None, average=True, random_state=0)
    return linear_model(model.fit(X, y).coef_)


def liblinear_official(X: Any, y: np.ndarray, lam: float, budget: int, threads: int) -> FittedModel:
    """Train liblinear's own package: logistic, primal, to a tolerance of a tenth to the power of the budget."""
    from liblinear.liblinearutil import train

    model = train(
        y.astype(float), _float64(X), f"-s 0 -c {1.0 / (lam * len(y)):.17g} -e {10.0 ** (1 - budget)} -B 1 -q"
    )
    sign = 1.0 if model.get_labels()[0] == 1 else -1.0  # the weights belong to the label of the first row
    return linear_model(sign * np.array(model.get_decfun()[0]))


def with_ones(X: Any, y: np.ndarray) -> Any:
    """Append a column of ones, because skglm's L-BFGS has no intercept; dense float32 rows, which it refuses, as float64."""
    if not sp.issparse(X):
        X = _float64(X)
    ones = np.ones((len(y), 1), dtype=X.dtype)
    return sp.hstack([X, ones], format="csc") if sp.issparse(X) else np.hstack([X, ones])


def skglm(X: Any, y: np.ndarray, lam: float, budget: int, threads: int) -> FittedModel:
    """Solve skglm's logistic datafit with an L2 penalty by its L-BFGS, the solver for smooth penalties."""
    from skglm.datafits import Logistic
    from skglm.penalties import L2
    from skglm.solvers import LBFGS
    from skglm.utils.jit_compilation import compiled_clone

    # Compiled here, once in a process; skglm 0.5 would look up the compiled classes in every fit, which takes 40 ms.
    solver = LBFGS(max_iter=budget)
    w, _, _ = solver.solve(X, y.astype(X.dtype), compiled_clone(Logistic()), compiled_clone(L2(lam)))
    return linear_model(w[:-1])


def dask_ml(X: Any, y: np.ndarray, lam: float, budget: int, threads: int) -> FittedModel:
    """Fit dask-ml's LogisticRegression by L-BFGS on a chunk for each thread."""
    import dask
    import dask.array as da
    from dask_ml.linear_model import LogisticRegression

    rows = -(-len(y) // threads)
    model = LogisticRegression(solver="lbfgs", C=1.0 / (lam * len(y)), max_iter=budget)
    with dask.config.set(scheduler="threads", num_workers=threads):
        model.fit(da.from_array(X, (rows, X.shape[1])), da.from_array((y > 0).astype(float), rows))
    return linear_model(model.coef_)


def undersampled(X: Any, y: np.ndarray, lam: float, budget: int, threads: int) -> FittedModel:
    """Fit imbalanced-learn's pipeline of random undersampling and logistic regression."""
    from imblearn.under_sampling import RandomUnderSampler

    return _resampled(RandomUnderSampler(random_state=0), X, y, lam, budget)


def oversampled(X: Any, y: np.ndarray, lam: float, budget: int, threads: int) -> FittedModel:
    """Fit imbalanced-learn's pipeline of SMOTE and logistic regression."""
    from imblearn.over_sampling import SMOTE

    return _resampled(SMOTE(random_state=0), X, y, lam, budget)


def _resampled(sampler: Any, X: Any, y: np.ndarray, lam: float, budget: int) -> FittedModel:
    from imblearn.pipeline import make_pipeline
    from sklearn.linear_model import LogisticRegression

    model = make_pipeline(sampler, LogisticRegression(C=1.0 / (lam * len(y)), max_iter=budget)).fit(X, y)
    return linear_model(model[-1].coef_)


def survival(X: Any, y: np.ndarray, lam: float, budget: int, threads: int) -> FittedModel:
    """Fit scikit-survival's ranking SVM, which uses the squared hinge over pairs.

    Rows of the smaller class have an event at time 1, the others are censored at time 2. So pairs of both classes are
    comparable; ties of time are broken at random, which adds some pairs within the smaller class.
    """
    from sksurv.svm import FastSurvivalSVM
    from sksurv.util import Surv

    positive = y > 0
    minority = positive if positive.sum() <= len(y) / 2 else ~positive
    alpha = 1.0 / (lam * minority.sum() * (~minority).sum())
    model = FastSurvivalSVM(alpha=alpha, rank_ratio=1.0, max_iter=budget, random_state=0)
    model.fit(X, Surv.from_arrays(minority, np.where(minority, 1.0, 2.0)))
    # The weights rank by survival time, and the smaller class has the shorter one.
    return linear_model(-model.coef_ if minority is positive else model.coef_)


def with_int32_indices(X: Any) -> Any:
    """Return X with 32-bit indices, which liblinear needs."""
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
    System(
        "LogisticRegression newton-cholesky",
        "sklearn",
        newton_cholesky,
        DOUBLING[:7],
        64,
        max_features=MAX_GRAM_FEATURES,
    ),
    System("LogisticRegression liblinear", "sklearn", liblinear, DOUBLING, 128),
    System("LogisticRegression saga", "sklearn", saga, DOUBLING, 128),
    System("LinearSVC", "sklearn", linear_svc, DOUBLING, 512),
    System("SGDClassifier", "sklearn", sgd, DOUBLING[:8], 8),
    System("liblinear-official", "liblinear", liblinear_official, (1, 2, 3, 4, 5, 6), 3),
    System("skglm", "skglm", skglm, DOUBLING, 128, prepare=with_ones),
    System("dask-ml", "dask_ml", dask_ml, DOUBLING, 128, dense=True),
    System("RandomUnderSampler, logistic", "imblearn", undersampled, DOUBLING, 128, reads_all_rows=False),
    System("SMOTE, logistic", "imblearn", oversampled, DOUBLING, 128),
    System("FastSurvivalSVM", "sksurv", survival, DOUBLING[:8], 32, dense=True),
)

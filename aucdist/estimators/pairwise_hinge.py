"""The pairwise hinge: a ranking support vector machine over all positive-negative pairs."""

from typing import ClassVar

import numpy as np

from aucdist.estimators.base import LinearClassifier
from aucdist.solvers.all_pairs import all_pairs
from aucdist.solvers.base import Solver


class PairwiseHingeClassifier(LinearClassifier):
    """Linear ranking by the mean pairwise hinge over all positive-negative pairs.

    Minimises ``lam/2 |w|^2 + mean over pairs (i positive, j negative) of max(0, 1 - w.(x_i - x_j))``, a convex bound on 1 - AUC,
    and states by how much at most the objective exceeds the best possible. The objective is that of Jiang, Tao, Gao &
    Chu (2014), their lambda being `lam`.

    Parameters
    ----------
    lam : float, default=1e-3
        Weight of the penalty. Standardised features: 1e-4 to 1e-2 are worth trying.
    solver : {"all-pairs"}, default="all-pairs"
        ``all-pairs``: cutting planes over all pairs, see `aucdist.solvers.all_pairs`; deterministic.
    tol : float, default=1e-3
        The fit ends when ``(primal - dual) / primal`` is at most this.
    max_passes : int, default=1000
        The fit ends after so many passes over the data, one being X w and X'c, with a ConvergenceWarning.
    random_state : int, RandomState or None, default=None
        Part of every estimator's parameters; ``all-pairs`` draws nothing at random, so it changes nothing here.
    warm_start : bool, default=False
        Start from the last fit's weights.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features), float64
    intercept_ : ndarray of shape (1,), float64
        Minus the threshold: the pairs leave it open, so it is set where G-mean on the training rows is largest.
    threshold_ : float
    classes_ : ndarray of shape (2,)
        The second is the positive one.
    certificate_ : Certificate
        ``primal, dual, relative_gap, status``.
    history_ : DataFrame
        A row per round: round, passes, seconds, primal, dual, relative_gap.
    n_passes_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where X has column names.

    Notes
    -----
    There is no ``predict_proba``: a ranking score is not a probability.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from aucdist import PairwiseHingeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = PairwiseHingeClassifier(lam=1e-3).fit((X - X.mean(axis=0)) / X.std(axis=0), y)
    >>> model.certificate_.relative_gap <= 1e-3
    True
    """

    solvers: ClassVar[dict[str, Solver]] = {
        "all-pairs": Solver(all_pairs),
    }

    def __init__(
        self,
        *,
        lam: float = 1e-3,
        solver: str = "all-pairs",
        tol: float = 1e-3,
        max_passes: int = 1000,
        random_state: int | np.random.RandomState | None = None,
        warm_start: bool = False,
    ):
        super().__init__(
            lam=lam, solver=solver, tol=tol, max_passes=max_passes, random_state=random_state, warm_start=warm_start
        )

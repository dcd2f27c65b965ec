"""Bipartite ranking by losses of single rows, weighted by class."""

from dataclasses import dataclass
from typing import Any, ClassVar

from aucdist.estimators.ranking import RankingClassifier
from aucdist.papers.tpauc import UniExp, UniSqu, UnivariateLBFGS
from aucdist.solvers.base import Solver, solver_table


@dataclass(kw_only=True, eq=False, repr=False)
class UnivariateRankingClassifier(RankingClassifier):
    """Linear ranking by a loss of single rows, weighted by class.

    Minimises ``lam/2 |w|^2 + min over b of 1/2 mean over positives of loss(w.x + b) + 1/2 mean over negatives of
    loss(-w.x - b)``, where the loss of a margin m is ``exp(-m)`` or ``(1 - m)^2``, after Kotlowski, Dembczynski & Huellermeier
    (2011); and states by how much at most the objective exceeds the best possible.

    Parameters
    ----------
    lam : float, default=1e-3
        Weight of the penalty.
    solver : str, dict or Solver, default="lbfgs"
        ``lbfgs`` minimises the exponential loss until the gap is at most `tol`. ``uni-exp`` and ``uni-squ`` are the online
        gradient descent of the paper for the exponential and for the square loss. They take a fixed number of steps, usually end
        above `tol`, with a ConvergenceWarning. A name takes the solver's defaults; parameters go
        with it, as in ``{"name": "uni-exp", "epochs": 5}`` or ``UniExp(epochs=5)``: see `aucdist.papers.tpauc`.
    random_state : int, RandomState or None, default=None
        Of the order of the rows, for ``uni-exp`` and ``uni-squ``.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features), float64

    Notes
    -----
    A ranking score is not a probability: ``predict_proba`` needs `calibration`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from aucdist import UnivariateRankingClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = UnivariateRankingClassifier().fit((X - X.mean(axis=0)) / X.std(axis=0), y)
    >>> model.certificate_.relative_gap <= 1e-3
    True
    """

    solvers: ClassVar[dict[str, type[Solver]]] = solver_table(UnivariateLBFGS, UniExp, UniSqu)

    solver: Any = "lbfgs"

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
    calibration : {"gev", "logit", "isotonic"} or None, default=None
        Gives the model `predict_proba`, by a map from scores to probabilities that is fitted to scores of rows held out, see
        `aucdist.estimators.calibration`; that takes five fits more. ``gev``, ``logit``: a link with slope and offset, the first
        with a shape of its own. ``isotonic``: any rising map.
    prior : float or None, default=None
        With `calibration`: the share of positives among the rows to come, where it is not that among the training rows, as after
        undersampling.
    warm_start : bool, default=False
        Start from the last fit's weights.
    tol : float, default=1e-3
        The fit ends when the relative gap, ``(primal - dual) / primal``, is at most this.
    max_passes : int, default=1000
        The fit ends after so many passes over the data, one being X w and X'c, with a ConvergenceWarning.
    features : str, dict, map or None, default=None
        A feature map that is fitted to the training rows, whose basis functions the weights are of: ``"bins"``, ``"nystroem"``,
        ``"leaves"``, a dict such as ``{"map": "bins", "pairs": 20}``, or a transformer of `aucdist.maps`. Edges, landmarks and
        trees are given to the certificate, not part of what it proves. ``"auto"``: cross-validation within the training rows
        chooses the map and `lam`, as `aucdist.search.auto` says; scale the features first.
    verbose : int, default=0
        1: `fit` prints a line for the rounds 1 to 10, 20, 30, ..., 100, 200, ... and the last; 2: for every round.
    n_jobs : int or None, default=None
        Threads of a fit to arrays: None is one, -1 one for each core; they change no bit. Several classes are fitted side by
        side; one class with the default solver, where there are at least 200 000 rows: their number alone decides into how
        many blocks these are cut.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The second is the positive one.
    intercept_ : ndarray of shape (1,), float64
        Chosen so that G-mean on the training rows is largest where rows with scores above 0 are predicted positive.
    probability_ : ProbabilityMap
        With `calibration`: from `decision_function` to probabilities.
    coef_ : ndarray of shape (1, n_features), float64
    certificate_ : Certificate
        ``primal, dual, relative_gap, status``.
    history_ : DataFrame
        A row per round: round, passes, seconds, primal, dual, relative_gap.
    n_passes_ : int
    threshold_ : float
        On the scale of `decision_function`: 0, always, also after `set_threshold`, which moves the scores.
    feature_map_ : FittedMap
        With `features`.
    chosen_ : dict
        With ``features="auto"``: what was chosen, such as ``{"features": {"map": "leaves"}, "lam": 0.1}``.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where X has column names.
    categories_ : dict of str to tuple of str
    feature_names_out_ : ndarray of shape (n_encoded_features,)
        Where X has columns of categories or texts: the values of each, and the names of all features that the rows have with a
        0/1 feature for each value. Weights and `explain` are of these features.

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

"""A linear support vector machine."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from aucdist.engine.blocks import Blocks
from aucdist.errors import InputError, unknown
from aucdist.estimators.fitting import FitResult
from aucdist.estimators.linear import LinearClassifier
from aucdist.papers.scd import CDCD, COMID, PSA, RDA, SCD, SDCD, Pegasos
from aucdist.papers.scd.primal import EQUAL, PENALTY_NAMES
from aucdist.parameters import SWITCH, OneOf, above_0, keyword_parameters
from aucdist.solvers.base import Round, Solution, solver_table

ONE_OVER_N = "1/n"
BALANCED = "balanced"


@keyword_parameters(lam=above_0((ONE_OVER_N,)), penalty=OneOf(PENALTY_NAMES), fit_intercept=SWITCH)
class HingeClassifier(LinearClassifier):
    """A linear support vector machine: the mean hinge of the rows, with an L1 or an L2 penalty.

    Minimises ``sum of c_i max(0, 1 - y_i (w.x_i + b)) + lam |w|_1``, or ``+ lam |w|_2^2`` without a factor of 1/2, after Tao,
    Zhu, Luo and Kong (2013). Here c_i is the weight of row i divided by the sum of all weights. The certificate is a bound on how
    far the objective exceeds its minimum.

    Parameters
    ----------
    lam : float or "1/n", default=1e-3
        The regularisation strength (scikit-learn's `alpha`). "1/n" is one over the number of rows, the choice of the
        paper. The C of liblinear is 1 / (2 lam n).
    penalty : {"l1", "l2"}, default="l2"
        The norm of the weights that is penalised: its square for ``l2``, and the sum of absolute values for ``l1``.
    fit_intercept : bool, default=True
        Whether to fit an intercept. It is not penalised, except by ``sdcd`` and ``cdcd``, which treat it as the weight of a
        column of ones.
    class_weight : dict, "balanced" or None, default=None
        A factor for the weights of the rows of each class. "balanced" is n_samples / (2 * n_rows_of_class). With a dict and
        several classes, the factor of a class is applied to its own rows in its model against the rest, and the rows of the
        rest have weight 1.
    features : str, dict, map or None, default=None
        A feature map that replaces the features: ``"bins"``, ``"nystroem"``, ``"leaves"``, a dict such as
        ``{"map": "bins", "interactions": 20}``, or a transformer of `aucdist.maps`. It is fitted to the training rows, and the
        weights belong to its basis functions. The certificate holds for the map as it is: it does not compare other edges,
        landmarks or trees. With ``"auto"``, cross-validation within the training rows chooses the map by the AUC, or by another
        metric: ``{"map": "auto", "metric": "average_precision"}``. `lam` is chosen as well if it has its default value. The
        page "How auto chooses" of the documentation lists the candidates. Scale the features first.
    solver : str, dict or Solver, default="sdcd"
        With ``penalty="l2"``, every solver but ``psa`` is available. With ``penalty="l1"``, these are available: ``scd``,
        ``comid``, ``rda`` and ``psa``.

        Use ``sdcd`` for L2: it is dual coordinate descent in a random order, and its relative gap reaches `tol`. ``cdcd`` does
        the same in the order of the rows. ``scd`` is the paper's Non-smooth SCD, with steps along single features. ``comid``,
        ``rda`` and ``psa`` take steps along the subgradient of all rows, ``psa`` with projections onto an L1 ball. ``pegasos``
        takes steps along single rows. ``scd``, ``comid``, ``rda``, ``psa`` and ``pegasos`` come near the minimum, but their lower
        bound stays far below it. They therefore usually end after `max_passes`, with a ConvergenceWarning. A name stands for the
        default parameters of the solver. Give other parameters as ``{"name": "psa", "radius": 3.0}`` or ``PSA(radius=3.0)``, a
        class of `aucdist.papers.scd`.
    tol : float, default=1e-3
        The fit ends when the relative gap, ``(primal - dual) / primal`` with the largest possible rounding errors, is at most
        `tol`.
    max_passes : int, default=1000
        The fit ends with a ConvergenceWarning after this many passes over the data. One pass computes the scores of all rows and
        a gradient.
    warm_start : bool, default=False
        Whether to start from the weights of the last fit. ``sdcd`` and ``cdcd`` always start from zero.
    random_state : int, RandomState or None, default=None
        The seed of everything that is drawn at random, in ``sdcd``, ``scd`` and ``pegasos``.
    n_jobs : int or None, default=None
        The number of threads of a fit to arrays with several classes, which are fitted at the same time: None means one,
        and -1 one for each core. It does not change the result.
    verbose : int, default=0
        With 1, `fit` prints a line for the rounds 1 to 10, 20, 30, ..., 100, 200, ... and for the last one. With 2, it
        prints a line for every round.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_weights) or (n_classes, n_weights), float64
        The weights of the encoded features, or of the basis functions of the feature map.
    intercept_ : ndarray of shape (1,) or (n_classes,), float64
        The intercept of `decision_function`.
    classes_ : ndarray of shape (n_classes,)
        The class labels. With two classes, the second one is the positive one.
    certificate_ : Certificate
        How close the objective is to its minimum: ``primal``, ``dual``, ``relative_gap``, ``status``, ``rounding`` and
        ``slack``. The page "The certificate" of the documentation explains them.
    certificates_ : list of Certificate
        With several classes: the certificate of each class. `certificate_` does not exist then.
    estimators_ : list
        With several classes: the model of each class against the rest.
    threshold_ : float
        The threshold on the scale of `decision_function`. It is always 0, also after `set_threshold`, which shifts the
        scores.
    n_passes_ : int
        The number of passes of the fit.
    history_ : DataFrame
        One row for each round, with the columns round, passes, seconds (since the start of the fit), primal, dual,
        relative_gap, and zeros, the share of weights that are 0.
    feature_map_ : FittedMap
        The fitted map, if `features` is given.
    chosen_ : dict
        With ``features="auto"``: the chosen settings, such as ``{"features": {"map": "leaves"}, "lam": 0.1}``.
    n_features_in_ : int
        The number of columns of X in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        The column names of X. Defined only if X has column names.
    categories_ : dict of str to tuple of str
        If X has columns of categories or strings: the values of each such column.
    feature_names_out_ : ndarray of shape (n_encoded_features,)
        If X has columns of categories or strings: the names of the encoded features, with a 0/1 feature for each value. Without
        such columns, the encoded features are the columns of X.

    See Also
    --------
    LinkClassifier : Probabilities.
    PairwiseHingeClassifier : A loss over pairs of rows.

    Notes
    -----
    There is no ``predict_proba``: a score is not a probability.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from aucdist import HingeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = HingeClassifier(lam=1e-3).fit((X - X.mean(axis=0)) / X.std(axis=0), y)
    >>> model.certificate_.relative_gap <= 1e-3
    True
    """

    solvers = solver_table(SDCD, CDCD, SCD, COMID, RDA, PSA, Pegasos)

    penalty: str = "l2"
    lam: float | str = 1e-3  # type: ignore[assignment]
    solver: Any = "sdcd"
    fit_intercept: bool = True
    class_weight: Mapping[Any, float] | str | None = None

    def _rounds(self, blocks: Blocks, start: Any) -> Iterator[Round]:
        """Return the rounds of the solver, each with the share of weights that are 0."""
        n_neg, n_pos = blocks.n_neg, blocks.n_pos
        if blocks.has_weights and (self.lam == ONE_OVER_N or self.class_weight == BALANCED):
            # rows with a weight above 0
            n_neg, n_pos = blocks.sum(lambda block: np.bincount(block.y[block.weights() > 0] > 0, minlength=2)).tolist()
        n = n_neg + n_pos
        lam = 1.0 / n if self.lam == ONE_OVER_N else float(self.lam)
        if isinstance(self.class_weight, Mapping):
            neg, pos = self._factors(self.class_weight)
        elif self.class_weight is None:
            neg, pos = EQUAL
        else:
            neg, pos = 0.5 * n / n_neg, 0.5 * n / n_pos
        options = self._solver_options() | {"intercept": bool(self.fit_intercept), "class_weight": (neg, pos)}
        rounds = self.resolved_solver.rounds(blocks, lam, start, **options)
        return (replace(r, measures={"zeros": float((r.w[: blocks.n_features] == 0.0).mean())}) for r in rounds)

    def _set_weights(self, solution: Solution, blocks: Blocks, intercept_shift: float) -> FitResult:
        w = solution.w if self.fit_intercept else np.append(solution.w, 0.0)
        self.coef_, self.intercept_ = w[np.newaxis, :-1], w[-1:] - intercept_shift
        return FitResult()

    def _parameters_of_class(self, k: int) -> dict[str, Any]:
        """Return the weight of the rows of the class at position `k` in its model against the rest."""
        if not isinstance(self.class_weight, Mapping):
            return {}
        return {"class_weight": {1: self._factors(self.class_weight)[k]}}

    def _factors(self, class_weight: Mapping[Any, float]) -> list[float]:
        """Return the factor for the weights of the rows of each class.

        Raises
        ------
        InputError
            If `class_weight` names a class that the rows do not have.
        """
        for label in class_weight:
            if label not in self.classes_:
                raise unknown("class in class_weight:", label, self.classes_)
        return [float(class_weight.get(label, 1.0)) for label in self.classes_.tolist()]

    def _check_combination(self) -> None:
        super()._check_combination()
        weights = self.class_weight
        if weights is None or (isinstance(weights, str) and weights == BALANCED):
            return
        if not isinstance(weights, Mapping):
            raise InputError(f"class_weight must be a dict of classes, {BALANCED!r} or None; got {weights!r}")
        for label, weight in weights.items():
            above_0().check(f"class_weight of {label!r}", weight)

"""The pairwise ramp: the AUC itself, smoothed, over all positive-negative pairs."""

from dataclasses import dataclass
from typing import Any, ClassVar

from aucdist.engine.blocks import Blocks
from aucdist.estimators.monotone import Directions
from aucdist.estimators.pair_options import GROUP_CONSTRAINTS, TOP_CONSTRAINTS, check_share
from aucdist.estimators.ranking import RankingClassifier
from aucdist.metrics.counts import ScoreCounts
from aucdist.parameters import Constraints
from aucdist.solvers.base import Solution, Solver, solver_table
from aucdist.solvers.pairs import RampLBFGS
from aucdist.solvers.pairs.smooth import MajorantRound


@dataclass(kw_only=True, eq=False, repr=False)
class PairwiseRampClassifier(RankingClassifier):
    """Linear ranking by the smoothed AUC itself, over all positive-negative pairs.

    Minimises ``lam/2 |w|^2 + mean over pairs (i positive, j negative) of ramp(w.(x_i - x_j))``. The ramp of a margin m is 1 up to
    -1, 0 from 1 on, 1/2 at 0 and quadratic between: ``1 - (1 + m)^2 / 2`` below 0, ``(1 - m)^2 / 2`` above. A pair that is lost
    costs 1, by however much it is lost, as in 1 - AUC, which the mean is in the limit of small `lam`. So the AUC is often higher
    than with a convex loss, most where some rows cannot be ranked right, but nothing is proved: the objective is not convex,
    and the weights are a stationary point. After Herschtal & Raskutti (2004), who smooth the step with a sigmoid.

    Parameters
    ----------
    lam : float, default=1e-3
        Weight of the penalty; the less, the sharper the ramp. Standardised features: 1e-5 to 1e-2 are worth trying.
    solver : {"lbfgs"}, default="lbfgs"
        See `aucdist.solvers.pairs.loss`; deterministic.
    tol : float, default=1e-3
        The fit ends when no convex majorant of the objective that touches it at the weights goes lower by more than this share.
    random_state : int, RandomState or None, default=None
        Accepted as by every estimator; nothing is drawn at random.
    max_fpr : float or None, default=None
        Train for the partial AUC, the area under the ROC curve up to this false positive rate, above 0 and at most 1: the mean
        goes over the pairs of the highest-scoring negatives, this share of all, see `aucdist.solvers.pairs.smooth`. The fit
        starts from certified minima of the pairwise hinge, which count as passes. `warm_start` replaces them.
    max_false_positives : int or None, default=None
        The same with a number of negatives in place of a share; with sample weights their total weight.
    group_weight : {"pairs", "groups"} or None, default=None
        With `groups` in `fit`: the mean goes over all pairs ("pairs", the default), or each group counts the
        same, however many pairs it has ("groups").
    grade_weight : {"difference", "one"} or None, default=None
        The labels are grades, the larger the more relevant, and a pair is any two rows (of one group) with
        different ones. It weighs their difference, or one. See `aucdist.solvers.pairs.groups`.
    monotone : mapping, "auto" or None, default=None
        Features in which the score must rise or fall, such as ``{"age": "increasing", 3: "decreasing"}``, by name or position;
        ``"auto"`` gives each feature the direction of straight lines. With no feature map, with ``"bins"`` and with ``"leaves"``.
        The weights are a stationary point of the constrained problem.
    calibration : {"gev", "logit", "isotonic"} or None, default=None
        Gives the model `predict_proba`, by a map from scores to probabilities that is fitted to scores of rows held out, see
        `aucdist.estimators.calibration`; that takes five fits more. ``gev``, ``logit``: a link with slope and offset, the first
        with a shape of its own. ``isotonic``: any rising map.
    prior : float or None, default=None
        With `calibration`: the share of positives among the rows to come, where it is not that among the training rows, as after
        undersampling.
    warm_start : bool, default=False
        Start from the last fit's weights.
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
        The second is the positive one. With `grade_weight` -1 and 1: the lowest grade, and those above it.
    certificate_ : Certificate
        ``primal, dual, relative_gap, status``: no more than 0 is known as `dual`, and the gap is 1. The status is
        ``stationary`` where `tol` was reached.
    majorant_gap_ : float
        What `tol` is held against. With `max_fpr` it says the same, but where scores tie at the boundary of the negatives that
        count it may stay above `tol` though no step goes lower; the status is then ``finished``.
    monotone_ : ndarray of shape (n_features_in_,), int8
        With `monotone`: +1, -1, or 0 for any direction.
    intercept_ : ndarray of shape (1,), float64
        Chosen so that G-mean on the training rows is largest where rows with scores above 0 are predicted positive.
    probability_ : ProbabilityMap
        With `calibration`: from `decision_function` to probabilities.
    coef_ : ndarray of shape (1, n_features), float64
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
        0/1 feature for each value. Weights, `monotone_` and `explain` are of these features.

    Notes
    -----
    A ranking score is not a probability: ``predict_proba`` needs `calibration`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from aucdist import PairwiseRampClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = PairwiseRampClassifier(lam=1e-3).fit((X - X.mean(axis=0)) / X.std(axis=0), y)
    >>> model.majorant_gap_ <= 1e-3
    True
    """

    of_pairs = True
    solvers: ClassVar[dict[str, type[Solver]]] = solver_table(RampLBFGS)
    _parameter_constraints: ClassVar[Constraints] = {
        **RankingClassifier._parameter_constraints,
        "monotone": Directions(),
        **TOP_CONSTRAINTS,
        **GROUP_CONSTRAINTS,
    }

    solver: Any = "lbfgs"
    max_fpr: float | None = None
    max_false_positives: int | None = None
    group_weight: str | None = None
    grade_weight: str | None = None
    monotone: Any = None

    def _check_own_parameters(self) -> None:
        super()._check_own_parameters()
        check_share(self)

    def _set_fitted(self, solution: Solution, blocks: Blocks) -> ScoreCounts | None:
        if isinstance(solution.last, MajorantRound):
            self.majorant_gap_ = solution.last.majorant_gap
        return super()._set_fitted(solution, blocks)

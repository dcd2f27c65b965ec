"""Estimators that rank, by losses over pairs of rows or of single rows: the threshold and probabilities come after the fit.

Pairs may be within groups, or of rows with grades, and may be those of the highest-scoring negatives alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from aucdist.engine.blocks import Blocks
from aucdist.errors import InputError
from aucdist.estimators.calibration import CALIBRATIONS, calibrated
from aucdist.estimators.conditioning import shifted
from aucdist.estimators.linear import LinearClassifier
from aucdist.estimators.monotone import Directions
from aucdist.estimators.scores import count_scores
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.decisions import best_threshold
from aucdist.metrics.groups import GroupWeight
from aucdist.metrics.ranking import auc
from aucdist.papers.epochs import ResumableRound
from aucdist.papers.sdcd import MSGD, SDCD, OAMGra, OAMInf, OAMSeq, SDCDPerm
from aucdist.papers.tpauc import OPAUC, SVRG, TPAUC, Exact, UniExp, UniSqu, UnivariateLBFGS
from aucdist.papers.tpauc.exact import exact_path
from aucdist.parameters import Constraints, Number, OneOf, count, share
from aucdist.solvers.base import Solution, Solver, solver_table
from aucdist.solvers.pairs import AllPairs, RampLBFGS
from aucdist.solvers.pairs.groups import GRADE_WEIGHTS, GROUP_WEIGHTS, pair_groups
from aucdist.solvers.pairs.penalty import PENALTIES, GroupL1
from aucdist.solvers.pairs.smooth import MajorantRound

GROUP_CONSTRAINTS: Constraints = {
    "group_weight": OneOf(GROUP_WEIGHTS, optional=True),
    "grade_weight": OneOf(GRADE_WEIGHTS, optional=True),
}


def group_weight_of(estimator: Any) -> GroupWeight:
    """Return what a group weighs in the objective of an estimator: its pairs, unless it says that each weighs the same."""
    return getattr(estimator, "group_weight", None) or "pairs"


TOP_CONSTRAINTS: Constraints = {
    "max_fpr": Number("above 0 and at most 1", lambda v: 0 < v <= 1, optional=True),
    "max_false_positives": count(optional=True),
}

NEAR_ZERO = 0.01
"""If the objective is surely above 1 minus this, the minimum is as good as w = 0, where the mean hinge is 1."""


class CollapseWarning(UserWarning):
    """The minimum over the highest-scoring negatives is near w = 0, so that the weights rank nothing."""


def check_share(estimator: Any) -> None:
    """Raise an InputError if both parameters are given, which each say which negatives count."""
    if estimator.max_fpr is not None and estimator.max_false_positives is not None:
        raise InputError("max_fpr and max_false_positives both say which negatives count: give one of them")


def collapse_warnings(estimator: Any) -> Iterator[CollapseWarning]:
    """Yield a warning if a fitted pairwise hinge over the top share is proved to have its minimum near w = 0."""
    if estimator.max_fpr is None and estimator.max_false_positives is None:
        return
    c = estimator.certificate_
    if not estimator.coef_.any() or c.dual - c.rounding > 1.0 - NEAR_ZERO:
        yield CollapseWarning(
            f"the minimum is near w = 0: no weights bring the objective below {c.dual:.4g}, and w = 0 has 1. The positives "
            "cannot be separated from so few of the highest-scoring negatives by a convex loss, and the ranking may be no "
            "better than chance. Take PairwiseRampClassifier with the same share, a larger share, or features that separate "
            "more, such as features='bins'; if lam is large, a smaller one"
        )


@dataclass(kw_only=True, eq=False, repr=False)
class RankingClassifier(LinearClassifier):
    """A linear classifier whose objective orders rows, and leaves threshold and probabilities open.

    Scores are shifted so that 0 is where G-mean on the training rows is largest.
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **LinearClassifier._parameter_constraints,
        "calibration": OneOf(CALIBRATIONS, optional=True),
        "prior": share(optional=True),
    }
    calibration: str | None = None
    prior: float | None = None

    @property
    def _has_probabilities(self) -> bool:
        return self.calibration is not None

    @property
    def ignores_zero_weight(self) -> bool:
        """Whether a fit takes a row of weight 0 for absent, to the last bit; calibration copies rows of its own folds."""
        return super().ignores_zero_weight and self.calibration is None

    def _check_own_parameters(self) -> None:
        super()._check_own_parameters()
        if self.prior is not None and self.calibration is None:
            raise InputError("prior applies to probabilities: calibration must not be None")

    def _set_fitted(self, solution: Solution, blocks: Blocks) -> ScoreCounts | None:
        """Set the fitted attributes; return the counts of the scores, of which the threshold is one."""
        self._set_certificate(solution)
        self.coef_ = solution.w[np.newaxis, :]
        counts = count_scores(blocks, solution.w)
        self.intercept_, self._auc = np.array([0.0 - best_threshold(counts)]), auc(counts)
        if self.calibration is not None:
            self.probability_, unseen = calibrated(self, blocks)
            if hasattr(self, "_unseen"):
                self._unseen = unseen
        return counts

    def _training_auc(self, blocks: Blocks) -> float:
        return self._auc


@dataclass(kw_only=True, eq=False, repr=False)
class PairwiseHingeClassifier(RankingClassifier):
    """Linear ranking by the mean pairwise hinge over all positive-negative pairs.

    Minimises ``lam/2 |w|^2 + mean over pairs (i positive, j negative) of max(0, 1 - w.(x_i - x_j))``, a convex bound on 1 - AUC,
    and states by how much at most the objective exceeds the best possible. The objective is that of Jiang, Tao, Gao &
    Chu (2014), their lambda being `lam`.

    Parameters
    ----------
    lam : float, default=1e-3
        Weight of the penalty. Standardised features: 1e-4 to 1e-2 are worth trying.
    solver : str, dict or Solver, default="all-pairs"
        ``all-pairs``: cutting planes over all pairs; deterministic, and the one to use. The others are published algorithms that
        take one pair at a time: ``sdcd``, ``sdcd-perm``, ``msgd``, ``oam-inf``, ``oam-seq``, ``oam-gra``. The last four have no
        bound that closes in, and end after their steps. A name takes the solver's defaults; parameters go with it, as in
        ``{"name": "sdcd", "epochs": 10}`` or ``SDCD(epochs=10)``: see `aucdist.papers.sdcd`.
    random_state : int, RandomState or None, default=None
        Seed of what is drawn at random; ``all-pairs`` and ``oam-inf`` draw nothing.
    warm_start : bool, default=False
        Start from the last fit's weights. ``sdcd`` and ``sdcd-perm`` start from its dual variables, and make the weights from
        them anew, for another `lam` as well as for other data with as many rows of each class; ``msgd`` from its weights and
        the number of its steps. These three refuse weights that another solver left.
    penalty : {"l2", "l1", "group-l1"} or None, default=None
        ``all-pairs``: None for "l2", which is ``lam/2 |w|^2``. "l1" is ``lam |w|_1``, which leaves features out, see
        `aucdist.solvers.pairs.penalty`; it takes two to four times the passes, and at small `lam` more. "group-l1" is ``lam``
        times the sum of ``sqrt(size) |w_g|_2`` over groups of weights, and leaves whole groups out: with ``features="bins"`` all
        weights of a feature or of a pair. Without a map each weight is its own group.
    max_fpr : float or None, default=None
        ``all-pairs``: train for the partial AUC, the area under the ROC curve up to this false positive rate, above 0 and at most
        1. The mean then goes over the pairs of the highest-scoring negatives, this share of all, see
        `aucdist.solvers.pairs.share`; it is convex, and has its certificate. If those negatives cannot be separated from the
        positives, the minimum is near w = 0, and a `CollapseWarning` says so.
    max_false_positives : int or None, default=None
        ``all-pairs``: the same with a number of negatives in place of a share; with sample weights their total weight. 1 is
        the top push.
    group_weight : {"pairs", "groups"} or None, default=None
        ``all-pairs``, ``sdcd``, ``sdcd-perm``. With `groups` in `fit`: the mean goes over all pairs ("pairs", the default), or
        each group counts the same, however many pairs it has ("groups").
    grade_weight : {"difference", "one"} or None, default=None
        The same solvers. The labels are grades, the larger the more relevant, and a pair is any two rows (of one group) with
        different ones. It weighs their difference, or one. See `aucdist.solvers.pairs.groups`.
    monotone : mapping, "auto" or None, default=None
        ``all-pairs``: features in which the score must rise or fall, such as ``{"age": "increasing", 3: "decreasing"}``, by name
        or position; ``"auto"`` gives each feature the direction of a straight line, if five folds of the rows agree on it. With
        no feature map, with ``"bins"``, whose shapes then rise or fall (missing values keep a cell of any height), and with
        ``"leaves"``. The minimum and its certificate are those of the constrained problem.
    calibration : {"gev", "logit", "isotonic"} or None, default=None
        Gives the model `predict_proba`, by a map from scores to probabilities that is fitted to scores of rows held out, see
        `aucdist.estimators.calibration`; that takes five fits more. ``gev``, ``logit``: a link with slope and offset, the first
        with a shape of its own. ``isotonic``: any rising map.
    prior : float or None, default=None
        With `calibration`: the share of positives among the rows to come, where it is not that among the training rows, as after
        undersampling.
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
    intercept_ : ndarray of shape (1,), float64
        The pairs leave it open, so it is chosen such that G-mean on the training rows is largest where rows with scores above 0
        are predicted positive.
    classes_ : ndarray of shape (2,)
        The second is the positive one. With `grade_weight` -1 and 1: the lowest grade, and those above it.
    monotone_ : ndarray of shape (n_features_in_,), int8
        With `monotone`: +1, -1, or 0 for any direction.
    resume_ : DualStart or DescentState
        With `warm_start` and ``sdcd``, ``sdcd-perm`` or ``msgd``: what the next fit starts from. The dual variables of the first
        two are ``resume_.duals``, sparse of shape (n_pos, n_neg).
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
        0/1 feature for each value. Weights, `monotone_` and `explain` are of these features.

    Notes
    -----
    With sample weights, groups or grades ``sdcd`` and ``sdcd-perm`` draw pairs alike, whatever they weigh, and each dual variable
    is bounded by what its pair weighs, where the paper has 1. ``msgd`` takes no sample weights other than equal ones. The
    ``oam-*`` solvers take weights, but go through the rows once: a row of weight 2 takes one step where two equal rows take two.

    A ranking score is not a probability: ``predict_proba`` needs `calibration`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from aucdist import PairwiseHingeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = PairwiseHingeClassifier(lam=1e-3).fit((X - X.mean(axis=0)) / X.std(axis=0), y)
    >>> model.certificate_.relative_gap <= 1e-3
    True
    """

    of_pairs = True
    solvers: ClassVar[dict[str, type[Solver]]] = solver_table(AllPairs, SDCD, SDCDPerm, MSGD, OAMInf, OAMSeq, OAMGra)
    _parameter_constraints: ClassVar[Constraints] = {
        **RankingClassifier._parameter_constraints,
        "penalty": OneOf(PENALTIES, optional=True),
        "monotone": Directions(),
        **TOP_CONSTRAINTS,
        **GROUP_CONSTRAINTS,
    }

    solver: Any = "all-pairs"
    penalty: str | None = None
    max_fpr: float | None = None
    max_false_positives: int | None = None
    group_weight: str | None = None
    grade_weight: str | None = None
    monotone: Any = None

    def _set_fitted(self, solution: Solution, blocks: Blocks) -> ScoreCounts | None:
        if hasattr(self, "resume_"):
            del self.resume_
        if self.warm_start and isinstance(solution.last, ResumableRound):  # else the dual variables stay on the blocks
            self.resume_: Any = solution.last.resume()
        return super()._set_fitted(solution, blocks)

    def _warnings_of_fit(self, blocks: Blocks) -> Iterator[Warning]:
        yield from collapse_warnings(self)
        yield from super()._warnings_of_fit(blocks)

    def _initial_weights(self, n_features: int) -> Any:
        weights = super()._initial_weights(n_features)
        resumes = weights is not None and self.resolved_solver.resumes
        return getattr(self, "resume_", weights) if resumes else weights

    def _check_own_parameters(self) -> None:
        super()._check_own_parameters()
        check_share(self)
        expander = self._expander
        if self.penalty == GroupL1.name and expander is not None and not expander.has_groups:
            raise InputError(
                f"{type(expander).__name__} mixes all features: penalty='group-l1', a group of weights for each feature, goes "
                "with no map, or with features='bins'"
            )

    def _solver_options(self, seed: int | None = None) -> dict[str, Any]:
        options = super()._solver_options(seed)
        if self.penalty == GroupL1.name and hasattr(self, "feature_map_"):
            options["feature_groups"] = self.feature_map_.groups()
        return options


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


@dataclass(kw_only=True, eq=False, repr=False)
class PairwiseSquareClassifier(RankingClassifier):
    """Linear ranking by the mean pairwise square over all positive-negative pairs.

    Minimises ``lam/2 |w|^2 + mean over pairs (i positive, j negative) of (1 - w.(x_i - x_j))^2``, and states by how much at
    most the objective exceeds the best possible: by its gradient, as the objective is strongly convex. It is that of Luan &
    Gao (2018), their lambda being `lam`.

    Parameters
    ----------
    lam : float, default=1e-3
        Weight of the penalty. Standardised features: 1e-4 to 1 are worth trying.
    solver : str, dict or Solver, default="exact"
        ``exact``: the minimum itself; up to 1000 features by one reduction, beyond by conjugate gradients; deterministic.
        ``svrg``: variance-reduced stochastic gradients. ``tpauc``: two passes. ``opauc``: one pass. The last two take a fixed
        number of steps, and so may end above `tol`, with a ConvergenceWarning. A name takes the
        solver's defaults; parameters go with it, as in ``{"name": "tpauc", "epochs": 5}`` or ``TPAUC(epochs=5)``: see
        `aucdist.papers.tpauc`.
    random_state : int, RandomState or None, default=None
        Of the rows drawn by ``svrg``, their order with ``tpauc`` and ``opauc``, and the sketch of ``opauc``.
    warm_start : bool, default=False
        Start from the last fit's weights. The closed form of ``exact`` needs no start.
    group_weight : {"pairs", "groups"} or None, default=None
        ``exact``, up to 1000 weights. With `groups` in `fit`: the mean goes over all pairs ("pairs", the default), or each group
        counts the same, however many pairs it has ("groups").
    grade_weight : {"difference", "one"} or None, default=None
        ``exact``, up to 1000 weights. The labels are grades, the larger the more relevant, and a pair is any two rows (of one
        group) with different ones. It weighs their difference, or one. See `aucdist.solvers.pairs.groups`.
    monotone : mapping, "auto" or None, default=None
        ``exact``, up to 1000 weights: features in which the score must rise or fall, such as ``{"age": "increasing", 3:
        "decreasing"}``, by name or position; ``"auto"`` gives each feature the direction of a straight line, if five folds of the
        rows agree on it. With no feature map, and with ``"bins"`` or ``"leaves"``.
    calibration : {"gev", "logit", "isotonic"} or None, default=None
        Gives the model `predict_proba`, by a map from scores to probabilities that is fitted to scores of rows held out, see
        `aucdist.estimators.calibration`; that takes five fits more. ``gev``, ``logit``: a link with slope and offset, the first
        with a shape of its own. ``isotonic``: any rising map.
    prior : float or None, default=None
        With `calibration`: the share of positives among the rows to come, where it is not that among the training rows, as after
        undersampling.
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
        The second is the positive one. With `grade_weight` -1 and 1: the lowest grade, and those above it.
    monotone_ : ndarray of shape (n_features_in_,), int8
        With `monotone`: +1, -1, or 0 for any direction.
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
        0/1 feature for each value. Weights, `monotone_` and `explain` are of these features.

    Notes
    -----
    A ranking score is not a probability: ``predict_proba`` needs `calibration`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from aucdist import PairwiseSquareClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = PairwiseSquareClassifier(lam=1e-3).fit((X - X.mean(axis=0)) / X.std(axis=0), y)
    >>> model.certificate_.relative_gap <= 1e-9
    True
    """

    of_pairs = True
    solvers: ClassVar[dict[str, type[Solver]]] = solver_table(Exact, SVRG, TPAUC, OPAUC)
    _parameter_constraints: ClassVar[Constraints] = {
        **RankingClassifier._parameter_constraints,
        "monotone": Directions(),
        **GROUP_CONSTRAINTS,
    }

    solver: Any = "exact"
    group_weight: str | None = None
    grade_weight: str | None = None
    monotone: Any = None

    def path(self, X: Any, y: Any = None, *, lams: Sequence[float], sample_weight: Any = None) -> np.ndarray:
        """Return the minimum's weights for several lam, at the cost of about one: all come from the same moments.

        Parameters
        ----------
        X, y
            As in `fit`; at most 1000 features.
        lams : sequence of float
            Each above 0. The parameter `lam` has no effect.
        sample_weight
            As in `fit`.

        Returns
        -------
        ndarray of shape (n_lams, n_features), float64
            In the order of `lams`.

        Raises
        ------
        InputError
            A ValueError: for another solver than ``exact``, a lam outside its range, or data that cannot be used.
        """
        solver = self.resolved_solver
        if not isinstance(solver, Exact):
            raise InputError(f"path applies to solver exact, not to {solver.name!r}")
        if self.features is not None:
            raise InputError("path returns weights alone, without their feature map: transform X by the map first")
        if self.monotone is not None:
            raise InputError(
                "path has the closed form, which has no directions of features (monotone): fit one lam at a time"
            )
        for lam in lams:
            clone(self).set_params(lam=lam).check_parameters()
        blocks, _ = shifted(clone(self)._validated_blocks(X, y, sample_weight))
        groups = pair_groups(blocks, self.group_weight, self.grade_weight)
        return np.array([minimum.w for minimum in exact_path(blocks, lams, groups)]).reshape(
            len(lams), blocks.n_features
        )


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

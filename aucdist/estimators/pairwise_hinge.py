"""The pairwise hinge: a ranking support vector machine over all positive-negative pairs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from aucdist.engine.blocks import Blocks
from aucdist.errors import InputError
from aucdist.estimators.monotone import Directions
from aucdist.estimators.pair_options import GROUP_CONSTRAINTS, TOP_CONSTRAINTS, check_share, collapse_warnings
from aucdist.estimators.ranking import RankingClassifier
from aucdist.metrics.counts import ScoreCounts
from aucdist.papers.epochs import ResumableRound
from aucdist.papers.sdcd import MSGD, SDCD, OAMGra, OAMInf, OAMSeq, SDCDPerm
from aucdist.parameters import Constraints, OneOf
from aucdist.solvers.base import Solution, Solver, solver_table
from aucdist.solvers.pairs import AllPairs
from aucdist.solvers.pairs.penalty import PENALTIES, GroupL1


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

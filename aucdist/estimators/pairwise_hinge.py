"""The pairwise hinge: a ranking support vector machine over all positive-negative pairs."""

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from aucdist.engine.blocks import Blocks
from aucdist.estimators.monotone import Directions
from aucdist.estimators.online import OnlineClassifier, learn_pairs_in_order, learn_random_pairs
from aucdist.estimators.parameters import Constraints, OneOf, above_0, count
from aucdist.estimators.top_share import TOP_CONSTRAINTS, TOP_OPTIONS, check_share, collapse_warnings
from aucdist.metrics.counts import ScoreCounts
from aucdist.solvers.base import Round, Solution, Solver
from aucdist.solvers.pairs.all_pairs import EXACT, all_pairs, all_pairs_l1, pairs_of
from aucdist.solvers.pairs.cutting_planes import AllPairs
from aucdist.solvers.pairs.dual import DualStart, check_combination, sdcd, sdcd_perm
from aucdist.solvers.pairs.oam import OamState, oam_gra, oam_inf, oam_seq
from aucdist.solvers.pairs.sampling import ResumableRound, check_options
from aucdist.solvers.pairs.sgd import Progress, msgd
from aucdist.solvers.pairs.top import TopShare
from aucdist.solvers.pairs.top_pairs import TopPairs, TopPairsL1, top_pairs, top_pairs_l1

DUAL_OPTIONS = ("steps", "epochs", "average", "combine", "minority_bytes")


TOP_PENALTIES: dict[str, type[TopPairs]] = {"l2": TopPairs, "l1": TopPairsL1}


def _all_pairs(
    blocks: Blocks, lam: float, start: np.ndarray | None, penalty: str = "l2", max_fpr: float | None = None,
    max_false_positives: int | None = None, signs: np.ndarray | None = None,
) -> Iterator[Round]:  # fmt: skip
    if max_fpr is None and max_false_positives is None:
        return (all_pairs if penalty == "l2" else all_pairs_l1)(blocks, lam, start, signs=signs)
    solver = top_pairs if penalty == "l2" else top_pairs_l1
    return solver(blocks, lam, start, share=TopShare(max_fpr, max_false_positives), signs=signs)


def _all_pairs_path(
    blocks: Blocks, penalty: str = "l2", max_fpr: float | None = None, max_false_positives: int | None = None,
    signs: np.ndarray | None = None,
) -> AllPairs:  # fmt: skip
    if max_fpr is None and max_false_positives is None:
        return pairs_of(blocks, None, penalty, signs)
    return TOP_PENALTIES[penalty](blocks, None, share=TopShare(max_fpr, max_false_positives), signs=signs)


class PairwiseHingeClassifier(OnlineClassifier):
    """Linear ranking by the mean pairwise hinge over all positive-negative pairs.

    Minimises ``lam/2 |w|^2 + mean over pairs (i positive, j negative) of max(0, 1 - w.(x_i - x_j))``, a convex bound on 1 - AUC,
    and states by how much at most the objective exceeds the best possible. The objective is that of Jiang, Tao, Gao &
    Chu (2014), their lambda being `lam`.

    Parameters
    ----------
    lam : float, default=1e-3
        Weight of the penalty. Standardised features: 1e-4 to 1e-2 are worth trying.
    solver : {"all-pairs", "sdcd", "sdcd-perm", "msgd", "oam-inf", "oam-seq", "oam-gra"}, default="all-pairs"
        ``all-pairs``: cutting planes over all pairs, see `aucdist.solvers.pairs.all_pairs`; deterministic, and the one
        to use. The others are published algorithms that take one pair at a time. ``sdcd``, ``sdcd-perm``: dual
        coordinate descent on pairs drawn at random, or on all of them in a random order, see
        `aucdist.solvers.pairs.dual`. ``msgd``: modified stochastic gradient descent, see `aucdist.solvers.pairs.sgd`.
        ``oam-inf``, ``oam-seq``, ``oam-gra``: online, in the order of the rows, see `aucdist.solvers.pairs.oam`. The
        last four have no bound that closes in, and end after their steps.
    tol : float, default=1e-3
        The fit ends when the relative gap, ``(primal - dual) / primal``, is at most this.
    max_passes : int, default=1000
        The fit ends after so many passes over the data, one being X w and X'c, with a ConvergenceWarning.
    random_state : int, RandomState or None, default=None
        Seed of what is drawn at random; ``all-pairs`` and ``oam-inf`` draw nothing.
    warm_start : bool, default=False
        Start from the last fit's weights. ``sdcd`` and ``sdcd-perm`` start from its dual variables, and make the weights from
        them anew, for another `lam` as well as for other data with as many rows of each class; ``msgd`` from its weights and
        the number of its steps. These three refuse weights that another solver left.
    penalty : {"l2", "l1"} or None, default=None
        ``all-pairs``: None for "l2", which is ``lam/2 |w|^2``. "l1" is ``lam |w|_1``, which leaves features out, see
        `aucdist.solvers.pairs.all_pairs_l1`; it takes two to four times the passes, and at small `lam` more.
    max_fpr : float or None, default=None
        ``all-pairs``: train for the partial AUC, the area under the ROC curve up to this false positive rate, above 0 and at most
        1. The mean then goes over the pairs of the highest-scoring negatives, this share of all, see
        `aucdist.solvers.pairs.top_pairs`; it is convex, and has its certificate. If those negatives cannot be separated from the
        positives, the minimum is near w = 0, and a `CollapseWarning` says so.
    max_false_positives : int or None, default=None
        ``all-pairs``: the same with a number of negatives in place of a share; with sample weights their total weight. 1 is
        the top push.
    steps : int, "all" or None, default=None
        ``sdcd``, ``sdcd-perm``, ``msgd``: pairs to draw, the papers' T; ``"all"`` is n_pos * n_neg. With neither `steps` nor
        `epochs` the first two go on until `tol` or `max_passes` is reached, ``msgd`` for 10 epochs.
    epochs : int or None, default=None
        The same in units of n_samples pairs. For ``oam-*``: passes over the rows, None for 1.
    average : bool or None, default=None
        ``sdcd``, ``sdcd-perm``: return the average of the weights over the later steps, as in lemma 1.
    combine : {"add", "average"} or None, default=None
        ``sdcd``, ``sdcd-perm``: how the changes of several blocks become one; None for "add".
    minority_bytes : int or None, default=None
        ``sdcd``, ``sdcd-perm``, ``msgd``: the rows of the smaller class are sent to every block; where there are several and the
        rows take more than this, they go round in parts. None for 256 MiB.
    buffer_size : int or None, default=None
        ``oam-seq``, ``oam-gra``: rows buffered per class; None for 100.
    n_pairs : float or None, default=None
        ``oam-*``: the number of pairs that sets the size of the steps, which are at most 1 / (lam n_pairs). None takes the
        pairs of the data, and in `partial_fit` those of all rows so far, so that the steps shrink as rows arrive.
    calibration : {"gev", "logit", "isotonic"} or None, default=None
        Gives the model `predict_proba`, by a map from scores to probabilities that is fitted to scores of rows held out, see
        `aucdist.estimators.calibration`; that takes five fits more. ``gev``, ``logit``: a link with slope and offset, the first
        with a shape of its own. ``isotonic``: any rising map.
    prior : float or None, default=None
        With `calibration`: the share of positives among the rows to come, where it is not that among the training rows, as after
        undersampling.
    features : str, dict, map or None, default=None
        A feature map that is fitted to the training rows, whose basis functions the weights are of: ``"bins"``, ``"nystroem"``,
        ``"leaves"``, a dict such as ``{"map": "bins", "pairs": 20}``, or a transformer of `aucdist.maps`. Edges, landmarks and
        trees are given to the certificate, not part of what it proves.
    monotone : mapping, "auto" or None, default=None
        ``all-pairs``: features in which the score must rise or fall, such as ``{"age": "increasing", 3: "decreasing"}``, by name
        or position; ``"auto"`` gives each feature the direction of a straight line. With no feature map, and with ``"bins"``,
        whose shapes then rise or fall (missing values keep a cell of any height). The minimum and its certificate are those of
        the constrained problem.
    verbose : int, default=0
        1: `fit` prints a line for the rounds 1 to 10, 20, 30, ..., 100, 200, ... and the last; 2: for every round.

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
    probability_ : ProbabilityMap
        With `calibration`: from `decision_function` to probabilities.
    n_passes_ : int
    feature_map_ : FittedMap
        With `features`.
    monotone_ : ndarray of shape (n_features_in_,), int8
        With `monotone`: +1, -1, or 0 for any direction.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where X has column names.
    resume_ : DualStart
        With `warm_start` and ``sdcd`` or ``sdcd-perm``: what the next fit starts from. Their dual variables are
        ``resume_.duals``, sparse of shape (n_pos, n_neg).
    stream_ : OamState or Progress
        After `partial_fit`, and after ``msgd``: what the next call goes on from.

    Notes
    -----
    ``sdcd``, ``sdcd-perm`` and ``msgd`` take no sample weights other than equal ones. The published algorithms draw all pairs
    with the same probability and bound each dual variable by the same number; weights would need a bound of its own for each
    pair, so take ``all-pairs`` for weighted rows. The ``oam-*`` solvers take weights, but go through the rows once: a row of
    weight 2 takes one step where two equal rows take two.

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
    solvers: ClassVar[dict[str, Solver]] = {
        "all-pairs": Solver(
            _all_pairs, ("penalty", *TOP_OPTIONS), ignores_zero_weight=True, path=_all_pairs_path, takes_codes=True,
            signs=True,
        ),
        "sdcd": Solver(sdcd, DUAL_OPTIONS, random=True, sample_weight=False, resumes=True),
        "sdcd-perm": Solver(sdcd_perm, DUAL_OPTIONS, random=True, sample_weight=False, resumes=True),
        "msgd": Solver(
            msgd, ("steps", "epochs", "minority_bytes"), random=True, sample_weight=False, resumes=True,
            learn=learn_random_pairs,
        ),
        "oam-inf": Solver(oam_inf, ("epochs", "n_pairs"), learn=learn_pairs_in_order),
        "oam-seq": Solver(oam_seq, ("buffer_size", "epochs", "n_pairs"), random=True, learn=learn_pairs_in_order),
        "oam-gra": Solver(oam_gra, ("buffer_size", "epochs", "n_pairs"), random=True, learn=learn_pairs_in_order),
    }  # fmt: skip
    _parameter_constraints: ClassVar[Constraints] = {
        **OnlineClassifier._parameter_constraints,
        "penalty": OneOf(EXACT, optional=True),
        "monotone": Directions(),
        **TOP_CONSTRAINTS,
        "buffer_size": count(optional=True),
        "n_pairs": above_0(optional=True),
    }
    resume_: DualStart
    stream_: OamState | Progress

    def __init__(
        self,
        *,
        lam: float = 1e-3,
        solver: str = "all-pairs",
        tol: float = 1e-3,
        max_passes: int = 1000,
        random_state: int | np.random.RandomState | None = None,
        warm_start: bool = False,
        penalty: str | None = None,
        max_fpr: float | None = None,
        max_false_positives: int | None = None,
        steps: int | str | None = None,
        epochs: int | None = None,
        average: bool | None = None,
        combine: str | None = None,
        minority_bytes: int | None = None,
        buffer_size: int | None = None,
        n_pairs: float | None = None,
        calibration: str | None = None,
        prior: float | None = None,
        features: Any = None,
        monotone: Any = None,
        verbose: int = 0,
    ):
        super().__init__(
            lam=lam, solver=solver, tol=tol, max_passes=max_passes, random_state=random_state, warm_start=warm_start
        )
        self.features = features
        self.monotone = monotone
        self.verbose = verbose
        self.calibration = calibration
        self.prior = prior
        self.penalty = penalty
        self.max_fpr = max_fpr
        self.max_false_positives = max_false_positives
        self.steps = steps
        self.epochs = epochs
        self.average = average
        self.combine = combine
        self.minority_bytes = minority_bytes
        self.buffer_size = buffer_size
        self.n_pairs = n_pairs

    def _set_fitted(self, solution: Solution, blocks: Blocks) -> ScoreCounts | None:
        if hasattr(self, "resume_"):
            del self.resume_
        if isinstance(solution.last, ResumableRound):
            if self._is_online:
                self.stream_ = solution.last.resume()
            elif self.warm_start:  # else the dual variables stay on the blocks
                self.resume_ = solution.last.resume()
        return super()._set_fitted(solution, blocks)

    def _warnings_of_fit(self, blocks: Blocks) -> Iterator[Warning]:
        yield from collapse_warnings(self)
        yield from super()._warnings_of_fit(blocks)

    def _initial_weights(self, n_features: int) -> Any:
        weights = super()._initial_weights(n_features)
        if weights is None or not self.solvers[self.solver].resumes:
            return weights
        if not self._is_online:
            return getattr(self, "resume_", weights)
        stream = getattr(self, "stream_", None)
        return stream if isinstance(stream, Progress) and np.array_equal(stream.w, weights) else weights

    def check_parameters(self) -> None:
        """Check every parameter, as `fit` does first.

        Raises
        ------
        InputError
            Naming the parameter, its value and what is allowed.
        """
        super().check_parameters()
        check_share(self)
        check_options(self.steps, self.epochs, self.minority_bytes)
        check_combination(
            False if self.average is None else self.average, "add" if self.combine is None else self.combine
        )

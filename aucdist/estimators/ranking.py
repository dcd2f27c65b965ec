"""Estimators that rank, by losses over pairs of rows or of single rows.

The fit chooses the threshold and probabilities at its end.

Pairs may be limited to rows of the same group, may be pairs of rows with different grades, and may be limited to the negatives
with the highest scores.
"""

from typing import Any

import numpy as np

from aucdist.engine.blocks import Blocks
from aucdist.errors import InputError
from aucdist.estimators.calibration import CALIBRATIONS, calibrated
from aucdist.estimators.fitting import FitResult
from aucdist.estimators.linear import LinearClassifier
from aucdist.estimators.monotone import Directions
from aucdist.estimators.scores import count_scores
from aucdist.metrics.decisions import best_threshold
from aucdist.pairs import AllPairs, RampLBFGS
from aucdist.pairs.groups import GRADE_WEIGHTS, GROUP_WEIGHTS
from aucdist.pairs.penalty import PENALTIES, GroupL1
from aucdist.pairs.smooth import MajorantRound
from aucdist.pairs.top_negatives import TOP_CONSTRAINTS, trained_max_fpr
from aucdist.papers.sdcd import MSGD, SDCD, OAMGra, OAMInf, OAMSeq, SDCDPerm
from aucdist.papers.tpauc import OPAUC, SVRG, TPAUC, Exact, UniExp, UniSqu, UnivariateLBFGS
from aucdist.parameters import PRIOR, OneOf, keyword_parameters
from aucdist.solvers.base import Solution, solver_table

NEAR_ZERO = 0.01
"""If the objective is certainly above 1 minus this, the minimum is hardly better than w = 0, where the mean hinge is 1."""


class CollapseWarning(UserWarning):
    """Warns that a fit for the top of the list has its minimum near w = 0, so its ranking may be no better than chance."""


@keyword_parameters(calibration=OneOf(CALIBRATIONS, optional=True), prior=PRIOR)
class RankingClassifier(LinearClassifier):
    """A linear classifier whose objective depends only on the order of the rows, not on a threshold or probabilities.

    The intercept is chosen so that the threshold 0 has the largest G-mean on the training rows.
    """

    calibration: str | None = None
    prior: float | None = None

    @property
    def _has_probabilities(self) -> bool:
        return self.calibration is not None

    @property
    def ignores_zero_weight(self) -> bool:
        """Whether a fit without the rows of weight 0 gives exactly the same result. With calibration, it does not."""
        return super().ignores_zero_weight and self.calibration is None

    def _check_combination(self) -> None:
        super()._check_combination()
        if self.prior is not None and self.calibration is None:
            raise InputError("prior applies to probabilities: give calibration='logit', or leave prior out")
        if all(getattr(self, name, None) is not None for name in TOP_CONSTRAINTS):
            raise InputError("max_fpr and max_false_positives both say which negatives count: give one of them")

    def _set_weights(self, solution: Solution, blocks: Blocks, intercept_shift: float) -> FitResult:
        self.coef_ = solution.w[np.newaxis, :]
        counts, out_of_fold_counts = count_scores(blocks, solution.w), None
        self.intercept_ = np.array([0.0 - best_threshold(counts)])
        if self.calibration is not None:
            self.probability_, out_of_fold_counts = calibrated(self, blocks)
        return FitResult(counts, out_of_fold_counts)


@keyword_parameters(
    monotone=Directions(),
    group_weight=OneOf(GROUP_WEIGHTS, optional=True),
    grade_weight=OneOf(GRADE_WEIGHTS, optional=True),
)
class PairRankingClassifier(RankingClassifier):
    """A linear classifier whose objective is a mean over pairs, which may be within groups or of rows with grades."""

    group_weight: str | None = None
    grade_weight: str | None = None
    monotone: Any = None


@keyword_parameters(penalty=OneOf(PENALTIES, optional=True), **TOP_CONSTRAINTS)
class PairwiseHingeClassifier(PairRankingClassifier):
    """Linear ranking by the mean hinge over all pairs of a positive and a negative row.

    Minimises ``lam/2 |w|^2 + mean over pairs (i positive, j negative) of max(0, 1 - w.(x_i - x_j))``, a convex bound on 1 -
    AUC. The certificate is a bound on how far the objective exceeds its minimum. The objective is that of Jiang, Tao, Gao
    and Chu (2014), whose lambda is `lam`.

    Parameters
    ----------
    lam : float, default=1e-3
        The regularisation strength (scikit-learn's `alpha`). Search 1e-1 to 1e-4, or 1e-2 to 1e-6 if fewer than 1 % of the rows
        are positive or if there are thousands of positives. With `max_fpr`, search 1e-2 to 1e-4. Unlike the default of
        `LinkClassifier`, it does not depend on the share of positives.
    penalty : {"l2", "l1", "group-l1"} or None, default=None
        Only for the solver ``all-pairs``. None means "l2", which is ``lam/2 |w|^2``. "l1" is ``lam |w|_1``, which sets
        weights to 0. It usually needs more passes than "l2". "group-l1" is ``lam`` times the sum of
        ``sqrt(size) |w_g|_2`` over groups of weights, and leaves whole groups out. With ``features="bins"``, a group has all
        weights of a feature or of an interaction. Without a map, each weight is its own group.
    max_fpr : float or None, default=None
        Only for the solver ``all-pairs``. The fit minimises a convex bound for the partial AUC, the area under the ROC curve up
        to this false positive rate (above 0 and at most 1). Only this share of the negatives counts in the loss: the negatives
        with the highest scores. Choose it somewhat larger than the false positive rate at which you work: with few negatives in
        the loss, the fit overfits them. With few negatives in all, use `max_false_positives`. The objective is convex and has a
        certificate. If these negatives cannot be separated from the positives, the minimum is near w = 0, and a `CollapseWarning`
        says so.
    max_false_positives : int or None, default=None
        Only for the solver ``all-pairs``. Like `max_fpr`, with a number of negatives instead of a share. With sample weights,
        it is their total weight. With 1, only the highest-scoring negative counts, as in TopPush and the infinite push.
    group_weight : {"pairs", "groups"} or None, default=None
        Only for the solvers ``all-pairs``, ``sdcd`` and ``sdcd-perm``. How groups are weighted if `fit` gets `groups`. With
        "pairs", the default, every pair counts the same. With "groups", every group counts the same, however many pairs it
        has.
    grade_weight : {"difference", "one"} or None, default=None
        Only for the solvers ``all-pairs``, ``sdcd`` and ``sdcd-perm``. The labels are grades, where larger is more relevant, and
        a pair is any two rows (of one group) with different grades. Its weight is the difference of its grades, or 1: see the
        page "Groups and ranking" of the documentation.
    monotone : mapping, "auto" or None, default=None
        Only for the solver ``all-pairs``. Features in which the score must rise or fall, such as ``{"age": "increasing", 3:
        "decreasing"}``, by name or position. With ``"auto"``, each feature gets the sign of its weight in a linear model, if five
        fits, each without a fifth of the rows, agree on it. This works without a feature map, with ``"bins"``, whose shapes then
        rise or fall (the value of the bin of missing values is free), and with ``"leaves"``. The certificate holds for the
        constrained problem.
    features : str, dict, map or None, default=None
        A feature map that replaces the features: ``"bins"``, ``"nystroem"``, ``"leaves"``, a dict such as
        ``{"map": "bins", "interactions": 20}``, or a transformer of `aucdist.maps`. It is fitted to the training rows, and the
        weights belong to its basis functions. The certificate holds for the map as it is: it does not compare other edges,
        landmarks or trees. With ``"auto"``, cross-validation within the training rows chooses the map by the AUC, or by another
        metric: ``{"map": "auto", "metric": "average_precision"}``. `lam` is chosen as well if it has its default value. The
        page "How auto chooses" of the documentation lists the candidates. Scale the features first.
    solver : str, dict or Solver, default="all-pairs"
        Use the default. ``all-pairs`` takes Newton steps and cutting planes over all pairs, and is deterministic. The others are
        published algorithms that take one pair at a time: ``sdcd``, ``sdcd-perm``, ``msgd``, ``oam-inf``, ``oam-seq``,
        ``oam-gra``. The last four stop after a fixed number of steps, and their lower bound does not approach the minimum. A name
        stands for the default parameters of the solver. Give other parameters as ``{"name": "sdcd", "epochs": 10}`` or
        ``SDCD(epochs=10)``, a class of `aucdist.papers.sdcd`.
    tol : float, default=1e-3
        The fit ends when the relative gap, ``(primal - dual) / primal`` with the largest possible rounding errors, is at most
        `tol`.
    max_passes : int, default=1000
        The fit ends with a ConvergenceWarning after this many passes over the data. One pass computes the scores of all rows and
        a gradient.
    warm_start : bool, default=False
        Whether to start from the weights of the last fit. ``sdcd``, ``sdcd-perm`` and ``msgd`` always start from zero.
    random_state : int, RandomState or None, default=None
        The seed of everything that is drawn at random. ``all-pairs`` and ``oam-inf`` draw nothing.
    calibration : {"gev", "logit", "isotonic"} or None, default=None
        Adds `predict_proba`: a map from scores to probabilities is fitted to out-of-fold scores, which takes five more fits. See
        the page "Calibration" of the documentation. ``logit`` and ``gev`` are links with a slope and an offset, and ``gev`` has a
        shape as well. ``isotonic`` is isotonic regression.
    prior : float or None, default=None
        With `calibration`: the share of positives among future rows, if it differs from that of the training rows, as after
        undersampling.
    n_jobs : int or None, default=None
        The number of threads of a fit to arrays: None means one, and -1 one for each core. It does not change the
        result. Several classes are fitted in parallel. A fit of two classes with the default solver uses several
        threads if there are at least 200,000 rows. The number of blocks depends only on the number of rows.
    verbose : int, default=0
        With 1, `fit` prints a line for the rounds 1 to 10, 20, 30, ..., 100, 200, ... and for the last one. With 2, it
        prints a line for every round.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_weights) or (n_classes, n_weights), float64
        The weights of the encoded features, or of the basis functions of the feature map.
    intercept_ : ndarray of shape (1,) or (n_classes,), float64
        The loss over pairs does not determine it. It is chosen so that the G-mean on the training rows is largest if rows
        with scores above 0 are predicted positive.
    classes_ : ndarray of shape (n_classes,)
        The class labels. With two classes, the second one is the positive one. With `grade_weight` they are -1 and 1: the
        lowest grade, and the grades above it.
    certificate_ : Certificate
        How close the objective is to its minimum: ``primal``, ``dual``, ``relative_gap``, ``status``, ``rounding`` and
        ``slack``. The page "The certificate" of the documentation explains them.
    certificates_ : list of Certificate
        With several classes: the certificate of each class. `certificate_` does not exist then.
    estimators_ : list
        With several classes: the model of each class against the rest.
    probability_ : ProbabilityMap
        With `calibration`: the map from `decision_function` to probabilities.
    monotone_ : ndarray of shape (n_encoded_features,), int8
        With `monotone`: +1, -1, or 0 for an encoded feature without a direction.
    threshold_ : float
        The threshold on the scale of `decision_function`. It is always 0, also after `set_threshold`, which shifts the
        scores.
    n_passes_ : int
        The number of passes of the fit.
    history_ : DataFrame
        One row for each round, with the columns round, passes, seconds (since the start of the fit), primal, dual and
        relative_gap.
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
    PairwiseRampClassifier : A pair in the wrong order costs at most 1; not convex.
    LinkClassifier : Probabilities from one fit.
    lam_path : One model for each value of `lam`.

    Notes
    -----
    With sample weights, groups or grades, ``sdcd`` and ``sdcd-perm`` draw all pairs with the same probability, and each dual
    variable is bounded by the weight of its pair, which is 1 in the paper. ``msgd`` takes only equal sample weights. The
    ``oam-*`` solvers take weights, but read the rows once: a row of weight 2 takes one step where two equal rows take two.

    A ranking score is not a probability: ``predict_proba`` needs `calibration`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from aucdist import PairwiseHingeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = PairwiseHingeClassifier(lam=1e-3).fit((X - X.mean(axis=0)) / X.std(axis=0), y)
    >>> model.certificate_.relative_gap <= 1e-3
    True

    With bins, the score has steps in each feature. The other half of the rows sets a threshold, and `explain` returns what
    the constant and each feature add to the scores:

    >>> model = PairwiseHingeClassifier(features="bins", lam=1e-2).fit(X[::2], y[::2])
    >>> _ = model.set_threshold(X=X[1::2], y=y[1::2], recall=0.95)
    >>> model.predict(X[17:22])
    array([0, 0, 1, 1, 1])
    >>> model.explain(X[17:22]).shape
    (5, 31)
    """

    solvers = solver_table(AllPairs, SDCD, SDCDPerm, MSGD, OAMInf, OAMSeq, OAMGra)

    solver: Any = "all-pairs"
    penalty: str | None = None
    max_fpr: float | None = None
    max_false_positives: int | None = None

    def _set_weights(self, solution: Solution, blocks: Blocks, intercept_shift: float) -> FitResult:
        fit, c = super()._set_weights(solution, blocks, intercept_shift), solution.certificate
        is_top_only = trained_max_fpr(self, blocks.n_neg) is not None
        if is_top_only and (not self.coef_.any() or c.dual - c.rounding > 1.0 - NEAR_ZERO):
            collapsed = CollapseWarning(
                f"the minimum is near w = 0, where the objective is 1: it is nowhere below {c.dual:.4g}. The positives "
                "cannot be separated from so few of the highest-scoring negatives by a convex loss, and the ranking may be no "
                "better than chance. Use a larger share of the negatives, features that separate the classes better, such as "
                "features='bins', or PairwiseRampClassifier with the same share. If lam is large, try a smaller one"
            )
            fit.warnings.append(collapsed)
        return fit

    def _check_combination(self) -> None:
        super()._check_combination()
        expander = self._expander
        if self.penalty == GroupL1.name and expander is not None and not expander.has_groups:
            raise InputError(
                f"penalty='group-l1' needs a group of weights for each feature, but {type(expander).__name__} mixes all "
                "features: leave out the feature map, or use features='bins'"
            )

    def _solver_options(self, seed: int | None = None) -> dict[str, Any]:
        options = super()._solver_options(seed)
        if self.penalty == GroupL1.name and hasattr(self, "feature_map_"):
            options["feature_groups"] = self.feature_map_.groups()
        return options


@keyword_parameters(**TOP_CONSTRAINTS)
class PairwiseRampClassifier(PairRankingClassifier):
    """Linear ranking by a smoothed AUC over all pairs of a positive and a negative row.

    Minimises ``lam/2 |w|^2 + mean over pairs (i positive, j negative) of ramp(w.(x_i - x_j))``. The ramp of a margin m is 1 if
    m <= -1, 0 if m >= 1, and quadratic between: ``1 - (1 + m)^2 / 2`` below 0 and ``(1 - m)^2 / 2`` above. A pair in the wrong
    order costs at most 1, as in 1 - AUC, and the mean approaches 1 - AUC for a small `lam`. The AUC may be higher than with a
    convex loss if some rows cannot be ranked correctly. But the objective is not convex: the weights are a stationary point,
    and nothing is proved about them. The idea follows Herschtal and Raskutti (2004), who smooth the step with a sigmoid.

    Parameters
    ----------
    lam : float, default=1e-3
        The regularisation strength (scikit-learn's `alpha`). A smaller value makes the ramp steeper. With standardised
        features, try values from 1e-5 to 1e-2.
    max_fpr : float or None, default=None
        Train for the partial AUC, the area under the ROC curve up to this false positive rate, above 0 and at most 1. Only this
        share of the negatives, the highest-scoring ones, counts in the mean. Choose it somewhat larger than the false positive
        rate at which you work: with few negatives in the loss, the fit overfits them. With few negatives in all, use
        `max_false_positives`. The fit starts from certified minima of the pairwise hinge, which count as passes, unless
        `warm_start` gives it another start.
    max_false_positives : int or None, default=None
        Like `max_fpr`, with a number of negatives instead of a share. With sample weights, it is their total weight.
    group_weight : {"pairs", "groups"} or None, default=None
        How groups are weighted if `fit` gets `groups`. With "pairs", the default, every pair counts the same. With "groups",
        every group counts the same, however many pairs it has.
    grade_weight : {"difference", "one"} or None, default=None
        The labels are grades, where larger is more relevant, and a pair is any two rows (of one group) with different grades. Its
        weight is the difference of its grades, or 1: see the page "Groups and ranking" of the documentation.
    monotone : mapping, "auto" or None, default=None
        Features in which the score must rise or fall, such as ``{"age": "increasing", 3: "decreasing"}``, by name or position.
        With ``"auto"``, each feature gets the sign of its weight in a linear model, if five fits, each without a different
        fifth of the rows, agree on it. This works without a feature map, with ``"bins"`` and with ``"leaves"``. The weights are
        a stationary point of the constrained problem.
    features : str, dict, map or None, default=None
        A feature map that replaces the features: ``"bins"``, ``"nystroem"``, ``"leaves"``, a dict such as
        ``{"map": "bins", "interactions": 20}``, or a transformer of `aucdist.maps`. It is fitted to the training rows, and the
        weights belong to its basis functions. Other edges, landmarks or trees are not compared. With ``"auto"``, cross-validation
        within the training rows chooses the map by the AUC, or by another metric:
        ``{"map": "auto", "metric": "average_precision"}``. `lam` is chosen as well if it has its default value. The
        page "How auto chooses" of the documentation lists the candidates. Scale the features first.
    solver : {"lbfgs"}, default="lbfgs"
        L-BFGS, which draws nothing at random.
    tol : float, default=1e-3
        The fit ends when the minimum of a convex majorant, which equals the objective at the weights, is lower by at most this
        share: see `majorant_gap_`.
    max_passes : int, default=1000
        The fit ends with a ConvergenceWarning after this many passes over the data. One pass computes the scores of all rows and
        a gradient.
    warm_start : bool, default=False
        Whether to start from the weights of the last fit.
    random_state : int, RandomState or None, default=None
        Accepted for consistency with other estimators. Nothing is drawn at random.
    calibration : {"gev", "logit", "isotonic"} or None, default=None
        Adds `predict_proba`: a map from scores to probabilities is fitted to out-of-fold scores, which takes five more fits. See
        the page "Calibration" of the documentation. ``logit`` and ``gev`` are links with a slope and an offset, and ``gev`` has a
        shape as well. ``isotonic`` is isotonic regression.
    prior : float or None, default=None
        With `calibration`: the share of positives among future rows, if it differs from that of the training rows, as after
        undersampling.
    n_jobs : int or None, default=None
        The number of threads of a fit to arrays: None means one, and -1 one for each core. It does not change the
        result. Several classes are fitted in parallel. A fit of two classes with the default solver uses several
        threads if there are at least 200,000 rows. The number of blocks depends only on the number of rows.
    verbose : int, default=0
        With 1, `fit` prints a line for the rounds 1 to 10, 20, 30, ..., 100, 200, ... and for the last one. With 2, it
        prints a line for every round.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_weights) or (n_classes, n_weights), float64
        The weights of the encoded features, or of the basis functions of the feature map.
    intercept_ : ndarray of shape (1,) or (n_classes,), float64
        Chosen so that the G-mean on the training rows is largest if rows with scores above 0 are predicted positive.
    classes_ : ndarray of shape (n_classes,)
        The class labels. With two classes, the second one is the positive one. With `grade_weight` they are -1 and 1: the
        lowest grade, and the grades above it.
    certificate_ : Certificate
        The fields ``primal``, ``dual``, ``relative_gap``, ``status``, ``rounding`` and ``slack``. No lower bound other than
        0 is known, so `dual` is 0 and the relative gap is 1. The status is ``stationary`` if `tol` was reached.
    certificates_ : list of Certificate
        With several classes: the certificate of each class. `certificate_` does not exist then.
    estimators_ : list
        With several classes: the model of each class against the rest.
    majorant_gap_ : float
        The number that is compared with `tol`. With `max_fpr`, scores may tie at the boundary of the negatives that count.
        The number may then stay above `tol` although no step decreases the objective, and the status is ``max-steps``.
    probability_ : ProbabilityMap
        With `calibration`: the map from `decision_function` to probabilities.
    monotone_ : ndarray of shape (n_encoded_features,), int8
        With `monotone`: +1, -1, or 0 for an encoded feature without a direction.
    threshold_ : float
        The threshold on the scale of `decision_function`. It is always 0, also after `set_threshold`, which shifts the
        scores.
    n_passes_ : int
        The number of passes of the fit.
    history_ : DataFrame
        One row for each round, with the columns round, passes, seconds (since the start of the fit), primal, dual and
        relative_gap.
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
    PairwiseHingeClassifier : A convex loss, with a certificate.

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

    solvers = solver_table(RampLBFGS)

    solver: Any = "lbfgs"
    max_fpr: float | None = None
    max_false_positives: int | None = None

    def _set_weights(self, solution: Solution, blocks: Blocks, intercept_shift: float) -> FitResult:
        if isinstance(solution.last, MajorantRound):
            self.majorant_gap_ = solution.last.majorant_gap
        return super()._set_weights(solution, blocks, intercept_shift)


@keyword_parameters()
class PairwiseSquareClassifier(PairRankingClassifier):
    """Linear ranking by the mean square over all pairs of a positive and a negative row.

    Minimises ``lam/2 |w|^2 + mean over pairs (i positive, j negative) of (1 - w.(x_i - x_j))^2``. The objective is strongly
    convex, so its gradient bounds by how much it exceeds its minimum. It is that of Luan and Gao (2018), whose lambda is
    `lam`.

    Parameters
    ----------
    lam : float, default=1e-3
        The regularisation strength (scikit-learn's `alpha`). With standardised features, try values from 1e-4 to 1.
    group_weight : {"pairs", "groups"} or None, default=None
        Only for the solver ``exact`` with up to 1,000 weights. How groups are weighted if `fit` gets `groups`. With "pairs", the
        default, every pair counts the same. With "groups", every group counts the same, however many pairs it has.
    grade_weight : {"difference", "one"} or None, default=None
        Only for the solver ``exact`` with up to 1,000 weights. The labels are grades, where larger is more relevant, and a pair
        is any two rows (of one group) with different grades. Its weight is the difference of its grades, or 1: see the page
        "Groups and ranking" of the documentation.
    monotone : mapping, "auto" or None, default=None
        Only for the solver ``exact`` with up to 1,000 weights. Features in which the score must rise or fall, such as ``{"age":
        "increasing", 3: "decreasing"}``, by name or position. With ``"auto"``, each feature gets the sign of its weight in a
        linear model, if five fits, each without a different fifth of the rows, agree on it. This works without a feature map,
        and with ``"bins"`` or ``"leaves"``.
    features : str, dict, map or None, default=None
        A feature map that replaces the features: ``"bins"``, ``"nystroem"``, ``"leaves"``, a dict such as
        ``{"map": "bins", "interactions": 20}``, or a transformer of `aucdist.maps`. It is fitted to the training rows, and the
        weights belong to its basis functions. The certificate holds for the map as it is: it does not compare other edges,
        landmarks or trees. With ``"auto"``, cross-validation within the training rows chooses the map by the AUC, or by another
        metric: ``{"map": "auto", "metric": "average_precision"}``. `lam` is chosen as well if it has its default value. The
        page "How auto chooses" of the documentation lists the candidates. Scale the features first.
    solver : str, dict or Solver, default="exact"
        ``exact`` solves a linear system, directly up to 1,000 features and by conjugate gradients beyond; it is deterministic.
        ``svrg`` takes variance-reduced stochastic gradients. ``tpauc`` takes two passes, and ``opauc`` one. The last two take a
        fixed number of steps, so they may end above `tol`, with a ConvergenceWarning. A name stands for the default parameters of
        the solver. Give other parameters as ``{"name": "tpauc", "epochs": 5}`` or ``TPAUC(epochs=5)``, a class of
        `aucdist.papers.tpauc`.
    tol : float, default=1e-3
        The fit ends when the relative gap, ``(primal - dual) / primal`` with the largest possible rounding errors, is at most
        `tol`.
    max_passes : int, default=1000
        The fit ends with a ConvergenceWarning after this many passes over the data. One pass computes the scores of all rows and
        a gradient.
    warm_start : bool, default=False
        Whether to start from the weights of the last fit. The closed form of ``exact`` needs no start.
    random_state : int, RandomState or None, default=None
        The seed of the rows that ``svrg`` draws, of their order in ``tpauc`` and ``opauc``, and of the sketch of ``opauc``.
    calibration : {"gev", "logit", "isotonic"} or None, default=None
        Adds `predict_proba`: a map from scores to probabilities is fitted to out-of-fold scores, which takes five more fits. See
        the page "Calibration" of the documentation. ``logit`` and ``gev`` are links with a slope and an offset, and ``gev`` has a
        shape as well. ``isotonic`` is isotonic regression.
    prior : float or None, default=None
        With `calibration`: the share of positives among future rows, if it differs from that of the training rows, as after
        undersampling.
    n_jobs : int or None, default=None
        The number of threads of a fit to arrays: None means one, and -1 one for each core. It does not change the
        result. Several classes are fitted in parallel. A fit of two classes with the default solver uses several
        threads if there are at least 200,000 rows. The number of blocks depends only on the number of rows.
    verbose : int, default=0
        With 1, `fit` prints a line for the rounds 1 to 10, 20, 30, ..., 100, 200, ... and for the last one. With 2, it
        prints a line for every round.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_weights) or (n_classes, n_weights), float64
        The weights of the encoded features, or of the basis functions of the feature map.
    intercept_ : ndarray of shape (1,) or (n_classes,), float64
        Chosen so that the G-mean on the training rows is largest if rows with scores above 0 are predicted positive.
    classes_ : ndarray of shape (n_classes,)
        The class labels. With two classes, the second one is the positive one. With `grade_weight` they are -1 and 1: the
        lowest grade, and the grades above it.
    certificate_ : Certificate
        How close the objective is to its minimum: ``primal``, ``dual``, ``relative_gap``, ``status``, ``rounding`` and
        ``slack``. The page "The certificate" of the documentation explains them.
    certificates_ : list of Certificate
        With several classes: the certificate of each class. `certificate_` does not exist then.
    estimators_ : list
        With several classes: the model of each class against the rest.
    probability_ : ProbabilityMap
        With `calibration`: the map from `decision_function` to probabilities.
    monotone_ : ndarray of shape (n_encoded_features,), int8
        With `monotone`: +1, -1, or 0 for an encoded feature without a direction.
    threshold_ : float
        The threshold on the scale of `decision_function`. It is always 0, also after `set_threshold`, which shifts the
        scores.
    n_passes_ : int
        The number of passes of the fit.
    history_ : DataFrame
        One row for each round, with the columns round, passes, seconds (since the start of the fit), primal, dual and
        relative_gap.
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
    PairwiseHingeClassifier : The default choice for a ranking.

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

    solvers = solver_table(Exact, SVRG, TPAUC, OPAUC)

    solver: Any = "exact"


@keyword_parameters()
class UnivariateRankingClassifier(RankingClassifier):
    """Linear ranking by a loss of single rows, weighted by class.

    Minimises ``lam/2 |w|^2 + min over b of 1/2 mean over positives of loss(w.x + b) + 1/2 mean over negatives of loss(-w.x -
    b)``, where the loss of a margin m is ``exp(-m)`` or ``(1 - m)^2``, after Kotlowski, Dembczynski and Huellermeier (2011).
    The certificate is a bound on how far the objective exceeds its minimum.

    Parameters
    ----------
    lam : float, default=1e-3
        The regularisation strength (scikit-learn's `alpha`).
    features : str, dict, map or None, default=None
        A feature map that replaces the features: ``"bins"``, ``"nystroem"``, ``"leaves"``, a dict such as
        ``{"map": "bins", "interactions": 20}``, or a transformer of `aucdist.maps`. It is fitted to the training rows, and the
        weights belong to its basis functions. The certificate holds for the map as it is: it does not compare other edges,
        landmarks or trees. With ``"auto"``, cross-validation within the training rows chooses the map by the AUC, or by another
        metric: ``{"map": "auto", "metric": "average_precision"}``. `lam` is chosen as well if it has its default value. The
        page "How auto chooses" of the documentation lists the candidates. Scale the features first.
    solver : str, dict or Solver, default="lbfgs"
        ``lbfgs`` minimises the exponential loss until the gap is at most `tol`. ``uni-exp`` and ``uni-squ`` are the online
        gradient descent of the paper, for the exponential and for the square loss. They take a fixed number of steps and usually
        end above `tol`, with a ConvergenceWarning. A name stands for the default parameters of the solver. Give other parameters
        as ``{"name": "uni-exp", "epochs": 5}`` or ``UniExp(epochs=5)``, a class of `aucdist.papers.tpauc`.
    tol : float, default=1e-3
        The fit ends when the relative gap, ``(primal - dual) / primal`` with the largest possible rounding errors, is at most
        `tol`.
    max_passes : int, default=1000
        The fit ends with a ConvergenceWarning after this many passes over the data. One pass computes the scores of all rows and
        a gradient.
    warm_start : bool, default=False
        Whether to start from the weights of the last fit.
    random_state : int, RandomState or None, default=None
        The seed of the order of the rows, for ``uni-exp`` and ``uni-squ``.
    calibration : {"gev", "logit", "isotonic"} or None, default=None
        Adds `predict_proba`: a map from scores to probabilities is fitted to out-of-fold scores, which takes five more fits. See
        the page "Calibration" of the documentation. ``logit`` and ``gev`` are links with a slope and an offset, and ``gev`` has a
        shape as well. ``isotonic`` is isotonic regression.
    prior : float or None, default=None
        With `calibration`: the share of positives among future rows, if it differs from that of the training rows, as after
        undersampling.
    n_jobs : int or None, default=None
        The number of threads of a fit to arrays: None means one, and -1 one for each core. It does not change the
        result. Several classes are fitted in parallel. A fit of two classes with the default solver uses several
        threads if there are at least 200,000 rows. The number of blocks depends only on the number of rows.
    verbose : int, default=0
        With 1, `fit` prints a line for the rounds 1 to 10, 20, 30, ..., 100, 200, ... and for the last one. With 2, it
        prints a line for every round.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_weights) or (n_classes, n_weights), float64
        The weights of the encoded features, or of the basis functions of the feature map.
    intercept_ : ndarray of shape (1,) or (n_classes,), float64
        Chosen so that the G-mean on the training rows is largest if rows with scores above 0 are predicted positive.
    classes_ : ndarray of shape (n_classes,)
        The class labels. With two classes, the second one is the positive one.
    certificate_ : Certificate
        How close the objective is to its minimum: ``primal``, ``dual``, ``relative_gap``, ``status``, ``rounding`` and
        ``slack``. The page "The certificate" of the documentation explains them.
    certificates_ : list of Certificate
        With several classes: the certificate of each class. `certificate_` does not exist then.
    estimators_ : list
        With several classes: the model of each class against the rest.
    probability_ : ProbabilityMap
        With `calibration`: the map from `decision_function` to probabilities.
    threshold_ : float
        The threshold on the scale of `decision_function`. It is always 0, also after `set_threshold`, which shifts the
        scores.
    n_passes_ : int
        The number of passes of the fit.
    history_ : DataFrame
        One row for each round, with the columns round, passes, seconds (since the start of the fit), primal, dual and
        relative_gap.
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
    PairwiseHingeClassifier : A loss over pairs of rows.

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

    solvers = solver_table(UnivariateLBFGS, UniExp, UniSqu)

    solver: Any = "lbfgs"

"""The margin-mean support vector machine, fitted to a sample by zeroth-order (U-ZOVR) or by first-order steps."""

from collections.abc import Iterator
from dataclasses import field
from typing import Any

import numpy as np
from numpy import ndarray
from sklearn.base import clone
from sklearn.utils import check_random_state

from aucdist.data.block import Block
from aucdist.data.gaussian_kernel import KernelBlock, gaussian_kernel, median_distance
from aucdist.data.preprocess import AS_READ, Preprocessor
from aucdist.engine.blocks import Blocks, LocalBlocks, all_rows
from aucdist.engine.view import ViewBlocks
from aucdist.errors import InputError
from aucdist.estimators.base import BlockClassifier
from aucdist.estimators.display import RankingWarning, RoundPrinter
from aucdist.estimators.fitting import FitResult, WarmStart, check_and_map_rows, record_solution
from aucdist.estimators.scores import count_scores, map_matrix
from aucdist.kernels.random import hash_ids
from aucdist.maps.base import moments_of, with_weight
from aucdist.metrics.counts import ScoreCounts, dot
from aucdist.metrics.decisions import best_threshold
from aucdist.metrics.ranking import auc
from aucdist.papers.zovr import SVRG, ZOSGD, ZOVR
from aucdist.parameters import NOT_NEGATIVE, Condition, OneOf, above_0, count, frozen, keyword_parameters
from aucdist.sampling import DistanceUnderSampler, Hyperplane, Rule
from aucdist.solvers.base import Round, Solution, solve, solver_table

CHUNK_BYTES = 2**24
"""The number of bytes of kernel values that are computed at a time if they are not stored. They fit into the caches of a core."""

GRAM_BYTES = 2**30
"""The default of `gram_bytes`: 1 GiB."""
MAX_AUC_BEHIND = 0.02
"""The AUC by which a sample's fit may fall behind the sampler's hyperplane before all rows are taken."""
ROWS_OF_MEDIAN = 1000
"""The number of rows from which the median distance is estimated."""


@frozen
class ScaledSample:
    """Scales the rows of a fit, samples them, and leaves out rows of weight 0."""

    scaling: Preprocessor
    rule: Rule | None = None

    def __call__(self, block: Block) -> Block:
        """Return the rows of a block that the fit uses."""
        block = self.scaling.transform(block)
        return with_weight(block if self.rule is None else self.rule(block))


@frozen
class GramRows:
    """Replaces rows by their kernel values with all rows of the fit, stored or computed in chunks when they are needed."""

    vectors: Any
    sigma: float
    at_once: int | None

    def __call__(self, block: Block) -> Block:
        """Return a block with the rows of the Gram matrix."""
        if self.at_once is None:
            return block.with_X(gaussian_kernel(block.X, self.vectors, self.sigma))
        return KernelBlock(**vars(block), vectors=self.vectors, sigma=self.sigma, at_once=self.at_once)


@frozen
class KernelMachine:
    """A model whose scores are sums of Gaussian kernels.

    Parameters
    ----------
    scaling : Preprocessor
        The scaling of rows before they are scored. The rows in `vectors` are scaled already.
    vectors : ndarray or sparse of shape (n_vectors, n_features)
        The support vectors.
    sigma : float
        The width of the kernel.
    alpha : ndarray of shape (n_vectors,), float64
        The coefficients of the support vectors.
    """

    scaling: Preprocessor
    vectors: Any
    sigma: float
    alpha: ndarray

    def scores(self, block: Block) -> ndarray:
        """Return the score of each row. A limited number of rows is scored at a time."""
        gram = GramRows(self.vectors, self.sigma, max(1, CHUNK_BYTES // (8 * len(self.alpha))))
        return gram(self.scaling.transform(block)).scores(self.alpha)


def auc_of(blocks: Blocks, scaling: Preprocessor, w: ndarray) -> float:
    """Return the AUC of the scores ``X w``, where X are the scaled rows."""
    return auc(count_scores(ViewBlocks(blocks, ScaledSample(scaling)), w))


def rows_at_once(n_rows: int, n_blocks: int, bound: int) -> int | None:
    """Return how many rows of the Gram matrix a block may hold at a time, or None if it can keep all of them.

    Parameters
    ----------
    n_rows : int
        The number of rows of the fit.
    n_blocks : int
        The number of blocks.
    bound : int
        The largest number of bytes, for all blocks together.

    Returns
    -------
    int or None

    Raises
    ------
    InputError
        If not even one row for each block is within the bound.
    """
    row = 8 * n_rows
    if row * n_rows <= bound:
        return None
    if row * n_blocks > bound:
        raise InputError(
            f"one row of the Gram matrix for each block ({n_rows} values for each of {n_blocks}) takes {row * n_blocks} bytes, "
            f"and gram_bytes is {bound}: raise gram_bytes, or sample fewer rows"
        )
    return min(max(1, CHUNK_BYTES // row), bound // (row * n_blocks))


def standard_scaling(blocks: Blocks) -> Preprocessor:
    """Return the scaling that gives each feature mean 0 and variance 1 over all rows. Sparse rows are not centred."""
    # Values that overflow raise an InputError below.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        summary = blocks.sum(moments_of)
        total = summary["moments"]
        factor = 1.0 / total.deviation
    usable = np.isfinite(total.mean + factor) & (factor > 0)
    if not usable.all():
        raise InputError(
            f"feature {int(np.argmin(usable))} (counted from 0): its values are too large or too small to be scaled; "
            "use scale=None"
        )
    return Preprocessor((), "standard", None if any(summary["sparse"]) else total.mean, factor)


@keyword_parameters(
    kernel=OneOf(("linear", "rbf")),
    scale=OneOf(("standard",), optional=True),
    lam1=NOT_NEGATIVE,
    lam2=above_0(),
    sigma=above_0(("median",), optional=True),
    gram_bytes=count(optional=True),
    sampler=Condition(
        lambda v: v is None or v == "auto" or hasattr(v, "fit_resample"),
        "'auto', None or an object with fit_resample",
    ),
)
class MarginMeanClassifier(BlockClassifier):
    r"""A support vector machine that also widens the mean margin, trained on a sample of the larger class.

    Minimises ``|w|^2 / 2 - lam1 mean of D_i y_i w.x_i + lam2 mean of max(0, 1 - y_i w.x_i)`` over the sample, or the same in the
    space of a Gaussian kernel, after Lu, Zhang and Cai (2019), algorithms 1 to 4. Here D_i is the size of the other class divided
    by the size of the class of row i. The certificate is a bound on how far the objective exceeds its minimum. Its ``primal`` and
    ``dual`` include the constant ``lam1^2 |c|^2 / 2``, where c is the mean of D_i y_i x_i. With it, the objective is a sum of
    squares and losses.

    Parameters
    ----------
    kernel : {"linear", "rbf"}, default="linear"
        ``rbf`` is exp(-\|x - x'\|^2 / sigma^2). Its Gram matrix is kept in blocks beside the rows, or is computed again in
        each pass, some rows at a time: see `gram_bytes`.
    lam1, lam2 : float, default=1.0, 10.0
        The weights of the margin mean, at least 0, and of the loss, above 0. A larger lam1 finds more of the positives.
    features : str, dict, map or None, default=None
        A feature map that is fitted to the training rows before anything else and makes dense rows: ``"nystroem"``, a dict
        with its parameters, or a transformer of `aucdist.maps`.
    scale : {"standard", None}, default="standard"
        Whether to give each feature mean 0 and variance 1. The sampler gets features that are scaled over all rows, and the
        fit gets features that are scaled over the rows of the fit. None leaves the features as they are, as the paper does.
        Sparse rows are not centred.
    sampler : "auto", None or object, default="auto"
        The sampler that chooses the rows of the fit, after scaling. ``"auto"`` is a `DistanceUnderSampler` with its default
        parameters. If the AUC of this fit on all training rows is lower by 0.02 or more than that of the sampler's hyperplane,
        the model is fitted to all rows, with a RankingWarning (only with ``kernel="linear"``). None takes all rows. Another
        object needs a method `fit_resample`. Unless it is a `DistanceUnderSampler`, the rows must be in one block without
        weights.
    sigma : float, "median" or None, default=None
        With ``kernel="rbf"``, the width of the kernel. None and ``"median"`` mean the median distance between rows of the fit.
    gram_bytes : int or None, default=None
        With ``kernel="rbf"``, the largest number of bytes for kernel values, over all workers. None means 1 GiB, which is
        enough for the kernel values of 11,585 rows. If more bytes are needed, the kernel values are computed again in each
        pass. This takes more time and gives the same numbers up to rounding.
    solver : str, dict or Solver, default="svrg"
        ``svrg`` takes variance-reduced steps along gradients. It is the only one that usually reaches `tol`. ``zovr`` is the
        solver of the paper, with variance-reduced steps by values of the loss, and ``zo-sgd`` takes plain steps. A fit that has
        not reached `tol` after `n_outer` rounds ends there, with a ConvergenceWarning. A name stands for the default parameters
        of the solver. Give other parameters as ``{"name": "zovr", "n_outer": 50}`` or ``ZOVR(n_outer=50)``, a class of
        `aucdist.papers.zovr`.
    tol : float, default=1e-3
        The fit ends when the relative gap, ``(primal - dual) / primal`` with the largest possible rounding errors, is at most
        `tol`.
    max_passes : int, default=10000
        The fit ends with a ConvergenceWarning after this many passes over the rows of the fit. One pass computes
        the scores of all rows and a gradient.
    random_state : int, RandomState or None, default=None
        The seed of the sampler ``"auto"``, of the directions, and of the rows that are drawn.
    n_jobs : int or None, default=None
        The number of threads of a fit to arrays with several classes, which are fitted at the same time: None means one,
        and -1 one for each core. It does not change the result.
    verbose : int, default=0
        With 1, `fit` prints a line for the rounds 1 to 10, 20, 30, ..., 100, 200, ... and for the last one. With 2, it
        prints a line for every round.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_weights) or (n_classes, n_weights), float64
        With ``kernel="linear"``, the weights of the encoded features, or of the basis functions of the feature map, before
        scaling.
    intercept_ : ndarray of shape (1,) or (n_classes,), float64
        Chosen so that the G-mean on all training rows is largest if rows with scores above 0 are predicted positive.
    classes_ : ndarray of shape (n_classes,)
        The class labels. With two classes, the second one is the positive one.
    certificate_ : Certificate
        How close the objective over the sample is to its minimum: ``primal``, ``dual``, ``relative_gap``, ``status``,
        ``rounding`` and ``slack``. The page "The certificate" of the documentation explains them.
    certificates_ : list of Certificate
        With several classes: the certificate of each class. `certificate_` does not exist then.
    estimators_ : list
        With several classes: the model of each class against the rest.
    support_vectors_ : ndarray or sparse of shape (n_sample, n_features), float32 or float64
        With ``kernel="rbf"``, the rows of the fit, scaled.
    dual_coef_ : ndarray of shape (1, n_sample), float64
        With ``kernel="rbf"``, the coefficients of these rows.
    sigma_ : float
        With ``kernel="rbf"``, the width of the kernel.
    margin_threshold_ : float
        The threshold that the fit chose, as a margin. The paper predicts by the sign of ``decision_function(X) +
        margin_threshold_``.
    sample_counts_ : tuple of int
        The numbers of negatives and positives in the fit.
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
    HingeClassifier : The hinge over all rows.
    aucdist.sampling.DistanceUnderSampler : The sampler alone.

    Notes
    -----
    There is no ``predict_proba``: a margin is not a probability.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from aucdist import MarginMeanClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = MarginMeanClassifier(random_state=0).fit(X, y)
    >>> model.certificate_.relative_gap <= 1e-3
    True
    """

    solvers = solver_table(SVRG, ZOVR, ZOSGD)

    kernel: str = "linear"
    solver: Any = "svrg"
    sampler: Any = "auto"
    lam1: float = 1.0
    lam2: float = 10.0
    max_passes: int = 10_000
    sigma: float | str | None = None
    gram_bytes: int | None = None
    scale: str | None = "standard"
    sample_counts_: tuple[int, int] = field(init=False)
    _scaling: Preprocessor = field(init=False)

    def _check_combination(self) -> None:
        super()._check_combination()
        for name in ("sigma", "gram_bytes"):
            if getattr(self, name) is not None and self.kernel != "rbf":
                raise InputError(f"{name} applies only to kernel='rbf': set {name}=None or kernel='rbf'")

    def _fit(self, rows: Blocks, printer: RoundPrinter, start: WarmStart | None, *, keep_counts: bool) -> FitResult:
        """Fit a sample of the rows.

        If the sampler's hyperplane ranks the rows much better than this fit, fit all rows instead.
        """
        blocks = check_and_map_rows(self, rows, start)
        seeds = check_random_state(self.random_state).randint(2**31, size=2).tolist()
        scaling = standard_scaling(blocks) if self.scale == "standard" else AS_READ
        sample, plane = self._sample(blocks, scaling, seeds[0])
        rounds, self._scaling = self._rounds(sample, scaling, seeds)
        solution = solve(rounds, tol=self.tol, max_passes=self.max_passes, callback=printer)
        warned = list[Warning]()
        if self.sampler == "auto" and self.kernel == "linear" and plane is not None:
            by_plane, area = auc_of(blocks, scaling, plane.w), auc_of(blocks, self._scaling, solution.w)
            if area < by_plane - MAX_AUC_BEHIND:
                unsampled = ViewBlocks(blocks, ScaledSample(scaling))
                all_rounds, scaling_of_all = self._rounds(unsampled, scaling, seeds)
                all_rows_solution = solve(all_rounds, tol=self.tol, max_passes=self.max_passes, callback=printer)
                area_of_every = auc_of(blocks, scaling_of_all, all_rows_solution.w)
                if area_of_every >= area:  # otherwise the fit to all rows is even worse
                    solution, self._scaling, sample = all_rows_solution, scaling_of_all, unsampled
                    text = (
                        f"the rows that the sampler chose give an AUC of {area:.3g} on all training rows, but the sampler's "
                        f"hyperplane has {by_plane:.3g}. The model was therefore fitted to all rows, with an AUC of "
                        f"{area_of_every:.3g}. Set sampler=None to do this at once"
                    )
                    warned.append(RankingWarning(text))
        self.sample_counts_ = (sample.n_neg, sample.n_pos)
        fit = FitResult(self._set_weights(solution, blocks), warnings=warned)
        return record_solution(self, solution, fit, printer, blocks, keep_counts=keep_counts)

    def _rounds(self, sample: Blocks, scaling: Preprocessor, seeds: list[int]) -> tuple[Iterator[Round], Preprocessor]:
        """Return the rounds of the fit of a sample, and the scaling of the rows for which the solution holds."""
        if 0 in (sample.n_neg, sample.n_pos):
            raise InputError(
                f"the sampler left {sample.n_neg} negative and {sample.n_pos} positive rows, but both classes are "
                "needed: change its parameters, or set sampler=None"
            )
        if self.scale == "standard" and self.sampler is not None:
            # The model has no intercept, so the boundary must pass through the mean of the sample.
            sample_scaling = standard_scaling(sample)
            assert scaling.factor is not None
            assert sample_scaling.factor is not None
            shift = None
            if scaling.shift is not None and sample_scaling.shift is not None:
                shift = scaling.shift + sample_scaling.shift / scaling.factor
            scaling = Preprocessor((), "standard", shift, scaling.factor * sample_scaling.factor)
            sample = ViewBlocks(sample, sample_scaling.transform)
        if self.kernel == "rbf":
            bound = GRAM_BYTES if self.gram_bytes is None else self.gram_bytes
            at_once = rows_at_once(sample.n_samples, sample.n_blocks, bound)
            self.support_vectors_ = all_rows(sample).X.copy()
            if isinstance(self.sigma, str | None):  # None and "median"
                few = np.argsort(hash_ids(np.arange(sample.n_samples), seeds[0]))[:ROWS_OF_MEDIAN]
                self.sigma_ = median_distance(self.support_vectors_[few])
            else:
                self.sigma_ = float(self.sigma)
            sample = ViewBlocks(sample, GramRows(self.support_vectors_, self.sigma_, at_once))
        options = self._solver_options(seeds[1])
        return self.resolved_solver.rounds(sample, self.lam1, self.lam2, gram=self.kernel == "rbf", **options), scaling

    def _sample(self, blocks: Blocks, scaling: Preprocessor, seed: int) -> tuple[Blocks, Hyperplane | None]:
        """Return the rows of the fit, scaled, and the default hyperplane if it selected them."""
        scaled = ViewBlocks(blocks, ScaledSample(scaling))
        if self.sampler is None:
            return scaled, None
        sampler = DistanceUnderSampler(random_state=seed) if self.sampler == "auto" else self.sampler
        if isinstance(sampler, DistanceUnderSampler):
            sampler.check_parameters()
            # Not a clone, whose `svm` would not be fitted. Finding the rule does not change the sampler.
            rule = sampler.rule(scaled)
            plane = rule.model if isinstance(rule.model, Hyperplane) else None
            return ViewBlocks(blocks, ScaledSample(scaling, rule)), plane
        if scaled.n_blocks > 1 or scaled.has_weights:
            raise InputError(
                f"sampler {type(sampler).__name__} needs rows in one block and without weights: use DistanceUnderSampler instead"
            )
        rows = all_rows(scaled)
        labels = self.classes_[(rows.y > 0).astype(int)]
        X, y = clone(sampler, safe=False).fit_resample(rows.X, labels)
        return LocalBlocks([Block.of(X, np.where(y == self.classes_[1], 1, -1))]), None

    def _set_weights(self, solution: Solution, blocks: Blocks) -> ScoreCounts:
        """Set the weights and the threshold, and return the counts of the rows' scores."""
        if self.kernel == "rbf":
            self.dual_coef_ = solution.w[np.newaxis, :]
            counts = count_scores(blocks, self._machine().scores)
            self.margin_threshold_ = threshold = best_threshold(counts)
        else:
            w = solution.w if self._scaling.factor is None else solution.w * self._scaling.factor
            offset = 0.0 if self._scaling.shift is None else -dot(w, self._scaling.shift)
            self.coef_ = w[np.newaxis, :]
            counts = count_scores(blocks, w)
            threshold = best_threshold(counts)
            self.margin_threshold_ = threshold + offset
        self.intercept_ = np.array([0.0 - threshold])
        return counts

    def _scores_without_intercept(self, X: Any) -> ndarray:
        block = map_matrix(X, self._map)
        return block.scores(self.coef_[0]) if hasattr(self, "coef_") else self._machine().scores(block)

    def _machine(self) -> KernelMachine:
        return KernelMachine(self._scaling, self.support_vectors_, self.sigma_, self.dual_coef_[0])

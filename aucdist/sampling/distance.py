"""Undersampling by the distance to a separating hyperplane: the nearer a row of the larger class, the likelier it stays.

After Lu, Zhang & Cai, "Zeroth order optimization algorithm based on undersampling" (Journal of Nanjing University of
Aeronautics & Astronautics 51(5), 2019), algorithms 1 and 2 (U1, U2). The print measures the bins of (4) from 0; here they
begin at the least distance, else there could be no row in the nearest, and a rate of 0 or less for the farthest. U2 keeps the
rows nearest the hyperplane (the print sorts in descending order, but wants the near ones) and samples them by (4) as well.
The print's hyperplane is that of a support vector machine whose classes weigh as much as they have rows; on lopsided
classes that one is often w = 0, from which all rows are equally far. By default ours weighs both classes alike.

Whether a row stays is decided by its distance and by a random number from its ``row_id`` and the seed. So for a given
hyperplane the sample depends neither on the workers nor on how the rows lie in blocks; and the default hyperplane, found to a
gap of 1 %, depends on the blocks alone.
"""

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import check_is_fitted

from aucdist.data.block import Block, as_rows
from aucdist.data.split import scrambled
from aucdist.engine.blocks import Blocks, LocalBlocks, Summary, block_seed, without_rows
from aucdist.engine.mapped import MappedBlocks
from aucdist.errors import InputError, unknown
from aucdist.kernels.rows import project
from aucdist.sampling.classes import checked
from aucdist.solvers.base import solve
from aucdist.solvers.hinge.dual import hinge_sdcd

METHODS = ("auto", "u1", "u2")
LOPSIDED = 10.0
"""From this imbalance on `auto` takes u2: the paper's border."""

COST = 1.0
"""The lam2 of (1) for the default hyperplane."""

TOL, MAX_PASSES = 1e-2, 100
"""Of the default hyperplane: rates change little with it."""

DIGIT = 8
N_DIGITS = 2**DIGIT


@dataclass(frozen=True, eq=False)
class Hyperplane:
    """The default hyperplane, w.x + b = 0."""

    w: np.ndarray
    b: float

    def decision_function(self, X: Any) -> np.ndarray:
        """Return w.x + b for each row."""
        out = np.empty(X.shape[0])
        project(as_rows(X), self.w, out)
        return out + self.b


@dataclass(frozen=True, eq=False)
class Rule:
    """Which rows stay.

    Attributes
    ----------
    model : object
        With `decision_function`; distances are its sizes, for a common factor changes nothing.
    majority : int
        The larger class, -1 or 1.
    low, high : float
        The least and the greatest distance among the rows to be sampled.
    last_lot : int
        Of the rows at the greatest distance those with a lot up to this take part.
    n_bins : int
    seed : int
    """

    model: Any
    majority: int
    low: float
    high: float
    last_lot: int
    n_bins: int
    seed: int

    def rates(self, distances: np.ndarray) -> np.ndarray:
        """Return the chance of each row to stay, equation (4), without regard to `high`."""
        width = (self.high - self.low) / self.n_bins
        number = np.ceil((distances - self.low) / width)
        return 1.0 - (np.clip(number, 1, self.n_bins) - 1) / self.n_bins

    def stays(self, block: Block) -> np.ndarray:
        """Return which rows stay, bool of shape (n_samples,); rows of weight 0 never do."""
        there = block.weights() > 0
        which, near, lots = _majority(block, self.model, self.majority, self.seed)
        near_enough = (near < self.high) | ((near == self.high) & (lots <= np.uint64(self.last_lot)))
        chance = (scrambled(block.row_id[which], block_seed(self.seed, 1, 0)) >> np.uint64(11)) * 2.0**-53
        there[which] = near_enough & (chance < self.rates(near))
        return there

    def __call__(self, block: Block) -> Block:
        """Return the block of the rows that stay."""
        return block.take(np.flatnonzero(self.stays(block)), index=block.index)


class DistanceUnderSampler(BaseEstimator):
    """Leave out rows of the larger class, the farther from a hyperplane the likelier.

    Parameters
    ----------
    method : {"auto", "u1", "u2"}, default="auto"
        ``u1``: cut the range of distances into `n_bins` equal parts; a row in the j-th stays with the chance
        1 - (j - 1) / n_bins. ``u2``: the same among the `ratio` times n_minority rows nearest the hyperplane; the others go.
        ``auto``: u1 where the larger class has less than 10 times the rows of the smaller, else u2.
    n_bins : int, default=10
        The paper's m, which it does not tell; at least 2, for with one every row would stay.
    ratio : float, default=10
        ``u2``: rows to sample from for each row of the smaller class.
    svm : object or None, default=None
        What tells the distance: a classifier with `decision_function`, linear or with a kernel, fitted or not. None is a
        linear support vector machine with C = 1 whose classes weigh alike, by `aucdist.solvers.hinge.dual`. Scale the features
        first, and for a fitted one as they were for its fit.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    sample_indices_ : ndarray of shape (n_kept,), int64
        Positions of the rows that stay, ascending.
    rule_ : Rule
        Which rows stay.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_breast_cancer
    >>> from aucdist.sampling import DistanceUnderSampler
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = (X - X.mean(axis=0)) / X.std(axis=0)
    >>> X_kept, y_kept = DistanceUnderSampler(random_state=0).fit_resample(X, y)
    >>> int(np.sum(y == 0)), int(np.sum(y_kept == 0)), len(y_kept) < len(y)  # all of the smaller class stay
    (212, 212, True)
    """

    def __init__(
        self,
        *,
        method: str = "auto",
        n_bins: int = 10,
        ratio: float = 10.0,
        svm: Any = None,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.method = method
        self.n_bins = n_bins
        self.ratio = ratio
        self.svm = svm
        self.random_state = random_state

    def fit_resample(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Return the rows that stay, and their labels, in the order and the type they came in.

        Parameters
        ----------
        X : array-like, sparse matrix or array, or DataFrame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Two classes.

        Raises
        ------
        InputError
            A ValueError: for a parameter outside its range, or rows that are all equally far.
        """
        self.check_parameters()
        rows, labels, (minority, _) = checked(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32])
        block = Block.of(rows, np.where(labels == minority, 1, -1))
        self.rule_ = self.rule(LocalBlocks([block]))
        self.sample_indices_ = np.flatnonzero(self.rule_.stays(block))
        return _safe_indexing(X, self.sample_indices_), _safe_indexing(y, self.sample_indices_)

    def resample_blocks(self, blocks: Blocks) -> Blocks:
        """Return the rows that stay, where they are; each row must have a ``row_id`` of its own.

        From a given hyperplane this takes two passes, one for the distances and one for the sample, and up to sixteen
        reductions of 256 counts that read no row.
        """
        self.check_parameters()
        return MappedBlocks(blocks, self.rule(blocks))

    def rule(self, blocks: Blocks) -> Rule:
        """Return which rows of the blocks stay."""
        n_minority, n_majority = sorted((blocks.n_pos, blocks.n_neg))
        if n_minority == 0:
            raise InputError("all rows are of one class: there is no hyperplane, and nothing to sample")
        majority = -1 if blocks.n_pos <= blocks.n_neg else 1
        seed = int(check_random_state(self.random_state).randint(2**31))
        model = self._model(blocks)
        blocks = blocks.without_memory()
        told = blocks.reduce(measure, model, majority, seed)
        low, high, last_lot = min(told["low"]), max(told["high"]), 2**64 - 1
        if not np.isfinite([low, high]).all():
            raise InputError("the distances to the hyperplane are not all finite")
        wanted = int(self.ratio * n_minority)
        lopsided = n_majority >= LOPSIDED * n_minority
        if (self.method == "u2" or (self.method == "auto" and lopsided)) and wanted < n_majority:
            high, last_lot = _cut(blocks, wanted)
        if not high > low:
            raise InputError(
                f"all rows of the larger class are equally far from the hyperplane ({low:g}), so that distance cannot "
                "tell which to keep: scale the features, or give another svm"
            )
        return Rule(model, majority, low, high, last_lot, self.n_bins, seed)

    def check_parameters(self) -> None:
        """Check every parameter.

        Raises
        ------
        InputError
            Naming the parameter, its value and what is allowed.
        """
        if self.method not in METHODS:
            raise unknown("method", self.method, METHODS)
        if isinstance(self.n_bins, bool) or not isinstance(self.n_bins, numbers.Integral) or self.n_bins < 2:
            raise InputError(
                f"n_bins is {self.n_bins!r}; an integer of at least 2 is needed: with 1 every row would stay"
            )
        if isinstance(self.ratio, bool) or not isinstance(self.ratio, numbers.Real) or not 1 <= self.ratio < np.inf:
            raise InputError(f"ratio is {self.ratio!r}; a number of at least 1 is needed")
        if self.svm is not None and not hasattr(self.svm, "decision_function"):
            raise InputError(f"svm is {self.svm!r}; None or a classifier with decision_function is needed")

    def _model(self, blocks: Blocks) -> Any:
        """Return what tells distances, fitted."""
        if self.svm is None:
            return _hyperplane(blocks)
        if not _is_fitted(self.svm):
            if blocks.n_blocks > 1:
                raise InputError(
                    "svm is not fitted, and the rows are in several blocks: fit it first, or use None"
                ) from None
            told = blocks.without_memory().reduce(_rows)
            return clone(self.svm).fit(told["X"][0], told["y"][0])
        return self.svm


@dataclass(frozen=True, eq=False)
class Distances:
    """What a block keeps of its rows of the larger class: their distances' bits, which are ordered as they are, and lots."""

    bits: np.ndarray
    lots: np.ndarray


def measure(block: Block, memory: None, model: Any, majority: int, seed: int) -> tuple[Distances, Summary]:
    """Find the distances, and the least and the greatest of them."""
    _, near, lots = _majority(block, model, majority, seed)
    low, high = (float(near.min()), float(near.max())) if len(near) else (np.inf, -np.inf)
    return Distances(near.view(np.uint64), lots), {"low": [low], "high": [high]}


@without_rows
def count_digits(block: int, memory: Distances, tied: int | None, prefix: int, shift: int) -> tuple[Distances, Summary]:
    """Count the next digit of the numbers that begin with the prefix: of distances, or of the lots at one of them."""
    keys = memory.bits if tied is None else memory.lots[memory.bits == np.uint64(tied)]
    digits = keys >> np.uint64(shift)
    mine = digits[digits >> np.uint64(DIGIT) == np.uint64(prefix)] & np.uint64(N_DIGITS - 1)
    return memory, {"counts": np.bincount(mine.astype(np.int64), minlength=N_DIGITS)}


def _majority(block: Block, model: Any, majority: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the positions of the rows of the larger class, their distances, and a lot for each."""
    which = np.flatnonzero((block.y == majority) & (block.weights() > 0))
    if len(which) == 0:
        return which, np.zeros(0), np.zeros(0, dtype=np.uint64)
    # Of the whole block, so that what is found twice has the same bits.
    scores = np.asarray(model.decision_function(block.X), dtype=np.float64)
    return which, np.abs(scores[which]), scrambled(block.row_id[which], block_seed(seed, 0, 0))


def _cut(blocks: Blocks, wanted: int) -> tuple[float, int]:
    """Return the distance of the row that is the so many-th nearest, and the last lot that takes part at that distance."""
    bits, left, n_tied = _nth(blocks, None, wanted)
    last_lot = 2**64 - 1 if left == n_tied else _nth(blocks, bits, left)[0]
    return float(np.uint64(bits).view(np.float64)), last_lot


def _nth(blocks: Blocks, tied: int | None, n: int) -> tuple[int, int, int]:
    """Return the n-th smallest number digit by digit, its place among those equal to it, and how many these are."""
    prefix = 0
    for shift in range(64 - DIGIT, -1, -DIGIT):
        counts = blocks.reduce(count_digits, tied, prefix, shift)["counts"]
        up_to = np.cumsum(counts)
        digit = int(np.searchsorted(up_to, n))
        n -= int(up_to[digit] - counts[digit])
        prefix = (prefix << DIGIT) | digit
    return prefix, n, int(counts[digit])


def _hyperplane(blocks: Blocks) -> Hyperplane:
    """Return the hyperplane of a support vector machine whose classes weigh alike."""
    class_weight = (0.5 * blocks.n_samples / blocks.weight_neg, 0.5 * blocks.n_samples / blocks.weight_pos)
    lam = 0.5 / (COST * blocks.n_samples)
    found = solve(hinge_sdcd(blocks, lam, intercept=True, class_weight=class_weight), tol=TOL, max_passes=MAX_PASSES)
    return Hyperplane(found.w[:-1], float(found.w[-1]))


def _is_fitted(model: Any) -> bool:
    if not hasattr(model, "fit"):  # it can do nothing but tell distances
        return True
    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    return True


def _rows(block: Block, memory: None) -> tuple[None, Summary]:
    return None, {"X": [block.X], "y": [block.y]}

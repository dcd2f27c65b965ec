"""TPAUC: one pass for the class means, and one pass of stochastic gradient steps that use them.

After Luan & Gao, "Two-pass AUC optimization" (2018), for ``lam/2 |w|^2 + mean pairwise square``. Each row takes one gradient step
along its own part of the objective, as written and corrected in `aucdist.objectives.pairwise_square`. The paper prints the factor
1 / n_class in place of n_samples / n_class, which almost removes the rows' own terms; ``factor="print"`` keeps the printed one.

With one block this is the published algorithm, in an order drawn anew for each epoch. With several, each block goes through its
own rows from the same weights, and the resulting weights are averaged in proportion to the blocks' numbers of rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, Summary, block_seed
from aucdist.errors import InputError
from aucdist.kernels.square_epochs import shuffle, square_epoch
from aucdist.objectives.pairwise_square import FACTORS, VALUE_AT_ZERO, ClassMoments, class_moments, row_factors
from aucdist.parameters import Constraints, OneOf, above_0, count
from aucdist.solvers.base import Round, Solver
from aucdist.solvers.online import finite
from aucdist.solvers.rounding import Rounding
from aucdist.solvers.square.descent import certified_round, moments_of
from aucdist.solvers.square.rows import products_with, squared_distances


@dataclass(frozen=True, eq=False)
class TwoPassSteps:
    """What the gradient steps of a block's rows need, once the class means are known.

    Attributes
    ----------
    basis : ndarray of shape (3, n_features), float64
        Both class means, negative first, and the part of the gradient that does not depend on the weights.
    gram : ndarray of shape (3, 3), float64
        Inner products of the basis vectors with each other.
    factors : ndarray of shape (n_rows,), float64
        Twice the factor r_t of `aucdist.objectives.pairwise_square`.
    products : ndarray of shape (n_rows, 3), float64
        Inner products of the rows with the basis vectors.
    highest : float
        The largest curvature of a row's own term.
    """

    basis: np.ndarray
    gram: np.ndarray
    factors: np.ndarray
    products: np.ndarray
    highest: float

    @classmethod
    def of(
        cls, block: Block, means: np.ndarray, weights: tuple[float, float], n_samples: int, factor: str
    ) -> "TwoPassSteps":
        """Return the steps of a block's rows, given the total weights of both classes and the number of all rows."""
        difference = means[1] - means[0]
        products = products_with(block, means)
        products = np.column_stack([products, -2.0 * (products[:, 1] - products[:, 0])])
        factors = 2.0 * row_factors(block.y, block.weights(), *weights, n_samples, factor)
        curvature = factors * squared_distances(block, means, products)
        basis = np.vstack([means, -2.0 * difference])
        return cls(basis, basis @ basis.T, factors, products, float(curvature.max(initial=0.0)))

    def run(self, block: Block, order: np.ndarray, w: np.ndarray, eta: float, lam: float) -> np.ndarray:
        """Return the weights after one gradient step for each row, in this order."""
        out = np.empty_like(w)
        square_epoch(
            block.rows, order, block.y, self.factors, self.products, self.basis, self.gram, eta, lam, w.copy(), len(order), out
        )  # fmt: skip
        return out


def longest_step(means: np.ndarray, highest: float, lam: float) -> float:
    """Return the longest step that is certain not to diverge: 1 over the largest curvature of a row's part of the objective."""
    difference = means[1] - means[0]
    return 1.0 / (highest + 2.0 * float(difference @ difference) + lam)


def checked_means(means: Any, n_features: int) -> np.ndarray | None:
    """Return the class means as float64, or None for None.

    Raises
    ------
    InputError
        If they are not two rows of `n_features` finite numbers.
    """
    if means is None:
        return None
    found = np.asarray(means, dtype=np.float64)
    if found.shape != (2, n_features) or not np.isfinite(found).all():
        raise InputError(
            f"class_means has shape {found.shape}; two rows of {n_features} finite numbers are needed, the negative class first"
        )
    return found


def prepare_steps(
    block: Block, memory: None, means: np.ndarray, weights: tuple[float, float], n_samples: int, factor: str
) -> tuple[TwoPassSteps, Summary]:
    """Prepare the gradient steps of the block's rows, and return the largest curvature of a row's own term."""
    steps = TwoPassSteps.of(block, means, weights, n_samples, factor)
    return steps, {"highest": [steps.highest]}


def tpauc_epoch(
    block: Block, memory: TwoPassSteps, w: np.ndarray, eta: float, lam: float, seeds: tuple[int, int], n_samples: int
) -> tuple[TwoPassSteps, Summary]:
    """Take one step for each of the block's rows, in a random order, and return the block's part of the averaged weights."""
    order = np.empty(block.n_samples, dtype=np.int64)
    shuffle(block_seed(*seeds, block.index), order)
    return memory, {"w": block.n_samples / n_samples * memory.run(block, order, w, eta, lam)}


@dataclass(frozen=True, eq=False)
class TwoPassState:
    """The state of TPAUC between two batches of rows.

    Attributes
    ----------
    w : ndarray of shape (n_features,), float64
    neg, pos : ClassMoments
        Moments of the rows of each class so far.
    n_samples : int
        Number of rows so far.
    highest : float
        The largest curvature of a row's own term so far.
    """

    w: np.ndarray
    neg: ClassMoments
    pos: ClassMoments
    n_samples: int = 0
    highest: float = 0.0

    @property
    def threshold(self) -> float:
        """The midpoint between the scores of the two class means."""
        return float(0.5 * (self.neg.mean + self.pos.mean) @ self.w)


def tpauc_start(w: np.ndarray) -> TwoPassState:
    """Return the state before the first batch, at weights w, float64 of shape (n_features,)."""
    none = ClassMoments(0.0, np.zeros_like(w), np.zeros_like(w))
    return TwoPassState(w, none, none)


def tpauc_update(
    state: TwoPassState, block: Block, lam: float, *,
    eta: float | None = None, factor: str = "corrected", class_means: np.ndarray | None = None,
) -> TwoPassState:  # fmt: skip
    """Return the state after one gradient step for each row of a batch, in the order of the rows.

    The weights do not change until rows of both classes have been seen.

    Parameters
    ----------
    state : TwoPassState
        The state before the batch; it is not changed.
    block : Block
        The batch. Its rows enter the moments and the class sizes before the first step.
    lam, eta, factor
        As of `TPAUC`; the default eta comes from all rows so far.
    class_means : ndarray of shape (2, n_features), optional
        The class means if they are known, negative class first; by default those of the rows so far.

    Raises
    ------
    InputError
        As in `checked_means`.
    """
    given = checked_means(class_means, block.n_features)
    neg, pos = state.neg + class_moments(block, -1, full=False), state.pos + class_moments(block, 1, full=False)
    state = replace(state, neg=neg, pos=pos, n_samples=state.n_samples + block.n_samples)
    if 0.0 in (neg.weight, pos.weight):
        return state
    means = np.stack([neg.mean, pos.mean]) if given is None else given
    steps = TwoPassSteps.of(block, means, (neg.weight, pos.weight), state.n_samples, factor)
    highest = max(state.highest, steps.highest)
    eta = longest_step(means, highest, lam) if eta is None else eta
    w = steps.run(block, np.arange(block.n_samples), state.w, eta, lam)
    return replace(state, w=w, highest=highest)


class TPAUC(Solver):
    """Two passes: one for the class means, then one gradient step per row and epoch. See `aucdist.solvers.square.tpauc`.

    Parameters
    ----------
    eta : float or None, default=None
        The steps' length. None takes the longest that is sure not to diverge, which is short; trying 2^-10 to 2^2 on features
        scaled to [-1, 1] is what the paper does.
    epochs : int, default=1
        How many times each row is taken.
    factor : {"corrected", "print"}, default="corrected"
        ``"corrected"`` gives the rows' own terms the factor that makes their mean the objective; ``"print"`` gives them the one
        printed, for comparison.
    class_means : array-like of shape (2, n_features) or None, default=None
        The class means to step with, the negative class first. None takes them in a first pass, and in ``partial_fit`` those of
        the rows so far.
    """

    name = "tpauc"
    objective = "pairwise square"
    random = True
    online = True
    _parameter_constraints: ClassVar[Constraints] = {
        "eta": above_0(optional=True),
        "epochs": count(),
        "factor": OneOf(FACTORS),
    }

    def __init__(
        self, *, eta: float | None = None, epochs: int = 1, factor: str = "corrected", class_means: Any = None
    ):
        self.eta = eta
        self.epochs = epochs
        self.factor = factor
        self.class_means = class_means

    def rounds(self, blocks: Blocks, lam: float, start: np.ndarray | None = None, *, seed: int) -> Iterator[Round]:
        """Yield the start, then the weights after each epoch, with their exact objective and its lower bound.

        Only the passes of the algorithm are counted, the first for the means; evaluating the objective takes additional passes.

        Raises
        ------
        InputError
            As in `checked_means`.
        """
        given = checked_means(self.class_means, blocks.n_features)
        moments, rounding = moments_of(blocks), Rounding.of(blocks)
        w = np.zeros(blocks.n_features) if start is None else start.astype(np.float64)
        yield (
            Round(w, VALUE_AT_ZERO, 0.0, 1) if start is None else certified_round(blocks, moments, w, lam, rounding, 1)
        )
        means = np.stack([moments.neg.mean, moments.pos.mean]) if given is None else given
        weights = (moments.neg.weight, moments.pos.weight)
        own = blocks.without_memory()
        highest = max(own.reduce(prepare_steps, means, weights, blocks.n_samples, self.factor)["highest"])
        eta = longest_step(means, highest, lam) if self.eta is None else self.eta
        for number in range(1, self.epochs + 1):
            w = own.reduce(tpauc_epoch, w, eta, lam, (seed, number), blocks.n_samples)["w"]
            yield certified_round(blocks, moments, w, lam, rounding, 1 + number)

    def learn(self, stream: Any, block: Block, lam: float, seed: int) -> tuple[TwoPassState, float]:
        """Take a step for each row of a batch; parameters and returns as of `Solver.learn`."""
        stream = stream if isinstance(stream, TwoPassState) else tpauc_start(getattr(stream, "w", stream))
        stream = tpauc_update(stream, block, lam, eta=self.eta, factor=self.factor, class_means=self.class_means)
        return finite(stream, self.eta), stream.threshold

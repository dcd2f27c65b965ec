"""TPAUC: two passes, one for the class means and one of stochastic gradient steps with them.

After Luan & Gao, "Two-pass AUC optimization" (2018), for ``lam/2 |w|^2 + mean pairwise square``: each row takes one step along
its own part of the objective, in the form and with the corrections of `aucdist.objectives.pairwise_square`. The print has 1
over the class's size where the number of rows over it belongs, which all but drops the rows' own terms; ``factor="print"``
keeps it.

One block is the published algorithm, in an order drawn anew for each epoch. With several, each block goes through its own rows
from the same weights, and the outcomes are averaged, each block counting by its rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, Summary, block_seed
from aucdist.errors import InputError
from aucdist.kernels.square_epochs import shuffle, square_epoch
from aucdist.objectives.pairwise_square import VALUE_AT_ZERO, ClassMoments, class_moments, row_factors
from aucdist.solvers.base import Round
from aucdist.solvers.rounding import Rounding
from aucdist.solvers.square.descent import measured, moments_of
from aucdist.solvers.square.rows import products_with, squared_distances


@dataclass(frozen=True, eq=False)
class Known:
    """What a row's step needs once the means are known.

    Attributes
    ----------
    basis : ndarray of shape (3, n_features), float64
        Both means, negative first, and the part of the gradient that no weights change.
    gram : ndarray of shape (3, 3), float64
        Inner products of the basis.
    factors : ndarray of shape (n_rows,), float64
    products : ndarray of shape (n_rows, 3), float64
        The rows' products with the basis.
    highest : float
        The highest curvature of a row's own term.
    """

    basis: np.ndarray
    gram: np.ndarray
    factors: np.ndarray
    products: np.ndarray
    highest: float

    @classmethod
    def of(cls, block: Block, means: np.ndarray, weights: tuple[float, float], n_samples: int, factor: str) -> "Known":
        """Prepare the steps of a block's rows. `weights` and `n_samples` are those of all rows."""
        difference = means[1] - means[0]
        products = products_with(block, means)
        products = np.column_stack([products, -2.0 * (products[:, 1] - products[:, 0])])
        factors = 2.0 * row_factors(block.y, block.weights(), *weights, n_samples, factor)
        curvature = factors * squared_distances(block, means, products)
        basis = np.vstack([means, -2.0 * difference])
        return cls(basis, basis @ basis.T, factors, products, float(curvature.max(initial=0.0)))

    def run(self, block: Block, order: np.ndarray, w: np.ndarray, eta: float, lam: float) -> np.ndarray:
        """Return the weights after steps along the rows in this order."""
        out = np.empty_like(w)
        square_epoch(
            block.rows, order, block.y, self.factors, self.products, self.basis, self.gram, eta, lam, w.copy(), len(order), out
        )  # fmt: skip
        return out


def longest_step(means: np.ndarray, highest: float, lam: float) -> float:
    """Return 1 over the largest curvature of a row's part of the objective: no longer step is sure not to diverge."""
    difference = means[1] - means[0]
    return 1.0 / (highest + 2.0 * float(difference @ difference) + lam)


def checked_means(means: Any, n_features: int) -> np.ndarray | None:
    """Return class means as float64; None stays.

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


def tpauc(
    blocks: Blocks, lam: float, start: np.ndarray | None = None, *,
    seed: int, eta: float | None = None, epochs: int = 1, factor: str = "corrected", class_means: np.ndarray | None = None,
) -> Iterator[Round]:  # fmt: skip
    """Take the class means, then one step per row and epoch.

    Parameters
    ----------
    blocks : Blocks
    lam : float
    start : ndarray of shape (n_features,), optional
        Zero by default.
    seed : int
        Of the order of the rows.
    eta : float, optional
        The steps' length; by default `longest_step`.
    epochs : int
    factor : {"corrected", "print"}
    class_means : ndarray of shape (2, n_features), optional
        To step with, negative class first; by default those of the rows.

    Yields
    ------
    Round
        The start, then the weights after each epoch; their exact objective and its bound. The passes are the algorithm's own,
        the first for the means; those that evaluate come on top.

    Raises
    ------
    InputError
        As in `checked_means`.
    """
    given = checked_means(class_means, blocks.n_features)
    known, rounding = moments_of(blocks), Rounding.of(blocks)
    w = np.zeros(blocks.n_features) if start is None else start.astype(np.float64)
    yield Round(w, VALUE_AT_ZERO, 0.0, 1) if start is None else measured(blocks, known, w, lam, 1, rounding)
    means = np.stack([known.neg.mean, known.pos.mean]) if given is None else given
    weights = (known.neg.weight, known.pos.weight)
    own = blocks.fresh()
    highest = max(own.reduce(prepare, means, weights, blocks.n_samples, factor)["highest"])
    eta = longest_step(means, highest, lam) if eta is None else eta
    for number in range(1, epochs + 1):
        w = own.reduce(epoch, w, eta, lam, (seed, number), blocks.n_samples)["w"]
        yield measured(blocks, known, w, lam, 1 + number, rounding)


def prepare(
    block: Block, memory: None, means: np.ndarray, weights: tuple[float, float], n_samples: int, factor: str
) -> tuple[Known, Summary]:
    """Get ready for the second pass."""
    known = Known.of(block, means, weights, n_samples, factor)
    return known, {"highest": [known.highest]}


def epoch(
    block: Block, memory: Known, w: np.ndarray, eta: float, lam: float, seeds: tuple[int, int], n_samples: int
) -> tuple[Known, Summary]:
    """Go through the block's rows once, in an order of the epoch's own."""
    order = np.empty(block.n_samples, dtype=np.int64)
    shuffle(block_seed(*seeds, block.index), order)
    return memory, {"w": block.n_samples / n_samples * memory.run(block, order, w, eta, lam)}


@dataclass(frozen=True, eq=False)
class Stream:
    """What is remembered of rows that come in batches.

    Attributes
    ----------
    w : ndarray of shape (n_features,), float64
    neg, pos : ClassMoments
        Of the rows so far.
    n_samples : int
        Rows so far.
    highest : float
        The highest curvature of a row's own term so far.
    """

    w: np.ndarray
    neg: ClassMoments
    pos: ClassMoments
    n_samples: int = 0
    highest: float = 0.0

    @property
    def threshold(self) -> float:
        """Midway between the class means' scores."""
        return float(0.5 * (self.neg.mean + self.pos.mean) @ self.w)


def begin(w: np.ndarray) -> Stream:
    """Return what is remembered of no rows, at weights w, float64 of shape (n_features,)."""
    none = ClassMoments(0.0, np.zeros_like(w), np.zeros_like(w))
    return Stream(w, none, none)


def learn(
    stream: Stream, block: Block, lam: float, *,
    eta: float | None = None, factor: str = "corrected", class_means: np.ndarray | None = None,
) -> Stream:  # fmt: skip
    """Take one step along each row of a batch, in their order. Until both classes were seen the weights stay as they are.

    Parameters
    ----------
    stream : Stream
        Left as it is.
    block : Block
        The batch. Its rows count in the moments and the class sizes first, so that these are of all rows so far.
    lam, eta, factor
        As in `tpauc`; the default eta is of all rows so far.
    class_means : ndarray of shape (2, n_features), optional
        Where they are known, negative class first; by default those of the rows so far.

    Raises
    ------
    InputError
        As in `checked_means`.
    """
    given = checked_means(class_means, block.n_features)
    neg, pos = stream.neg + class_moments(block, -1, full=False), stream.pos + class_moments(block, 1, full=False)
    stream = replace(stream, neg=neg, pos=pos, n_samples=stream.n_samples + block.n_samples)
    if 0.0 in (neg.weight, pos.weight):
        return stream
    means = np.stack([neg.mean, pos.mean]) if given is None else given
    known = Known.of(block, means, (neg.weight, pos.weight), stream.n_samples, factor)
    highest = max(stream.highest, known.highest)
    eta = longest_step(means, highest, lam) if eta is None else eta
    w = known.run(block, np.arange(block.n_samples), stream.w, eta, lam)
    return replace(stream, w=w, highest=highest)

"""The minimum of the pairwise square itself: from the moments of the classes, or by conjugate gradients over passes."""

from collections.abc import Iterator, Sequence

import numpy as np

from aucdist.engine.blocks import Blocks
from aucdist.errors import InputError
from aucdist.objectives.pairwise_square import PairwiseSquare, lower_bound
from aucdist.solvers.base import Round
from aucdist.solvers.rounding import Rounding
from aucdist.solvers.square.descent import Descent, errors, moments, moments_of

MOST_FEATURES = 1000
"""Up to so many, the classes' scatter matrices are taken: 8 MB each, and a pass of n_features^2 operations a row."""


def exact(blocks: Blocks, lam: float, start: np.ndarray | None = None) -> Iterator[Round]:
    """Solve the linear system that the minimum is.

    Up to `MOST_FEATURES` features by one reduction of the classes' moments, which counts as a pass, and one
    eigendecomposition. Beyond, by conjugate gradients, a pass per step, preconditioned by the diagonal.

    Parameters
    ----------
    blocks : Blocks
    lam : float
    start : ndarray of shape (n_features,), optional
        Where conjugate gradients begin; zero by default. The closed form needs none.

    Yields
    ------
    Round
        The weights, their exact objective and the bound of its gradient.
    """
    if blocks.n_features <= MOST_FEATURES:
        yield from exact_path(blocks, [lam])
        return
    known = moments_of(blocks)
    diagonal = known.spread + known.difference**2 + 0.5 * lam
    w = np.zeros(blocks.n_features) if start is None else start.astype(np.float64)
    yield from Descent(blocks, known, lam, w).rounds(lambda g: g / diagonal, passes=2, per_round=1)


def exact_path(blocks: Blocks, lams: Sequence[float]) -> Iterator[Round]:
    """Solve for several lam from the same moments, one round for each; at most `MOST_FEATURES` features.

    Parameters
    ----------
    blocks : Blocks
    lams : sequence of float

    Yields
    ------
    Round
        As in `exact`, in the order of `lams`.

    Raises
    ------
    InputError
        If there are more features.
    """
    if blocks.n_features > MOST_FEATURES:
        raise InputError(
            f"several lam from the same moments take matrices of {blocks.n_features} x {blocks.n_features} numbers; that is for "
            f"up to {MOST_FEATURES} features. Fit one lam after the other with solver='exact', largest first, with warm_start"
        )
    rounding, found = Rounding.of(blocks), blocks.fresh().reduce(moments, True)
    known = PairwiseSquare(found["neg"], found["pos"])
    for lam, (w, primal, slope) in zip(lams, known.minimisers(lams), strict=True):
        of_primal, of_dual = errors(rounding, w, lam, primal, slope, known, full=True)
        bound = lower_bound(primal, slope, lam)
        yield Round(w, primal, bound, 1, primal_error=of_primal, dual_error=of_dual)

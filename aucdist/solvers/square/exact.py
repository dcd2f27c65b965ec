"""The exact minimiser of the pairwise square: in closed form from the class moments, or by conjugate gradients."""

from collections.abc import Iterator, Sequence

import numpy as np

from aucdist.engine.blocks import Blocks
from aucdist.errors import InputError
from aucdist.objectives.pairwise_square import PairQuadratic, PairwiseSquare, gradient, lower_bound, value
from aucdist.solvers.base import Round, Solver
from aucdist.solvers.cone import minimise_quadratic, project_onto_cone
from aucdist.solvers.pairs.groups import PairGroups, pair_groups
from aucdist.solvers.rounding import EPS, Rounding
from aucdist.solvers.square.descent import SubspaceDescent, errors_of_square, moments_of, moments_of_both_classes
from aucdist.solvers.square.grouped import moments_in_groups

MOST_FEATURES = 1000
"""The closed form is used up to this many features. Each class then has a scatter matrix of 8 MB, and a row costs n_features^2
operations."""


def _in_cone(blocks: Blocks, lam: float, signs: np.ndarray, groups: PairGroups | None) -> Round:
    """Return the minimum over a cone. No weights in it, v, take the objective below ``P + g.(v - w) + lam/2 |v - w|^2``."""
    if blocks.n_features > MOST_FEATURES:
        raise InputError(
            f"monotone takes a matrix of {blocks.n_features} x {blocks.n_features} numbers; solver 'exact' has it for up to "
            f"{MOST_FEATURES} features or basis functions. Take PairwiseHingeClassifier, or fewer bins"
        )
    moments, of_errors, rounding, passes = _moments(blocks, groups)
    difference = moments.difference
    H = 2.0 * (moments.covariance + np.outer(difference, difference)) + lam * np.eye(len(difference))
    w = minimise_quadratic(H, 2.0 * difference, signs)
    variance = moments.covariance @ w
    primal, slope = value(w, difference, float(w @ variance), lam), gradient(w, difference, variance, lam)
    away = project_onto_cone(w - slope / lam, signs) - w
    bound = max(0.0, primal + float(slope @ away) + 0.5 * lam * float(away @ away))
    of_primal, of_dual = errors_of_square(rounding, w, lam, primal, lam * away, of_errors, full=True)
    of_dual += 8.0 * EPS * float(np.abs(slope) @ np.abs(away))
    return Round(w, primal, bound, passes, primal_error=of_primal, dual_error=of_dual)


def _moments(blocks: Blocks, groups: PairGroups | None) -> tuple[PairQuadratic, PairQuadratic, Rounding, int]:
    """Return the moments, those that bound their rounding errors, what the bounds need to know, and the passes."""
    if groups is None:
        found = blocks.without_memory().reduce(moments_of_both_classes, True)
        moments = PairwiseSquare(found["neg"], found["pos"])
        return moments, moments, Rounding.of(blocks), 1
    return *moments_in_groups(blocks, groups), 2


def exact_path(blocks: Blocks, lams: Sequence[float], groups: PairGroups | None = None) -> Iterator[Round]:
    """Minimise the pairwise square for several lam from the same class moments, one round for each lam.

    Parameters
    ----------
    blocks : Blocks
        With at most `MOST_FEATURES` features.

    Yields
    ------
    Round
        The weights, their exact objective, and the lower bound from its gradient, in the order of `lams`.

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
    moments, of_errors, rounding, passes = _moments(blocks, groups)
    for lam, (w, primal, slope) in zip(lams, moments.minimisers(lams), strict=True):
        of_primal, of_dual = errors_of_square(rounding, w, lam, primal, slope, of_errors, full=True)
        bound = lower_bound(primal, slope, lam)
        yield Round(w, primal, bound, passes, primal_error=of_primal, dual_error=of_dual)


class Exact(Solver):
    """The minimum itself: by one reduction up to 1000 features, beyond by conjugate gradients; deterministic."""

    name = "exact"
    objective = "pairwise square"
    takes = ("group_weight", "grade_weight")
    by_sums = True
    takes_codes = True
    signs = True
    groups = True

    def rounds(
        self,
        blocks: Blocks,
        lam: float,
        start: np.ndarray | None = None,
        *,
        signs: np.ndarray | None = None,
        group_weight: str | None = None,
        grade_weight: str | None = None,
    ) -> Iterator[Round]:
        """Yield the minimum, or the weights after each step of conjugate gradients.

        Up to `MOST_FEATURES` features the class moments are summed by one reduction, which counts as a pass, and one
        eigendecomposition solves the system. Beyond, conjugate gradients with a diagonal preconditioner take one pass per step.
        They start from `start`, by default zero, which the closed form ignores.

        Raises
        ------
        InputError
            For signs, or groups (`aucdist.solvers.square.grouped`), of more than `MOST_FEATURES` weights.
        """
        groups = pair_groups(blocks, group_weight, grade_weight)
        if groups is not None and blocks.n_features > MOST_FEATURES:
            raise InputError(
                f"pairs within groups take a matrix of {blocks.n_features} x {blocks.n_features} numbers; solver 'exact' has it "
                f"for up to {MOST_FEATURES} features or basis functions. Take PairwiseHingeClassifier"
            )
        if signs is not None:
            yield _in_cone(blocks, lam, signs, groups)
        elif blocks.n_features <= MOST_FEATURES:
            yield from exact_path(blocks, [lam], groups)
        else:
            moments = moments_of(blocks)
            diagonal = moments.covariance + moments.difference**2 + 0.5 * lam
            w = np.zeros(blocks.n_features) if start is None else start.astype(np.float64)
            yield from SubspaceDescent(blocks, moments, lam, w).rounds(lambda g: g / diagonal, passes=2, per_round=1)

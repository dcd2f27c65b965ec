"""The exact minimiser of the pairwise square: in closed form from the class moments, or by conjugate gradients.

Pairs within groups need moments of their own. With P_g and N_g the weights of a group's classes, f_g the factor of its pairs,
and z a row minus its group's mean,

    sum over the group's pairs of (x_i - x_j)(x_i - x_j)' = N_g sum_i w_i z_i z_i' + P_g sum_j w_j z_j z_j' - s t' - t s',

where s and t are the weighted sums of z over its positives and negatives. So a second moment of all rows, each with its own
weight, and two sums for each group are enough. One reduction gives the means of the groups, and a second one the rest, because
a group may have rows in several blocks. Subtracting the mean of the group keeps precision if groups lie far apart."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy import ndarray

from aucdist.data.block import Block, as_dense, matrix_of_rows
from aucdist.engine.blocks import Blocks, Summary
from aucdist.errors import InputError
from aucdist.pairs.groups import PairGroups, pair_groups
from aucdist.pairs.problem import rounding_of_pairs
from aucdist.papers.tpauc.descent import SubspaceDescent, errors_of_square, moments_of_pairs
from aucdist.papers.tpauc.moments import PairMoments, lower_bound, slices_of_rows
from aucdist.solvers.base import Round, Solver
from aucdist.solvers.rounding import EPS, Rounding
from aucdist.solvers.signs import minimise_quadratic, project_onto_cone

MAX_FEATURES = 1000
"""The closed form is used up to this many features. Each class then has a scatter matrix of 8 MB, and a row costs n_features^2
operations."""

MAX_SUMS = 2**26
"""The largest product of the number of groups and the number of features. The sums of both classes then take a
gigabyte."""


class ExactPath:
    """The minima for one value of lam after another, from moments that the first of them computes by one reading of the rows."""

    def __init__(self, blocks: Blocks, groups: PairGroups | None, signs: ndarray | None):
        self.blocks, self.groups, self.signs = blocks, groups, signs
        if blocks.n_features > MAX_FEATURES and (groups is not None or signs is not None):
            subject = "monotone takes" if groups is None else "pairs within groups take"
            raise InputError(
                f"{subject} a matrix of {blocks.n_features} x {blocks.n_features} numbers, and solver 'exact' computes it for at "
                f"most {MAX_FEATURES} features or steps of bins. Use PairwiseHingeClassifier, or fewer bins"
            )

    @cached_property
    def _moments(self) -> tuple[PairMoments, PairMoments, Rounding, int]:
        """The moments, bounds on their rounding errors, the sizes on which these depend, and the passes.

        Within groups, a row minus the centre of its group is rounded by a share of itself, and the centre, whatever it is, is
        the same for both rows of a pair. So bounds on rounding need the sizes of what is left, however far from 0 the group
        lies.

        Raises
        ------
        InputError
            If the sums of all groups would not fit into memory.
        """
        # The moments are computed in the first round, where `solve` gives BLAS one thread, so that sums do not depend on their
        # number.
        blocks, groups = self.blocks, self.groups
        if groups is None:
            moments = moments_of_pairs(blocks, full=True)
            return moments, moments, Rounding.of(blocks), 1
        if groups.n_groups * blocks.n_features > MAX_SUMS:
            raise InputError(
                f"the sums of {groups.n_groups} groups of {blocks.n_features} features would take more than a gigabyte. Use "
                "PairwiseHingeClassifier, which needs no such sums, or fewer features"
            )
        summary = blocks.sum(sum_groups, groups)
        centres = summary["sums"] / summary["weights"][:, np.newaxis]
        summary = blocks.sum(centred_moments, groups, centres)
        pos, neg, factor = summary["pos"], summary["neg"], groups.factor
        (weight_pos, weight_neg), cross = groups.weights, (pos * factor[:, np.newaxis]).T @ neg
        mean = ((factor * weight_neg) @ pos - (factor * weight_pos) @ neg) / groups.pair_weight
        second = (summary["scatter"] - cross - cross.T) / groups.pair_weight
        size = np.diag(summary["scatter"]) / groups.pair_weight
        covariance = second - np.outer(mean, mean)
        largest = np.max(summary["largest"], axis=0)
        rounding = replace(rounding_of_pairs(blocks, groups), largest=largest)
        return PairMoments(mean, covariance), PairMoments(mean, np.diag(4.0 * size)), rounding, 2

    def rounds(self, lam: float, start: ndarray | None = None) -> Iterator[Round]:
        """Yield the minimum with its exact objective and a lower bound, or the weights after each step of conjugate gradients."""
        if self.blocks.n_features > MAX_FEATURES:
            moments = moments_of_pairs(self.blocks)
            diagonal = moments.covariance + moments.difference**2 + 0.5 * lam
            w = np.zeros(len(diagonal)) if start is None else start.astype(np.float64)
            yield from SubspaceDescent(self.blocks, moments, lam, w).rounds(
                lambda g: g / diagonal, passes=2, per_round=1
            )
            return
        moments, sizes, rounding, passes = self._moments
        if self.signs is None:
            w, primal, slope = moments.minimiser(lam)
            bound, more_error = lower_bound(primal, slope, lam), 0.0
        else:
            # For all weights v in the cone, the objective is at least ``P + g.(v - w) + lam/2 |v - w|^2``.
            difference = moments.difference
            H = 2.0 * (moments.covariance + np.outer(difference, difference)) + lam * np.eye(len(difference))
            w = minimise_quadratic(H, 2.0 * difference, self.signs)
            covariance_w = moments.covariance @ w
            primal, gradient = moments.value_and_gradient(w, float(w @ covariance_w), covariance_w, lam)
            away = project_onto_cone(w - gradient / lam, self.signs) - w
            bound = max(0.0, primal + float(gradient @ away) + 0.5 * lam * float(away @ away))
            slope, more_error = lam * away, 8.0 * EPS * float(np.abs(gradient) @ np.abs(away))
        primal_error, dual_error = errors_of_square(rounding, w, lam, primal, slope, sizes)
        yield Round(w, primal, bound, passes, primal_error=primal_error, dual_error=dual_error + more_error)


class Exact(Solver):
    """The exact minimum, by one reduction up to 1000 features, and by conjugate gradients with more. It is deterministic."""

    name = "exact"
    objective = "pairwise square"
    takes = ("group_weight", "grade_weight")
    accepts_codes = True
    accepts_signs = True
    accepts_groups = True

    def rounds(self, blocks: Blocks, lam: float, start: ndarray | None = None, **options: Any) -> Iterator[Round]:
        """Return the minimum, or the weights after each step of conjugate gradients.

        Up to `MAX_FEATURES` features, the class moments are summed by one reduction, which counts as a pass, and one
        eigendecomposition solves the system. With more features, conjugate gradients with a diagonal preconditioner take one
        pass for each step.

        Parameters
        ----------
        blocks : Blocks
            The rows, of both classes.
        lam : float
            The regularisation strength.
        start : ndarray of shape (n_features,), optional
            The weights from which conjugate gradients start, by default zero. The closed form ignores it.
        **options
            `signs`, and the options of `aucdist.pairs.groups.pair_groups`.

        Returns
        -------
        iterator of Round

        Raises
        ------
        InputError
            For signs or groups with more than `MAX_FEATURES` weights.
        """
        return self.path(blocks, **options).rounds(lam, start)

    def path(self, blocks: Blocks, *, signs: ndarray | None = None, **grouping: Any) -> ExactPath:
        """Return an object that solves for one value of lam after another.

        Parameters
        ----------
        blocks : Blocks
            The rows, of both classes.
        signs : ndarray of shape (n_features,), int8, optional
            The signs of the weights.
        **grouping
            The options of `aucdist.pairs.groups.pair_groups`.

        Returns
        -------
        ExactPath
        """
        return ExactPath(blocks, pair_groups(blocks, **grouping), signs)


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def sum_groups(block: Block, groups: PairGroups) -> Summary:
    """Return the weighted sum of the rows of each group that has pairs, and their weight."""
    positions, key = groups.keys_of(block)
    weight = block.weights()[positions]
    n_keys = len(groups.keys)
    choose = sp.csr_matrix((weight, (key, positions)), (n_keys, block.n_samples))
    sums = choose @ matrix_of_rows(block.rows)
    return {
        "sums": as_dense(sums),
        "weights": np.bincount(key, weight, minlength=n_keys),
    }


def centred_moments(block: Block, groups: PairGroups, centres: ndarray) -> Summary:
    """Return the second moment of the rows minus their group's mean, and the sums of both classes of each group."""
    n, d, n_groups = block.n_samples, block.n_features, groups.n_groups
    weight, (weight_pos, weight_neg) = block.weights(), groups.weights
    coefs, choose = np.zeros(n), []
    for label, other_weight in ((1, weight_neg), (-1, weight_pos)):
        positions, numbers = groups.rows_of(block, label)
        weights = weight[positions]
        coefs += np.bincount(positions, weights * groups.factor[numbers] * other_weight[numbers], minlength=n)
        choose.append(sp.csc_matrix((weights, (numbers, positions)), (n_groups, n)))
    key = np.zeros(n, dtype=np.int64)
    positions, row_keys = groups.keys_of(block)
    key[positions] = row_keys
    X, scatter, sums = matrix_of_rows(block.rows), np.zeros((d, d)), [np.zeros((n_groups, d)) for _ in choose]
    largest = np.zeros(d)
    for chunk in slices_of_rows(block):
        z = as_dense(X[chunk]) - centres[key[chunk]]
        z[coefs[chunk] == 0.0] = 0.0  # these rows belong to groups without pairs
        largest = np.maximum(largest, np.abs(z).max(axis=0, initial=0.0))
        scatter += z.T @ (z * coefs[chunk, np.newaxis])
        for total, chosen in zip(sums, choose, strict=True):
            total += chosen[:, chunk] @ z
    return {"scatter": scatter, "pos": sums[0], "neg": sums[1], "largest": [largest]}

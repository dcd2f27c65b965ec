"""Bins of features, and interactions of chosen pairs of features: an additive model is linear in these.

Interactions are chosen by FAST (Lou, Caruana, Gehrke & Hooker, "Accurate intelligible models with pairwise interactions", KDD
2013): the score of two features is how much of the residual of an additive model a table of their cells explains
beyond its row and column sums. Two things differ from the paper. There are 8 x 8 cells instead of the best 2 x 2 split, and the
residual is the derivative of the mean pairwise hinge by each row's score, at the scores of an additive model that is fitted with
a loose tolerance. If rows have groups or grades, the mean is over the pairs that these allow.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy import ndarray

from aucdist.data.block import Block, Columns, as_dense
from aucdist.engine.blocks import Blocks, Summary
from aucdist.errors import InputError
from aucdist.kernels.codes import BinRows, CodeBasis, Edges, edges_of, encode_column, expand, interaction_histograms
from aucdist.maps.base import LINEAR_CHOICES, Expander, FittedMap, map_blocks
from aucdist.maps.binning import (
    BASES,
    LINEAR_SCALE,
    Bins,
    CodeFunctions,
    bins_of,
    count_missing,
    feature_part,
    interaction_part,
    joined,
    sample_by_class,
)
from aucdist.pairs.cutting_planes import AllPairs
from aucdist.pairs.groups import PairGroups, pair_groups
from aucdist.pairs.loss import HINGE
from aucdist.pairs.problem import PairMemory, PairProblem, add_to_rows
from aucdist.parameters import OneOf, above_0, between, frozen, keyword_parameters
from aucdist.solvers.base import solve
from aucdist.solvers.signs import FREE, ZERO

MAX_GRID = 16
"""The largest number of cells of an interaction along each feature."""
CELLS_COMPARED = 8
"""The number of cells along each feature while interactions are compared."""
LAM = 1e-3
"""`lam` of the rough additive model."""
TOL = 3e-2
"""The relative gap at which its fit ends."""
MAX_PASSES = 60
"""The largest number of passes of its fit."""
MAX_COMPARED = 200
"""The largest number of features whose interactions are compared. If there are more, those whose shapes have the largest spread
are compared."""
PRIOR_ROWS = 10.0
"""The number of rows that is added to the weight of each cell."""
TWINS = 0.97
"""Two features are twins if the absolute correlation of the numbers of their cells is above this. It is 0.976 for normal values
with a correlation of 0.99."""


def merge_bins(shares: ndarray, missing: bool, most: int) -> ndarray:
    """Merge neighbouring bins: return a number below `most` for each cell of a feature. Missing values have their own number.

    Parameters
    ----------
    shares : ndarray of shape (n_bins,), float64
        The share of the rows in each bin.
    missing : bool
        Whether there is a cell for missing values.
    most : int
        The largest number of cells after merging.

    Returns
    -------
    ndarray of shape (n_cells,), uint8
    """
    n_bins_left = most - missing
    if len(shares) <= n_bins_left:
        return np.arange(len(shares) + missing, dtype=np.uint8)
    middle = np.cumsum(shares) - 0.5 * shares
    number = np.minimum((middle / shares.sum() * n_bins_left).astype(np.int64), n_bins_left - 1)
    number = np.unique(number, return_inverse=True)[1]
    return np.concatenate((np.zeros(int(missing), dtype=np.int64), number + int(missing))).astype(np.uint8)


def choose_interactions(blocks: Blocks, fitted: Any, n_interactions: int) -> ndarray:
    """Return the pairs of features with the highest scores, best first.

    A pair is left out if its features are twins of those of a better pair, because this would model one interaction twice.

    Parameters
    ----------
    blocks : Blocks
        The rows before any feature map.
    fitted : object
        The fitted bins, without interactions.
    n_interactions : int
        The largest number of pairs to return.

    Returns
    -------
    ndarray of shape (n_chosen, 2), int64
        Features a < b. There are fewer than `n_interactions` if no other pair explains anything.

    Raises
    ------
    InputError
        If a class has no rows.
    """
    if 0 in (blocks.n_pos, blocks.n_neg):
        raise InputError(
            "the rows are of one class only, and interactions are chosen to separate two: give rows of both classes"
        )
    rows = map_blocks(blocks, fitted)
    groups = pair_groups(rows)
    rounds = AllPairs().rounds(rows, LAM)
    w = solve(rounds, tol=TOL, max_passes=MAX_PASSES).w
    compared = np.arange(len(fitted.used))
    if len(compared) > MAX_COMPARED:  # only the features whose shapes have the largest spread are compared
        values = np.split(expand(fitted.code_basis, w), fitted.code_basis.starts[1:-1])
        shares = [fitted.bins[j].shares for j in fitted.used]
        # The shares of a feature without any value are all 0. This number keeps their sum above 0, and does not change other
        # sums.
        spreads = [-np.cov(v[-len(s) :], ddof=0, aweights=s + 1e-300) for v, s in zip(values, shares, strict=False)]
        compared = np.sort(np.argsort(spreads, kind="stable")[:MAX_COMPARED])
    if len(compared) < 2:
        return np.zeros((0, 2), dtype=np.int64)
    tables = {k: fitted.grid(fitted.used[k], CELLS_COMPARED) for k in compared.tolist()}
    scores, twins = interaction_scores(rows, w, tables, groups)
    (a, b), chosen, modelled = np.tril_indices(len(compared), -1), list[tuple[int, int]](), np.zeros_like(twins)
    for k in np.argsort(-scores, kind="stable"):
        if len(chosen) == n_interactions or scores[k] <= 0.0:
            break
        if not modelled[a[k], b[k]]:
            chosen.append((b[k], a[k]))
            same = np.outer(twins[a[k]], twins[b[k]])
            modelled |= same | same.T
    return fitted.used[compared[np.array(chosen, dtype=np.int64).reshape(-1, 2)]].astype(np.int64)


def interaction_scores(
    rows: Blocks, w: ndarray, tables: dict[int, ndarray], groups: PairGroups | None
) -> tuple[ndarray, ndarray]:
    """Return how much of the residual the cells of each pair of features explain beyond their row and column sums, and twins.

    Parameters
    ----------
    rows : Blocks
        The rows as codes.
    w : ndarray of shape (n_basis_functions,), float64
        The weights of the additive model.
    tables : dict of int to ndarray
        For each column of codes, the coarse cell of each of its cells, below `CELLS_COMPARED`.
    groups : PairGroups or None
        The groups or grades that define the pairs of rows.

    Returns
    -------
    scores : ndarray of shape (m (m - 1) / 2,), float64
        In the order of ``np.tril_indices(m, -1)``.
    twins : ndarray of shape (m, m), bool
        Whether two features are twins. Each feature is a twin of itself.
    """
    problem = PairProblem(rows, HINGE, groups)
    _, slopes = problem.sweep(w)
    factor, class_weights = np.ones(1), np.array([[rows.weight_pos], [rows.weight_neg]])
    if groups is not None:
        factor, class_weights = groups.factor, groups.weights
    # These are the weights of the pairs of an anchor, and of a row of the larger class.
    pair_weights = 0.5 * factor * class_weights[:: -problem.sign]
    cells = problem.blocks.reduce(add_up_cells, slopes, problem.offsets, pair_weights, tables)
    G, H = cells.reshape(2, -1, CELLS_COMPARED, CELLS_COMPARED) / problem.pair_weight
    prior = PRIOR_ROWS / rows.n_samples
    gain: ndarray = (G**2 / (H + prior)).sum(axis=(1, 2))
    for axis in (1, 2):
        gain = gain - (G.sum(axis=axis) ** 2 / (H.sum(axis=axis) + prior)).sum(axis=1)
    levels, rows_of_table, columns = np.arange(CELLS_COMPARED), H.sum(axis=2), H.sum(axis=1)
    covariance = H @ levels @ levels - (rows_of_table @ levels) * (columns @ levels)
    first, second = (shares @ levels**2 - (shares @ levels) ** 2 for shares in (rows_of_table, columns))
    twins = np.eye(len(tables), dtype=bool)
    twins[np.tril_indices(len(tables), -1)] = covariance**2 > TWINS**2 * first * second
    return gain, twins | twins.T


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def add_up_cells(
    block: Block, memory: PairMemory, slopes: ndarray, offsets: ndarray, pair_weights: ndarray,
    tables: dict[int, ndarray],
) -> tuple[None, Summary]:  # fmt: skip
    """For each pair of features, add up the derivatives of the hinge by the scores, and the partners' weights, in their cells."""
    coefs, weight = np.zeros((2, block.n_samples)), block.weights()
    anchor_slopes = slopes[offsets[block.index] : offsets[block.index + 1]]
    codes = np.zeros(len(anchor_slopes), dtype=np.int32) if memory.group_numbers is None else memory.group_numbers
    other_groups = np.repeat(memory.group_slices[1], np.diff(memory.group_slices[0]))
    anchor_rows = memory.anchors.positions, anchor_slopes, codes, pair_weights[0]
    other_rows = memory.larger_class.positions, memory.coefs, other_groups, pair_weights[1]
    for positions, row_slopes, groups, partner_weights in (anchor_rows, other_rows):
        add_to_rows(coefs[0], positions, row_slopes)
        add_to_rows(coefs[1], positions, weight[positions] * partner_weights[groups])
    rows, m = block.rows, len(tables)
    assert isinstance(rows, BinRows)
    codes = np.empty((block.n_samples, m), dtype=np.uint8, order="F")
    for k, (column, table) in enumerate(tables.items()):
        codes[:, k] = table[rows.codes[:, column]]
    return None, interaction_histograms(codes, coefs, CELLS_COMPARED)


MAX_BINS = 255
"""The largest number of bins: a code is a byte, and one value is reserved for missing values."""
MAX_INTERACTIONS = 10_000
MAX_COLUMNS = 20_000
"""Codes are dense: a byte for each row and feature."""

VALUES_AT_ONCE = 2**18
"""The number of values of the rows that are encoded at a time. They stay in the cache."""
MIN_ROWS_AT_ONCE = 512
"""The smallest number of rows that are encoded at a time."""


class MissingInFeature(InputError):
    """A feature has a missing value, but had none in the training rows. Its arguments are the position and all names."""

    def __str__(self) -> str:
        """Return the message, with the name of the feature if it is known."""
        j, names = self.args
        return (
            f"feature {f'{j} (counted from 0)' if names is None else repr(names[j])} has a missing value but had none in the "
            "training rows: fill it in, or train on rows with some"
        )


@frozen
class BinMap(FittedMap):
    """Bins of features, and the pairs of features whose interaction is modelled.

    Parameters
    ----------
    n_features_in : int
        The number of features of the rows.
    bins : tuple of Bins
        The bins of each feature.
    missing : ndarray of shape (n_features_in,), bool
        Whether each feature had missing values.
    basis : str
        The option `basis` of `features="bins"`.
    linear : str
        The option `linear` of `features="bins"`.
    strength : float
        The option `strength` of `features="bins"`.
    interaction_strength : float
        The option `interaction_strength` of `features="bins"`.
    interactions : ndarray of shape (n_interactions, 2), int64
        The two features of each interaction.
    ramps : ndarray of shape (n_features_in,), bool, or None
        The features whose hats are summed up because they have a direction. None if there are none.
    ranges : ndarray of shape (2, n_features_in), float64, or None
        The smallest and the largest training value of each feature; None in maps of older versions.
    """

    n_features_in: int
    bins: tuple[Bins, ...]
    missing: ndarray
    basis: str
    linear: str
    strength: float
    interaction_strength: float
    interactions: ndarray
    ramps: ndarray | None = None
    ranges: ndarray | None = None

    @cached_property
    def used(self) -> ndarray:
        """The features that have a code: those whose training rows had more than one value."""
        varies = [len(b.means) + int(m) > 1 for b, m in zip(self.bins, self.missing, strict=True)]
        return np.flatnonzero(varies)

    @cached_property
    def parts(self) -> list[CodeFunctions]:
        """The basis functions of each code: those of the used features, then those of the interactions."""
        feature_functions = [
            feature_part(
                self.bins[j].edges, LINEAR_SCALE * standardised(self.bins[j]), bool(self.missing[j]), self.basis, self.strength,
                linear=self.linear == "keep", ramps=self.ramps is not None and bool(self.ramps[j]),
            )
            for j in self.used
        ]  # fmt: skip
        grids = [
            interaction_part(self.grid_size(a), self.grid_size(b), self.interaction_strength)
            for a, b in self.interactions
        ]
        return feature_functions + grids

    @cached_property
    def code_basis(self) -> CodeBasis:
        """The basis functions in the form that kernels take."""
        return joined(self.parts)

    def grid(self, j: int, most: int = MAX_GRID) -> ndarray:
        """Return the row or column of an interaction's grid, below `most`, for each cell of a feature, ndarray of uint8."""
        return merge_bins(self.bins[j].shares, bool(self.missing[j]), most)

    def grid_size(self, j: int) -> int:
        """Return the number of rows or columns that a feature has in an interaction's grid."""
        return int(self.grid(j).max()) + 1

    @property
    def n_features_out(self) -> int:
        """Number of basis functions."""
        return int(self.code_basis.n_features)

    def map_block(self, block: Block) -> Block:
        """Return the block with its features as codes."""
        self.check_width(block)
        return replace(block, rows=BinRows(self.codes(block), self.code_basis))

    def codes(self, block: Block) -> ndarray:
        """Return the codes of the rows, uint8 of shape (n_samples, n_codes)."""
        if isinstance(block.rows, BinRows):
            raise InputError("a feature map has already replaced these rows by numbers of bins: give the original rows")
        X: Any = block.X
        out = np.empty((block.n_samples, len(self.used) + len(self.interactions)), dtype=np.uint8)
        grids = {j: self.grid(j) for j in np.unique(self.interactions)}
        at_once = max(MIN_ROWS_AT_ONCE, VALUES_AT_ONCE // max(self.n_features_in, 1))
        for first in range(0, block.n_samples, at_once):
            values, codes = as_dense(X[first : first + at_once]), out[first : first + at_once]
            for k, j in enumerate(self.used):
                if (
                    encode_column(values[:, j], self._edges[k], int(self.missing[j]), codes[:, k])
                    and not self.missing[j]
                ):
                    raise MissingInFeature(j, None)
            for k, (a, b) in enumerate(self.interactions, start=len(self.used)):
                row, column = (grids[j][codes[:, np.searchsorted(self.used, j)]] for j in (a, b))
                codes[:, k] = row * np.uint8(grids[b].max() + 1) + column
        return out

    @cached_property
    def _edges(self) -> list[Edges]:
        return [edges_of(self.bins[j].edges) for j in self.used]

    def signs(self, directions: ndarray) -> ndarray:
        """Return the signs of weights with which the shapes of features rise or fall, int8 of shape (n_features_out,).

        Steps, ramps and the linear column of a feature have its sign. The weights of missing values may have any sign. An
        interaction has a step for each corner of its grid, so that weights of one sign make the whole grid rise, or fall, in
        both features, for any value of the other one. Steps between missing values and other values may have any sign. If the
        two features have opposite directions, the weights are 0.

        Parameters
        ----------
        directions : ndarray of shape (n_features_in,), int8
            As for `FittedMap.signs`.

        Returns
        -------
        ndarray of shape (n_features_out,), int8

        Raises
        ------
        InputError
            For one-hot cells, and for hats that were not summed up to ramps when the map was fitted.
        """
        check_basis(self.basis)
        plain = directions != 0 if self.ramps is None else (directions != 0) & ~self.ramps
        if self.basis == "hat" and plain[self.used].any():
            raise InputError(
                f"feature {np.flatnonzero(plain)[0]} (counted from 0) was fitted without a direction: fit again with `monotone`"
            )
        signs: list[int] = []
        for j, part in zip(self.used, self.parts, strict=False):
            signs += [FREE if name == " missing" else int(directions[j]) for name in part.names]
        for a, b in self.interactions:  # the corners are in the order of `interaction_part`
            grid = np.meshgrid(np.arange(1, self.grid_size(a)), np.arange(1, self.grid_size(b)), indexing="ij")
            first, second = (
                np.where(at > self.missing[j], directions[j], 0) for at, j in zip(grid, (a, b), strict=True)
            )
            signs += np.where(first * second < 0, ZERO, np.where(first != 0, first, second)).ravel().tolist()
        return np.array(signs, dtype=np.int8)

    def groups(self) -> ndarray:
        """Return the number of each weight's group, which has all weights of a feature or of an interaction."""
        filled = [size for part in self.parts if (size := part.jumps.shape[1])]
        return np.repeat(np.arange(len(filled)), filled)

    def check(self) -> None:
        """Raise an InputError if the parts do not fit together. This is necessary because kernels do not check codes."""
        d, basis_known = self.n_features_in, self.basis in BASES and self.linear in LINEAR_CHOICES
        if not basis_known or len(self.bins) != d or self.missing.shape != (d,) or self.missing.dtype != bool:
            raise InputError(
                f"it lacks the bins or the mark for missing values of some of its {d} features, or its basis is unknown"
            )
        for bins in self.bins:
            edges, means, shares = bins.edges, bins.means, bins.shares
            if (
                any(a.dtype != np.float64 or a.ndim != 1 or not np.isfinite(a).all() for a in (edges, means, shares))
                or not len(edges) + 1 == len(means) == len(shares) <= MAX_BINS
                or not (np.diff(edges) > 0).all()
            ):
                raise InputError("the bins of a feature have no ascending edges, or their numbers do not fit together")
        above_0().check("strength", self.strength)
        above_0().check("interaction_strength", self.interaction_strength)
        a = self.interactions
        if a.dtype != np.int64 or a.shape[1:] != (2,) or not np.isin(a, self.used).all():
            raise InputError("the interactions are not pairs of features that exist and have more than one value")
        if self.ramps is not None and (self.ramps.dtype != bool or self.ramps.shape != (d,) or self.basis != "hat"):
            raise InputError("there is not one ramp for each feature, or the basis is not `hat`")
        if self.ranges is not None and self.ranges.shape != (2, d):
            raise InputError("there is not one range for each feature")

    def names(self, features: Sequence[str]) -> list[str]:
        """Return a name for each basis function."""
        names = [f"{features[j]}{tail}" for j, part in zip(self.used, self.parts, strict=False) for tail in part.names]
        for (a, b), part in zip(self.interactions, self.parts[len(self.used) :], strict=True):
            names += [f"{features[a]} & {features[b]}{tail}" for tail in part.names]
        return names


def check_basis(basis: str) -> None:
    """Raise an InputError if no signs of weights make shapes of this basis rise."""
    if basis == "one-hot":
        raise InputError(
            "monotone needs `basis: cumulative` or `basis: hat`: no signs of weights make shapes of 'one-hot' rise or fall"
        )


def standardised(bins: Bins) -> ndarray:
    """Return the value of each bin, standardised over the training rows. It is 0 if there is only one bin."""
    if len(bins.means) < 2:
        return np.zeros(len(bins.means))
    size = np.abs(bins.means).max()  # the squares of values above 1e154 would overflow
    means = bins.means / (size or 1.0)
    centred = means - bins.shares @ means
    spread = np.sqrt(bins.shares @ centred**2)
    return np.asarray(centred / spread)


@keyword_parameters(
    bins=between(2, MAX_BINS),
    interactions=between(0, MAX_INTERACTIONS),
    basis=OneOf(BASES),
    linear=OneOf(LINEAR_CHOICES),
    strength=above_0(),
    interaction_strength=above_0(),
)
class BinExpander(Expander):
    """Expand each feature into basis functions of its bins, so that a linear model of them is an additive model.

    The edges of the bins are quantiles of the training rows, and missing values get a cell of their own. The estimators of
    aucdist accept ``features=BinExpander()`` or ``features="bins"`` and work on codes of one byte for each value. `transform`
    makes the matrix for other estimators.

    Parameters
    ----------
    bins : int, default=64
        The number of bins of a feature, at most 255, and fewer if it has fewer values. A feature with two values stays one
        column.
    basis : {"cumulative", "one-hot", "hat"}, default="cumulative"
        ``cumulative`` has a step at each edge, so that the penalty is on jumps and neighbouring bins get similar values.
        ``one-hot`` has an indicator of each bin. ``hat`` is piecewise linear between at most 16 knots, evaluated at the means
        of the bins; for features with a direction, it has the sums of the hats from each knot on.
    linear : {"keep", "drop"}, default="keep"
        Whether there is also a linear column. For each value, it contains the mean of the bin of this value, standardised.
    interactions : int, default=0
        The number of pairs of features that get a grid of 16 x 16 cells, cumulative in both directions. They are chosen by the
        method FAST (Lou, Caruana, Gehrke and Hooker, KDD 2013) on the residuals of the additive model without interactions,
        which needs `y`. A pair is left out if its columns are equal to those of a better pair, or nearly collinear with them. A
        dictionary or configuration may also use the names of 0.4.0, `pairs` and `pair_strength`.
    strength, interaction_strength : float, default=1.0
        The scale of the basis functions of features, and of those of interactions. With a smaller value, the same `lam` gives
        straighter shapes. 1 suits most data.
    sparse_output : bool, default=True
        Whether `transform` returns a csr_matrix.

    Attributes
    ----------
    map_ : BinMap
        The fitted map.
    n_features_in_ : int
        The number of columns of X in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        The column names of X. Defined only if X has column names.

    Examples
    --------
    >>> import numpy as np
    >>> from aucdist.maps import BinExpander
    >>> expander = BinExpander(bins=3).fit([[1.0], [2.0], [3.0]])
    >>> expander.get_feature_names_out().tolist()
    ['x0', 'x0 > 1.5', 'x0 > 2.5']
    >>> np.round(expander.transform([[0.0], [2.2], [9.0]]).toarray(), 3).tolist()
    [[-0.306, 0.0, 0.0], [0.0, 0.707, 0.0], [0.306, 0.707, 0.707]]
    """

    bins: int = 64
    basis: str = "cumulative"
    linear: str = "keep"
    interactions: int = 0
    strength: float = 1.0
    interaction_strength: float = 1.0
    sparse_output: bool = True
    allows_missing = True
    has_groups = True

    @property
    def complexity(self) -> tuple[int, int, int]:
        """The key by which bins come first, and bins with more interactions later."""
        return (2 if self.interactions else 1, int(self.interactions), 0)

    def supervised(self) -> bool:
        """Return whether interactions are chosen, which depends on the classes.

        Returns
        -------
        bool
        """
        return self.interactions > 0

    def check_directions(self) -> None:
        """Raise an InputError for the basis ``one-hot``."""
        check_basis(self.basis)

    def fit_blocks(self, blocks: Blocks, directions: ndarray | None = None) -> BinMap:
        """Return the map fitted to blocks of rows, by two reductions, and a rough fit if interactions are chosen.

        Parameters
        ----------
        blocks, directions
            As for `Expander.fit_blocks`.

        Returns
        -------
        BinMap
        """
        self.check_parameters()
        if blocks.n_features > MAX_COLUMNS:
            raise InputError(
                f"bins take a byte for each row and feature, so at most {MAX_COLUMNS} features can be binned, not "
                f"{blocks.n_features}: leave out the feature map (`features: null`, or None), or select some features first"
            )
        drawn = sample_by_class(blocks)
        columns, weight = Columns(drawn), drawn.weights()
        fitted = BinMap(
            drawn.n_features, tuple(bins_of(columns[j], weight, self.bins) for j in range(drawn.n_features)),
            blocks.sum(count_missing) > 0, self.basis, self.linear, float(self.strength), float(self.interaction_strength),
            np.zeros((0, 2), dtype=np.int64), None if directions is None or self.basis != "hat" else directions != 0,
            np.array([blocks.ranges.low, blocks.ranges.high]),
        )  # fmt: skip
        if not self.interactions:
            return fitted
        return replace(fitted, interactions=choose_interactions(blocks, fitted, self.interactions))

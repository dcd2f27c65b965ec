"""Basis functions of binned features and of their interactions, as the matrix that the kernels take.

The penalty of a model is ``lam/2 |w|^2`` for all features, so the scale of a basis function determines how strongly its weight is
penalised. The scales are chosen so that one `lam` suits all basis functions:

* A **linear** column is the feature's value, as the mean of its bin, with mean 0 and standard deviation `LINEAR_SCALE` over the
  training rows.
* A **step** at each of the B - 1 edges between B bins has the value ``strength / sqrt(B - 1)`` above the edge. Weights that are
  independent with variance 1 then make shapes whose values at both ends differ with the variance strength^2, however many bins
  there are. A smaller strength makes the shapes straighter. As it goes to 0, the model approaches a linear one.
* A **cell** of a one-hot code has the value ``strength``, and so have **hats** and the missing values of a feature. If a
  feature has a direction, its hats become **ramps**: the sums of all hats from one knot on, up to ``strength / sqrt(knots - 1)``.
  Ramps and hats span the same shapes up to a constant. A shape rises if the weights of all its ramps are at least 0.
* An **interaction** has a step for each corner of its grid, 1 above both edges, times ``strength / sqrt(number of corners)``.

With few rows of a class, choose a larger `lam` and keep the strength. Over nine KEEL sets with 17 to 58 positives, the mean AUC
at the best `lam` of 1e-1, 1e-2 and 1e-3 was 0.882 at strength 1, 0.871 at 1/2, 0.866 at 1/4, and 0.855 without steps.
"""

import numpy as np
from numpy import ndarray

from aucdist.data.block import Block
from aucdist.data.column_statistics import has_missing
from aucdist.engine.blocks import Blocks, gather_sample
from aucdist.kernels.codes import CodeBasis
from aucdist.kernels.rows import CsrRows
from aucdist.maps.base import with_weight
from aucdist.parameters import frozen
from aucdist.solvers.sample import MIN_GROUPS, draw_from_block, draw_groups

BASES = ("cumulative", "one-hot", "hat")
LINEAR_SCALE = 0.25
"""The standard deviation of linear columns. With 1 instead, models of letter, magic04 and covtype were no better at any
lam and took twice the passes, and the mean AUC on the nine small sets above was lower by 0.014."""
MAX_KNOTS = 16
"""The largest number of hats of a feature."""
MAX_ROWS = 2**15
"""The approximate largest number of rows of each class in the sample. The quantiles of the sample are then off by less
than a tenth of 1/64."""
MAX_VALUES = 2**24
"""The largest number of values in the sample, which are sent to the client."""


@frozen
class CodeFunctions:
    """The basis functions of one code, which is the number of a bin or of a leaf.

    Attributes
    ----------
    jumps : ndarray of shape (n_cells, n_functions), float64
        The increment of each function from one cell to the next: E of `CodeBasis`.
    width : int
        As in `CodeBasis`.
    names : tuple of str
        For each function, what is appended to the name of the feature.
    """

    jumps: ndarray
    width: int
    names: tuple[str, ...]


def joined(parts: list[CodeFunctions]) -> CodeBasis:
    """Return the basis functions of several codes, one after the other."""
    starts = np.concatenate(([0], np.cumsum([len(part.jumps) for part in parts]))).astype(np.int64)
    first, counts, columns, values = 0, [np.zeros(1, dtype=np.int64)], [], []
    for part in parts:
        cell, function = np.nonzero(part.jumps)
        counts.append(np.bincount(cell, minlength=len(part.jumps)))
        columns.append(first + function)
        values.append(part.jumps[cell, function])
        first += part.jumps.shape[1]
    return CodeBasis(
        starts,
        np.array([part.width for part in parts], dtype=np.int64),
        np.cumsum(np.concatenate(counts)).astype(np.int64),
        np.concatenate([np.zeros(0), *columns]).astype(np.int32),
        np.concatenate([np.zeros(0), *values]),
        first,
    )


def with_column(basis: CodeBasis, values: ndarray) -> CodeBasis:
    """Return the basis functions and one more at the end, which adds up, over all codes, the value of a row's cell.

    `values` has the value of each cell. The codes must not have cells that are summed up.
    """
    assert not basis.widths.any()
    ends = basis.offsets[1:]
    return basis._replace(
        offsets=basis.offsets + np.arange(len(basis.offsets)),
        columns=np.insert(basis.columns, ends, basis.n_features),
        values=np.insert(basis.values, ends, values),
        n_features=basis.n_features + 1,
    )


def feature_part(
    edges: ndarray,
    centres: ndarray,
    missing: bool,
    basis: str,
    strength: float,
    *,
    linear: bool,
    ramps: bool,
) -> CodeFunctions:
    """Return the basis functions of one feature.

    Parameters
    ----------
    edges : ndarray of shape (n_bins - 1,), float64
        The edges between the bins.
    centres : ndarray of shape (n_bins,), float64
        The standardised value of each bin.
    missing : bool
        Whether missing values have cell 0, before the bins.
    basis : str
        One of `BASES`.
    strength : float
        The scale of the basis functions.
    linear : bool
        Whether there is a linear column. A feature of two bins has only this column, or else one step.
    ramps : bool
        Whether hats are summed up to ramps.

    Returns
    -------
    CodeFunctions
    """
    n_bins, first = len(centres), int(missing)
    columns, names = [], []
    if linear and n_bins > 1:
        columns.append(np.concatenate((np.zeros(first), centres)))
        names.append("")
    if missing and basis != "one-hot":
        columns.append(np.eye(1, n_bins + 1)[0] * strength)
        names.append(" missing")
    if n_bins > 2 or (not linear and n_bins == 2) or (basis == "one-hot" and missing):
        more, labels = _basis(edges, centres, first, basis, strength, ramps)
        columns += more
        names += labels
    values = np.column_stack(columns) if columns else np.zeros((n_bins + first, 0))
    if basis != "cumulative":
        return CodeFunctions(values, 0, tuple(names))
    jumps = np.diff(values, axis=0, prepend=0.0)
    jumps[np.abs(jumps) < 1e-15 * np.abs(values).max(initial=1.0)] = 0.0
    return CodeFunctions(jumps, n_bins + first, tuple(names))


def _basis(
    edges: ndarray, centres: ndarray, first: int, basis: str, strength: float, ramps: bool
) -> tuple[list[ndarray], list[str]]:
    """Return the values of steps, cells, hats or ramps in each cell, and their names."""
    n_bins = len(centres)
    if basis == "cumulative":
        steps = np.zeros((n_bins + first, n_bins - 1))
        steps[first:] = np.tri(n_bins, n_bins - 1, -1)
        return list(steps.T * (strength / np.sqrt(n_bins - 1))), [f" > {edge:.6g}" for edge in edges]
    if basis == "one-hot":
        low = ["-inf", *(f"{edge:.6g}" for edge in edges)]
        high = [*(f"{edge:.6g}" for edge in edges), "inf"]
        names = [f" in ({a}, {b}]" for a, b in zip(low, high, strict=True)]
        return list(np.eye(n_bins + first) * strength), [" missing"] * first + names
    at = np.unique(np.round(np.linspace(0, n_bins - 1, min(MAX_KNOTS, n_bins))).astype(int))
    if ramps:
        rising = np.zeros((n_bins + first, len(at) - 1))
        for p in range(1, len(at)):
            ramp = np.interp(centres, centres[at], np.where(np.arange(len(at)) < p, 0.0, 1.0))
            rising[first:, p - 1] = np.maximum.accumulate(np.minimum(ramp, 1.0))  # because interpolation is rounded
        return list(rising.T * (strength / np.sqrt(len(at) - 1))), [f" up to knot {k}" for k in range(1, len(at))]
    hats = np.zeros((n_bins + first, len(at)))
    for p in range(len(at)):
        hats[first:, p] = np.interp(centres, centres[at], np.eye(len(at))[p])
    return list(hats.T * strength), [f" near {k}" for k in range(len(at))]


def interaction_part(n_rows: int, width: int, strength: float) -> CodeFunctions:
    """Return the basis functions of an interaction, whose cells form a grid: a step for each of its inner corners."""
    corners = [(a, b) for a in range(1, n_rows) for b in range(1, width)]
    jumps = np.eye(n_rows * width)[:, [a * width + b for a, b in corners]] * (strength / np.sqrt(max(len(corners), 1)))
    return CodeFunctions(jumps, width, tuple(f" corner {a}, {b}" for a, b in corners))


@frozen
class Bins:
    """The bins of one feature.

    Parameters
    ----------
    edges : ndarray of shape (n_bins - 1,), float64
        The edges between the bins. The number of edges below a value is the number of its bin.
    means : ndarray of shape (n_bins,), float64
        The mean of the sample's values in each bin.
    shares : ndarray of shape (n_bins,), float64
        The share of each bin among the rows with a value.
    """

    edges: ndarray
    means: ndarray
    shares: ndarray


def sample_by_class(blocks: Blocks, most: int = MAX_ROWS, *, whole_groups: bool = False) -> Block:
    """Draw rows of both classes by their ids. The weight of each row is that of the rows that it represents.

    Parameters
    ----------
    blocks : Blocks
        The rows.
    most : int, default=MAX_ROWS
        The largest number of rows of a class. If a class has fewer, all of its rows are drawn, so that the sample does not
        depend on the blocks.
    whole_groups : bool, default=False
        Whether groups are drawn instead of rows, so that the pairs within the groups are kept. If there would be too few
        groups, rows are drawn.

    Returns
    -------
    Block
    """
    most = max(64, min(most, MAX_VALUES // (2 * max(blocks.n_features, 1))))
    shares = tuple(most / n if n > most else 2.0 for n in (blocks.n_neg, blocks.n_pos))
    if whole_groups and max(blocks.n_neg, blocks.n_pos) > most:
        drawn = gather_sample(blocks, draw_groups, 2.0 * most / blocks.n_samples)
        assert drawn.group is not None
        if len(np.unique(drawn.group)) >= MIN_GROUPS:
            return drawn
    return gather_sample(blocks, draw_from_block, shares)


def count_missing(block: Block) -> ndarray:
    """Return, for each column, the number of rows of a block with a weight above 0 that have no value."""
    rows = block.rows
    if not has_missing(rows):
        return np.zeros(block.n_features, dtype=np.int64)
    rows = with_weight(block).rows
    if isinstance(rows, CsrRows):
        return np.bincount(rows.indices[np.isnan(rows.values)], minlength=block.n_features)
    return np.isnan(rows.values).sum(axis=0)


def bins_of(values: ndarray, weight: ndarray, n_bins: int) -> Bins:
    """Return bins of about equal weight. A value that weighs more than a bin gets its own bin.

    Parameters
    ----------
    values : ndarray of shape (n,), float64
        The values, of which missing ones are ignored.
    weight : ndarray of shape (n,), float64
        The weights of the values, above 0.
    n_bins : int
        The largest number of bins. If there are fewer different values, each has its own bin.
    """
    present = ~np.isnan(values)
    values = values[present]
    distinct = np.unique(values)  # a search in few values is faster than the sort that would return their positions
    mass = np.bincount(np.searchsorted(distinct, values), weight[present])
    if len(distinct) == 0:
        return Bins(np.zeros(0), np.zeros(1), np.zeros(1))
    last = _last_of_bins(mass, n_bins)
    below, above = distinct[last[:-1]], distinct[last[:-1] + 1]
    middle = 0.5 * below + 0.5 * above  # the sum could overflow
    edges = np.where((below <= middle) & (middle < above), middle, below)
    bin_of = np.searchsorted(last, np.arange(len(distinct)))
    shares = np.bincount(bin_of, mass, minlength=len(last))
    means = np.bincount(bin_of, mass * distinct, minlength=len(last)) / shares
    return Bins(edges, means, shares / shares.sum())


def _last_of_bins(mass: ndarray, n_bins: int) -> ndarray:
    """Return the position of the last value of each bin."""
    n = len(mass)
    if n <= n_bins:
        return np.arange(n)
    heavy = np.zeros(n, dtype=bool)
    while True:  # a value that is heavier than a bin gets its own bin, and the others share the rest
        n_light_bins = n_bins - np.count_nonzero(heavy)
        size = mass[~heavy].sum() / max(n_light_bins, 1)
        more = heavy | (mass >= size)
        if (more == heavy).all() or np.count_nonzero(more) >= n_bins:
            break
        heavy = more
    light = np.where(heavy, 0.0, mass)
    total = light.sum()
    below = np.cumsum(light)
    n_light_bins = n_bins - np.count_nonzero(heavy)
    number = (
        np.minimum((below - 0.5 * light) / total * n_light_bins, n_light_bins - 1e-9).astype(int)
        if total > 0
        else np.zeros(n, int)
    )
    # a bin ends if the next value has another bin number, or if a heavy value begins or ends
    ends = np.ones(n, dtype=bool)
    ends[:-1] = (number[1:] != number[:-1]) | heavy[1:] | heavy[:-1]
    last = np.flatnonzero(ends)
    while len(last) > n_bins:  # the neighbours with the smallest weight are joined
        weight = np.diff(np.cumsum(mass)[last], prepend=0.0)
        last = np.delete(last, int(np.argmin(weight[:-1] + weight[1:])))
    return last

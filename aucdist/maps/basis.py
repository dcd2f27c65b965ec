"""Basis functions of binned features and of pairs of them, as the matrix that the kernels take.

The penalty of a model is ``lam/2 |w|^2`` whatever the features are, so the scale of a basis function is a prior on how far its
weight may go, and one `lam` is to suit all of them:

* A **linear** column is the feature's value, as the mean of its bin, with mean 0 and standard deviation `LINEAR_SCALE` over the
  training rows.
* A **step** at each of the B - 1 edges between B bins has the value ``strength / sqrt(B - 1)`` above the edge. Weights that are
  independent with variance 1 then make shapes whose values at both ends differ with the variance strength^2, however many bins
  there are. A smaller strength makes the shapes straighter: the model goes to a linear one as it goes to 0.
* A **cell** of a one-hot code, and the missing values of a feature, have the value ``strength``, and **hats** too. Where a
  feature has a direction its hats become **ramps**: the sums of all hats from one knot on, up to ``strength / sqrt(knots - 1)``.
  They span the same shapes but for a constant, and a shape rises if no weight of a ramp is negative.
* A **pair** of features has a step for each corner of its grid, 1 above both edges, times ``strength / sqrt(number of corners)``.

With few rows of a class a larger `lam` does better, and not another strength: over nine KEEL sets of 17 to 58 positives the mean
AUC at the best of lam 1e-1, 1e-2, 1e-3 was .882 at strength 1, .871 at 1/2, .866 at 1/4, and .855 without steps.
"""

from dataclasses import dataclass

import numpy as np

from aucdist.kernels.codes import CodeBasis

BASES = ("cumulative", "one-hot", "hat")
LINEAR_SCALE = 0.25
"""Of linear columns. On letter, magic04 and covtype models with 1 in its place were no better at any lam, and took twice the
passes; on the small sets above they were worse by .014 in AUC."""
KNOTS = 16
"""The most hats of a feature."""


@dataclass(frozen=True, eq=False)
class CodeFunctions:
    """The basis functions of one code.

    Attributes
    ----------
    jumps : ndarray of shape (n_cells, n_functions), float64
        What each cell adds: E of `CodeBasis`.
    width : int
        As in `CodeBasis`.
    names : tuple of str
        What is appended to a feature's name for each function.
    """

    jumps: np.ndarray
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


def with_column(basis: CodeBasis, values: np.ndarray) -> CodeBasis:
    """Return the basis functions and one more, the last, which adds up the values of a row's cells, (n_cells,), over all codes.

    Only of codes whose cells are not summed.
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
    edges: np.ndarray,
    centres: np.ndarray,
    missing: bool,
    basis: str,
    strength: float,
    *,
    linear: bool,
    ramps: bool = False,
) -> CodeFunctions:
    """Return the basis functions of one feature.

    Parameters
    ----------
    edges : ndarray of shape (n_bins - 1,), float64
    centres : ndarray of shape (n_bins,), float64
        The standardised value of each bin.
    missing : bool
        Whether cell 0 is that of missing values, before the bins.
    basis : str
        One of `BASES`.
    linear : bool
        Whether the linear column is kept. A feature of two bins has that column alone, or else one step.
    ramps : bool, default=False
        Whether hats are summed up to ramps.
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
        more, labels = _shape(edges, centres, first, basis, strength, ramps)
        columns += more
        names += labels
    values = np.column_stack(columns) if columns else np.zeros((n_bins + first, 0))
    if basis != "cumulative":
        return CodeFunctions(values, 0, tuple(names))
    jumps = np.diff(values, axis=0, prepend=0.0)
    jumps[np.abs(jumps) < 1e-15 * np.abs(values).max(initial=1.0)] = 0.0
    return CodeFunctions(jumps, n_bins + first, tuple(names))


def _shape(
    edges: np.ndarray, centres: np.ndarray, first: int, basis: str, strength: float, ramps: bool
) -> tuple[list[np.ndarray], list[str]]:
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
    at = np.unique(np.round(np.linspace(0, n_bins - 1, min(KNOTS, n_bins))).astype(int))
    if ramps:
        rising = np.zeros((n_bins + first, len(at) - 1))
        for p in range(1, len(at)):
            ramp = np.interp(centres, centres[at], np.where(np.arange(len(at)) < p, 0.0, 1.0))
            rising[first:, p - 1] = np.maximum.accumulate(np.minimum(ramp, 1.0))  # interpolation rounds
        return list(rising.T * (strength / np.sqrt(len(at) - 1))), [f" up to knot {k}" for k in range(1, len(at))]
    hats = np.zeros((n_bins + first, len(at)))
    for p in range(len(at)):
        hats[first:, p] = np.interp(centres, centres[at], np.eye(len(at))[p])
    return list(hats.T * strength), [f" near {k}" for k in range(len(at))]


def pair_part(n_rows: int, width: int, strength: float) -> CodeFunctions:
    """Return the basis functions of a pair of features whose cells form a grid: a step for each of its inner corners."""
    corners = [(a, b) for a in range(1, n_rows) for b in range(1, width)]
    jumps = np.zeros((n_rows * width, len(corners)))
    value = strength / np.sqrt(max(len(corners), 1))
    for p, (a, b) in enumerate(corners):
        jumps[a * width + b, p] = value
    return CodeFunctions(jumps, width, tuple(f" corner {a}, {b}" for a, b in corners))

"""Newton's method on the smoothed loss of pairs, with a Hessian from a few thousand sampled rows.

The mean over very many pairs is almost smooth. Let t be 1 minus the margin of a pair. The hinge ``max(0, t)`` is
replaced by the mean of a few hinges that are shifted within a band of half-width h
(`aucdist.pairs.cuts.shifts`). Its derivative rises in equal steps, where that of Nesterov's smoothing rises linearly
("Smooth minimization of non-smooth functions", Mathematical Programming 103, 2005). Its cut is the mean of a few cuts,
and like them a dual point. The second derivative is taken from the slope, over the pairs in the band:

    H = lam I + (sum of w_i w_j (x_i - x_j)(x_i - x_j)') / (2 h pair_weight),

after Chapelle & Keerthi, "Efficient algorithms for ranking with SVMs" (Information Retrieval 13, 2010). H is estimated
from drawn rows, whose features are sent to the client. They are drawn by their ids, so that the result does not depend on
the blocks. The drawn rows in the band of one row are adjacent among the sorted scores, so a product with H costs a product
with these rows and one with their transpose. If H is small, it is computed and factorised. Otherwise, the step is computed by
conjugate gradients.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.linalg
from numpy import ndarray

from aucdist.data.block import Block, column_squares, matrix_of_rows, pair_moments, row_squares, rows_at, stacked
from aucdist.engine.blocks import Summary, without_rows
from aucdist.kernels.codes import BinRows
from aucdist.kernels.rows import Rows, accumulate, project
from aucdist.pairs.cuts import PairCuts
from aucdist.pairs.loss import running_sums
from aucdist.pairs.penalty import Penalty
from aucdist.pairs.top_negatives import LINE_SEARCH_WIDTH, Cutoff, MeanHinge, cutoff_of, smooth_cutoff, weigh_bands
from aucdist.parameters import frozen
from aucdist.solvers.sample import uniforms
from aucdist.solvers.signs import blocked, minimise_quadratic, project_onto_cone

FIRST_HALF_WIDTH_AT_ZERO = 2.0
"""The first half-width of the band if the weights are 0, where all margins are 0."""

FIRST_HALF_WIDTH = 0.07
"""The first half-width of the band at other weights: those of a sample or of another lam are near the minimum. With 0.1, paths of
five values of lam take 62 passes instead of 55 (kddcup99), 24 instead of 22 (page-blocks0) and 18 instead of 15 (yeast1)."""

HALF_WIDTH_OF_PLANES = 0.3
"""The half-width of the band for cutting planes, and after a Newton step that was too long."""

MIN_HALF_WIDTH = 1e-6
"""The smallest half-width. The rounding of scores is far below it."""

SHARE_OF_ROWS = 0.15
"""The share of all rows that is drawn from each class, within the next two limits. With 20 rows for each feature, fits of fewer
than 60,000 rows to a gap of 0.001 take at most four passes less (leaves of magic04 at lam 1e-4: 8 for 12) and up to a quarter
more CPU seconds."""

MIN_ROWS_DRAWN = 4_000
"""The smallest number of rows to draw from each class."""

MAX_ROWS_DRAWN = 10_000
"""The largest number of rows to draw from each class."""

ROWS_PER_FEATURE = 90
"""The largest number of rows to draw for each feature, above `MIN_ROWS_DRAWN`. With `MAX_ROWS_DRAWN`, fits of
covtype-ramp-test (54 features) take half as many CPU seconds again for as many passes. With 50, kddcup99 takes two more."""

ROWS_OF_TOP = 20_000
"""The number of rows to draw if only the highest-scoring negatives count, which may be few of those that are drawn. With
10,000, a9a with 5 % of the negatives takes 31 passes; with 20 000 it takes 18."""

BAND_MARGIN = 2.5
"""Rows are drawn from a band that is wider by this factor."""

OUTSIDE_SHARE = 0.5
"""The number of rows drawn from outside of this band, as a multiple of those from inside. A line search reaches them."""

MARGIN_BELOW = 0.25
"""Among the highest-scoring negatives, rows are drawn down to this many band widths below their band."""

ROWS_COUNTED = 20_000
"""The approximate number of rows from which the number of rows in the band is estimated."""

MIN_SHARE_LEFT = 0.3
"""Rows are drawn again if fewer rows are left in the band than this share of those that could be drawn from it."""

MAX_CHANCE_RATIO = 8.0
"""A row with large values, such as one of a rare category, is drawn with up to this many times the probability of other
rows, and weighs less."""

MAX_PRODUCTS = 400.0
"""The matrix is computed if this costs less than this many products with all drawn rows. It is also the more exact
way. With 100, the path of lam to 1e-3 on dna.scale takes more than 167 passes instead of 57 to a gap
of 0.001."""

MAX_PRODUCTS_OF_CODES = 50.0
"""The same for rows of codes that become a matrix of numbers, because a product reads one byte of a code and eight bytes of a
number. With 400, fits of the bins of fraud-oracle (10,000 rows, 143 codes, 237 features) take two to three times the CPU
seconds."""

FEATURES_PER_CODE = 2
"""The matrix of rows of codes is added up cell by cell if each code stands for more features than this on average."""

MAX_CG_STEPS = 150
"""The largest number of steps of conjugate gradients."""

CG_TOL = 0.1
"""Over all pairs, conjugate gradients end at this share of the first residual. Fits take no more passes than with 0.03,
and `features: auto` takes 5 to 20 % fewer CPU seconds on tables of 10,000 rows."""

CG_TOL_OF_TOP = 0.03
"""Where only the highest-scoring negatives count, conjugate gradients end at this share of the first residual. With 0.1, fits
take up to a fifth more passes."""

MAX_FACES = 4
"""Within a cone of signs, conjugate gradients start at most this many times, each time with the weights at 0 to which
the previous ones led."""

SLOPE_REDUCTION = 0.1
"""A line search ends where the derivative is this share of the derivative at its start."""

MAX_STEP = 2.0
"""The longest step of a line search, in units of the Newton step."""

MAX_SLOPES = 16
"""The largest number of derivatives that a line search takes."""

SEED = 3
"""The seed of the hash of row ids by which rows are drawn, different from those of anchors, splits and samples."""


@frozen
class Intervals:
    """Disjoint ascending intervals around scores, which are faster to search than the scores themselves."""

    low: ndarray
    high: ndarray

    @classmethod
    def around(cls, scores: ndarray, h: float) -> "Intervals":
        """Return the union of the intervals of half-width h around the scores."""
        scores = np.sort(scores)
        ends = np.flatnonzero(np.diff(scores) > 2.0 * h)
        return cls(scores[np.append(0, ends + 1)] - h, scores[np.append(ends, -1)] + h)

    def holds(self, scores: ndarray) -> ndarray:
        """Return which scores are in one of the intervals, bool of the shape of `scores`."""
        k = np.searchsorted(self.low, scores, side="right") - 1
        return (k >= 0) & (scores <= self.high[k])


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def draw_two_samples(
    block: Block,
    memory: Any,
    probabilities: ndarray,
    whole_groups: bool,
    band: Intervals,
    square: float,
    seed: int,
) -> Summary:
    """Return two samples of the block's rows, drawn by their ids or by the numbers of their groups, or one sample of all rows.

    Each row, or group, has a random number from 0 to 1. It is drawn for the first sample if the number is small, and for the
    second if the number is large. The result has the keys `anchors` and `larger_class`. Each has a list of one or two samples,
    and a sample has a block, its weights and the numbers of its groups.

    Parameters
    ----------
    probabilities : ndarray of shape (3,), float64
        The probabilities with which an anchor, a row of the larger class in the band, and any other row are drawn. 1 or more
        draws all of them.
    whole_groups : bool
        Whether to draw all rows of a group or none of them.
    band : Intervals
        Scores of anchors plus and minus the half-width of the band, in which a row has a pair inside the band.
    square : float
        The mean squared length of a row, if long rows are drawn more often; 0 if all rows are equally likely.
    seed : int
        The seed of this draw. Other seeds draw other rows.
    """
    in_groups = memory.group_numbers is not None
    bounds, numbers = memory.group_slices
    numbers = memory.group_numbers, np.repeat(numbers, np.diff(bounds)) if in_groups else None
    drawn: Summary = {}
    for name, class_rows, row_numbers in zip(
        ("anchors", "larger_class"), (memory.anchors, memory.larger_class), numbers, strict=True
    ):
        samples = []
        by_band = name == "larger_class" and not whole_groups
        positions, most = class_rows.positions, probabilities[1:].max() if by_band else probabilities[0]
        uniform = uniforms(row_numbers if whole_groups else block.row_id.take(positions), seed)
        chances = np.ones(len(positions))
        if square > 0.0:
            chances = np.minimum(0.5 + 0.5 / square * memory.squares.take(positions), MAX_CHANCE_RATIO)
        may_be_drawn = np.flatnonzero(np.minimum(uniform, 1.0 - uniform) <= (most * chances if most < 1.0 else 1.0))
        uniform, probability = uniform[may_be_drawn], np.full(len(may_be_drawn), probabilities[0])
        if by_band:
            probability = np.where(
                band.holds(1.0 + class_rows.current_scores[may_be_drawn]), probabilities[1], probabilities[2]
            )
        probability = np.where(probability < 1.0, probability * chances[may_be_drawn], 1.0)
        for draw in (uniform, 1.0 - uniform)[: 1 if (probabilities >= 1.0).all() else 2]:
            chosen = np.flatnonzero(draw <= probability)
            drawn_positions = may_be_drawn[chosen]
            rows = block.take(positions.take(drawn_positions))
            weights = rows.weights() if whole_groups else rows.weights() / np.minimum(probability[chosen], 1.0)
            samples.append((rows, weights, row_numbers.take(drawn_positions) if in_groups else None))
        drawn[name] = [samples]
    return drawn


def measure_rows(block: Block, memory: Any) -> tuple[Any, Summary]:
    """Compute and keep the squared length of each row, unless it is known already, and return the sum."""
    squares = row_squares(block.rows).astype(np.float32) if memory.squares is None else memory.squares
    return replace(memory, squares=squares), float(squares.sum(dtype=np.float64))


@without_rows
def count_in_band(number: int, memory: Any, band: Intervals, stride: int) -> Summary:
    """Estimate how many rows of the larger class are in the band, from one in `stride` of them."""
    scores = 1.0 + memory.larger_class.current_scores[::stride]
    return stride * int(np.count_nonzero(band.holds(scores)))


# ---- client: runs the steps -------------------------------------------------------------------------------------------


class DrawnRows:
    """The rows that are drawn: two samples of them, or one of all rows.

    Attributes
    ----------
    samples : list of RowSample
        Empty until rows are drawn.
    n_to_draw : int
        About how many rows of each class a sample has.
    """

    def __init__(self, cuts: PairCuts):
        self.cuts, self._seed, self._square = cuts, SEED, 0.0
        self.samples: list[RowSample] = []
        n_rows, n_features = cuts.n_anchors + cuts.n_larger, cuts.blocks.n_features
        self.n_to_draw = ROWS_OF_TOP
        if not cuts.negatives.is_top_only:
            # With more features than rows, only line searches use the samples. Smaller samples would then cost more passes.
            share = SHARE_OF_ROWS if n_features <= n_rows else 1.0
            most = min(max(ROWS_PER_FEATURE * n_features, MIN_ROWS_DRAWN), MAX_ROWS_DRAWN)
            self.n_to_draw = int(np.clip(share * n_rows, MIN_ROWS_DRAWN, most))
        groups = cuts.groups
        self._whole_groups = groups is not None and groups.grouped and self.n_to_draw < cuts.n_larger

    def for_band(self, h: float, *, anew: bool) -> "tuple[RowSample, RowSample]":
        """Return a sample for a step and one for its line search, drawn again if too few of the rows are in the band.

        The two samples have different rows, unless all rows are drawn. On the sample from which it was computed, every step
        seems to have the right length.

        Parameters
        ----------
        h : float
            The half-width of the band.
        anew : bool
            Whether to draw new rows in any case, because the last step was poor.
        """
        samples, cuts = self.samples, self.cuts
        if not samples and self.n_to_draw < cuts.n_larger and not self._whole_groups:
            self._square = cuts.blocks.reduce(measure_rows) / cuts.blocks.n_samples
        if len(samples) != 1 and not (
            samples and not anew and h <= samples[0].h and samples[1].is_enough(h, self.n_to_draw)
        ):
            band, stride = self._band(h), max(1, cuts.n_larger // ROWS_COUNTED)
            n_band = cuts.blocks.reduce(count_in_band, band, stride)
            self.samples = samples = self._draw(min(n_band, cuts.n_larger), band, h)
        return samples[0], samples[-1]

    def move_scores(self, step: float) -> None:
        """Move with the current point, which has moved by this step length along the direction that was searched last."""
        for sample in self.samples:
            sample.move_scores(step)

    def _band(self, h: float) -> Intervals:
        """Return the intervals of scores plus 1 of the larger class in the band, or band and above the cutoff."""
        cutoff = self.cuts.current.cutoff
        if cutoff is None or self.cuts.negatives.are_anchors:
            return Intervals.around(self.cuts.scores, BAND_MARGIN * h)
        width = h if cutoff.band is None else float(np.ptp(cutoff.band.scores))
        # Negatives below all positives minus the margin are in no active pair, and change no mean hinge.
        lowest = max(cutoff.score - MARGIN_BELOW * width, float(self.cuts.scores.min()) - 1.0 - BAND_MARGIN * h)
        return Intervals(np.array([1.0 + lowest]), np.array([np.inf]))

    def _draw(self, n_band: float, band: Intervals, h: float) -> "list[RowSample]":
        cuts, groups, n = self.cuts, self.cuts.groups, self.n_to_draw
        self._seed += 1
        if self._whole_groups:
            probabilities = np.full(3, max(n / cuts.n_anchors, n / cuts.n_larger))
        else:
            in_band, rest = n / max(n_band, 1.0), cuts.n_larger - n_band
            probabilities = np.array([n / cuts.n_anchors, in_band, OUTSIDE_SHARE * n / rest if rest > 0.0 else in_band])
        drawn = cuts.blocks.reduce(draw_two_samples, probabilities, self._whole_groups, band, self._square, self._seed)
        samples = []
        for number in range(len(drawn["anchors"][0])):
            anchors, larger_class = (
                [sample_of_block[number] for sample_of_block in drawn[name]] for name in ("anchors", "larger_class")
            )
            n_anchors, numbers = sum(len(weights) for _, weights, _ in anchors), None
            blocks, block_weights, numbers_of_samples = zip(*anchors, *larger_class, strict=True)
            weights = np.concatenate(block_weights)
            if groups is not None:
                numbers = np.concatenate(numbers_of_samples).astype(np.int64)
                weights[:n_anchors] *= groups.factor[numbers[:n_anchors]]
            if self._whole_groups:
                weights[:n_anchors] /= min(probabilities[0], 1.0)
            samples.append(RowSample(cuts, stacked(blocks), n_anchors, weights, numbers, h))
        return samples


@dataclass(eq=False)
class RowSample:
    """A sample of the rows at the current point: the anchors, then rows of the larger class.

    Attributes
    ----------
    cuts : PairCuts
        The cuts of the fit.
    rows : Block
        The rows of the sample.
    n_anchors : int
        The number of anchors.
    weights : ndarray of shape (n_rows,), float64
        Divided by the share that was drawn of rows like this one.
    group_numbers : ndarray of shape (n_rows,), int64, or None
        The number of each row's group, if pairs are within groups.
    h : float
        The half-width of the band that the rows were drawn for.
    """

    cuts: PairCuts
    rows: Block
    n_anchors: int
    weights: ndarray
    group_numbers: ndarray | None
    h: float
    _scores: ndarray | None = field(default=None, init=False)
    _scored_direction: tuple[ndarray, ndarray] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        n, n_rows, are_anchors = self.n_anchors, len(self.weights), self.cuts.negatives.are_anchors
        self.negatives = slice(0, n) if are_anchors else slice(n, n_rows)
        self.positives = slice(n, n_rows) if are_anchors else slice(0, n)
        self.sign = -1.0 if are_anchors else 1.0  # scores are mirrored if the negatives are anchors

    @cached_property
    def matrix(self) -> ndarray:
        """The rows as a dense matrix, cached for several Newton steps."""
        matrix = matrix_of_rows(self.rows.rows)
        return matrix if isinstance(matrix, ndarray) else matrix.toarray()

    @cached_property
    def by_cells(self) -> bool:
        """Whether the matrix of second derivatives is added up cell by cell."""
        rows = self.rows.rows
        return isinstance(rows, BinRows) and self.rows.n_features > FEATURES_PER_CODE * rows.codes.shape[1]

    @property
    def is_dense(self) -> bool:
        """Whether the matrix of second derivatives is computed."""
        blocks = self.cuts.blocks
        most_products = MAX_PRODUCTS_OF_CODES if blocks.has_codes and not self.by_cells else MAX_PRODUCTS
        return blocks.n_features**2 <= most_products * blocks.ranges.width

    @property
    def scores(self) -> ndarray:
        """The rows' scores, float64 of shape (n_rows,): a pair's margin is that of the anchor minus that of the other row."""
        if self._scores is None:
            self._scores = self.rows.scores(self.cuts.sign * self.cuts.current.w)
        return self._scores

    def move_scores(self, step: float) -> None:
        """Move the scores to this step along the search direction, or discard them if another direction was taken."""
        if step != 0.0:
            self._scores = None if self._scored_direction is None else self.scores + step * self._scored_direction[1]
        self._scored_direction = None

    def is_enough(self, h: float, n: int) -> bool:
        """Return whether enough of the rows that a sample of n could have are in the band of half-width h, or count."""
        cuts, current = self.cuts, self.cuts.current
        if current.cutoff is None or cuts.negatives.are_anchors:
            return Pairs(self, h, 0.0).n_larger >= MIN_SHARE_LEFT * min(n, current.n_band)
        counted = self.weights[self.negatives] * (current.cutoff.fractions(self.scores[self.negatives]) > 0.0)
        total = float(counted.sum())
        return total * total >= MIN_SHARE_LEFT * min(n, total * cuts.n_larger / cuts.blocks.weight_neg) * float(
            counted @ counted
        )

    def separate_groups(self, scores: ndarray, h: float) -> ndarray:
        """Return scores that are shifted by group, so that no band contains rows of two groups."""
        return scores if self.group_numbers is None else scores + self.group_numbers * (np.ptp(scores) + 2.0 + 2.0 * h)

    def slope_along(self, move: ndarray, h: float, cutoff_width: float) -> Callable[[float], float]:
        """Return the derivative of the smoothed mean by the step along a direction, as a function of the step."""
        h, numbers, weights = h or LINE_SEARCH_WIDTH, self.group_numbers, self.weights
        counted_negatives = self.cuts.negatives
        if self._scored_direction is None or self._scored_direction[0] is not move:  # score each direction only once
            self._scored_direction = move, self.rows.scores(self.cuts.sign * move)
        scores, change = self.sign * self.scores, self.sign * self._scored_direction[1]
        positives, negatives = (np.arange(len(scores))[rows] for rows in (self.positives, self.negatives))
        # The search is faster if the values are nearly sorted.
        negatives = negatives[np.argsort(self.separate_groups(scores, h)[negatives])]
        scale, target = float(weights[positives].sum()) / self.cuts.pair_weight, 0.0
        if counted_negatives.is_top_only:
            target = counted_negatives.target * float(weights[negatives].sum()) / self.cuts.blocks.weight_neg
        if target > 0.0:
            scale = 1.0 / target

        def slope(step: float) -> float:
            """Return the derivative at a step."""
            at, counts = self.separate_groups(scores + step * change, h), weights[negatives]
            hinge = MeanHinge(at[positives], weights[positives], h)
            if target > 0.0 and len(positives):
                negative_scores = at[negatives], counts
                exact = cutoff_of(*negative_scores, target)
                smoothed = smooth_cutoff(exact, hinge, target, cutoff_width, partial(weigh_bands, *negative_scores))
                counts = counts * (smoothed or exact).fractions(at[negatives])
            counted = negatives[counts > 0.0]
            first: Any = 0
            if numbers is not None:
                first = np.searchsorted(numbers[positives[hinge.order]], numbers[counted])
            changes = hinge.derivative(at[counted], change[counted], change[positives], first)
            return float(counts[counts > 0.0] @ changes) * scale

        return slope


class Pairs:
    """The drawn pairs in the band at a point, sorted, and products with the second derivative of their mean.

    With a share of the negatives, those near the cutoff add a term: their fractions rise with their mean hinge at the
    rate 1 / cutoff_width, and the cutoff moves with the mean over them. A mean hinge changes as the score of the negative
    minus the mean score of the positives that are active with it.

    Parameters
    ----------
    sample : RowSample
        The sample of rows that the pairs are drawn from.
    h : float
        The half-width of the band.
    cutoff_width : float
        The width of the band in which negatives will count in part, after it has narrowed. 0 means the width of the cut.
    """

    def __init__(self, sample: RowSample, h: float, cutoff_width: float):
        cuts, n, scores = sample.cuts, sample.n_anchors, sample.separate_groups(sample.scores, h)
        weights, cutoff = sample.weights, cuts.current.cutoff
        if cutoff is not None:
            weights = weights.copy()
            weights[sample.negatives] *= cutoff.fractions(sample.sign * sample.scores[sample.negatives])
        a, b = (np.argsort(part, kind="stable") for part in (scores[:n], scores[n:]))
        a, b = a[weights[:n][a] > 0.0], n + b[weights[n:][b] > 0.0]
        low, high = ends(scores[a] - 1.0, scores[b], h)
        a = a[low < high]
        low, high = ends(scores[b] + 1.0, scores[a], h)
        b, self._of_others = b[low < high], (low[low < high], high[low < high])
        self._of_anchors = ends(scores[a] - 1.0, scores[b], h)
        row_positions, self.n_anchors, self.n_larger = np.concatenate([a, b]), len(a), len(b)
        self.n_pairs = len(row_positions)
        self.scale = 1.0 / (2.0 * h * cuts.pair_weight)
        self.weights = weights[row_positions]
        self.pair_weights = self._sums(self.weights) * self.weights  # the weight of each row's pairs
        # The terms of the negatives near the cutoff; `_near` sets them.
        self.rates = self._gradient_change = self._active = np.zeros(0)
        self.of_top = cutoff is not None
        if cutoff is not None and cutoff.band is not None:
            near = self._near(sample, cutoff, cutoff.band.width, cutoff_width, h)
            row_positions = np.append(row_positions, near)
        self.sample, self._which = sample, row_positions

    @cached_property
    def rows(self) -> Rows:
        """The rows in one matrix, which is made only when it is needed."""
        return rows_at(self.sample.rows.rows, self._which)

    def _near(self, sample: RowSample, cutoff: Cutoff, before: float, cutoff_width: float, h: float) -> ndarray:
        """Return the negatives that count in part in a band that was as wide as `before`, and the positives active with them.

        What they add is kept.
        """
        rows, weights, scores = np.arange(len(sample.scores)), sample.weights, sample.sign * sample.scores
        negatives, positives = rows[sample.negatives], rows[sample.positives]
        negatives = negatives[np.argsort(-scores[negatives])]
        fractions, width = cutoff.fractions(scores[negatives]), cutoff_width or before
        partly = (fractions > 0.0) & (fractions < 1.0) & (weights[negatives] > 0.0)
        near = negatives[partly]
        # Seen from the positives, with mirrored scores, the negatives are those that may be active.
        self._hinge, self._mirrored = (
            MeanHinge(scores[positives], weights[positives], h), MeanHinge(-scores[near], np.ones(len(near)), h)
        )  # fmt: skip
        self._ends = self._hinge.ends(scores[near])
        n_active = int(self._ends[1].max(initial=0))
        self._mirrored_ends = self._mirrored.ends(-self._hinge.scores[:n_active])
        self._active = self._hinge.over_active(self._ends, np.ones(n_active))
        self.rates = weights[near] / (width * sample.cuts.negatives.target)
        self._gradient_change = self.rates * (before - width) * fractions[partly]
        return np.concatenate([near, positives[self._hinge.order[:n_active]]])

    def _hinge_changes(self, changes: ndarray) -> ndarray:
        """Return how the mean hinges of the negatives near the cutoff change with their scores and those of positives."""
        n = len(self.rates)
        return self._active * changes[:n] - self._hinge.over_active(self._ends, changes[n:])

    def _sums(self, values: ndarray) -> ndarray:
        """Return for each row the sum of a value over its partners, which are the rows with which it is in a pair in the band."""
        n = self.n_anchors
        anchor_sums, other_sums = running_sums(values[:n]), running_sums(values[n:])
        (low, high), (first, last) = self._of_anchors, self._of_others
        return np.concatenate([other_sums[high] - other_sums[low], anchor_sums[last] - anchor_sums[first]])

    def product(self, p: ndarray) -> ndarray:
        """Return the product of the matrix of second derivatives and a vector."""
        n = self.n_pairs
        change = np.empty(len(self._which))
        project(self.rows, p, change)
        coefs = self.scale * (self.pair_weights * change[:n] - self.weights * self._sums(self.weights * change[:n]))
        return self._sum_of_rows(coefs, self.rates * self._hinge_changes(change[n:]) if len(self.rates) else self.rates)

    def gradient_change(self) -> ndarray:
        """Return by how much the gradient changes when the band of the cutoff narrows and all rows in it stay in it."""
        return self._sum_of_rows(np.zeros(self.n_pairs), self._gradient_change)

    def _sum_of_rows(self, coefs: ndarray, near_coefs: ndarray) -> ndarray:
        """Return the weighted sum of the rows. The total weight of the negatives near the cutoff stays the same."""
        if len(self.rates):
            near_coefs = near_coefs - self.rates * (float(near_coefs.sum()) / float(self.rates.sum()))
            sums = len(near_coefs) * self._mirrored.over_active(self._mirrored_ends, near_coefs)
            coefs = np.concatenate([coefs, self._active * near_coefs, -self._hinge.shares[: len(sums)] * sums])
        out = np.zeros(self.sample.cuts.blocks.n_features)
        accumulate(self.rows, np.arange(len(coefs)), coefs, out)
        return out

    def matrix(self) -> ndarray:
        """Return the matrix of second derivatives, float64 of shape (n_features, n_features)."""
        sample, in_pairs = self.sample, self._which[: self.n_pairs]
        (low, high), n = self._of_anchors, self.n_anchors
        if sample.by_cells:
            total = self.scale * pair_moments(
                rows_at(sample.rows.rows, in_pairs), low, high, self.weights, self.pair_weights
            )
        else:
            all_rows = sample.matrix[in_pairs]
            A, B = all_rows[:n], all_rows[n:]
            # `half` first holds the sums of each anchor's partners, and then, in place, the right factor of A'.
            below = running_sums(self.weights[n:, np.newaxis] * B)
            half = below.take(low, axis=0)
            half -= below.take(high, axis=0)
            half *= self.weights[:n, np.newaxis]
            half += (0.5 * self.pair_weights[:n, np.newaxis]) * A
            total = A.T @ half
            # BLAS computes B'B with half the operations of a general product.
            B = np.sqrt(self.pair_weights[n:, np.newaxis]) * B
            total = self.scale * (total + total.T + B.T @ B)
        if len(self.rates) and len(total):
            columns = sample.matrix[self._which[self.n_pairs :]].T
            near = np.array([self._hinge_changes(column) for column in columns])
            near -= (near @ self.rates / self.rates.sum())[:, np.newaxis]
            near *= np.sqrt(self.rates)
            total += near @ near.T
        return total

    def squares(self) -> ndarray:
        """Return about the diagonal of the matrix of second derivatives, without the positives near the cutoff."""
        weights = np.zeros(len(self._which))
        of_near = self.rates * self._active**2
        weights[: self.n_pairs + len(of_near)] = np.concatenate([self.scale * self.pair_weights, of_near])
        return column_squares(self.rows, weights)


def ends(centres: ndarray, scores: ndarray, h: float) -> tuple[ndarray, ndarray]:
    """Return the positions where the band around each centre begins and ends among ascending scores."""
    return np.searchsorted(scores, centres - h, side="right"), np.searchsorted(scores, centres + h, side="left")


def step_to_zero(slope: Callable[[float], float], first: float) -> float:
    """Return approximately the step at which an increasing derivative is 0, given its first value, which is below 0.

    The step 1 is tried first, because it is right near the minimum. Then chords between steps on both sides are used (the
    Illinois rule).
    """
    low, low_slope, step = 0.0, first, 1.0
    step_slope = slope(step)
    tries = 1
    while step_slope < SLOPE_REDUCTION * first and step < MAX_STEP and tries < MAX_SLOPES:
        low, low_slope, step = step, step_slope, 2.0 * step
        step_slope, tries = slope(step), tries + 1
    high, high_slope = step, step_slope
    while abs(step_slope) > -SLOPE_REDUCTION * first and high_slope > 0.0 and tries < MAX_SLOPES:
        step = low + (high - low) * min(max(low_slope / (low_slope - high_slope), 0.02), 0.98)
        step_slope, tries = slope(step), tries + 1
        if step_slope > 0.0:
            high, high_slope, low_slope = step, step_slope, 0.5 * low_slope
        else:
            low, low_slope, high_slope = step, step_slope, 0.5 * high_slope
    return step


def newton_step(pairs: Pairs, gradient: ndarray, w: ndarray, penalty: Penalty, damping: float) -> ndarray:
    """Return the step from w to the minimum of the quadratic model with an L2 penalty, within the cone of the signs.

    Parameters
    ----------
    pairs : Pairs
        The pairs of the sample.
    gradient : ndarray
        The gradient of the objective at w.
    w : ndarray
        The weights.
    penalty : Penalty
        The penalty.
    damping : float
        The mean of the second derivatives times this is added to lam.
    """
    lam, signs = penalty.lam, penalty.signs
    if pairs.sample.is_dense:
        H = pairs.matrix()
        H[np.diag_indices_from(H)] += lam + damping * np.trace(H) / len(w)
        if signs is not None:
            return minimise_quadratic(H, H @ w - gradient, signs) - w
        try:
            factor = scipy.linalg.cho_factor(H, check_finite=False)
        except scipy.linalg.LinAlgError:
            return -gradient / H.diagonal()
        step: ndarray = -scipy.linalg.cho_solve(factor, gradient, check_finite=False)
        return step
    squares, precision = pairs.squares(), CG_TOL_OF_TOP if pairs.of_top else CG_TOL
    total = lam + damping * float(squares.mean())

    def product(p: ndarray) -> ndarray:
        """Return the damped second derivative times a vector."""
        return pairs.product(p) + total * p

    if signs is None:
        return conjugate_gradients(product, -gradient, squares + total, precision)
    target = w
    for _ in range(MAX_FACES):
        slope = gradient + product(target - w)
        fixed = blocked(target, slope, signs)
        move = conjugate_gradients(product, -slope, squares + total, precision, fixed)
        target = project_onto_cone(target + move, signs)
    return target - w


def conjugate_gradients(
    product: Callable[[ndarray], ndarray], q: ndarray, diagonal: ndarray, precision: float,
    fixed: ndarray | None = None,
) -> ndarray:  # fmt: skip
    """Return an approximate solution of ``H x = q`` in which some entries stay 0, preconditioned by about the diagonal of H."""
    inverse = 1.0 / diagonal if fixed is None else np.where(fixed, 0.0, 1.0 / diagonal)
    x, residual = np.zeros(len(q)), q
    p = inverse * residual
    square = float(residual @ p)
    enough = precision**2 * square
    for _ in range(MAX_CG_STEPS):
        if not square > enough:
            break
        Hp = product(p)
        length = square / float(p @ Hp)
        x, residual = x + length * p, residual - length * Hp
        z = inverse * residual
        before, square = square, float(residual @ z)
        p = z + (square / before) * p
    return x

"""Cuts of the pairwise hinge: tangents of the loss, from the exact scores of the anchors, which are the smaller class.

The anchors are the rows of the smaller class (`aucdist.pairs.loss`). The client has their scores, sorts them and sends
them to all blocks. Where there are too many of them, they are sent as cells of scores (`aucdist.pairs.cell_cuts`), for
which the loss is known up to a slack: such a cut may be taken again with other cells. `aucdist.pairs.top_negatives` decides
which negatives count.

A `Bundle` holds the dual points of all cuts. Its lower bound is the maximum of a concave quadratic over a simplex.
"""

from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from aucdist.engine.blocks import Blocks, Summary, without_rows
from aucdist.pairs.kernels import cut_groups
from aucdist.pairs.loss import HINGE, Anchors, ScoredRows
from aucdist.pairs.penalty import Penalty
from aucdist.pairs.problem import PairMemory, PairObjective, PairProblem, rounding_of_pairs, rows_from
from aucdist.pairs.top_negatives import CountedNegatives, Cutoff
from aucdist.solvers.rounding import EPS

STEPS_OF_STAIR = 5
"""The number of steps of the staircase. It is odd, so that the middle one is the hinge itself. With 3, 7, 9 or 15, a
fit takes about the same number of passes."""
STEPS_OF_FINE_STAIR = 15
"""The same where only the highest-scoring negatives count, and few rows are in the band: the mean over their few pairs is not
smooth. 62 fits with which this was not chosen take 2,757 passes with it, and 3,014 without."""
MAX_ROWS_OF_FINE_STAIR = 30_000
"""The largest number of rows in the band for the fine stair. With 3,000, fits take 11 % more passes."""

SLACK_OF_GAP = 0.05
"""The slack may be this share of the gap."""
MAX_TRIES = 4
"""At most this many cuts are taken at a point to reach such a slack."""


@dataclass(frozen=True, eq=False)
class Cut:
    """A cut, and what is known of the loss where it was taken.

    Attributes
    ----------
    w : ndarray of shape (n_features,), float64
        Where it was taken.
    loss, slack : float
        The mean loss there is at most the first, and at least the first minus the second.
    score_error : float
        A bound on the error of any row's score there.
    counted_loss : float
        The mean loss of the rows as they count for the cut.
    height : float
        The value of the cut at w = 0.
    n_band : float
        How many rows of the larger class are in pairs within the band of the shifts.
    cutoff : Cutoff or None
        Which negatives count for it; None for all.
    step : float
        How far w is on the way from the present point to the one scored last.
    slopes : ndarray of float64
        The derivatives by the anchors' scores, in the form that `PairCuts.finish` takes.
    scale : float
        A factor of the gradient; the height has it.
    gradient : ndarray of shape (n_features,), float64
        Once `PairCuts.finish` has added up the rows.
    """

    w: np.ndarray
    loss: float
    slack: float
    score_error: float
    counted_loss: float = np.inf
    height: float = 0.0
    n_band: float = 0.0
    cutoff: Cutoff | None = None
    step: float = 0.0
    slopes: np.ndarray = field(default_factory=partial(np.zeros, 0))
    scale: float = 1.0
    gradient: np.ndarray = field(default_factory=partial(np.zeros, 0))


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


@without_rows
def take_cut(
    number: int, memory: PairMemory, step: float, shifts: np.ndarray, anchors: Anchors, cutoff: Cutoff | None,
    exact: tuple[Anchors, Cutoff | None] | None,
) -> tuple[PairMemory, Summary]:  # fmt: skip
    """Take a cut at a step of the way, over the rows from the cutoff on, or over all for None.

    With `exact`, the anchors and the cutoff of the loss itself, that is summed as well, as ``"exact_loss"``.
    """
    rows = ScoredRows(memory.others.scores_at(step), memory.others.weights, memory.runs)
    positions, above = rows_from(cutoff, rows)
    coefs, slope_sums = np.zeros(len(rows.scores)), np.zeros(anchors.n_gaps)
    slopes = coefs if cutoff is None else np.empty(len(above.scores))
    height, total, doubt, n_band = cut_groups(tuple(above), shifts, anchors.search, anchors.doubt, slopes, slope_sums)
    summary = {"loss": total, "doubt": doubt, "slope_sums": slope_sums, "height": height, "n_band": n_band}
    if cutoff is not None:
        coefs[positions] = slopes
        summary["counted"] = above.weights.sum()
    if exact is not None:
        anchors, cutoff = exact
        counted = rows_from(cutoff, rows)[1]
        summary["exact_loss"] = HINGE.loss_and_row_slopes(
            counted, anchors, np.empty(len(counted.scores)), np.zeros(anchors.n_gaps)
        )
    return replace(memory, coefs=coefs), summary


# ---- client: runs the steps -------------------------------------------------------------------------------------------


def shifts(h: float, n: int) -> np.ndarray:
    """Return the shifts of a stair of n steps and half-width h: ascending, the middle one 0; only that for h = 0."""
    if h == 0.0:
        return np.zeros(1)
    return h * ((2 * np.arange(n) + 1 - n) / n)


class PairCuts(PairProblem):
    """The hinge over the pairs that count, and its cuts, along lines from the present point.

    Parameters
    ----------
    blocks : Blocks
        Both classes must be there.
    objective : PairObjective
    start : ndarray of shape (n_features,), float64
        The first present point.
    stride : int, default=1
        As of `PairProblem`.

    Attributes
    ----------
    here : Cut
        The cut at the present point, where the line begins along which cuts are taken. Before the first
        cut, only its point and the error of its scores are set.
    scores : ndarray of float64
        What the client has of the anchors' scores there.
    pair_half_width : float
        The half-width of the band of pairs. A cut is the mean of those at scores of the larger class that are shifted by the
        `shifts` within it: see `aucdist.pairs.kernels.cut_group`.
    cutoff_width : float
        The width of the band in which negatives count in part, where only the highest-scoring ones count.
    """

    def __init__(self, blocks: Blocks, objective: PairObjective, start: np.ndarray, *, stride: int = 1):
        negatives, groups = CountedNegatives(blocks, objective.subset), objective.groups
        self.rounding = rounding_of_pairs(blocks, groups)
        super().__init__(blocks, HINGE, groups, negatives, start=start, stride=stride)
        self.weight_error = negatives.weight_error(blocks, self.rounding)
        self.pair_half_width, self.cutoff_width = 0.0, 0.0
        self.here, self.scores = Cut(start, np.inf, 0.0, self.rounding.score(start)), self.first_scores
        self._target = self.scores, 0.0  # the scores at the end of the line, and a bound on their error

    def score(self, w: np.ndarray) -> np.ndarray:
        """Score all rows at w, the end of the line that starts at the present point."""
        self._target = super().score(w), self.rounding.score(w)
        return self._target[0]

    def value_error(self, reach: float) -> float:
        """Return a bound on the rounding of the loss beyond that of scores and sums, where no score is larger than `reach`."""
        return 0.0

    def scores_at(self, step: float) -> np.ndarray:
        """Return the scores that the client has of anchors at a step of the way."""
        return self.scores + step * (self._target[0] - self.scores)

    def cutoffs(self, step: float, scores: np.ndarray) -> tuple[Cutoff | None, Cutoff | None]:
        """Return which negatives count for a cut at a step, and which for the loss there; None where all do."""
        return self.negatives.soft_and_hard_cutoff(
            self.blocks, step, scores, self.weights, self.pair_half_width, self.cutoff_width
        )

    def anchors_at(self, step: float, scores: np.ndarray, cutoff: Cutoff | None) -> tuple[Anchors, np.ndarray, float]:
        """Return the anchors as they are sent and as they count, what `slopes_of_anchors` takes, and what they weigh together."""
        weights = self.negatives.counted(scores, self.weights, cutoff)
        return *self.sort_anchors(scores, weights), float(weights.sum())

    def slopes_of_anchors(self, slope_sums: np.ndarray, anchors: Anchors, order: np.ndarray) -> np.ndarray:
        """Return the derivatives of the loss by the anchors' scores, as `gradient` takes them."""
        return self.loss.anchor_slopes(slope_sums, anchors, order)

    def cut(self, step: float, w: np.ndarray, gap: float) -> Cut:
        """Return a cut at a step of the way from the present point to the one scored last.

        Parameters
        ----------
        w : ndarray of shape (n_features,), float64
            The weights there.
        gap : float
            The current gap of the objective, which limits the slack of the loss.
        """
        here, reach = self.here, self.rounding.reach
        # The error of interpolated scores: the errors at both ends, and the rounding of the interpolation.
        error = (
            abs(1.0 - step) * here.score_error + abs(step) * self._target[1] + 4.0 * EPS * (reach(here.w) + reach(w))
        )
        is_fine = self.negatives.is_top_only and 0.0 < here.n_band < MAX_ROWS_OF_FINE_STAIR
        stair = shifts(self.pair_half_width, STEPS_OF_FINE_STAIR if is_fine else STEPS_OF_STAIR)
        scores = self.scores_at(step)
        soft, hard = self.cutoffs(step, scores)
        for _ in range(MAX_TRIES):
            anchors, order, weight = self.anchors_at(step, scores, soft)
            exact = None
            if hard is not soft:
                same = not self.negatives.are_anchors
                loss_anchors = anchors if same else self.anchors_at(step, scores, hard)[0]
                exact = loss_anchors, self.negatives.of_others(hard)
            taken = self.blocks.reduce(take_cut, step, stair, anchors, self.negatives.of_others(soft), exact)
            slopes = self.slopes_of_anchors(taken["slope_sums"], anchors, order)
            slack = float(taken["doubt"]) / self.mass
            if slack <= SLACK_OF_GAP * max(0.0, gap):
                break
        scale = self.negatives.scale(float(taken.get("counted", weight))) / len(stair)
        loss = float(taken["loss" if exact is None else "exact_loss"]) / self.mass + slack
        return Cut(
            w, loss, slack, error, counted_loss=float(taken["loss"]) * (len(stair) * scale / self.mass),
            height=taken["height"] * (scale / self.mass), n_band=taken["n_band"], cutoff=soft, step=step, slopes=slopes,
            scale=scale,
        )  # fmt: skip

    def finish(self, cut: Cut, keep: bool) -> Cut:
        """Return a cut with its gradient; with `keep` the present point moves to it."""
        gradient = self.gradient(cut.slopes, cut.scale, cut.step if keep else None)
        cut = replace(cut, gradient=gradient, slopes=np.zeros(0))
        if keep:
            self.here, self.scores = cut, self.scores_at(cut.step)
            self._target = self.scores, cut.score_error
        return cut


RIDGE = 1e-12
"""A share of the mean of the diagonal that is added to the diagonal, because points that nearly coincide make the
system singular."""

IDLE_ROUNDS = 40
"""The number of rounds without weight after which a point is dropped, which bounds the memory."""

FIRST_CAPACITY = 64
"""The number of gradients that fit into their first array. Its size then doubles each time."""

MAX_CHANGES = 2_000
"""The largest number of changes of the points that a combination uses. Each round of a fit needs a few."""

MAX_PATTERNS = 30
"""The largest number of patterns of zeros and signs that are tried for a combination. A few are usual."""


class Bundle:
    """The dual points so far, and the best convex combination of them.

    A point (A, g) is a cut's height at zero, the weight of its active pairs, and its gradient. The bound is

        max over b of  sum b_t A_t + min over w of (sum b_t g_t).w + penalty(w),   b >= 0,  sum of b = 1,

    which is valid for every feasible b. The accuracy of the maximum affects how fast the bound rises, but not its validity.
    For ``lam/2 |w|^2`` the minimum is ``-|sum b_t g_t|^2 / (2 lam)``.

    Attributes
    ----------
    shares : ndarray of shape (n_points,)
        The weights of the points in the best combination.
    """

    def __init__(self, n_features: int):
        self.shares = np.zeros(0)
        self._proximal_shares = np.zeros(0)
        self._heights = np.zeros(0)
        self._rows = np.zeros((FIRST_CAPACITY, n_features))  # one gradient in each row
        self._gram = np.zeros((0, 0))
        self._idle = np.zeros(0, dtype=np.int64)

    @property
    def _gradients(self) -> np.ndarray:
        return self._rows[: self.n_points]

    def add(self, height: float, gradient: np.ndarray, image: np.ndarray | None = None) -> None:
        """Add a point, unless it is zero (no pair is active) and there is a zero point already.

        Parameters
        ----------
        gradient : ndarray of shape (n_features,)
        image : ndarray of shape (n_features,), optional
            The vector whose inner product with another gradient is used: with kernels, the Gram matrix times the gradient.
        """
        active = self._idle < IDLE_ROUNDS
        if (self._proximal_shares[~active] > 0).any():
            self._proximal_shares = self.shares  # from an earlier proximal point
        if not active.all():
            self._gram = self._gram[np.ix_(active, active)]
            self._rows[: np.count_nonzero(active)] = self._gradients[active]
            self.shares, self._proximal_shares = self.shares[active], self._proximal_shares[active]
            self._heights, self._idle = self._heights[active], self._idle[active]
        if height == 0.0 and not gradient.any():
            zero_points = np.flatnonzero((self._heights == 0.0) & (self._gram.diagonal() == 0.0))
            self._idle[zero_points] = 0
            if len(zero_points):
                return
        n = self.n_points
        if n == len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
        self._rows[n] = gradient
        gram = np.empty((n + 1, n + 1))
        gram[:n, :n] = self._gram
        gram[n] = gram[:, n] = self._rows[: n + 1] @ (gradient if image is None else image)
        self._gram = gram
        self._heights, self._idle = np.append(self._heights, height), np.append(self._idle, 0)
        share = 1.0 if n == 0 else 0.0
        self.shares, self._proximal_shares = np.append(self.shares, share), np.append(self._proximal_shares, share)

    @property
    def height(self) -> float:
        """The height at zero of the best combination found last; for the hinge the weight of its active pairs."""
        return float(self.shares @ self._heights)

    def resolution(self, lam: float) -> float:
        """Return the smallest difference between two values of the dual with an L2 penalty that `maximise` can distinguish."""
        return 0.5 * RIDGE * float(np.diag(self._gram).max()) / lam

    @property
    def n_points(self) -> int:
        """The number of points."""
        return len(self.shares)

    def best_combination(self, penalty: Penalty) -> tuple[np.ndarray, float]:
        """Find the combination with the largest dual value, for a penalty without corners.

        The points do not depend on the penalty, which may change between calls.

        Returns
        -------
        w : ndarray of shape (n_features,)
            The minimiser of the lower model of the objective.
        bound : float
            The dual value of the combination, computed from `w` itself.
        """
        centre = np.zeros(self._rows.shape[1])
        self.shares = self._combine(penalty, centre, 0.0, self.shares)
        self._count_idle()
        support = self.shares > 0
        slope = self.shares[support] @ self._gradients[support]
        w = penalty.minimiser(slope, centre, 0.0)
        return w, penalty.bound(self.height, slope, w)

    def best_value(self) -> float:
        """Return the largest dual value with ``|w|^2 / 2``, from the inner products of the points alone."""
        self.shares = maximise(self._gram, self._heights, self.shares)
        self._count_idle()
        return float(self.height - 0.5 * self.shares @ self._gram @ self.shares)

    def proximal_point(self, penalty: Penalty, centre: np.ndarray, mu: float) -> np.ndarray:
        """Return the minimiser of the lower model of the objective plus ``mu/2 |w - centre|^2``.

        Parameters
        ----------
        centre : ndarray of shape (n_features,)
        mu : float
            Above 0.
        """
        b = self._proximal_shares = self._combine(penalty, centre, mu, self._proximal_shares)
        self._idle[b > 0] = 0
        return penalty.minimiser(b @ self._gradients, centre, mu)

    def proximal_combination(self, penalty: Penalty, centre: np.ndarray, mu: float) -> tuple[np.ndarray, float, float]:
        """Use the combination of the proximal point. With penalties with corners, other combinations have no minimiser.

        Parameters
        ----------
        penalty, centre, mu
            As for `proximal_point`.

        Returns
        -------
        w : ndarray of shape (n_features,)
            The minimiser of the lower model of the objective plus ``mu/2 |w - centre|^2``.
        model : float
            The lower model of the objective there.
        bound : float
            A lower bound on the objective at all weights.
        """
        b = self.shares = self._proximal_shares = self._combine(penalty, centre, mu, self._proximal_shares)
        self._count_idle()
        w, value, slope = self._at(b, penalty, centre, mu)
        away = w - centre
        return w, value - 0.5 * mu * float(away @ away), penalty.bound(self.height, slope, w)

    def _count_idle(self) -> None:
        """Count the rounds since each point last had a weight."""
        self._idle = np.where(self.shares > 0, 0, self._idle + 1)

    def _combine(self, penalty: Penalty, centre: np.ndarray, mu: float, b: np.ndarray) -> np.ndarray:
        """Return the combination with the largest dual value.

        If it is known which weights are 0 and which signs the others have, the dual value is a quadratic. So its maximiser is
        found for the present pattern, then for its own, and so on; the dual value never falls.
        """
        if penalty.is_quadratic:
            total = penalty.lam + mu
            heights = self._heights + (mu / total) * (self._gradients @ centre) if mu > 0.0 else self._heights
            return maximise(self._gram / total, heights, b)
        w, value, slope = self._at(b, penalty, centre, mu)
        for _ in range(MAX_PATTERNS):
            H, linear = penalty.quadratic(self._gradients, slope, w, centre, mu)
            target = maximise(H, self._heights + linear, b)
            step, before = 1.0, value
            while step > 1e-4:
                trial = b + step * (target - b)
                candidate = self._at(trial, penalty, centre, mu)
                if candidate[1] > value:
                    b, (w, value, slope) = trial, candidate
                    break
                step *= 0.5
            if value - before <= penalty.precision * abs(value):
                break
        return b

    def _at(
        self, b: np.ndarray, penalty: Penalty, centre: np.ndarray, mu: float
    ) -> tuple[np.ndarray, float, np.ndarray]:
        """Return the weights of a combination, its dual value, and its gradient."""
        slope = b @ self._gradients
        w = penalty.minimiser(slope, centre, mu)
        away = w - centre
        value = b @ self._heights + slope @ w + penalty.value(w) + 0.5 * mu * (away @ away)
        return w, float(value), slope


def maximise(H: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Maximise ``a'b - b'Hb / 2`` over b >= 0 with a sum of 1, by an active-set method.

    Parameters
    ----------
    H : ndarray of shape (n, n)
        Positive semi-definite.
    a : ndarray of shape (n,)
    b : ndarray of shape (n,)
        A feasible start.

    Returns
    -------
    ndarray of shape (n,)
        Feasible, and optimal to a relative 1e-10 of the value unless the rounds ran out.

    Raises
    ------
    ArithmeticError, numpy.linalg.LinAlgError
        Where entries of H are not finite, or nothing keeps equal points apart.
    """
    if not np.isfinite(H).all():
        raise ArithmeticError("infinite gradients")
    free, b, newest = np.flatnonzero(b > 0.0), b.copy(), -1
    ridge = RIDGE * (H.trace() or 1.0) / len(a)  # no larger than the rounding errors of H; H may be 0
    for _ in range(MAX_CHANGES):
        # The maximiser over the free entries without sign constraints, and the multiplier of the constraint on their sum.
        system = np.ones((len(free) + 1, len(free) + 1))
        system[:-1, :-1] = H[np.ix_(free, free)]
        system[np.diag_indices(len(free))] += ridge
        system[-1, -1] = 0.0
        *x, price = np.linalg.solve(system, np.append(a[free], 1.0))
        target, present = np.array(x), b[free]
        outside = ~(target >= 0.0)
        if outside.any():
            # Move towards the maximiser until the first entry reaches 0.
            steps = np.where(outside, present / np.where(outside, present - target, 1.0), np.inf)
            moved = np.maximum(present + steps.min() * (target - present), 0.0)
            first = int(np.argmin(steps))
            if free[first] == newest and present[first] == 0.0:
                break  # the gain is below the rounding error
            moved[first] = 0.0
            b[free], free = moved, free[moved > 0.0]
            continue
        b[free] = target
        gain = a - price - H[:, free] @ target
        gain[free] = -np.inf
        best = int(np.argmax(gain))
        if not gain[best] > 1e-10 * abs(float(a[free] @ target)):
            break
        free, newest = np.append(free, best), best
    return np.divide(b, b.sum())

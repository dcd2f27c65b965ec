"""Dual coordinate descent over single pairs drawn at random: AUC-SDCD and AUC-SDCDperm.

After Jiang, Tao, Gao & Chu, "Dual coordinate descent method for solving AUC optimization problem" (Journal of Software 25(10),
2014), algorithms 1 and 2. With k pairs z = x_i - x_j the dual is

    D(a) = (sum of a) / k - lam/2 |w(a)|^2,    w(a) = (sum of a z) / (lam k),    a in [0, 1].

A step takes a pair, maximises D over its variable, ``a <- clip(a + lam k (1 - w.z) / z.z, 0, 1)``, and updates w. If z = 0, when
a row is equal to one of the other class, a becomes 1.

Within groups only pairs of rows of one group are drawn, and k is their number. The paper's pairs weigh one. Where pairs have
weights c (rows with weights, groups that count the same, grades), the mean is (sum of c loss) / (sum of c); then k is the sum of
c, and a is in [0, c], which is all that changes in the dual. Pairs are drawn alike, whatever they weigh. Variables that are 0 are
not stored, so that memory grows with the number of pairs drawn, not with k.

One block is the published algorithm. With several, each block takes its part of a round's steps on its own pairs
(`aucdist.papers.sdcd.pairing`), all from the same w. The dual variables stay on the blocks. A block returns its contribution
to w(a), and w is the sum of the contributions: if a block loses its variables, they are 0, which is feasible, and the next
w belongs to them. The changes of the K blocks are combined in one of two ways, after Ma et al., "Adding vs. averaging in
distributed primal-dual optimization" (ICML 2015):

``add``
    All changes count in full. So that they cannot overshoot together, a block assumes K times the effect of its own
    (sigma' = K).
``average``
    A block works as if it were alone, and retains 1/K of its changes.

The dual value never falls in either, up to rounding.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from aucdist.data.block import Block, n_rows
from aucdist.engine.blocks import Blocks, Summary
from aucdist.errors import InputError
from aucdist.kernels.rows import accumulate
from aucdist.pairs.groups import pair_groups
from aucdist.pairs.objective import objective_error, pairwise_objective, rounding_of_pairs
from aucdist.papers.sdcd.kernels import ENTRY, AscentSteps, add_entries, dual_steps
from aucdist.papers.sdcd.pairing import (
    COMBINATIONS,
    Pairing,
    PairSolver,
    PairSteps,
    SamplingMemory,
    Turn,
    dual_error_of_steps,
)
from aucdist.parameters import SWITCH, Constraints, OneOf, keyword_parameters
from aucdist.solvers.base import ResumableRound, Round
from aucdist.solvers.rounding import higher

LEAST = 256
"""The smallest number of slots of a table."""

FULL = 0.7
"""The share of the slots that may be used. A slot takes 16 bytes, which is 23 to 46 bytes for each variable."""


# A table of dual variables by pair is an array of `ENTRY`, as of `aucdist.papers.sdcd.kernels`.


def empty_table(n: int) -> np.ndarray:
    """Return a table in which n entries take at most half of the slots that may be used."""
    length = LEAST
    while n > FULL / 2 * length:
        length *= 2
    return np.zeros(length, dtype=ENTRY)


def sum_of_tables(*parts: tuple[np.ndarray, float]) -> np.ndarray:
    """Return a table of the variables of other tables times their factors, with free slots and without zeros."""
    table, used = empty_table(sum(int(np.count_nonzero(entries["value"])) for entries, _ in parts)), 0
    for entries, factor in parts:
        used = add_entries(entries, factor, table, used)
    return table


def n_used(table: np.ndarray) -> int:
    """Return the number of slots that are not free; they include variables that are 0 again."""
    return int(np.count_nonzero(table["number"]))


def sum_of(table: np.ndarray) -> float:
    """Return the sum of the variables."""
    return float(table["value"].sum())


@dataclass(frozen=True)
class Mean:
    """An average over steps."""

    n_steps: int = 0
    w: Any = 0.0
    dual: float = 0.0

    def plus(self, n_steps: int, w: np.ndarray, dual: float) -> "Mean":
        """Return the average over these and further steps, given the average of the further ones."""
        share = n_steps / (self.n_steps + n_steps)
        return Mean(self.n_steps + n_steps, self.w + share * (w - self.w), self.dual + share * (dual - self.dual))


@dataclass(frozen=True)
class Duals:
    """A block's dual variables and the sums that follow from them.

    Attributes
    ----------
    table : ndarray of ENTRY
        Number ``1 + i * n_majority + j`` is row i of the whole minority with the block's row j of the larger class.
    contribution : ndarray of shape (n_features,), float64
        ``(sum of a z) / (lam k)`` over the block's pairs; k is the weight of all pairs.
    mean : Mean
        The mean of the contribution, and of the sum of the variables.
    """

    table: np.ndarray
    contribution: np.ndarray
    mean: Mean = field(default_factory=Mean)

    @classmethod
    def of(cls, block: Block, memory: SamplingMemory) -> "Duals":
        """Return the dual variables in a block's memory; they are 0 before the first step."""
        return memory.state or cls(empty_table(0), np.zeros(block.n_features))


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def take_over_duals(
    block: Block, memory: SamplingMemory, duals: sp.coo_array, offsets: np.ndarray, steps: PairSteps
) -> tuple[SamplingMemory, Summary]:
    """Set the given dual variables of the block's pairs with the present part of the minority.

    None is set above what its pair weighs. Return how many are of rows that make no pair, too.
    """
    known, places = Duals.of(block, memory), memory.places
    i, j = (
        rows.astype(np.int64) - first
        for rows, first in zip(duals.coords, (memory.first, offsets[block.index]), strict=True)
    )
    mine = (i >= 0) & (i < n_rows(memory.minority)) & (j >= 0) & (j < len(memory.majority))
    i, j, values = i[mine], j[mine], duals.data[mine]
    run = np.searchsorted(places.rows, j, side="right") - 1
    strange = (i < places.minority[run]) | (i >= places.minority[run] + places.n_minority[run])
    if len(memory.weights[0]):
        values = np.minimum(values, memory.weights[0][i] * memory.weights[1][j])
    entries = np.empty(len(values), dtype=ENTRY)
    entries["number"], entries["value"] = 1 + (i + memory.first) * len(memory.majority) + j, values
    moved = np.zeros(block.n_features)
    accumulate(memory.minority, i, values, moved)
    accumulate(block.rows, memory.majority[j], -values, moved)
    table = sum_of_tables((known.table, 1.0), (entries, 1.0))
    own = Duals(table, known.contribution + steps.sign / steps.scale * moved)
    return replace(memory, state=own), {"w": own.contribution, "strange": int(np.count_nonzero(strange))}


def ascend_dual(
    block: Block, memory: SamplingMemory, w: np.ndarray, steps: PairSteps, turn: Turn
) -> tuple[SamplingMemory, Summary]:
    """Take the block's share of a round's steps from w; the average begins with the last round that is a power of two."""
    duals, n_steps = Duals.of(block, memory), int(turn.shares[block.index])
    rows, first = memory.rows(block, steps.sign), 1 + memory.first * len(memory.majority)
    many_zeros = 2 * np.count_nonzero(duals.table["value"]) < n_used(duals.table)
    table, local = sum_of_tables((duals.table, 1.0)) if many_zeros else duals.table.copy(), w.copy()
    used = n_used(table)
    # The number of steps times table and w, less their sums over the steps.
    behind, behind_dual = np.zeros(block.n_features if steps.average else 0), 0.0
    for taken, drawn in steps.draws(block, memory, turn):
        t = 0
        while t < len(drawn):
            room = int(FULL * len(table))
            ascent = AscentSteps(first, steps.scale, steps.sigma, float(taken + t), used, room)
            n_taken, used, more = dual_steps(rows, drawn[t:], ascent, table, local, behind)
            t, behind_dual = t + n_taken, behind_dual + more
            if used >= room:
                table = sum_of_tables((table, 1.0))
                used = n_used(table)
    mean = Mean() if turn.number & (turn.number - 1) == 0 else duals.mean
    if steps.average and n_steps > 0:
        before = sum_of(duals.table)
        dual = before + steps.gamma * (sum_of(table) - behind_dual / n_steps - before)
        mean = mean.plus(n_steps, steps.moved(duals.contribution, w, local - behind / n_steps), dual)
    if steps.gamma < 1.0:
        table = sum_of_tables((sum_of_tables((duals.table, 1.0 - steps.gamma)), 1.0), (table, steps.gamma))
        if not len(memory.weights[0]):
            np.minimum(table["value"], 1.0, out=table["value"])  # rounding may have left one above what its pair weighs
    own = Duals(table, steps.moved(duals.contribution, w, local), mean)
    summary = {"w": own.contribution, "dual": sum_of(table)}
    if steps.average:
        known = mean.n_steps > 0
        summary |= {"mean_w": mean.w if known else summary["w"], "mean_dual": mean.dual if known else summary["dual"]}
    return memory.after(turn, block, own), summary


def return_duals(block: Block, memory: SamplingMemory, offsets: np.ndarray) -> Summary:
    """Return the dual variables that are not 0, by pair: row of the minority, row of the larger class, value."""
    table = Duals.of(block, memory).table
    stored = np.sort(table[table["value"] != 0.0], order="number")
    i, j = np.divmod(stored["number"] - 1, max(1, len(memory.majority)))
    return {"i": [i], "j": [j + offsets[block.index]], "value": [stored["value"]]}


# ---- rounds: run by the client ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class DualStart:
    """The dual variables to start from.

    Attributes
    ----------
    duals : sparse array of shape (n_pos, n_neg), float64
        The dual variables, from 0 to what the pair weighs, which is 1 without weights; the rows of each class in the order of
        the blocks. Within groups the rows of a class come as often as they are in a group that has pairs: those of the smaller
        class by the number of their group, those of the larger one so within each block.
    lam : float
        The lam that they were found for. For another lam they are multiplied so that w stays the same, as far as none exceeds 1;
        within groups, or with weights, those that would exceed what their pair weighs become that.
    steps : int
        The steps that led to them. The next pairs of a seed are drawn after these, so that two fits in a row are one fit.
    """

    duals: sp.coo_array
    lam: float
    steps: int = 0


@keyword_parameters
class SDCD(PairSolver):
    """Dual coordinate descent on single pairs that are drawn at random: AUC-SDCD, algorithm 1.

    Parameters
    ----------
    average : bool, default=False
        Return the average of w over the steps, as in lemma 1, and the dual value of the average. It begins with the last
        round whose number is a power of two: T_0 is the step before.
    combine : {"add", "average"}, default="add"
        How the changes of several blocks become one.
    steps, epochs, minority_bytes
        As of `PairSolver`. With neither steps nor epochs the fit goes on until `tol` or `max_passes` is reached.

    Notes
    -----
    A round is an epoch, or all the steps. An epoch reads two rows a step, which makes two passes; looking at the objective makes
    half of one. With ``warm_start`` a fit starts from the dual variables of the last one, for the same lam or another.
    """

    name = "sdcd"
    takes = ("group_weight", "grade_weight")
    groups = True
    shuffled: ClassVar[bool] = False
    """Whether pairs are taken in a random order, or else drawn independently of each other."""
    _parameter_constraints: ClassVar[Constraints] = {
        **PairSolver._parameter_constraints,
        "average": SWITCH,
        "combine": OneOf(COMBINATIONS),
    }

    average: bool = False
    combine: str = "add"

    def rounds(
        self,
        blocks: Blocks,
        lam: float,
        start: DualStart | None = None,
        *,
        seed: int,
        **grouping: Any,
    ) -> Iterator[Round]:
        """Yield after each round the weights, their exact objective over all pairs, and the best dual value so far.

        Both classes must be there.

        Parameters
        ----------
        start : DualStart, optional
            What ``resume`` of a round returned, for the same lam or another. Weights are refused: they have no dual variables.
        **grouping
            ``group_weight`` and ``grade_weight`` of `aucdist.pairs.groups.pair_groups`.

        Raises
        ------
        InputError
            Before the first round, for a start or data that cannot be used.
        """
        groups = pair_groups(blocks, **grouping, weighted=True)
        before = 0
        duals: sp.coo_array | None = None
        if start is not None:
            if not isinstance(start, DualStart):
                raise InputError(
                    "dual coordinate descent starts from dual variables, and weights have none: give a DualStart, or set "
                    "warm_start=False"
                )
            before, duals = start.steps, sp.coo_array(start.duals, dtype=np.float64, copy=True)
            n_pos, n_neg = (blocks.n_pos, blocks.n_neg) if groups is None else (groups.n_pos, groups.n_neg)
            if duals.shape != (n_pos, n_neg):
                raise InputError(
                    f"the dual variables to start from are of {duals.shape[0]} positive and {duals.shape[1]} negative rows, "
                    f"but there are {n_pos} and {n_neg}: start from a fit to the same rows"
                )
            duals.sum_duplicates()
            most = 1.0 if groups is None else np.inf  # the blocks have the weights of the pairs
            if not ((duals.data >= 0.0) & (duals.data <= most) & np.isfinite(duals.data)).all():
                raise InputError(
                    f"the dual variables to start from are not all between 0 and {most:g}: start from a fit to the same rows"
                )
            if duals.nnz and lam != start.lam:
                duals.data *= min(lam / start.lam, most / duals.data.max())
        pairing, turns = self.turns(blocks, before, groups)
        rounding = rounding_of_pairs(blocks, groups)
        steps = pairing.steps(seed, lam * pairing.mass, self.combine, shuffled=self.shuffled, average=self.average)
        w = np.zeros(blocks.n_features) if duals is None else _send_duals(pairing, duals, steps)
        bound = (0.0, 0.0)
        for turn in turns:
            summary = pairing.blocks.reduce(ascend_dual, w, steps, turn)
            w, taken = summary["w"], before + turn.taken
            shown, total = (summary["mean_w"], summary["mean_dual"]) if self.average else (w, summary["dual"])
            active = float(total / pairing.mass)
            error = dual_error_of_steps(rounding, shown, active, lam, taken)
            bound = higher(bound, (active - 0.5 * lam * float(shown @ shown), error))
            primal = pairwise_objective(pairing.blocks, shown, lam, groups=groups)
            yield ResumableRound(
                shown.copy(), primal, bound[0], turn.passes, partial(_collect_duals, pairing, lam, taken),
                primal_error=objective_error(rounding, shown, primal), dual_error=bound[1],
            )  # fmt: skip


class SDCDPerm(SDCD):
    """Dual coordinate descent on all pairs in a random order, then in another, and so on: AUC-SDCDperm, algorithm 2.

    The order of all pairs is computed, not stored (`aucdist.kernels.random.permuted`). One sweep of the paper is
    ``steps="all"``. With several blocks, or parts of the minority, each has an order of its own pairs. The parameters are those
    of `SDCD`.
    """

    name = "sdcd-perm"
    shuffled = True


def _send_duals(pairing: Pairing, duals: sp.coo_array, steps: PairSteps) -> np.ndarray:
    """Send the dual variables to the blocks of their pairs, and return their w."""
    minority_first = duals if pairing.sign > 0 else duals.T
    for part in range(pairing.n_parts):
        pairing.send_minority(part)
        summary = pairing.blocks.reduce(take_over_duals, minority_first, pairing.majority_offsets, steps)
        if summary["strange"]:
            raise InputError(
                "the dual variables to start from are of other pairs, some of them of rows of two groups: set "
                "warm_start=False"
            )
    w: np.ndarray = summary["w"]
    return w


def _collect_duals(pairing: Pairing, lam: float, steps: int) -> DualStart:
    """Return the dual variables of all blocks."""
    summary = pairing.blocks.reduce(return_duals, pairing.majority_offsets)
    i, j, values = (np.concatenate(summary[key]) for key in ("i", "j", "value"))
    shape = int(pairing.offsets[-1]), int(pairing.majority_offsets[-1])
    minority_first = sp.coo_array((values, (i, j)), shape)
    return DualStart(minority_first if pairing.sign > 0 else minority_first.T, lam, steps)

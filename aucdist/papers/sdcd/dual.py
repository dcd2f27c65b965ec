"""Dual coordinate descent over single pairs drawn at random: AUC-SDCD and AUC-SDCDperm.

After Jiang, Tao, Gao & Chu, "Dual coordinate descent method for solving AUC optimization problem" (Journal of Software 25(10),
2014), algorithms 1 and 2. With k pairs z = x_i - x_j the dual is

    D(a) = (sum of a) / k - lam/2 |w(a)|^2,    w(a) = (sum of a z) / (lam k),    a in [0, 1].

A step takes a pair, maximises D over its variable, ``a <- clip(a + lam k (1 - w.z) / z.z, 0, 1)``, and updates w. If the two
rows of the pair are equal, so that z = 0, a becomes 1.

Within groups only pairs of rows of one group are drawn, and k is their number. In the paper, each pair has the weight 1. If
pairs have weights c (rows with weights, groups that count the same, grades), the mean is (sum of c loss) / (sum of c). Then k
is the sum of c, and a is in [0, c], which is all that changes in the dual. All pairs are drawn with the same probability,
whatever their weights. Variables that are 0 are not stored, so that memory grows with the number of pairs drawn, not with k.

With one block, this is the published algorithm. With several blocks, each block takes its part of a round's steps on its own
pairs (`aucdist.papers.sdcd.pairing`), all from the same w. The dual variables stay on the blocks. A block returns its
contribution to w(a), and w is the sum of the contributions. If a block loses its variables, they are 0 afterwards, which is
feasible, and the next w belongs to these variables. The changes of the K blocks are combined in one of two ways, after Ma et
al., "Adding vs. averaging in distributed primal-dual optimization" (ICML 2015):

``add``
    All changes count in full. To keep their sum from overshooting, a block multiplies the effect of its own changes by K
    (sigma' = K).
``average``
    A block works as if it were alone, and keeps 1/K of its changes.

In both cases, the dual value never falls, up to rounding.
"""

from collections.abc import Iterator
from dataclasses import field
from typing import Any

import numpy as np
from numpy import ndarray

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, Summary
from aucdist.pairs.groups import pair_groups
from aucdist.pairs.problem import pairwise_objective, rounding_of_pairs
from aucdist.papers.sdcd.kernels import ENTRY, AscentSteps, add_entries, dual_steps
from aucdist.papers.sdcd.pairing import (
    COMBINATIONS,
    PairSolver,
    PairSteps,
    SamplingMemory,
    Turn,
    hinge_dual,
    pairwise_round,
)
from aucdist.parameters import SWITCH, OneOf, frozen, keyword_parameters
from aucdist.solvers.base import Round
from aucdist.solvers.rounding import higher

MIN_SLOTS = 256
"""The smallest number of slots of a table."""

MAX_SHARE_USED = 0.7
"""The share of the slots that may be used. A slot takes 16 bytes, which is 23 to 46 bytes for each variable."""


# A table of dual variables by pair is an array of `ENTRY`, as in `aucdist.papers.sdcd.kernels`.


def empty_table(n: int) -> ndarray:
    """Return an empty table in which n entries take at most half of the slots that may be used."""
    length = MIN_SLOTS
    while n > MAX_SHARE_USED / 2 * length:
        length *= 2
    return np.zeros(length, dtype=ENTRY)


def sum_of_tables(*parts: tuple[ndarray, float]) -> ndarray:
    """Return a table with the sums of the variables of other tables times their factors. It has free slots and no zeros."""
    table, used = empty_table(sum(int(np.count_nonzero(entries["value"])) for entries, _ in parts)), 0
    for entries, factor in parts:
        used = add_entries(entries, factor, table, used)
    return table


def n_used(table: ndarray) -> int:
    """Return the number of slots that are not free. They include variables that have become 0 again."""
    return int(np.count_nonzero(table["number"]))


def sum_of(table: ndarray) -> float:
    """Return the sum of the variables."""
    return float(table["value"].sum())


@frozen
class Mean:
    """An average over steps."""

    n_steps: int = 0
    w: Any = 0.0
    dual: float = 0.0

    def plus(self, n_steps: int, w: ndarray, dual: float) -> "Mean":
        """Return the average over these and further steps, given the average over the further ones."""
        share = n_steps / (self.n_steps + n_steps)
        return Mean(self.n_steps + n_steps, self.w + share * (w - self.w), self.dual + share * (dual - self.dual))


@frozen
class Duals:
    """A block's dual variables and the sums that follow from them.

    Parameters
    ----------
    table : ndarray of ENTRY
        The dual variables. Pair ``1 + i * n_majority + j`` has row i of the whole minority and row j of the block's larger class.
    contribution : ndarray of shape (n_features,), float64
        ``(sum of a z) / (lam k)`` over the block's pairs; k is the weight of all pairs.
    mean : Mean
        The mean of the contribution, and of the sum of the variables.
    """

    table: ndarray
    contribution: ndarray
    mean: Mean = field(default_factory=Mean)

    @classmethod
    def of(cls, block: Block, memory: SamplingMemory) -> "Duals":
        """Return the dual variables in a block's memory. They are 0 before the first step."""
        return memory.state or cls(empty_table(0), np.zeros(block.n_features))


# ---- steps: run on the blocks -----------------------------------------------------------------------------------------


def ascend_dual(
    block: Block, memory: SamplingMemory, w: ndarray, steps: PairSteps, turn: Turn
) -> tuple[SamplingMemory, Summary]:
    """Take the block's share of a round's steps from w. The average begins with the last round that is a power of two."""
    duals, n_steps = Duals.of(block, memory), int(turn.steps_of_blocks[block.index])
    rows, many_zeros = memory.rows(block, steps.sign), 2 * np.count_nonzero(duals.table["value"]) < n_used(duals.table)
    table, local = sum_of_tables((duals.table, 1.0)) if many_zeros else duals.table.copy(), w.copy()
    used = n_used(table)
    # These are the number of steps times table and w, minus their sums over the steps.
    behind, behind_dual = np.zeros(block.n_features if steps.average else 0), 0.0
    for taken, drawn in steps.draws(block, memory, turn):
        t = 0
        while t < len(drawn):
            room = int(MAX_SHARE_USED * len(table))
            ascent = AscentSteps(steps.scale, steps.sigma, float(taken + t), used, room)
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
            # rounding may leave a variable above the weight of its pair
            np.minimum(table["value"], 1.0, out=table["value"])
    new_duals = Duals(table, steps.moved(duals.contribution, w, local), mean)
    summary = {"w": new_duals.contribution, "dual": sum_of(table)}
    if steps.average:
        known = mean.n_steps > 0
        summary |= {"mean_w": mean.w if known else summary["w"], "mean_dual": mean.dual if known else summary["dual"]}
    return memory.after(turn, block, new_duals), summary


# ---- rounds: run by the client ----------------------------------------------------------------------------------------


@keyword_parameters(average=SWITCH, combine=OneOf(COMBINATIONS))
class SDCD(PairSolver):
    """Dual coordinate descent on single pairs that are drawn at random: AUC-SDCD, algorithm 1.

    Parameters
    ----------
    average : bool, default=False
        Whether to return the average of w over the steps, as in lemma 1, and the dual value of the average. It begins with the
        last round whose number is a power of two, so T_0 is the step before this round.
    combine : {"add", "average"}, default="add"
        How the changes of several blocks are combined.
    steps, epochs
        As for `PairSolver`. With neither steps nor epochs, the fit ends when `tol` or `max_passes` is reached.

    Notes
    -----
    A round is an epoch, or all the steps. An epoch reads two rows for each step, which makes two passes. Computing the
    objective takes half a pass.
    """

    name = "sdcd"
    takes = ("group_weight", "grade_weight")
    accepts_groups = True
    shuffled = False
    """Whether pairs are taken in a random order, or else drawn independently of each other."""

    average: bool = False
    combine: str = "add"

    def rounds(
        self,
        blocks: Blocks,
        lam: float,
        start: None = None,
        *,
        seed: int,
        **grouping: Any,
    ) -> Iterator[Round]:
        """Yield after each round the weights, their exact objective over all pairs, and the best dual value so far.

        Parameters
        ----------
        blocks : Blocks
            The rows, of both classes.
        lam : float
            The regularisation strength.
        start : None
            The fit starts from dual variables of 0.
        seed : int
            The seed of the pairs that are drawn.
        **grouping
            ``group_weight`` and ``grade_weight`` of `aucdist.pairs.groups.pair_groups`.

        Yields
        ------
        Round

        Raises
        ------
        InputError
            Before the first round, if the data are invalid.
        """
        groups = pair_groups(blocks, **grouping, weighted=True)
        pairing, turns = self.turns(blocks, groups)
        rounding = rounding_of_pairs(blocks, groups)
        steps = pairing.steps(
            seed, lam * pairing.pair_weight, self.combine, shuffled=self.shuffled, average=self.average
        )
        w, bound = np.zeros(blocks.n_features), (0.0, 0.0)
        for turn in turns:
            summary = pairing.blocks.reduce(ascend_dual, w, steps, turn)
            w = summary["w"]
            shown, total = (summary["mean_w"], summary["mean_dual"]) if self.average else (w, summary["dual"])
            active = float(total / pairing.pair_weight)
            bound = higher(bound, hinge_dual(rounding, shown, active, lam, turn.taken))
            primal = pairwise_objective(pairing.blocks, shown, lam, groups)
            yield pairwise_round(rounding, shown, primal, turn.passes, bound)


class SDCDPerm(SDCD):
    """Dual coordinate descent on all pairs in random orders: AUC-SDCDperm, algorithm 2. After all pairs, a new order begins.

    The order of all pairs is computed, not stored (`aucdist.kernels.random.permuted`). One sweep of the paper is
    ``steps="all"``. With several blocks, each block has an order of its own pairs.

    Parameters
    ----------
    average, combine, steps, epochs
        As for `SDCD`.
    """

    name = "sdcd-perm"
    shuffled = True

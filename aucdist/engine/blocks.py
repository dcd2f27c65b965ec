"""The one primitive: `blocks.reduce(step, *args)` runs a step on every block and merges what the steps say."""

import functools
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from aucdist.data.block import Block
from aucdist.errors import InputError

Summary = dict[str, Any]
Step = Callable[..., tuple[Any, Summary]]


@dataclass(frozen=True)
class BlockInfo:
    """What the client knows of a block without holding it."""

    n_samples: int
    n_features: int
    n_pos: int
    weight_pos: float
    weight_neg: float
    has_weights: bool

    @classmethod
    def of(cls, block: Block) -> "BlockInfo":
        """Describe a block."""
        positive = block.y > 0
        weight = block.weights()
        return cls(
            block.n_samples, block.n_features, int(positive.sum()),
            float(weight[positive].sum()), float(weight[~positive].sum()), block.weight is not None,
        )  # fmt: skip


class Blocks(ABC):
    """The rows of a data set in blocks, wherever they are.

    A step is a module-level function ``step(block, memory, *args) -> (memory, summary)``. `memory` is what the block keeps
    until the next step (None before the first); it never travels. `summary` is a dict whose values support ``+``: arrays
    and numbers add up, lists concatenate, other objects bring their own ``__add__``. A step is pure: it changes neither its
    inputs nor anything else, and what it returns depends on nothing but its inputs, so it may run again on another worker.
    """

    def __init__(self, infos: Sequence[BlockInfo]):
        if not infos:
            raise InputError("no blocks: the data set has no part to read")
        widths = sorted({i.n_features for i in infos})
        if len(widths) > 1:
            raise InputError(f"blocks with different numbers of features: {', '.join(map(str, widths))}")
        self.infos = list(infos)

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return len(self.infos)

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return sum(i.n_samples for i in self.infos)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.infos[0].n_features

    @property
    def n_pos(self) -> int:
        """Number of positive rows."""
        return sum(i.n_pos for i in self.infos)

    @property
    def n_neg(self) -> int:
        """Number of negative rows."""
        return self.n_samples - self.n_pos

    @property
    def weight_pos(self) -> float:
        """Total weight of the positive rows."""
        return sum(i.weight_pos for i in self.infos)

    @property
    def weight_neg(self) -> float:
        """Total weight of the negative rows."""
        return sum(i.weight_neg for i in self.infos)

    @property
    def has_weights(self) -> bool:
        """Whether any row came with a sample weight."""
        return any(i.has_weights for i in self.infos)

    @abstractmethod
    def fresh(self) -> Self:
        """Return the same blocks with empty memory, for a fit that must not see another's."""

    @abstractmethod
    def reduce(self, step: Step, *args: Any) -> Summary:
        """Run the step on every block and return the summaries merged in block order.

        Parameters
        ----------
        step : callable
            A module-level function, as in the class's description.
        *args
            Sent to every block: arrays, numbers, tuples of them.
        """


class LocalBlocks(Blocks):
    """Blocks in this process."""

    def __init__(self, blocks: Sequence[Block]):
        super().__init__([BlockInfo.of(b) for b in blocks])
        self._blocks = list(blocks)
        self._memory: list[Any] = [None] * len(self._blocks)

    def fresh(self) -> "LocalBlocks":
        """Return the same blocks with empty memory."""
        other = object.__new__(LocalBlocks)
        other.infos, other._blocks = self.infos, self._blocks
        other._memory = [None] * len(self._blocks)
        return other

    def reduce(self, step: Step, *args: Any) -> Summary:
        """Run the step block by block."""
        done = [step(block, memory, *args) for block, memory in zip(self._blocks, self._memory, strict=True)]
        self._memory = [memory for memory, _ in done]
        return merge([summary for _, summary in done])


def merge(summaries: Sequence[Summary]) -> Summary:
    """Add summaries key by key from left to right: the order, and with it every bit, is that of the blocks."""
    return {key: functools.reduce(operator.add, (s[key] for s in summaries)) for key in summaries[0]}


def block_seed(seed: int, round_: int, index: int) -> int:
    """Return the seed of one block in one round, below 2**63: all the randomness a step may use.

    Parameters
    ----------
    seed, round_, index : int
        The run's seed, the round's number, the block's index; not negative.
    """
    return int(np.random.SeedSequence((seed, round_, index)).generate_state(1, np.uint64)[0] >> 1)

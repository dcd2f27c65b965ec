"""Some rows of blocks, such as those of a fold, without a copy of the rows."""

from dataclasses import dataclass, replace

import numpy as np

from aucdist.data.block import Block
from aucdist.data.preprocess import Preprocessor
from aucdist.engine.blocks import BlockInfo, Blocks, Summary
from aucdist.engine.view import ViewBlocks
from aucdist.kernels.codes import BinRows


def row_ids_and_labels(blocks: Blocks) -> tuple[np.ndarray, np.ndarray]:
    """Return id (int64) and label (int8) of every row, or the place of its set of classes (int32), block by block."""
    found = blocks.without_memory().reduce(_row_ids_and_labels)
    return np.concatenate(found["row_id"]), np.concatenate(found["y"])


def groups_of(blocks: Blocks) -> np.ndarray | None:
    """Return the group of every row (int64), block by block; None where rows have none."""
    if not blocks.has_groups:
        return None
    return np.concatenate(blocks.without_memory().reduce(_groups)["group"])


def costs_of_rows(blocks: Blocks) -> np.ndarray:
    """Return what a wrong decision on each row costs (float64), block by block."""
    return np.concatenate(blocks.without_memory().reduce(_costs)["cost"])


def lowest_grade(blocks: Blocks) -> float | None:
    """Return the lowest grade of the rows; None where they have none."""
    if not blocks.has_grades:
        return None
    return float(min(blocks.without_memory().reduce(_lowest)["grade"]))


def _lowest(block: Block, memory: None) -> tuple[None, Summary]:
    assert block.grade is not None
    return None, {"grade": [block.grade.min(initial=np.inf)]}


def _groups(block: Block, memory: None) -> tuple[None, Summary]:
    return None, {"group": [np.array(block.group)]}


def _costs(block: Block, memory: None) -> tuple[None, Summary]:
    return None, {"cost": [np.array(block.cost)]}


def _row_ids_and_labels(block: Block, memory: None) -> tuple[None, Summary]:
    return None, {"row_id": [np.array(block.row_id)], "y": [np.array(block.y if block.code is None else block.code)]}


@dataclass(frozen=True, eq=False)
class Mask:
    """Gives the rows outside weight 0, and scales what is left; a change of `ViewBlocks`.

    Attributes
    ----------
    inside : ndarray of bool
        Whether a row is inside, indexed by ``row_id``; a byte for each row travels, once, and each block keeps its weights.
    """

    inside: np.ndarray
    prepare: Preprocessor | None = None

    @property
    def same_rows(self) -> bool:
        """Whether the features stay as they are."""
        return self.prepare is None

    def at(self, block: Block) -> "Weighted":
        """Return the change for one block."""
        return Weighted(np.where(self.inside[block.row_id], block.weights(), 0.0), self.prepare)

    def __call__(self, block: Block) -> Block:
        """Return the block with these weights."""
        return self.at(block)(block)

    @staticmethod
    def info(block: Block) -> BlockInfo:
        """Describe the rows inside."""
        weight = block.weights()
        there = weight > 0
        positive = there & (block.y > 0)
        return BlockInfo(
            int(there.sum()), block.n_features, int(positive.sum()), float(weight[positive].sum()),
            float(weight[there & (block.y < 0)].sum()), bool((weight[there] != 1).any()),
            coded=isinstance(block.rows, BinRows), has_groups=block.group is not None, has_grades=block.grade is not None,
            has_costs=block.cost is not None,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Weighted:
    """Gives the rows of one block other weights, and scales them."""

    weight: np.ndarray
    prepare: Preprocessor | None

    def __call__(self, block: Block) -> Block:
        """Return the block with these weights."""
        seen = replace(block, weight=self.weight)
        return seen if self.prepare is None else self.prepare.transform(seen)


def masked_blocks(blocks: Blocks, inside: np.ndarray, prepare: Preprocessor | None = None) -> Blocks:
    """Return the rows of blocks that are inside a mask. The others get weight 0, and rows of weight 0 are ignored.

    A solver that ignores rows of weight 0 adds up the same terms in the same order as on blocks of the rows inside alone, so that
    it gives the same bits.

    Parameters
    ----------
    blocks : Blocks
        All rows.
    inside : ndarray of bool
        Whether a row is inside, indexed by ``row_id``. It is sent once, a byte per row.
    prepare : Preprocessor, optional
        The scaling of the fold. The rows are scaled for each step, which therefore takes several times as long.
    """
    return ViewBlocks(blocks, Mask(inside, prepare), keep="nowhere")

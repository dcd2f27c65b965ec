"""The fixed binary tree by which the summaries of blocks are added up, in one process or in many."""

import threading
from collections.abc import Iterable
from typing import Any

Summary = dict[str, Any]
"""What a step returns of a block. Its values support ``+``."""

Node = tuple[int, int, Summary]
"""Level and index of a node of the tree, and the merged summary of the blocks below it."""


class MergeTree:
    """Adds up summaries in the shape of a binary tree over the numbers of the blocks.

    The node at (level, index) stands for the blocks ``index * 2**level, ..., (index + 1) * 2**level - 1``. A node is added to its
    sibling as soon as both are there. The shape depends on the number of blocks alone: the sum has the same bits whether one
    process, its threads or many workers add the summaries up, and whatever the order in which they come. Where summaries grow as
    they are added up, as counts of scores do, the sum of n of them costs n log n instead of n**2.
    """

    def __init__(self, nodes: Iterable[Node] = ()):
        self._nodes: dict[tuple[int, int], Summary] = {}
        self._lock = threading.Lock()
        for node in nodes:
            self.add(*node)

    def add(self, level: int, index: int, summary: Summary) -> None:
        """Add a node, and merge upwards as far as siblings are there. Any thread may call this."""
        while True:
            with self._lock:
                sibling = self._nodes.pop((level, index ^ 1), None)
                if sibling is None:
                    self._nodes[level, index] = summary
                    return
            summary = _sum(sibling, summary) if index & 1 else _sum(summary, sibling)
            level, index = level + 1, index >> 1

    def nodes(self) -> list[Node]:
        """Return the nodes without siblings, in the order of their blocks: at most 2 log2(n) for n adjacent blocks."""
        ordered = sorted(self._nodes, key=lambda node: node[1] << node[0])
        return [(level, index, self._nodes[level, index]) for level, index in ordered]

    def total(self) -> Summary:
        """Return the sum over all blocks, which have to be numbered 0, 1, 2, ... without a gap."""
        *rest, (_, _, total) = self.nodes()
        for _, _, summary in reversed(rest):  # a node without a right sibling stands for its parent
            total = _sum(summary, total)
        return total


def merge(summaries: Iterable[Summary]) -> Summary:
    """Return the sum of the summaries of blocks 0, 1, 2, ... in the shape of the tree."""
    tree = MergeTree()
    for number, summary in enumerate(summaries):
        tree.add(0, number, summary)
    return tree.total()


def _sum(left: Summary, right: Summary) -> Summary:
    return {key: value + right[key] for key, value in left.items()}

"""Summaries are added up in one shape, in any process and order."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucdist.engine.steps import MergeTree
from aucdist.metrics.counts import ScoreCounts

HUGE_AND_SMALL = [1e16, 1.0, -1e16, 1.0, 3.0, 1e-3, 7e15]


def by_definition(summaries):
    """Split at the largest power of two below the number of blocks, and add the sums of both sides."""
    if len(summaries) == 1:
        return summaries[0]
    half = 1
    while 2 * half < len(summaries):
        half *= 2
    left, right = by_definition(summaries[:half]), by_definition(summaries[half:])
    return {key: left[key] + right[key] for key in left}


def merge(summaries):
    """Return the sum of the summaries of blocks 0, 1, 2, ... in the shape of the tree."""
    tree = MergeTree()
    for number, summary in enumerate(summaries):
        tree.add(0, number, summary)
    return tree.total()


def of(n):
    return [{"x": HUGE_AND_SMALL[i % 7] * (i + 1), "order": [i]} for i in range(n)]


@pytest.mark.parametrize("n", range(1, 40))
def test_the_shape_is_a_binary_tree_over_the_numbers(n):
    assert merge(of(n)) == by_definition(of(n))
    assert merge(of(n))["order"] == list(range(n))


@given(st.integers(1, 70), st.integers(1, 6), st.randoms(use_true_random=False))
def test_neither_order_nor_workers_change_a_bit(n, n_workers, random):
    numbers = list(range(n))
    random.shuffle(numbers)
    nodes = []
    for worker in range(n_workers):
        tree = MergeTree()
        for number in numbers[worker::n_workers]:
            tree.add(0, number, of(n)[number])
        nodes += tree.nodes()
    random.shuffle(nodes)
    assert MergeTree(nodes).total() == by_definition(of(n))


@pytest.mark.parametrize("n", [1, 2, 3, 8, 100, 1000])
def test_adjacent_blocks_come_as_few_nodes(n):
    for first in (0, 1, 5, 511):
        tree = MergeTree((0, number, {"n": 1}) for number in range(first, first + n))
        assert len(tree.nodes()) <= max(1, 2 * np.log2(n))
        assert sum(summary["n"] for _, _, summary in tree.nodes()) == n


def test_any_thread_may_add():
    tree, n = MergeTree(), 400
    start = threading.Barrier(4)

    def add(first):
        start.wait()
        for number in range(first, n, 4):
            tree.add(0, number, of(n)[number])

    threads = [threading.Thread(target=add, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tree.total() == by_definition(of(n))


class Counted(ScoreCounts):
    """Notes how many values were added up."""

    added = 0

    def __add__(self, other):
        Counted.added += len(self.values) + len(other.values)
        merged = super().__add__(other)
        return Counted(merged.values, merged.pos, merged.neg, merged.rows_pos, merged.rows_neg)


def test_counts_of_scores_cost_n_log_n():
    n_blocks, rows = 64, 10
    scores = np.random.default_rng(0).permutation(n_blocks * rows).reshape(n_blocks, rows).astype(float)
    counts = [ScoreCounts.from_scores(np.ones(rows), s) for s in scores]
    total = merge([{"counts": Counted(c.values, c.pos, c.neg, c.rows_pos, c.rows_neg)} for c in counts])["counts"]
    np.testing.assert_array_equal(total.values, np.arange(n_blocks * rows))
    assert Counted.added == n_blocks * rows * 6  # log2(64); from the left it would be 32.5 times n_blocks * rows

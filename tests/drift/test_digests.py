"""Digests of rows: the same for the same values, however they are stored; lookups that a slow set confirms."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from aucdist.data.block import Block, partition
from aucdist.drift.leaks import MOST_KEPT, RowDigests, count_known, fit_digests, smallest
from aucdist.engine.blocks import LocalBlocks
from aucdist.errors import InputError
from aucdist.selection.groups import digests_of

M = 2**64


def slow_mixed(z: int) -> int:
    z = (z + 0x9E3779B97F4A7C15) % M
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % M
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % M
    return z ^ (z >> 31)


def slow_digest(row: np.ndarray) -> int:
    total = 0
    for j, x in enumerate(row):
        if x != 0:
            bits = int(np.float64(x).view(np.uint64)) if x == x else 0x7FF0000000000001
            total = (total + slow_mixed(bits ^ slow_mixed(j))) % M
    return total


def block_of(X: object) -> Block:
    return Block.of(X, np.ones(X.shape[0], dtype=np.int8))  # type: ignore[attr-defined]


def test_digests_do_not_depend_on_layout_type_or_place() -> None:
    rng = np.random.default_rng(0)
    X = np.where(rng.random((200, 7)) < 0.5, 0.0, rng.normal(size=(200, 7)).astype(np.float32)).astype(np.float64)
    X[3, 2], X[4, 1], X[5] = np.nan, -0.0, 0.0
    found = digests_of(block_of(X))
    assert found.tolist() == [slow_digest(row) for row in X]
    for other in (X.astype(np.float32), sp.csr_matrix(X)):
        np.testing.assert_array_equal(digests_of(block_of(other)), found)
    swapped = X[:, ::-1].copy()
    assert (digests_of(block_of(swapped))[X.any(axis=1)] != found[X.any(axis=1)]).mean() > 0.9


def test_digests_of_blocks_are_those_of_all_rows_and_find_them_again() -> None:
    rng = np.random.default_rng(1)
    X, new = rng.normal(size=(500, 4)), rng.normal(size=(300, 4))
    whole = block_of(X)
    known = fit_digests(LocalBlocks(partition(whole, 1)))
    several = fit_digests(LocalBlocks(partition(whole, 5)))
    np.testing.assert_array_equal(known.kept, several.kept)
    mixed = np.vstack([new, X[:40]])
    assert count_known(LocalBlocks(partition(block_of(mixed), 3)), known) == (340, 40)


def test_of_many_rows_a_sample_is_looked_up_whether_or_not_it_is_there() -> None:
    rng = np.random.default_rng(2)
    known = RowDigests(np.unique(rng.integers(0, M, 4 * MOST_KEPT, dtype=np.uint64))[:MOST_KEPT])
    strangers = rng.integers(0, M, 40_000, dtype=np.uint64)
    checked, found = known.look_up(strangers)
    assert found == 0
    assert abs(checked / 40_000 - 0.25) < 0.02
    checked, found = known.look_up(np.concatenate([strangers, known.kept[:1000]]))
    assert found == 1000


def test_a_file_of_digests_is_checked(tmp_path: object) -> None:
    known = RowDigests(np.array([1, 5, 9], dtype=np.uint64))
    assert RowDigests.from_bytes(known.to_bytes(), "f").kept.tolist() == [1, 5, 9]
    assert RowDigests(np.zeros(0, dtype=np.uint64)).look_up(np.array([3], dtype=np.uint64)) == (1, 0)
    unsorted = RowDigests(np.array([5, 1], dtype=np.uint64)).to_bytes()
    for data, message in ((b"x", "damaged"), (unsorted, "do not ascend")):
        with pytest.raises(InputError, match=message):
            RowDigests.from_bytes(data, "f")


@given(st.lists(st.integers(0, 9), max_size=40), st.integers(1, 6))
def test_the_smallest_are_those_of_a_sorted_set(numbers: list[int], n: int) -> None:
    found = smallest(np.array(numbers, dtype=np.uint64), n)
    assert found.tolist() == sorted(set(numbers))[:n]

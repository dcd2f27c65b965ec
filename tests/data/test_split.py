"""The split into training and test rows."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from aucdist.data import split as split_module
from aucdist.data.block import Block, each_of, into_blocks
from aucdist.data.split import find_split, split
from aucdist.errors import InputError
from aucdist.kernels.random import hash_ids


def block_of(y, row_id=None):
    y = np.asarray(y)
    return Block.of(np.zeros((len(y), 1)), y, row_id=row_id)


def mixed(z):
    """SplitMix64 in plain Python."""
    z = (z + 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


@given(st.lists(st.integers(0, 2**63 - 1), max_size=20, unique=True), st.integers(-5, 2**70))
def test_the_numbers_are_those_of_plain_python_and_differ(ids, seed):
    numbers = hash_ids(np.array(ids, dtype=np.int64), seed).tolist()
    assert numbers == [mixed(i ^ mixed(seed % 2**64)) for i in ids]
    assert len(set(numbers)) == len(ids)


@given(st.integers(2, 40), st.integers(2, 40), st.floats(0.001, 0.999), st.integers(0, 9), st.randoms())
def test_each_class_gives_its_share_whatever_the_order_of_the_rows(n_pos, n_neg, fraction, seed, random):
    y = [1] * n_pos + [-1] * n_neg
    order = list(range(len(y)))
    random.shuffle(order)
    train, test = split(block_of(y), fraction, seed)
    shuffled = block_of(np.array(y)[order], np.array(order))
    _, again = split(shuffled, fraction, seed)
    assert sorted(shuffled.row_id[again]) == test.tolist()
    assert sorted([*train, *test]) == list(range(len(y)))
    assert (np.diff(train) > 0).all()
    assert (np.diff(test) > 0).all()
    for label, n in ((1, n_pos), (-1, n_neg)):
        n_test = int((np.array(y)[test] == label).sum())
        assert n_test == min(max(round(fraction * n), 1), n - 1)


@settings(max_examples=30)
@given(st.integers(2, 60), st.integers(2, 60), st.floats(0.001, 0.999), st.integers(0, 9), st.integers(1, 5))
def test_rows_in_any_blocks_are_split_as_plain_python_would(n_pos, n_neg, fraction, seed, n_blocks):
    y = np.array([1] * n_pos + [-1] * n_neg)
    ids = np.random.default_rng(seed).choice(10**9, len(y), replace=False)
    expected = set()
    for label, n in ((1, n_pos), (-1, n_neg)):
        numbers = sorted((mixed(i ^ mixed(seed)), i) for i in ids[y == label].tolist())
        expected |= {i for _, i in numbers[: min(max(round(fraction * n), 1), n - 1)]}
    blocks = into_blocks(block_of(y, ids), n_blocks)
    split = find_split(each_of(blocks), fraction, seed)
    assert {i for block in blocks for i in block.row_id[split.is_test(block)].tolist()} == expected
    assert sum(split.n_test) == len(expected)


def test_seeds_differ_and_rows_are_spread():
    y = np.where(np.arange(10_000) % 10, -1, 1)
    chosen = [set(split(block_of(y), 0.2, seed)[1].tolist()) for seed in range(3)]
    assert all(len(c) == 2000 for c in chosen)
    assert 300 < len(chosen[0] & chosen[1]) < 500  # 400 are expected by chance
    assert 850 < sum(i < 5000 for i in chosen[0]) < 1150


@pytest.mark.parametrize("fraction", [0, 1, -0.1, 2, float("nan")])
def test_a_wrong_fraction_is_refused(fraction):
    with pytest.raises(InputError, match="must lie between 0 and 1"):
        split(block_of([1, -1, 1, -1]), fraction, 0)


@pytest.mark.parametrize(
    ("y", "said"), [([1, -1, -1], "fewer than two positive rows"), ([1, 1], "fewer than two negative rows")]
)
def test_a_class_that_cannot_be_split_is_refused(y, said):
    with pytest.raises(InputError, match=said):
        split(block_of(y), 0.5, 0)


def grouped_block(seed=0, n=3000):
    r = np.random.default_rng(seed)
    return Block.of(np.zeros((n, 1)), np.where(r.random(n) < 0.2, 1, -1), group=r.integers(0, 150, n))


def test_groups_stay_whole():
    block = grouped_block()
    train, test = split(block, 0.3, 1)
    assert not set(block.group[train]) & set(block.group[test])
    assert len(train) + len(test) == 3000
    assert abs(len(test) - 900) <= np.bincount(block.group).max()
    blocks = [block.between(1000 * k, 1000 * (k + 1), index=k) for k in range(3)]
    parted = find_split(each_of(blocks), 0.3, 1)
    assert np.array_equal(np.concatenate([parted.is_test(b) for b in blocks]), np.isin(np.arange(3000), test))
    assert sum(parted.n_test) == len(test)
    assert parted.n_test[1] == (block.y[test] > 0).sum()
    assert not np.array_equal(split(block, 0.3, 2)[1], test)


def test_one_group_or_a_side_of_one_class():
    y = np.array([1, 1, -1, -1])
    with pytest.raises(InputError, match="all of one group"):
        split(Block.of(np.zeros((4, 1)), y, group=np.zeros(4)), 0.5, 0)
    with pytest.raises(InputError, match="one class only"):
        split(Block.of(np.zeros((4, 1)), y, group=[0, 0, 1, 1]), 0.5, 0)


@pytest.mark.parametrize("group", [None, np.arange(40) // 4])
def test_each_block_is_read_once(group):
    blocks = into_blocks(Block.of(np.zeros((40, 1)), np.tile([1, -1], 20), group=group), 4)
    read = []
    find_split(lambda function: [read.append(block.index) or function(block) for block in blocks], 0.3, 1)
    assert read == [0, 1, 2, 3]


@pytest.mark.parametrize(("n", "share", "n_blocks"), [(20_000, 0.2, 3), (20_000, 0.9, 1), (5, 0.3, 2), (200, 0.5, 4)])
@pytest.mark.parametrize("most", [8.0, 1e-3])
def test_few_random_numbers_travel_and_the_rows_are_the_same(monkeypatch, n, share, n_blocks, most):
    monkeypatch.setattr(split_module, "MAX_DEVIATIONS", most)
    y = np.where(np.random.default_rng(0).random(n) < 0.1, 1, -1)
    y[:2], y[2:4] = 1, -1
    rows = Block.of(np.zeros((n, 1)), y)
    blocks, sent = [rows.take(part) for part in np.array_split(np.arange(n), n_blocks)], []

    def each(function):
        results = [function(block) for block in blocks]
        sent.append(sum(len(result[0][0]) for result in results))
        return results

    split = split_module.find_split(each, share, 3)
    for k, sign in enumerate((-1, 1)):
        numbers = np.sort(split_module.hash_ids(rows.row_id, 3)[y == sign])
        assert split.n_test[k] == round(share * len(numbers))
        assert split.limits[k] == numbers[split.n_test[k] - 1]
    if n == 20_000:
        assert sent[0] < 0.25 * n
    assert len(sent) == 1 or most < 1

"""Folds by hash of the row id, ranked within each class."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aucdist.data.block import Block, place
from aucdist.data.split import scrambled
from aucdist.errors import InputError
from aucdist.selection.folds import arrival, fold_numbers


def twin(ids, y, n_folds, seed):
    """Deal by hand: the positives in the order of their numbers, then the negatives, round the table."""
    number = dict(zip(ids, scrambled(np.array(ids), seed).tolist(), strict=True))
    order = [
        i for label in (1, -1) for i in sorted((i for i, v in zip(ids, y, strict=True) if v == label), key=number.get)
    ]
    return {i: place % n_folds for place, i in enumerate(order)}


@settings(deadline=None)
@given(st.integers(2, 6), st.integers(0, 30), st.integers(0, 30), st.integers(-3, 2**65), st.randoms())
def test_every_row_goes_where_it_is_dealt_whatever_the_order(n_folds, more_pos, more_neg, seed, random):
    y = [1] * (n_folds + more_pos) + [-1] * (n_folds + more_neg)
    ids = random.sample(range(10**6), len(y))
    dealt = twin(ids, y, n_folds, seed)
    order = random.sample(range(len(y)), len(y))
    found = fold_numbers(np.array(ids)[order], np.array(y)[order], n_folds, seed)
    assert found.tolist() == [dealt[ids[k]] for k in order]
    for rows in (found, found[np.array(y)[order] > 0], found[np.array(y)[order] < 0]):
        sizes = np.bincount(rows, minlength=n_folds)
        assert sizes.max() - sizes.min() <= 1


def test_blocks_do_not_matter():
    y = np.where(np.arange(300) % 7, -1, 1)
    whole = Block.of(np.zeros((300, 1)), y)
    by_id = dict(zip(whole.row_id, fold_numbers(whole.row_id, whole.y, 5, 3), strict=True))
    parts = place(whole, 4)
    ids, labels = np.concatenate([b.row_id for b in parts]), np.concatenate([b.y for b in parts])
    assert fold_numbers(ids, labels, 5, 3).tolist() == [by_id[i] for i in ids]


def test_seeds_give_other_partitions():
    ids, y = np.arange(10_000), np.where(np.arange(10_000) % 10, -1, 1)
    first, second = (fold_numbers(ids, y, 5, seed) for seed in (0, 1))
    assert 0.18 < (first == second).mean() < 0.22  # a fifth is expected by chance
    assert 0.18 < (first[:5000] == 0).mean() < 0.22


@pytest.mark.parametrize(
    ("y", "n_folds", "said"),
    [
        ([1, -1, 1, -1], 1, "n_folds is 1"),
        ([1, -1, -1], 2, "1 positive rows"),
        ([1, 1, 1, -1, -1], 3, "2 negative rows"),
    ],
)
def test_what_cannot_be_dealt_is_refused(y, n_folds, said):
    with pytest.raises(InputError, match=said):
        fold_numbers(np.arange(len(y)), np.array(y), n_folds, 0)


def test_arrival_is_an_order_of_the_ids():
    ids = np.arange(1000) * 7
    order = arrival(ids, 1)
    assert sorted(order) == list(range(1000))
    shuffled = ids[::-1]
    assert shuffled[arrival(shuffled, 1)].tolist() == ids[order].tolist()
    assert arrival(ids, 2).tolist() != order.tolist()
    assert abs(np.corrcoef(order, np.arange(1000))[0, 1]) < 0.1

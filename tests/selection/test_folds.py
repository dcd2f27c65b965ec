"""Folds by hash of the row id, ranked within each class."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from sklearn.model_selection import TimeSeriesSplit

from aucdist import selection
from aucdist.data.block import Block
from aucdist.data.dataset import Schema
from aucdist.errors import InputError
from aucdist.kernels.random import hash_ids


def twin(ids, y, n_folds, seed):
    """Deal by hand: the positives in the order of their numbers, then the negatives, round the table."""
    number = dict(zip(ids, hash_ids(np.array(ids), seed).tolist(), strict=True))
    order = [
        i for label in (1, -1) for i in sorted((i for i, v in zip(ids, y, strict=True) if v == label), key=number.get)
    ]
    return {i: place % n_folds for place, i in enumerate(order)}


@given(st.integers(2, 6), st.integers(0, 30), st.integers(0, 30), st.integers(-3, 2**65), st.randoms())
def test_every_row_goes_where_it_is_dealt_whatever_the_order(n_folds, more_pos, more_neg, seed, random):
    y = [1] * (n_folds + more_pos) + [-1] * (n_folds + more_neg)
    ids = random.sample(range(10**6), len(y))
    dealt = twin(ids, y, n_folds, seed)
    order = random.sample(range(len(y)), len(y))
    numbers = selection.fold_numbers(np.array(ids)[order], np.array(y)[order], n_folds, seed)
    assert numbers.tolist() == [dealt[ids[k]] for k in order]
    for rows in (numbers, numbers[np.array(y)[order] > 0], numbers[np.array(y)[order] < 0]):
        sizes = np.bincount(rows, minlength=n_folds)
        assert sizes.max() - sizes.min() <= 1


@given(st.integers(2, 6), st.lists(st.integers(0, 5), min_size=1, max_size=60), st.integers(0, 2**63), st.randoms())
def test_each_stratum_is_dealt_on_from_where_the_last_one_ended(n_folds, strata, seed, random):
    ids = random.sample(range(10**6), len(strata))
    number = dict(zip(ids, hash_ids(np.array(ids), seed).tolist(), strict=True))
    order = sorted(range(len(ids)), key=lambda k: (strata[k], number[ids[k]]))
    numbers = selection.stratified_numbers(np.array(ids), np.array(strata), n_folds, seed)
    assert numbers[order].tolist() == [place % n_folds for place in range(len(ids))]
    for stratum in set(strata):
        sizes = np.bincount(numbers[np.array(strata) == stratum], minlength=n_folds)
        assert sizes.max() - sizes.min() <= 1


def test_seeds_give_other_partitions():
    ids, y = np.arange(10_000), np.where(np.arange(10_000) % 10, -1, 1)
    first, second = (selection.fold_numbers(ids, y, 5, seed) for seed in (0, 1))
    assert 0.18 < (first == second).mean() < 0.22  # a fifth is expected by chance
    assert 0.18 < (first[:5000] == 0).mean() < 0.22


@pytest.mark.parametrize(
    ("y", "n_folds", "said"),
    [
        ([1, -1, 1, -1], 1, "n_folds must be .*; got 1"),
        ([1, -1, -1], 2, "1 positive row cannot be divided"),
        ([1, 1, 1, -1, -1], 3, "2 negative rows"),
    ],
)
def test_what_cannot_be_dealt_is_refused(y, n_folds, said):
    with pytest.raises(InputError, match=said):
        selection.fold_numbers(np.arange(len(y)), np.array(y), n_folds, 0)


def test_arrival_is_an_order_of_the_ids():
    ids = np.arange(1000) * 7
    order = selection.shuffled_order(ids, 1)
    assert sorted(order) == list(range(1000))
    shuffled = ids[::-1]
    assert shuffled[selection.shuffled_order(shuffled, 1)].tolist() == ids[order].tolist()
    assert selection.shuffled_order(ids, 2).tolist() != order.tolist()
    assert abs(np.corrcoef(order, np.arange(1000))[0, 1]) < 0.1


def test_a_partition_trains_on_what_it_does_not_hold_out():
    ids, y = np.arange(60), np.where(np.arange(60) % 4, -1, 1)
    folds = selection.partition(ids, y, 5, 1)
    assert folds.part.tolist() == selection.fold_numbers(ids, y, 5, 1).tolist()
    for fold in range(5):
        assert (folds.train(fold) == ~folds.held_out(fold)).all()
    assert sum(folds.held_out(fold).sum() for fold in range(5)) == 60


@given(st.integers(2, 4), st.integers(8, 30), st.integers(0, 99), st.randoms())
def test_groups_stay_together_whatever_the_order_of_the_rows(n_folds, n_groups, seed, random):
    groups = np.array([g for g in range(n_groups) for _ in range(random.randint(1, 5))])
    y, ids = np.array([random.choice([-1, 1]) for _ in groups]), np.array(random.sample(range(1000), len(groups)))
    folds = selection.fold_numbers_of_groups(ids, y, groups, n_folds, seed)
    for group in range(n_groups):
        assert len(set(folds[groups == group])) == 1
    assert set(folds) == set(range(n_folds))
    order = np.array(random.sample(range(len(groups)), len(groups)))
    value = selection.fold_numbers_of_groups(ids[order], y[order], groups[order] * 7, n_folds, seed).tolist()
    assert value == folds[order].tolist()
    # No fold is ahead of another by more positives than the largest group has.
    positives = np.bincount(folds, y == 1, n_folds)
    assert positives.max() - positives.min() <= max(np.bincount(groups, y == 1).max(), 1)


def test_groups_are_dealt_by_chance():
    ids, groups = np.arange(3000), np.arange(3000) // 3
    y = np.where(ids % 9, -1, 1)
    first, second = (selection.fold_numbers_of_groups(ids, y, groups, 5, seed) for seed in (0, 1))
    assert 0.15 < (first == second).mean() < 0.25


def test_time_only_trains_on_what_came_before():
    r = np.random.default_rng(0)
    time, y = np.round(r.normal(size=400), 1), r.choice([-1, 1], 400)
    folds = selection.partition(np.arange(400), y, 4, 0, time=time)
    for fold in range(4):
        train, held_out = folds.train(fold), folds.held_out(fold)
        assert time[train].max() < time[held_out].min()
        assert 60 <= held_out.sum() <= 100
    assert selection.time_parts(np.array([3.0, 3.0, 1.0, 2.0, 3.0, 3.0]), 2).tolist() == [1, 1, 0, 0, 1, 1]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"groups": np.repeat([0, 1, 2, 3], 5)}, "fold 1 of 2 has no negative held-out rows"),
        ({"time": np.arange(20.0)}, "fold 1 of 2 has no negative training rows"),
        ({"time": np.full(20, np.nan)}, "time of row 0"),
        (
            {"time": np.arange(20.0), "groups": np.arange(20) % 2},
            "2 groups straddle the parts of time, such as group 0",
        ),
    ],
)
def test_a_fold_with_one_class_and_groups_that_straddle_are_refused(more, said):
    y = np.where(np.arange(20) < 15, 1, -1)
    with pytest.raises(InputError, match=said):
        selection.partition(np.arange(20), y, 2, 0, **more)


def test_groups_within_the_parts_of_time_are_fine():
    y, time = np.tile([1, -1], 15), np.arange(30.0)
    folds = selection.partition(np.arange(30), y, 2, 0, time=time, groups=np.arange(30) // 10)
    assert folds.part.tolist() == np.repeat([0, 1, 2], 10).tolist()
    with pytest.raises(InputError, match="1 groups straddle here"):
        selection.check_groups_whole(np.array([1, 2, 1]), np.array([0, 0, 1]), "here")


@pytest.mark.parametrize("gap", [0, 1, 7])
def test_a_gap_of_rows_is_that_of_scikit_learn(gap):
    n, order = 60, np.random.default_rng(3).permutation(60)
    y, time = np.where(order % 3, -1, 1), order * 2.5
    folds = selection.partition(np.arange(n), y, 4, 0, time=time, gap_rows=gap)
    for fold, (train, held_out) in enumerate(TimeSeriesSplit(4, gap=gap).split(np.arange(n))):
        assert sorted(order[folds.train(fold)]) == train.tolist()
        assert sorted(order[folds.held_out(fold)]) == held_out.tolist()


@given(
    st.lists(st.integers(0, 30), min_size=40, max_size=60), st.integers(0, 9), st.sampled_from([0.0, 0.5, 1.0, 3.0]),
    st.randoms(),
)  # fmt: skip
def test_what_is_in_the_gap_by_the_definition(times, rows, duration, random):
    time = np.array(times, dtype=np.float64)
    y = np.array([random.choice([-1, 1]) for _ in times])
    try:
        folds = selection.partition(np.arange(len(y)), y, 3, 0, time=time, gap_rows=rows, gap_time=duration)
    except InputError as e:
        assert "fold" in str(e)  # noqa: PT017  # one class only
        return
    without = selection.Partition(folds.part, 3, forward=True)
    for fold in range(3):
        earlier, held_out = without.train(fold), folds.held_out(fold)
        assert held_out.tolist() == without.held_out(fold).tolist()
        first = min(time[i] for i in range(len(y)) if held_out[i])
        for i in range(len(y)):
            n_between = sum(1 for j in range(len(y)) if earlier[j] and time[j] > time[i])
            trains = earlier[i] and n_between >= rows and time[i] + duration <= first
            assert folds.train(fold)[i] == trains


def test_a_group_within_the_gap_does_not_straddle():
    y, time, groups = np.tile([1, -1], 15), np.arange(30.0), np.arange(30)
    groups[[8, 9, 10]] = 8  # over the boundary at 10
    with pytest.raises(InputError, match="1 groups straddle the parts of time, such as group 8"):
        selection.partition(np.arange(30), y, 2, 0, time=time, groups=groups)
    folds = selection.partition(np.arange(30), y, 2, 0, time=time, groups=groups, gap_time=3)
    assert np.flatnonzero(folds.train(0)).tolist() == list(range(8))
    names = [f"user-{i}" for i in range(30)]
    with pytest.raises(InputError, match="1 groups straddle the gap of fold 1 of 2, such as group user-8:"):
        selection.partition(np.arange(30), y, 2, 0, time=time, groups=groups, gap_time=2, group_names=names)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"gap_rows": 3}, "`gap_rows` and `gap_time` need `time`"),
        ({"gap_rows": -1, "time": np.arange(20.0)}, "must be finite and at least 0"),
        ({"gap_time": np.nan, "time": np.arange(20.0)}, "must be finite and at least 0"),
        ({"gap_time": 7.0, "time": np.arange(20.0)}, "fold 1 of 2 has no negative training rows: .* or a shorter gap"),
    ],
)
def test_a_gap_that_cannot_be_is_refused(more, said):
    with pytest.raises(InputError, match=said):
        selection.partition(np.arange(20), np.tile([1, -1], 10), 2, 0, **more)


# ---- rows that belong together ----------------------------------------------------------------


SCHEMA = Schema(("age", "town=a", "town=b", "size"), "class", ("1",), ("-1",), {"town": ("a", "b")})
X = np.array([[30.0, 1, 0, 5], [40, 0, 1, 6], [50, 0, 0, 7]])


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_a_column_is_taken_out(form):
    block = Block.of(form(X), np.array([1, -1, 1]))
    values, left, schema = selection.take_column(block, SCHEMA, "age")
    assert values.tolist() == [30, 40, 50]
    assert schema.feature_names == ("town=a", "town=b", "size")
    assert np.asarray(sp.csr_matrix(left.X).todense()).tolist() == X[:, 1:].tolist()
    values, left, schema = selection.take_column(block, SCHEMA, "town")
    assert values.tolist() == [0, 1, -1]
    assert (schema.feature_names, schema.categories) == (("age", "size"), {})
    assert left.n_features == 2


def test_a_column_must_be_there_and_not_be_all():
    block = Block.of(X, np.array([1, -1, 1]))
    with pytest.raises(InputError, match=r"unknown column 'twon'. Did you mean 'town'\? Allowed: town, age, size"):
        selection.take_column(block, SCHEMA, "twon")
    with pytest.raises(InputError, match="only column"):
        selection.take_column(
            Block.of(X[:, :1], np.array([1, -1, 1])), Schema(("age",), "class", ("1",), ("-1",), {}), "age"
        )


def test_codes_are_equal_where_values_are():
    numbers = selection.factorize(np.array([2.5, -1, 2.5, np.nan, np.nan]))
    assert numbers[0] == numbers[2] != numbers[1]
    assert numbers[3] != numbers[4]
    towns = Schema(("town=a", "town=b"), "class", ("1",), ("-1",), {"town": ("a", "b")})
    assert selection.names_of_numbers(np.array([1.0, -1.0, 0.0, 1.0]), towns, "town") == [
        "of an unknown category",
        "a",
        "b",
    ]
    assert selection.names_of_numbers(np.array([2.5, -1.0, 2.5]), towns, "age") == ["-1", "2.5"]


@settings(max_examples=30)
@given(st.integers(1, 40), st.integers(1, 4), st.randoms(), st.booleans())
def test_duplicates_are_rows_with_equal_features(n, d, random, sparse):
    rows = np.array([[random.choice([0.0, -0.0, 1.5, -2.0]) for _ in range(d)] for _ in range(n)])
    y = np.array([random.choice([-1, 1]) for _ in range(n)])
    numbers = selection.duplicates(Block.of(sp.csr_matrix(rows) if sparse else rows, y))
    assert numbers.tolist() == selection.duplicates(Block.of(rows, y)).tolist()
    for i in range(n):
        for j in range(n):
            assert (numbers[i] == numbers[j]) == bool((rows[i] == rows[j]).all())

"""A permutation without a list: every number once, and no place preferred."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from aucdist.data.shards.sharding import permuted


@given(st.integers(1, 3000), st.integers(-(2**63), 2**63))
def test_every_number_has_a_place_of_its_own(n, seed):
    assert np.array_equal(np.sort(permuted(np.arange(n), n, seed)), np.arange(n))


@given(st.integers(1, 2**62), st.integers(0, 2**32), st.data())
def test_the_place_of_a_number_does_not_depend_on_the_others(n, seed, data):
    numbers = np.array(data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=20, unique=True)))
    places = permuted(numbers, n, seed)
    assert ((places >= 0) & (places < n)).all()
    assert len(set(places.tolist())) == len(numbers)
    assert [permuted(numbers[i : i + 1], n, seed)[0] for i in range(len(numbers))] == places.tolist()


@pytest.mark.parametrize("n", [2, 3, 7, 12])
def test_every_place_is_as_likely_as_the_others(n):
    found = np.array([permuted(np.arange(n), n, seed) for seed in range(1500)])
    for number in range(n):
        assert chisquare(np.bincount(found[:, number], minlength=n)).pvalue > 1e-5
    pairs = found[:, 0] * n + found[:, 1]
    counts = np.bincount(pairs, minlength=n * n).reshape(n, n)
    assert chisquare(counts[~np.eye(n, dtype=bool)]).pvalue > 1e-5


def test_seeds_give_different_orders_and_neighbours_part():
    n = 100_000
    a, b = permuted(np.arange(n), n, 0), permuted(np.arange(n), n, 1)
    assert np.mean(a == b) < 1e-3
    assert abs(np.corrcoef(a[:-1], a[1:])[0, 1]) < 0.02
    assert abs(np.corrcoef(np.arange(n), a)[0, 1]) < 0.02

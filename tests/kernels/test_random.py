import itertools
import math

import numpy as np
import pytest
from numba import njit
from scipy import stats

from aucdist.kernels import random

pytestmark = pytest.mark.nojit

ALL = 2**64 - 1
SEEDS = [0, 1, 1234567, 2**63 - 1, ALL]


def splitmix64(seed):
    """Yield the generator's numbers by the formulas, in Python's own integers."""
    state = seed
    while True:
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        z = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        yield z ^ (z >> 31)


@njit
def raw(seed, out):
    state = random.u64(seed)
    for t in range(out.shape[0]):
        state = random.next_state(state)
        out[t] = random.mix(state)


@njit
def uniform(seed, out):
    state = random.u64(seed)
    for t in range(out.shape[0]):
        state, out[t] = random.uniform01(state)


@njit
def integers(seed, n, out):
    state = random.u64(seed)
    for t in range(out.shape[0]):
        state, out[t] = random.below(state, n)


def first(count, draw, *args, dtype=np.uint64):
    out = np.empty(count, dtype=dtype)
    draw(*args, out)
    return out.tolist()


def test_published_values():
    assert first(3, raw, np.uint64(1234567)) == [6457827717110365317, 3203168211198807973, 9817491932198370423]


@pytest.mark.parametrize("seed", SEEDS)
def test_generator_is_splitmix64(seed):
    assert first(50, raw, np.uint64(seed)) == list(itertools.islice(splitmix64(seed), 50))


def test_seeds_may_be_signed():
    assert first(9, raw, 7) == first(9, raw, np.uint64(7))
    assert first(9, raw, -1) == first(9, raw, np.uint64(ALL))


@pytest.mark.parametrize("seed", SEEDS)
def test_stream_t_starts_at_the_t_th_number(seed):
    numbers = [random.stream(np.uint64(seed), t) for t in range(1, 51)]
    assert numbers == list(itertools.islice(splitmix64(seed), 50))


@pytest.mark.parametrize("seed", SEEDS)
def test_uniform01_is_the_upper_53_bits(seed):
    expected = [(z >> 11) / 2**53 for z in itertools.islice(splitmix64(seed), 50)]
    assert first(50, uniform, np.uint64(seed), dtype=np.float64) == expected
    assert 0 <= min(expected) < max(expected) < 1


@pytest.mark.parametrize("n", [1, 2, 3, 10, 2**31 + 7, 80_000_000_000, 2**62 + 1, 2**63 - 1])
def test_below_takes_the_upper_bits_and_draws_again_where_that_is_unfair(n):
    for seed in SEEDS:
        fair = (z for z in splitmix64(seed) if z * n % 2**64 >= 2**64 % n)
        assert first(40, integers, np.uint64(seed), n) == [z * n >> 64 for z in itertools.islice(fair, 40)]


def order_of(key, n, places=None):
    order = np.empty(random.ORDER_SIZE, dtype=np.uint64)
    random.new_order(np.uint64(key), n, order)
    return [int(random.permuted(order, t, n)) for t in (range(n) if places is None else places)]


@pytest.mark.parametrize("n", [*range(1, 35), 63, 64, 65, 100, 127, 128, 129, 1000])
def test_permuted_is_a_permutation(n):
    orders = [order_of(key, n) for key in (0, 7, 2**64 - 1)]
    assert all(sorted(order) == list(range(n)) for order in orders)
    assert n < 5 or orders[0] != orders[1] != orders[2]


@pytest.mark.parametrize("n", [2**32 + 1, 80_000_000_000, 2**63 - 1])
def test_permuted_beyond_32_bits(n):
    values = order_of(11, n, [(n - 1) * k // 1999 for k in range(2000)])
    assert len(set(values)) == 2000
    assert 0 <= min(values) < n / 200
    assert n - n / 200 < max(values) < n
    quarters = np.bincount([v * 4 // n for v in values], minlength=4)
    assert stats.chisquare(quarters).pvalue > 1e-3


def test_every_order_comes_up_equally_often():
    counts = dict.fromkeys(itertools.permutations(range(4)), 0)
    for key in range(2400):
        counts[tuple(order_of(random.mix(key), 4))] += 1
    assert stats.chisquare(list(counts.values())).pvalue > 1e-3


def test_neighbours_in_the_order_are_unrelated():
    n = 1000
    cells = np.array(order_of(5, n)) * 4 // n
    for lag in (1, 2, 4, 16, 128):
        table = np.bincount(cells[:-lag] * 4 + cells[lag:], minlength=16).reshape(4, 4)
        assert stats.chi2_contingency(table).pvalue > 1e-3


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_normal_numbers_are_those_of_box_and_muller(n):
    uniforms = [(z >> 11) * 2.0**-53 for z in itertools.islice(splitmix64(5), n + n % 2)]
    expected = []
    for u, v in zip(uniforms[::2], uniforms[1::2], strict=True):
        length = math.sqrt(-2 * math.log(1 - u))
        expected += [length * math.cos(2 * math.pi * v), length * math.sin(2 * math.pi * v)]
    out = np.empty(n)
    random.fill_normal(5, out)
    np.testing.assert_allclose(out, expected[:n], rtol=1e-14)


def test_normal_numbers_are_normal():
    out = np.empty(4000)
    random.fill_normal(1, out)
    assert stats.kstest(out, "norm").pvalue > 1e-3
    assert abs(np.corrcoef(out[::2], out[1::2])[0, 1]) < 0.1

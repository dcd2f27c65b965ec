"""Distances of histograms: against SciPy and slow sums, and how often they err where nothing has moved."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from aucdist.drift.batch import kolmogorov_smirnov, more_than, psi, total_variation

COUNTS = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), min_size=1, max_size=20)


def test_ks_is_that_of_values_where_each_has_a_bin() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 15, 400), rng.integers(2, 17, 300)
    counts = [np.bincount(x, minlength=17) for x in (a, b)]
    distance, p = kolmogorov_smirnov(*counts)
    theirs = stats.ks_2samp(a, b, method="asymp")
    assert distance == pytest.approx(theirs.statistic)
    assert p == pytest.approx(stats.kstwobign.sf(math.sqrt(400 * 300 / 700) * distance))
    assert math.log10(p) == pytest.approx(math.log10(theirs.pvalue), abs=0.7)


def test_total_variation_has_the_chi_squared_test() -> None:
    first, second = np.array([100, 200, 50, 20]), np.array([90, 150, 90, 35])
    distance, p = total_variation(first, second)
    assert distance == pytest.approx(0.5 * np.abs(first / 370 - second / 365).sum())
    assert p == pytest.approx(stats.chi2_contingency(np.stack([first, second]), correction=False).pvalue)


@given(COUNTS)
def test_distances_are_0_of_the_same_and_never_leave_their_range(counts: list[tuple[int, int]]) -> None:
    first, second = np.array(counts).T
    assert psi(first, first) == 0.0
    assert psi(first, second) >= 0.0
    assert psi(first, second) == pytest.approx(psi(second, first), rel=1e-9, abs=1e-12)
    for of in (kolmogorov_smirnov, total_variation):
        distance, p = of(first, second)
        assert 0.0 <= distance <= 1.0 + 1e-12
        assert 0.0 <= p <= 1.0
        assert of(first, first)[0] == 0.0


def test_psi_by_hand() -> None:
    p, q = (30.5 / 101, 70.5 / 101), (60.5 / 101, 40.5 / 101)
    expected = sum((b - a) * math.log(b / a) for a, b in zip(p, q, strict=True))
    assert psi(np.array([30, 70]), np.array([60, 40])) == pytest.approx(expected)


def test_p_values_hold_their_level() -> None:
    """Of samples of one population, at most about one in a hundred has a p-value below 0.01."""
    rng = np.random.default_rng(3)
    share = np.full(20, 1 / 20)
    pairs = [(rng.multinomial(2000, share), rng.multinomial(300, share)) for _ in range(1000)]
    for of in (kolmogorov_smirnov, total_variation):
        assert sum(of(a, b)[1] < 0.01 for a, b in pairs) <= 22
    shares = [(rng.binomial(5000, 0.004), rng.binomial(400, 0.004)) for _ in range(2000)]
    assert sum(more_than(b, 400, a, 5000) < 0.01 for a, b in shares) <= 40
    assert more_than(40, 400, 20, 5000) < 1e-9
    assert more_than(0, 400, 0, 5000) == 1.0

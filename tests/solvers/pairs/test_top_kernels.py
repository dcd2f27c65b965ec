"""Cells of scores: their order is that of the scores, and their counts are those of plain Python."""

import numpy as np
import pytest

from aucdist.metrics.counts import floats_of_keys, ordered_keys
from aucdist.solvers.pairs.cell_kernels import BITS, count_keys, key, start_of_band

pytestmark = pytest.mark.nojit

EXTREMES = np.array([-np.inf, -1e308, -1.0, -5e-324, -0.0, 0.0, 5e-324, 1.0, 1.0 + 2**-52, 1e308, np.inf])


def scores(n=200, seed=0):
    r = np.random.default_rng(seed)
    return np.concatenate([EXTREMES[1:-1], r.normal(size=n), r.integers(-3, 4, n) / 3.0, 1e3 * r.normal(size=9)])


def test_keys_have_the_order_of_the_scores():
    found = ordered_keys(EXTREMES + 0.0)
    assert floats_of_keys(found).tolist() == EXTREMES.tolist()
    assert found.tolist() == [key(s) for s in EXTREMES]
    assert key(-0.0) == key(0.0) == 0
    distinct = np.delete(found, 5)
    assert (np.diff(distinct.astype(object)) > 0).all()


def test_counts_of_every_level_are_those_of_plain_python():
    s = scores()
    weights = np.random.default_rng(1).random(len(s))
    s_key = [int(key(v)) for v in s]
    prefix = 0
    for shift in (48, 32, 16, 0):
        weight, rows = np.zeros(2**BITS), np.zeros(2**BITS)
        count_keys(s, weights, prefix, shift, weight, rows)
        inside = [o for o, k in enumerate(s_key) if shift == 48 or k >> (shift + BITS) == prefix]
        assert rows.sum() == len(inside)
        for o in inside:
            cell = (s_key[o] >> shift) + 2**15 if shift == 48 else (s_key[o] >> shift) % 2**BITS
            alike = [p for p in inside if s_key[p] >> shift == s_key[o] >> shift]
            assert rows[cell] == len(alike)
            assert weight[cell] == pytest.approx(weights[alike].sum())
        prefix = int(key(1.0 / 3.0)) >> shift
    assert rows.max() > 20  # rows of equal scores: one third occurs often


@pytest.mark.parametrize("width", [1e-6, 0.3, 2.0, 1e3])
@pytest.mark.parametrize("decimals", [1, 12])
@pytest.mark.parametrize("wanted", [0.5, 7.5, 30.0])
def test_a_band_starts_where_bisection_finds_it(width, decimals, wanted):
    r = np.random.default_rng(4)
    scores, weights = r.normal(size=60).round(decimals), r.uniform(0.5, 2.0, 60)
    ranked, left = sorted(range(60), key=lambda o: -scores[o]), wanted
    for o in ranked:
        threshold, left = scores[o], left - weights[o]
        if left <= 0.0:
            break
    away = scores - threshold
    low, high = -width, 0.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        parts = [min(max((a - middle) / width, 0.0), 1.0) for a in away]
        low, high = (
            (middle, high) if sum(w * p for w, p in zip(weights, parts, strict=True)) > wanted else (low, middle)
        )
    found = start_of_band(away, weights, wanted, width)
    assert -width <= found <= 0.0
    counted = (weights * np.clip((away - found) / width, 0.0, 1.0)).sum()
    assert counted == pytest.approx(wanted, rel=1e-12)
    assert found == pytest.approx(high, abs=1e-9 * width)

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import rosen, rosen_der

from aucdist.data.block import Block, into_blocks
from aucdist.engine.blocks import LocalBlocks
from aucdist.errors import InputError
from aucdist.solvers.base import Round, Status, solve
from aucdist.solvers.lbfgs import STEPS_STORED, Curvature, Point, line_search
from aucdist.solvers.rounding import Rounding


def descend(evaluate, w, most):
    point, curvature = evaluate(w), Curvature()
    for n_rounds in range(most):
        if np.linalg.norm(point.gradient) < 1e-7:
            return point, n_rounds
        after, _ = line_search(evaluate, point, curvature.direction(point.gradient))
        assert after.value < point.value
        curvature.remember(point, after)
        point = after
    return point, most


def banana(w):
    return Point(w, rosen(w), rosen_der(w))


def test_finds_the_bottom_of_a_curved_valley():
    end, n_rounds = descend(banana, np.array([-1.2, 1.0]), 200)
    np.testing.assert_allclose(end.w, 1.0, rtol=1e-6)
    assert n_rounds < 60


def test_the_directions_are_those_of_the_updated_inverse():
    r = np.random.default_rng(0)
    curvature, inverse, last = Curvature(), None, None
    root = r.normal(size=(4, 4))
    hessian = root @ root.T + np.eye(4)
    w = r.normal(size=4)
    for _ in range(STEPS_STORED):
        after = w + r.normal(size=4)
        s, z = after - w, hessian @ (after - w)
        curvature.remember(*(Point(p, 0.0, hessian @ p) for p in (w, after)))
        last, w = (s, z), after
    # The whole matrix, from the newest step's scale, by the formula of Broyden, Fletcher, Goldfarb and Shanno.
    s, z = last
    inverse = np.eye(4) * (s @ z) / (z @ z)
    for step, change, product in curvature._pairs:
        left = np.eye(4) - np.outer(step, change) / product
        inverse = left @ inverse @ left.T + np.outer(step, step) / product
    gradient = r.normal(size=4)
    np.testing.assert_allclose(curvature.direction(gradient), -inverse @ gradient, rtol=1e-9)


def test_steps_of_no_curvature_are_not_learnt():
    curvature = Curvature()
    curvature.remember(Point(np.zeros(2), 1.0, np.ones(2)), Point(np.ones(2), 0.0, np.zeros(2)))
    np.testing.assert_allclose(curvature.direction(np.array([3.0, 4.0])), [-0.6, -0.8])


def test_a_search_ends_where_the_conditions_hold():
    for way in (1e-4, 1.0, 1e4):
        start = banana(np.array([-1.2, 1.0]))
        direction = -way * start.gradient / np.linalg.norm(start.gradient)
        end, n_tries = line_search(banana, start, direction)
        slope = start.gradient @ direction
        step = (end.w - start.w) @ direction / (direction @ direction)
        assert end.value <= start.value + 1e-4 * step * slope
        assert end.gradient @ direction >= 0.9 * slope
        assert n_tries < 40


def test_where_nothing_is_lower_the_start_is_the_end():
    start = Point(np.zeros(1), 1.0, np.ones(1))
    end, _ = line_search(lambda w: Point(w, 2.0, np.ones(1)), start, -np.ones(1))
    assert end is start


@pytest.mark.parametrize("seed", range(5))
def test_a_descent_in_rounded_numbers_ends(seed):
    """Values to six digits and gradients with an error: without an order among points of one value it goes round and round."""
    r = np.random.default_rng(seed)
    hessian, way = np.diag([1.0, 7.0, 50.0]), r.normal(size=3)

    def rounded(w):
        return Point(w, round(1.0 + 0.5 * w @ hessian @ w, 6), hessian @ w + 1e-4 * np.sin(1e7 * w * way))

    point, curvature = rounded(np.ones(3)), Curvature()
    for _ in range(300):
        after, _ = line_search(rounded, point, curvature.direction(point.gradient))
        if after is point:
            break
        assert after.better_than(point)
        curvature.remember(point, after)
        point = after
    assert after is point
    np.testing.assert_allclose(point.w, 0.0, atol=2e-3)


# ---- the certificate's own rounding: bounds hold against sums in extended precision, and no impossible round is accept


def outcome(*rounds, tol=1e-3):
    return solve(iter(rounds), tol=tol, max_passes=100).certificate


def at(primal, dual, passes=1, **more):
    return Round(np.zeros(1), primal, dual, passes, **more)


@pytest.mark.parametrize(
    ("primal", "dual"),
    [(-1.6e9, -4.8e10), (-0.49, -0.33), (0.117, 0.19), (float("nan"), 0.0), (1.0, float("nan")), (float("inf"), 0.0)],
)
def test_an_impossible_round_is_not_accepted(primal, dual):
    certificate = outcome(at(primal, dual))
    assert certificate.status == Status.ROUNDING
    assert not certificate.relative_gap < 1.0 or dual > primal


def test_the_gap_includes_the_rounding():
    certificate = outcome(at(1.0, 0.9, primal_error=1e-2, dual_error=2e-2), tol=0.2)
    assert certificate.relative_gap == pytest.approx(1 - 0.88 / 1.01)
    assert certificate.status == Status.CONVERGED
    assert certificate.rounding == pytest.approx(3e-2)


def test_a_gap_within_its_rounding_is_not_converged():
    assert outcome(at(1.0, 0.9999, primal_error=1e-2)).status == Status.ROUNDING
    assert outcome(at(1.0, 0.99, primal_error=1e-2, dual_error=1e-2)).status == Status.ROUNDING
    assert outcome(at(1.0, 0.5, primal_error=1e-2, passes=100)).status == Status.MAX_PASSES


def test_a_bound_below_0_says_nothing():
    assert outcome(at(1.0, -3.0, passes=100)).relative_gap == 1.0
    assert outcome(at(1.0, 1e-3, dual_error=1e-2, passes=100)).relative_gap == 1.0


def test_a_later_round_that_is_not_finite_has_diverged():
    assert outcome(at(1.0, 0.0), at(float("inf"), 0.0)).status == Status.DIVERGED


def test_blocks_with_one_index_are_refused():
    X, y = np.ones((2, 1)), np.array([-1, 1])
    with pytest.raises(InputError, match="block 1 has index 0"):
        LocalBlocks([Block.of(X, y), Block.of(X, y)])


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.integers(2, 200), st.integers(1, 6), st.floats(-8, 8), st.integers(1, 3))
def test_bounds_hold_against_extended_precision(seed, n, d, magnitude, n_blocks):
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, d)) + rng.normal(size=d) * 10.0 ** rng.uniform(0, 6, d)) * 10.0**magnitude
    y = np.where(np.arange(n) % 2, 1, -1)
    rounding = Rounding.of(LocalBlocks(into_blocks(Block.of(X, y), n_blocks)))
    w, coefs = rng.normal(size=d), rng.uniform(-1, 1, n)
    exact = X.astype(np.longdouble) @ w.astype(np.longdouble)
    assert float(np.abs(X @ w - exact).max()) <= rounding.score(w)
    combined = coefs.astype(np.longdouble) @ X.astype(np.longdouble)
    error = rounding.combination(np.abs(coefs).sum())
    assert (np.abs(coefs @ X - combined).astype(float) <= error).all()
    v = combined + error
    half = abs(float((v @ v - combined @ combined) / 2))
    assert half <= rounding.half_square(combined.astype(float), error)

import numpy as np
import pytest
from scipy.optimize import rosen, rosen_der

from aucdist.solvers.lbfgs import REMEMBERED, Curvature, Point, line_search


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


def test_a_quadratic_takes_about_as_many_rounds_as_it_has_directions():
    hessian = np.diag([1.0, 3.0, 10.0, 30.0, 100.0])
    end, n_rounds = descend(lambda w: Point(w, 0.5 * w @ hessian @ w, hessian @ w), np.ones(5), 100)
    np.testing.assert_allclose(end.w, 0.0, atol=1e-7)
    assert n_rounds <= 20


def test_the_directions_are_those_of_the_updated_inverse():
    r = np.random.default_rng(0)
    curvature, inverse, last = Curvature(), None, None
    root = r.normal(size=(4, 4))
    hessian = root @ root.T + np.eye(4)
    w = r.normal(size=4)
    for _ in range(REMEMBERED):
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

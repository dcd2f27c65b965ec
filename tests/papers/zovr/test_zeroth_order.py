import numpy as np
import pytest
from support.margin_twins import drawn, factors, hinge, problem, row_functions, zeroth_order_estimate

from aucdist.kernels.random import fill_normal, stream
from aucdist.kernels.rows import DenseRows
from aucdist.papers.zovr.kernels import (
    MarginRows,
    Plane,
    RowsInPlane,
    draw_integers,
    slopes_along,
    steps_along,
    svrg_steps,
    unit_vectors,
)

pytestmark = pytest.mark.nojit


def unit(n_directions, size, seed=1):
    out = np.empty((n_directions, size))
    unit_vectors(seed, out)
    return out


def test_unit_vectors_are_normal_vectors_of_length_one():
    ways = unit(3, 5)
    for a in range(3):
        z = np.empty(5)
        fill_normal(np.uint64(stream(1, a)), z)
        np.testing.assert_allclose(ways[a], z / np.linalg.norm(z), rtol=1e-14)
    # A direction does not depend on how many there are.
    np.testing.assert_array_equal(unit(2, 5), ways[:2])


def test_unit_vectors_look_uniform():
    ways = unit(3000, 3)
    np.testing.assert_allclose(ways.mean(axis=0), 0, atol=4 * np.sqrt(1 / 3 / 3000))
    np.testing.assert_allclose(ways.T @ ways / 3000, np.eye(3) / 3, atol=0.03)
    # On the sphere in three dimensions a coordinate is uniform.
    assert abs((np.abs(ways[:, 0]) < 0.5).mean() - 0.5) < 4 * 0.5 / np.sqrt(3000)


def test_slopes_are_differences_of_values():
    X, y = problem(12, 3)
    w, ways, mu = np.array([0.3, -0.2, 0.5]), unit(4, 3), 0.1
    out = np.empty((12, 4))
    slopes_along(X @ ways.T, X @ w, y.astype(np.int8), mu, out)
    expected = [
        [(hinge(label * (x @ (w + mu * u))) - hinge(label * (x @ (w - mu * u)))) / (2 * mu) for u in ways]
        for label, x in zip(y, X, strict=True)
    ]
    np.testing.assert_allclose(out, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("reduced", [True, False])
def test_steps_in_the_plane_are_steps_by_values_of_the_rows_functions(reduced):
    X, y = problem(15, 3)
    lam1, lam2, mu, n_steps, before = 0.7, 3.0, 0.1, 25, 0 if reduced else 5
    rows = row_functions(X, y, lam1, lam2)
    w, ways = np.array([0.3, -0.2, 0.5]), unit(2, 3)
    at_w = np.array([zeroth_order_estimate(f, w, ways, mu) for f in rows])
    whole = at_w.mean(axis=0)
    wk = w
    for k, i in enumerate(drawn(9, 15, n_steps), start=1):
        g = zeroth_order_estimate(rows[i], wk, ways, mu)
        wk = wk - (g - at_w[i] + whole if reduced else g) / (before + k + 1)

    moves, scores, labels = X @ ways.T, X @ w, y.astype(np.int8)
    pull, gram, at_start = y * factors(y), ways @ ways.T, ways @ w
    own = np.empty((15, 2))
    slopes_along(moves, scores, labels, mu, own)
    slopes = lam2 * own.mean(axis=0) - lam1 * (pull @ moves) / 15 + at_start
    np.testing.assert_allclose(slopes @ ways / 2, whole, rtol=1e-10)
    c = np.zeros(2)
    plane = Plane(gram, at_start, slopes, lam1, lam2, mu)
    seen = RowsInPlane(moves, scores, labels, np.ones(15), pull, own if reduced else np.empty((0, 0)))
    steps_along(seen, plane, before, n_steps, 9, c)
    np.testing.assert_allclose(w + c @ ways, wk, rtol=1e-10)


@pytest.mark.parametrize("gram", [False, True])
@pytest.mark.parametrize("before", [0, 7])
def test_first_order_steps_are_those_written_out(gram, before):
    X, y = problem(15, 3)
    lam2, n_steps = 3.0, 40
    rows = X @ X.T if gram else X
    alpha = np.linspace(-0.1, 0.2, 15)
    w = alpha @ X
    slope_alpha = np.linspace(0.3, -0.2, 15)
    slope = slope_alpha @ X
    wk = w
    for k, i in enumerate(drawn(4, 15, n_steps), start=1):
        change = float(y[i] * (X[i] @ wk) < 1) - float(y[i] * (X[i] @ w) < 1)
        wk = wk - (wk - w - lam2 * change * y[i] * X[i] + slope) / (before + k + 1)
    z = np.zeros(15 if gram else 3)
    found = np.empty(n_steps, dtype=np.int64)
    draw_integers(4, 15, found)
    assert found.tolist() == list(drawn(4, 15, n_steps))
    # In two parts: the rows where they are, then those that are read for the steps.
    for part, read, places in ((slice(0, 23), rows, found[:23]), (slice(23, n_steps), rows[found[23:]], np.arange(17))):
        margins = MarginRows(X @ w, X @ slope, y.astype(np.int8), np.ones(15), 0 if gram else -1)
        svrg_steps(DenseRows(read), places, found[part], margins, (lam2, before, part.start), z)
    way = (z - n_steps * (slope_alpha if gram else slope)) / (before + n_steps + 1)
    np.testing.assert_allclose(w + (way @ X if gram else way), wk, rtol=1e-11)

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linprog
from support.hinge_twins import exact_problem, l1_minimum, shrinking_sweeps
from support.small_sets import FORMS
from support.square_twins import problem

from aucdist.data.block import as_rows, row_squares
from aucdist.pairs.penalty import L1, L2
from aucdist.papers.scd import kernels
from aucdist.papers.scd.kernels import DUAL, LABEL, N_COLUMNS, SQUARE, UPPER
from aucdist.papers.scd.primal import scaled_dual
from aucdist.papers.scd.subgradient import onto_ball

pytestmark = pytest.mark.nojit

N = 32


def table_of(X, y, uppers, constant):
    table = np.zeros((len(y), N_COLUMNS))
    table[:, SQUARE] = row_squares(as_rows(X))
    table[:, SQUARE] += constant * constant
    table[:, UPPER], table[:, LABEL] = uppers, y
    table[table[:, SQUARE] == 0.0, DUAL] = uppers[table[:, SQUARE] == 0.0]
    return table


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("constant", [0.0, 1.0])
def test_sweeps_in_which_rows_become_idle_are_the_twin_to_the_bit(form, constant):
    dense, y = exact_problem()
    dense = dense[:, : 2 - int(constant)]  # with the ones no more than two terms to a sum
    X, uppers, width = FORMS[form](dense), np.full(N, 0.3), dense.shape[1]
    table, order, w = table_of(X, y, uppers, constant), np.arange(N, dtype=np.int32), np.zeros(width + 1)
    meant = shrinking_sweeps(dense, y, uppers, table[:, DUAL].copy(), 7, 9 * N, constant)
    sweeps = kernels.DualSweeps(7, 9 * N, False, constant, 1.0)
    active, taken = kernels.dual_sweeps(as_rows(X), table, order, kernels.ActiveRows(N), sweeps, w)
    assert (*active, taken) == meant[:4]
    assert active[0] < N
    assert order.tolist() == meant[4]
    np.testing.assert_array_equal(table[:, DUAL], meant[5])
    np.testing.assert_array_equal(w, meant[6])


@given(
    arrays(np.float64, st.integers(1, 30), elements=st.sampled_from([0.0, 0.5, -1.0, 3.0]) | st.floats(-10, 10)),
    st.floats(1e-3, 20),
)
def test_the_projection_onto_the_ball_is_the_nearest_point(w, radius):
    nearest = onto_ball(w, radius)
    if np.abs(w).sum() <= radius:
        np.testing.assert_array_equal(nearest, w)
        return
    assert np.abs(nearest).sum() == pytest.approx(radius, rel=1e-9)
    # w - found is a normal of the ball: as large as anywhere, and of the weight's sign, wherever there is a weight.
    away = w - nearest
    assert (nearest * away >= 0.0).all()
    np.testing.assert_allclose(np.abs(away)[nearest != 0.0], np.abs(away).max(), atol=1e-9)


# ---- hinge objective ---------------------------------------------------------------------------


def point(a, X, y, weight):
    m = weight / weight.sum() * a
    ones = np.column_stack([X, np.ones(len(y))])
    return np.stack([m[k] @ ones[k] for k in (y < 0, y > 0)])


@pytest.mark.parametrize("intercept", [False, True])
def test_l1_bound_at_the_programmes_own_dual_is_its_value(intercept):
    X, y, weight = problem(12, 30, 4, weighted=True)
    lam, m = 0.02, weight / weight.sum()
    lowest = l1_minimum(X, y, lam, weight, intercept=intercept)[0]
    Z = (m * y)[:, None] * X
    equal = {"A_eq": (m * y)[None, :], "b_eq": [0.0]} if intercept else {}
    a = linprog(-m, np.vstack([Z.T, -Z.T]), np.full(8, lam), bounds=[(0, 1)] * len(y), **equal).x
    bound = scaled_dual(point(a, X, y, weight), L1(lam), intercept=intercept)
    assert bound == pytest.approx(lowest, rel=1e-8)


@pytest.mark.parametrize("lam", [0.3, 1e-2])
def test_l2_bound_takes_the_best_length(lam):
    X, y, weight = problem(8, 22, 5)
    p = point(np.linspace(0.2, 1.0, len(y)), X, y, weight)
    shorter = [s * p for s in np.linspace(0.0, 1.0, 1001)]
    values = [s[:, -1].sum() - ((s[1] - s[0])[:-1] ** 2).sum() / (4 * lam) for s in shorter]
    assert scaled_dual(p, L2(2 * lam), intercept=False) == pytest.approx(max(values), rel=1e-5)
    assert scaled_dual(p, L2(2 * lam), intercept=False) >= max(values)


def test_a_point_of_one_class_gives_nothing_where_an_intercept_is_free():
    p = np.array([[0.0, 0.0, 0.0], [0.1, 0.2, 0.5]])
    for penalty in (L1(0.1), L2(0.2)):
        assert scaled_dual(p, penalty, intercept=True) == 0.0

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from support.hinge_twins import (
    dual_sweep,
    exact_problem,
    pegasos_steps,
    scd_sweep,
    shrinking_sweeps,
    shuffled,
)
from support.square_twins import FORMS, problem

from aucdist.data.block import as_rows, row_squares
from aucdist.papers.scd import kernels
from aucdist.papers.scd.kernels import DUAL, LABEL, N_COLUMNS, SQUARE, UPPER
from aucdist.papers.scd.subgradient import onto_ball

pytestmark = pytest.mark.nojit

N = 32


@pytest.fixture(params=FORMS)
def data(request):
    X, y, weight = problem(9, 23, 5, weighted=True)
    X[3] = 0.0  # a row of zeros
    return FORMS[request.param](X), X, y, weight / weight.sum()


def table_of(X, y, uppers, one):
    table = np.zeros((len(y), N_COLUMNS))
    table[:, SQUARE] = row_squares(as_rows(X))
    table[:, SQUARE] += one * one
    table[:, UPPER], table[:, LABEL] = uppers, y
    table[table[:, SQUARE] == 0.0, DUAL] = uppers[table[:, SQUARE] == 0.0]
    return table


def test_squares(data):
    X, dense, _, _ = data
    np.testing.assert_allclose(row_squares(as_rows(X)), (dense**2).sum(axis=1), rtol=1e-15)


@pytest.mark.parametrize("one", [0.0, 1.0])
def test_slopes_and_the_loss(data, one):
    X, dense, y, shares = data
    w, found = np.random.default_rng(0).normal(size=6), np.zeros(N)
    loss = kernels.find_slopes(as_rows(X), table_of(X, y, shares, one), one, w, found)
    meant = y * (dense @ w[:5] + one * w[5]) - 1.0
    np.testing.assert_allclose(found, meant, rtol=1e-12, atol=1e-14)
    assert loss == pytest.approx(shares @ np.maximum(-meant, 0.0), rel=1e-12)


@pytest.mark.parametrize("one", [0.0, 1.0])
@pytest.mark.parametrize("sigma", [1.0, 4.0])
@pytest.mark.parametrize("cyclic", [False, True])
def test_a_dual_sweep_is_its_twin(data, one, sigma, cyclic):
    X, dense, y, shares = data
    uppers, w = shares / 0.02, np.random.default_rng(0).normal(size=6) * 0.1
    w[5] *= one
    table = table_of(X, y, uppers, one)
    before, order = table[:, DUAL].copy(), np.arange(N, dtype=np.int32)
    found = w.copy()
    sweeps = kernels.DualSweeps(7, N, cyclic, one, sigma)
    _, taken = kernels.dual_sweeps(as_rows(X), table, order, kernels.Active(N), sweeps, found)
    assert taken == N
    meant = range(N) if cyclic else shuffled(7, range(N))[0]
    assert order.tolist() == list(meant)
    duals, moved = dual_sweep(dense, y, uppers, before, w, meant, sigma, one)
    np.testing.assert_allclose(table[:, DUAL], duals, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found, moved, rtol=1e-12, atol=1e-14)


def test_settled_rows_become_idle_and_change_nothing(data):
    """With as many sweeps as it takes, the active rows are left with the dual problem's own answer."""
    X, dense, y, shares = data
    uppers = shares / 0.2
    table, order, w = table_of(X, y, uppers, 0.0), np.arange(N, dtype=np.int32), np.zeros(6)
    w[:5] = dense.T @ (table[:, DUAL] * y)
    sweeps = kernels.DualSweeps(7, 200 * N, False, 0.0, 1.0)
    (n_active, high, low), _ = kernels.dual_sweeps(as_rows(X), table, order, kernels.Active(N), sweeps, w)
    assert n_active < N
    assert sorted(order) == list(range(N))
    idle = order[n_active:]
    assert np.isin(table[idle, DUAL], [0.0, *uppers]).all()
    slopes = y * (dense @ w[:5]) - 1.0
    pressed = np.where(table[:, DUAL] == 0.0, slopes >= -1e-7, np.where(table[:, DUAL] == uppers, slopes <= 1e-7, True))
    assert pressed[order[:n_active]].all()
    assert low < 0.0 < high
    np.testing.assert_allclose(w[:5], dense.T @ (table[:, DUAL] * y), atol=1e-12)


def test_sweeps_end_where_nothing_moves():
    X, y = np.ones((2, 1)), np.array([1, -1])
    table, w = table_of(X, y, np.full(2, 0.25), 0.0), np.zeros(2)
    table[:, DUAL] = 0.25
    order, sweeps = np.arange(2, dtype=np.int32), kernels.DualSweeps(0, 1000, False, 0.0, 1.0)
    _, taken = kernels.dual_sweeps(as_rows(X), table, order, kernels.Active(2), sweeps, w)
    assert taken == 2


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("one", [0.0, 1.0])
def test_sweeps_in_which_rows_become_idle_are_the_twin_to_the_bit(form, one):
    dense, y = exact_problem()
    dense = dense[:, : 2 - int(one)]  # with the ones no more than two terms to a sum
    X, uppers, width = FORMS[form](dense), np.full(N, 0.3), dense.shape[1]
    table, order, w = table_of(X, y, uppers, one), np.arange(N, dtype=np.int32), np.zeros(width + 1)
    meant = shrinking_sweeps(dense, y, uppers, table[:, DUAL].copy(), 7, 9 * N, one)
    sweeps = kernels.DualSweeps(7, 9 * N, False, one, 1.0)
    active, taken = kernels.dual_sweeps(as_rows(X), table, order, kernels.Active(N), sweeps, w)
    assert (*active, taken) == meant[:4]
    assert active[0] < N
    assert order.tolist() == meant[4]
    np.testing.assert_array_equal(table[:, DUAL], meant[5])
    np.testing.assert_array_equal(w, meant[6])


@pytest.mark.parametrize("penalty", ["l1", "l2"])
@pytest.mark.parametrize("intercept", [False, True])
def test_column_steps_are_their_twin(data, penalty, intercept):
    X, dense, y, shares = data
    columns = (sp.csr_array(X.multiply(y[:, None])).T if sp.issparse(X) else X.T * y.astype(np.int8)).astype(X.dtype)
    w = np.zeros(5 + intercept)
    w[:2] = 0.4, -0.2
    found, margins = w.copy(), y * (dense @ w[:5])
    for sweep in range(3):
        labels = y.astype(np.float64) if intercept else np.zeros(0)
        steps = kernels.ColumnSteps(11 + sweep, penalty == "l1", 0.05, 3.0, 0.7)
        kernels.column_steps(as_rows(columns), labels, shares, steps, margins, found)
        w = scd_sweep(dense, y, shares, w, 11 + sweep, penalty, 0.05, 3.0, 0.7, intercept)
        np.testing.assert_allclose(found, w, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(margins, y * (dense @ w[:5] + (w[5] if intercept else 0.0)), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("time", [0, 40])
@pytest.mark.parametrize("lam", [0.5, 1e-3])
def test_pegasos_steps_are_their_twin(data, intercept, time, lam):
    X, dense, y, shares = data
    w, squares = np.array([0.1, 0.0, -0.3, 0.2, 0.0, 0.25 * intercept]), (dense**2).sum(axis=1)
    meant, b = pegasos_steps(dense, y, N * shares, w[:5], w[5], 3, 100, lam, time, intercept)
    steps = kernels.PegasosSteps(3, 100, lam, time, float(intercept), np.sqrt(0.5 / lam))
    kernels.pegasos_steps(as_rows(X), y.astype(np.int8), N * shares, squares, steps, w)
    np.testing.assert_allclose(w, np.append(meant, b), rtol=1e-10, atol=1e-13)


@given(
    arrays(np.float64, st.integers(1, 30), elements=st.sampled_from([0.0, 0.5, -1.0, 3.0]) | st.floats(-10, 10)),
    st.floats(1e-3, 20),
)
def test_the_projection_onto_the_ball_is_the_nearest_point(w, radius):
    found = onto_ball(w, radius)
    if np.abs(w).sum() <= radius:
        np.testing.assert_array_equal(found, w)
        return
    assert np.abs(found).sum() == pytest.approx(radius, rel=1e-9)
    # w - found is a normal of the ball: as large as anywhere, and of the weight's sign, wherever there is a weight.
    away = w - found
    assert (found * away >= 0.0).all()
    np.testing.assert_allclose(np.abs(away)[found != 0.0], np.abs(away).max(), atol=1e-9)

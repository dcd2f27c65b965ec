import numpy as np
import pytest
from hypothesis import given, strategies as st
from numba import njit
from support.small_sets import FORMS, all_pairs_of

from aucdist.data.block import as_rows
from aucdist.papers.sdcd import kernels

pytestmark = pytest.mark.nojit

N_POS, N_NEG, D = 5, 8, 6


@pytest.fixture(params=FORMS)
def form(request):
    return FORMS[request.param]


def two_classes(seed=0):
    """Return rows of both classes with zeros, an empty row, and a row in both."""
    r = np.random.default_rng(seed)
    X = r.normal(size=(N_POS + N_NEG, D)) * (r.random((N_POS + N_NEG, D)) < 0.6)
    X[1] = 0.0
    X[-1] = X[0]
    X = X.astype(np.float32).astype(np.float64)  # so that float32 rows are the same rows
    return X[:N_POS], X[N_POS:]


def table_of(length=64):
    return np.zeros(length, dtype=kernels.ENTRY)


def draws(n, draw=kernels.draw_any, key=3, first=0, n_minority=N_POS, which=None):
    drawn = np.empty((n, 3), dtype=np.int64)
    draw(key, first, all_pairs_of(n_minority, np.arange(N_NEG) if which is None else which), drawn)
    return drawn


@njit
def square_of(a, i, b, j):
    return kernels.pair_square(a, i, b, j)


def test_distances_do_not_cancel(form):
    # As |x|^2 + |x'|^2 - 2 x.x' they would: 2**46 + 1 - 2**46.
    rows = as_rows(form(2.0**23 + np.array([[0.0, 0.0], [0.0, -1.0], [0.0, 1.0]])))
    assert square_of(rows, 0, rows, 1) == 1.0
    assert square_of(rows, 1, rows, 2) == 4.0


# ---- draws ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("draw", [kernels.draw_any, kernels.draw_in_order])
def test_the_t_th_pair_depends_on_key_and_t(draw):
    which = np.arange(N_NEG) * 10 + 3
    together = draws(100, draw, which=which)
    np.testing.assert_array_equal(together[:, 2], which[together[:, 1]])
    apart = [draws(n, draw, first=first, which=which) for first, n in ((0, 37), (37, 3), (40, 60))]
    np.testing.assert_array_equal(np.concatenate(apart), together)
    assert (draws(100, draw, key=4, which=which) != together).any()


# ---- the table --------------------------------------------------------------------------------------------------------


def as_dict(table):
    return {int(e["number"]): float(e["value"]) for e in table if e["number"] > 0}


@given(
    st.lists(st.tuples(st.integers(1, 2**63 - 1) | st.integers(1, 9), st.sampled_from([0.0, 0.25, 0.5])), max_size=16)
)
def test_table_is_a_dict(entries):
    source = np.array(entries, dtype=kernels.ENTRY)
    expected = {}
    for pair, value in entries:
        if value:
            expected[pair] = expected.get(pair, 0.0) + value
    table = table_of(16)  # may become full: places go round
    used = kernels.add_entries(source, 1.0, table, 0)
    assert as_dict(table) == expected
    assert used == len(expected)
    assert all(table[kernels.find_slot(table, pair)]["number"] == pair for pair in expected)
    other = table_of(32)
    assert kernels.add_entries(table, 0.5, other, 0) == used
    assert kernels.add_entries(table, 0.5, other, used) == used
    assert as_dict(other) == expected


@pytest.mark.parametrize("average", [False, True])
def test_steps_stop_where_the_room_ends_and_go_on(average):
    A, B = two_classes()
    rows, drawn = kernels.PairRows(as_rows(A), as_rows(B), N_NEG, 1), draws(300)
    whole, w = table_of(), np.zeros(D)
    behind = np.zeros(D if average else 0)
    _, _, behind_dual = kernels.dual_steps(rows, drawn, kernels.AscentSteps(0.4, 1.0, 0.0, 0, 60), whole, w, behind)
    table, v, lag, lag_dual = table_of(), np.zeros(D), np.zeros(len(behind)), 0.0
    t = used = stops = 0
    while t < 300:
        steps = kernels.AscentSteps(0.4, 1.0, float(t), used, used + 1)
        taken, used, more = kernels.dual_steps(rows, drawn[t:], steps, table, v, lag)
        t, lag_dual = t + taken, lag_dual + more
        stops += 1
    assert stops > 10
    np.testing.assert_array_equal(v, w)
    np.testing.assert_array_equal(np.sort(table), np.sort(whole))
    np.testing.assert_allclose(lag, behind, rtol=1e-13)
    assert lag_dual == pytest.approx(behind_dual)
    assert min(as_dict(table)) >= 1


# ---- gradient steps ---------------------------------------------------------------------------------------------------


def test_a_gradient_step_that_stands_for_several():
    # From t = 6, one step for 3: w shrinks by 3/9, and the pair counts 3 times in the 9.
    A, B = two_classes()
    total, lam, z = np.arange(6.0), 0.5, A[2] - B[4]
    w = total / (lam * 6)
    alpha = min(max(lam * 9 / 3 * (1.0 - z @ w) / (z @ z), 0.0), 1.0)
    rows = kernels.PairRows(as_rows(A), as_rows(B), N_NEG, 1)
    kernels.gradient_steps(rows, np.array([[2, 4, 4]]), lam, 3.0, 6.0, total)
    np.testing.assert_allclose(total / (lam * 9), (1 - 3 / 9) * w + 3 * alpha * z / (lam * 9), rtol=1e-13)

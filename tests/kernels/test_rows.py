import numpy as np
import pytest
from numba import typeof
from support.code_sets import basis_of
from support.small_sets import ALL_FORMS

from aucdist.data.block import as_rows
from aucdist.kernels.codes import BinRows
from aucdist.kernels.rows import accumulate, project

pytestmark = pytest.mark.nojit


@pytest.fixture(params=ALL_FORMS)
def form(request):
    return ALL_FORMS[request.param]


@pytest.fixture
def X(form):
    r = np.random.default_rng(0)
    values = r.normal(size=(17, 6)) * (r.random((17, 6)) < 0.5)
    # float32 rows are compared with the float64 product of the rounded values
    return values.astype(np.float32).astype(np.float64)


def test_project_is_the_product(X, form):
    w = np.random.default_rng(1).normal(size=6)
    out = np.empty(17)
    project(as_rows(form(X)), w, out)
    np.testing.assert_allclose(out, X @ w, rtol=1e-14, atol=1e-14)


def test_float32_rows_are_summed_in_float64(form):
    X = np.zeros((1, 6))
    X[0] = [2.0**24, 1.0, 1.0, 1.0, 1.0, -(2.0**24)]
    out = np.empty(1)
    project(as_rows(form(X)), np.ones(6), out)
    assert out[0] == 4.0


@pytest.mark.parametrize("n", range(10))
def test_accumulate_adds_the_chosen_rows(X, form, n):
    r = np.random.default_rng(n)
    which, coefs = r.integers(0, 17, n), r.normal(size=n) * (r.random(n) < 0.8)
    out = np.ones(6)
    accumulate(as_rows(form(X)), which, coefs, out)
    np.testing.assert_allclose(out, 1.0 + X[which].T @ coefs, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_sums_in_any_order_still_carry_inf_and_nan(form, bad):
    X = np.ones((2, 6))
    X[1, 2] = bad
    out = np.empty(2)
    project(as_rows(form(X)), np.ones(6), out)
    assert out[0] == 6.0
    np.testing.assert_equal(out[1], bad)


def read_only(rows):
    for field in rows:
        if isinstance(field, np.ndarray):
            field.flags.writeable = False
        elif isinstance(field, tuple):
            read_only(field)
    return rows


def test_rows_that_are_read_only_have_the_type_of_others(X, form):
    """So that kernels are not compiled once more for them; and what the kernels give is the same."""
    rows, locked, w, out = as_rows(form(X)), read_only(as_rows(form(X.copy()))), np.arange(6.0), np.empty((2, 17))
    assert typeof(locked) == typeof(rows)
    for each, to in zip((rows, locked), out, strict=True):
        project(each, w, to)
    np.testing.assert_array_equal(*out)


def test_codes_that_are_read_only_have_the_type_of_others():
    rows = BinRows(np.zeros((3, 1), np.uint8), basis_of([np.eye(2)], [1]))
    assert typeof(read_only(rows._replace(codes=rows.codes.copy()))) == typeof(rows)

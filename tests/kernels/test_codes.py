import numpy as np
import pytest
from hypothesis import example, given, strategies as st
from support.code_sets import random_codes, slow_matrix

from aucdist.data.block import (
    Block,
    code_histogram,
    column_squares,
    elementwise,
    matrix_of,
    n_columns,
    n_rows,
    outer_products,
    row_squares,
    stacked,
)
from aucdist.data.column_statistics import ColumnRanges
from aucdist.errors import InputError
from aucdist.kernels.codes import ROWS_AT_ONCE, edges_of, encode_column, expand, fold_columns, interaction_histograms
from aucdist.kernels.rows import accumulate, project

pytestmark = pytest.mark.nojit


@pytest.fixture(params=range(6))
def rows(request):
    return random_codes(150 if request.param == 0 else 9 + request.param, request.param)


def test_the_matrix_of_the_rows_is_that_of_the_definition(rows):
    np.testing.assert_allclose(matrix_of(rows).toarray(), slow_matrix(rows), rtol=1e-14, atol=1e-14)


def test_project_is_the_product(rows):
    X, w, out = slow_matrix(rows), np.random.default_rng(1).normal(size=n_columns(rows)), np.empty(n_rows(rows))
    project(rows, w, out)
    np.testing.assert_allclose(out, X @ w, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("n_codes", range(1, 14))
def test_project_is_the_product_for_any_number_of_codes(n_codes):
    rows = random_codes(12, n_codes, kinds=["steps"] * n_codes)
    X, w, out = slow_matrix(rows), np.random.default_rng(1).normal(size=n_columns(rows)), np.empty(n_rows(rows))
    project(rows, w, out)
    np.testing.assert_allclose(out, X @ w, rtol=1e-13, atol=1e-13)


def test_accumulate_adds_the_chosen_rows(rows):
    r, X = np.random.default_rng(2), slow_matrix(rows)
    for n in (0, 1, 2, 3, 130):
        which = r.integers(0, len(X), n)
        coefs = r.normal(size=n) * (r.random(n) < 0.8)
        out = np.ones(X.shape[1])
        accumulate(rows, which, coefs, out)
        np.testing.assert_allclose(out, 1.0 + X[which].T @ coefs, rtol=1e-12, atol=1e-13)


def test_fold_is_the_transpose_of_expand(rows):
    r, basis = np.random.default_rng(4), rows.basis
    w, t = r.normal(size=basis.n_features), r.normal(size=len(basis.offsets) - 1)
    out = np.zeros(basis.n_features)
    forth = expand(basis, w) @ t
    fold_columns(basis, t[:, np.newaxis], out[:, np.newaxis])
    assert out @ w == pytest.approx(forth, rel=1e-12)


def test_squares_and_sizes_are_those_of_the_matrix(rows):
    X, coefs = slow_matrix(rows), np.random.default_rng(5).random(n_rows(rows))
    np.testing.assert_allclose(row_squares(rows), (X**2).sum(axis=1), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(column_squares(rows, coefs), coefs @ X**2, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(matrix_of(elementwise(rows, np.abs)).toarray(), np.abs(X), rtol=1e-14, atol=1e-14)


def test_second_moments_are_those_of_the_matrix(rows):
    X, coefs = slow_matrix(rows), np.random.default_rng(6).random(n_rows(rows))
    coefs[0] = 0.0
    np.testing.assert_allclose(outer_products(rows, coefs), (X.T * coefs) @ X, rtol=1e-11, atol=1e-12)
    centred = X - coefs @ X / coefs.sum()
    expected = (centred.T * coefs) @ centred
    np.testing.assert_allclose(outer_products(rows, coefs, centred=True), expected, rtol=1e-10, atol=1e-11)


def test_the_histogram_counts_cells(rows):
    coefs = np.random.default_rng(7).random(n_rows(rows))
    histogram = code_histogram(rows, coefs)
    for j, first in enumerate(rows.basis.starts[:-1]):
        for code in range(rows.basis.starts[j + 1] - first):
            assert histogram[first + code] == pytest.approx(coefs[rows.codes[:, j] == code].sum(), rel=1e-13)


def test_blocks_of_codes_are_taken_and_stacked(rows):
    n, which = n_rows(rows), np.array([3, 1, 1, 0])
    block = Block(rows, np.where(np.arange(n) % 2, 1, -1).astype(np.int8), np.arange(n))
    assert (block.n_samples, block.n_features) == (n, rows.basis.n_features)
    both = stacked([block.take(which), block.take(np.arange(n) == 2)])
    np.testing.assert_array_equal(matrix_of(both.rows).toarray(), matrix_of(rows).toarray()[[3, 1, 1, 0, 2]])
    np.testing.assert_array_equal(both.row_id, [3, 1, 1, 0, 2])
    with pytest.raises(InputError, match=r"encoded as bin numbers.*transform"):
        _ = block.X


@example([-1e308, -9e307, -8e307, 1e308, 1.1e308], [1.5e308, 0.0], np.float64, False)
@given(
    st.lists(st.floats(allow_infinity=True, allow_nan=False), max_size=30, unique=True).map(sorted),
    st.lists(st.floats(), min_size=1, max_size=20),
    st.sampled_from([np.float32, np.float64]),
    st.booleans(),
)
def test_codes_count_the_edges_below(edges, values, dtype, missing):
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.array(values).astype(dtype)
        edges, out = np.array(edges, dtype=np.float64), np.full(len(values), 99, dtype=np.uint8)
        assert encode_column(values, edges_of(edges), int(missing), out) == np.isnan(values).sum()
    for x, code in zip(values, out, strict=True):
        assert code == (0 if np.isnan(x) else missing + (edges < float(x)).sum())


@pytest.mark.parametrize("n", [1, 20, ROWS_AT_ONCE + 60])
def test_pair_histograms_add_every_pair(n):
    """Columns of all codes, of one code, and of a code that most rows have, which is the first, the second or the last."""
    r = np.random.default_rng(8)
    codes, coefs = r.integers(0, 3, (n, 7)).astype(np.uint8), r.normal(size=(2, n))
    codes[:, 1] = 2
    for column, code, share in ((2, 0, 0.1), (4, 1, 0.2), (5, 2, 0.05), (6, 0, 0.4)):
        codes[r.random(n) > share, column] = code
    sums = interaction_histograms(codes, coefs, 3)
    at = 0
    for a in range(7):
        for b in range(a):
            slow = np.zeros((2, 9))
            np.add.at(slow.T, codes[:, a] * 3 + codes[:, b], coefs.T)
            np.testing.assert_allclose(sums[:, at], slow, rtol=1e-11, atol=1e-11)
            at += 1
    assert at == sums.shape[1]


def test_ranges_of_codes_hold_all_values(rows):
    X, ranges = slow_matrix(rows), ColumnRanges.of(rows)
    assert (ranges.low <= X.min(axis=0)).all()
    assert (ranges.high >= X.max(axis=0)).all()
    assert (ranges.low <= 0.0).all()
    assert (ranges.high >= 0.0).all()
    assert ranges.width >= (X != 0.0).sum(axis=1).max()

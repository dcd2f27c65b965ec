"""Columns far from 0: a fit of such columns is the fit of the columns without what all their values have in common."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from support.fits import fitted

import aucdist
from aucdist.data.block import Block, into_blocks
from aucdist.data.column_statistics import ColumnRanges
from aucdist.engine.blocks import LocalBlocks
from aucdist.estimators.conditioning import centre_far_columns, diagnosis

CONSTANTS = [1.7e18, 1e15 / 3]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    return X, np.where(X[:, 0] + rng.normal(size=300) > 1, 1, -1)


def with_column(X, column):
    return np.column_stack([X, np.broadcast_to(column, len(X))])


def classifiers():
    return [
        aucdist.PairwiseHingeClassifier(),
        aucdist.PairwiseHingeClassifier(penalty="l1", lam=1e-2),
        aucdist.PairwiseHingeClassifier().set_params(solver="sdcd", random_state=0, solver__epochs=20),
        aucdist.PairwiseSquareClassifier(),
        aucdist.PairwiseSquareClassifier(solver="svrg", random_state=0, max_passes=40),
        aucdist.PairwiseRampClassifier(),
        aucdist.HingeClassifier(solver="comid", max_passes=50),
        aucdist.HingeClassifier(solver="scd", max_passes=50, random_state=0),
        aucdist.LinkClassifier(link="logit"),
        aucdist.LinkClassifier(link="logit", solver="lipschitz"),
    ]


def name(value):
    return f"{type(value).__name__}-{value.solver}-{getattr(value, 'penalty', None)}"


@pytest.mark.parametrize(("model", "constant"), [(m, CONSTANTS[i % 2]) for i, m in enumerate(classifiers())])
def test_a_constant_column_changes_nothing_and_has_weight_0(rows, model, constant):
    X, y = rows
    alone = fitted(model, X, y)
    expected, coef, intercept = alone.certificate_, alone.coef_[0].copy(), alone.intercept_.copy()
    beside = fitted(model, with_column(X, constant), y)
    assert beside.coef_[0, -1] == 0.0
    if model.solver == "scd":  # which draws its columns
        assert beside.certificate_.primal == pytest.approx(expected.primal, rel=0.05)
        return
    # As good as equal: a column more can order the sums within a row otherwise.
    np.testing.assert_allclose(beside.coef_[0, :-1], coef, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(beside.intercept_, intercept, rtol=1e-6, atol=1e-8)
    assert beside.certificate_.primal == pytest.approx(expected.primal, rel=1e-9)
    assert beside.certificate_.dual == pytest.approx(expected.dual, rel=1e-6, abs=1e-12)
    assert beside.certificate_.status == expected.status


@pytest.mark.parametrize("model", classifiers(), ids=name)
def test_a_shift_of_a_column_is_a_shift_of_its_values(rows, model):
    X, y = rows
    column = np.round(X[:, 1] * 64) / 64  # exact next to 2**40
    near = fitted(model, with_column(X, column), y)
    primal, coef = near.certificate_.primal, near.coef_.copy()
    scores = near.decision_function(with_column(X, column))
    far = fitted(model, with_column(X, column + 2.0**40), y)
    assert far.certificate_.primal == pytest.approx(
        primal, rel=2e-2 if isinstance(model, aucdist.HingeClassifier) else 2e-3
    )
    if near.certificate_.status == "converged" and near.certificate_.relative_gap < 1e-5:
        np.testing.assert_allclose(far.coef_, coef, rtol=1e-2, atol=1e-3)
        np.testing.assert_allclose(far.decision_function(with_column(X, column + 2.0**40)), scores, atol=2e-2)


def test_weights_with_little_regularisation(rows):
    X, y = rows
    weight = np.random.default_rng(1).uniform(0.1, 3, len(y))
    model = aucdist.PairwiseHingeClassifier(lam=1e-6).fit(with_column(X, 1e12), y, sample_weight=weight)
    assert model.certificate_.status == "converged"


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_every_kind_of_blocks_gives_the_same_bits(rows, make):
    X, y = rows
    X = with_column(X, 1.7e18 + 256.0 * np.arange(len(y)))
    parts = into_blocks(Block.of(make(X), y), 3)
    stored = LocalBlocks.load(lambda index: parts[index], 3, stream=True)
    in_memory = fitted(aucdist.PairwiseHingeClassifier(max_passes=20), LocalBlocks(parts))
    streamed = fitted(aucdist.PairwiseHingeClassifier(max_passes=20), stored)
    np.testing.assert_array_equal(in_memory.coef_, streamed.coef_)
    assert in_memory.certificate_ == streamed.certificate_


def test_sparse_rows_stay_sparse(rows):
    X, y = rows
    X = sp.csr_array(np.column_stack([X * (np.abs(X) > 1), np.full(len(y), 1e9)]))
    blocks, _ = centre_far_columns(LocalBlocks([Block.of(X, y)]))
    made = blocks.reduce(_rows)["rows"][0]
    assert sp.issparse(made)
    assert made.nnz == X.nnz
    np.testing.assert_array_equal(made.toarray()[:, :5], X.toarray()[:, :5])
    assert not made.toarray()[:, 5].any()


def test_the_shift_is_exact_in_float32():
    column = (2e8 + 16.0 * np.arange(40)).astype(np.float32)
    block = Block.of(column[:, np.newaxis], np.where(np.arange(40) < 20, 1, -1))
    blocks, _ = centre_far_columns(LocalBlocks([block]))
    made = blocks.reduce(_rows)["rows"][0]
    assert made.dtype == np.float32
    np.testing.assert_array_equal(np.diff(made[:, 0]), np.full(39, 16.0))
    assert abs(made).max() <= 320.0


def test_columns_near_0_are_left_alone(rows):
    X, y = rows
    X = np.column_stack([X, np.ones(len(y)), np.zeros(len(y)), 2000 + 30 * X[:, 0]])
    blocks = LocalBlocks([Block.of(X, y)])
    assert centre_far_columns(blocks) == (blocks, None)


def test_a_penalised_intercept_sees_a_shift(rows):
    X, y = rows
    X = with_column(X, 3e6)
    for model in (
        aucdist.LinkClassifier(link="logit", penalise_intercept=True),
        aucdist.HingeClassifier(fit_intercept=False),
    ):
        primal = fitted(model, X, y).certificate_.primal
        direct = model.certificate_.primal
        assert primal == direct
        assert model.coef_[0, -1] != 0.0


def test_a_path_and_a_warm_start_are_shifted_too(rows):
    X, y = rows
    far = with_column(X, CONSTANTS[1])
    for model in aucdist.lam_path(aucdist.PairwiseHingeClassifier(), far, y, lams=[1e-1, 1e-2]):
        assert model.certificate_.status == "converged"
        assert model.coef_[0, -1] == 0.0
    (shifted,), (near,) = (
        aucdist.lam_path(aucdist.PairwiseSquareClassifier(), rows, y, lams=[1e-2]) for rows in (far, X)
    )
    np.testing.assert_allclose(shifted.coef_[0, :-1], near.coef_[0])
    link = aucdist.LinkClassifier(link="logit", warm_start=True).fit(far, y)
    passes = link.n_passes_
    assert link.fit(far, y).n_passes_ < passes


@pytest.mark.nojit
def test_ranges_merge(rows):
    X, y = rows
    X = X * (np.abs(X) > 0.8)
    for make in (np.asarray, sp.csr_array):
        whole = ColumnRanges.of(Block.of(make(X), y).rows)
        np.testing.assert_array_equal(whole.low, X.min(axis=0))
        np.testing.assert_array_equal(whole.high, X.max(axis=0))
        parts = LocalBlocks(into_blocks(Block.of(make(X), y), 4)).ranges
        np.testing.assert_array_equal(parts.low, whole.low)
        np.testing.assert_array_equal(parts.high, whole.high)
        assert parts.width == whole.width == (5 if make is np.asarray else int((X != 0).sum(axis=1).max()))


def test_rows_of_weight_0_have_no_range(rows):
    X, y = rows
    weight = np.where(np.arange(len(y)) % 2, 1.0, 0.0)
    ranges = ColumnRanges.of(Block.of(X, y).rows, weight)
    np.testing.assert_array_equal(ranges.low, X[1::2].min(axis=0))


def test_unscaled_columns_end_soon_and_are_named():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = np.where(X[:, 0] + rng.normal(size=200) > 1, 1, -1)
    X = np.column_stack([X, 1.7e18 + rng.uniform(0, 1e9, 200)])
    with pytest.warns(ConvergenceWarning, match="column 4 reaches 4.*bring the columns to one scale"):
        model = aucdist.PairwiseHingeClassifier().fit(X, y)
    assert model.certificate_.status == "rounding"
    assert model.n_passes_ <= 100


def test_a_diagnosis_names_columns():
    low, high = np.array([0.0, -1.0, 0.0]), np.array([1.0, 1.0, 1e9])
    assert "column 2 reaches 1e+09" in diagnosis(ColumnRanges(low, high, 3))
    assert "column 'c' reaches" in diagnosis(ColumnRanges(low, high, 3), np.array(["a", "b", "c"]))
    assert diagnosis(ColumnRanges(low[:2], high[:2], 2)) is None


def _rows(block, memory):
    return memory, {"rows": [block.X]}

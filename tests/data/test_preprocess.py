"""Scaling against scikit-learn, and what stands in for missing values: over any blocks, and what is refused."""

import itertools
import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from hypothesis import example, given, strategies as st
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler, normalize
from support.parts import dense

from aucdist.data import column_statistics
from aucdist.data.block import Block, each_of, into_blocks
from aucdist.data.column_statistics import MEDIAN_ERROR, Means, Medians, moments
from aucdist.data.own_files import parse_checked
from aucdist.data.preprocess import Preprocessor, fit_preprocessor
from aucdist.data.shards.reading import read
from aucdist.data.sources import Source
from aucdist.errors import InputError

NAMES = ["a", "b", "c", "k=x", "k=y"]
CATEGORIES = {"k": ("x", "y")}
TWINS = {"standard": StandardScaler, "minmax": MinMaxScaler, "maxabs": MaxAbsScaler}


def make(n=200, seed=0, dtype=np.float64, sparse=False):
    rng = np.random.default_rng(seed)
    X = rng.lognormal(size=(n, 5)) * (rng.random((n, 5)) < 0.6)
    X[:, 3] = rng.random(n) < 0.3
    X[:, 4] = 1 - X[:, 3]
    X = X.astype(dtype)
    return Block.of(sp.csr_matrix(X) if sparse else X, np.where(np.arange(n) % 3, -1, 1))


def fit(blocks, scale="none", log1p=None, names=NAMES, categories=CATEGORIES, **impute):
    return fit_preprocessor(each_of(blocks), names, log1p=log1p, scale=scale, categories=categories, **impute)


def again_from(content, n_features=5):
    fitted = parse_checked(json.dumps(content, allow_nan=False).encode(), Preprocessor, "the preprocessor")
    fitted.check(n_features)
    return fitted


@pytest.mark.parametrize("scale", TWINS)
def test_scaling_agrees_with_scikit_learn(scale):
    train, test = make(), make(seed=1)
    twin = TWINS[scale]().fit(train.X)
    fitted = fit([train], scale)
    for block in (train, test):
        np.testing.assert_allclose(fitted.transform(block).X, twin.transform(block.X), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("sparse", [False, True])
def test_rows_of_length_one(sparse):
    block = make(sparse=sparse)
    X = dense(block)
    X[7] = 0
    block = block.with_X(sp.csr_matrix(X) if sparse else X)
    scaled = dense(fit([block], "unit-row").transform(block))
    np.testing.assert_allclose(scaled, normalize(X), rtol=1e-14)
    assert not scaled[7].any()


@pytest.mark.parametrize("n_blocks", [1, 2, 7])
@pytest.mark.parametrize("scale", ["standard", "minmax", "maxabs"])
def test_statistics_merge_over_blocks(scale, n_blocks):
    whole = make(n=300)
    empty = whole.take(np.array([], dtype=int))
    of_whole, many = (
        fit([whole], scale, "numeric"),
        fit([empty, *into_blocks(whole, n_blocks), empty], scale, "numeric"),
    )
    for a, b in ((of_whole.shift, many.shift), (of_whole.factor, many.factor)):
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-15)


@given(
    st.lists(st.tuples(*[st.floats(-1e6, 1e6)] * 2), min_size=1, max_size=40),
    st.lists(st.integers(0, 40), max_size=3),
    st.booleans(),
)
def test_merged_moments_are_those_of_plain_sums(rows, cuts, sparse):
    X = np.array(rows)
    edges = sorted({0, len(X), *(c for c in cuts if c < len(X))})
    parts = [X[i:j] for i, j in itertools.pairwise(edges)]
    statistics = [moments(Block.of(sp.csr_matrix(p) if sparse else p, np.ones(len(p))).rows) for p in parts]
    total = sum(statistics[1:], statistics[0])
    for j in range(2):
        column = X[:, j].tolist()
        mean = math.fsum(column) / len(column)
        m2 = math.fsum((x - mean) ** 2 for x in column)
        size = max(map(abs, column)) + 1e-300
        assert total.weight == len(column)
        assert abs(total.mean[j] - mean) <= 1e-12 * size
        assert abs(total.scatter[j] - m2) <= 1e-12 * (m2 + len(column) * size * size * 1e-3)
        assert (total.ranges.low[j], total.ranges.high[j]) == (min(column), max(column))


def test_many_rows_far_from_zero_keep_their_variance():
    x = 1e8 + np.arange(10_000) % 2
    fitted = fit([Block.of(x[:, None], np.ones(len(x)))], "standard", names=["a"], categories={})
    np.testing.assert_allclose(fitted.factor, [2.0], rtol=1e-9)


def test_log1p_comes_first_and_leaves_one_hot_features_alone():
    block = make()
    logged = fit([block], log1p="numeric")
    assert logged.log1p == (0, 1, 2)
    X = logged.transform(block).X
    np.testing.assert_array_equal(X[:, :3], np.log1p(block.X[:, :3]))
    np.testing.assert_array_equal(X[:, 3:], block.X[:, 3:])
    assert fit([block], log1p=["c", "a"]).log1p == (0, 2)
    both = fit([block], "standard", ["b"])
    np.testing.assert_allclose(both.shift[1], np.log1p(block.X[:, 1]).mean(), rtol=1e-13)


@pytest.mark.parametrize("scale", ["none", "maxabs", "unit-row"])
def test_sparse_stays_sparse_and_equals_dense(scale):
    sparse, full = make(sparse=True), make()
    for log1p in (None, "numeric", ["b"]):
        of_sparse, other = fit([sparse], scale, log1p), fit([full], scale, log1p)
        scaled = of_sparse.transform(sparse)
        assert sp.issparse(scaled.X)
        np.testing.assert_allclose(dense(scaled), other.transform(full).X, rtol=1e-14)


@pytest.mark.parametrize("scale", ["standard", "minmax"])
def test_centring_sparse_rows_is_refused_but_rows_of_a_dense_fit_are_centred(scale):
    with pytest.raises(InputError, match=f"scale '{scale}' would subtract.*`maxabs` or `unit-row`"):
        fit([make(sparse=True)], scale)
    fitted = fit([make()], scale)
    np.testing.assert_array_equal(fitted.transform(make(sparse=True)).X, fitted.transform(make()).X)


@pytest.mark.parametrize("scale", ["standard", "minmax", "maxabs"])
def test_a_constant_column_gets_the_factor_one(scale):
    X = np.column_stack([np.full(3000, 0.1), np.arange(3000.0), np.zeros(3000)])
    fitted = fit([Block.of(X, np.ones(3000))], scale, names=["a", "b", "c"], categories={})
    assert fitted.factor[2] == 1
    if scale != "maxabs":
        assert fitted.factor[0] == 1
        assert np.abs(fitted.transform(Block.of(X, np.ones(3000))).X[:, 0]).max() < 1e-15


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("scale", ["maxabs", "unit-row"])
def test_float32_stays_float32_but_its_statistics_are_float64(scale, sparse):
    block = make(dtype=np.float32, sparse=sparse)
    fitted = fit([block], scale, "numeric")
    assert fitted.transform(block).rows.values.dtype == np.float32
    assert moments(block.rows).mean.dtype == np.float64
    precise = fit([block.with_X(block.X.astype(np.float64))], scale, "numeric")
    if scale == "maxabs":
        np.testing.assert_allclose(fitted.factor, precise.factor, rtol=1e-6)


def test_the_block_itself_is_not_touched():
    for block in (make(), make(sparse=True)):
        before = dense(block).copy()
        for scale in ("none", "maxabs", "unit-row"):
            fit([block], scale, "numeric").transform(block)
        assert np.array_equal(dense(block), before)


def test_nothing_to_do_returns_the_block():
    block = make()
    assert fit([block]).transform(block) is block


@pytest.mark.parametrize(
    ("scale", "log1p"), [("none", None), ("standard", ["a"]), ("unit-row", "numeric"), ("maxabs", None)]
)
def test_json_gives_back_the_same_bits(scale, log1p):
    block = make()
    fitted = fit([block], scale, log1p)
    again = again_from(fitted.to_json())
    assert np.array_equal(again.transform(block).X, fitted.transform(block).X)
    with pytest.raises(InputError, match="`scale` must be 'none', 'standard'"):
        again_from(fitted.to_json() | {"scale": "z"})


@pytest.mark.parametrize("sparse", [False, True])
def test_log1p_of_minus_one_is_refused_with_feature_and_row(sparse):
    X = np.ones((4, 5))
    X[2, 1] = -1
    block = Block.of(sp.csr_matrix(X) if sparse else X, np.ones(4), row_id=np.array([7, 8, 9, 10]))
    told = r"feature b of row 9 \(counted from 0\) is -1, but log1p needs values above -1"
    with pytest.raises(InputError, match=told):
        fit([block], "maxabs", "numeric")
    with pytest.raises(InputError, match="feature 1 of row 9"):
        Preprocessor((0, 1), "none", None, None).transform(block)
    fit([block], "maxabs", ["a", "c"])


def test_unknown_names_are_refused():
    with pytest.raises(InputError, match="unknown feature in `log1p`: 'z'"):
        fit([make()], log1p=["a", "z"])


@pytest.mark.parametrize("scale", ["standard", "minmax", "maxabs", "unit-row"])
def test_values_beyond_floating_point_are_refused(scale):
    X = np.array([[1.0, -1.7e308], [2.0, 1.7e308]]) if scale != "maxabs" else np.array([[1.0, 5e-324], [2.0, 0.0]])
    block = Block.of(X, np.array([-1, 1]))
    told = r"feature 'b': its values are too large or too small|the length of a row overflows"
    with pytest.raises(InputError, match=told):
        fit([block], scale, names=["a", "b"], categories={}).transform(block)


def test_other_numbers_of_features_and_no_rows_are_refused():
    fitted = fit([make()], "standard")
    with pytest.raises(InputError, match="4 features, but the scaling was fitted on 5"):
        fitted.transform(Block.of(np.ones((2, 4)), np.array([-1, 1])))
    with pytest.raises(InputError, match="no rows"):
        fit([make().take(np.array([], dtype=int))], "standard")


# ---- missing values ---------------------------------------------------------------------------


nan = np.nan
SMALLEST_NORMAL = np.finfo(float).tiny
VALUES = st.one_of(st.just(nan), st.floats(-1e300, 1e300), st.integers(-2048, 2048).map(float))


def of_values(X, sparse=False):
    X = np.asarray(X, dtype=float)
    return Block.of(sp.csr_matrix(X) if sparse else X, np.where(np.arange(len(X)) % 2, -1, 1))


def fit_two(blocks, **options):
    return fit(blocks, names=["x0", "x1"], categories={}, **options)


@given(
    st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=30),
    st.lists(st.integers(0, 30), max_size=3),
    st.booleans(),
    st.integers(1, 5),
)
@example([(nan, 2.2250738585e-313)], [], False, 1)
def test_statistics_merge_and_are_those_of_the_values_that_are_there(rows, cuts, sparse, chunk):
    X = np.array(rows)
    edges = sorted({0, len(X), *(c for c in cuts if c < len(X))})
    parts = [of_values(X[i:j], sparse) for i, j in itertools.pairwise(edges)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column_statistics, "VALUES_AT_ONCE", chunk)
        means, medians = (sum(sums[1:], sums[0]) for sums in ([of(p) for p in parts] for of in (Means.of, Medians.of)))
    for j in range(2):
        there = sorted(X[~np.isnan(X[:, j]), j])
        assert means.count[j] == len(there)
        if not there:
            assert np.isnan(means.fill()[j])
            assert np.isnan(medians.fill()[j])
            continue
        low, high = there[(len(there) - 1) // 2], there[len(there) // 2]
        np.testing.assert_allclose(means.fill()[j], np.mean(there), rtol=1e-12, atol=1e-13 * max(map(abs, there)))
        size = max((abs(low) + abs(high)) / 2, SMALLEST_NORMAL)
        assert abs(medians.fill()[j] - (low / 2 + high / 2)) <= MEDIAN_ERROR * size * (1 + 1e-9)
        if low == int(low) and high == int(high) and max(abs(low), abs(high)) <= 2048:
            assert medians.fill()[j] == (low + high) / 2


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_means_leave_missing_values_out_and_stand_the_largest_floats(form):
    X = np.array([[np.nan, 1e308, 0.0], [2.0, 1.7e308, np.nan], [4.0, 1e308, -3.0]])
    means = Means.of(Block.of(form(X), np.array([1, -1, 1])))
    assert means.count.tolist() == [2, 3, 2]
    assert np.allclose(means.mean, [3.0, 1.2333333333333334e308, -1.5])
    nothing = Means.of(Block.of(form(np.full((2, 1), np.nan)), np.array([1, -1])))
    assert ((nothing + nothing).count.tolist(), (nothing + nothing).mean.tolist()) == ([0], [0.0])


def test_medians_do_not_depend_on_the_order_of_the_blocks():
    rng = np.random.default_rng(0)
    parts = [Medians.of(of_values(rng.standard_t(2, (50, 3)))) for _ in range(4)]
    forwards, other = sum(parts[1:], parts[0]), sum(parts[-2::-1], parts[-1])
    assert np.array_equal(forwards.cell, other.cell)
    assert np.array_equal(forwards.count, other.count)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("impute", "stands_in"), [("mean", [2.0, 0.25]), ("median", [1.5, 0.0])])
def test_missing_values_are_filled_in_before_scaling(sparse, impute, stands_in):
    X = np.array([[1.0, 0.0], [nan, 0.0], [1.0, nan], [4.0, 1.0], [2.0, 0.0]])
    given_block = of_values(X, sparse)
    fitted = fit_two([given_block], impute=impute)
    expected = np.where(np.isnan(X), stands_in, X)
    made = fitted.transform(given_block)
    assert sp.issparse(made.X) == sparse
    assert np.array_equal(dense(made), expected)
    assert np.isnan(dense(given_block)).sum() == 2  # the block itself is not touched
    both = fit_two([given_block], impute=impute, log1p="numeric", scale="maxabs")
    logged = np.log1p(expected)
    np.testing.assert_allclose(dense(both.transform(given_block)), logged / logged.max(axis=0), rtol=1e-14)


def test_rows_of_other_data_may_miss_what_the_training_rows_had():
    fitted = fit_two([of_values([[1.0, 5.0], [3.0, nan]])], impute="mean", scale="standard")
    again = again_from(fitted.to_json(), 2)
    np.testing.assert_allclose(again.transform(of_values([[nan, nan]])).X, 0, atol=1e-15)


def test_a_model_of_before_is_read():
    old = {"log1p": [], "scale": "none", "shift": None, "factor": None}
    assert again_from(old, 2).impute == "refuse"
    with pytest.raises(InputError, match="`impute` must be 'refuse', 'keep'"):
        again_from(old | {"impute": "guess"}, 2)


@pytest.mark.parametrize("sparse", [False, True])
def test_infinite_values_are_refused_with_feature_and_row(sparse):
    lacking = of_values([[1.0, 2.0], [0.0, nan]], sparse)
    said = r"feature x1 of row 1 \(counted from 0\) is missing; give `impute: mean`"
    with pytest.raises(InputError, match=said):
        fit_two([lacking], scale="maxabs")
    with pytest.raises(InputError, match=said.replace("x1", "1")):
        fit_two([of_values([[1.0, 2.0]])]).transform(lacking)


def test_what_cannot_be_filled_in_is_refused():
    with pytest.raises(
        InputError, match=r"feature 'x1': it is missing in every training row.*leave out its column with `drop`"
    ):
        fit_two([of_values([[1.0, nan]]), of_values([[2.0, nan]])], impute="median")


def test_infinite_sums_are_not_mistaken_for_missing_values():
    assert not column_statistics.has_missing(of_values([[1.7e308, 1.7e308], [-1.7e308, -1.7e308]]).rows)


@pytest.mark.parametrize("name", ["f.csv", "f.dat", "f.parquet"])
def test_tables_keep_missing_values_when_asked(tmp_path, name):
    rows = [("1", "p", "0"), ("?", "q", "1"), ("3", "", "1"), ("NaN", "p", "0")]
    path, options = tmp_path / name, {"format": "csv", "label": "y"}
    if name == "f.csv":
        path.write_text("a,k,y\n" + "".join(",".join(row) + "\n" for row in rows) + "NA,p,1\n")
    elif name == "f.dat":
        head = "@relation r\n@attribute a real\n@attribute k {p, q}\n@attribute y {0, 1}\n@data\n"
        path.write_text(head + "".join(",".join(c or "?" for c in row) + "\n" for row in rows) + "<null>,p,1\n")
        options = {"format": "keel"}
    else:
        table = {"a": [1.0, None, 3.0, nan, None], "k": ["p", "q", None, "p", "p"], "y": [0, 1, 1, 0, 1]}
        pq.write_table(pa.table(table), path)
        options = {"format": "parquet", "label": "y"}
    source = Source(source=str(path), positive=1, categorical=["k"], **options)
    with pytest.raises(InputError, match=r"(line|row) \d+, column 'a': .*(missing|null|nan)"):
        read(source)
    data = read(source.model_copy(update={"missing": "keep"}))
    assert data.schema.feature_names == ("a", "k=(missing)", "k=p", "k=q")
    expected = [[1, 0, 1, 0], [nan, 0, 0, 1], [3, 1, 0, 0], [nan, 0, 1, 0], [nan, 0, 1, 0]]
    np.testing.assert_array_equal(data.block.X, expected)
    filled = fit([data.block], names=data.schema.feature_names, categories=data.schema.categories, impute="mean")
    assert filled.transform(data.block).X[:, 0].tolist() == [1, 2, 3, 2, 2]


def test_a_column_without_a_single_value_has_missing_values_of_any_type(tmp_path):
    table = {"x": [1.0, None, 3.0, 4.0], "k": ["a", None, "b", "a"], "d": ["2025-01-01", None] * 2, "y": [0, 1, 0, 1]}
    pq.write_table(pa.table(table), tmp_path / "f.parquet")
    keys = {"format": "parquet", "label": "y", "missing": "keep", "categorical": ["k"], "dates": {"d": ["year"]}}
    schema = read(Source(source=str(tmp_path / "f.parquet"), **keys)).schema
    pq.write_table(pa.table({**dict.fromkeys("xkd", pa.nulls(2)), "y": [0, 1]}), tmp_path / "g.parquet")
    source = Source(source=str(tmp_path / "g.parquet"), **keys)
    np.testing.assert_array_equal(read(source, schema=schema).block.X, [[nan, 1, 0, 0, nan]] * 2)
    np.testing.assert_array_equal(
        read(source.model_copy(update={"categorical": "auto"})).block.X, [[nan, nan, nan]] * 2
    )
    with pytest.raises(InputError, match=r"row 1, column '[xkd]': the value is missing"):
        read(source.model_copy(update={"missing": "refuse"}), schema=schema)


def test_a_category_that_is_missing_where_none_was_is_said_to_be_missing(tmp_path):
    (tmp_path / "f.csv").write_text("k,y\na,0\nb,1\n")
    source = Source(source=str(tmp_path / "f.csv"), format="csv", label="y", missing="keep", categorical=["k"])
    schema = read(source).schema
    (tmp_path / "f.csv").write_text("k,y\na,0\nNA,1\n")
    with pytest.raises(InputError, match="line 3, column 'k': the value is missing, but no training row had"):
        read(source, schema=schema)

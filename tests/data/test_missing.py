"""Missing values: what stands in for them, over any blocks, and where they are refused."""

import itertools
import json

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from hypothesis import strategies as st

from aucdist.data import column_statistics
from aucdist.data.block import Block, each_of
from aucdist.data.column_statistics import MEDIAN_ERROR, ColumnStatistics, Medians
from aucdist.data.own_files import parse_checked
from aucdist.data.preprocess import Preprocessor, fit_preprocessor
from aucdist.data.shards.reading import read
from aucdist.data.sources import Source
from aucdist.errors import InputError

nan = np.nan
SMALLEST_NORMAL = np.finfo(float).tiny
VALUES = st.one_of(st.just(nan), st.floats(-1e300, 1e300), st.integers(-2048, 2048).map(float))


def block(X, sparse=False):
    X = np.asarray(X, dtype=float)
    return Block.of(sp.csr_matrix(X) if sparse else X, np.where(np.arange(len(X)) % 2, -1, 1))


def fit(blocks, **options):
    names = [f"x{j}" for j in range(blocks[0].n_features)]
    return fit_preprocessor(each_of(blocks), names, **{"log1p": None, "scale": "none", "categories": {}} | options)


def again_from(content):
    fitted = parse_checked(json.dumps(content, allow_nan=False).encode(), Preprocessor, "the preprocessor")
    fitted.check(2)
    return fitted


def dense(X):
    return X.toarray() if sp.issparse(X) else X


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
    parts = [block(X[i:j], sparse) for i, j in itertools.pairwise(edges)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column_statistics, "CHUNK", chunk)
        means, medians = (
            sum(found[1:], found[0]) for found in ([of(p) for p in parts] for of in (ColumnStatistics.of, Medians.of))
        )
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


def test_medians_do_not_depend_on_the_order_of_the_blocks():
    rng = np.random.default_rng(0)
    parts = [Medians.of(block(rng.standard_t(2, (50, 3)))) for _ in range(4)]
    one, other = sum(parts[1:], parts[0]), sum(parts[-2::-1], parts[-1])
    assert np.array_equal(one.cell, other.cell)
    assert np.array_equal(one.count, other.count)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("impute", "stands_in"), [("mean", [2.0, 0.25]), ("median", [1.5, 0.0])])
def test_it_is_filled_in_before_all_else(sparse, impute, stands_in):
    X = np.array([[1.0, 0.0], [nan, 0.0], [1.0, nan], [4.0, 1.0], [2.0, 0.0]])
    given_block = block(X, sparse)
    fitted = fit([given_block], impute=impute)
    expected = np.where(np.isnan(X), stands_in, X)
    made = fitted.transform(given_block)
    assert sp.issparse(made.X) == sparse
    assert np.array_equal(dense(made.X), expected)
    assert np.isnan(dense(given_block.X)).sum() == 2  # the block itself is not touched
    both = fit([given_block], impute=impute, log1p="numeric", scale="maxabs")
    logged = np.log1p(expected)
    np.testing.assert_allclose(dense(both.transform(given_block).X), logged / logged.max(axis=0), rtol=1e-14)
    assert fitted.fill_error == (MEDIAN_ERROR if impute == "median" else 0)


def test_rows_of_other_data_may_miss_what_the_training_rows_had():
    fitted = fit([block([[1.0, 5.0], [3.0, nan]])], impute="mean", scale="standard")
    again = again_from(fitted.to_json())
    np.testing.assert_allclose(again.transform(block([[nan, nan]])).X, 0, atol=1e-15)


def test_a_model_of_before_is_read():
    old = {"log1p": [], "scale": "none", "shift": None, "factor": None}
    assert again_from(old).impute == "refuse"
    with pytest.raises(InputError, match="unknown impute 'guess'"):
        again_from(old | {"impute": "guess"})


@pytest.mark.parametrize("sparse", [False, True])
def test_it_is_refused_with_feature_and_row(sparse):
    lacking = block([[1.0, 2.0], [0.0, nan]], sparse)
    said = r"feature x1 of row 1 \(from 0\) is missing; give `impute: mean`"
    with pytest.raises(InputError, match=said):
        fit([lacking], scale="maxabs")
    with pytest.raises(InputError, match=said.replace("x1", "1")):
        fit([block([[1.0, 2.0]])]).transform(lacking)


def test_what_cannot_be_filled_in_is_refused():
    with pytest.raises(InputError, match="feature 'x1': it is missing in every training row"):
        fit([block([[1.0, nan]]), block([[2.0, nan]])], impute="median")


def test_infinite_sums_are_not_mistaken_for_missing_values():
    assert not column_statistics.has_missing(block([[1.7e308, 1.7e308], [-1.7e308, -1.7e308]]).rows)


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
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = {"a": [1.0, None, 3.0, nan, None], "k": ["p", "q", None, "p", "p"], "y": [0, 1, 1, 0, 1]}
        pq.write_table(pa.table(table), path)
        options = {"format": "parquet", "label": "y"}
    source = Source(source=str(path), positive=1, categorical=["k"], **options)
    with pytest.raises(InputError, match=r"(line|row) \d+, column 'a': .*(missing|null|nan)"):
        read(source)
    data = read(source.model_copy(update={"missing": "keep"}))
    assert data.schema.feature_names == ("a", "k=(missing)", "k=p", "k=q")
    assert np.array_equal(
        data.block.X,
        [[1, 0, 1, 0], [nan, 0, 0, 1], [3, 1, 0, 0], [nan, 0, 1, 0], [nan, 0, 1, 0]],
        equal_nan=True,
    )
    filled = fit_preprocessor(
        each_of([data.block]),
        data.schema.feature_names,
        log1p=None,
        scale="none",
        categories=data.schema.categories,
        impute="mean",
    )
    assert filled.transform(data.block).X[:, 0].tolist() == [1, 2, 3, 2, 2]


def test_a_missing_label_is_always_refused(tmp_path):
    (tmp_path / "f.csv").write_text("a,y\n1,0\n2,?\n3,1\n")
    with pytest.raises(InputError, match="line 3, column 'y': the value is missing"):
        read(Source(source=str(tmp_path / "f.csv"), format="csv", label="y", missing="keep"))

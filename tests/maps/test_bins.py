import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp
from support.small_sets import blocks_of

from aucdist import PairwiseHingeClassifier
from aucdist.errors import InputError
from aucdist.maps import BinExpander
from aucdist.maps.base import map_blocks
from aucdist.maps.binning import bins_of

# ---- edges ------------------------------------------------------------------------------------------------------------


@given(
    hnp.arrays(np.float64, st.integers(1, 60), elements=st.integers(-8, 8).map(float) | st.floats(-1e300, 1e300)),
    st.integers(2, 12),
)
def test_bins_part_the_values(values, n_bins):
    bins = bins_of(values, np.ones(len(values)), n_bins)
    assert len(bins.means) == len(bins.edges) + 1 <= n_bins
    assert (np.diff(bins.edges) > 0).all()
    code = np.searchsorted(bins.edges, values, side="left")
    counts = np.bincount(code, minlength=len(bins.means))
    assert counts.min() > 0
    np.testing.assert_allclose(bins.shares, counts / len(values), rtol=1e-12)
    for k, mean in enumerate(bins.means):
        mine = values[code == k]
        assert mine.min() - 1e-9 * abs(mine.min()) <= mean <= mine.max() + 1e-9 * abs(mine.max())
    if len(np.unique(values)) <= n_bins:
        assert len(bins.means) == len(np.unique(values))


def test_bins_are_of_about_equal_weight_and_a_heavy_value_has_its_own():
    r = np.random.default_rng(0)
    shares = bins_of(r.normal(size=10_000), np.ones(10_000), 20).shares
    assert shares.min() > 0.045
    assert shares.max() < 0.055
    zeros = np.concatenate((np.zeros(6000), r.exponential(size=4000)))
    bins = bins_of(zeros, np.ones(10_000), 9)
    assert bins.shares[0] == 0.6
    assert len(bins.shares) == 9
    assert bins.shares[1:].max() < 0.06


def test_a_weight_of_two_is_two_rows():
    r = np.random.default_rng(1)
    values, weight = np.round(r.normal(size=200), 1), r.integers(1, 4, 200)
    bins, other = bins_of(values, weight.astype(float), 7), bins_of(np.repeat(values, weight), np.ones(weight.sum()), 7)
    np.testing.assert_array_equal(bins.edges, other.edges)
    np.testing.assert_allclose(bins.means, other.means, rtol=1e-14)


@pytest.mark.parametrize("low", [0.0, 1e18, -1e-300])
def test_neighbours_among_floats_are_parted(low):
    values = np.array([low, np.nextafter(low, np.inf), np.nextafter(np.nextafter(low, np.inf), np.inf)])
    bins = bins_of(values, np.ones(3), 5)
    np.testing.assert_array_equal(np.searchsorted(bins.edges, values, side="left"), [0, 1, 2])


# ---- the map ----------------------------------------------------------------------------------------------------------


def rows(n=400, seed=0):
    r = np.random.default_rng(seed)
    X = np.column_stack(
        (r.normal(size=n), r.integers(0, 2, n), r.integers(0, 5, n), np.full(n, 3.0), r.exponential(size=n))
    )
    y = np.where(np.abs(X[:, 0]) + 0.3 * r.normal(size=n) > 1.2, 1, -1)
    return X, y


@pytest.mark.parametrize("basis", ["cumulative", "one-hot", "hat"])
@pytest.mark.parametrize("linear", ["keep", "drop"])
def test_columns_are_what_their_names_say(basis, linear):
    X, _ = rows()
    X[::7, 4] = np.nan
    expander = BinExpander(bins=6, basis=basis, linear=linear, strength=2.0).fit(X)
    Z, names = expander.transform(X).toarray(), list(expander.get_feature_names_out(["a", "b", "c", "d", "e"]))
    assert Z.shape[1] == len(names) == len(set(names)) == expander.map_.n_features_out
    assert not any(name.startswith("d") for name in names)  # constant
    of = dict(zip(names, Z.T, strict=True))
    if linear == "keep":
        for name in "abce":
            assert of[name].mean() == pytest.approx(0.0, abs=1e-12)
            assert of[name].std() == pytest.approx(0.25, rel=1e-6) or name == "e"
        assert len(np.unique(of["a"])) == 6
    if basis == "cumulative":
        edge = float(next(name for name in names if name.startswith("a > ")).split()[-1])
        np.testing.assert_array_equal(of[f"a > {edge:.6g}"] > 0, X[:, 0] > edge)
        assert of[f"a > {edge:.6g}"].max() == pytest.approx(2.0 / np.sqrt(5))
    if basis == "one-hot":
        assert of["c in (-inf, 0.5]"].max() == 2.0
        np.testing.assert_array_equal(of["c in (-inf, 0.5]"] > 0, X[:, 2] == 0)
    np.testing.assert_array_equal(of["e missing"] > 0, np.isnan(X[:, 4]))
    # An indicator is one column, whatever the basis, where the linear columns are kept.
    assert sum(name.startswith("b") for name in names) == (1 if linear == "keep" or basis == "cumulative" else 2)


def test_missing_values_have_no_other_function_than_their_own():
    X, _ = rows()
    X[:50, 0] = np.nan
    expander = BinExpander(bins=9, linear="keep").fit(X)
    Z = expander.transform(X).toarray()
    own = [k for k, name in enumerate(expander.get_feature_names_out()) if name.startswith("x0")]
    assert np.count_nonzero(np.abs(Z[0, own]) > 1e-15) == 1


def test_a_missing_value_where_there_was_none_is_refused():
    X, _ = rows()
    expander = BinExpander().fit(X)
    with pytest.raises(InputError, match=r"feature 2 .* missing value"):
        expander.transform(np.where(np.arange(5) == 2, np.nan, X[:1]))


def test_a_missing_value_of_a_table_names_its_feature():
    X, y = rows()
    table = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    model = PairwiseHingeClassifier(features="bins", tol=0.5).fit(table, y)
    with pytest.raises(InputError, match=r"^feature 'c2' has a missing value but had none") as error:
        model.decision_function(table.assign(c2=np.nan))
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)  # as workers send it


def test_sparse_rows_have_the_codes_of_dense_ones():
    X, _ = rows()
    X[np.abs(X) < 0.4] = 0.0
    X[3, 2] = np.nan
    expander = BinExpander(bins=8).fit(X)
    np.testing.assert_array_equal(expander.transform(X).toarray(), expander.transform(sp.csr_matrix(X)).toarray())
    again = BinExpander(bins=8).fit(sp.csr_matrix(X))
    np.testing.assert_array_equal(again.transform(X).toarray(), expander.transform(X).toarray())


def test_the_map_does_not_depend_on_the_blocks_nor_on_rows_of_no_weight():
    X, y = rows()
    of_block = BinExpander(bins=10).fit_blocks(blocks_of(X, y, 1))
    for n_blocks in (2, 5):
        other = BinExpander(bins=10).fit_blocks(blocks_of(X, y, n_blocks))
        for a, b in zip(of_block.bins, other.bins, strict=True):
            np.testing.assert_array_equal(a.edges, b.edges)
            np.testing.assert_array_equal(a.means, b.means)
    weight = (np.arange(len(y)) % 3 > 0).astype(float)
    masked = BinExpander(bins=10).fit_blocks(blocks_of(X, y, 2, weight))
    kept = BinExpander(bins=10).fit_blocks(blocks_of(X[weight > 0], y[weight > 0], 1))
    for a, b in zip(masked.bins, kept.bins, strict=True):
        np.testing.assert_array_equal(a.edges, b.edges)
    seen = map_blocks(blocks_of(X, y, 2, weight), masked)
    assert (seen.n_samples, seen.has_weights, seen.has_codes) == (int(weight.sum()), False, True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bins": 256}, "bins must be an integer from 2 to 255.*; got 256"),
        ({"bins": 1}, "bins must be .*; got 1"),
        ({"basis": "steps"}, "unknown basis 'steps'.*cumulative, one-hot, hat"),
        ({"linear": True}, "unknown linear True"),
        ({"interactions": -1}, "interactions must be .*; got -1"),
        ({"strength": 0.0}, "strength must be a number above 0.*; got 0.0"),
        ({"interactions": 3}, "requires y to be passed"),
    ],
)
def test_what_is_out_of_range_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        BinExpander(**options).fit(rows()[0])


def test_too_many_columns_are_refused():
    with pytest.raises(InputError, match=r"at most 20000 features can be binned.*features: null"):
        BinExpander().fit(sp.csr_matrix((3, 20_001)))


# ---- models -----------------------------------------------------------------------------------------------------------

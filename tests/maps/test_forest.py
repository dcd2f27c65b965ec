"""Trees read from LightGBM's text: the leaves that LightGBM finds, and nothing from a text whose parts do not fit together."""

import re
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st
from support.tables import table_beside

from aucdist.data.block import Block
from aucdist.data.serialization import serialize
from aucdist.engine.blocks import LocalBlocks
from aucdist.errors import InputError
from aucdist.maps import LeafExpander, map_from_bytes
from aucdist.maps.leaves import leaf_counts, read_forest

TEXT = """tree
version=v4
max_feature_idx=1

Tree=0
num_leaves=4
num_cat=0
split_feature=0 1 0
threshold=0.5 -1.25 2
decision_type=2 10 8
left_child=1 -1 -2
right_child=2 -4 -3
is_linear=0
shrinkage=1


Tree=1
num_leaves=1
num_cat=0
leaf_value=0


Tree=2
num_leaves=2
num_cat=0
split_feature=1
threshold=0
decision_type=6
left_child=-1
right_child=-2


end of trees

parameters:
[left_child: 7]
"""


@pytest.mark.nojit
def test_rows_find_their_leaves():
    assert leaf_counts(TEXT) == (4, 1, 2)
    forest = read_forest(TEXT, [0, 2], 2)
    nan = np.nan
    rows = {
        (0.5, -1.25): (0, 0),
        (0.5, -1.0): (3, 0),
        (0.4, nan): (0, 0),  # goes to the left by default; in the last tree it counts as 0, and 0 goes to the left
        (nan, 3.0): (3, 1),  # the first split knows no missing values: 0
        (2.0, 0.0): (1, 0),
        (np.inf, -0.0): (2, 0),
        (-np.inf, 1e-36): (3, 0),
        (0.75, np.nextafter(1e-35, 1.0)): (1, 1),
    }
    for dtype in (np.float64, np.float32):
        X = np.array(list(rows), dtype=dtype)
        expected = list(rows.values())
        if dtype is np.float32:
            X, expected = X[:-1], expected[:-1]
        np.testing.assert_array_equal(forest.codes(X), expected)
        np.testing.assert_array_equal(forest.codes(np.asfortranarray(X)), expected)
        np.testing.assert_array_equal(forest.codes(sp.csr_matrix(X)), expected)
    assert forest.codes(np.zeros((0, 2))).shape == (0, 2)
    assert read_forest(TEXT, [], 2).codes(np.zeros((3, 2))).shape == (3, 0)


@pytest.mark.parametrize("zeros", [False, True], ids=["NaN is missing", "0 is missing"])
def test_the_leaves_are_those_of_lightgbm(zeros):
    lightgbm = pytest.importorskip("lightgbm")
    r = np.random.default_rng(0)
    X = r.normal(size=(900, 6)).round(1)
    y = (X[:, 0] * X[:, 1] > 0.2) | (X[:, 5] > 1)
    X[::5, 1], X[::3, 2], X[1::4, 3] = np.nan, 0.0, np.inf
    options = {"objective": "binary", "verbosity": -1, "num_threads": 1, "zero_as_missing": zeros, "num_leaves": 60}
    booster = lightgbm.train(options | {"min_data_in_leaf": 3}, lightgbm.Dataset(X, y.astype(float)), 25)
    text = booster.model_to_string()
    counts = leaf_counts(text)
    assert max(counts) > 30
    other = np.vstack((X, r.choice([0.0, -0.0, np.nan, np.inf, -np.inf, 1e-36, 0.3], size=(600, 6))))
    for rows in (other, other.astype(np.float32), sp.csr_matrix(other)):
        expected = booster.predict(rows, pred_leaf=True)
        np.testing.assert_array_equal(read_forest(text, range(25), 6).codes(rows), expected)


def test_a_saved_map_scores_without_lightgbm(monkeypatch):
    pytest.importorskip("lightgbm")
    r = np.random.default_rng(0)
    block = Block.of(r.normal(size=(300, 3)), np.where(np.arange(300) % 3, -1, 1))
    fitted = LeafExpander(trees=5).fit_blocks(LocalBlocks([block]))
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    again = map_from_bytes(serialize(fitted))
    np.testing.assert_array_equal(again.map_block(block).rows.codes, fitted.map_block(block).rows.codes)


@pytest.mark.parametrize(("before", "after", "message"), table_beside(__file__))
def test_what_does_not_fit_together_is_refused(before, after, message):
    assert before in TEXT
    with pytest.raises(InputError, match=message):
        read_forest(TEXT.replace(before, after, 1), [0, 2], 2)


def test_trees_that_have_no_split_or_are_not_there_cannot_be_used():
    with pytest.raises(InputError, match="a tree has no numbers for split_feature"):
        read_forest(TEXT, [1], 2)
    with pytest.raises(InputError, match="it uses tree 3, but the model has only 3 trees"):
        read_forest(TEXT, [3], 2)


NUMBERS = [match.span() for match in re.finditer(r"-?[\d.]+", TEXT)]


@given(st.sampled_from(NUMBERS), st.one_of(st.integers(-9, 9).map(str), st.floats().map(str), st.text(max_size=3)))
def test_a_text_with_another_number_is_refused_or_has_leaves_that_exist(place, other):
    text = TEXT[: place[0]] + other + TEXT[place[1] :]
    try:
        counts, forest = leaf_counts(text), read_forest(text, [0, 2], 2)
    except InputError:
        return
    codes = forest.codes(np.array([[0.0, 0.0], [9.0, -9.0], [np.nan, np.nan], [-9.0, 9.0]]))
    assert (codes < [counts[0], counts[2]]).all()

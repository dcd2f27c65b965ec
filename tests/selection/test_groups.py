"""Rows that belong together."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from aucdist.data.block import Block
from aucdist.data.dataset import Schema
from aucdist.errors import InputError
from aucdist.selection.groups import codes, duplicates, names_of_codes, take_column

SCHEMA = Schema(("age", "town=a", "town=b", "size"), "class", ("1",), ("-1",), {"town": ("a", "b")})
X = np.array([[30.0, 1, 0, 5], [40, 0, 1, 6], [50, 0, 0, 7]])


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_a_column_is_taken_out(form):
    block = Block.of(form(X), np.array([1, -1, 1]))
    values, left, schema = take_column(block, SCHEMA, "age")
    assert values.tolist() == [30, 40, 50]
    assert schema.feature_names == ("town=a", "town=b", "size")
    assert np.asarray(sp.csr_matrix(left.X).todense()).tolist() == X[:, 1:].tolist()
    values, left, schema = take_column(block, SCHEMA, "town")
    assert values.tolist() == [0, 1, -1]
    assert (schema.feature_names, schema.categories) == (("age", "size"), {})
    assert left.n_features == 2


def test_a_column_must_be_there_and_not_be_all():
    block = Block.of(X, np.array([1, -1, 1]))
    with pytest.raises(InputError, match=r"unknown column 'twon'. Did you mean 'town'\? Allowed: town, age, size"):
        take_column(block, SCHEMA, "twon")
    with pytest.raises(InputError, match="only column"):
        take_column(Block.of(X[:, :1], np.array([1, -1, 1])), Schema(("age",), "class", ("1",), ("-1",), {}), "age")


def test_codes_are_equal_where_values_are():
    found = codes(np.array([2.5, -1, 2.5, np.nan, np.nan]))
    assert found[0] == found[2] != found[1]
    assert found[3] != found[4]
    towns = Schema(("town=a", "town=b"), "class", ("1",), ("-1",), {"town": ("a", "b")})
    assert names_of_codes(np.array([1.0, -1.0, 0.0, 1.0]), towns, "town") == ["of an unknown category", "a", "b"]
    assert names_of_codes(np.array([2.5, -1.0, 2.5]), towns, "age") == ["-1", "2.5"]


@settings(max_examples=30)
@given(st.integers(1, 40), st.integers(1, 4), st.randoms(), st.booleans())
def test_duplicates_are_rows_with_equal_features(n, d, random, sparse):
    rows = np.array([[random.choice([0.0, -0.0, 1.5, -2.0]) for _ in range(d)] for _ in range(n)])
    y = np.array([random.choice([-1, 1]) for _ in range(n)])
    found = duplicates(Block.of(sp.csr_matrix(rows) if sparse else rows, y))
    assert found.tolist() == duplicates(Block.of(rows, y)).tolist()
    for i in range(n):
        for j in range(n):
            assert (found[i] == found[j]) == bool((rows[i] == rows[j]).all())

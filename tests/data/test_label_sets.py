"""Sets of classes of rows: the table holds what the matrix or the labels say."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from aucdist.data.label_sets import LabelSets
from aucdist.errors import InputError

MATRICES = arrays(np.int8, st.tuples(st.integers(1, 30), st.integers(1, 6)), elements=st.integers(0, 1))


@given(MATRICES, st.booleans())
def test_an_indicator_matrix_comes_back(matrix, sparse):
    sets, codes = LabelSets.of_indicator(sp.csr_matrix(matrix) if sparse else matrix)
    np.testing.assert_array_equal(sets.indicator(codes).toarray(), matrix.astype(bool))
    for k in range(matrix.shape[1]):
        np.testing.assert_array_equal(sets.signs(k)[codes], np.where(matrix[:, k] > 0, 1, -1))
    assert sets.members.shape[0] == len(np.unique(matrix, axis=0))


def test_some_classes_of_a_table():
    sets = LabelSets.of_classes(["a", "b", "c"])
    assert sets.exclusive
    some = sets.only([2, 0])
    assert some.names() == ["c", "a"]
    assert some.exclusive
    assert some.counts(np.array([0, 0, 1, 2])).tolist() == [1, 2]
    assert [some.signs(k).tolist() for k in range(2)] == [[-1, -1, 1], [1, -1, -1]]


def test_what_is_refused():
    with pytest.raises(InputError, match="1001 values"):
        LabelSets.of_classes(np.arange(1001))
    with pytest.raises(InputError, match="not all 0 and 1"):
        LabelSets.of_indicator(np.array([[0, 2]]))
    with pytest.raises(InputError, match="two classes have the name '1'"):
        LabelSets.of_indicator(np.array([[0, 1]]), [1, "1"])

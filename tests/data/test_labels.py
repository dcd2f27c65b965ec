"""One spelling for each class, and the choice of the positive ones."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from aucdist.data.label_sets import LabelSets
from aucdist.data.labels import Labels, choose_positive, class_name, numbers_of_texts
from aucdist.errors import InputError


@pytest.mark.parametrize(
    ("given_as", "name"),
    [("+1", "1"), (" 1.0", "1"), (1, "1"), ("-1", "-1"), ("1e+02", "100"), (2.5, "2.5"), ("2.50", "2.5"), (-0.0, "0"),
     ("1.0E2", "100"), ("1e2", "1e2"), ("0e462097", "0e462097"), ("normal. ", "normal."), ("1_0", "1_0"), ("nan", "nan"),
     ("inf", "inf"), ("", ""), ("9007199254740993", "9007199254740993")],
)  # fmt: skip
def test_a_class_has_one_spelling(given_as, name):
    assert class_name(given_as) == name


@given(st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5) | st.integers())
def test_the_spelling_is_a_fixed_point(value):
    assert class_name(class_name(value)) == class_name(value)


@pytest.mark.parametrize(
    ("counts", "positive", "chosen"),
    [
        ({"-1": 9, "1": 2}, "minority", ("1",)), ({"-1": 2, "1": 9}, "minority", ("-1",)),
        ({"-1": 5, "1": 5}, "minority", ("1",)), ({"9": 5, "10": 5, "a": 6}, "minority", ("10",)),
        ({"a": 1, "b": 2, "c": 3}, ["c", "b"], ("b", "c")), ({"1": 1, "2": 2}, "2.0", ("2",)), ({"1": 1, "2": 2}, 2, ("2",)),
    ],
)  # fmt: skip
def test_positive_classes_are_chosen(counts, positive, chosen):
    taken, rest = choose_positive(counts, positive, "here")
    assert taken == chosen
    assert set(rest) == set(counts) - set(chosen)


@pytest.mark.parametrize(
    ("counts", "positive", "said"),
    [
        ({"1": 5}, "minority", "one class only (1)"),
        ({}, "minority", "here has no rows"),
        ({"1": 5, "2": 3}, 3, "positive class '3' is not in the data. Its classes are: 1, 2"),
        ({"Yes": 5, "No": 3}, "yes", "Its classes are: No, Yes. Did you mean 'Yes'? Set `positive`"),
        ({"1": 5, "2": 3}, ["1", "x"], "positive class 'x'"),
        ({"1": 5, "2": 3}, [1, 2], "every class"),
        ({str(i): 1 for i in range(50)}, "x", "0, 1, 2"),
    ],
)
def test_a_choice_that_leaves_nothing_is_refused(counts, positive, said):
    with pytest.raises(InputError) as caught:
        choose_positive(counts, positive, "here")
    assert said in str(caught.value)
    assert len(str(caught.value)) < 400


def test_signs_follow_the_classes_of_the_training_data():
    codes = np.array([0, 1, 2, 0])
    assert Labels(codes, ("a", "b", "c")).binary_labels(["b", "c"], ["a", "d"], "here").tolist() == [-1, 1, 1, -1]
    assert Labels(codes, ("a", "b", "c", "d")).counts() == {"a": 2, "b": 1, "c": 1}
    with pytest.raises(InputError, match="class 'c' \\(1 row\\) is not among the classes of the training data: a, b"):
        Labels(codes, ("a", "b", "c")).binary_labels(["b"], ["a"], "here")


# ---- sets of classes of rows: the table holds what the matrix or the labels say ---------------


MATRICES = arrays(np.int8, st.tuples(st.integers(1, 30), st.integers(1, 6)), elements=st.integers(0, 1))


@given(MATRICES, st.booleans())
def test_an_indicator_matrix_comes_back(matrix, sparse):
    sets, codes = LabelSets.of_indicator(sp.csr_matrix(matrix) if sparse else matrix)
    np.testing.assert_array_equal(sets.indicator(codes), matrix.astype(bool))
    for k in range(matrix.shape[1]):
        np.testing.assert_array_equal(sets.labels_against_rest(k)[codes], np.where(matrix[:, k] > 0, 1, -1))
    assert sets.members.shape[0] == len(np.unique(matrix, axis=0))


def test_some_classes_of_a_table():
    sets = LabelSets.of_classes(["a", "b", "c"])
    assert sets.exclusive
    some = sets.only([2, 0])
    assert some.names() == ["c", "a"]
    assert some.exclusive
    assert some.counts(np.array([0, 0, 1, 2])).tolist() == [1, 2]
    assert [some.labels_against_rest(k).tolist() for k in range(2)] == [[-1, -1, 1], [1, -1, -1]]


def test_wrong_labels_are_refused():
    with pytest.raises(InputError, match="1001 values"):
        LabelSets.of_classes(np.arange(1001))
    with pytest.raises(InputError, match="not all 0 and 1"):
        LabelSets.of_indicator(np.array([[0, 2]]))
    with pytest.raises(InputError, match="two classes have the name '1'"):
        LabelSets.of_indicator(np.array([[0, 1]]), [1, "1"])


def test_hexadecimal_identifiers_stay_apart():
    assert len(set(numbers_of_texts(["0e462097", "0E830400", "0", "00", "1e1", "10"]).tolist())) == 5

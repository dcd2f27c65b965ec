"""svmlight: what is read, and how a fault is named."""

import io

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.datasets import dump_svmlight_file

from aucdist.data.svmlight import find_fault, parse_svmlight
from aucdist.errors import InputError

FINITE = st.floats(allow_nan=False, allow_infinity=False)


def parse(text, n_features=None, zero_based=False):
    return parse_svmlight(text.encode(), "f.svm", n_features=n_features, zero_based=zero_based)


def plain(text, n_features):
    """The same in plain Python."""
    rows = [line.split("#")[0].split() for line in text.split("\n")]
    X = np.zeros((sum(bool(r) for r in rows), n_features))
    for i, row in enumerate(r for r in rows if r):
        for pair in row[1:]:
            j, value = pair.split(":")
            X[i, int(j) - 1] = float(value)
    return X, np.array([float(r[0]) for r in rows if r])


@settings(deadline=None)
@given(
    st.integers(1, 6).flatmap(
        lambda d: st.tuples(
            arrays(np.float64, st.tuples(st.integers(1, 8), st.just(d)), elements=FINITE), st.booleans()
        )
    )
)
def test_it_reads_back_what_was_written(case):
    X, zero_based = case
    y = np.arange(len(X)) % 2
    X[0, 0] = 1.0  # a file without any feature is refused
    text = "\n".join(
        f"{label} " + " ".join(f"{j + (not zero_based)}:{float(v)!r}" for j, v in enumerate(row) if v)
        for row, label in zip(X, y, strict=True)
    )
    got, labels = parse(text, X.shape[1], zero_based)
    assert np.array_equal(got.toarray(), X)
    assert np.array_equal(labels, y)
    assert np.count_nonzero(got.data) == len(got.data)


def test_it_agrees_with_scikit_learns_writer_and_with_plain_python():
    rng = np.random.default_rng(0)
    X = sp.random(50, 30, density=0.2, random_state=rng, format="csr")
    y = rng.integers(-1, 2, 50)
    out = io.BytesIO()
    dump_svmlight_file(X, y, out, zero_based=False, comment="made for a test")
    got, labels = parse(out.getvalue().decode(), 30)
    expected, expected_labels = plain(out.getvalue().decode(), 30)
    assert np.array_equal(got.toarray(), expected)
    assert np.array_equal(labels, expected_labels)


def test_blank_lines_comments_crlf_and_written_zeros_are_taken_as_they_are():
    text = "# a_1 comment qid:3\r\n+1 1:1 3:0.0 # trailing 9:9\r\n\r\n-1\r\n-1 2:1e-3 \t 4:+2.5\r\n"
    X, y = parse(text)
    assert X.toarray().tolist() == [[1, 0, 0, 0], [0, 0, 0, 0], [0, 1e-3, 0, 2.5]]
    assert X.nnz == 3
    assert y.tolist() == [1, -1, -1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1 1:1\n-1 2:x\n", "f.svm, line 2, column 4: value 'x' is not a number"),
        ("1 1:1\n-1 2\n", "f.svm, line 2, column 4: '2' is not of the form index:value"),
        ("1 1:1\n-1 2:1 1:3\n", "f.svm, line 2, column 8: index 1 after 2: indices must ascend"),
        ("1 1:1 1:2\n", "line 1, column 7: index 1 after 1"),
        ("1 0:1\n", "line 1, column 3: index 0, but the first feature is number 1; give `zero_based: true`"),
        ("1 -3:1\n", "line 1, column 3: '-3:1' is not of the form index:value"),
        ("1 4:1\n", "line 1, column 3: index 4, but there are 3 features"),
        ("one 1:1\n", "line 1, column 1: label 'one' is not a number"),
        ("1:1 2:1\n", "line 1, column 1: label '1:1' is not a number"),
        ("1,2 1:1\n", "line 1, column 1: label '1,2' is not a number"),
        ("1 1:nan\n", "line 1, column 3: value 'nan' is not finite"),
        ("1 1:1\n\n0 2:-inf\n", "line 3, column 3: value '-inf' is not finite"),
        ("1 1:1e400\n", "line 1, column 3: value '1e400' is not finite"),
        ("nan 1:1\n", "line 1, column 1: label 'nan' is not finite"),
        ("1 1:1_0\n", "line 1, column 3: value '1_0' is not a number"),
        ("1 1_0:1\n", "line 1, column 3: '1_0:1' is not of the form"),
        ("1 qid:3 1:2\n", "line 1, column 3: 'qid:3': query ids are not supported"),
        ("1 3000000000:1\n", "line 1, column 3: index 3000000000"),
        ("1 1: 2:1\n", "line 1, column 3: value '' is not a number"),
        ("1 1:1\n2 1:\xff\n", "line 2, column 3: value"),
        ("# nothing\n", "f.svm: no row has a feature"),
        ("1\n-1\n", "f.svm: no row has a feature"),
    ],
)
def test_a_fault_is_named_with_its_line_and_column(text, said):
    with pytest.raises(InputError) as caught:
        parse(text, n_features=3 if "4:1" in text else None)
    assert said in str(caught.value)


def test_zero_based_files_have_a_feature_zero():
    X, _ = parse("1 0:5\n0 2:6\n", zero_based=True)
    assert X.toarray().tolist() == [[5, 0, 0], [0, 0, 6]]
    with pytest.raises(InputError, match="index 3, but there are 3 features"):
        parse("1 0:5\n0 3:6\n", n_features=3, zero_based=True)


@given(st.binary(max_size=60))
@settings(deadline=None, max_examples=300)
def test_any_bytes_are_read_or_refused(data):
    try:
        X, y = parse_svmlight(b"1 1:1\n" + data, "f", n_features=9, zero_based=False)
    except InputError:
        return
    assert X.shape == (len(y), 9)
    assert np.isfinite(X.data).all()
    find_fault(b"1 1:1\n" + data, "f", n_features=9, zero_based=False)  # both ways of reading agree that it is sound

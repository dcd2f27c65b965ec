"""svmlight: what is read, and how a fault is named."""

import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, strategies as st
from hypothesis.extra.numpy import arrays
from support.svmlight_twin import NUMBER, parsed_rows, plain_rows

from aucdist.data.formats.svmlight import parse_svmlight
from aucdist.data.formats.svmlight_kernels import FINE, HARD, NO_NUMBER, number_at
from aucdist.data.labels import LabelWarning
from aucdist.data.shards.reading import read
from aucdist.data.sources import Source
from aucdist.errors import InputError

FINITE = st.floats(allow_nan=False, allow_infinity=False)


def source(zero_based=False):
    return Source(source="f.svm", format="svmlight", zero_based=zero_based)


def parse(text, n_features=None, zero_based=False):
    rows = parse_svmlight(text.encode(), "f.svm", source(zero_based), n_features)
    return rows.X, np.array([float(name) for name in rows.labels.names])[rows.labels.class_numbers]


@given(
    st.integers(1, 6).flatmap(
        lambda d: st.tuples(
            arrays(np.float64, st.tuples(st.integers(1, 8), st.just(d)), elements=FINITE), st.booleans()
        )
    )
)
def test_svmlight_reads_back_what_was_written(case):
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


def test_zero_based_files_have_a_feature_zero():
    X, _ = parse("1 0:5\n0 2:6\n", zero_based=True)
    assert X.toarray().tolist() == [[5, 0, 0], [0, 0, 6]]
    with pytest.raises(InputError, match="index 3, but there are 3 features"):
        parse("1 0:5\n0 3:6\n", n_features=3, zero_based=True)


def read_text(tmp_path, text, **options):
    path = tmp_path / "f.svm"
    path.write_bytes(text.encode())
    return read(Source(source=str(path), format="svmlight", **options))


def test_a_row_is_positive_if_one_of_its_topics_is(tmp_path):
    text = "ccat,c15 1:1\ngcat 1:2\nc15, 2:1\n 2:5 # no topic\nCCAT 1:3\nccat 1:4\n"
    with pytest.warns(LabelWarning, match=r"'CCAT' \(1 row\), 'ccat' \(2 rows\)"):
        data = read_text(tmp_path, text, labels="topics", positive="ccat")
    assert data.block.y.tolist() == [1, -1, -1, -1, -1, 1]
    assert data.schema.positive == ("ccat",)
    assert set(data.schema.negative) == {"(none)", "CCAT", "c15", "gcat"}
    with pytest.warns(LabelWarning):
        both = read_text(tmp_path, text, labels="topics", positive=["c15", "ccat"])
    assert both.block.y.tolist() == [1, -1, 1, -1, -1, 1]
    assert both.block.X.toarray()[:, 0].tolist() == [1, 2, 0, 0, 3, 4]
    numbers = read_text(tmp_path, "1,7 1:1\n+2.0 2:1\n", labels="topics", positive=2)
    assert numbers.block.y.tolist() == [-1, 1]


def test_topics_of_new_rows_need_not_be_known(tmp_path):
    schema = read_text(tmp_path, "a,b 1:1\nc 2:1\n", labels="topics", positive="a").schema
    path = tmp_path / "new.svm"
    path.write_text("z 1:1\na,q 2:1\n")
    data = read(Source(source=str(path), format="svmlight", labels="topics", positive="a"), schema=schema)
    assert data.block.y.tolist() == [-1, 1]


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("a 1:1\nb 1:1\n", {"positive": "z"}, "positive class 'z' is not in the data. Its classes are: a, b"),
        ("a 1:1\na,b 1:1\n", {"positive": ["a", "b"]}, "every class is listed as positive"),
        ("a 1:1\na 2:1\n", {"positive": "a"}, "one class only (a)"),
        ("a, b 1:1\n", {"positive": "a"}, "line 1, column 4: 'b' is not of the form index:value"),
        ("a 1:1\n", {}, "`labels: topics` needs `positive`"),
    ],
)
def test_topics_that_cannot_be_used(tmp_path, text, options, said):
    with pytest.raises(ValueError) as caught:
        read_text(tmp_path, text, labels="topics", **options)
    assert said in str(caught.value)


def test_values_may_be_float32(tmp_path):
    data = read_text(tmp_path, "1 1:0.1 3:1e-50\n-1 2:3\n", dtype="float32")
    assert data.block.rows.values.dtype == np.float32
    assert data.block.X.toarray()[0, 0] == np.float32(0.1)


def test_numbers_of_many_digits_are_exact(tmp_path):
    text = "1 1:0.100000000000000005551115123125782702118158340454101562500001 2:179769313486231570000000000000000000.\n-1 3:1\n"
    X = read_text(tmp_path, text, layout="dense").block.X
    assert X.tolist()[0][:2] == [0.1, 179769313486231570000000000000000000.0]
    halfway = "9007199254740993.00000000000000000000000000000000000001"
    assert read_text(tmp_path, f"1 1:{halfway}\n-1 1:9007199254740993.0\n").block.X[:, 0].tolist() == [
        9007199254740994.0, 9007199254740992.0
    ]  # fmt: skip


def test_many_distinct_labels_and_a_long_line(tmp_path):
    text = "".join(f"{i} 1:{i + 1}\n" for i in range(2000)) + "7 " + " ".join(f"{j}:1" for j in range(1, 50_001)) + "\n"
    data = read_text(tmp_path, text, positive=7)
    assert data.block.X.shape == (2001, 50_000)
    assert int((data.block.y == 1).sum()) == 2


# ---- svmlight labels ---------------------------------------------------------------------------


# ---- numbers and rows out of bytes: bit for bit what plain Python reads, and the same refused


FLOAT = st.floats(allow_nan=False, allow_infinity=False)
DIGITS = st.text("0123456789", max_size=25)
MARKS = st.sampled_from(["", "+", "-"])
DECIMAL = st.builds(
    "{}{}{}{}".format,
    MARKS,
    DIGITS,
    st.one_of(st.just(""), DIGITS.map(".{}".format)),
    st.one_of(st.just(""), st.builds("{}{}{}".format, st.sampled_from("eE"), MARKS, st.integers(0, 400))),
)
PIECES = st.lists(
    st.sampled_from(
        ["1", "-1", "3:2.5", "1:0", "2:1e-3", "7:-4", "0:1", "9:1", "4:x", "5:1_0", "qid:3", "a,b", " ", "\t", "\n", "\r\n",
         "#", ":", "6:1e999", "8:12345678901234567890123"]
    ),
    max_size=25,
)  # fmt: skip


def read_number(text):
    return number_at(np.frombuffer(text.encode() + b"\n", dtype=np.uint8), 0)


def check_as_python(text):
    value, stop, kind = read_number(text)
    assert stop == len(text)
    assert kind in (FINE, HARD)
    if kind == HARD:
        value = pa.array([text]).cast(pa.float64())[0].as_py()
    assert struct.pack("d", value) == struct.pack("d", float(text))


@pytest.mark.nojit
@given(FLOAT)
@example(5e-324)
@example(2.2250738585072011e-308)
@example(1.7976931348623157e308)
@example(-0.0)
def test_every_float_comes_back(x):
    for text in (repr(x), f"{x:.17g}", f"{x:.16e}", f"{x:.30e}"):
        check_as_python(text)


@pytest.mark.nojit
@given(DECIMAL)
@example("9007199254740993")
@example("9007199254740993e0")
@example("9007199254740992.99999999999999999999999999")
@example("1e400")
@example("1e-400")
@example("0e999999999999")
@example("000000000000000000000000.0000000000000000000000012")
@example("2.4703282292062327208e-324")
@example("17976931348623158079e289")
def test_every_decimal_is_what_python_makes_of_it(text):
    if NUMBER.fullmatch(text.encode()):
        check_as_python(text)
    elif not NUMBER.match(text.encode()):
        assert read_number(text)[2] == NO_NUMBER


@pytest.mark.nojit
@given(st.integers(2**52, 2**53 - 1), st.integers(-60, 60), st.integers(-1, 1))
def test_halfway_between_two_floats(mantissa, power, off):
    """The exact decimals of numbers in the middle between two floats, and of their neighbours in the last digit."""
    twice = 2 * mantissa + 1
    text = str(twice << power) if power >= 0 else f"{twice * 5**-power + off}e{power}"
    check_as_python(text)


@pytest.mark.nojit
@given(st.integers(-(2**53), 2**53), st.integers(-22, 22))
def test_few_digits_and_a_power_of_ten_that_is_a_float_are_never_hard(digits, power):
    text = f"{digits}e{power}"
    check_as_python(text)
    assert read_number(text)[2] == FINE


def test_the_first_number_that_is_too_large_is_named_among_numbers_of_many_digits():
    text = "1 1:0.12345678901234567\n1 2:1e-400 3:1e23\n1 1:12345678901234567890e290\n1 1:9007199254740993\n"
    with pytest.raises(InputError, match="line 3, column 3: value '12345678901234567890e290' is not finite"):
        parse(text)
    kept = parse(text.replace("e290", "").replace("90\n", "90.5\n").replace("993\n", "993.0\n"))[0]
    assert kept.nnz == 4  # 1e-400 is 0
    assert kept[1, 2] == 1e23


@pytest.mark.nojit
@pytest.mark.parametrize("text", ["", "+", "-", ".", "e5", "1e", "1e+", "1.e", ".e3", "x", "inf", "nan", "-inf", ":"])
def test_texts_that_are_no_numbers_are_noticed(text):
    assert read_number(text)[2] == NO_NUMBER


@pytest.mark.nojit
@given(PIECES, st.sampled_from(["", " "]), st.booleans(), st.booleans())
def test_rows_are_those_of_plain_python(pieces, glue, topics, ignore):
    text = glue.join(pieces) + "\n"
    parsed, expected = parsed_rows(text, topics, ignore), plain_rows(text, topics, ignore)
    if expected is None:
        assert isinstance(parsed[0], int)
    else:
        assert parsed == expected

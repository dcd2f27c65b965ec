"""Numbers and rows out of bytes: bit for bit what plain Python reads, and the same refused."""

import itertools
import math
import re
import struct

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aucdist.data.formats import svmlight_kernels as svmlight
from aucdist.data.formats.svmlight_kernels import FINE, FIVES, HARD, LOWEST, NO_NUMBER, number_at

pytestmark = pytest.mark.nojit

FLOAT = st.floats(allow_nan=False, allow_infinity=False)
DIGITS = st.text("0123456789", max_size=25)
NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
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


def same_as_python(text):
    value, stop, kind = read_number(text)
    assert stop == len(text)
    assert kind in (FINE, HARD)
    expected = float(text)
    if kind == FINE:
        assert struct.pack("d", value) == struct.pack("d", expected)
    return kind


@given(FLOAT)
@example(5e-324)
@example(2.2250738585072011e-308)
@example(1.7976931348623157e308)
@example(-0.0)
def test_every_float_comes_back(x):
    for text in (repr(x), f"{x:.17g}", f"{x:.16e}", f"{x:.30e}"):
        same_as_python(text)
    assert same_as_python(repr(x)) == FINE


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
        same_as_python(text)
    elif not NUMBER.match(text.encode()):
        assert read_number(text)[2] == NO_NUMBER


@given(st.integers(2**52, 2**53 - 1), st.integers(-60, 60), st.integers(-1, 1))
def test_halfway_between_two_floats(mantissa, power, off):
    """The exact decimals of numbers in the middle between two floats, and of their neighbours in the last digit."""
    twice = 2 * mantissa + 1
    text = str(twice << power) if power >= 0 else f"{twice * 5**-power + off}e{power}"
    same_as_python(text)


@given(st.integers(0, 2**64 - 1), st.integers(-345, 310))
def test_nineteen_digits_and_any_power_of_ten_are_never_hard(digits, power):
    assert same_as_python(f"{digits % 10**19}e{power}") == FINE


@pytest.mark.parametrize("q", [-342, -200, -28, -27, -1, 0, 1, 55, 56, 308])
def test_the_table_of_powers_of_five(q):
    high, low = (int(part) for part in FIVES[q - LOWEST])
    bits, power = (high << 64) + low, 5 ** abs(q)
    assert 2**127 <= bits < 2**128
    if q >= 0:
        assert bits == (power << 128) >> power.bit_length()
    else:
        assert abs(bits * power - 2 ** (power.bit_length() + 127)) <= power


@pytest.mark.parametrize("text", ["", "+", "-", ".", "e5", "1e", "1e+", "1.e", ".e3", "x", "inf", "nan", "-inf", ":"])
def test_what_is_no_number(text):
    assert read_number(text)[2] == NO_NUMBER


@pytest.mark.parametrize(("text", "stop"), [("1:2", 1), ("1.5.2", 3), ("1e5e", 3), ("0x10", 1), ("1_0", 1), ("1 ", 1)])
def test_it_stops_where_the_number_ends(text, stop):
    assert read_number(text)[1:] == (stop, FINE)


def parse(text, topics=False, ignore=False, first=1, last=9, dtype=np.float64):
    data = np.frombuffer(text.encode(), dtype=np.uint8)
    n_rows, n_values = svmlight.count_at_most(data)
    spans, offsets = np.zeros((n_rows, 2), dtype=np.int64), np.zeros(n_rows + 1, dtype=np.int64)
    indices, values, hard = np.zeros(n_values, np.int32), np.zeros(n_values, dtype), np.zeros((len(data), 3), np.int64)
    n, _, n_hard, width, fault, place = svmlight.parse_rows(
        data, first, last, float(np.finfo(dtype).max), topics, ignore, np.zeros(0, np.int64), spans, offsets, indices, values,
        hard,
    )  # fmt: skip
    for at, start, stop in hard[:n_hard]:
        values[at] = float(text.encode()[start:stop])
    if fault:
        return fault, place
    labels = [text.encode()[a:b].decode() for a, b in spans[:n]]
    rows = [(indices[a:b].tolist(), values[a:b].tolist()) for a, b in itertools.pairwise(offsets[: n + 1])]
    return labels, rows, width


def plain(text, topics, ignore):
    """The same in plain Python; None for whatever is wrong."""
    labels, rows, width = [], [], 0
    for line in text.split("\n"):
        tokens = line.partition("#")[0].split()
        if not tokens:
            continue
        has_label = not (topics and ":" in tokens[0])
        labels.append(tokens.pop(0) if has_label else "")
        before, row = 0, ([], [])
        for token in tokens:
            if ignore and token.startswith("qid:"):
                continue
            index, colon, value = token.partition(":")
            if not colon or not index.isdigit() or not NUMBER.fullmatch(value.encode()):
                return None
            if not before < int(index) <= 9 or math.isinf(float(value)):
                return None
            before = int(index)
            if float(value):
                row[0].append(before - 1)
                row[1].append(float(value))
        width = max(width, before)
        rows.append(row)
    return labels, rows, width


@given(PIECES, st.sampled_from(["", " "]), st.booleans(), st.booleans())
def test_rows_are_those_of_plain_python(pieces, glue, topics, ignore):
    text = glue.join(pieces) + "\n"
    found, expected = parse(text, topics, ignore), plain(text, topics, ignore)
    if expected is None:
        assert isinstance(found[0], int)
    else:
        assert found == expected


@pytest.mark.parametrize(
    ("text", "fault", "place"),
    [
        ("1 2\n", svmlight.NO_PAIR, 2),
        ("1 -2:1\n", svmlight.NO_PAIR, 2),
        ("1 0:1\n", svmlight.TOO_LOW, 2),
        ("1 10:1\n", svmlight.TOO_HIGH, 2),
        ("1 99999999999999999999999999:1\n", svmlight.TOO_HIGH, 2),
        ("1 1:1\n1 2:1 2:1\n", svmlight.NOT_ASCENDING, 12),
        ("1 1:\n", svmlight.BAD_VALUE, 2),
        ("1 1:2:3\n", svmlight.BAD_VALUE, 2),
        ("1 1:-1e309\n", svmlight.TOO_LARGE, 2),
    ],
)
def test_a_fault_is_told_with_its_place(text, fault, place):
    assert parse(text) == (fault, place)


def test_float32_has_its_own_limit():
    assert parse("1 1:1e39\n", dtype=np.float32) == (svmlight.TOO_LARGE, 2)
    assert parse("1 1:0.1\n", dtype=np.float32)[1] == [([0], [float(np.float32(0.1))])]


def test_integers_are_exact_up_to_two_to_the_53():
    for sign in ("", "-"):
        value, _, fault = read_number(f"{sign}9007199254740992")
        assert (abs(value), fault) == (2.0**53, FINE)
        assert read_number(f"{sign}9007199254740993")[2] == HARD

"""Cells out of bytes: against the csv module, in any spelling, and the errors for wrong ones."""

import csv
import io
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aucdist.kernels import cells

pytestmark = pytest.mark.nojit

FLOAT = st.floats(allow_nan=False, allow_infinity=False)
TEXT = st.text(st.sampled_from('ab "\n,;\t#é'), max_size=6)
SEPARATORS = [",", ";", "\t"]
TOKENS = cells.token_table(cells.MISSING_NUMBER)


def parse(data, n_columns, texts=(), separator=",", keep_missing=False, skipped=(), dtype=np.float64):
    """Return the numbers, the raw texts and the fault."""
    data = data if isinstance(data, bytes) else data.encode()
    array = np.frombuffer(data, dtype=np.uint8)
    numbers = [j for j in range(n_columns) if j not in texts and j not in skipped]
    slots = np.full(n_columns, cells.SKIPPED, dtype=np.int64)
    slots[numbers] = np.arange(len(numbers))
    slots[list(texts)] = cells.FIRST_TEXT - np.arange(len(texts))
    n_lines = data.count(b"\n")
    X, spans = np.zeros((n_lines, len(numbers)), dtype), np.zeros((len(texts), n_lines, 2), np.int64)
    hard = np.zeros((len(data), 4), np.int64)
    byte = cells.BLANKS if separator == "blanks" else ord(separator)
    n, n_hard, *fault = cells.parse_cells(
        array, byte, slots, float(np.finfo(dtype).max), keep_missing, TOKENS, X, spans, hard
    )
    for row, slot, start, stop in hard[:n_hard]:
        X[row, slot] = float(data[start:stop])
    return X[:n], [[data[a:b].decode() for a, b in of_column[:n]] for of_column in spans], fault


def unquoted(raw):
    return raw[1:-1].replace('""', '"') if raw.startswith('"') else raw


@settings(deadline=None)
@given(
    st.lists(st.tuples(FLOAT, TEXT, FLOAT), min_size=1, max_size=8),
    st.sampled_from(SEPARATORS),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_it_reads_what_the_csv_module_writes(rows, separator, quoting, end):
    out = io.StringIO()
    csv.writer(out, delimiter=separator, quoting=quoting, lineterminator=end).writerows(rows)
    X, (texts,), fault = parse(out.getvalue(), 3, texts=[1], separator=separator)
    assert fault[0] == cells.SOUND
    assert X.tolist() == [[a, c] for a, _, c in rows]
    assert [unquoted(raw).strip() for raw in texts] == [text.strip() for _, text, _ in rows]


@pytest.mark.parametrize(
    ("text", "separator"),
    [
        ("1,a,2\n3,b,4\n", ","),
        (' 1 , a ,2\r\n\n  \n3,"b",\t4 \n', ","),
        ('"1",a," 2 "\n+3.0e0,b,4\n', ","),
        ("1;a;2\n3;b;4\n", ";"),
        ("1\ta\t2\n3\tb \t 4\n", "\t"),
        ("  1 a\t2 \n3   b 4\r\n", "blanks"),
        ('1 "a" 2\n3 b "4"\n', "blanks"),
    ],
)
def test_one_table_in_many_spellings(text, separator):
    X, (texts,), fault = parse(text, 3, texts=[1], separator=separator)
    assert fault[0] == cells.SOUND
    assert X.tolist() == [[1, 2], [3, 4]]
    assert [unquoted(raw) for raw in texts] == ["a", "b"]


def test_columns_that_nobody_asks_for_are_passed_over():
    X, texts, fault = parse('1,"x\ny",2\n3,junk,4\n', 3, skipped=[1])
    assert fault[0] == cells.SOUND
    assert X.tolist() == [[1, 2], [3, 4]]
    assert texts == []


@pytest.mark.parametrize(
    "cell", ["", " ", "?", "na", "NA", "nan", "NaN", "null", "NULL", "<null>", "<NULL>", '""', '"?"']
)
def test_missing_numbers_become_nan_where_they_may(cell):
    text = f"1,{cell},2\n"
    X, _, fault = parse(text, 3, keep_missing=True)
    assert fault[0] == cells.SOUND
    assert math.isnan(X[0, 1])
    assert parse(text, 3)[2][0] == cells.BAD_NUMBER


def test_tokens_of_any_length_are_found():
    texts = ("", "-", "\N{SNOWMAN WITHOUT SNOW}" * 100, "K. A.", "\N{BABY}" * 100)
    tokens = cells.token_table(texts)
    for text in (*texts, "--", "\N{BABY}" * 99):
        cell = np.frombuffer(f"{text},".encode(), dtype=np.uint8)
        assert cells._is_missing(cell, 0, len(cell) - 1, tokens) == (text in texts)


@pytest.mark.parametrize("cell", ["n", "naa", "nul", "nill", "<nan>", "??", "-", "inf", "1e400", "x", "1 2", "1_0"])
def test_other_words_are_not_missing(cell):
    assert parse(f"1,{cell},2\n", 3, keep_missing=True)[2][0] == cells.BAD_NUMBER


@pytest.mark.parametrize(
    ("text", "fault", "shown", "column"),
    [
        ("1,2\n3\n", cells.OTHER_LENGTH, None, 1),
        ("1,2\n3,4,5,6\n", cells.OTHER_LENGTH, None, 4),
        ("1,2\n3,x,5\n", cells.OTHER_LENGTH, None, 3),
        ("1,2\n3,ab \n", cells.BAD_NUMBER, "ab", 1),
        ('1,2\n"3\n', cells.OPEN_QUOTE, '"3', 0),
        ('1,2\n"3"4,5\n', cells.STRAY, '"3"', 0),
    ],
)
def test_a_fault_is_told_with_its_place(text, fault, shown, column):
    found, start, stop, at = parse(text, 2)[2]
    assert (found, at) == (fault, column)
    assert text.count("\n", 0, start) == 1
    if shown is not None:
        assert text[start:stop] == shown


def test_texts_are_found_by_looking_at_every_cell():
    flags = np.zeros(4, dtype=bool)
    data = np.frombuffer(b"1,2,3,x\n4,?,y,6\n7,8,9,1e5\n", dtype=np.uint8)
    cells.find_texts(data, ord(","), False, TOKENS, flags)
    assert flags.tolist() == [False, True, True, True]
    flags[:] = False
    cells.find_texts(data, ord(","), True, TOKENS, flags)
    assert flags.tolist() == [False, False, True, True]


@settings(deadline=None, max_examples=200)
@given(st.text(st.sampled_from('12.x",; \t\n?'), max_size=30), st.sampled_from([*SEPARATORS, "blanks"]), st.booleans())
def test_it_ends_whatever_it_reads(text, separator, keep_missing):
    text += "\n"
    X, _, fault = parse(text, 2, texts=[1], separator=separator, keep_missing=keep_missing)
    assert fault[0] != cells.SOUND or keep_missing or np.isfinite(X).all()
    assert 0 <= fault[1] <= len(text)
    cells.find_texts(
        np.frombuffer(text.encode(), dtype=np.uint8),
        cells.BLANKS if separator == "blanks" else ord(separator), keep_missing, TOKENS, np.zeros(2, dtype=bool),
    )  # fmt: skip

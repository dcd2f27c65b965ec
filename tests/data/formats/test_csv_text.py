"""Cells out of bytes: against the csv module, by pyarrow as in plain Python, and the errors for wrong ones."""

import csv
import io

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aucdist.data.formats import csv_and_keel
from aucdist.data.formats.csv_and_keel import CsvText, parse_cells
from aucdist.data.formats.table_form import TableForm
from aucdist.data.formats.text import BLANKS
from aucdist.errors import InputError

FLOAT = st.floats(allow_nan=False, allow_infinity=False)
TEXT = st.text(st.sampled_from('ab "\n,;\t#é'), max_size=6)


def text_of(data, names, **keys):
    data = data if isinstance(data, bytes) else data.encode()
    return CsvText(data, "f.csv", list(names), **keys)


@given(
    st.lists(st.tuples(FLOAT, TEXT, FLOAT), min_size=1, max_size=8),
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(['"', "'"]),
)
def test_it_reads_what_the_csv_module_writes(rows, separator, quoting, end, quote):
    out = io.StringIO()
    csv.writer(out, delimiter=separator, quoting=quoting, lineterminator=end, quotechar=quote).writerows(rows)
    text = text_of(out.getvalue(), "abc", separator=separator, quote=quote)
    for table in (text.read("abc", "ac", ()), text._read_in_python("abc")):
        assert [float(cell) for cell in table["a"].to_pylist()] == [a for a, _, _ in rows]
        assert [float(cell) for cell in table["c"].to_pylist()] == [c for _, _, c in rows]
        assert [cell.strip() for cell in table["b"].to_pylist()] == [cell.strip() for _, cell, _ in rows]


@pytest.mark.parametrize(
    ("data", "separator"),
    [
        ("1,a,2\n3,b,4\n", ","),
        (' 1 , a ,2\r\n\n  \n3,"b",\t4 \n', ","),
        ('"1",a," 2 "\n+3.0e0,b,4\n', ","),
        ('1, "a" , 2\n3,b,4\n', ","),
        ("1;a;2\n3;b;4\n", ";"),
        ("1\ta\t2\n3\tb \t 4\n", "\t"),
        ("  1 a\t2 \n3   b 4\r\n", BLANKS),
        ('1 "a" 2\n3 b "4"\n', BLANKS),
    ],
)
def test_one_table_in_many_spellings(data, separator):
    table = parse_cells(text_of(data, "abc", separator=separator), TableForm("b", ("a", "c")))
    assert table.X.tolist() == [[1, 2], [3, 4]]
    assert [table.labels.names[code] for code in table.labels.codes] == ["a", "b"]


@given(
    st.text(st.sampled_from('12.x",; \t\n?\r(-'), max_size=30), st.sampled_from([",", ";", "\t", BLANKS]), st.booleans()
)
@example("1,x\r2,y", ",", False)
@example('1,"x"y"', ",", False)
@example('"",""\n"""",""', ",", False)
def test_pyarrow_and_plain_python_read_the_same(data, separator, keep):
    text = text_of(data + "\n", "ab", separator=separator)
    form = TableForm("b", ("a",), missing=keep)

    def outcome(text):
        try:
            table = parse_cells(text, form)
        except InputError as e:
            return str(e)
        return table.X.tobytes(), table.labels.codes.tolist(), table.labels.names, table.survey.missing

    by_hand = text_of(data + "\n", "ab", separator=separator)
    by_hand.__dict__["_arrow_agrees"] = False
    assert outcome(text) == outcome(by_hand)


def test_a_number_is_that_of_python_whichever_way_it_takes(monkeypatch):
    numbers = [
        "0.1",
        "1e-320",
        "4.35",
        "123456789012345678e-5",
        "9007199254740992",
        "1e300",
        "-0",
        ".5",
        "5.",
        "+3",
        "(8)",
    ]
    expected = [-8.0 if cell == "(8)" else float(cell) for cell in numbers]
    data = "".join(f"{cell},y\n" for cell in numbers)
    assert parse_cells(text_of(data, "ab"), TableForm("b", ("a",))).X[:, 0].tolist() == expected
    monkeypatch.setattr(csv_and_keel, "HEAD", 4)  # the head is tried first, and holds none of the odd ones
    assert parse_cells(text_of(data, "ab"), TableForm("b", ("a",))).X[:, 0].tolist() == expected
    rounded = parse_cells(text_of("0.1,y\n", "ab"), TableForm("b", ("a",), dtype="float32")).X
    assert rounded.dtype == np.float32
    assert rounded[0, 0] == np.float32(0.1)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("1,2\n3\n", "f.csv, line 2: the row has 1 cells, but there are 2 columns"),
        ("1,2\n3,4,5,6\n", "line 2: the row has 4 cells"),
        ('"1\n\n",2\n3,4,5\n', "line 4: the row has 3 cells"),
        ('1,2\n"3\n', "line 2, column 'a': the quotes are not closed"),
        (
            '1,2\n3,"4"5\n',
            "line 2, column 'b': there is something between the closing quote and the next cell: '\"4\"'",
        ),
        ('"1",2\n"\n3",4\n  \n5,x\n\n"6"7,8\n', "line 7, column 'a'"),
        ("1,2\n\n9007199254740993,4\n", "line 3, column 'a': '9007199254740993' is an integer beyond 2**53"),
    ],
)
def test_a_fault_is_told_with_its_place(data, said):
    with pytest.raises(InputError) as caught:
        parse_cells(text_of(data, "ab"), TableForm("b", ("a",)))
    assert said in str(caught.value)

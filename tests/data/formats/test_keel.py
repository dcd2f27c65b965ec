"""KEEL files: header, nominal attributes, missing values."""

import pytest

from aucdist.data.shards.reading import read
from aucdist.data.sources import Source
from aucdist.errors import InputError

HEAD = """@relation small
@attribute Sex {M, F, I}
@attribute Size real [0.0, 1.0]
@attribute 'Row no' integer [1, 8]
@attribute Code{2, 10}
@attribute Class {positive, negative}
"""
ROWS = "M, 0.5, 3, 10, negative  \nF, 1E-2, 4,2,positive\n"
ALL = ["Sex=F", "Sex=I", "Sex=M", "Size", "Row no", "Code=10", "Code=2"]


@pytest.fixture
def load(tmp_path):
    def load(text, **options):
        path = tmp_path / "f.dat"
        path.write_bytes(text.encode())
        return read(Source(source=str(path), format="keel", **{"positive": "positive"} | options))

    return load


@pytest.mark.parametrize(
    "head",
    [
        HEAD + "@inputs Sex, Size, Row no, Code\n@outputs Class\n@data\n",
        HEAD + "@output Class\n@data\n",
        HEAD + "@data\n",
        (HEAD + "@DATA\n").replace("@attribute", "@ATTRIBUTE\t").replace("\n", "\r\n"),
    ],
)
def test_nominal_attributes_become_one_feature_for_each_declared_value(load, head):
    data = load(head + ROWS)
    assert list(data.schema.feature_names) == ALL
    assert data.block.X.tolist() == [[0, 0, 1, 0.5, 3, 1, 0], [1, 0, 0, 0.01, 4, 0, 1]]
    assert data.block.y.tolist() == [-1, 1]
    assert data.schema.label == "Class"


def test_inputs_choose_the_features_and_their_order(load):
    data = load(HEAD + "@inputs Code, Size\n@outputs Class\n@data\n" + ROWS)
    assert data.schema.feature_names == ("Code=10", "Code=2", "Size")


def test_more_columns_may_be_categorical_and_another_may_be_the_label(load):
    data = load(HEAD + "@data\n" + ROWS, categorical=["Row no"])
    assert data.schema.categories["Row no"] == ("3", "4")
    other = load(HEAD + "@outputs Class\n@data\n" + ROWS, label="Sex", positive="F")
    assert other.schema.feature_names == ("Size", "Row no", "Code=10", "Code=2")
    assert other.schema.positive == ("F",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEAD + "@data\nM, <null>, 3, 10, negative\n", "f.dat, line 8, column 'Size': the value is missing ('<null>')"),
        (HEAD + "@data\nM, 1, 3, ?, negative\n", "line 8, column 'Code': the value is missing ('?')"),
        (HEAD + "@data\nX, 1, 3, 2, negative\n", "line 8, column 'Sex': unknown category 'X'; known: F, I, M"),
        (HEAD + "@data\n" + ROWS + "M, 1, 3, 2, maybe\n", "line 10, column 'Class': unknown category 'maybe'"),
        (HEAD + "@data\nM, 1, 3, 2\n", "line 8: the row has 4 cells, but there are 5 columns"),
        (HEAD + "@data\n\n", "has no rows"),
        (HEAD, "no @data line; is this a KEEL file?"),
        ("@relation x\n@data\n1\n", "no @attribute line"),
        ("1,2,3\n", "line 1: '1,2,3' is not a line of a KEEL header"),
        ("@attribute a relational\n@data\n", "line 1: 'a relational' is not `name {value, ...}`"),
        ("@attribute a real\n@attribute a real\n@data\n", "line 2: two columns are called 'a'"),
        (HEAD + "@inputs Sex, Weight\n@data\n" + ROWS, "unknown column in `@inputs` 'Weight'"),
        (HEAD + "@outputs Sex, Class\n@data\n" + ROWS, "several outputs (Sex, Class)"),
    ],
)
def test_a_fault_is_named(load, text, said):
    with pytest.raises(InputError) as caught:
        load(text)
    assert said in str(caught.value)

"""What a source may say, and the errors for what it may not."""

import pytest

from aucdist.data.sources import Source, parse_source
from aucdist.errors import InputError


def test_defaults_survive_being_written_out():
    source = Source(source="a.csv", format="csv", label=-1, positive=["x", 1, 2.5], classes={"x": 3, 1: 4})
    assert Source.model_validate(source.model_dump(mode="json")) == source


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (
            {"source": "a", "format": "csv", "label": 0, "possitive": 1},
            "unknown key 'possitive'. Did you mean 'positive'?",
        ),
        ({"source": "a", "format": "arff"}, "`format`"),
        ({"format": "csv", "label": 0}, "`source`"),
        ({"source": "a", "format": "csv"}, "needs `label`"),
        ({"source": "a", "format": "parquet"}, "needs `label`"),
        ({"source": "a", "format": "svmlight", "label": 0}, "`label` does not apply to format 'svmlight'"),
        ({"source": "a", "format": "csv", "label": 0, "n_features": 3}, "`n_features` does not apply"),
        ({"source": "a", "format": "csv", "label": 0, "zero_based": True}, "`zero_based` does not apply"),
        ({"source": "a", "format": "keel", "header": False}, "`header` does not apply"),
        ({"source": "a", "format": "parquet", "label": 0, "separator": "tab"}, "`separator` does not apply"),
        ({"source": "a", "format": "embedded", "categorical": "auto"}, "`categorical` does not apply"),
        ({"source": "a", "format": "csv", "label": 0, "columns": ["a"]}, "give `header: false`"),
        ({"source": ["a", "b"], "format": "svmlight", "sha256": "0" * 64}, "checksum of one file"),
        ({"source": "a", "format": "svmlight", "sha256": "abc"}, "`sha256`"),
        ({"source": [], "format": "svmlight"}, "may not be empty"),
        ({"source": "a", "format": "svmlight", "positive": []}, "may not be empty"),
        ({"source": "a", "format": "svmlight", "layout": "coo"}, "`layout`"),
        (["a"], "keys with values"),
    ],
)
def test_a_wrong_entry_is_refused_with_its_place(entry, said):
    with pytest.raises(InputError) as caught:
        parse_source(entry, "sets.yaml, mine")
    assert said in str(caught.value)
    assert str(caught.value).startswith("sets.yaml, mine: ")

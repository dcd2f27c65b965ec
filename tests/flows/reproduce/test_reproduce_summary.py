from flows.reproduce.summary import summary_entries


def test_numbers_share_a_line_and_strings_have_their_own():
    summary = {
        "compared": 3, "within_1": 2, "below": [{"dataset": "d"}],
        "rank": {"a": 1.5, "b": 2.0}, "claims": {"It is faster.": "Here: supported."},
    }  # fmt: skip
    assert list(summary_entries(summary, "table2")) == [
        ("table2", "compared 3, within_1 2"),
        ("table2 rank", "a 1.5, b 2"),
        ("table2 claims It is faster", "Here: supported."),
    ]
    assert list(summary_entries({})) == []

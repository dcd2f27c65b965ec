"""The page of a comparison."""

import pytest
from test_page import Tags, scores, text_of

from aucdist.report.comparison import p_text, render_comparison_page, sentences

NAMES = ("auc", "average_precision", "g_mean", "balanced_accuracy")


def pair(first, second, value, p, low=None, high=None):
    return {
        "first": first, "second": second, "value": value, "low": low, "high": high, "p_value": p, "p_holm": p,
        "level": 0.95, "method": "delong",
    }  # fmt: skip


@pytest.fixture
def result():
    def run(name, warnings=()):
        about = {"name": name, "run": "r", "estimator": "E", "solver": "s", "seconds": 2.0, "warnings": [*warnings]}
        return about | {key: {"value": 0.9, "interval": [0.85, 0.95]} for key in NAMES}

    return {
        "run": "c", "n_pos": 20, "n_neg": 80, "runs": [run("a", ["few rows"]), run("<b>", ["few rows"])],
        "differences": {
            "auc": [pair("a", "<b>", -0.02, 0.01, -0.03, -0.01)],
            "folds": [pair("a", "<b>", 0.1, 0.2)],
        },
    }  # fmt: skip


def test_the_page_begins_with_the_comparison_of_the_auc(result):
    page = render_comparison_page(result, [("a", scores(20, 80)), ("<b>", scores(20, 80, seed=1))])
    text = text_of(page)
    assert Tags(page).open == []
    assert "<b>" not in page
    assert "<b> has a higher test AUC than a (0.02, 95 % interval 0.01 to 0.03, p = 0.01)." in text
    assert "a: few rows <b>: few rows" in text
    assert "no bound to no bound" in text
    shown = ("Comparison of 2 runs", "20 positive and 80 negative", "0.8500 to 0.9500", "corrected resampled t-test")
    assert all(expected in text for expected in shown)


def test_an_insignificant_difference_is_not_claimed(result):
    result["differences"]["auc"] = [pair("a", "b", 0.001, 0.4, -0.001, 0.003), pair("a", "c", 0.0, 1.0, -0.1, 0.1)]
    unsure, same = sentences(result)
    assert unsure.startswith(
        "a does not differ significantly in test AUC from b (0.001, 95 % interval -0.001 to 0.003, p = 0.4)"
    )
    assert same == "a and c have the same test AUC."
    assert p_text(1e-9) == "below 0.0001"

"""Ranks with ties, strict wins, and the pages that state them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_reproduce_gmean import small

from flows.reproduce.gmean import GMeans
from flows.reproduce.gmean_cells import Claim, GMeanResult, claim_verdict
from flows.reproduce.kind import TaskKey
from flows.reproduce.probabilities import Probabilities
from flows.reproduce.rankings import BestCounts, best_counts, is_ahead, mean_ranks, ranks

LOGIT = {"model": {"estimator": "LinkClassifier", "solver": "newton", "link": "logit"}}


def test_equal_values_share_their_mean_rank():
    values = {"a": 0.9, "b": 0.9, "c": 0.5, "d": 0.7}
    assert ranks(values, higher_is_better=True) == {"a": 1.5, "b": 1.5, "c": 4.0, "d": 3.0}
    assert ranks(values, higher_is_better=False) == {"a": 3.5, "b": 3.5, "c": 1.0, "d": 2.0}


def test_rounding_is_no_lead():
    values = {"a": 0.1 + 0.2, "b": 0.3}
    assert values["a"] != values["b"]
    assert ranks(values, higher_is_better=True) == {"a": 1.5, "b": 1.5}
    assert not is_ahead(values["a"], values["b"], higher_is_better=True)
    assert is_ahead(0.31, 0.3, higher_is_better=True)
    assert not is_ahead(0.31, 0.3, higher_is_better=False)


def test_only_a_system_alone_ahead_is_the_best():
    by_dataset = [{"a": 1.0, "b": 1.0, "c": 0.5}, {"a": 1.0, "b": 0.9, "c": 0.5}, {"a": 0.1, "b": 0.2, "c": 0.2}]
    assert best_counts(by_dataset, higher_is_better=True) == {
        "a": BestCounts(1, 1), "b": BestCounts(0, 2), "c": BestCounts(0, 1),
    }  # fmt: skip
    assert mean_ranks(by_dataset, higher_is_better=True) == pytest.approx({"a": 5.5 / 3, "b": 5 / 3, "c": 7.5 / 3})
    assert best_counts([], higher_is_better=True) == mean_ranks([], higher_is_better=True) == {}


@given(st.lists(st.lists(st.sampled_from([0.1, 0.2, 0.3]), min_size=4, max_size=4), min_size=1, max_size=6))
def test_the_order_of_the_systems_does_not_matter(table):
    by_dataset = [dict(zip("abcd", row, strict=True)) for row in table]
    backwards = [dict(reversed(values.items())) for values in by_dataset]
    assert best_counts(by_dataset, higher_is_better=False) == best_counts(backwards, higher_is_better=False)
    found = mean_ranks(by_dataset, higher_is_better=False)
    assert found == pytest.approx(mean_ranks(backwards, higher_is_better=False))
    assert np.mean(list(found.values())) == pytest.approx(2.5)


def test_a_tie_is_no_win_on_the_page_of_probabilities():
    kind = Probabilities.model_validate({
        "kind": "probabilities", "title": "ties", "tables": {"auc": "Table 4"},
        "claim": {"system": "first", "texts": {"auc": "first has most of the best results"}},
        "systems": {name: LOGIT for name in ("first", "second", "third")},
        "datasets": {name: {"name": "digits"} for name in ("one", "two", "three")},
        "protocol": {"repeats": 2},
    })  # fmt: skip
    auc = {"one": (1.0, 1.0, 0.5), "two": (0.9, 0.9, 0.9), "three": (0.9, 0.7, 0.8)}
    results = {
        TaskKey(dataset, system, repeat): {"auc": value}
        for dataset, values in auc.items()
        for system, value in zip(("first", "second", "third"), values, strict=True)
        for repeat in range(2)
    }
    summary = kind.summary(results)["auc"]
    assert summary["best_alone"] == {"first": 1, "second": 0, "third": 0}
    assert summary["best_shared"] == {"first": 2, "second": 2, "third": 1}
    assert summary["mean_rank"] == pytest.approx({"first": 4.5 / 3, "second": 6.5 / 3, "third": 7 / 3})
    (section,) = kind.page_sections("ties", results)
    text = " ".join(section.paragraphs)
    assert (
        "Here first is the best on 1 of 3, and shares the best value on 2 data sets, so it is not the best on" in text
    )
    assert "number 1 of 3 by mean rank" in text
    solver_table = dict(section.rows)
    assert [cell.highlight for cell in solver_table["two"]] == ["better"] * 3
    assert [cell.highlight for cell in solver_table["three"]] == ["better", "", ""]


def g_means(values: dict[str, tuple[float, float]], claims=()) -> tuple[GMeans, dict]:
    """Return the kind and made-up results of the systems `ours` and `plain`."""
    config = small()["experiments"]["one"] | {
        "datasets": {name: {"name": "digits"} for name in values}, "targets": [], "claims": list(claims),
    }  # fmt: skip
    results = {
        TaskKey(dataset, system, 0, fold): {"train": value, "test": value, "seconds": 1.0, "chosen": 0}
        for dataset, both in values.items()
        for system, value in zip(("ours", "plain"), both, strict=True)
        for fold in range(2)
    }
    return GMeans.model_validate(config), results


def test_a_tie_is_no_win_on_the_page_of_g_means():
    kind, results = g_means({"one": (0.5, 0.5), "two": (0.6, 0.5), "three": (0.4, 0.5)})
    found = kind.summary(results)["in_this_run"]
    assert (found["best_alone"], found["best_shared"]) == ({"ours": 1, "plain": 1}, {"ours": 1, "plain": 1})
    assert found["mean_rank"] == {"ours": 1.5, "plain": 1.5}
    text = " ".join(kind.page_sections("one", results)[0].paragraphs)
    assert "ours is the best on 1 of 3, and shares the best value on 1; plain is the best on 1 of 3" in text


def test_the_page_of_g_means_has_a_verdict_on_each_claim():
    claim = {"text": "Ours leads.", "system": "ours", "than": ["plain"], "measures": ["test"], "holds_on": "most"}
    kind, results = g_means({"one": (0.5, 0.5), "two": (0.6, 0.5)}, [claim])
    text = "Ours leads. Here: not supported; higher test G-mean than plain on 1 of 2 data sets."
    assert text in kind.page_sections("one", results)[0].paragraphs
    assert kind.summary(results)["claims"]["Ours leads."] in text


def cells(*values: tuple[float | None, float | None], measure="test", paper=False) -> list[GMeanResult]:
    name = "paper" if paper else "here"
    return [
        GMeanResult(str(i), system, measure, **{name: value})
        for i, both in enumerate(values)
        for system, value in zip(("a", "b"), both, strict=True)
    ]


@pytest.mark.parametrize(
    ("values", "holds_on", "verdict"),
    [
        ([(2.0, 1.0), (2.0, 1.0)], "all", "supported; higher test G-mean than b on 2 of 2 data sets."),
        ([(2.0, 1.0), (2.0, 2.0)], "all", "not supported; higher test G-mean than b on 1 of 2 data sets."),
        ([(2.0, 1.0), (2.0, 2.0)], "most", "not supported; higher"),
        ([(2.0, 1.0), (2.0, 1.0), (0.0, 1.0)], "most", "supported; higher test G-mean than b on 2 of 3 data sets."),
        ([(2.0, 1.0), (None, 1.0)], "all", "supported; higher test G-mean than b on 1 of 1 data sets."),
        ([(None, None)], "all", "not run."),
    ],
)
def test_verdicts(values, holds_on, verdict):
    claim = Claim(text="", system="a", than=["b"], measures=["test"], holds_on=holds_on)
    assert claim_verdict(claim, cells(*values)).startswith(f"Here: {verdict}")


def test_less_time_is_better_and_a_claim_may_hold_in_part():
    claim = Claim(text="", system="a", than=["b"], measures=["test", "seconds"], holds_on="all")
    found = claim_verdict(claim, [*cells((2.0, 1.0)), *cells((2.0, 1.0), measure="seconds")])
    assert (
        found
        == "Here: supported in part; higher test G-mean than b on 1 of 1 data sets, less time than b on 0 of 1 data sets."
    )


def test_the_verdict_states_the_printed_figures_too():
    claim = Claim(text="", system="a", than=["b"], measures=["test"], holds_on="all")
    found = claim_verdict(claim, cells((2.0, 1.0), (1.0, 1.0), paper=True))
    assert found == "In print: higher test G-mean than b on 1 of 2 data sets. Here: not run."

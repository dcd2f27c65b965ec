"""Ranks with ties, strict wins, and the counts that the pages print."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_reproduce_gmean import small

from flows.reproduce.gev import Probabilities
from flows.reproduce.gmean import Claim, GMeans, count_leads
from flows.reproduce.kind import TaskKey, n_ahead, rankings, ranks

LOGIT = {"model": {"estimator": "LinkClassifier", "solver": "newton", "link": "logit"}}


def test_equal_values_share_their_mean_rank():
    values = pd.DataFrame([{"a": 0.9, "b": 0.9, "c": 0.5, "d": 0.7}])
    assert ranks(values, higher_is_better=True).loc[0].to_dict() == {"a": 1.5, "b": 1.5, "c": 4.0, "d": 3.0}
    assert ranks(values, higher_is_better=False).loc[0].to_dict() == {"a": 3.5, "b": 3.5, "c": 1.0, "d": 2.0}


def test_rounding_is_no_lead():
    values = pd.DataFrame([{"a": 0.1 + 0.2, "b": 0.3, "c": 0.31}])
    assert values["a"][0] != values["b"][0]
    assert ranks(values[["a", "b"]], higher_is_better=True).loc[0].tolist() == [1.5, 1.5]
    assert n_ahead(values, "a", ["b"], higher_is_better=True) == 0
    assert n_ahead(values, "c", ["b", "a"], higher_is_better=True) == 1
    assert n_ahead(values, "c", ["b"], higher_is_better=False) == 0


def test_only_a_system_alone_ahead_is_the_best():
    by_dataset = pd.DataFrame([(1.0, 1.0, 0.5), (1.0, 0.9, 0.5), (0.1, 0.2, 0.2)], columns=list("abc"))
    found = rankings(by_dataset, higher_is_better=True)
    assert found["best_alone"] == {"a": 1, "b": 0, "c": 0}
    assert found["best_shared"] == {"a": 1, "b": 2, "c": 1}
    assert found["mean_rank"] == pytest.approx({"a": 5.5 / 3, "b": 5 / 3, "c": 7.5 / 3})
    nothing = {"data_sets": 0, "mean_rank": {}, "best_alone": {}, "best_shared": {}}
    assert rankings(by_dataset[:0], higher_is_better=True) == nothing


@given(st.lists(st.lists(st.sampled_from([0.1, 0.2, 0.3]), min_size=4, max_size=4), min_size=1, max_size=6))
def test_the_order_of_the_systems_does_not_matter(table):
    values = pd.DataFrame(table, columns=list("abcd"))
    found, again = (rankings(part, higher_is_better=False) for part in (values, values[list("dcba")]))
    assert (found["best_alone"], found["best_shared"]) == (again["best_alone"], again["best_shared"])
    assert found["mean_rank"] == pytest.approx(again["mean_rank"])
    assert np.mean(list(found["mean_rank"].values())) == pytest.approx(2.5)


def test_a_tie_is_no_win_among_probabilities():
    kind = Probabilities.model_validate({
        "kind": "probabilities", "title": "ties", "tables": {"auc": "Table 4"},
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
    report = kind.report(results)
    summary = report.counts["auc"]
    assert summary["data_sets"] == 3
    assert summary["best_alone"] == {"first": 1, "second": 0, "third": 0}
    assert summary["best_shared"] == {"first": 2, "second": 2, "third": 1}
    assert summary["mean_rank"] == pytest.approx({"first": 4.5 / 3, "second": 6.5 / 3, "third": 7 / 3})
    (table,) = report.tables
    highlights = {row: [highlight for _, highlight in cells] for row, cells in table.body()}
    assert highlights["two"] == ["better"] * 3
    assert highlights["three"] == ["better", "", ""]


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


def test_a_tie_is_no_win_among_g_means():
    kind, results = g_means({"one": (0.5, 0.5), "two": (0.6, 0.5), "three": (0.4, 0.5)})
    found = kind.report(results).counts["in_this_run"]
    assert (found["best_alone"], found["best_shared"]) == ({"ours": 1, "plain": 1}, {"ours": 1, "plain": 1})
    assert found["mean_rank"] == {"ours": 1.5, "plain": 1.5}


def test_a_claim_is_counted_in_the_summary():
    claim = {"text": "Ours leads.", "system": "ours", "than": ["plain"], "measures": ["test"]}
    kind, results = g_means({"one": (0.5, 0.5), "two": (0.6, 0.5)}, [claim])
    assert kind.report(results).counts["claims"] == {"Ours leads.": {"test, plain": "1 of 2 here"}}


def cells(*values: tuple[float | None, float | None], measure="test", paper=False) -> pd.DataFrame:
    rows = [
        {"dataset": str(i), "system": system, "measure": measure, "paper" if paper else "here": value}
        for i, both in enumerate(values)
        for system, value in zip(("a", "b"), both, strict=True)
    ]
    return pd.DataFrame(rows, columns=["dataset", "system", "measure", "paper", "here"])


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([(2.0, 1.0), (2.0, 1.0)], "2 of 2 here"),
        ([(2.0, 1.0), (2.0, 2.0)], "1 of 2 here"),
        ([(2.0, 1.0), (None, 1.0)], "1 of 1 here"),
        ([(None, None)], "not run here"),
    ],
)
def test_leads_are_strict(values, text):
    claim = Claim(text="", system="a", than=["b"], measures=["test"])
    assert count_leads(claim, cells(*values)) == {"test, b": text}


def test_less_time_is_better():
    claim = Claim(text="", system="a", than=["b"], measures=["test", "seconds"])
    found = count_leads(claim, pd.concat([cells((2.0, 1.0)), cells((2.0, 1.0), measure="seconds")]))
    assert found == {"test, b": "1 of 1 here", "seconds, b": "0 of 1 here"}


def test_the_printed_figures_are_counted_too():
    claim = Claim(text="", system="a", than=["b"], measures=["test"])
    both = cells((2.0, 1.0), (1.0, 1.0), paper=True)
    both.loc[:1, "here"] = [2.0, 1.0]
    found = count_leads(claim, both)
    assert found == {"test, b": "1 of 1 here, 1 of 2 in print"}

"""The kind `scores` by G-means: its figures step by step, its page, and paper 004; ranks, strict wins and counts."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from support.runs import QUIET, page_of
from support.small_paper import load_paper, reproduce, rows, run, write
from support.tables import table_beside

from aucdist import MarginMeanClassifier
from aucdist.data.shards.reading import read
from aucdist.data.sources import find_source
from aucdist.engine.blocks import LocalBlocks, block_seed
from aucdist.errors import InputError
from aucdist.metrics import g_mean_score
from aucdist.sampling import DistanceUnderSampler
from aucdist.selection import fold_numbers, shuffled_order
from flows.reproduce.kind import TaskKey, n_ahead, rankings, ranks
from flows.reproduce.scores import MetricClaim, Scores, count_leads, reaches

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
PRINTED = """dataset,system,measure,value
eight,ours,test,50
eight,ours,train,99.9
eight,ours,seconds,1000
eight,plain,test,100
"""
LAM1 = [0.1, 1.0]


def small(**changes: Any) -> dict[str, Any]:
    return {"paper": "x", "title": "A paper", "experiments": {"one": table_beside(__file__) | changes}, "quick": {}}


def fitted(block, train, lam1, fold):
    """Return the fit of a fold, computed step by step."""
    sampler = DistanceUnderSampler(random_state=block_seed(0, 0, 100 + fold) % 2**31)
    model = MarginMeanClassifier().set_params(
        solver="svrg", solver__n_outer=3, lam1=lam1, sampler=sampler, random_state=block_seed(0, 0, fold) % 2**31
    )
    return model.fit(LocalBlocks([block.take(train)]))  # the sample depends on the rows' ids


def scored(model, block, rows):
    sign = np.where(model.decision_function(block.X[rows]) + model.margin_threshold_ > 0, 1, -1)
    return 100 * g_mean_score(block.y[rows], sign)


def test_a_cell_is_the_mean_over_the_folds_at_what_the_first_part_chose(tmp_path: Path) -> None:
    result = run(write(tmp_path, small(), PRINTED))
    block = read(find_source("digits")).block
    number = fold_numbers(block.row_id, block.y, 2, block_seed(0, 0, 0))
    order = shuffled_order(block.row_id, block_seed(0, 0, 1))
    trains = [order[number[order] != fold] for fold in range(2)]
    first = block.take(trains[0])
    inner = fold_numbers(first.row_id, first.y, 2, block_seed(0, 0, 2))
    means = [
        np.mean([scored(fitted(first, inner != k, lam1, 0), first, inner == k) for k in range(2)]) for lam1 in LAM1
    ]
    chosen = LAM1[int(np.argmax(means))]
    models = [fitted(block, train, chosen, fold) for fold, train in enumerate(trains)]
    test = np.mean([scored(model, block, number == fold) for fold, model in enumerate(models)])
    train = np.mean([scored(model, block, part) for model, part in zip(models, trains, strict=True)])
    cells = {(c["dataset"], c["system"], c["measure"]): c for c in rows(result["run"], "one")}
    ours = cells["eight", "ours", "test"]
    assert float(ours["mean"]) == pytest.approx(test, rel=1e-4)
    assert float(cells["eight", "ours", "train"]["mean"]) == pytest.approx(train, rel=1e-4)
    assert (ours["chosen"], ours["paper"]) == (f"lam1={chosen:g}", "50")
    assert float(ours["difference"]) == pytest.approx(test - 50, rel=1e-4)
    assert 0 < float(cells["eight", "ours", "seconds"]["mean"]) < 1000
    assert cells["absent", "ours", "test"]["mean"] == ""
    counts = result["tables"]["one"]["test"]
    assert counts["at_least_print_minus_tolerance"] == {"tolerance": 0, "ours": "1 of 1", "plain": "0 of 1"}
    assert counts["against_print"]["compared"] == 2
    for text in (
        "Table 3, training", "Table 7, seconds", "Figures 1 and 2", "not run here",
        "test at least print minus tolerance plain: 0 of 1", "test in this run best alone: ",
    ):  # fmt: skip
        assert text in page_of(result), text
    assert page_of(result).count("<svg") == 2


@pytest.mark.parametrize(
    ("measure", "paper", "here", "expected"),
    [
        ("test", 50.0, 50.0, True), ("test", 50.0, 49.9, False), ("seconds", 1.0, 0.9, True), ("seconds", 1.0, 1.1, False),
        ("test", np.nan, 50.0, False), ("test", 50.0, np.nan, False),
    ],
)  # fmt: skip
def test_which_cells_reach_the_paper(measure, paper, here, expected):
    cells = pd.DataFrame({"measure": [measure], "difference": [here - paper]})
    assert reaches(cells, 0.0).tolist() == [expected]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"targets": [{"dataset": "eight", "system": "ours", "measure": "recall", "value": 1}]}, "targets.0.measure"),
        ({"claims": [{"text": "", "system": "ours", "than": ["plain"], "measures": []}]}, "claims.0.measures"),
    ],
)
def test_bad_configurations(tmp_path, changes, message):
    with pytest.raises(InputError, match=message):
        load_paper(str(write(tmp_path, small(**changes), PRINTED)))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_each_printed_figure_of_004_has_its_cell(kernel):
    paper = load_paper("004")
    seen = set()
    for group in ("low", "high"):
        experiment = paper.experiments[f"{group}-{kernel}"]
        assert len(experiment.targets) == 8 * 3 * 3
        assert {t.system for t in experiment.targets} == {"svm", "u-zovr", "mwmote"}
        assert {t.dataset for t in experiment.targets} == set(experiment.datasets)
        # The claims: against both rivals of the paper, in the same run, in accuracy and in time.
        compared = {
            (m, rival) for c in experiment.claims for m in c.measures for rival in c.than if c.system == "u-zovr"
        }
        assert compared == {(m, rival) for m in ("train", "test", "seconds") for rival in ("svm", "mwmote")}
        for name in ("svm", "u-zovr", "mwmote"):
            assert experiment.systems[name].rule == "zero"
        seen |= set(experiment.datasets)
    assert len(seen) == 16


def test_004_on_a_small_set(data_dir, tmp_path):
    config = load_paper("004", quick=True, output=str(tmp_path))
    small = config.experiments["low-linear"]
    of_system = {"u-zovr": small.systems["u-zovr"].model_copy(update={"grid": {"lam1": [1.0]}})}
    small = small.model_copy(update={"datasets": {"Newthyroid": small.datasets["Newthyroid"]}, "systems": of_system})
    config = config.model_copy(update={"experiments": {"low-linear": small}})
    result = reproduce(config, QUIET)
    assert result["tables"]["low-linear"]["test"]["at_least_print_minus_tolerance"]["u-zovr"] == "1 of 1"


# ---- ranks with ties, strict wins, and the counts that the pages print


LOGIT = {"model": {"estimator": "LinkClassifier", "solver": "newton", "link": "logit"}}


def test_rounding_is_no_lead():
    values = pd.DataFrame([{"a": 0.1 + 0.2, "b": 0.3, "c": 0.31}])
    assert values["a"][0] != values["b"][0]
    assert ranks(values[["a", "b"]], higher_is_better=True).loc[0].tolist() == [1.5, 1.5]
    assert n_ahead(values, "a", ["b"], higher_is_better=True) == 0
    assert n_ahead(values, "c", ["b", "a"], higher_is_better=True) == 1
    assert n_ahead(values, "c", ["b"], higher_is_better=False) == 0


def test_only_a_system_alone_ahead_is_the_best():
    by_dataset = pd.DataFrame([(1.0, 1.0, 0.5), (1.0, 0.9, 0.5), (0.1, 0.2, 0.2)], columns=list("abc"))
    ranked = rankings(by_dataset, higher_is_better=True)
    assert ranked["best_alone"] == {"a": 1, "b": 0, "c": 0}
    assert ranked["best_shared"] == {"a": 1, "b": 2, "c": 1}
    assert ranked["mean_rank"] == pytest.approx({"a": 5.5 / 3, "b": 5 / 3, "c": 7.5 / 3})
    nothing = {"data_sets": 0, "mean_rank": {}, "best_alone": {}, "best_shared": {}}
    assert rankings(by_dataset[:0], higher_is_better=True) == nothing


@given(st.lists(st.lists(st.sampled_from([0.1, 0.2, 0.3]), min_size=4, max_size=4), min_size=1, max_size=6))
def test_the_order_of_the_systems_does_not_matter(table):
    values = pd.DataFrame(table, columns=list("abcd"))
    ranked, again = (rankings(part, higher_is_better=False) for part in (values, values[list("dcba")]))
    assert (ranked["best_alone"], ranked["best_shared"]) == (again["best_alone"], again["best_shared"])
    assert ranked["mean_rank"] == pytest.approx(again["mean_rank"])
    assert np.mean(list(ranked["mean_rank"].values())) == pytest.approx(2.5)


def test_a_tie_is_no_win_among_probabilities():
    kind = Scores.model_validate({
        "kind": "scores", "title": "ties", "measures": {"auc": "Table 4"},
        "systems": {name: LOGIT for name in ("first", "second", "third")},
        "datasets": {name: {"name": "digits"} for name in ("one", "two", "three")},
        "protocol": {"repeats": 2},
    })  # fmt: skip
    auc = {"one": (1.0, 1.0, 0.5), "two": (0.9, 0.9, 0.9), "three": (0.9, 0.7, 0.8)}
    results = {
        TaskKey(dataset, system, repeat): {"auc": [value], "chosen": [0]}
        for dataset, values in auc.items()
        for system, value in zip(("first", "second", "third"), values, strict=True)
        for repeat in range(2)
    }
    report = kind.report(results)
    summary = report.counts["auc"]["in_this_run"]
    assert summary["data_sets"] == 3
    assert summary["best_alone"] == {"first": 1, "second": 0, "third": 0}
    assert summary["best_shared"] == {"first": 2, "second": 2, "third": 1}
    assert summary["mean_rank"] == pytest.approx({"first": 4.5 / 3, "second": 6.5 / 3, "third": 7 / 3})
    (table,) = report.tables
    highlights = {row: [highlight for _, highlight in cells] for row, cells in table.body()}
    assert highlights["two"] == ["better"] * 3
    assert highlights["three"] == ["better", "", ""]


def g_means(values: dict[str, tuple[float, float]], claims=()) -> tuple[Scores, dict]:
    """Return the kind and made-up results of the systems `ours` and `plain`."""
    config = small()["experiments"]["one"] | {
        "datasets": {name: {"name": "digits"} for name in values}, "targets": [], "claims": list(claims),
    }  # fmt: skip
    results = {
        TaskKey(dataset, system, 0, fold): {"train": [value], "test": [value], "seconds": [1.0], "chosen": [0]}
        for dataset, both in values.items()
        for system, value in zip(("ours", "plain"), both, strict=True)
        for fold in range(2)
    }
    return Scores.model_validate(config), results


def test_a_tie_is_no_win_among_g_means():
    kind, results = g_means({"one": (0.5, 0.5), "two": (0.6, 0.5), "three": (0.4, 0.5)})
    counts = kind.report(results).counts["test"]["in_this_run"]
    assert (counts["best_alone"], counts["best_shared"]) == ({"ours": 1, "plain": 1}, {"ours": 1, "plain": 1})
    assert counts["mean_rank"] == {"ours": 1.5, "plain": 1.5}


def test_a_claim_is_counted_in_the_summary():
    claim = {"text": "Ours leads.", "system": "ours", "than": ["plain"], "measures": ["test"]}
    kind, results = g_means({"one": (0.5, 0.5), "two": (0.6, 0.5)}, [claim])
    assert kind.report(results).counts["claims"] == {"Ours leads.": {"test, plain": "1 of 2 here"}}


def cells(*values: tuple[float | None, float | None], measure="test", paper=False) -> pd.DataFrame:
    rows = [
        {"dataset": str(i), "system": system, "measure": measure, "paper" if paper else "mean": value}
        for i, both in enumerate(values)
        for system, value in zip(("a", "b"), both, strict=True)
    ]
    return pd.DataFrame(rows, columns=["dataset", "system", "measure", "paper", "mean"])


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
    claim = MetricClaim(text="", system="a", than=["b"], measures=["test"])
    assert count_leads(claim, cells(*values)) == {"test, b": text}


def test_less_time_is_better_and_the_printed_figures_are_counted_too():
    claim = MetricClaim(text="", system="a", than=["b"], measures=["test", "seconds"])
    leads = count_leads(claim, pd.concat([cells((2.0, 1.0)), cells((2.0, 1.0), measure="seconds")]))
    assert leads == {"test, b": "1 of 1 here", "seconds, b": "0 of 1 here"}
    claim = MetricClaim(text="", system="a", than=["b"], measures=["test"])
    both = cells((2.0, 1.0), (1.0, 1.0), paper=True)
    both.loc[:1, "mean"] = [2.0, 1.0]
    leads = count_leads(claim, both)
    assert leads == {"test, b": "1 of 1 here, 1 of 2 in print"}

"""The configurations of reproductions: invalid ones, `quick`, and the shipped ones."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
from support.command_line import run
from support.small_paper import load_paper, only, paper, write

from aucdist.errors import InputError
from flows.config.loading import configs_folder
from flows.reproduce.page import render_paper_page, summary_entries
from flows.reproduce.run import KINDS
from flows.reproduce.table import Table


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.update(papers=1), "unknown key 'papers'. Did you mean 'paper'"),
        (lambda c: c["experiments"]["nine"].update(kind="tabel"), "kind"),
        (lambda c: c["experiments"]["nine"]["datasets"]["eight"].update(name="digit"), "Did you mean 'digits'"),
        (
            lambda c: c["experiments"]["nine"]["systems"]["all-pairs"]["model"].update(solver="all"),
            "unknown solver 'all'",
        ),
        (lambda c: c["experiments"]["nine"].update(grid={"lam": [-1]}), "lam is -1"),
        (
            lambda c: c["experiments"]["nine"].update(grid={"lambda": [1]}),
            "unknown parameter of PairwiseHingeClassifier",
        ),
        (lambda c: c["experiments"]["nine"].update(grid={"lam": [1], "tol": [1]}), "against one parameter"),
        (lambda c: c["experiments"]["nine"]["protocol"].update(folds=1), "folds"),
        (lambda c: c["experiments"]["nine"].update(targets="tables.csv"), "cannot read"),
        (lambda c: c["experiments"]["ten"]["datasets"]["eight"].pop("lam"), "datasets.eight.lam: Field required"),
        (lambda c: c["experiments"]["ten"]["systems"]["steps"].update(steps="step"), "unknown parameter"),
        (lambda c: c["experiments"]["nine"]["datasets"]["eight"].update(lam=1), "unknown key 'lam'"),
        (lambda c: c.update(cluster="lokal"), "Did you mean 'local'"),
        (lambda c: c.update(quick={"none": {}}), "unknown experiment in `quick` 'none'. Did you mean 'nine'"),
        (lambda c: c.update(quick={"ten": {"datasets": ["ate"]}}), "unknown data set in quick.ten 'ate'"),
        (lambda c: c.update(quick={"ten": {"untill": 50}}), "quick.ten: unknown key 'untill'. Did you mean 'until'"),
        (lambda c: c.update(quick={"nine": {"protocol": {"folds": 1}}}), "quick.nine: protocol.folds: "),
    ],
)
def test_wrong_configurations(change: Callable[[Any], Any], message: str, tmp_path: Path) -> None:
    config = paper()
    change(config)
    with pytest.raises(InputError, match=message):
        load_paper(str(write(tmp_path, config)))


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ("dataset,system,value\neight,all-pairs,high\n", "targets.0.value"),
        ("dataset,system,value\neight,all-bears,0.9\n", "Did you mean 'all-pairs'"),
        ("dataset,system,value\nnine,all-pairs,0.9\n", "unknown data set of a target 'nine'"),
        ("dataset,system\neight,all-pairs\n", "targets.0.value"),
    ],
)
def test_wrong_targets(targets: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        load_paper(str(write(tmp_path, only("nine"), targets)))


def test_unknown_paper_ends_with_2() -> None:
    assert "unknown paper '0000'. Did you mean '000'" in run("reproduce", "0000", code=2)[1]


@pytest.mark.parametrize("folder", sorted(configs_folder("reproduce").iterdir()), ids=lambda p: p.name)
def test_every_shipped_paper_is_valid_and_has_a_page_when_nothing_was_run(folder: Path) -> None:
    config = load_paper(folder.name)
    assert config.paper == folder.name
    small = load_paper(folder.name, quick=True)
    assert small.paper == f"{folder.name}-quick"
    assert sum(1 for e in small.experiments.values() for _ in e.datasets) > 0
    reports = [experiment.report({}) for experiment in config.experiments.values()]
    json.dumps([report.counts for report in reports], allow_nan=False)
    page = render_paper_page(config.title, config.departures, reports, {}, "")
    assert all(experiment.title in page for experiment in config.experiments.values())


def test_paper_000_is_the_printed_one() -> None:
    config = load_paper("000")
    table = config.experiments["table2"]
    assert isinstance(table, Table)
    assert len(table.targets) == 40
    assert table.grid["lam"] == pytest.approx([10.0**e for e in range(-9, 2)])
    assert (table.protocol.folds, table.protocol.repeats, table.protocol.choose) == (5, 4, "best")


def test_quick_changes_only_the_given_keys(tmp_path: Path) -> None:
    quick = {"nine": {"datasets": ["absent"], "protocol": {"repeats": 1}, "grid": {"lam": [0.5]}}}
    path = str(write(tmp_path, paper(quick=quick)))
    full, small = load_paper(path), load_paper(path, quick=True)
    assert (small.paper, list(small.experiments), small.quick) == ("x-quick", ["nine"], {})
    before, after = full.experiments["nine"].model_dump(), small.experiments["nine"].model_dump()
    assert {key for key in before if before[key] != after[key]} == {"datasets", "protocol", "grid"}
    assert list(after["datasets"]) == ["absent"]
    assert after["protocol"] == before["protocol"] | {"repeats": 1}
    assert after["grid"] == {"lam": [0.5]}


def test_kinds_are_registered_under_their_names() -> None:
    for name, kind in KINDS.items():
        assert get_args(kind.model_fields["kind"].annotation) == (name,)


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

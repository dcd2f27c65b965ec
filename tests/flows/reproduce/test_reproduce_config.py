"""The configurations of reproductions: invalid ones, `quick`, and the shipped ones."""

import json
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from support.small_paper import load_paper, only, paper, run, write
from support.tables import table_beside

from aucdist.errors import InputError
from flows.config.loading import configs_folder
from flows.reproduce.page import render_paper_page, summary_entries
from flows.reproduce.run import EXPERIMENTS
from flows.reproduce.scores import Scores


@pytest.mark.parametrize(("key", "value", "message"), table_beside(__file__))
def test_wrong_configurations(key: str, value: Any, message: str, tmp_path: Path) -> None:
    config = paper()
    *above, last = key.split(".")
    reduce(getitem, above, config)[last] = value
    with pytest.raises(InputError, match=message):
        load_paper(str(write(tmp_path, config)))


@pytest.mark.parametrize(
    ("quick", "message"),
    [
        ({"none": {}}, "paper.yaml: `quick`: .*none"),
        ({"ten": {"datasets": ["ate"]}}, "paper.yaml: `quick`: .*ate"),
        ({"ten": {"untill": 50}}, "experiments.ten.*: unknown key 'untill'. Did you mean 'until'"),
        ({"nine": {"protocol": {"folds": 1}}}, "protocol.*folds"),
    ],
)
def test_wrong_quick_versions(quick: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        load_paper(str(write(tmp_path, paper(quick=quick))), quick=True)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("datasets", {"eight": {"name": "digit"}}, "Did you mean 'digits'"),
        ("grid", {"lam": [-1]}, "lam must be .*; got -1"),
        ("grid", {"lambda": [1]}, "unknown parameter of PairwiseHingeClassifier"),
    ],
)
def test_names_and_grids_are_checked_before_the_first_task(key: str, value: Any, message: str, tmp_path: Path) -> None:
    config = only("nine")
    config["experiments"]["nine"][key] = value
    with pytest.raises(InputError, match=message):
        run(write(tmp_path, config))


@pytest.mark.parametrize(
    "targets", ["dataset,system,value\neight,all-pairs,high\n", "dataset,system\neight,all-pairs\n"]
)
def test_wrong_targets(targets: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"targets\.0\.value"):
        load_paper(str(write(tmp_path, only("nine"), targets)))


@pytest.mark.parametrize("folder", sorted(configs_folder("reproduce").iterdir()), ids=lambda p: p.name)
def test_every_shipped_paper_is_valid_and_has_a_page_when_nothing_was_run(folder: Path) -> None:
    config = load_paper(folder.name)
    assert config.paper == folder.name
    small = load_paper(folder.name, quick=True)
    assert small.paper == f"{folder.name}-quick"
    assert sum(1 for e in small.experiments.values() for _ in e.datasets) > 0
    for experiment in config.experiments.values():
        targets, claims, systems = (getattr(experiment, name, ()) for name in ("targets", "claims", "systems"))
        assert {target.dataset for target in targets} <= set(experiment.datasets)
        named = {target.system for target in targets} | {s for claim in claims for s in (claim.system, *claim.than)}
        assert named <= set(systems)
        for system in systems.values() if systems else ():
            assert system.points()
    reports = [experiment.report({}) for experiment in config.experiments.values()]
    json.dumps([report.counts for report in reports], allow_nan=False)
    page = render_paper_page(config.title, config.departures, reports, {}, "")
    assert all(experiment.title in page for experiment in config.experiments.values())


def test_paper_000_is_the_printed_one() -> None:
    config = load_paper("000")
    table = config.experiments["table2"]
    assert isinstance(table, Scores)
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
    for name, kind in EXPERIMENTS.items():
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


# ---- paper 002: drawn groups, the grid, and a cell for each printed figure


@pytest.fixture(scope="module")
def tpauc():
    return load_paper("002")


@pytest.mark.parametrize(("table", "names"), [("table1", {"usps", "letter"}), ("table2", {"news20"})])
def test_groups_of_classes_are_drawn_from_their_seeds(tpauc, table, names):
    drawn = set()
    for name, data in tpauc.experiments[table].datasets.items():
        base, _, seed = name.rpartition("-")
        if base not in names:
            assert (data.positive, data.group) == (None, None)
            continue
        assert data.group == base
        classes = sorted(int(c) for c in data.source.classes)
        half = np.random.default_rng(int(seed)).permutation(classes)[: len(classes) // 2]
        assert sorted(data.positive) == sorted(half.tolist())
        drawn.add((base, seed))
    assert drawn == {(base, str(seed)) for base in names for seed in range(5)}


def test_grid_is_the_papers(tpauc):
    for table in tpauc.experiments.values():
        assert table.grid == {name: [2.0**k for k in range(-10, 3)] for name in ("solver__eta", "lam")}
        assert (table.protocol.folds, table.protocol.repeats) == (5, 5)


def test_every_cell_is_held_to_the_print_minus_one_hundredth(tpauc):
    assert {table.tolerance for table in tpauc.experiments.values()} == {0.01}
    assert {table.protocol.choose for table in tpauc.experiments.values()} == {"once"}
    assert any("its rows are test rows of other folds" in departure for departure in tpauc.departures)


def test_each_printed_figure_has_its_cell(tpauc):
    printed = {"tpauc", "opauc", "oam-seq", "oam-gra", "uni-exp", "uni-squ"}
    for table, count in (("table1", 6 * 16), ("table2", 6 * 10)):
        targets = tpauc.experiments[table].targets
        assert len(targets) == count
        assert {t.system for t in targets} == printed
        assert {t.dataset for t in targets} == set(tpauc.experiments[table].datasets)

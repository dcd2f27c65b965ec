"""What the page shows of a search."""

import itertools
import math
import re
from dataclasses import replace

import pytest
from test_page import Tags, history, scores, text_of

from aucdist.report.run import Report, render_run_page
from aucdist.report.sections import search_section
from aucdist.report.text import search_verdict


def row(parameters, folds, **more):
    failed = None in folds
    mean = None if failed else sum(folds) / len(folds)
    return {
        "parameters": parameters, "folds": folds, "mean": mean, "deviation": None if failed else 0.02, "max_passes": 1000,
        "passes": 12, "not_converged": 0, "errors": ["it broke"] if failed else [], **more,
    }  # fmt: skip


def search(table, best=0, **more):
    return {
        "best": table[best]["parameters"], "score": 0.9, "interval": [0.85, 0.95], "metric": "auc", "rule": "best",
        "folds": {"number": 5, "repeats": 2, "seed": 0, "duplicates": "apart"}, "test_over_train": 0.25, "table": table,
        "nested": None, "placement": "tasks", "tasks": {"all": 10, "kept": 3, "failed": 0}, "seconds": 3.0, **more,
    }  # fmt: skip


@pytest.fixture
def report():
    run = {
        "run": "r", "estimator": "E", "solver": "s", "n_samples": 50, "n_features": 2, "n_pos": 10, "n_neg": 40,
        "metrics": {"train_auc": 0.85, "test_auc": None, "test_auc_interval": None},
        "certificate": {"primal": 0.2, "dual": 0.1999, "relative_gap": 5e-4, "status": "converged"},
        "passes": 40, "seconds": {"data": 0.1, "fit": 2.0, "evaluate": 0.1},
    }  # fmt: skip
    return Report("T", run, {}, "", history=history(3), train=scores(10, 40))


PATH = [row({"lam": lam}, [0.8 + 0.01 * i, 0.82]) for i, lam in enumerate((1.0, 0.1, 0.01))]


def test_features_kept_have_a_column_where_they_are_known(report):
    assert "features kept" not in text_of(render_run_page(replace(report, search=search(PATH))))
    table = [{**PATH[0], "features_kept": [3, 3]}, {**PATH[1], "features_kept": [12, 1400]}, PATH[2]]
    page = render_run_page(replace(report, search=search(table)))
    assert Tags(page).open == []
    assert "features kept" in text_of(page)
    assert re.findall(r"<td>12</td><td>([^<]*)</td>", page) == ["3", "12 to 1,400", ""]


def test_one_parameter_is_a_path_with_error_bars(report):
    page = render_run_page(replace(report, search=search(PATH, best=2)))
    assert Tags(page).open == []
    text = text_of(page)
    for expected in (
        "Chosen: lam 0.01; mean auc over 2 folds 0.9000 (95 % interval 0.8500 to 0.9500).",
        "The search compared 3 settings by 5 folds, 2 times, stratified by class.",
        "which is slightly optimistic",
        "10 tasks, 3 of them with stored results",
        "auc against lam",
        "aucdist cv" if report.command == "aucdist cv" else "aucdist train",
    ):
        assert expected in text
    assert text.count("chosen") >= 2
    assert search_section(search(PATH))["heat"] is None


def test_two_parameters_are_a_heat_map_that_is_a_table(report):
    table = [
        row({"lam": lam, "tol": tol}, [0.8 + 0.05 * i] * 2)
        for i, (lam, tol) in enumerate(itertools.product((1.0, 0.1), (1e-3, 1e-2, 1e-1)))
    ]
    found = search_section(search(table, best=5))
    assert found["figure"] is None
    heat = found["heat"]
    assert heat["heads"] == [0.001, 0.01, 0.1]
    assert [value for value, _ in heat["rows"]] == [1.0, 0.1]
    shades = [cell["shade"] for _, cells in heat["rows"] for cell in cells]
    assert shades == [0, 12, 24, 36, 48, 60]
    assert [cell["chosen"] for cell in heat["rows"][1][1]] == [False, False, True]
    losses = search_section(search(table, metric="brier_loss"))["heat"]
    assert [cell["shade"] for _, cells in losses["rows"] for cell in cells] == shades[::-1]
    page = render_run_page(replace(report, search=search(table, best=5)))
    heads = re.search(r'<table class="cells heat">.*?</table>', page, flags=re.DOTALL)
    assert heads is not None
    assert heads.group().count('scope="col"') == 4
    assert heads.group().count('scope="row"') == 2


@pytest.mark.parametrize(
    "table",
    [
        [row({"solver": s}, [0.8, 0.9]) for s in ("all-pairs", "sdcd")],
        [row({"lam": 1.0}, [0.8, 0.9])],
        [row({"lam": 1.0}, [0.8, 0.9]), row({"lam": 0.1}, [None, 0.9])],
        [row({"lam": 0.0}, [0.8, 0.9]), row({"lam": -1.0}, [0.7, 0.9], not_converged=1)],
        [row({"lam": lam, "a": a, "b": b}, [0.8, 0.9]) for lam, a, b in itertools.product((1, 2), (1, 2), (1, 2))],
        [row({"features": f, "max_fpr": m}, [0.8, 0.9]) for f, m in ((None, 0.1), ("bins", 0.1), (None, None))],
    ],
    ids=["words", "one", "failed", "not positive", "three", "no grid"],
)
def test_any_search_can_be_shown(report, table):
    text = text_of(render_run_page(replace(report, search=search(table))))
    assert ("it broke" in text) == any(r["errors"] for r in table)
    assert ("1 of 2 fits not converged" in text) == any(r["not_converged"] for r in table)


def test_the_paragraphs_state_folds_rule_and_score(report):
    def text(of):
        return text_of(render_run_page(replace(report, search=of)))

    nested = [{"repeat": 0, "fold": 0, "parameters": {"lam": 1.0}, "value": 0.8}]
    folds = {"number": 4, "repeats": 1, "seed": 0, "groups": "patient"}
    found = search(PATH, rule="one-se", nested=nested, folds=folds)
    for expected in ("each patient kept together", "one standard error", "were not used to choose the setting"):
        assert expected in text(found)
    assert "of choosing by inner folds" in search_verdict(found)
    time = search(PATH, folds={"number": 4, "repeats": 1, "seed": 0, "time": "day"}, score=None, interval=None)
    assert "in the order of day" in text(time)
    assert "a fold failed" in search_verdict(time)
    equal = search(PATH, folds={"number": 4, "repeats": 1, "seed": 0, "duplicates": "together"})
    assert "equal rows kept together" in text(equal)


def test_a_long_table_shows_the_best():
    table = [row({"lam": float(i)}, [i / 100, i / 100]) for i in range(1, 90)] + [row({"lam": 0.5}, [None, 0.1])]
    found = search_section(search(table, best=88))["table"]
    assert len(found["rows"]) == 60
    assert found["n_left_out"] == 30
    assert found["rows"][0]["parameters"] == {"lam": 89.0}
    assert math.isclose(found["rows"][-1]["mean"], 0.30)


def test_directions_are_a_part_of_the_map_in_the_heat_map():
    maps = [(None, None), ({"map": "bins"}, "auto"), ({"map": "bins"}, None)]
    table = [
        row({"features": features, "monotone": monotone, "lam": lam}, [0.8, 0.9])
        for features, monotone in maps
        for lam in (1.0, 0.1)
    ]
    section = search_section(search(table, best=2))
    heads = [None, {"map": "bins", "monotone": "auto"}, {"map": "bins"}]
    assert [head for head, _ in section["heat"]["rows"]] == heads
    assert set(section["table"]["parameters"]) == {"features", "lam"}
    assert section["heat"]["rows"][1][1][0]["chosen"]

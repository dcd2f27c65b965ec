"""The kinds of paper 003, compared with the same steps done one by one, and the paper itself."""

import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import genextreme, wilcoxon
from sklearn.metrics import brier_score_loss, roc_auc_score
from support.runs import page_of
from support.small_paper import load_paper, rows as lines, run, write
from support.tables import table_beside

from aucdist import LinkClassifier
from aucdist.data.block import each_of
from aucdist.data.preprocess import fit_preprocessor
from aucdist.data.shards.reading import read
from aucdist.data.sources import catalog, find_source
from aucdist.data.split import split
from aucdist.engine.blocks import LocalBlocks, block_seed
from aucdist.probability.links import Link
from flows.reproduce.gev import gev_density, simulate_rows
from flows.reproduce.kind import TaskKey
from flows.reproduce.scores import Scores, oversample, p_value

LINK = {"estimator": "LinkClassifier", "solver": "newton"}


def paper(**experiments: Any) -> dict[str, Any]:
    return {"paper": "x", "title": "A paper", "experiments": experiments, "quick": {}}


KEEL = table_beside(__file__)


def by_hand(smote: bool) -> list[tuple[float, float]]:
    data, measured = read(find_source("digits")), []
    for repeat in range(3):
        train, test = split(data.block, 0.5, block_seed(0, repeat, 0))
        names = data.schema.feature_names
        prepare = fit_preprocessor(
            each_of([data.block.take(train)]), names, log1p=None, scale="standard", categories={}
        )
        rows, validation = (prepare.transform(data.block.take(part)) for part in (train, test))
        if smote:
            rows = oversample(rows, block_seed(0, repeat, 1) % 2**31)
            assert (rows.y > 0).mean() == 0.5
        with warnings.catch_warnings(action="ignore"):
            model = LinkClassifier(link="logit", solver="newton", lam=2.0 / rows.n_samples).fit(LocalBlocks([rows]))
        p = model.predict_proba(validation.X)[:, 1]
        measured.append((roc_auc_score(validation.y, p), brier_score_loss(validation.y, p)))
    return measured


def test_a_cell_is_the_mean_over_splits(tmp_path: Path) -> None:
    result = run(write(tmp_path, paper(keel=KEEL)))
    plain, smote = by_hand(False), by_hand(True)
    rows = {(row["measure"], row["system"]): row for row in lines(result["run"], "keel") if row["dataset"] == "eight"}
    for system, values in (("logit", plain), ("smote", smote)):
        for i, measure in enumerate(("auc", "brier")):
            assert float(rows[measure, system]["mean"]) == pytest.approx(np.mean(values, axis=0)[i], rel=1e-4)
    tally = result["tables"]["keel"]
    assert sorted(tally["auc"]["in_this_run"]["mean_rank"].values()) == [1.0, 2.0]
    assert sum(tally["brier"]["in_this_run"]["best_alone"].values()) == 1
    assert "auc in this run mean rank: " in page_of(result)
    assert "not run here" in page_of(result)


def test_ranks_and_marks() -> None:
    kind = Scores.model_validate(KEEL | {"protocol": {"test": 0.3, "repeats": 10}})
    r = np.random.default_rng(0)
    results = {}
    for repeat in range(10):
        for system, shift in (("logit", 0.0), ("smote", 0.1)):
            value = {"auc": [0.8 - shift + 0.01 * r.normal()], "brier": [0.2 + shift], "chosen": [0]}
            results[TaskKey("eight", system, repeat)] = value
    cells = {(c.measure, c.system): c for _, c in kind.lines(results).iterrows() if c.dataset == "eight"}
    assert (cells["auc", "logit"].highlight, cells["auc", "smote"].highlight) == ("better", "")
    assert (cells["auc", "logit"].mark, cells["auc", "smote"].mark) == ("", "**")
    summary = kind.report(results).counts
    assert summary["brier"]["in_this_run"]["mean_rank"] == {"logit": 1.0, "smote": 2.0}
    assert summary["auc"]["in_this_run"]["significantly_behind"] == {"logit": 0, "smote": 1}


def test_p_values() -> None:
    r = np.random.default_rng(0)
    first, other = r.normal(size=10), r.normal(size=10)
    assert p_value(first, first) == 1.0
    assert p_value(first, other) == wilcoxon(first, other).pvalue
    tied = np.append(first[:-1], other[-1])
    assert 0.0 < p_value(tied, other) <= 1.0


def test_synthetic_data_follow_the_link_and_their_seed() -> None:
    task = {"n": 20_000, "xi": 0.2, "weights": [1.0, 1.0]}
    block = simulate_rows(task, 3)
    scores = block.X @ [1.0, 1.0]
    near = (scores > 0.4) & (scores < 0.6)
    assert (block.y[near] > 0).mean() == pytest.approx(Link("gev", 0.2).probabilities([0.5])[0][0], abs=0.03)
    np.testing.assert_array_equal(simulate_rows(task, 3).X, block.X)
    assert (simulate_rows(task, 4).X != block.X).all()


def test_shapes(tmp_path: Path) -> None:
    model = LINK | {"loss": "likelihood", "fit_intercept": False, "tol": 1e-3}
    experiment = {
        "kind": "shapes", "title": "shape", "weights": [1, 1], "sizes": [60, 200], "shapes": [0.2],
        "systems": {
            "map": {"model": model, "table": "Table 2", "sets": 3},
            "bayes": {
                "model": model | {"xi": "bayes", "shape_rounds": 2, "shape_samples": 80}, "table": "Table 3", "sets": 2,
            },
        },
    }  # fmt: skip
    result = run(write(tmp_path, paper(shapes=experiment)))
    rows = {(row["system"], row["n"]): row for row in lines(result["run"], "shapes")}
    with warnings.catch_warnings(action="ignore"):
        areas = [
            LinkClassifier(**{k: v for k, v in model.items() if k != "estimator"})
            .fit(LocalBlocks([simulate_rows({"n": 200, "xi": 0.2, "weights": [1, 1]}, seed)]))
            .xi_
            for seed in range(3)
        ]
    assert float(rows["map", "200"]["mean"]) == pytest.approx(np.mean(areas), abs=1e-3)
    assert float(rows["map", "200"]["first"]) == pytest.approx(areas[0], abs=1e-3)
    assert {row["xi"] for row in rows.values()} == {"0.2"}  # the true one
    assert rows["map", "60"]["acceptance"] == ""
    assert 0 < float(rows["bayes", "60"]["acceptance"]) < 1
    assert (rows["bayes", "60"]["rounds"], rows["bayes", "60"]["sets"]) == ("2", "2")
    assert re.search(r"<li>map 200: [01] of 1</li>", page_of(result))
    assert "Mean log-likelihood per row" in page_of(result)


def test_optimisers(tmp_path: Path) -> None:
    experiment = {
        "kind": "optimisers", "title": "digits", "figure": "Figure 4", "table": "Table 7",
        "datasets": {"eight": {"name": "digits"}, "absent": {"name": "astro-physics"}}, "drawn": ["eight"],
        "iterations": 4, "timed": 3, "times": 1, "shape_rounds": 2,
    }  # fmt: skip
    result = run(write(tmp_path, paper(fast=experiment)))
    (task,) = Path(result["run"]).glob("tasks/fast/eight/*.json")
    of_task = json.loads(task.read_text())["content"]
    assert of_task["log_loss"].keys() == {"lipschitz", "gradient", "newton"}
    starts = {values[0] for values in of_task["log_loss"].values()}
    assert len(starts) == 1
    for values in of_task["log_loss"].values():
        assert len(values) == 5
        assert values[-1] < values[0]
    assert sum(result["tables"]["fast"]["fastest"].values()) == 1
    rows = lines(result["run"], "fast")
    assert [(row["dataset"], row["system"]) for row in rows] == [("eight", name) for name in of_task["log_loss"]]
    assert all(float(row["seconds"]) == pytest.approx(of_task["seconds"][row["system"]], rel=1e-4) for row in rows)
    assert "<li>fastest: " in page_of(result)


def test_figure_one() -> None:
    u = np.linspace(-3, 3, 61)
    for xi in (-0.5, 0.0, 0.5):
        np.testing.assert_allclose(Link("gev", xi).probabilities(u)[0], genextreme.cdf(u, -xi), atol=1e-12)
        np.testing.assert_allclose(gev_density(xi, u), genextreme.pdf(u, -xi), atol=1e-9)
    figures = load_paper("003").experiments["figure1"].report({}).figures
    assert [figure.heading for figure in figures] == ["Distribution function", "Density"]


def test_seventeen_sets_are_chosen_by_the_stated_rule() -> None:
    """In the order of rising imbalance, the first set of each family with 20 minority rows."""
    entries = {n: s for n, s in catalog().items() if str(s.source).startswith("keel/")}
    sizes = {n: sorted(s.classes.values()) for n, s in entries.items()}
    order = sorted((n for n in entries if sizes[n][0] >= 20), key=lambda n: sizes[n][1] / sizes[n][0])
    families: dict[str, str] = {}
    for name in order:
        family = re.match(r"new-thyroid|page-blocks|kr-vs-k|winequality-\w+|[a-z]+?(?=\d|-|$)|led7digit", name)
        families.setdefault("led7digit" if name.startswith("led7") else family.group(), name)
    expected = list(families.values())[:17]
    paper = load_paper("003")
    for experiment in ("keel", "optimisers"):
        assert sorted(d.name for d in paper.experiments[experiment].datasets.values()) == sorted(expected)

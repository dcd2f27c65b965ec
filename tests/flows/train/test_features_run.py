"""Runs with a feature map: the same bits wherever the rows are, saved and scored models, and the choice of a map by folds."""

import itertools
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.command_line import run as aucdist, sets
from support.runs import Following, load_cv, load_train, page_of, searched, trained, write_config

from aucdist.errors import InputError
from aucdist.maps import NystroemMap
from aucdist.metrics import roc_auc_score as auc_of
from aucdist.model import load_model
from aucdist.search.auto import FORESTS, LARGE_LEAVES, LEAVES, candidates
from aucdist.search.choice import complexity
from flows.config.model import ModelConfig
from flows.run_folder.folder import read_metrics

BINS = {"map": "bins", "bins": 8, "interactions": 1}
READING = sets("label=clicked", 'positive="yes"', "missing=keep")
GRID = ("grid={lam: [1e-2]}", "folds={number: 2}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table whose classes no line parts, with missing values in one column, and shards of it."""
    r = np.random.default_rng(0)
    X = r.normal(size=(120, 3))
    y = np.where(np.abs(X[:, 0]) + 0.2 * X[:, 1] + 0.3 * r.normal(size=120) > 1.2, "yes", "no")
    frame = pd.DataFrame(X.round(3), columns=["age", "income", "height"]).assign(clicked=y)
    frame.loc[::7, "income"] = np.nan
    made, source = tmp_path_factory.mktemp("features"), {"label": "clicked", "positive": "yes", "missing": "keep"}
    model = {"tol": 1e-2, "lam": 1e-2, "features": BINS}
    write_config(made, frame, source, {"impute": "keep"}, model=model, blocks=3)
    aucdist("shard", made / "rows.csv", made / "shards", *READING, "--rows-per-shard", 40)
    return made


def train(folder: Path, output: Path, *settings: str) -> dict[str, Any]:
    return trained(folder / "config.yaml", *settings, output=output)


def bits(result: dict[str, Any]) -> list[bytes]:
    return [(Path(result["run"]) / "model" / name).read_bytes() for name in ("weights.npy", "features.npz")]


def test_the_same_bits_streamed_and_the_saved_model_scores(folder: Path, tmp_path: Path) -> None:
    shards = f"data.source={{source: '{folder}/shards', format: shards}}", "blocks=null"
    kept, streamed = (train(folder, tmp_path, *shards, where) for where in ("cache=memory", "cache=stream"))
    assert bits(kept) == bits(streamed)
    assert kept["metrics"] == streamed["metrics"]
    assert kept["metrics"]["train_auc"] > 0.9
    model = load_model(f"{kept['run']}/model")
    rows = pd.read_csv(folder / "rows.csv")
    expected = model.decision_function(rows[list(model.schema.feature_names)].to_numpy())
    aucdist("score", f"{kept['run']}/model", folder / "rows.csv", tmp_path / "scores", *READING)
    table = pd.concat(pd.read_parquet(part) for part in sorted((tmp_path / "scores").glob("*.parquet")))
    np.testing.assert_array_equal(table["score"], expected)
    assert "Shapes of the features" in page_of(kept)
    assert "A map other than bins may have a lower minimum" in page_of(kept)


def test_what_a_map_does_not_have_is_refused_by_name(folder: Path, tmp_path: Path) -> None:
    for features, said in (
        (
            "{map: bins, bin: 3}",
            "unknown parameter of the feature map 'bins': 'bin'.*: basis, bins, interaction_strength, interactions, linear",
        ),
        ("bin", "unknown feature map 'bin'.*Allowed: bins, nystroem, leaves, auto"),
        ("nystroem", "impute: keep.*use `features: bins`, `leaves` or `auto` instead of 'nystroem'"),
        ("null", "impute: keep.*instead of None"),
    ):
        with pytest.raises(InputError, match=said):
            train(folder, tmp_path, f"model.features={features}")
    assert list(tmp_path.iterdir()) == []


# ---- auto ---------------------------------------------------------------------------------------------------------------

RISING = {"map": "bins", "monotone": "auto"}
LANDMARKS = [{"map": "nystroem", "landmarks": 512, "sigma": sigma} for sigma in ("median", "half-median")]


def test_candidates_depend_on_positives_columns_and_what_the_solver_takes() -> None:
    model = ModelConfig().built
    few = candidates(model, n_pos=49, n_neg=900, n_features=9)
    assert few == [None, RISING, {"map": "bins"}, *LANDMARKS]
    many = candidates(model, n_pos=5000, n_neg=10**6, n_features=4)
    assert many == [None, RISING, {"map": "bins"}, {"map": "bins", "interactions": 6}, *FORESTS, LARGE_LEAVES]
    assert candidates(model, n_pos=400, n_neg=400, n_features=50)[-3:] == [
        {"map": "bins", "interactions": 40},
        *FORESTS,
    ]
    assert candidates(model, n_pos=49, n_neg=900, n_features=9, missing=True) == [RISING, {"map": "bins"}]
    maps = candidates(model, n_pos=500, n_neg=900, n_features=1, missing=True)
    assert maps == [RISING, {"map": "bins"}, *FORESTS]
    directed = ModelConfig(monotone={0: "increasing"}).built
    assert candidates(directed, n_pos=49, n_neg=900, n_features=9) == [None, {"map": "bins"}]
    without = ModelConfig(estimator="UnivariateRankingClassifier").built
    assert candidates(without, n_pos=49, n_neg=900, n_features=9) == [None, {"map": "bins"}, *LANDMARKS]
    assert FORESTS[0] in candidates(model, n_pos=10**9, n_neg=10**9, n_features=256)
    assert FORESTS[0] not in candidates(model, n_pos=10**9, n_neg=10**9, n_features=257)
    assert FORESTS[0] not in candidates(model, n_pos=49, n_neg=900, n_features=9)
    assert candidates(model, n_pos=49, n_neg=900, n_features=10**5) == [None]
    no_codes = ModelConfig(solver="sdcd").built
    assert candidates(no_codes, n_pos=500, n_neg=900, n_features=9) == [None, *LANDMARKS]
    with pytest.raises(InputError, match="no feature map that accepts missing values with solver"):
        candidates(no_codes, n_pos=49, n_neg=900, n_features=9, missing=True)
    paired = [{"map": "bins", "interactions": n} for n in (10, 40)]
    order = [None, "bins", *LANDMARKS, *paired, "leaves", LEAVES, LARGE_LEAVES]
    assert sorted(reversed(order), key=complexity) == order
    assert complexity(NystroemMap()) > complexity("bins") > complexity({"map": "bins"}, "auto") > complexity(None)


def test_readable_candidates_are_linear_models_and_bins_with_at_most_two_features_at_a_time() -> None:
    model, size = ModelConfig().built, {"n_neg": 900, "n_features": 30, "readable": True}
    bins = [{"map": "bins"}, *[{"map": "bins", "interactions": n} for n in (10, 40)]]
    assert candidates(model, n_pos=50, **size) == [None, RISING, *bins]
    assert candidates(model, n_pos=49, **size) == [None, RISING, *bins[:2]]
    assert candidates(model, n_pos=50, **size, missing=True) == [RISING, *bins]
    assert candidates(model, n_pos=10**5, **size | {"n_features": 4})[-1] == {"map": "bins", "interactions": 6}
    assert candidates(model, n_pos=50, **size | {"n_features": 1}) == [None, RISING, bins[0]]
    assert candidates(ModelConfig(solver="sdcd").built, n_pos=50, **size) == [None]


def test_a_readable_map_is_chosen_and_its_model_can_be_explained(tmp_path: Path) -> None:
    """The classes are those of an exclusive or, which a sum of functions of one feature does not part."""
    X = np.random.default_rng(0).normal(size=(500, 2))
    rows = pd.DataFrame(X.round(3), columns=["a", "b"]).assign(y=(X[:, 0] > 0) ^ (X[:, 1] > 0))
    model = {"tol": 1e-2, "features": {"map": "auto", "readable": True, "metric": "average_precision"}}
    config = write_config(tmp_path, rows, {"label": "y", "positive": "True"}, {"scale": "none"}, model=model)
    observer = Following()
    result = trained(config, output=tmp_path, observer=observer)
    search = read_metrics(result["run"])["search"]
    assert search["metric"] == "average_precision"
    assert search["best"]["features"] == {"map": "bins", "interactions": 1}
    assert any("chose features bins with 1 interaction, lam" in line for line in observer.lines)
    explained = load_model(f"{result['run']}/model").explain(X[:2])
    assert explained.shape == (2, 4)  # a constant, two features and their interaction


def test_where_folds_cannot_choose_a_readable_map_the_model_has_bins_with_interactions(
    folder: Path, tmp_path: Path
) -> None:
    rows = pd.read_csv(folder / "rows.csv")
    clicked = rows["clicked"] == "yes"
    one = pd.concat([rows[clicked][:1], rows[~clicked]])
    model = {"features": {"map": "auto", "readable": True}}
    source = {"label": "clicked", "positive": "yes", "missing": "keep"}
    config, observer = write_config(tmp_path, one, source, {"impute": "median"}, model=model), Following()
    result = trained(config, output=tmp_path, observer=observer)
    said = "folds cannot choose the feature map, so it is bins with 3 interactions: 1 positive row cannot be divided"
    assert any(said in line for line in observer.lines)
    assert load_model(f"{result['run']}/model").about["parameters"]["features"] == {"map": "bins", "interactions": 3}
    with pytest.raises(InputError, match="1 positive row cannot be divided"):
        trained(config, "model.features=auto", output=tmp_path)


def test_without_lightgbm_no_leaves_are_tried_and_a_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    model, size = ModelConfig().built, {"n_pos": 400, "n_neg": 900, "n_features": 2}
    assert FORESTS[0] in candidates(model, **size)
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    notes: list[str] = []
    assert candidates(model, **size, note=notes.append)[-1] == {"map": "bins", "interactions": 1}
    assert "does not try leaves, since lightgbm is not installed: in the folder" in notes.pop()
    candidates(model, **size | {"n_pos": 49}, note=notes.append)
    candidates(ModelConfig(solver="sdcd").built, **size, note=notes.append)
    assert not notes


def test_auto_takes_leaves_where_three_features_interact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The classes of 900 rows are the fields of a board: bins of one feature or of two do not part them."""
    X = np.random.default_rng(0).uniform(0, 3, size=(900, 3))
    rows = pd.DataFrame(X.round(3), columns=["a", "b", "c"]).assign(y=np.floor(X).sum(axis=1).astype(int) % 2)
    rows[:240].to_csv(tmp_path / "few.csv", index=False)  # half of them positive
    model = {"tol": 1e-2, "lam": 1e-3, "features": "auto"}
    config = write_config(tmp_path, rows, {"label": "y", "positive": 1}, model=model, blocks=2)
    observer = Following()
    result = trained(config, output=tmp_path, observer=observer)
    search = read_metrics(result["run"])["search"]
    table = {json.dumps(row["parameters"]["features"]): row["mean"] or 0.0 for row in search["table"]}
    assert search["best"]["features"]["map"] == "leaves"
    assert table[json.dumps(FORESTS[1])] > max(value for map_, value in table.items() if "leaves" not in map_) + 0.01
    assert not any("does not try" in line for line in observer.lines)
    # Where LightGBM is missing the model of leaves still scores rows.
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    scores = load_model(f"{result['run']}/model").decision_function(rows[["a", "b", "c"]].to_numpy())
    assert auc_of(rows["y"].to_numpy(), scores) > 0.95
    few = ("model.lam=1e-1", f"data.source.source={tmp_path}/few.csv")
    other = trained(config, *few, output=tmp_path, observer=observer)
    assert any("does not try leaves" in line for line in observer.lines)
    assert FORESTS[0] not in [row["parameters"]["features"] for row in read_metrics(other["run"])["search"]["table"]]


@pytest.mark.parametrize("settings", [(), ("model.estimator=LinkClassifier", "model.link=logit")])
def test_auto_takes_bins_where_no_line_parts_the_classes(folder, tmp_path, settings):
    result = train(folder, tmp_path, "model.features=auto", "model.lam=null", "data.impute=median", *settings)
    search = read_metrics(result["run"])["search"]
    table, best = search["table"], search["best"]
    n_lams = len({row["parameters"]["lam"] for row in table})
    maps = [row["parameters"]["features"] for row in table[::n_lams]]
    assert maps == [None, {"map": "bins"}, {"map": "bins"}, *LANDMARKS]
    assert [row["parameters"]["monotone"] for row in table[::n_lams]] == [None, "auto", None, None, None]
    assert len(table) == 5 * n_lams
    assert best["features"] is not None
    first = [(row["parameters"]["features"], row["folds"][0]) for row in table if row["folds"][0] is not None]
    chosen, plain = (max(value for map_, value in first if map_ == which) for which in (best["features"], None))
    assert chosen > plain + 0.1
    about = load_model(f"{result['run']}/model").about
    assert about["parameters"]["features"] == best["features"]
    assert about["parameters"]["lam"] == best["lam"]
    assert all(said in page_of(result) for said in ("simplest feature map", "features: auto", "lam: null"))
    assert list(result["seconds"]) == ["data", "search", "fit", "evaluate"]
    repeated = load_train(f"{result['run']}/config.yaml").model
    assert repeated.chooses_features
    assert repeated.lam is None


def test_a_lam_that_is_given_is_kept_and_threads_do_not_change_a_bit(folder: Path, tmp_path: Path) -> None:
    result = train(folder, tmp_path, "model.features=auto")
    assert bits(train(folder, tmp_path, "model.features=auto", "cluster={kind: none, n_jobs: 2}")) == bits(result)
    assert [row["parameters"] for row in read_metrics(result["run"])["search"]["table"]] == [
        {"features": {"map": "bins"}, "monotone": monotone, "lam": 0.01} for monotone in ("auto", None)
    ]


def test_auto_chooses_by_what_decisions_cost(folder: Path, tmp_path: Path) -> None:
    cost = "model.features={map: auto, metric: expected_cost, false_positive: 1, miss: 4}"
    result = train(folder, tmp_path, cost, "operating_point={cost: {false_positive: 1, miss: 4}}")
    search = read_metrics(result["run"])["search"]
    assert search["metric"] == "expected_cost@1,4"
    assert min(row["mean"] for row in search["table"]) <= search["score"] < 4.0
    with pytest.raises(ValueError, match="needs miss"):
        ModelConfig(features={"map": "auto", "metric": "expected_cost", "false_alarm": 1})  # the key of 0.4.0


def test_auto_for_the_top_chooses_by_the_partial_auc_in_runs_and_in_searches(folder: Path, tmp_path: Path) -> None:
    result = train(folder, tmp_path, "model.features=auto", "model.max_fpr=0.2")
    search = read_metrics(result["run"])["search"]
    assert (search["metric"], search["rule"]) == ("shrunk_partial_auc@0.2", "best")
    assert {row["parameters"]["max_fpr"] for row in search["table"]} == {0.2, None}
    assert search["score"] == max(row["mean"] for row in search["table"])
    assert search["interval"][0] <= search["score"] <= search["interval"][1]
    for model, share in (("max_fpr: 0.2", 0.2), ("max_false_positives: 9", 9 / result["n_neg"])):
        settings = (*GRID, f"model={{tol: 1e-2, features: auto, {model}}}")
        of_search = searched(folder / "config.yaml", *settings, output=tmp_path / "best")
        assert (of_search["metric"], of_search["rule"]) == (f"shrunk_partial_auc@{share}", "best")
    settings = (*GRID, "model={features: auto, max_fpr: 0.2}", "metric=auc")
    told = load_cv(str(folder / "config.yaml"), settings, str(tmp_path))
    assert told.named_metric.name == "auc"


def test_cv_tries_the_same_maps_in_its_grid(folder: Path, tmp_path: Path) -> None:
    settings = (*GRID, "model={tol: 1e-2, features: auto}", "data.impute=median")
    search = searched(folder / "config.yaml", *settings, output=tmp_path)
    assert search["rule"] == "simplest"
    maps = [row["parameters"]["features"] for row in search["table"]]
    assert maps == [None, {"map": "bins"}, {"map": "bins"}, *LANDMARKS]
    assert [row["parameters"]["monotone"] for row in search["table"]] == [None, "auto", None, None, None]
    assert search["best"]["features"] is not None
    assert load_model(f"{search['run']}/model").about["parameters"]["features"] == search["best"]["features"]
    named = load_cv(str(folder / "config.yaml"), [*settings, "grid.features=[bins]"], str(tmp_path))
    assert (named.model.chooses_features, named.rule) == (False, "best")
    assert [setting["features"] for setting in named.settings] == ["bins"]
    readable = [*settings, "model.features={map: auto, readable: true}"]
    search = searched(folder / "config.yaml", *readable, output=tmp_path / "readable")
    maps = [row["parameters"]["features"] for row in search["table"]]
    assert maps == [None, {"map": "bins"}, {"map": "bins"}, {"map": "bins", "interactions": 3}]


# ---- resumed, direct, folds ---------------------------------------------------------------------------------------------


def test_a_run_that_was_lost_resumes_with_the_same_bits(folder: Path, tmp_path: Path) -> None:
    settings = ("model.features=auto", "model.tol=1e-4")
    whole = train(folder, tmp_path / "whole", *settings)
    assert whole["passes"] > 7
    rounds = itertools.count(1)

    def lose(record: Any) -> None:
        if next(rounds) == 7:
            raise ConnectionError

    lost = (folder / "config.yaml", *settings, "checkpoint.rounds=2")
    with pytest.raises(ConnectionError):
        trained(*lost, output=tmp_path / "lost", observer=Following(lose))
    resumed = trained(*lost, output=tmp_path / "lost", observer=(observer := Following()))
    assert any("resume" in line for line in observer.lines), observer.lines
    assert bits(resumed) == bits(whole)
    assert resumed["certificate"] == whole["certificate"]


def test_the_workers_may_read_the_files_themselves(folder: Path, tmp_path: Path) -> None:
    result = train(folder, tmp_path, "data.direct=true", "model.features={map: bins, bins: 8}")
    assert result["metrics"]["train_auc"] > 0.9


def test_folds_keep_missing_values(folder: Path, tmp_path: Path) -> None:
    grid = ("grid={features: [{map: bins, bins: 4}, bins]}", "folds={number: 2}")
    search = searched(folder / "config.yaml", *grid, "rule=simplest", output=tmp_path / "search")
    few_bins, bins = (row["folds"] for row in search["table"])
    assert few_bins != bins
    with pytest.raises(InputError, match="instead of None"):
        load_cv(str(folder / "config.yaml"), [*grid, "grid.features=[bins, null]"], None)

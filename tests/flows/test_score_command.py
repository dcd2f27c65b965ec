"""`aucdist score`: the scores of a run's model, for any data set."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file
from support.command_line import refused, result_of, run, sets

from aucdist.data.shards.reading import read
from aucdist.data.sources import Source
from aucdist.model import load_model


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    settings = sets("cluster=none", "blocks=2", "model.tol=0.05", "model.lam=0.01", "data.test=null")
    return Path(result_of("train", "digits", "--output", folder, *settings)["run"], "model")


def test_a_data_set_is_scored(tmp_path: Path, model: Path) -> None:
    stdout, stderr = run("score", model, "digits", tmp_path / "scores", "--json")
    result = json.loads(stdout)
    assert {key: result[key] for key in ("output", "rows", "parts")} == {
        "output": str(tmp_path / "scores"), "rows": 1797, "parts": 1,
    }  # fmt: skip
    stages = [line for line in stderr.splitlines() if not line.startswith(" ")]
    assert stages == ["look at the files", "score", "write the summary"]
    scores = pd.read_parquet(tmp_path / "scores")
    expected = load_model(str(model)).decision_function(read(Source(source="digits", format="embedded")).block.X)
    assert scores["score"].tolist() == expected.tolist()
    for same in (model, model.parent):  # the run folder means the model in it
        assert run("score", same, "digits", tmp_path / "scores")[0] == f"{tmp_path / 'scores'}: 1,797 rows in 1 part\n"


def test_contributions_stand_beside_the_scores(tmp_path: Path, model: Path) -> None:
    run("score", model, "digits", tmp_path / "plain")
    run("score", model, "digits", tmp_path / "scores", "--contributions")
    plain, table = pd.read_parquet(tmp_path / "plain"), pd.read_parquet(tmp_path / "scores")
    loaded = load_model(str(model))
    names = [*loaded.contribution_names(), "adds_rounding"]
    assert list(table) == [*plain, *names]
    pd.testing.assert_frame_equal(table[list(plain)], plain)
    total = np.zeros(len(table))
    for name in names:
        total = total + table[name].to_numpy()
    assert total.tolist() == plain["score"].tolist()
    X = read(Source(source="digits", format="embedded")).block.X
    np.testing.assert_array_equal(table[names[:-1]].to_numpy(), loaded.explain(X).to_numpy())
    said = refused("score", model, "digits", tmp_path / "plain", "--contributions")
    assert "name another folder" in " ".join(said.split())


def test_a_category_that_is_missing_only_in_new_rows_needs_two_keys_which_the_message_names(tmp_path: Path) -> None:
    r = np.random.default_rng(0)
    table = pd.DataFrame({"x": r.normal(size=200), "c": r.choice(["a", "b"], 200)})
    table.assign(y=(table["x"] > 1).astype(int)).to_csv(tmp_path / "t.csv", index=False)
    table.loc[50, "c"] = None
    table.to_csv(tmp_path / "new.csv", index=False)
    strict = sets("missing=refuse", "unknown=error")
    run("init", tmp_path / "t.csv", "--label", "y", "--output", tmp_path / "t.yaml", *strict)
    first, second, *_ = (tmp_path / "t.yaml").read_text().splitlines()
    assert (first, second) == (
        "# Written by `aucdist init` from the 200 rows of t.csv.",
        "# Change what is wrong. Then:",
    )
    linear = sets("model.features=null", "baselines=false", "data.test=null", "cluster=none")
    trained = result_of("train", tmp_path / "t.yaml", "--output", tmp_path / "runs", *linear)["run"]
    score = ("score", trained, tmp_path / "new.csv", tmp_path / "scores")
    said = " ".join(refused(*score).split())
    assert "line 52, column 'c': the value is missing ('')" in said
    assert said.endswith("`--set missing=keep --set unknown=ignore`")
    assert "no training row had a missing value in this column" in " ".join(
        refused(*score, *sets("missing=keep")).split()
    )
    result = result_of(*score, *sets("missing=keep", "unknown=ignore"))
    assert (result["rows"], result["missing"], result["unknown"]) == (200, {"c": 1}, {})
    assert pd.read_parquet(tmp_path / "scores")["row_id"].tolist() == list(range(200))


@pytest.mark.parametrize(("data", "features"), [("digits", "bins"), ("sparse.svm", "null"), ("sparse.svm", "bins")])
def test_scores_have_the_bits_of_the_run(tmp_path: Path, data: str, features: str) -> None:
    if data != "digits":
        r = np.random.default_rng(0)
        X = sp.random(400, 30, 0.3, "csr", random_state=0, data_rvs=lambda n: r.normal(size=n))
        y = np.where(r.normal(size=400) + X[:, 0].toarray().ravel() > 0.5, 1, -1)
        dump_svmlight_file(X, y, str(tmp_path / data), zero_based=False)
        data = str(tmp_path / data)
    settings = ["cluster=none", "model.tol=0.05", f"model.features={features}", "data.test={fraction: 0.4, seed: 1}"]
    if data != "digits":
        settings.insert(0, f"data={{source: {{source: {data}, format: svmlight}}}}")
    folder = result_of("train", "digits", "--output", tmp_path / "runs", *sets(*settings))["run"]
    test_rows = pd.read_parquet(f"{folder}/scores.parquet").set_index("row_id").sort_index()
    run("score", f"{folder}/model", data, tmp_path / "scores")
    scores = pd.read_parquet(tmp_path / "scores").set_index("row_id")["score"]
    assert scores.loc[test_rows.index].tolist() == test_rows["score"].tolist()


@pytest.mark.usefixtures("on_shared_workers")
def test_shards_are_scored_on_workers(tmp_path: Path, model: Path) -> None:
    run("shard", "digits", tmp_path / "shards", "--rows-per-shard", 500)
    run("score", model, tmp_path / "shards", tmp_path / "scores", "--cluster", "local")
    run("score", model, "digits", tmp_path / "here")
    scores = pd.read_parquet(tmp_path / "scores").sort_values("row_id", ignore_index=True)
    assert len(list((tmp_path / "scores").glob("*.parquet"))) == 4
    pd.testing.assert_frame_equal(scores, pd.read_parquet(tmp_path / "here"))

"""`aucdist audit`: the page and the JSON file of a run, figures of named groups, contributions, and the same bits again."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.command_line import run as command
from support.linear_models import linear_model
from support.runs import write_config

from aucdist.data.block import Block
from aucdist.data.dataset import Schema
from aucdist.data.preprocess import Preprocessor
from aucdist.metrics import operating_point, roc_auc_score
from aucdist.model import load_model
from flows import audit
from flows.run_folder.folder import read_scores


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, random, n = tmp_path_factory.mktemp("audit"), np.random.default_rng(0), 3000
    debts, job = random.poisson(1.2, n), random.choice(["none", "some"], n)
    late = random.random(n) < 1 / (1 + np.exp(2.5 - 0.9 * debts - (job == "none")))
    region = np.where(random.random(n) < 0.01, "", random.choice(["north", "south"], n))
    columns = {"debts": debts, "years": random.poisson(6, n), "job": job, "sex": random.choice(["f", "m"], n)}
    table = pd.DataFrame(columns).assign(region=region, late=np.where(late, "yes", "no"))
    source = {"label": "late", "positive": "yes", "drop": ["sex", "region"], "categorical": ["job"]}
    model = {"lam": 0.001, "calibration": "logit", "monotone": {"debts": "increasing"}}
    point, groups = {"recall": 0.7, "confidence": 0.95}, {"groups": ["sex", "region"]}
    more = {"operating_point": point, "audit": groups, "baselines": False, "output": str(folder / "runs")}
    write_config(folder, table, source, {"split": {"fraction": 0.3}}, model=model, **more)
    return folder


@pytest.fixture(scope="module")
def run(folder: Path) -> Path:
    return Path(json.loads(command("train", folder / "config.yaml", "--json")[0])["run"])


@pytest.fixture(scope="module")
def record(run: Path) -> dict:
    lock = run.parent / "lock.txt"
    lock.write_text("numpy==1.0\n")
    json.loads(command("audit", run, "--lock", lock, "--json")[0])
    return dict(json.loads((run / "audit.json").read_text()))


def test_groups_are_those_of_the_test_rows(folder: Path, run: Path, record: dict) -> None:
    rows, scores = pd.read_csv(folder / "rows.csv", keep_default_na=False), read_scores(str(run))
    test = rows.loc[scores["row_id"]].reset_index(drop=True)
    assert {(row["column"], row["value"]) for row in record["groups"]} == {
        ("sex", "f"), ("sex", "m"), ("region", "north"), ("region", "south"), ("region", "(missing)"),
    }  # fmt: skip
    assert "sex" not in "".join(load_model(str(run)).schema.feature_names)
    for row in record["groups"]:
        own = (test[row["column"]] == row["value"].replace("(missing)", "")).to_numpy()
        y, s = (test["late"][own] == "yes").to_numpy(), scores["score"][own].to_numpy()
        assert (row["rows"], row["positives"]) == (own.sum(), y.sum())
        if "auc" in row:
            assert row["auc"]["value"] == pytest.approx(roc_auc_score(y, s))
            point = operating_point(y, s, 0.0)
            for name in ("recall", "fpr", "alerts"):
                expected = getattr(point, name)
                assert row[name] == {"value": expected.value, "interval": pytest.approx([expected.low, expected.high])}


def test_contributions_are_all_the_large_ones(folder: Path, run: Path, record: dict) -> None:
    model, scores = load_model(str(run)), read_scores(str(run))
    test = pd.read_csv(folder / "rows.csv", keep_default_na=False).loc[scores["row_id"]]
    table = model.explain(test)[["debts", "years", "job"]]
    raised = (table - table.mean())[(scores["score"] > 0).to_numpy()].clip(lower=0)
    named = raised.div(raised.sum(axis=1), axis=0) >= 0.1
    contributions = record["contributions"]
    assert contributions["alerts"] == len(raised)
    shares = {column["column"]: column["alerts"] for column in contributions["columns"]}
    assert shares == pytest.approx({name: share for name, share in named.mean().items() if share > 0})
    assert contributions["most_of_an_alert"] == named.sum(axis=1).max()


def test_rows_that_were_split_by_time_are_read_again_without_this_column(folder: Path, tmp_path: Path) -> None:
    settings = [f"--set={key}" for key in ("data.split={time: years, last: 0.3}", f"output={tmp_path}")]
    run = json.loads(command("train", folder / "config.yaml", *settings, "--json")[0])["run"]
    assert json.loads(command("audit", run, "--json")[0])["contributions"]["alerts"] > 0


def test_the_features_of_a_hashed_column_are_one_column() -> None:
    schema = Schema(("v", "h#0", "h#1"), "y", ("1",), ("0",), {}, {"h": 2})
    scaling = Preprocessor((), "none", None, None)
    model = linear_model(np.array([1.0, 2.0, 3.0]), 0.0, schema, scaling, {})
    adds, _ = audit._contributions(model, Block.of(np.array([[1.0, 1.0, 1.0]]), np.array([1])))
    assert adds.to_dict("list") == {"v": [1.0], "h": [5.0]}


def test_page_and_record_have_what_a_reviewer_asks_for(run: Path, record: dict) -> None:
    page = (run / "audit.html").read_text()
    about = json.loads((run / "metrics.json").read_text())
    for article in (11, 12, 13, 14, 15):
        assert f"(article {article})" in page
    assert "does not claim conformity" in page
    assert record["directions"] == {"debts": "increasing"}
    assert record["operating_point"]["guarantee"] == about["operating_point"]["guarantee"]
    assert {"data", "weights.npy", "model", "test scores", "code", "packages", "lock file"} == set(record["digests"])
    assert record["digests"]["data"] == about["data"]["fingerprint"]
    assert all(digest in page for digest in record["digests"].values())
    assert record["code_is_that_of_the_run"]
    calibration, scores = record["calibration"], read_scores(str(run))
    p = load_model(str(run)).probability(scores["score"].to_numpy())[:, 1]
    assert calibration["expected"] == pytest.approx(p.sum())
    assert sum(band["rows"] for band in calibration["bands"]) == len(scores)
    assert "confidence, the threshold guarantees a recall of at least 70\u00a0%" in page


def test_audit_verifies_that_a_run_has_the_same_bits(run: Path, record: dict) -> None:
    same = json.loads(command("audit", run, "--verify", "--json")[0])["same"]
    assert {name: record["digests"][name] for name in same} == same
    changed = json.loads(command("threshold", run, "--recall", "0.5", "--json")[0])["run"]
    assert "test rows and decisions" in json.loads(command("audit", changed, "--verify", "--json")[0])["same"]


def test_other_data_or_weights_are_found(folder: Path, run: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(run, other)
    text = (other / "config.yaml").read_text()
    (other / "config.yaml").write_text(text.replace("lam: 0.001", "lam: 0.01"))
    error = command("audit", other, "--verify", code=1)[1]
    assert "the repeated run differs from the first one in: model, test scores, weights.npy" in error
    rows = (folder / "rows.csv").read_text()
    try:
        (folder / "rows.csv").write_text(rows + "9,9,none,f,north,yes\n")
        error = command("audit", run, "--verify", code=1)[1]
        assert "the repeated run differs from the first one in: data" in error
        assert "the data have changed since the run" in error
        command("audit", run, "--output", tmp_path)
        assert "data have changed" in json.loads((tmp_path / "audit.json").read_text())["contributions"]["not_known"]
    finally:
        (folder / "rows.csv").write_text(rows)


def test_groups_that_are_not_there_end_the_run_before_its_fit(folder: Path) -> None:
    for groups, named in (("[town]", "audit.groups: "), ("[]", "audit.groups")):
        said = command("train", folder / "config.yaml", "--set", f"audit.groups={groups}", code=2)[1]
        assert named in said
        assert "round" not in said


def test_a_run_that_is_damaged_is_named(run: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(run, damaged)
    for text, said in (
        ("a: [", "damaged/config.yaml, line 1"),
        ("nosuch: 1", "damaged/config.yaml: unknown key 'nosuch'"),
    ):
        (damaged / "config.yaml").write_text(text)
        assert f"error: {tmp_path}/{said}" in command("audit", damaged, "--verify", code=2)[1]
    about = json.loads((damaged / "metrics.json").read_text())
    (damaged / "metrics.json").write_text(json.dumps(about | {"metrics": {}}))
    assert "damaged lacks results that an audit needs: " in command("audit", damaged, code=2)[1]

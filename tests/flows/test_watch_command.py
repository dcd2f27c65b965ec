"""`aucdist watch`: batches against the training rows, labels that come later, alarms, the page and the state."""

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.command_line import result_of, run, sets

from aucdist import PairwiseHingeClassifier
from aucdist.data.shards.reading import open_rows
from aucdist.data.storage.faults import storage_errors
from aucdist.errors import InputError
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.ranking import auc
from aucdist.model import as_model, load_model
from aucdist.store import lease
from flows.watch_state import read_labels

MODEL = "model={calibration: logit, lam: 0.01, tol: 0.05, max_fpr: 0.2}"
FORMER_KEYS = {"metrics": "measures", "comparison": "found", "on_test_rows": "promised"}
SETTINGS = ("cluster=none", MODEL, "operating_point={fpr: 0.1}")


def week(seed: int, n: int = 1500, shift: float = 0.0, new_town: float = 0.0, missing: float = 0.02) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.normal(size=(n, 3)), columns=["age", "income", "debt"])
    town = np.array(["north", "south", "west"])[rng.integers(0, 3, n)]
    table["town"] = np.where(rng.random(n) < new_town, "island", town)
    slope = 1.2 * table["age"] + table["debt"] + (table["town"] == "west")
    table["left"] = np.where(rng.random(n) < 1 / (1 + np.exp(3.0 - slope)), "yes", "no")
    table["age"] += shift
    table.loc[rng.random(n) < missing, "income"] = np.nan
    return table


def trained(folder: Path, *more: str) -> str:
    week(0, 4000).to_parquet(folder / "train.parquet")
    reading = "format: parquet, label: left, positive: 'yes', missing: keep, categorical: [town], unknown: ignore"
    source = f"{{source: {folder}/train.parquet, {reading}}}"
    data = f"data={{source: {source}, test: {{fraction: 0.4}}, impute: median, scale: standard}}"
    return str(result_of("train", "digits", "--output", folder / "runs", *sets(*SETTINGS, data, *more))["run"])


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("watch")
    run("promote", trained(folder), folder / "store")
    return str(folder / "store")


def watched(store: object, *args: object, code: int = 0) -> dict:
    return result_of("watch", store, *args, code=code)


def test_a_batch_like_the_training_rows_and_its_labels_raise_no_alarm(store: str, tmp_path: Path) -> None:
    table, state = week(1), ("--state", tmp_path / "state")
    table.to_parquet(tmp_path / "monday.parquet")
    result = watched(store, tmp_path / "monday.parquet", *state)
    assert (result["batch"], result["rows"], result["alarms"]) == ("monday", 1500, [])
    assert {column["name"] for column in result["comparison"]["columns"]} == {"age", "income", "debt", "town"}
    again = watched(store, tmp_path / "monday.parquet", *state)["comparison"]
    assert again == result["comparison"]  # once more: nothing is added
    labels = table[["left"]].assign(row_id=range(1500))
    labels.loc[1000:, "left"] = None
    labels.to_parquet(tmp_path / "labels.parquet")
    known = watched(store, "--labels", tmp_path / "labels.parquet", *state)["performance"]
    assert (known["labelled"], known["unlabelled"], known["missing"], known["new"]) == (1000, 500, 500, 1000)
    model = load_model(store)
    scores = pd.read_parquet(tmp_path / "state" / "scores" / "monday")["score"].to_numpy()
    y = np.where(table["left"] == "yes", 1, -1)
    assert known["metrics"]["auc"]["value"] == auc(ScoreCounts.from_scores(y[:1000], scores[:1000]))
    assert known["max_fpr"] == 0.2
    assert set(known["metrics"]) == set(known["on_test_rows"]["metrics"]) == {
        "auc", "partial_auc", "recall", "fpr", "precision", "calibration"
    }  # fmt: skip
    expected = (y[:1000] == 1).sum() / model.probability(scores[:1000])[:, 1].sum()
    assert known["metrics"]["calibration"]["value"] == pytest.approx(expected)
    table[["left"]].assign(row_id=range(1500))[1000:].to_csv(tmp_path / "late.csv", index=False)
    late = watched(store, "--labels", tmp_path / "late.csv", *state)["performance"]
    assert (late["labelled"], late["unlabelled"], late["new"], late["alarms"]) == (1500, 0, 500, [])


def test_scores_of_aucdist_score_are_taken(store: str, tmp_path: Path) -> None:
    week(2).to_parquet(tmp_path / "rows.parquet")
    run("score", store, tmp_path / "rows.parquet", tmp_path / "scores")
    scored = watched(store, tmp_path / "rows.parquet", "--scores", tmp_path / "scores", "--state", tmp_path / "a")
    made = watched(store, tmp_path / "rows.parquet", "--state", tmp_path / "b")
    assert scored["comparison"] == made["comparison"]
    assert not (tmp_path / "a" / "scores").exists()
    week(3, 1400).to_parquet(tmp_path / "fewer.parquet")
    args = ("--scores", tmp_path / "scores", "--state", tmp_path / "a")
    refused = run("watch", store, tmp_path / "fewer.parquet", *args, code=2)[1]
    assert "has scores of 1,500 rows, but the batch has 1,400" in refused


def test_runs_are_told_from_one_another_where_no_store_names_versions(tmp_path: Path) -> None:
    week(4).to_parquet(tmp_path / "rows.parquet")
    week(4)[["left"]].assign(row_id=range(1500)).to_csv(tmp_path / "labels.csv", index=False)
    run_folder, other = (trained(tmp_path, f"model.lam={lam}") for lam in (0.01, 0.1))
    state = ("--state", tmp_path / "state")
    watched(run_folder, tmp_path / "rows.parquet", *state)
    for rows in ((tmp_path / "rows.parquet",), ("--labels", tmp_path / "labels.csv")):
        assert "another model" in run("watch", other, *rows, *state, code=2)[1]
    assert watched(run_folder, "--labels", tmp_path / "labels.csv", *state)["performance"]["labelled"] == 1500
    run("score", f"{run_folder}/model", tmp_path / "rows.parquet", tmp_path / "scores")
    scores = ("--scores", tmp_path / "scores", "--state", tmp_path / "taken")
    assert "has scores of another model" in run("watch", other, tmp_path / "rows.parquet", *scores, code=2)[1]
    run("promote", run_folder, tmp_path / "store")  # a copy is the same model
    assert watched(tmp_path / "store", tmp_path / "rows.parquet", *scores)["rows"] == 1500


def test_what_moves_is_named_with_exit_code_3_and_drawn(store: str, tmp_path: Path) -> None:
    state = tmp_path / "state"
    for number, change in enumerate(({}, {"shift": 1.0}, {"new_town": 0.2}, {"missing": 0.5})):
        week(10 + number, **change).to_parquet(tmp_path / f"week{number}.parquet")
    watched(store, tmp_path / "week0.parquet", "--state", state)
    moved, town, missing = (
        watched(store, tmp_path / f"week{n}.parquet", "--state", state, code=3)["alarms"] for n in (1, 2, 3)
    )
    assert {("moved", "age"), ("score", None)} <= {(alarm["what"], alarm["column"]) for alarm in moved}
    assert ("unknown", "town") in {(alarm["what"], alarm["column"]) for alarm in town}
    assert {alarm["column"] for alarm in missing} == {"income"}
    said = run("watch", store, tmp_path / "week1.parquet", "--state", state, code=3)[0]
    assert "ALARM: age has drifted: PSI" in said
    page = (state / "index.html").read_text(encoding="utf-8")
    assert page.index(">income<") < page.index(">debt<")  # by how far they have drifted lately
    assert page.count("<figure") == 6
    assert "The last batch, week3, raised" in page
    assert "http" not in page.replace("http-equiv", "")


def test_labels_that_do_worse_than_promised_raise_alarms(store: str, tmp_path: Path) -> None:
    table, state = week(20), ("--state", tmp_path / "state")
    table.to_parquet(tmp_path / "rows.parquet")
    watched(store, tmp_path / "rows.parquet", *state)
    rng = np.random.default_rng(0)
    y = np.where(rng.random(1500) < 0.3, "yes", "no")  # nothing to do with the features
    pd.DataFrame({"row_id": range(1500), "left": y}).to_csv(tmp_path / "labels.csv", index=False)
    alarms = watched(store, "--labels", tmp_path / "labels.csv", *state, code=3)["alarms"]
    assert {alarm["what"] for alarm in alarms} == {"auc", "partial_auc", "recall", "calibration"}
    alarms = watched(store, "--labels", tmp_path / "labels.csv", "--alerts-only", *state, code=3)["alarms"]
    assert {alarm["what"] for alarm in alarms} == {"calibration"}
    said = run("watch", store, tmp_path / "rows.parquet", "--alerts-only", *state, code=2)[1]
    assert "--alerts-only says which rows have labels" in said


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (pd.DataFrame({"id": [1], "left": ["yes"]}), "has no column 'row_id'"),
        (pd.DataFrame({"row_id": [1, 1], "left": ["yes", "no"]}), "row_id 1 occurs twice"),
        (pd.DataFrame({"row_id": [1], "left": ["maybe"]}), r"class 'maybe' \(1 row\) is not among the classes"),
        (pd.DataFrame({"row_id": [1500], "left": ["yes"]}), "1 label has a row_id that batch rows does not have"),
        (pd.DataFrame({"row_id": [-1], "left": ["yes"]}), "must be whole numbers from 0"),
        (pd.DataFrame({"row_id": [1], "a": ["yes"], "b": ["no"]}), "which of 'a', 'b' is the label"),
    ],
)  # fmt: skip
def test_wrong_labels_are_refused_and_change_nothing(store, tmp_path, labels, message):
    week(30).to_parquet(tmp_path / "rows.parquet")
    watched(store, tmp_path / "rows.parquet", "--state", tmp_path / "state")
    before = sorted((tmp_path / "state").rglob("*"))
    labels.to_parquet(tmp_path / "labels.parquet")
    said = run("watch", store, "--labels", tmp_path / "labels.parquet", "--state", tmp_path / "state", code=2)[1]
    assert re.search(message, said)
    assert sorted((tmp_path / "state").rglob("*")) == before


def test_a_class_called_none_is_no_missing_label(tmp_path: Path) -> None:
    model = as_model(
        PairwiseHingeClassifier().fit([[0.0], [1.0], [2.0], [3.0]], ["None", "None", "fraud", "fraud"]), "y"
    )
    (tmp_path / "labels.csv").write_text("row_id,y\n0,None\n1,fraud\n2,\n3,NA\n")
    labels, missing = read_labels(str(tmp_path / "labels.csv"), model)
    assert (labels["y"].tolist(), missing) == ([-1, 1], 2)
    (tmp_path / "LABELS.CSV").write_text("row_id;y\n0;None\n1;fraud\n")  # of a spreadsheet
    assert read_labels(str(tmp_path / "LABELS.CSV"), model)[0]["y"].tolist() == [-1, 1]


def test_of_two_that_add_labels_at_once_one_is_refused_and_neither_undoes_the_other(store: str, tmp_path: Path) -> None:
    table, state = week(50), ("--state", tmp_path / "state")
    table.to_parquet(tmp_path / "rows.parquet")
    watched(store, tmp_path / "rows.parquet", *state)
    labels = table[["left"]].assign(row_id=range(1500))
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    labels[:700].to_csv(first, index=False)
    labels[700:].to_csv(second, index=False)
    with lease(str(tmp_path / "state"), "watch --labels of batch rows"):
        said = run("watch", store, "--labels", first, *state, code=2)[1]
    assert "is in use by watch --labels of batch rows on" in said
    assert watched(store, "--labels", second, *state)["performance"]["labelled"] == 800
    assert watched(store, "--labels", first, *state)["performance"]["labelled"] == 1500


def test_wrong_options_are_refused(store: str, tmp_path: Path) -> None:
    week(40).to_parquet(tmp_path / "rows.parquet")
    week(41).to_parquet(tmp_path / "more.parquet")
    state = ("--state", tmp_path / "state")
    assert "nothing to watch" in run("watch", store, *state, code=2)[1]
    assert "no batch was watched" in run("watch", store, "--labels", tmp_path / "x.csv", *state, code=2)[1]
    watched(store, tmp_path / "rows.parquet", *state)
    for args, said in (
        ((tmp_path / "more.parquet", "--batch", "rows"), "was watched already, with other rows or another model"),
        (("--labels", tmp_path / "x.csv", "--batch", "y"), "no rows of batch 'y' were watched: choose one of rows"),
    ):
        assert said in run("watch", store, *args, *state, code=2)[1]
    alone = f"{store}/{next(p.name for p in Path(store).iterdir() if p.name.startswith('version'))}"
    assert "name a folder for the results with --state" in run("watch", alone, tmp_path / "rows.parquet", code=2)[1]


def test_labels_without_a_batch_belong_to_the_last_one(store, tmp_path, monkeypatch):
    """Also if the clock was set back, and never to an earlier one if the last one could not be read."""
    rows, state = tmp_path / "rows.csv", ("--state", tmp_path / "state")
    labels = week(41)[["left"]].rename_axis("row_id").reset_index()
    labels.to_csv(tmp_path / "labels.csv", index=False)
    labels.head(0).to_csv(tmp_path / "none.csv", index=False)

    class SetBack(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> "SetBack":
            return cls(2001, 1, 1, tzinfo=tz)

    for batch, seed in (("first", 40), ("second", 41)):
        week(seed).to_parquet(tmp_path / f"{batch}.parquet")
        watched(store, tmp_path / f"{batch}.parquet", *state)
        monkeypatch.setattr("flows.watch.datetime", SetBack)
    assert watched(store, "--labels", tmp_path / "none.csv", *state)["performance"]["labelled"] == 0
    assert watched(store, "--labels", tmp_path / "labels.csv", *state)["batch"] == "second"
    rows.write_text("nothing,of\n1,2\n")
    assert watched(store, rows, "--batch", "third", *state, code=3)["rows"] == 0
    said = run("watch", store, "--labels", tmp_path / "labels.csv", *state, code=2)[1]
    assert "no rows of batch 'third' were watched: choose one of first, second" in said
    (tmp_path / "state" / "batches" / "third.json").write_text("{")
    said = run("watch", store, "--labels", tmp_path / "labels.csv", *state, code=2)[1]
    assert "the last batch cannot be determined, so name one with --batch" in said


def test_a_new_category_and_rows_that_cannot_be_read_are_alarms(tmp_path: Path) -> None:
    """That is what one watches for: an alarm and exit code 3, and not an error of whoever watches."""
    week(0, 1000).to_csv(tmp_path / "train.csv", index=False)
    reading = "format: csv, label: left, positive: 'yes', missing: keep, categorical: [town]"
    data = f"data={{source: {{source: {tmp_path}/train.csv, {reading}}}, test: {{fraction: 0.4}}, impute: median}}"
    made = result_of("train", "digits", "--output", tmp_path / "runs", *sets(*SETTINGS, data))["run"]
    store = tmp_path / "store"
    run("promote", made, store)
    table = week(1, 200)
    table.loc[7, "town"] = "island"
    table.to_csv(tmp_path / "new.csv", index=False)
    new = watched(store, tmp_path / "new.csv", code=3)
    assert [(alarm["what"], alarm["column"], alarm["value"]) for alarm in new["alarms"]] == [("new", "town", 0.005)]
    told = run("watch", store, tmp_path / "new.csv", code=3)[0]
    assert "ALARM: town: 0.50 % of the rows have a category that training did not have" in told
    lines = (tmp_path / "new.csv").read_text().splitlines()
    lines[5] = "oops" + lines[5][lines[5].index(",") :]
    (tmp_path / "bad.csv").write_text("\n".join(lines) + "\n")
    bad = watched(store, tmp_path / "bad.csv", code=3)
    assert [alarm["what"] for alarm in bad["alarms"]] == ["unreadable"]
    assert "oops" in bad["alarms"][0]["text"]
    assert bad["rows"] == 0
    assert "batch 'bad'" in run("watch", store, "--labels", tmp_path / "new.csv", "--batch", "bad", code=2)[1]
    both = run("watch", store, tmp_path / "bad.csv", "--labels", tmp_path / "new.csv", code=3)[0]
    assert "oops" in both
    assert "Their labels were not added" in both
    week(1, 200).to_csv(tmp_path / "bad.csv", index=False)  # mended: it takes the place of what could not be read
    assert watched(store, tmp_path / "bad.csv")["rows"] == 200
    assert "no such file" in run("watch", store, tmp_path / "none.csv", code=2)[1]


def test_a_store_that_is_out_is_no_drift_and_what_was_unreadable_is_read_again(store, tmp_path, monkeypatch):
    week(1).to_parquet(tmp_path / "rows.parquet")
    args = (store, tmp_path / "rows.parquet", "--state", tmp_path / "state")

    def failing(error: Exception) -> None:
        def open_rows(*_: object, **__: object) -> None:
            with storage_errors("s3://bucket/rows.parquet", "read"):
                raise error

        monkeypatch.setattr("flows.watch.open_rows", open_rows)

    failing(ConnectionResetError())
    assert "cannot be reached" in run("watch", *args, code=2)[1]
    assert not (tmp_path / "state" / "batches").exists()
    failing(InputError("a library that reads such files is missing"))
    assert [alarm["what"] for alarm in watched(*args, code=3)["alarms"]] == ["unreadable"]
    monkeypatch.undo()
    assert watched(*args)["rows"] == 1500


def test_a_batch_has_the_scores_of_its_own_rows_alone(store, tmp_path, monkeypatch):
    """Neither those of an attempt that was killed, nor of another process that watches a batch of the same name."""
    for name, seeds in (("killed", (1, 2)), ("rows", (3,))):
        (tmp_path / name).mkdir()
        for seed in seeds:
            week(seed).to_parquet(tmp_path / name / f"{seed}.parquet")
    state = ("--batch", "b", "--state", tmp_path / "state")
    killed, rows = ((f"{tmp_path}/{name}/", "--set", "format=parquet") for name in ("killed", "rows"))
    watched(store, *killed, *state)
    (tmp_path / "state" / "batches" / "b.json").unlink()

    def open_rows_late(*args: Any, **kwargs: Any) -> Any:
        monkeypatch.undo()
        watched(store, *rows, *state)
        return open_rows(*args, **kwargs)

    monkeypatch.setattr("flows.watch.open_rows", open_rows_late)
    assert "is being watched by another process" in run("watch", store, *killed, *state, code=2)[1]
    week(3)[["left"]].assign(row_id=range(1500)).to_csv(tmp_path / "labels.csv", index=False)
    performance = watched(store, "--labels", tmp_path / "labels.csv", *state)["performance"]
    assert (performance["labelled"], performance["unlabelled"]) == (1500, 0)
    alone = watched(store, *rows, "--labels", tmp_path / "labels.csv", "--state", tmp_path / "alone")
    assert performance["metrics"] == alone["performance"]["metrics"]


@pytest.mark.parametrize(("value", "said"), [(np.nan, "nan is not finite"), (None, "the value is missing")])
def test_scores_that_are_no_numbers_are_refused_by_their_row(store, tmp_path, value, said):
    week(1).to_parquet(tmp_path / "batch.parquet")
    run("score", store, tmp_path / "batch.parquet", tmp_path / "scores")
    part = tmp_path / "scores" / "part-00000.parquet"
    table = pq.read_table(part)
    scores = table["score"].to_pylist()
    scores[41] = value
    pq.write_table(table.set_column(table.column_names.index("score"), "score", pa.array(scores, pa.float64())), part)
    args = ("--scores", tmp_path / "scores", "--state", tmp_path / "s")
    told = run("watch", store, tmp_path / "batch.parquet", *args, code=2)[1]
    assert f"part-00000.parquet, row 42, column 'score': {said}" in told
    assert not (tmp_path / "s" / "batches").exists()


def test_one_damaged_batch_does_not_break_the_others(store: str, tmp_path: Path) -> None:
    state = tmp_path / "state"
    for name in ("monday", "tuesday"):
        week(1).to_parquet(tmp_path / f"{name}.parquet")
        watched(store, tmp_path / f"{name}.parquet", "--state", state)
    record = state / "batches" / "monday.json"
    sound = json.loads(record.read_text())
    week(1).to_parquet(tmp_path / "wednesday.parquet")
    for damaged in (b"\n", b"[]", b"{" * 10**5, b"\xff", json.dumps(sound | {"comparison": {}}).encode(), b"{}"):
        record.write_bytes(damaged)
        result = watched(store, tmp_path / "wednesday.parquet", "--state", state)
        assert len(result["damaged"]) == 1
        assert "monday.json is damaged" in result["damaged"][0]
        assert "Traceback" not in run("watch", store, tmp_path / "monday.parquet", "--state", state, code=2)[1]


def test_a_promise_is_tested_over_all_batches_together(tmp_path: Path) -> None:
    """Four weeks that keep it, then two whose labels are nearly all negative, which later files of labels mend."""
    point = "operating_point={precision: 0.2, confidence: 0.9, out_of_fold: true}"
    store, state = tmp_path / "store", ("--state", tmp_path / "state")
    run("promote", trained(tmp_path, "model.max_fpr=null", point), store)
    guarantee = json.loads(next(store.glob("version-*/metrics.json")).read_text())["operating_point"]["guarantee"]
    assert guarantee["meets_target"]
    evidence = []
    for number in range(6):
        table = week(100 + number, 1000)
        table.to_parquet(tmp_path / f"{number}.parquet")
        truth = table[["left"]].assign(row_id=range(len(table)))
        labels = truth.assign(left=truth["left"].where(truth["row_id"] < 100, "no")) if number > 3 else truth
        labels.to_csv(tmp_path / f"labels-{number}.csv", index=False)
        truth.to_csv(tmp_path / f"truth-{number}.csv", index=False)
        batch = (*state, "--batch", f"week-{number}")
        watched(store, tmp_path / f"{number}.parquet", *batch)
        result = watched(store, "--labels", tmp_path / f"labels-{number}.csv", *batch, code=0 if number < 4 else 3)
        kept = result["performance"]["guarantee"]
        scores = pd.read_parquet(tmp_path / "state" / "scores" / f"week-{number}")["score"]
        assert kept["rows"] == (scores > 0).sum()
        assert kept["bad"] == ((scores > 0) & (labels["left"] == "no")).sum()
        evidence.append(kept["evidence"])
    assert max(evidence[:4]) < 20 <= min(evidence[4:])
    alarm = next(alarm for alarm in result["alarms"] if alarm["what"] == "guarantee")
    assert (alarm["column"], alarm["p"]) == ("precision", pytest.approx(1 / evidence[5]))
    # Files of earlier versions, which had other names, are read as before.
    for kind in ("batches", "performance"):
        file = tmp_path / "state" / kind / "week-4.json"
        record = {FORMER_KEYS.get(key, key): value for key, value in json.loads(file.read_text()).items()}
        file.write_text(json.dumps(record))
        assert set(record) & set(FORMER_KEYS.values())
    printed = run("watch", store, *state, "--labels", tmp_path / "truth-5.csv", "--batch", "week-5", code=3)[0]
    assert "Guaranteed: precision at least 0.2; the e-value against it is " in printed
    watched(store, *state, "--labels", tmp_path / "truth-4.csv", "--batch", "week-4")
    again = watched(store, *state, "--labels", tmp_path / "truth-5.csv", "--batch", "week-5")
    assert again["performance"]["guarantee"]["evidence"] < 20


# ---- `aucdist watch` on a real cluster of two worker processes: the same counts as in one process


@pytest.mark.slow
def test_workers_find_what_one_process_finds(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name in ("train", "more"):
        table = pd.DataFrame(rng.normal(size=(3000, 3)), columns=list("abc"))
        table["y"] = (rng.random(3000) < 1 / (1 + np.exp(1.0 - table["a"]))).astype(int)
        table.to_parquet(tmp_path / f"{name}.parquet", row_group_size=500)
    source = f"{{source: {tmp_path}/train.parquet, format: parquet, label: y, positive: 1}}"
    runs = {}
    for cluster in ("none", "{kind: local, workers: 2}"):
        data = f"data={{source: {source}, test: {{fraction: 0.3}}}}"
        settings = sets(data, f"cluster={cluster}", "blocks=3", "model.tol=0.05")
        runs[cluster] = result_of("train", "digits", "--output", tmp_path / "runs", *settings)["run"]
    here, there = runs.values()
    for name in ("profile.json", "digests.npy"):
        assert Path(here, "model", name).read_bytes() == Path(there, "model", name).read_bytes()
    run("promote", here, tmp_path / "store")
    both = [
        watched(tmp_path / "store", tmp_path / "more.parquet", "--state", tmp_path / f"state{i}", *args)["comparison"]
        for i, args in enumerate(([], ["--cluster", "local"]))
    ]
    assert both[0] == both[1]
    scores = [pd.read_parquet(tmp_path / f"state{i}" / "scores" / "more") for i in range(2)]
    pd.testing.assert_frame_equal(*scores)


# ---- the figures on the page are those of the kept files --------------------------------------


DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = " ".join((DOCS / "pages" / "benchmarks.md").read_text(encoding="utf-8").split())


def test_the_page_tells_the_years_that_were_watched() -> None:
    years = pd.read_csv(DOCS / "benchmarks" / "watched-years.csv")
    of_sets = [
        f"{len(rows)} | {rows['weeks'].sum()} | {rows['false_alarms'].sum()} | {rows['found_in_week'].max()} |"
        for _, rows in years.groupby("set", sort=False)
    ]
    table = PAGE[PAGE.index("| what changes |") :]
    places = [table.find(cells) for cells in of_sets]
    assert -1 not in places
    assert table.count("| 3 | 156 |") == len(of_sets)
    assert table.count("| 3 | 156 | 1 | 1 |") == (years["false_alarms"] > 0).sum() == 1


def test_the_page_tells_how_often_models_were_promoted() -> None:
    table = pd.read_csv(DOCS / "benchmarks" / "promoted-models.csv")
    for row in table.itertuples():
        cells = f"| {row.share:.0%} | {row.correlation} | {row.equal} of {row.runs} | {row.better} of {row.runs} |"
        assert cells.replace("%", " %") in PAGE

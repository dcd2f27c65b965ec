"""Runs of several classes and of topics: each has the bits of its own fit, the model scores as the run did, the page holds."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from support.command_line import run as aucdist, sets
from support.digits import write_digits
from support.runs import Following, load_train, page_of

from aucdist import PairwiseHingeClassifier
from aucdist.engine.blocks import LocalBlocks
from aucdist.errors import InputError
from aucdist.export import to_json
from aucdist.model.files import load_model, load_two_classes
from flows.train.run import train as run_training


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Digits below 4, one row of a fifth class, and the same rows with topics."""
    made, y = tmp_path_factory.mktemp("classes"), load_digits(return_X_y=True)[1]
    rows = np.append(np.flatnonzero(y < 4)[:240], np.flatnonzero(y == 9)[:1])
    write_digits(made, rows, {"0": "even,zero", "1": "odd", "2": "even", "3": "odd,three"})
    return made


def config(folder: Path, source: str, more: str = "") -> Path:
    path = folder / "train.yaml"
    path.write_text(
        f"name: digits\ndata:\n  source: {source}\n  test: {{fraction: 0.25}}\nmodel: {{tol: 1.0e-2, lam: 1.0e-2}}\n"
        f"output: '{folder}/runs'\n{more}"
    )
    return path


def train(folder: Path, source: str, *options: str) -> tuple[dict, str]:
    out, err = aucdist("train", config(folder, source), "--json", *options)
    return json.loads(out), err


CSV = "{{source: '{0}/digits.csv', format: csv, label: digit, positive: each}}"
TOPICS = "{{source: '{0}/topics.svm', format: svmlight, labels: topics, positive: each}}"


@pytest.fixture(scope="module")
def whole(folder: Path) -> tuple[dict, str]:
    return train(folder, CSV.format(folder))


def test_a_run_of_several_classes(folder: Path, whole: tuple[dict, str]) -> None:
    result, err = whole
    assert "class '9' has 1 of 181 training rows, and is left out" in err
    assert [row["name"] for row in result["classes"]] == ["0", "1", "2", "3"]
    assert all(row["certificate"]["relative_gap"] <= 1e-2 for row in result["classes"])
    run = Path(result["run"])
    scores = pd.read_parquet(run / "scores.parquet")
    mean = np.mean([row["test_auc"] for row in result["classes"]])
    assert result["metrics"]["test_auc"] == pytest.approx(mean)
    assert result["metrics"]["test_accuracy"] == (scores["label"] == scores["prediction"]).mean()
    assert result["metrics"]["test_accuracy"] > 0.9
    assert set(pd.read_parquet(run / "history.parquet")["class"]) == {"0", "1", "2", "3"}
    page = page_of(result)
    assert "<dt>Mean test AUC</dt>" in page
    assert page.count('aria-label="ROC curve"') == 4
    assert '<th scope="row">Training rows</th><td><bdi>181</bdi>' in page
    assert "Positive class" not in page  # each of them is, in its turn

    # The test rows are as many of each class, and each model is that of its class alone on the training rows.
    table = pd.read_csv(folder / "digits.csv")
    test = table.loc[scores["row_id"], "digit"]
    assert test.value_counts().loc[[0, 1, 2, 3]].tolist() == [15, 15, 15, 15]
    left = table.drop(index=scores["row_id"])
    X = left.drop(columns="digit").to_numpy()
    model = load_model(str(run / "model"))
    for k in range(4):
        alone = PairwiseHingeClassifier(tol=1e-2, lam=1e-2).fit(X, left["digit"] == k)
        np.testing.assert_array_equal(model.models[k].coef, alone.coef_[0])


def _adds_up(model: Path, rows: Path, output: Path, scores: pd.DataFrame) -> None:
    """Check that contributions add up to the scores of each class, to the last bit."""
    aucdist("score", model, rows, output, "--set", "drop=[digit]", "--contributions")
    table = pd.read_parquet(output).set_index("row_id").loc[scores.index]
    for name in "0123":
        columns = [column for column in table if column.startswith("adds_") and column.endswith(f" {name}")]
        assert columns[-2:] == [f"adds_constant {name}", f"adds_rounding {name}"]
        assert len(columns) == 64 + 2
        assert table[f"adds_rounding {name}"].abs().max() < 1e-12
        total = np.zeros(len(table))
        for column in columns:
            total = total + table[column].to_numpy()
        assert total.tolist() == scores[f"score {name}"].tolist()


def test_scores_of_a_data_set_are_those_of_the_run(folder: Path, tmp_path: Path, whole: tuple[dict, str]) -> None:
    result, _ = whole
    run = Path(result["run"])
    aucdist("score", run / "model", folder / "digits.csv", tmp_path / "out", "--set", "drop=[digit]", "--top", 2)
    there = pd.read_parquet(tmp_path / "out").set_index("row_id")
    here = pd.read_parquet(run / "scores.parquet").set_index("row_id")
    there_too = there.loc[here.index]
    assert there_too["prediction"].tolist() == here["prediction"].tolist()
    assert there_too["top 1"].tolist() == there_too["prediction"].tolist()
    scores = there_too[[f"score {name}" for name in "0123"]].to_numpy()
    assert there_too["top 2"].tolist() == [str(k) for k in np.argsort(-scores, axis=1)[:, 1]]
    rows = (folder / "digits.csv", "--set", "drop=[digit]")
    _, err = aucdist("score", run / "model", rows[0], tmp_path / "no", *rows[1:], "--top", 5, code=2)
    assert "top is 5, but the model has 4 classes: give at most that" in err
    _adds_up(run / "model", folder / "digits.csv", tmp_path / "parts", there_too)
    model = load_model(str(run / "model"))
    for name in model.classes:
        assert there_too[f"score {name}"].tolist() == here[f"score {name}"].tolist()
    aucdist("export", run, "--to", "json", "--output", tmp_path / "model.json")
    described = json.loads((tmp_path / "model.json").read_text())
    assert (described["format"], described["topics"]) == ("aucdist models", False)
    each = zip(model.classes, model.models, model.spreads, strict=True)
    assert described["classes"] == [
        {"name": name, "spread": spread, "model": json.loads(to_json(own))} for name, own, spread in each
    ]
    _, err = aucdist("export", run, "--to", "scorecard", code=2)
    assert "has several classes" in err
    assert "give one of them, such as" in err
    rows += ("--rows", 3)
    text, _ = aucdist("explain", run, *rows, "--class", 1, "--class", 3)
    assert re.findall(r"^class (.*)$", text, re.MULTILINE) == ["1", "3"]
    alone, _ = aucdist("explain", run / "model" / "class-00001", *rows)
    assert re.findall(r"^row \d+", alone, re.MULTILINE) == re.findall(r"^row \d+", text, re.MULTILINE)[:3]
    aucdist("explain", run, *rows, "--output", tmp_path / "all.csv")
    table = pd.read_csv(tmp_path / "all.csv", dtype={"class": str})
    assert table["class"].tolist() == [name for name in "0123" for _ in range(3)]
    for name in "0123":
        own = table.loc[table["class"] == name, "score"]
        np.testing.assert_allclose(own, there.loc[[0, 1, 2], f"score {name}"], rtol=1e-12)
    _, err = aucdist("explain", run, *rows, "--class", 7, code=2)
    assert "class" in err
    with pytest.raises(InputError, match="has several classes, and a scorecard is for one"):
        load_two_classes(str(run / "model"), "a scorecard")


def test_files_that_are_read_in_parts_and_shards_have_the_same_classes(folder, tmp_path, whole):
    result, _ = whole
    direct, err = train(folder, CSV.format(folder), "--set", "data.direct=true")
    assert "class '9' has 1 of 181 training rows, and is left out" in err
    assert direct["classes"] == result["classes"]  # one part: the rows in the same order, and so the same bits
    here = pd.read_parquet(Path(result["run"]) / "scores.parquet").set_index("row_id").sort_index()
    sharded = (*sets("label=digit", "positive=each"), "--rows-per-shard", 60)
    said, _ = aucdist("shard", folder / "digits.csv", tmp_path / "shards", *sharded)
    assert "241 rows (5 classes) x 64" in said
    aucdist("data", "verify", tmp_path / "shards")
    shards = f"{{source: '{tmp_path}/shards', format: shards}}"
    in_parts, err = train(folder, shards)
    assert "class '9'" in err
    there = pd.read_parquet(Path(in_parts["run"]) / "scores.parquet").set_index("row_id").sort_index()
    assert there["label"].equals(here["label"])  # the split does not depend on where the rows lie
    for of_class, other in zip(in_parts["classes"], result["classes"], strict=True):
        assert of_class["certificate"]["dual"] <= other["certificate"]["primal"]
        assert other["certificate"]["dual"] <= of_class["certificate"]["primal"]
    _, err = aucdist("train", config(folder, shards), *sets("shapes={halves: 2}", "model.features=bins"), code=2)
    assert "shapes is for two classes" in err
    keys = sets("format=svmlight", "labels=topics", "positive={each: [odd, even, zero]}")
    aucdist("shard", folder / "topics.svm", tmp_path / "topics", *keys, "--rows-per-shard", 100)
    topics, _ = train(folder, shards.replace("shards'", "topics'"), "--set", "cache=stream")
    sizes = {row["name"]: row["n_pos"] + row["test_pos"] for row in topics["classes"]}
    assert sizes == {"even": 120, "odd": 120, "zero": 61}


def test_topics(folder: Path, tmp_path: Path) -> None:
    result, _ = train(folder, TOPICS.format(folder))
    assert [row["name"] for row in result["classes"]] == ["even", "odd", "three", "zero"]
    assert "test_accuracy" in result["metrics"]
    assert result["metrics"]["test_accuracy"] is None
    scores = pd.read_parquet(Path(result["run"]) / "scores.parquet")
    assert set(scores["label"]) <= {"", "even", "odd", "even,zero", "odd,three"}
    assert (scores["label"] == scores["prediction"]).mean() > 0.7
    assert "A topic is predicted if its score is above the threshold" in page_of(result)
    aucdist("score", Path(result["run"]) / "model", folder / "topics.svm", tmp_path / "out")  # without `positive`
    there = pd.read_parquet(tmp_path / "out").set_index("row_id")["prediction"]
    assert there.loc[scores["row_id"]].tolist() == scores["prediction"].tolist()
    point, _ = train(folder, TOPICS.format(folder), "--set", "operating_point={fpr: 0.05, out_of_fold: false}")
    assert (
        "Each class has its own threshold. The threshold was set for a false positive rate of at most 5 %, on the training rows"
        in page_of(point)
    )
    table = pd.read_parquet(Path(point["run"]) / "scores.parquet")
    model, before = (load_model(str(Path(run["run"]) / "model")) for run in (point, result))
    for k, row in enumerate(point["classes"]):
        assert row["operating_point"]["threshold"] == row["threshold"] == 0.0
        flagged = table[f"score {row['name']}"] > 0.0
        member = table["label"].str.split(",").apply(lambda names, name=row["name"]: name in names)
        assert row["operating_point"]["recall"]["value"] == pytest.approx((flagged & member).sum() / member.sum())
        assert row["recall"] == pytest.approx(row["operating_point"]["recall"]["value"])
        assert model.models[k].intercept != before.models[k].intercept
    some, _ = train(folder, TOPICS.format(folder).replace("positive: each", "positive: {each: [odd, zero]}"))
    assert [row["name"] for row in some["classes"]] == ["odd", "zero"]
    both = {row["name"]: row for row in result["classes"]}
    assert some["classes"][0]["certificate"] == both["odd"]["certificate"]


def test_runs_are_compared_class_by_class(folder: Path, tmp_path: Path) -> None:
    cost = ("--set", "operating_point={cost: {false_positive: 1, miss: 9}}")
    runs = [train(folder, CSV.format(folder), "--set", f"model.lam={lam}", *cost)[0] for lam in (1e-2, 10.0)]
    out, _ = aucdist("compare", *(run["run"] for run in runs), "--output", tmp_path, "--json")
    result = json.loads(out)
    assert [row["name"] for row in result["classes"]] == ["0", "1", "2", "3"]
    first, second = (run["name"] for run in result["runs"])
    assert first != second
    for k, row in enumerate(result["classes"]):
        for name, run in zip((first, second), runs, strict=True):
            assert row["auc"][name] == pytest.approx(run["classes"][k]["test_auc"])
    for row in result["differences"]:
        areas = result["classes"][int(row["class"])]["auc"]
        assert row["value"] == pytest.approx(areas[first] - areas[second])
        assert row["p_holm"] >= row["p_value"]
    p = sorted(row["p_value"] for row in result["differences"])
    assert min(row["p_holm"] for row in result["differences"]) == pytest.approx(min(1.0, 4 * p[0]))
    for row in result["cost_differences"]:
        costs = [run["classes"][int(row["class"])]["operating_point"]["expected_cost"]["value"] for run in runs]
        assert row["value"] == pytest.approx(costs[0] - costs[1])
        assert row["low"] <= row["value"] <= row["high"]
    assert "sign-flip test" in page_of(result)
    topics, _ = train(folder, TOPICS.format(folder))
    _, err = aucdist("compare", runs[0]["run"], topics["run"], "--output", tmp_path, code=2)
    assert "have different test rows" in err
    _, err = aucdist("compare", runs[0]["run"], runs[1]["run"], "--output", tmp_path, "--max-fpr", 0.1, code=2)
    assert "max_fpr is for runs of two classes" in err


@pytest.mark.slow
def test_two_workers_have_the_same_bits(folder: Path) -> None:
    more = ("--set", "blocks=3")
    here, _ = train(folder, CSV.format(folder), *more)
    there, _ = train(folder, CSV.format(folder), *more, "--set", "cluster={kind: local, workers: 2, threads: 1}")
    for run in (here, there):
        for key in ("run", "seconds"):
            del run[key]
    assert here == there


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        (CSV, ["--set", "data.positive={each: [1, 2]}"], "chooses among topics, but here each row has one class"),
        (TOPICS, ["--set", "data.positive={each: [odd, ten]}"], "topic 'ten' is not in the data"),
    ],
)
def test_wrong_options_for_several_classes_are_refused(
    folder: Path, source: str, options: list[str], message: str
) -> None:
    _, err = aucdist("train", config(folder, source.format(folder)), *options, code=2)
    assert re.search(message, err), err


def test_an_operating_point_that_a_class_cannot_reach_is_refused(tmp_path: Path) -> None:
    """Whatever a row's x is, it is of each class alike, so that a third of the flagged rows are right at most."""
    table = pd.DataFrame({"x": np.arange(120) // 3 % 2, "digit": np.arange(120) % 3})
    table.to_csv(tmp_path / "digits.csv", index=False)
    path, point = config(tmp_path, CSV.format(tmp_path)), "operating_point={precision: 0.9}"
    _, err = aucdist("train", path, "--set", point, code=2)
    assert re.search(r"class '.': precision is 0\.9, but on these rows no threshold has a precision above 0\.3", err), (
        err
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("source", [CSV, TOPICS])
def test_solvers_that_learn_row_by_row_fit_each_class(folder: Path, source: str) -> None:
    solver = {"name": "msgd", "epochs": 2}
    result, _ = train(folder, source.format(folder), *sets(f"model.solver={solver}", "model.random_state=0"))
    model = load_model(f"{result['run']}/model")
    if source == CSV:
        table = pd.read_csv(folder / "digits.csv")
        left = table.drop(index=pd.read_parquet(f"{result['run']}/scores.parquet")["row_id"])
        for k in range(4):
            alone = PairwiseHingeClassifier(lam=1e-2, solver=solver, random_state=0)
            alone.fit(left.drop(columns="digit").to_numpy(), left["digit"] == k)
            np.testing.assert_array_equal(model.models[k].coef, alone.coef_[0])
    assert all(0.5 < of_class["test_auc"] <= 1.0 for of_class in result["classes"])


def test_labels_that_are_no_classes(tmp_path: Path) -> None:
    table = pd.DataFrame({"x": np.arange(3000) % 7, "y": np.arange(3000) / 2})
    table.to_csv(tmp_path / "rows.csv", index=False)
    source = f"{{source: '{tmp_path}/rows.csv', format: csv, label: y, positive: each}}"
    _, err = aucdist("train", config(tmp_path, source), code=2)
    assert "the labels have 3000 values" in err
    table.assign(y=table["x"] % 2).to_csv(tmp_path / "rows.csv", index=False)
    _, err = aucdist("train", config(tmp_path, source), code=2)
    assert "`positive: each` is for three or more classes" in err


def test_each_class_starts_from_its_weights(folder: Path, whole: tuple[dict, str]) -> None:
    settings = ("model={tol: 1.0e-2, lam: 1.0e-2}", f"data.source.source={folder}/digits.csv")
    path, observer = config(folder, CSV.format(folder)), Following()
    again = run_training(load_train(str(path), settings), observer, start=f"{whole[0]['run']}/model")
    assert any("4 of 4 classes start from the weights in use" in line for line in observer.lines)
    assert again["passes"] < whole[0]["passes"]
    topics = config(folder, TOPICS.format(folder))
    run_training(load_train(str(topics)), observer, start=f"{whole[0]['run']}/model")
    assert "the fit starts from zero: its features are others" in "".join(observer.lines)


def test_a_run_that_was_ended_fits_no_class_again_that_was_done(folder: Path, tmp_path: Path, monkeypatch) -> None:
    more = {"features": "bins", "monotone": {"p20": "increasing"}}
    path = config(
        folder, CSV.format(folder), "checkpoint: {rounds: 1, seconds: 1000}\ncluster: {kind: none, n_jobs: 1}\n"
    )
    steps, reduce, rounds = [], LocalBlocks.reduce, {}

    def counted(self: LocalBlocks, step, *args):
        steps.append(step)
        return reduce(self, step, *args)

    def run(observer: Following, *settings: str) -> tuple[dict, int]:
        steps.clear()
        settings += (f"output={tmp_path}/runs", f"model={{tol: 1.0e-2, lam: 1.0e-2, {json.dumps(more)[1:-1]}}}")
        return run_training(load_train(str(path), settings), observer), len(steps)

    monkeypatch.setattr(LocalBlocks, "reduce", counted)
    following = Following(lambda record: rounds.update({record["class"]: record["round"]}))
    expected, n_steps = run(following, "checkpoint=null")
    last = rounds["3"] - 2

    def stop(record):
        if (record["class"], record["round"]) == ("3", last):
            raise RuntimeError("stop here")

    with pytest.raises(RuntimeError, match="stop here"):
        run(Following(stop))
    observer = Following()
    outcome, n_left = run(observer)
    resumed = [line.strip() for line in observer.lines if "resumes" in line]
    assert [line.partition(":")[0] for line in resumed] == ["class '0'", "class '1'", "class '2'", "class '3'"]
    assert resumed[3].endswith(f"resumes from the checkpoint of round {last - 1}")
    assert n_left < 0.5 * n_steps, (n_left, n_steps)  # a class fitted again is a quarter of them
    for result in (expected, outcome):
        del result["run"], result["seconds"]
    assert outcome == expected
    assert not (tmp_path / "runs" / ".checkpoints").exists()

"""`aucdist promote`, `models` and `rollback`, and the store wherever a model is taken."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.command_line import result_of, run, sets
from support.printed import run_page
from support.tables import table_beside

from aucdist.metrics import average_precision_difference
from aucdist.metrics.compare import partial_auc_test
from aucdist.model import load_model

PAGE = Path(__file__).resolve().parents[2] / "docs" / "pages" / "how-to" / "models-in-production.md"


def trained(folder: Path, lam: float, seed: int = 0) -> str:
    settings = sets("cluster=none", f"model.lam={lam}", "model.tol=0.001", f"data.test={{fraction: 0.4, seed: {seed}}}")
    return str(result_of("train", "digits", "--output", folder, *settings)["run"])


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A good run, a bad one, one as good as the first, and one with other test rows."""
    folder = tmp_path_factory.mktemp("runs")
    return [trained(folder, 1e-2), trained(folder, 300.0), trained(folder, 1.0001e-2), trained(folder, 1e-2, seed=1)]


def promoted(*args: object) -> dict:
    return result_of("promote", *args)


def test_from_the_first_night_to_a_rollback(runs: list[str], tmp_path: Path) -> None:
    store = tmp_path / "store"
    good, bad, equal, _ = runs
    assert promoted(bad, store, "--if", "better")["version"] == 1  # nothing is in use yet
    better = promoted(good, store, "--if", "better")
    assert (better["promoted"], better["version"], better["replaced"]) == (True, 2, 1)
    assert better["decision"]["low"] > 0.0
    worse = promoted(bad, store, "--if", "not-worse", "--margin", 0.001)
    assert (worse["promoted"], worse["version"]) == (False, 2)
    assert not promoted(equal, store, "--if", "better")["promoted"]
    assert not promoted(equal, store, "--if", "not-worse", "--margin", 0)["promoted"]
    assert promoted(equal, store, "--if", "not-worse")["version"] == 3
    said = run("models", store)[0]
    assert "in use: version 3" in said
    assert said.count("declined") == 3
    assert "AUC +" in said
    assert "not-worse by 0.005" in said
    svg = Path(better["picture"]).read_text(encoding="utf-8")
    assert svg.startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    assert "var(--" not in svg
    assert "#c24e00" in svg or "#0067a8" in svg
    assert said.count("promote") == 3
    assert "version 2 is in use again; it replaces version 3" in run("rollback", store)[0]
    history = result_of("models", store)
    assert (history["current"], history["present"], len(history["changes"])) == (2, [1, 2, 3], 4)
    np.testing.assert_array_equal(load_model(str(store)).coef, load_model(f"{good}/model").coef)
    np.testing.assert_array_equal(load_model(f"{store}@1").coef, load_model(f"{bad}/model").coef)


def test_the_store_is_a_model_for_other_commands(runs: list[str], tmp_path: Path) -> None:
    store = tmp_path / "store"
    for folder in runs[:2]:
        promoted(folder, store)
    run("score", f"{store}@1", "digits", tmp_path / "first")
    run("score", f"{runs[0]}/model", "digits", tmp_path / "same")
    run("score", store, "digits", tmp_path / "second")
    first, same, second = (pd.read_parquet(tmp_path / name)["score"] for name in ("first", "same", "second"))
    assert first.tolist() == same.tolist()
    assert first.tolist() != second.tolist()
    assert "row 0: score" in run("explain", f"{store}@1", "digits", "--rows", 1)[0]
    run("export", f"{store}@1", "--to", "json", "--output", tmp_path / "model.json")
    assert json.loads((tmp_path / "model.json").read_text())["format"] == "aucdist model"
    assert len(result_of("compare", f"{store}@1", f"{store}@2", "--output", tmp_path / "compared")["runs"]) == 2


def test_keep_leaves_so_many(runs: list[str], tmp_path: Path) -> None:
    store = tmp_path / "store"
    for folder in runs[:3]:
        promoted(folder, store)
    assert promoted(runs[0], store, "--keep", 2)["removed"] == [1, 2]
    assert "version 1 of" in run("score", f"{store}@1", "digits", tmp_path / "scores", code=2)[1]


@pytest.mark.parametrize(("args", "message"), table_beside(__file__))
def test_wrong_options_of_promote_are_refused(runs: list[str], tmp_path: Path, args: list[str], message: str) -> None:
    store = tmp_path / "store"
    promoted(runs[0], store)
    names = {"bad": runs[1], "other": runs[3], "store": store, "tmp": tmp_path}
    said = run("promote", *(arg.format(**names) for arg in args), code=2)[1]
    assert re.search(message, said)
    assert result_of("models", store)["current"] == 1


def test_the_commands_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(PAGE)
    assert result_of("models", "models/digits")["current"] in (1, 2)


@pytest.fixture(scope="module")
def weeks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three weeks of one population, as Parquet files; the second week has the rows of the first one, too."""
    folder, rng = tmp_path_factory.mktemp("weeks"), np.random.default_rng(0)
    tables = []
    for _ in range(3):
        X = rng.normal(size=(1500, 4))
        y = rng.random(1500) < 1 / (1 + np.exp(3.0 - 1.5 * X[:, 0] - X[:, 1]))
        tables.append(pd.DataFrame(X, columns=list("abcd")).assign(y=y.astype(int)))
    tables[0].to_parquet(folder / "first.parquet")
    pd.concat(tables[:2], ignore_index=True).to_parquet(folder / "both.parquet")
    tables[2].to_parquet(folder / "third.parquet")
    return folder


def trained_on(file: Path, folder: Path, *settings: str, seed: int = 0) -> str:
    source = f"data={{source: {{source: {file}, format: parquet, label: y, positive: 1}}, test: {{fraction: 0.3, seed: {seed}}}}}"
    settings = sets(source, "cluster=none", "model.tol=0.001", *settings)
    return str(result_of("train", "digits", "--output", folder, *settings)["run"])


def test_other_data_is_compared_on_rows_that_the_version_in_use_has_not_seen(weeks: Path, tmp_path: Path) -> None:
    store, top = tmp_path / "store", "model={max_fpr: 0.1, calibration: logit, lam: 0.01}"
    first = trained_on(weeks / "first.parquet", tmp_path / "runs", "model.lam=1", "model.calibration=logit")
    both = trained_on(weeks / "both.parquet", tmp_path / "runs", top, seed=1)  # with the same seed the test rows stay
    third = trained_on(weeks / "third.parquet", tmp_path / "runs")
    promoted(first, store)
    refused = run("promote", both, store, "--if", "better", code=2)[1]
    assert re.search(r"the version in use was trained on \d+ of the 900 rows of the test rows of", refused)
    compared = promoted(third, store, "--if", "not-worse", "--margin", 0.2)["decision"]
    assert (compared["rows"], compared["of"], compared["metric"]) == (450, "the test rows of the run", "auc")
    decided = promoted(both, tmp_path / "store2", "--if", "better")  # the first version needs no test
    assert decided["decision"] is None
    again = tmp_path / "store3"
    promoted(first, again)
    data = weeks / "third.parquet"
    decision = promoted(both, again, "--if", "not-worse", "--margin", 0.4, "--data", data)["decision"]
    assert (decision["metric"], decision["max_fpr"], decision["rows"]) == ("partial_auc", 0.1, 1500)
    assert decision["holds"]
    options = ("--if", "not-worse", "--margin", 0.4, "--data", data, "--metric", "average_precision")
    precise = promoted(first, again, *options)["decision"]  # in place of the partial AUC of the version in use
    assert precise["metric"] == "average_precision"
    new, old = (load_model(f"{folder}/model") for folder in (both, first))
    rows = pd.read_parquet(data)
    y, X = np.where(rows["y"] == 1, 1, -1), rows[list("abcd")].to_numpy()
    expected = partial_auc_test(y, new.decision_function(X), old.decision_function(X), 0.1, standardized=True)
    assert (decision["value"], decision["low"]) == pytest.approx((expected.value, expected.low))
    expected = average_precision_difference(y, old.decision_function(X), new.decision_function(X))
    assert (precise["value"], precise["low"]) == pytest.approx((expected.value, expected.low))
    assert "average precision " in run("models", again)[0]
    for file in (again / "decisions").iterdir():  # as 0.4.0 wrote it
        file.write_text(file.read_text().replace('"metric"', '"measure"'))
    assert "average precision " in run("models", again)[0]
    loss = [((model.predict_proba(X)[:, 1] - (y == 1)) ** 2).mean() for model in (new, old)]
    assert decision["calibration"]["of_each"] == pytest.approx(loss)
    assert decision["calibration"]["value"] == pytest.approx(loss[1] - loss[0])


def test_a_run_that_is_worse_calibrated_is_not_promoted(weeks, tmp_path, monkeypatch):
    store = tmp_path / "store"
    first = trained_on(weeks / "first.parquet", tmp_path / "runs", "model.calibration=logit")
    worse = trained_on(weeks / "third.parquet", tmp_path / "runs", "model={calibration: logit, prior: 0.9, lam: 0.001}")
    promoted(first, store)
    result = promoted(worse, store, "--if", "not-worse", "--margin", 0.05)
    assert not result["promoted"]
    assert result["decision"]["calibration"]["high"] < -0.05
    said, _ = run("promote", worse, store, "--if", "not-worse", "--margin", 0.05)
    assert "not as well calibrated: its Brier score is higher" in said
    monkeypatch.setattr("flows.promote.NOT_WORSE_BY", 0.9)  # the default is for the AUC alone
    assert not promoted(worse, store, "--if", "not-worse")["promoted"]

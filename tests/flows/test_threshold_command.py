"""`aucdist threshold`: another threshold for a run or a store, without a fit; alerts by the day; guarantees of a run."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.runs import load_train, page_of, trained, write_config

from aucdist import PairwiseHingeClassifier
from aucdist.data.own_files import parse_checked
from aucdist.errors import InputError
from aucdist.metrics import guaranteed_threshold
from aucdist.model import load_model
from aucdist.report.text import guarantee_text
from flows.promote import PromoteConfig, promote_run
from flows.run_folder.folder import read_metrics, read_scores
from flows.run_folder.schema import OperatingPointResult
from flows.threshold import ThresholdConfig, change_threshold, threshold_lines


@pytest.fixture(scope="module")
def visits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a configuration of 4 000 rows, forty on each of a hundred days, a tenth of them positive."""
    folder, random = tmp_path_factory.mktemp("visits"), np.random.default_rng(0)
    ill = random.random(4000) < 0.1
    table = pd.DataFrame(random.normal(size=(4000, 3)) + 1.5 * ill[:, np.newaxis], columns=["a", "b", "c"])
    day = pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(4000) // 40, unit="D")
    table = table.assign(day=day.strftime("%Y-%m-%d"), ill=ill.astype(int))
    source = {"label": "ill", "positive": "1", "dates": {"day": ["days"]}}
    data = {"split": {"time": "day", "last": 0.25}, "scale": "standard"}
    more = {"model": {"lam": 0.001}, "baselines": False, "output": str(folder / "runs")}
    return write_config(folder, table, source, data, **more)


def change(run: str, **options: Any) -> dict[str, Any]:
    return change_threshold(ThresholdConfig(model=run, **options))


@pytest.fixture(scope="module")
def run(visits: Path) -> str:
    return str(trained(visits, "operating_point={alerts: 5, per: day, out_of_fold: false}")["run"])


def test_alerts_by_the_day(run: str) -> None:
    about = read_metrics(run)
    point = about["operating_point"]
    assert (point["target"], about["threshold_rows"]["per_day"]) == ({"alerts": 5.0, "per": "day"}, 40)
    training = load_model(f"{run}/model")
    test = read_scores(run)
    assert len(test) == 1000
    assert point["alerts_per_day"] == pytest.approx((test["score"] > 0).sum() / 25)
    assert 3.5 < point["alerts_per_day"] < 6.5
    assert training.about["operating_point"] == {"alerts": 5.0, "per": "day"}
    page = page_of({"run": run})
    said = "set for at most 5 alerts a day, on the training rows, which the fit has seen.</dd>"
    assert said in page
    assert f'Alerts</dt><dd class="value">{(test["score"] > 0).sum()}</dd>' in page
    assert f", {point['alerts_per_day']:.3g} a day have a score above the threshold" in page


def test_the_rows_that_set_it_are_kept(run: str) -> None:
    """Of 3 000 training rows exactly 375 are flagged: five a day of forty."""
    kept = pd.read_parquet(f"{run}/threshold.parquet")
    above = kept["score"] + load_model(f"{run}/model").intercept > 0
    assert kept.loc[above, ["pos", "neg"]].to_numpy().sum() == 375
    assert kept[["pos", "neg"]].to_numpy().sum() == 3000


@pytest.mark.parametrize("options", [{"alerts": 2, "per": "day"}, {"fpr": 0.02}, {"precision": 0.8}])
def test_a_changed_threshold_is_that_of_a_run_trained_for_it(visits: Path, run: str, options: dict[str, Any]) -> None:
    changed = change(run, **options)
    both = changed, trained(visits, f"operating_point={json.dumps(options | {'out_of_fold': False})}")
    models = [load_model(f"{result['run']}/model") for result in both]
    assert models[0].intercept == models[1].intercept
    about = [read_metrics(result["run"]) for result in both]
    for key in ("operating_point", "details", "threshold_rows", "threshold", "metrics", "certificate"):
        assert about[0][key] == about[1][key], key
    tables = [read_scores(result["run"]) for result in both]
    np.testing.assert_allclose(tables[0]["score"], tables[1]["score"], rtol=0, atol=1e-12)
    profiles = [json.loads((Path(result["run"]) / "model" / "profile.json").read_text()) for result in both]
    np.testing.assert_allclose(profiles[0]["score"]["edges"], profiles[1]["score"]["edges"], atol=1e-12)
    assert changed["run"] != run
    assert threshold_lines(changed)[0].removeprefix("Flagged: ") in page_of(changed)


def test_the_new_run_is_beside_the_old_one_however_that_is_named(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(run)
    for name in (".", f"{run}/", f"../{Path(run).name}"):
        assert Path(change(name, recall=0.5)["run"]).resolve().parent == Path(run).parent


def test_what_is_trained_again_has_the_changed_threshold(run: str) -> None:
    changed = change(run, cost="{false_alarm: 1, miss: 5}")  # the key of 0.4.0
    assert changed["operating_point"]["target"]["cost"] == {"false_positive": 1.0, "miss": 5.0}
    again = trained(f"{changed['run']}/config.yaml")
    assert load_model(again["run"]).intercept == load_model(changed["run"]).intercept
    assert again["operating_point"] == changed["operating_point"]


def test_probabilities_stay(visits: Path) -> None:
    before = trained(visits, "model.calibration=logit")
    after = change(before["run"], fpr=0.05)
    X = np.random.default_rng(1).normal(size=(50, 3))
    models = [load_model(result["run"]) for result in (before, after)]
    np.testing.assert_allclose(models[0].predict_proba(X), models[1].predict_proba(X), atol=1e-12)
    assert (models[0].predict(X) != models[1].predict(X)).any()


def test_a_store_gets_a_version(run: str, tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    promote_run(PromoteConfig(run=run, store=store))
    assert change(store, recall=0.95)["run"] == f"{store}@2"
    assert load_model(f"{store}@1").intercept != load_model(store).intercept == load_model(f"{store}@2").intercept
    assert change(f"{store}@1", alerts=5, per="day")["run"] == f"{store}@3"
    assert load_model(store).intercept == load_model(run).intercept


def test_an_older_run_is_set_on_its_test_rows_and_says_so(run: str, tmp_path: Path) -> None:
    old = tmp_path / "old"
    shutil.copytree(run, old)
    (old / "threshold.parquet").unlink()
    about = json.loads((old / "metrics.json").read_text())
    del about["threshold_rows"]
    (old / "metrics.json").write_text(json.dumps(about))
    changed = change(str(old), alerts=0.1)
    assert (read_scores(changed["run"])["score"] > 0).sum() == 100
    assert changed["operating_point"]["set_on"] == "test"
    assert "look better than those of new rows" in threshold_lines(changed)[3]
    with pytest.raises(InputError, match="column of dates"):
        change(str(old), alerts=5, per="day")


def test_equal_scores_among_which_the_threshold_lies_are_said(visits: Path, tmp_path: Path) -> None:
    """Nine different rows repeat. The out-of-fold scores of each differ by its fold, and the model flags all of them or none."""
    r = np.random.default_rng(2)
    X = r.integers(0, 3, (800, 2)).astype(float)
    y = X.sum(axis=1) + 0.7 * (X[:, 0] - 1) * (X[:, 1] - 1) + r.logistic(size=800) > 4.5
    table = pd.DataFrame(X, columns=["a", "b"]).assign(y=y)
    model = {"estimator": "PairwiseHingeClassifier", "tol": 1e-2, "features": {"map": "bins"}}
    config = write_config(
        tmp_path, table, {"label": "y", "positive": "True"}, {"test": {"fraction": 0.25}}, model=model
    )
    tied = str(trained(config, "operating_point={alerts: 0.2}", output=tmp_path / "runs")["run"])
    lines = threshold_lines(change(tied, alerts=0.15))
    (said,) = [line for line in lines if line.startswith("Equal scores: ")]
    scores = read_scores(lines[-1].removeprefix("written: "))["score"]
    lowest = scores[scores > 0].min()
    assert said.startswith(
        f"Equal scores: {(scores == lowest).sum()} test rows have the lowest score that is flagged, "
    )
    assert "For `fpr`, `alerts` and `recall`, a training run moves its threshold past such scores." in said
    assert "This command does not, because a run keeps only the out-of-fold scores." in said
    # Where scores differ, and where the model's own scores set the threshold, there is nothing to say.
    for run in (str(trained(visits, "operating_point={alerts: 0.1}")["run"]), tied_on_training_rows(config, tmp_path)):
        assert not any(line.startswith("Equal scores: ") for line in threshold_lines(change(run, alerts=0.15)))


def tied_on_training_rows(config: Path, folder: Path) -> str:
    return str(trained(config, "operating_point={alerts: 0.2, out_of_fold: false}", output=folder / "in-fold")["run"])


def test_a_guarantee_of_a_run_is_that_of_its_calibration_rows(visits: Path) -> None:
    result = trained(visits, "operating_point={precision: 0.8, confidence: 0.95}")
    point, about = result["operating_point"], read_metrics(result["run"])
    assert result["n_samples"] == 2400
    assert (point["set_on"], about["threshold_rows"]["rows"]) == ("threshold_rows", "threshold_rows")
    kept = pd.read_parquet(f"{result['run']}/threshold.parquet")
    y = np.repeat([1, 0], [int(kept["pos"].sum()), int(kept["neg"].sum())])
    scores = np.concatenate([np.repeat(kept["score"], kept[side].astype(int)) for side in ("pos", "neg")])
    guarantee = guaranteed_threshold(y, scores, precision=0.8)
    assert len(y) == 600
    assert load_model(result["run"]).intercept == -guarantee.threshold
    value = point["guarantee"].items()
    assert value >= {"guaranteed": guarantee.guaranteed, "meets_target": guarantee.meets_target}.items()
    assert "drawn like the threshold rows (600 rows, " in page_of(result)
    changed = change(result["run"], recall=0.9, confidence=0.9)
    assert changed["operating_point"]["guarantee"]["meets_target"]
    assert threshold_lines(changed)[5].startswith(
        "Guarantee: With 90 % confidence, the threshold guarantees a recall of at least 90 % on new rows drawn like"
    )
    impossible = change(result["run"], fpr=1e-4, confidence=0.95)
    said = "No threshold can guarantee a false positive rate of at most 0.01 % with 95 % confidence"
    assert said in " ".join(threshold_lines(impossible))


def test_calibration_rows_are_the_last_by_time_or_drawn(visits: Path) -> None:
    """Of 75 days of training rows 38 are for the threshold; or a fifth of each class, whatever the day."""
    last = trained(visits, "data.threshold_rows=0.5", "operating_point.recall=0.9")
    about = read_metrics(last["run"])["threshold_rows"]
    assert (last["n_samples"], about["n_pos"] + about["n_neg"]) == (1480, 1520)
    drawn = trained(visits, "data.threshold_rows=0.2", "operating_point.recall=0.9", "data.split={fraction: 0.25}")
    assert drawn["n_pos"] == pytest.approx(0.6 * 390, abs=30)
    assert drawn["n_samples"] == pytest.approx(2400, abs=2)
    both = "operating_point={recall: 0.9, out_of_fold: true}", "data.threshold_rows=0.2"
    with pytest.raises(InputError, match="threshold_rows` and `out_of_fold`"):
        load_train(str(visits), both)


def test_a_guarantee_needs_rows_that_the_fit_has_not_seen(run: str) -> None:
    with pytest.raises(InputError, match="fitted to, which can guarantee nothing"):
        change(run, precision=0.8, confidence=0.95)


def test_out_of_fold_guarantees_are_possible(visits: Path) -> None:
    result = trained(visits, "operating_point={recall: 0.9, confidence: 0.9, out_of_fold: true}")
    assert "This is approximate, because five other models gave these scores." in page_of(result)
    assert result["operating_point"]["set_on"] == "out_of_fold"
    assert result["operating_point"]["guarantee"]["meets_target"]
    assert result["n_samples"] == 3000


def test_python_flags_exactly_as_many_rows_as_asked_for() -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(1003, 5))
    y = random.random(1003) < 0.2
    model = PairwiseHingeClassifier(lam=0.01).fit(X[:500], y[:500])
    for alerts in (0, 1, 37, 50, 1003):
        model.set_threshold(X=X, y=y, alerts=alerts, per=len(X))
        assert model.predict(X).sum() == alerts
    model.set_threshold(X=X, y=y, recall=0.5, confidence=0.9)
    expected = guaranteed_threshold(y, model.decision_function(X), 0.9, recall=0.5).threshold
    assert expected == pytest.approx(0, abs=1e-12)
    with pytest.raises(InputError, match=r"no threshold guarantees precision.* a weaker target"):
        model.set_threshold(X=X, y=y, precision=0.99, confidence=0.95)
    with pytest.raises(InputError, match="per is 10"):
        model.set_threshold(X=X, y=y, alerts=50, per=10)


def test_each_class_has_a_guarantee_of_its_own(tmp_path: Path) -> None:
    settings = ("cluster=none", "model.tol=0.05", "model.lam=0.1", "data.positive=each")
    result = trained("digits", *settings, "operating_point={recall: 0.8, confidence: 0.9}", output=tmp_path)
    assert result["n_samples"] == pytest.approx(1150, abs=12)  # of 1 797: four fifths, and four fifths of these
    for row in result["classes"]:
        guarantee = row["operating_point"]["guarantee"]
        assert (guarantee["metric"], guarantee["meets_target"]) == ("recall", True)
        assert guarantee["n_rows"] == guarantee["n_pos"]
    assert "10 of 10 thresholds guarantee their target" in page_of(result)
    with pytest.raises(InputError, match="several classes"):
        change(result["run"], recall=0.5)


def test_a_guarantee_that_cannot_be_made_is_rounded_to_the_safe_side() -> None:
    guarantee = {"metric": "precision", "target": 0.8, "guaranteed": 0.63459, "confidence": 0.95, "meets_target": False}
    point = {"guarantee": guarantee | {"n_pos": 30, "n_neg": 70}, "set_on": "threshold_rows"}
    text = guarantee_text(point)
    assert text.startswith(
        "No threshold can guarantee a precision of at least 80 % with 95 % confidence, given the threshold rows "
        "(100 rows, 30 of them positive)."
    )
    assert text.endswith(" The best guarantee is a precision of at least 63.45 %.")
    rare = guarantee | {"metric": "fpr", "target": 0.001, "guaranteed": 0.01234, "n_pos": 3, "n_neg": 7}
    assert guarantee_text({**point, "guarantee": rare}).endswith(" a false positive rate of at most 1.3 %.")


def test_an_operating_point_with_its_earlier_keys_is_read() -> None:
    cost = {"false_positive": 1.0, "miss": 2.0}
    now = {"target": {"cost": cost}}
    for point in (now, {"wanted": {"cost": {"false_alarm": 1.0, "miss": 2.0}}}):
        assert parse_checked(json.dumps(point).encode(), OperatingPointResult, "point") == now


def test_a_column_of_numbers_has_no_days(tmp_path: Path) -> None:
    """With years as numbers, a year would count as a day."""
    random = np.random.default_rng(0)
    table = pd.DataFrame({"Year": np.repeat(np.arange(2000, 2020), 50), "a": random.normal(size=1000)})
    table["ill"] = (random.random(1000) < np.where(table["a"] > 0, 0.5, 0.1)).astype(int)
    config = write_config(
        tmp_path, table, {"label": "ill", "positive": "1"}, {"test": {"time": "Year"}}, baselines=False
    )
    with pytest.raises(InputError, match="`per: day` needs a column of dates"):
        trained(config, "operating_point={alerts: 5, per: day}", output=tmp_path / "refused")
    run = str(trained(config, "operating_point={alerts: 0.1}", output=tmp_path / "runs")["run"])
    assert "alerts_per_day" not in read_metrics(run)["operating_point"]
    with pytest.raises(InputError, match="`per: day` needs a column of dates"):
        change(run, alerts=5, per="day")

"""Files as the field has them, from `init` to `train`: settings reach the YAML, and a split is like the future."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import yaml
from pyarrow import feather
from support.command_line import result_of, run, sets
from support.runs import Following

from aucdist.data.block import Block, each_of, into_blocks
from aucdist.data.labels import LabelWarning
from aucdist.data.sources import Source
from aucdist.data.split import find_time_split
from aucdist.errors import InputError
from aucdist.model import load_model
from flows.compute.clusters import Workers
from flows.config.data import DataConfig
from flows.init.run import flow, propose
from flows.rows.source import read_rows

N = 600


def visits() -> pd.DataFrame:
    random = np.random.default_rng(0)
    y = random.random(N) < 0.2
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 300, N), "D")
    columns = {
        "user_id": random.integers(0, 150, N), "seen": days.strftime("%Y-%m-%d"), "x": (random.normal(size=N) + y).round(3),
        "cost": random.integers(1, 9, N), "kind": random.choice(["a", "b"], N), "y": np.where(y, "yes", "no"),
    }  # fmt: skip
    return pd.DataFrame(columns)


@pytest.fixture(autouse=True)
def rows_of_visits(in_its_own_folder: None) -> None:
    visits().to_csv("visits.csv", index=False)


def described(*args: str) -> dict[str, Any]:
    run("init", "visits.csv", "--label", "y", "--output", "c.yaml", "--force", *args)
    return dict(yaml.safe_load(Path("c.yaml").read_text())["data"])


GIVEN: dict[str, Any] = {
    "groups": "user_id", "cost_column": "cost", "drop": ["x"], "keep": ["x", "kind", "cost"], "hashed": {"kind": 16},
    "categorical": ["x"], "unknown": "ignore", "missing": "keep", "missing_values": ["-"], "dtype": "float32", "layout": "csr",
    "dates": {"seen": ["weekday"]}, "date_format": "%Y-%m-%d", "title": "Visits", "note": "yes", "rows": N,
    "classes": {"yes": 1, "no": 2}, "encoding": "utf-8", "separator": ",", "header": True, "positive": "no", "thousands": "'",
    "symbols": ["$"], "quote": "double", "features": 3, "origin": "o", "licence": "l", "sha256": "0" * 64, "skip_lines": 0,
    "decimal": ".", "labels": "numbers", "columns": None,
}  # fmt: skip
OF_OTHER_FORMATS = {
    "source", "format", "label", "where", "query", "sheet", "n_features", "zero_based", "qid", "version",
}  # fmt: skip


@pytest.mark.parametrize("key", sorted(set(Source.model_fields) - OF_OTHER_FORMATS - {"columns"}))
def test_each_key_that_is_given_reaches_the_yaml(key: str) -> None:
    value = GIVEN[key]
    more = ["missing=keep"] if key == "missing_values" else []  # which is an error otherwise
    source = described(*sets(f"{key}={flow(value)}", *more))["source"]
    if isinstance(value, list):
        assert source[key][: len(value)] == value
    elif isinstance(value, dict):
        assert value.items() <= source[key].items()
    else:
        assert source[key] == value


def test_columns_that_are_spoken_for_are_no_features() -> None:
    source = described(*sets("groups=user_id", "cost_column=cost", "drop=[x]"))["source"]
    assert (source["drop"], source["categorical"], source["groups"]) == (["x"], ["kind"], "user_id")
    assert "number cost" not in Path("c.yaml").read_text()
    assert "only to svmlight" in run("init", "visits.csv", "--label", "y", "--set", "qid=use", code=2)[1]


@pytest.mark.parametrize("how", [("--positive", "no"), ("--set", "positive=no")])
def test_a_class_is_the_text_that_was_typed(how: tuple[str, str]) -> None:
    assert described(*how)["source"]["positive"] == "no"
    assert run("init", "visits.csv", "--label", "y", "--force", *how)[0].endswith("positive class 'no', as given\n")


def test_a_sign_alone_is_the_text_that_was_typed() -> None:
    assert described("--set", "separator=,")["source"]["separator"] == ","


def test_many_classes_need_the_positive_one() -> None:
    rows = "".join(f"{i}.5,{'normal' if i < 30 else f'attack{i}'}\n" for i in range(60))
    Path("many.csv").write_text("x,y\n" + rows)
    said = run("init", "many.csv", "--label", "y", code=2)[1]
    assert "31 different values" in said
    assert "name the positive one with --positive" in said
    assert result_of("init", "many.csv", "--label", "y", "--positive", "normal")["positive"] == "normal"


def test_dates_are_split_by_time_and_the_last_line_names_the_guess() -> None:
    assert described()["test"] == {"time": "seen", "last": 0.2}
    last = run("init", "visits.csv", "--label", "y", "--force")[0].splitlines()[-1]
    assert last.startswith("'yes' is the positive class, because it is the rarer one (rows of each class: yes: ")
    assert last.endswith("Use --positive CLASS to name another")


def test_a_file_trains_without_a_yaml() -> None:
    table = visits()
    result = result_of("train", "visits.csv", "--label", "y", *sets("model.tol=0.5", "data.test.gap=30"))
    text = (Path(result["run"]) / "visits.yaml").read_text()
    assert yaml.safe_load(text)["data"]["source"]["source"] == str(Path("visits.csv").absolute())
    day = pd.to_datetime(table["seen"])
    tested = pd.read_parquet(Path(result["run"]) / "scores.parquet")["row_id"].to_numpy()
    first = day[tested].min()
    assert set(tested) == set(np.flatnonzero(day >= first))
    assert abs(len(tested) / N - 0.2) < 0.02
    assert result["n_samples"] == (day < first - pd.Timedelta(30, "D")).sum()
    assert result_of("train", f"{result['run']}/config.yaml", "--output", "again")["n_samples"] == result["n_samples"]


def test_a_table_that_changes_after_it_was_looked_at_is_trained_in_the_same_version(monkeypatch) -> None:
    deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[lake]'")
    deltalake.write_deltalake("table", pa.Table.from_pandas(visits()))

    def then_changed(*args: Any, **options: Any) -> Any:
        described = propose(*args, **options)
        changed = pa.Table.from_pandas(visits().drop(columns="x").iloc[:100])
        deltalake.write_deltalake("table", changed, mode="overwrite", schema_mode="overwrite")
        return described

    monkeypatch.setattr("flows.init.run.propose", then_changed)
    run_folder = Path(result_of("train", "table", "--label", "y", "--set", "model.tol=0.5")["run"])
    for name in ("config.yaml", "table.yaml"):
        assert yaml.safe_load((run_folder / name).read_text())["data"]["source"]["version"] == 0
    assert "x" in load_model(f"{run_folder}/model").schema.feature_names


def test_a_class_that_cannot_be_split_is_named_with_its_file_and_column() -> None:
    pd.DataFrame({"a": np.arange(20) / 8, "y": ["yes"] + ["no"] * 19}).to_csv("rows.csv", index=False)
    _, err = run("train", "rows.csv", "--label", "y", code=2)
    assert "rows.csv, label 'y': there are fewer than two positive (yes) rows" in err


def test_a_warning_about_classes_is_given_once() -> None:
    """The look at the columns would give it as well, about the first rows of a large file."""
    table = visits()
    table["y"] = np.where(np.arange(N) % 7 == 0, table["y"].str.upper(), table["y"])
    table.to_csv("visits.csv", index=False)
    for command in ("init", "train"):
        with pytest.warns(LabelWarning) as caught:
            run(
                command,
                "visits.csv",
                "--label",
                "y",
                "--positive",
                "yes",
                *sets("model.tol=0.5") * (command == "train"),
            )
        assert sum(issubclass(warning.category, LabelWarning) for warning in caught) == 1


def test_a_mark_at_the_beginning_of_a_large_file_is_no_part_of_a_name(monkeypatch) -> None:
    monkeypatch.setattr("flows.init.read.MAX_BYTES", 2000)
    visits()[["y", "x"]].to_csv("visits.csv", index=False, encoding="utf-8-sig")
    assert result_of("init", "visits.csv", "--label", "y", "--output", "marked.yaml")["columns"] == {"x": "number"}


def test_the_time_of_a_split_is_no_feature_unless_it_is_kept() -> None:
    args = ("train", "visits.csv", "--label", "y", "--set", "model.tol=0.5")
    without = result_of(*args)
    features = load_model(f"{without['run']}/model").schema.feature_names
    assert not {"seen.days", "seen.year"} & set(features)
    assert "seen.weekday" in features
    run("score", without["run"], "visits.csv", "scores")
    assert sum(len(pd.read_parquet(file)) for file in Path("scores").glob("*.parquet")) == N
    kept = result_of(*args, "--set", "data.test.keep=true")
    assert {"seen.days", "seen.weekday"} <= set(load_model(f"{kept['run']}/model").schema.feature_names)
    number = result_of(*args, "--time", "cost", "--set", "data.direct=true")
    assert "cost" not in load_model(f"{number['run']}/model").schema.feature_names


def test_folds_that_choose_features_keep_the_groups_of_the_split_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def stop(row_id: np.ndarray, y: np.ndarray, *args: Any, groups: np.ndarray, **options: Any) -> None:
        made.append((row_id, groups))
        raise InputError("the folds are known")

    monkeypatch.setattr("aucdist.search.auto.Folds", stop)
    for direct in ("false", "true"):
        settings = sets("model.features=auto", f"data.direct={direct}")
        run("train", "visits.csv", "--label", "y", "--groups", "user_id", *settings, code=2)
        row_id, groups = made[-1]
        users = visits()["user_id"].to_numpy()[row_id]
        assert len(set(zip(users, groups, strict=True))) == len(set(users)) == len(set(groups)) > 1


def test_groups_stay_on_one_side() -> None:
    users, day = visits()["user_id"].to_numpy(), pd.to_datetime(visits()["seen"])
    for more in ((), ("--time", "seen")):
        args = ("--label", "y", "--groups", "user_id", *more, "--set", "model.tol=0.5")
        result = result_of("train", "visits.csv", *args)
        tested = pd.read_parquet(Path(result["run"]) / "scores.parquet")["row_id"].to_numpy()
        assert len(tested) + result["n_samples"] == N
        rest = np.setdiff1d(np.arange(N), tested)
        assert not set(users[tested]) & set(users[rest])
        config = yaml.safe_load((Path(result["run"]) / "config.yaml").read_text())["data"]
        assert "groups" not in config["source"]  # pairs are of all users
        assert config["test"]["groups"] == "user_id"
    latest = day.groupby(users).max()  # of the last loop, by time
    assert latest[np.unique(users[tested])].min() > latest[np.unique(users[rest])].max()


def test_options_of_a_file_of_data_and_a_configuration_exclude_each_other() -> None:
    described()
    assert "--label is for a file of data" in run("train", "c.yaml", "--label", "y", code=2)[1]
    shown = "unknown column in `--time`: 'when'"
    assert shown in run("init", "visits.csv", "--label", "y", "--time", "when", code=2)[1]


@pytest.mark.parametrize("n_blocks", [1, 7])
def test_the_last_rows_are_the_test_rows(n_blocks: int) -> None:
    random = np.random.default_rng(0)
    time = random.integers(0, 100, 400).astype(float)
    time[:10] = np.nan
    y = np.where(random.random(400) < 0.3, 1, -1)
    block = Block.of(np.column_stack([random.normal(size=400), time]), y)
    split = find_time_split(each_of(into_blocks(block, n_blocks)), 1, 0.25, 5.0)
    test, train = split.is_test(block), split.is_train(block)
    assert (test == (time >= split.start)).all()
    assert (train == ~(time >= split.start - 5.0)).all()  # those without a time among them
    assert abs(test.sum() / 390 - 0.25) < 0.02
    counts = [(int((side & (y < 0)).sum()), int((side & (y > 0)).sum())) for side in (test, train)]
    assert [split.n_test, split.n_train] == counts
    with pytest.raises(InputError, match="one class only in the"):
        find_time_split(each_of([Block.of(np.column_stack([time, time]), np.where(time > 90, 1, -1))]), 1, 0.05)
    with pytest.raises(InputError, match="all have the same time"):
        find_time_split(each_of([Block.of(np.ones((400, 1)), y)]), 0, 0.2)


def test_the_log_says_that_the_share_of_test_rows_is_not_the_configured_one(tmp_path: Path) -> None:
    """Months that are a quarter of the rows each cannot give a fifth of them."""
    random = np.random.default_rng(0)
    rows = pd.DataFrame({"x": random.normal(size=400), "month": np.repeat([1, 2, 3, 4], 100)})
    rows.assign(day=range(400), y=np.where(random.random(400) < 0.3, "yes", "no")).to_csv(
        tmp_path / "f.csv", index=False
    )
    config = {"source": {"source": str(tmp_path / "f.csv"), "format": "csv", "label": "y"}}
    said = "the test rows are 25.0% of the rows with a time, and not 20.0% as configured"
    said += ", because rows of the same time stay together"
    for time, notes in {"month": [said], "day": []}.items():
        observer = Following()
        opened = read_rows(DataConfig.model_validate(config | {"test": {"time": time}}))
        opened.partition("auto", Workers(), observer)
        assert [line.strip() for line in observer.lines if "configured" in line] == notes


def test_rows_of_a_day_are_those_of_all_groups() -> None:
    random, day = np.random.default_rng(0), np.repeat(np.arange(100.0), 20)
    user = random.integers(0, 50, 2000)  # all of them have rows until the last days
    block = Block.of(day[:, np.newaxis], np.where(random.random(2000) < 0.3, 1, -1), group=user)
    assert find_time_split(each_of([block]), 0, 0.25).per_day == {"test": 20, "training": 20}


def test_a_parquet_file_whose_rows_are_damaged_is_named() -> None:
    visits().to_parquet("rows.parquet")
    data = bytearray(Path("rows.parquet").read_bytes())
    data[60:200] = b"\xff" * 140  # the footer is whole
    Path("rows.parquet").write_bytes(data)
    _, err = run("init", "rows.parquet", "--label", "y", "--output", "rows.yaml", code=2)
    assert "rows.parquet is not a valid Parquet file: " in err
    assert not Path("rows.yaml").exists()


def test_half_precision_numbers_are_numbers() -> None:
    table = pa.table({"x": pa.array((np.arange(60) % 7 / 2).astype(np.float16)), "y": ["yes", "no", "no"] * 20})
    feather.write_feather(table, "rows.arrow", compression="uncompressed")
    run("init", "rows.arrow", "--label", "y", "--output", "rows.yaml")
    source = yaml.safe_load(Path("rows.yaml").read_text())["data"]["source"]
    assert not source.get("drop")
    assert not source.get("categorical")


@pytest.mark.parametrize("name", ["rows.parquet", "rows.jsonl"])
def test_only_rows_for_which_the_conditions_hold_are_looked_at(name: str) -> None:
    table = pd.DataFrame({"a": np.arange(40) * 1.5, "y": [0, 1] * 20})
    if name == "rows.parquet":
        table.to_parquet(name)
    else:
        table.to_json(name, orient="records", lines=True)
    run("init", name, "--label", "y", "--set", 'where=[[a, ">=", 15]]', "--output", "rows.yaml")
    assert "number a: 15 to 58.5" in Path("rows.yaml").read_text()


def test_a_dropped_column_does_not_decide_how_numbers_are_written() -> None:
    table = pd.DataFrame({"price": [f"${n},000" for n in range(1, 21)], "a": np.arange(20) / 8, "y": [0, 1] * 10})
    table.to_csv("rows.csv", index=False)
    run("init", "rows.csv", "--label", "y", "--output", "rows.yaml")
    assert 'symbols: ["$"]' in Path("rows.yaml").read_text()
    run("init", "rows.csv", "--label", "y", "--set", "drop=[price]", "--output", "rows.yaml", "--force")
    assert "symbols" not in (text := Path("rows.yaml").read_text())
    assert "- price  # as given" in text


def test_the_label_is_no_category() -> None:
    pd.DataFrame({"a": np.arange(20) / 8, "y": [0, 1] * 10}).to_csv("rows.csv", index=False)
    _, err = run("init", "rows.csv", "--label", "y", "--set", "categorical=[y]", "--output", "rows.yaml", code=2)
    assert "unknown column in `categorical`: 'y'" in err


def test_rows_of_later_months_raise_no_alarm() -> None:
    """The first 80 % of the rows span less than a year, so the month of a date is not a feature."""
    run("train", "visits.csv", "--label", "y", "--set", "model.tol=0.5")
    (trained,) = Path("runs").glob("2*")
    later = visits().drop(columns="y")
    later["seen"] = (pd.to_datetime(later["seen"]) + pd.Timedelta(300, "D")).dt.strftime("%Y-%m-%d")
    later.to_csv("later.csv", index=False)
    assert "no alarms" in run("watch", str(trained), "later.csv", "--state", "state")[0]


def test_a_time_that_is_neither_number_nor_date_is_refused() -> None:
    """Both commands say so in the same words, and so does a configuration."""
    words = "the rows cannot be split by the time 'kind', which has neither numbers nor dates to order them by"
    options = ("visits.csv", "--label", "y")
    for command in ("init", "train"):
        assert words in run(command, *options, "--time", "kind", code=2)[1]
    assert [path.name for path in Path().iterdir()] == ["visits.csv"]
    run("init", *options)
    assert words in run("train", "visits.yaml", "--set", "data.test={time: kind}", code=2)[1]

"""From YAML and --set to a checked configuration."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings, strategies as st
from pydantic_core._pydantic_core import list_all_errors
from support.command_line import refused
from support.runs import load_train

from aucdist.data.own_files import _said_of
from aucdist.errors import InputError
from flows.config.cluster import AddressConfig, LocalClusterConfig, NoCluster
from flows.config.data import source_from_name
from flows.config.loading import apply_setting, configs_folder, parse_yaml, to_yaml, validated, yaml_text
from flows.cv.config import CvConfig
from flows.train.config import TrainConfig


@pytest.mark.parametrize("path", sorted(configs_folder("train").glob("*.yaml")), ids=lambda p: p.stem)
def test_every_shipped_configuration_is_valid(path: Path) -> None:
    config = load_train(path.stem)
    assert config.name == path.stem
    assert config.model.built.get_params()["lam"] == config.model.lam


@pytest.mark.parametrize("path", sorted(configs_folder("cluster").glob("*.yaml")), ids=lambda p: p.stem)
def test_every_shipped_cluster_is_valid(path: Path) -> None:
    assert load_train("digits", [f"cluster={path.stem}"]).cluster.kind == path.stem


def test_set_changes_keys_in_order() -> None:
    config = load_train(
        "digits", ["model.lam=1e-2", "data.log1p=[a, b]", "cluster=local", "cluster.workers=4", "blocks=null"]
    )
    assert config.model.lam == 0.01
    assert config.data.log1p == ["a", "b"]
    assert config.cluster == LocalClusterConfig(kind="local", workers=4)
    assert config.blocks is None


def test_set_changes_a_key_of_a_cluster_that_is_named_anywhere() -> None:
    raw: dict[str, Any] = {"train": {"cluster": "local"}}
    apply_setting(raw, "train.cluster.workers=1")
    assert (raw["train"]["cluster"]["kind"], raw["train"]["cluster"]["workers"]) == ("local", 1)


@pytest.mark.parametrize("value", ["%d.%m.%Y %H:%M", "'%d.%m.%Y %H:%M'"])
def test_a_format_of_dates_needs_no_quotes_of_yaml(value: str) -> None:
    raw: dict[str, Any] = {}
    apply_setting(raw, f"date_format={value}")
    assert raw == {"date_format": "%d.%m.%Y %H:%M"}


def test_output_replaces_the_file() -> None:
    assert load_train("digits").output == "runs"
    assert load_train("digits", (), "s3://bucket/runs").output == "s3://bucket/runs"


def test_the_path_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.yml"
    path.write_text("name: mine\ndata: {name: digits}\n")
    config = load_train(str(path))
    assert config.cluster == NoCluster()
    assert config.model.built.get_params() == load_train("a9a").model.built.get_params()


@pytest.mark.parametrize(
    ("text", "value"),
    [("1e-3", 1e-3), ("-2E5", -2e5), ("1.5e+3", 1.5e3), ("1e", "1e"), ("abc", "abc"), ("12", 12), ("0.5", 0.5), ("", None)],
)  # fmt: skip
def test_numbers_of_yaml(text: str, value: object) -> None:
    assert parse_yaml(text, "here") == value
    assert type(parse_yaml(text, "here")) is type(value)


def test_resolved_configuration_gives_the_same_run(tmp_path: Path) -> None:
    config = load_train("digits", ["model.lam=0.02"])
    path = tmp_path / "config.yaml"
    path.write_text(to_yaml(config))
    again = load_train(str(path))
    assert again.model.built.get_params() == config.model.built.get_params()
    assert again.model_dump(exclude={"model"}) == config.model_dump(exclude={"model"})
    assert yaml.safe_load(to_yaml(config))["model"]["tol"] == 1e-3


def test_no_secret_in_the_resolved_configuration() -> None:
    source = "{source: 'https://u:canary@host/x?sig=canary', format: svmlight}"
    cluster = AddressConfig(kind="address", address="tcp://host:1", scratch="s3://key:canary@bucket/x")
    settings = ["data.name=null", f"data.source={source}", f"cluster={cluster.model_dump(exclude_none=True)}"]
    config = load_train("digits", settings)
    assert "canary" not in to_yaml(config)
    assert "host/x" in to_yaml(config)


@pytest.mark.parametrize(
    "text", ["1e-3", "+2E5", "1.e3", "yes", "on", "12:30", "0x1f", "1_000", "null", "~", "2024-01-31"]
)
def test_texts_come_back_as_texts(text):
    written = {"positive": text, "classes": [text], text: 1.5e-7}
    assert parse_yaml(yaml_text(written), "a run") == written


@pytest.mark.parametrize(
    "evil",
    [
        "!!python/object/apply:os.mkdir [{folder}/ran]",
        "!!python/object/new:os.mkdir [{folder}/ran]",
        "!!python/name:os.system",
        "!!python/module:os",
        "!!python/object:flows.train.config.TrainConfig {{}}",
    ],
)
@pytest.mark.parametrize("by", ["file", "set", "cluster", "source"])
def test_yaml_is_data_and_never_code(evil: str, by: str, tmp_path: Path) -> None:
    value = evil.format(folder=tmp_path)
    path = tmp_path / "evil.yaml"
    path.write_text(f"name: {value}\n")
    args = {
        "file": ["train", str(path)],
        "set": ["train", "digits", "--set", f"name={value}"],
        "cluster": ["train", "digits", "--set", f"cluster={path}"],
        "source": ["shard", str(path), str(tmp_path / "shards")],
    }[by]
    assert "not valid YAML: could not determine a constructor for the tag" in refused(*args)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["evil.yaml"]


def test_paths_are_looked_up_beside_the_yaml_then_here_then_below_the_data_root(tmp_path, monkeypatch):
    folders = [tmp_path / name for name in ("yaml", "here", "data")]
    for folder in folders:
        folder.mkdir()
        (folder / "c.csv").write_text("a,y\n1,0\n2,1\n")
    path = folders[0] / "c.yaml"
    path.write_text(
        "name: c\ndata:\n  source: {source: [c.csv], format: csv, label: y}\n"
        "  test: {source: {source: '*.csv', format: csv, label: y}}\n"
    )
    monkeypatch.chdir(folders[1])
    monkeypatch.setenv("AUCDIST_DATA", str(folders[2]))
    for folder in folders:
        data = load_train(str(path)).data
        assert data.source.source == [str(folder / "c.csv")]
        assert data.test.source.source == str(folder / "*.csv")
        (folder / "c.csv").unlink()
    with pytest.raises(InputError, match=r"cannot read c\.csv: no such file") as caught:
        load_train(str(path))
    for folder in folders:
        assert str(folder / "c.csv") in str(caught.value)
    assert load_train(str(path), ["data.source=null", "data.name=digits", "data.test=null"]).data.name == "digits"


def test_the_yaml_of_a_source_finds_files_in_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "c.csv").write_text("a,y\n1,0\n2,1\n")
    (tmp_path / "c.yaml").write_text("{source: c.csv, format: csv, label: y}\n")
    monkeypatch.chdir("/")
    assert source_from_name(str(tmp_path / "c.yaml"))[1].source == str(tmp_path / "c.csv")


def test_errors_of_pydantic_are_said_in_plain_sentences() -> None:
    """No message keeps pydantic's words, and each that says what a value should be says what it is."""
    for error in list_all_errors():
        text, context = error["example_message_python"], {}
        if "error" in (error["example_context"] or {}):
            context = {"error": ValueError("told by a validator")}
        said = _said_of({"type": error["type"], "ctx": context, "msg": text, "input": "x", "loc": ("a",)})
        assert not re.search("[sS]hould|Field required|valid integer|dictionary", said), said
        assert "should" not in text or context or re.fullmatch("must .*; got 'x'", said), said


# ---- fuzzed configurations: YAML with some characters changed is read, or refused with one of our errors


TEXT = """name: clicks
data:
  source: {source: clicks.csv, format: csv, label: clicked, positive: "yes", drop: [id], dates: {seen: [year, days]}}
  test: {fraction: 0.2, seed: 0}
  scale: standard
model: &m {estimator: PairwiseHingeClassifier, solver: all-pairs, lam: 1e-3, tol: 1e-3}
grid: {lam: {first: 1e-4, last: 1.0, number: 5}}
folds: {number: 5}
cluster: {kind: local, workers: 2, memory_limit: 2GiB}
"""
WORDS = [
    "", " ", "\n", ":", "-", "{", "}", "[", "]", "&m ", "*m", "!!int ", "!!binary ", "!!python/name:os ", "<<: *m", "|", ">",
    "null", "~", "yes", "2024-02-30", "1e999", ".nan", ".inf", "9" * 400, "0x_", "1:2:3", "'", '"', "\\", "\t", "\x00", "\ufeff",
    "\U0001f600", "%TAG", "---", "...", "? ", "[" * 60,
]  # fmt: skip
EDITS = st.lists(
    st.tuples(st.integers(0, len(TEXT)), st.integers(0, 12), st.sampled_from(WORDS)), min_size=1, max_size=4
)


def refusal(text: str) -> str | None:
    """Return the message for a text that is refused, as the command line would show it."""
    try:
        content = parse_yaml(text, "the file")
    except InputError as e:
        return str(e)
    for model in (TrainConfig, CvConfig):
        try:
            validated(model, content, "the file")
        except InputError as e:
            return str(e)
    return None


@given(EDITS)
@settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))
def test_a_configuration(edits: list[tuple[int, int, str]]) -> None:
    text = TEXT
    for at, length, word in edits:
        text = text[:at] + word + text[at + length :]
    message = refusal(text)
    assert message is None or 0 < len(message) < 20_000


def test_shards_of_a_sharding_that_was_killed_are_not_taken_for_parquet(tmp_path):
    folder = tmp_path / "half"
    folder.mkdir()
    (folder / "shard-00000-0123456789abcdef.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match="half has shards, but no CURRENT: the sharding did not end"):
        source_from_name(str(folder))
    (folder / "shard-00000-0123456789abcdef.parquet").rename(folder / "shard-0.parquet")
    assert source_from_name(str(folder), label="y")[1].format == "parquet"

"""Bad input: one message of one screen, exit code 2, no traceback, and nothing written."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from aucdist.data.storage import faults
from flows.cli import app

SVM = "".join(f"{'+1' if i % 3 == 0 else '-1'} 1:{i} 2:{i * i % 7}\n" for i in range(30))
CSV = "a,b,label\n" + "".join(f"{i},{i * i % 7},{'yes' if i % 3 == 0 else 'no'}\n" for i in range(30))
CSV_SOURCE = {"format": "csv", "label": "label", "positive": "yes"}

# file name and content (None: no file), the source beside its path, what the message must name
DATA: dict[str, tuple[str, str | None, dict[str, object], list[str]]] = {
    "missing file": ("none.svm", None, {"format": "svmlight"}, ["none.svm"]),
    "empty file": ("empty.svm", "", {"format": "svmlight"}, ["empty.svm"]),
    "malformed svmlight line": ("bad.svm", SVM + "+1 1:2 2;3\n", {"format": "svmlight"}, ["bad.svm", "31"]),
    "malformed csv line": ("bad.csv", CSV + "1,yes\n", CSV_SOURCE, ["bad.csv", "32"]),
    "text among numbers": ("bad.csv", CSV + "1,x7,yes\n", CSV_SOURCE, ["bad.csv", "32", "b"]),
    "nan, svmlight": ("nan.svm", SVM + "+1 1:nan\n", {"format": "svmlight"}, ["nan.svm", "31"]),
    "infinite, svmlight": ("inf.svm", SVM + "+1 1:inf\n", {"format": "svmlight"}, ["inf.svm", "31"]),
    "nan, csv": ("nan.csv", CSV + "1,nan,yes\n", CSV_SOURCE, ["nan.csv", "32", "b"]),
    "one class only": ("one.svm", "+1 1:1\n+1 1:2\n", {"format": "svmlight"}, ["one.svm", "class"]),
    "label not in data": ("ok.csv", CSV, {**CSV_SOURCE, "label": "lable"}, ["lable", "label"]),
    "class not in data": ("ok.csv", CSV, {**CSV_SOURCE, "positive": "yess"}, ["yess"]),
    "not a csv at all": ("ok.csv", "\x00\x01\x02", CSV_SOURCE, ["ok.csv"]),
    "truncated gzip": ("bad.svm.gz", "\x1f\x8b", {"format": "svmlight"}, ["bad.svm.gz"]),
}
SETTINGS: dict[str, tuple[list[str], list[str]]] = {  # --set, what the message must name
    "unknown key": (["modle.lam=1"], ["modle", "Did you mean 'model'?"]),
    "unknown key below": (["data.tets.fraction=0.2"], ["data", "tets", "Did you mean 'test'?"]),
    "unknown key of the cluster": (["cluster={kind: local, worker: 2}"], ["cluster", "Did you mean 'workers'?"]),
    "unknown estimator": (["model.estimator=PairwiseHinge"], ["estimator", "Did you mean 'PairwiseHingeClassifier'?"]),
    "unknown solver": (["model.solver=all-pair"], ["solver", "all-pairs"]),
    "unknown parameter": (["model.lamb=1"], ["lamb", "Did you mean 'lam'?"]),
    "lam of the wrong sign": (["model.lam=-1"], ["lam", "-1"]),
    "lam that is no number": (["model.lam=much"], ["model.lam", "much"]),
    "unknown data set": (["data.name=a9b"], ["data", "a9b", "Did you mean 'a9a'?"]),
    "unknown cluster": (["cluster=loca"], ["Did you mean 'local'?"]),
    "fraction too large": (["data.test.fraction=1.5"], ["data.test.fraction", "1.5"]),
    "feature of log1p not in data": (["data.log1p=[nosuch]"], ["nosuch"]),
    "no value": (["model.lam"], ["key=value"]),
    "broken value": (["data.log1p=[a"], ["data.log1p", "YAML"]),
}


def run_bad(args: list[str], output: Path) -> str:
    """Run `aucdist train`, check what all bad input has in common, and return the message."""
    result = CliRunner().invoke(app, ["train", *args, "--output", str(output)])
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert sum(1 + len(line) // 100 for line in result.stderr.splitlines()) <= 24  # one screen
    assert not output.exists()
    return result.stderr


def write_config(folder: Path, source: dict[str, object]) -> str:
    config = {"name": "bad", "data": {"source": source}, "model": {"lam": 0.01, "tol": 0.05}}
    path = folder / "bad.yaml"
    path.write_text(yaml.safe_dump(config))
    return str(path)


@pytest.mark.parametrize("case", DATA)
def test_bad_data(case: str, tmp_path: Path) -> None:
    name, content, source, named = DATA[case]
    if content is not None:
        (tmp_path / name).write_text(content, encoding="latin-1")
    message = run_bad([write_config(tmp_path, {"source": str(tmp_path / name), **source})], tmp_path / "runs")
    for text in named:
        assert text in message


@pytest.mark.parametrize("case", SETTINGS)
def test_bad_setting(case: str, tmp_path: Path) -> None:
    settings, named = SETTINGS[case]
    message = run_bad(["digits", *(part for s in settings for part in ("--set", s))], tmp_path / "runs")
    for text in named:
        assert text in message


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", ["nothing"]),
        ("- a\n", ["keys with values"]),
        ("name: a\nname: b\n", ["'name' is given twice", "line 2"]),
        ("name: [a\n", ["line 2", "YAML"]),
        ("name: a\n", ["data"]),
        ("name: a/b\ndata: {name: digits}\n", ["name", "a/b"]),
        ("name: a\ndata: {}\n", ["data", "name", "source"]),
    ],
)
def test_bad_configuration_file(text: str, named: list[str], tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    message = run_bad([str(path)], tmp_path / "runs")
    for part in ["mine.yaml", *named]:
        assert part in message


def test_no_such_configuration(tmp_path: Path) -> None:
    assert "Did you mean 'digits'?" in run_bad(["digit"], tmp_path / "runs")
    assert "mine.yaml" in run_bad([str(tmp_path / "mine.yaml")], tmp_path / "runs")


def test_unwritable_output_is_found_before_the_data_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    config = write_config(tmp_path, {"source": str(tmp_path / "none.svm"), "format": "svmlight"})
    message = run_bad([config], tmp_path / "file" / "runs")
    assert "cannot write to" in message
    assert "none.svm" not in message


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let S3 be an address where nobody listens."""
    import s3fs

    for key, value in {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "AWS_ACCESS_KEY_ID": "id",
        "AWS_SECRET_ACCESS_KEY": "canary-secret",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(key, value)
    monkeypatch.setattr(faults, "OPENING", 0.0)
    s3fs.S3FileSystem.clear_instance_cache()
    yield
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.mark.usefixtures("s3")
def test_unreachable_s3_for_data(tmp_path: Path) -> None:
    config = write_config(tmp_path, {"source": "s3://bucket/data.svm", "format": "svmlight"})
    message = run_bad([config], tmp_path / "runs")
    assert "s3://bucket/data.svm" in message
    assert "canary-secret" not in message


@pytest.mark.usefixtures("s3")
def test_unreachable_s3_for_output() -> None:
    result = CliRunner().invoke(app, ["train", "digits", "--output", "s3://bucket/runs"])
    assert result.exit_code == 2
    assert "cannot write s3://bucket/runs" in result.stderr
    assert "canary-secret" not in result.output


def test_prefix_that_matches_nothing(tmp_path: Path) -> None:
    config = write_config(tmp_path, {"source": "memory://nothing/here-*.svm", "format": "svmlight"})
    assert "here-*.svm" in run_bad([config], tmp_path / "runs")


def test_real_process_ends_with_2_and_writes_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "flows.cli", "train", "digits", "--set", "modle.lam=1"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert list(tmp_path.iterdir()) == []


def test_the_traceback_is_shown_on_demand() -> None:
    done = CliRunner().invoke(app, ["train", "digits", "--set", "data.name=nosuch", "--debug"])
    assert done.exit_code == 2
    assert "Traceback" in done.stderr
    assert "nosuch" in done.stderr.splitlines()[-1]


def test_usage_errors_end_with_2(tmp_path: Path) -> None:
    for args in (["train"], ["train", "digits", "--nosuch"], ["nosuch"]):
        result = CliRunner().invoke(app, args)
        assert result.exit_code == 2
        assert result.stdout == ""


def test_json_flag_keeps_stdout_empty_on_error(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["train", "digit", "--json"])
    assert result.exit_code == 2
    with pytest.raises(json.JSONDecodeError):
        json.loads(result.stdout)

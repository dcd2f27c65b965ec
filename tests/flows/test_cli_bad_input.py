"""Bad and hostile input: one message of one screen, at once and in bounded memory; exit code 2, no traceback, nothing written."""

import itertools
import shlex
from pathlib import Path

import pytest
import yaml
from support.command_line import refused, result_of, run, sets
from support.s3_servers import MOCK, new_connections, point_to
from support.tables import table_beside

from aucdist.data.storage import faults

SVM = "".join(f"{'+1' if i % 3 == 0 else '-1'} 1:{i} 2:{i * i % 7}\n" for i in range(30))
CSV = "a,b,label\n" + "".join(f"{i},{i * i % 7},{'yes' if i % 3 == 0 else 'no'}\n" for i in range(30))
CSV_SOURCE = {"format": "csv", "label": "label", "positive": "yes"}
LEVELS = "abcdefghijklmnop"

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
TABLE = table_beside(__file__)
SETTINGS: dict[str, list[str]] = {
    **TABLE["settings"],
    "model.lam=1" + "0" * 400: ["model.lam must be a number"],
    "blocks=1" + "0" * 400: ["at most 65536 are possible"],
}
LINES: dict[str, str] = TABLE["lines"]


def bomb() -> str:
    """Return YAML whose aliases stand for 10 ** 16 values."""
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"{two}: &{two} [{', '.join([f'*{level}'] * 10)}]" for level, two in itertools.pairwise(LEVELS)]
    return "\n".join([*lines, "name: *p", "data: *p"])


FILES: dict[str, tuple[str | bytes, list[str]]] = {
    **TABLE["files"],
    "a bomb of aliases": (bomb(), ["more than 100000 values with its aliases written out"]),
    "thousands of brackets": ("name: " + "[" * 5000, ["not valid YAML"]),
    "values that are deep": ("name: c\ndata: " + "{a: " * 200 + "1" + "}" * 200, ["or more than 50 levels"]),
    "megabytes": (
        "name: c\nmodel: {estimator: " + "k" * 5_000_000 + "}\ndata: {name: digits}",
        ["a configuration has at most 4194304 bytes"],
    ),
    "no UTF-8": (b"name: \xff", ["cannot read"]),
}


def said_of(output: Path, *args: object) -> str:
    """Run `aucdist train`, check what all bad input has in common, and return the message."""
    message = refused("train", *args, "--output", output, "--json")
    assert sum(1 + len(line) // 100 for line in message.splitlines()) <= 24  # one screen
    assert not output.exists()
    return message


def write_config(folder: Path, source: dict[str, object]) -> Path:
    config = {"name": "bad", "data": {"source": source}, "model": {"lam": 0.01, "tol": 0.05}}
    path = folder / "bad.yaml"
    path.write_text(yaml.safe_dump(config))
    return path


@pytest.mark.parametrize("case", DATA)
def test_bad_data(case: str, tmp_path: Path) -> None:
    name, content, source, named = DATA[case]
    if content is not None:
        (tmp_path / name).write_text(content, encoding="latin-1")
    message = said_of(tmp_path / "runs", write_config(tmp_path, {"source": str(tmp_path / name), **source}))
    assert all(text in message for text in named), message


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting[:40])
def test_a_bad_setting(setting: str, tmp_path: Path) -> None:
    message = said_of(tmp_path / "runs", "digits", *sets("cluster=none", setting))
    assert all(text in message for text in SETTINGS[setting]), message


@pytest.mark.parametrize("case", FILES)
def test_a_bad_configuration_file(case: str, tmp_path: Path) -> None:
    text, named = FILES[case]
    path = tmp_path / "mine.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    message = said_of(tmp_path / "runs", path)
    assert all(part in message for part in ["mine.yaml", *named]), message


def test_no_such_configuration(tmp_path: Path) -> None:
    assert "Did you mean 'digits'?" in said_of(tmp_path / "runs", "digit")
    assert "mine.yaml" in said_of(tmp_path / "runs", tmp_path / "mine.yaml")


def test_unwritable_output_is_found_before_the_data_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    config = write_config(tmp_path, {"source": str(tmp_path / "none.svm"), "format": "svmlight"})
    message = said_of(tmp_path / "file" / "runs", config)
    assert "cannot write to" in message
    assert "none.svm" not in message


def test_an_s3_server_that_is_not_there_is_named_for_data_and_output(tmp_path, monkeypatch):
    point_to(monkeypatch, "http://127.0.0.1:9", *MOCK)
    monkeypatch.setattr(faults, "RETRY_SECONDS", 0.0)
    config = write_config(tmp_path, {"source": "s3://bucket/data.svm", "format": "svmlight"})
    with new_connections():
        messages = said_of(tmp_path / "runs", config), refused("train", "digits", "--output", "s3://bucket/runs")
    assert "s3://bucket/data.svm" in messages[0]
    assert "cannot write s3://bucket/runs" in messages[1]
    assert MOCK[1] not in "".join(messages)


def test_prefix_that_matches_nothing(tmp_path: Path) -> None:
    config = write_config(tmp_path, {"source": "memory://nothing/here-*.svm", "format": "svmlight"})
    assert "here-*.svm" in said_of(tmp_path / "runs", config)


def test_the_traceback_is_shown_on_demand() -> None:
    stderr = run("train", "digits", *sets("data.name=nosuch"), "--debug", code=2)[1]
    assert "Traceback" in stderr
    assert "nosuch" in stderr.splitlines()[-1]


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> str:
    settings = sets("cluster=none", "model.tol=0.5", "data.test=null")
    return str(result_of("train", "digits", *settings, "--output", tmp_path_factory.mktemp("runs"))["run"])


@pytest.mark.parametrize("line", LINES)
def test_a_bad_command_line(line: str, digits: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    Path("rows.csv").write_text(CSV)
    Path("rows.yaml").write_text("data: digits\n")
    Path("rows").write_bytes(bytes(range(1, 32)))
    Path("cells.csv").write_text(CSV.replace(",", ";"))
    Path("cells.json").write_text('{"format": "aucdist model", "version": 1}')
    assert LINES[line] in refused(*shlex.split(line.replace("{run}", digits)))
    if not line.startswith("score"):  # which notes in its output what it was asked for
        assert sorted(path.name for path in tmp_path.iterdir()) == [
            "cells.csv",
            "cells.json",
            "rows",
            "rows.csv",
            "rows.yaml",
        ]


def test_data_are_named_by_patterns_and_by_names_with_signs_of_urls(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p").mkdir()
    for name in ("p/1.csv", "p/2.csv"):
        (tmp_path / name).write_text(CSV)
    (tmp_path / "a#b?c.tsv").write_text(CSV.replace(",", "\t"))
    assert result_of("init", "p/*.csv", "--label", "label", "--output", "p.yaml")["config"] == "p.yaml"
    assert result_of("init", "a#b?c.tsv", "--label", "label")["config"] == "a#b?c.yaml"
    assert "name of the data is empty" in refused("init", "", "--label", "label")
    assert "nothing matches" in refused("init", "p/*.tsv", "--label", "label")


def test_what_a_command_does_not_name_stays_as_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = tmp_path / "a.csv"
    data.write_text(CSV)
    assert "local file" in refused("init", "a.csv", "--label", "label", "--output", "s3://b/a.yaml")
    run("train", "a.csv", "--label", "label")
    model = next((tmp_path / "runs").iterdir())
    assert "is a file of the data" in refused("explain", model, "a.csv", "--output", "./a.csv")
    assert data.read_text() == CSV
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "runs"]
    long = f"{'n' * 240}.csv"
    (tmp_path / long).write_text(CSV)
    assert "File name too long" in refused("train", long, "--label", "label")

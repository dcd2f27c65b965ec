"""`aucdist data list | show | verify`."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from support.browser import Browser
from support.command_line import result_of, run

from aucdist.data.dataset import Schema
from aucdist.data.shards.manifest import read_manifest
from aucdist.data.sources import catalog
from aucdist.drift.leaks import Sample
from flows.preview import BINS, shown_columns


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    run("simulate", tmp_path / "set", "--rows", 60, "--features", 12, "--positive-share", 0.3, "--rows-per-shard", 20)
    return tmp_path / "set"


def test_list_tells_shapes_and_presence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUCDIST_DATA", str(tmp_path))
    (tmp_path / "libsvm").mkdir()
    (tmp_path / "libsvm" / "a9a.xz").write_bytes(b"")
    lines = {line.split()[0]: line.split()[1:] for line in run("data", "list")[0].splitlines()}
    assert lines.keys() == catalog().keys()
    assert lines["a9a"] == ["svmlight", "32561", "x", "123", "here"]
    assert lines["digits"][-1] == "here"
    assert lines["news20"] == ["svmlight", "15935", "x", "62061", "absent"]
    assert "Did you mean 'a9a'?" in run("data", "show", "a9b", code=2)[1]
    sets = result_of("data", "list")
    assert sets["a9a"] == {"format": "svmlight", "rows": 32561, "features": 123, "present": True}
    assert sets["news20"]["present"] is False


def test_show_tells_what_the_manifest_says(shards: Path) -> None:
    shown = yaml.safe_load(run("data", "show", shards)[0])["set"]
    assert (shown["rows"], shown["features"], shown["shards"]) == (60, 12, 3)
    assert shown["feature_names"] == [f"x{i}" for i in range(1, 11)] + ["and 2 more"]
    assert shown["positives"] == read_manifest(str(shards)).n_pos
    assert shown["origin"]["simulated"]["seed"] == 0
    assert json.loads(run("data", "show", shards, "--json")[0]) == {"set": shown}
    assert "rows: 60" in run("data", "show", read_manifest(str(shards)).url)[0]
    value = yaml.safe_load(run("data", "show", "digits")[0])["digits"].items()
    assert value >= {"format": "embedded", "present": True}.items()


def test_verify_names_every_fault(shards: Path) -> None:
    assert run("data", "verify", shards, "digits")[0] == f"{shards}: intact\ndigits: intact\n"
    first, second, _ = read_manifest(str(shards)).shards
    (shards / first.file).unlink()
    path = shards / second.file
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    stdout, stderr = run("data", "verify", shards, "digits", code=2)
    assert stdout == f"{shards}: 2 faults\ndigits: intact\n"
    assert f"cannot read {shards / first.file}: no such file" in stderr
    assert f"{path} is truncated or altered" in stderr
    faults = json.loads(run("data", "verify", shards, "--json", code=2)[0])
    assert len(faults[str(shards)]) == 2
    assert "unknown file or data set 'nosuch'" in run("data", "verify", "nosuch", code=2)[1]


def test_verify_compares_with_the_catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rows.csv").write_text("a,y\n1,0\n2,1\n")
    entry = {"source": str(tmp_path / "rows.csv"), "format": "csv", "label": "y", "rows": 3}
    (tmp_path / "rows.yaml").write_text(yaml.safe_dump(entry))
    stdout, stderr = run("data", "verify", tmp_path / "rows.yaml", code=2)
    assert stdout.endswith("rows.yaml: 1 faults\n")
    assert "3 rows were expected, but 2 were found" in stderr


def test_verify_takes_all_that_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    import flows.data_sets

    few = {name: catalog()[name] for name in ("iris", "wine", "absent-one") if name in catalog()}
    monkeypatch.setattr(flows.data_sets, "catalog", lambda: few)
    assert run("data", "verify")[0] == "iris: intact\nwine: intact\n"


# ---- the page of `data preview --html`: what it says of each column, and how it looks in a browser


N = 300


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    y = random.random(N) < 0.3
    age = np.where(random.random(N) < 0.1, np.nan, random.normal(size=N) + y)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 99, N), "D")
    grade = random.integers(0, 4, N)
    columns = {"<b>age": age, "alive": np.where(y, "no", "yes"), "grade": grade, "seen": days, "y": y * 1}
    pd.DataFrame(columns).to_csv("t.csv", index=False)
    said = run("init", "t.csv", "--label", "y")[0]
    assert "next: aucdist data preview t.yaml --html t.html\n'1' is the positive class" in said
    assert "page: t.html" in run("data", "preview", "t.yaml", "--html", "t.html")[0]
    return Path("t.html").read_text()


def test_a_share_that_rounds_to_nothing_is_not_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(0).normal(size=3000)
    x[7] = np.nan
    pd.DataFrame({"x": x, "y": np.arange(3000) % 2}).to_csv("t.csv", index=False)
    run("data", "preview", "t.csv", "--set", "label=y", "--set", "missing=keep", "--html", "t.html")
    assert "&lt;0.1% missing" in Path("t.html").read_text()


def test_the_page_names_columns_that_reveal_the_label(page: str) -> None:
    names = re.findall(r"<strong[^>]*>(.*?)</strong>", page)
    assert names[0] == "alive"
    assert sorted(names[1:]) == ["&lt;b&gt;age", "grade", "seen"]
    assert "AUC alone 1.0000" in page
    assert "Column &#39;alive&#39; alone tells the classes apart" in page
    assert re.search(r"\d+\.\d% missing", page)
    assert "none missing" in page
    assert page.count("<svg") == 4
    assert "<script" not in page


def test_heights_are_shares_of_each_class() -> None:
    positive = np.arange(200) < 50
    values = np.column_stack([np.where(positive, np.arange(200) % 2, 1.0), np.linspace(0.0, 1.0, 200)])
    schema = Schema(("few", "many"), "y", ("1",), ("0",), {})
    shown = {column.name: column for column in shown_columns(Sample(values, positive, np.arange(200)), schema)}
    few, many = shown["few"], shown["many"]
    assert few.bars == [(0.0, 0.5, "0"), (1.0, 0.5, "1")]
    assert len(many.bars) == BINS
    assert [sum(bar[side] for bar in many.bars) for side in (0, 1)] == pytest.approx([1.0, 1.0])


def test_a_hashed_column_has_a_bar_for_each_of_its_features() -> None:
    positive = np.arange(200) < 50
    flags = np.arange(200)[:, np.newaxis] % 3 == np.arange(3)
    schema = Schema(("k#0", "k#1", "k#2"), "y", ("1",), ("0",), {}, {"k": 3})
    (column,) = shown_columns(Sample(flags * 1.0, positive, np.arange(200)), schema)
    assert (column.kind, column.range, len(column.bars)) == ("hashed", "3: 0, 1, 2", 3)


def test_the_page_in_chromium(page: str, chromium: Browser, tmp_path: Path) -> None:
    assert page
    for width, dark in ((1300, False), (1300, True), (420, False), (420, True)):
        chromium.open(tmp_path / "t.html", width=width, dark=dark)
        assert chromium.evaluate("document.documentElement.scrollWidth") <= width
    assert chromium.evaluate("[...document.querySelectorAll('svg')].every(s => s.getBoundingClientRect().height > 50)")
    assert chromium.messages == []


@pytest.mark.parametrize("topics", [False, True])
def test_each_of_several_classes_is_looked_at(tmp_path: Path, topics: bool) -> None:
    random = np.random.default_rng(1)
    kind = np.repeat(["ant", "bee", "<cat>"], [150, 90, 60])[random.permutation(300)]
    x, says = random.normal(size=300), np.where(kind == "bee", 2.0, random.random(300))
    if topics:
        lines = [f"{k},all 1:{a:.4f} 2:{b:.4f}" for k, a, b in zip(kind, x, says, strict=True)]
        (tmp_path / "t.svm").write_text("\n".join([*lines, " 1:0.5 2:0.5"]) + "\n")
        source = "source: t.svm, format: svmlight, labels: topics, positive: {each: [ant, bee, <cat>]}"
    else:
        pd.DataFrame({"x": x, "says": says, "kind": kind}).to_csv(tmp_path / "t.csv", index=False)
        source = "source: t.csv, format: csv, label: kind, positive: each"
    (tmp_path / "t.yaml").write_text(f"name: t\ndata: {{source: {{{source}}}}}\nmodel: {{}}\n")
    text = run("data", "preview", tmp_path / "t.yaml", "--html", tmp_path / "t.html")[0]
    column = "2" if topics else "says"
    assert "3 classes, each against the rest\n  ant: 150 rows" in text
    assert f"bee: 90 rows, best column alone {column} (AUC 1.000)" in text
    warned = re.findall(r"^warning: Class (.*?) against the rest: (.*)$", text, re.MULTILINE)
    assert [name for name, said in warned if column in said] == ["'bee'"]
    page = (tmp_path / "t.html").read_text()
    assert "<bdi>&lt;cat&gt;</bdi></td><td>60</td>" in page
    assert "150 positive" in page

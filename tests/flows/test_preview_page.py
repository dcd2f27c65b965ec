"""The page of `data preview --html`: what it says of each column, and how it looks in a browser."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.browser import browser, installed
from support.command_line import run

from aucdist.data.dataset import Schema
from aucdist.drift.leaks import Sample
from flows.preview import BINS, HEIGHT, shown_columns

N = 300


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    y = random.random(N) < 0.3
    age = np.where(random.random(N) < 0.1, np.nan, random.normal(size=N) + y)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 99, N), "D")
    columns = {
        "<b>age": age,
        "alive": np.where(y, "no", "yes"),
        "grade": random.integers(0, 4, N),
        "seen": days,
        "y": y * 1,
    }
    pd.DataFrame(columns).to_csv("t.csv", index=False)
    said = run("init", "t.csv", "--label", "y")[0]
    assert "next: aucdist data preview t.yaml --html t.html\npositive class '1' was guessed" in said
    assert "page: t.html" in run("data", "preview", "t.yaml", "--html", "t.html")[0]
    return Path("t.html").read_text()


def test_what_it_says(page: str) -> None:
    names = re.findall(r"<strong[^>]*>(.*?)</strong>", page)
    assert names[0] == "alive"
    assert sorted(names[1:]) == ["&lt;b&gt;age", "grade", "seen"]
    assert "AUC alone 1.0000" in page
    assert "Column &#39;alive&#39; alone tells the classes apart" in page
    assert re.search(r"\d+\.\d% missing", page)
    assert page.count("<svg") == 4
    assert "<script" not in page


def test_heights_are_shares_of_each_class() -> None:
    positive = np.arange(200) < 50
    values = np.column_stack([np.where(positive, np.arange(200) % 2, 1.0), np.linspace(0.0, 1.0, 200)])
    few, many = sorted(
        shown_columns(Sample(values, positive, np.arange(200)), Schema(("few", "many"), "y", ("1",), ("0",), {})),
        key=lambda column: column.name,
    )
    assert [bar[:2] for bar in few.bars] == [(0.0, HEIGHT / 2), (HEIGHT, HEIGHT / 2)]
    assert few.bars[0][2] == "0: 0.0% of negative, 50.0% of positive"
    assert len(many.bars) == BINS
    assert max(positive for _, positive, _ in many.bars) == HEIGHT


@pytest.mark.skipif(installed() is None, reason="there is no Chromium here (Debian: apt-get install chromium)")
def test_the_page_in_chromium(page: str, tmp_path: Path) -> None:
    assert page
    with browser(tmp_path / "profile") as chromium:
        for width, dark in ((1300, False), (1300, True), (420, False), (420, True)):
            chromium.open(tmp_path / "t.html", width=width, dark=dark)
            assert chromium.evaluate("document.documentElement.scrollWidth") <= width
        assert chromium.evaluate(
            "[...document.querySelectorAll('svg')].every(s => s.getBoundingClientRect().height > 50)"
        )
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

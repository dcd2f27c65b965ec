"""The Python code of the documentation runs as it is printed, each page's from top to bottom, and prints what the page shows."""

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.printed import differences, script

GUIDES = script("guides")
OTHERS = {"coming-from": ("lightgbm", "imblearn"), "rare-class": ("lightgbm",)}
"""Packages beside which a page shows ours."""
MANY_FITS = ("coming-from", "rare-class")
"""Pages whose code takes longer than that of all others together."""
REAL_ROWS = '"covtype-ramp-test.csv.xz"'
"""What the code of a page names that reads this data set from where `aucdist data fetch` puts it."""
ON_A_CLUSTER = GUIDES.ELSEWHERE[0]
"""The code of the other page reads what its commands write; tests/flows/test_export_command.py runs both."""


def text_of(page: str) -> str:
    return (GUIDES.PAGES / f"{page}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.slow] if page in MANY_FITS else [])
        for page in GUIDES.names()
        if page not in GUIDES.ELSEWHERE
    ],
)
def test_a_page_shows_what_its_code_prints(page, request, tmp_path, monkeypatch):
    if REAL_ROWS in text_of(page):
        monkeypatch.setenv("AUCDIST_DATA", str(request.getfixturevalue("data_dir")))
    for package in OTHERS.get(page, ()):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    monkeypatch.chdir(tmp_path)
    assert differences(GUIDES.with_outputs(page), text_of(page)) == []


def test_the_notebook_is_its_page() -> None:
    """So its code runs, and prints what the notebook shows."""
    assert GUIDES.NOTEBOOK.read_text(encoding="utf-8") == GUIDES.notebook()
    cells = json.loads(GUIDES.notebook())["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert "".join(code[0]["source"]).startswith("import os")
    assert sum(bool(cell["outputs"]) for cell in code) == text_of(GUIDES.NOTEBOOK.stem).count("```text")


def test_code_on_a_cluster(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    printed = GUIDES.with_outputs(ON_A_CLUSTER, ("tcp://127.0.0.1:8786", cluster.scheduler_address))
    assert differences(printed, text_of(ON_A_CLUSTER)) == []
    assert len(list(tmp_path.glob("digits/*.parquet"))) == 4


def test_output_that_differs_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GUIDES, "PAGES", tmp_path)
    page = tmp_path / "sum.md"
    page.write_text("Two:\n\n```python\nprint('sum', 1 + 1)\n```\n\nMore.\n", encoding="utf-8")
    shown = GUIDES.with_outputs("sum")
    assert shown == "Two:\n\n```python\nprint('sum', 1 + 1)\n```\n\n```text\nsum 2\n```\n\nMore.\n"
    with pytest.raises(AssertionError):  # the output is missing
        differences(shown, page.read_text(encoding="utf-8"))
    page.write_text(shown, encoding="utf-8")
    assert GUIDES.with_outputs("sum") == shown
    assert differences(shown, re.sub("sum 2", "sum 200", shown)) == [("2", "200")]

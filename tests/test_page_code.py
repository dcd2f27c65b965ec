"""The Python code of the documentation runs as it is printed, each page's from top to bottom."""

import json
import re
import warnings
from pathlib import Path
from typing import Any

import pytest

from aucdist.metrics import IntervalWarning

PAGES = Path(__file__).resolve().parents[1] / "docs" / "pages"
BLOCKS = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WITH_CODE = {
    file.relative_to(PAGES).as_posix(): BLOCKS.findall(file.read_text(encoding="utf-8"))
    for file in sorted(PAGES.rglob("*.md"))
    if file.parent.name != "examples"  # test_stories.py runs these
}
ON_A_CLUSTER, BESIDE_OTHERS = "how-to/dask-cluster.md", "coming-from.md"
TESTED_BELOW = (ON_A_CLUSTER, BESIDE_OTHERS)
AFTER_COMMANDS = "how-to/take-elsewhere.md"
"""Its code reads what its commands write; tests/flows/export runs both."""
PRINTED = {
    "how-to/dask-cluster.md": r"^True$",
    "how-to/data-set.md": r"^\('age',\) \[-1  1 -1 -1\]$",
    "how-to/few-false-alarms.md": r"95 % interval",
    "how-to/pipelines.md": r"^converged\n(.*\n)+converged$",
    "how-to/solver.md": r"^plain stationary",
}
"""What the output of a page has to show."""


def output_of(page: str, capsys: pytest.CaptureFixture[str], address: str = "") -> str:
    names: dict[str, Any] = {"__name__": "__main__"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IntervalWarning)  # the data of examples are small
        for block in WITH_CODE[page]:
            exec(compile(block.replace("tcp://127.0.0.1:8786", address), page, "exec"), names)
    return capsys.readouterr().out


@pytest.mark.parametrize(
    "page", [page for page, blocks in WITH_CODE.items() if blocks and page not in (*TESTED_BELOW, AFTER_COMMANDS)]
)
def test_code_of_a_page(
    page: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert re.search(PRINTED.get(page, r"\d"), output_of(page, capsys), re.MULTILINE)


def test_the_notebook_runs(capsys: pytest.CaptureFixture[str]) -> None:
    cells = json.loads((PAGES / "first-model.ipynb").read_text(encoding="utf-8"))["cells"]
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), "first-model.ipynb", "exec"), names)
    printed = capsys.readouterr().out
    assert "converged" in printed
    assert re.search(r"The AUC is higher by 0\.0\d", printed)


def test_code_on_a_cluster(
    capsys: pytest.CaptureFixture[str], cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = output_of(ON_A_CLUSTER, capsys, cluster.scheduler_address)
    assert re.search(PRINTED[ON_A_CLUSTER], found, re.MULTILINE)
    assert re.search(r"0\.98\d+ Interval\(", found, re.MULTILINE)
    assert len(list(tmp_path.glob("digits/*.parquet"))) == 4


def test_ours_ranks_well_where_it_stands_beside_others(capsys: pytest.CaptureFixture[str]) -> None:
    printed = output_of(BESIDE_OTHERS, capsys)
    areas = [float(line) for line in printed.splitlines() if re.fullmatch(r"0?\.\d+|1\.0", line)]
    assert len(areas) == 5
    assert min(areas) > 0.9

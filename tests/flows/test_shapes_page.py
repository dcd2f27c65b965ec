"""The page "Shapes one can defend": its commands run as they are printed, from a CSV file to a card."""

import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
from support.printed import run_page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "pages" / "how-to" / "explaining.md"


@pytest.mark.filterwarnings("ignore:the interval of the AUC")
def test_the_card_is_the_one_printed(tmp_path: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not (file := data_dir / "tables" / "german.csv").exists():
        pytest.skip("the German credit data are not there")
    shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    outputs = run_page(PAGE)
    assert len(outputs) == 5
    card = Path("card.md").read_text(encoding="utf-8")
    shown = re.findall(r"^```text\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert [block in card for block in shown].count(True) == 1
    assert card.count("\n| ") == 31
    areas = re.findall(r"the AUC of the card is (0\.\d+), that of the model (0\.\d+)", card)
    assert [float(area) for area in areas[1]] == pytest.approx([0.8020, 0.7980], abs=2e-4)
    points = re.findall(r"^\| duration \| .*? \| (-?\d+) \|", card, re.MULTILINE)
    assert [int(p) for p in points] == sorted((int(p) for p in points), reverse=True)
    scores = pd.read_parquet("scores")
    assert (scores["points"] - scores["score"] == 600).all()
    assert "compared with the most favourable values: account = A11 (-30)" in outputs[-1][1]

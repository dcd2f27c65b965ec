"""The stories of the documentation print what their pages say, on the data that they name."""

from pathlib import Path
from types import ModuleType

import pytest
from support.printed import differences, script

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "pages" / "examples"
DATA = {
    "churn": "tables/hr.csv", "credit": "tables/german.csv", "credit-cards": "tables/UCI_Credit_Card.csv",
    "intrusion": "uci/kddcup.data_10_percent.xz", "news-topics": "libsvm/news20.xz", "rare-disease": "keel/cleveland-0_vs_4.dat",
    "search-list": "rank/lightgbm-rank.t.xz",
}  # fmt: skip
QUICK = ("search-list",)
"""The others take commands, many fits or minutes."""


@pytest.fixture(scope="module")
def stories() -> ModuleType:
    return script("stories")


def test_numbers_of_a_story_are_compared_by_size() -> None:
    page = "AUC 0.941 to 0.989, 4.5e-04 from the optimum, 85%"
    assert differences("AUC 0.943 to 0.985, 9.9e-04 from the optimum, 83%", page) == []
    assert differences("AUC 0.930 to 0.989, 4.5e-03 from the optimum, 75%", page) == [
        ("0.930", "0.941"), ("4.5e-03", "4.5e-04"), ("75", "85"),
    ]  # fmt: skip
    with pytest.raises(AssertionError):
        differences("AP 0.941 to 0.989, 4.5e-04 from the optimum, 85%", page)


def test_every_story_names_its_data(stories: ModuleType) -> None:
    assert stories.names() == sorted(DATA)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in DATA]
)
def test_a_story_prints_what_its_page_says(name, stories, data_dir, tmp_path, monkeypatch):
    pytest.importorskip("lightgbm", reason="LightGBM is not installed")
    if not (data_dir / DATA[name]).exists():
        pytest.skip(f"the data of the story are not there: {DATA[name]}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AUCDIST_DATA", str(data_dir))
    page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    with stories.drawing():
        assert differences(stories.run(name)[0], page) == []
    assert f"]({name}.svg)" in page
    drawn = (tmp_path / f"{name}.svg").read_text(encoding="utf-8")
    kept = (PAGES / f"{name}.svg").read_text(encoding="utf-8")
    assert drawn.count("<path") == kept.count("<path") > 10

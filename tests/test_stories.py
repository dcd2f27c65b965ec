"""The stories of the documentation print what their pages say, on the data that they name."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "pages" / "examples"
DATA = {
    "churn": "tables/hr.csv",
    "credit": "tables/german.csv",
    "intrusion": "uci/kddcup.data_10_percent.xz",
    "news-topics": "libsvm/news20.xz",
    "rare-disease": "keel/cleveland-0_vs_4.dat",
    "search-list": "rank/lightgbm-rank.t.xz",
}
QUICK = ("rare-disease", "search-list")
"""The others take commands or minutes."""
NUMBER = re.compile(r"\d+(?:\.(\d+))?(e-?\d+)?")


def differences(printed: str, page: str) -> list[tuple[str, str]]:
    """Return the pairs of numbers that differ by more than another processor may make them differ.

    Libraries add in another order on another processor. So the words have to be the same, and a number may differ by one in a
    hundred or by five units of its last place. Of a gap, which is printed with an exponent, only the size is compared.
    """
    assert " ".join(NUMBER.sub("#", printed).split()) == " ".join(NUMBER.sub("#", page).split())

    def far(now: re.Match[str], then: re.Match[str]) -> bool:
        if then[2]:
            return not 0.1 < float(now[0]) / float(then[0]) < 10
        return abs(float(now[0]) - float(then[0])) > max(0.01 * float(then[0]), 5 / 10 ** len(then[1] or ""))

    pairs = zip(NUMBER.finditer(printed), NUMBER.finditer(page), strict=True)
    return [(now[0], then[0]) for now, then in pairs if far(now, then)]


@pytest.fixture(scope="module")
def stories() -> ModuleType:
    spec = importlib.util.spec_from_file_location("stories", ROOT / "docs" / "stories.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
def test_a_story_prints_what_its_page_says(
    name: str, stories: ModuleType, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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

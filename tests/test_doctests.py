"""The examples in docstrings, and those of the gallery, do what they say."""

import doctest
import importlib
import runpy
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILES = [file for file in sorted((ROOT / "aucdist").rglob("*.py")) if ">>> " in file.read_text(encoding="utf-8")]
EXAMPLES = sorted((ROOT / "docs" / "examples").glob("*.py"))
NO_EXAMPLE = {
    "CollapseWarning", "RankingWarning", "SeparationWarning", "IntervalWarning", "Estimate", "Guarantee",
    "OperatingPoint", "Difference", "Reliability", "__version__",
}  # fmt: skip
"""Public names that are results or warnings of others, whose examples show them."""


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_docstrings(file: Path) -> None:
    module = importlib.import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))
    failed, tried = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert tried > 0
    assert failed == 0, "the difference is on stdout"


@pytest.mark.parametrize(
    "package", ["aucdist", "aucdist.export", "aucdist.maps", "aucdist.metrics", "aucdist.sampling"]
)
def test_every_public_name_has_an_example(package: str) -> None:
    module = importlib.import_module(package)
    without = [name for name in module.__all__ if ">>> " not in (getattr(module, name).__doc__ or "")]
    assert set(without) <= NO_EXAMPLE


@pytest.mark.slow  # `make docs` runs each of them as well: an error, a warning or a missing picture ends it
@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_gallery_prints_and_draws(file, capsys, tmp_path, monkeypatch):
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings(action="error"):
        runpy.run_path(str(file), run_name="__main__")
    plt.close("all")
    assert capsys.readouterr().out
    picture = (tmp_path / f"{file.stem}.svg").read_text(encoding="utf-8")
    assert picture.count("<path") > 10
    kept = ROOT / "docs" / "pages" / "gallery" / f"{file.stem}.svg"  # for readers of a clone
    if kept.exists():
        assert kept.read_text(encoding="utf-8").count("<path") == picture.count("<path"), "keep the new picture"

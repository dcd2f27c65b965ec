"""The examples in docstrings, and those of the gallery, do what they say."""

import doctest
import importlib
import inspect
import re
from pathlib import Path
from pkgutil import resolve_name
from types import FunctionType

import pytest
from support.printed import differences, script

ROOT = Path(__file__).resolve().parents[1]
FILES = [file for file in sorted((ROOT / "aucdist").rglob("*.py")) if ">>> " in file.read_text(encoding="utf-8")]
GALLERY = script("gallery")
SHOWN = re.compile(r"^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
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


def test_every_function_of_the_reference_has_an_example() -> None:
    described = {path: resolve_name(path) for path in script("reference").places()}
    functions = {path: thing for path, thing in described.items() if isinstance(thing, FunctionType)}
    methods = {path for path in functions if isinstance(resolve_name(path.rpartition(".")[0]), type)}
    assert len(functions) - len(methods) > 40
    assert [path for path in functions.keys() - methods if ">>> " not in inspect.getdoc(functions[path])] == []


def test_the_gallery_has_the_code_of_its_examples() -> None:
    page = GALLERY.PAGE.read_text(encoding="utf-8")
    shown = {file.stem: output for file, output in zip(GALLERY.EXAMPLES, SHOWN.findall(page), strict=True)}
    assert page == GALLERY.page(shown), "make the page again: python docs/gallery.py"


@pytest.mark.slow
@pytest.mark.parametrize("file", GALLERY.EXAMPLES, ids=lambda file: file.stem)
def test_gallery_prints_and_draws(file, tmp_path, monkeypatch):
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    printed = GALLERY.output_of(file)
    plt.close("all")
    page = GALLERY.PAGE.read_text(encoding="utf-8")
    shown = SHOWN.findall(page)[GALLERY.EXAMPLES.index(file)]
    assert printed
    assert differences(printed, shown) == []
    picture = (tmp_path / f"{file.stem}.svg").read_text(encoding="utf-8")
    kept = (GALLERY.PAGE.with_suffix("") / f"{file.stem}.svg").read_text(encoding="utf-8")
    assert picture.count("<path") == kept.count("<path") > 10, "keep the new picture: python docs/gallery.py"

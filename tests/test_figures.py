"""Sentences of the pages that quote a figure say what the files of docs/benchmarks have.

The sentences of the README have tests of their own, in test_readme.py.
"""

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.printed import script

ROOT = Path(__file__).parents[1]
SENTENCES = script("benchmark_sentences")


def test_the_oldest_packages_are_those_of_the_project() -> None:
    """The page names those that stop an installation where older ones are."""
    required = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    oldest = {re.split(r"\[|>", text)[0]: text.partition(">=")[2] for text in required}
    (said,) = re.findall(r"\*\*Packages\*\*: (.*?), or newer", SENTENCES.said_by("docs/pages/how-to/installation.md"))
    named = dict(part.rsplit(" ", 1) for part in re.split(", | and ", said.lower()))
    assert len(named) == 8
    assert {name: oldest[name] for name in named} == named


@pytest.mark.parametrize("sentences", SENTENCES.ALL, ids=lambda sentences: sentences.__name__)
def test_sentences_have_the_kept_figures(sentences: Callable[[], Any]) -> None:
    assert SENTENCES.missing(sentences()) == []

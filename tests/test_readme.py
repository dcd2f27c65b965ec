"""The README is short, and its example prints what it says."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import aucdist
from flows.cli import app

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
NUMBER = re.compile(r"-?\d+\.\d+")


def test_python_example_prints_what_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (shown,) = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
    exec(compile(example, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert NUMBER.sub("", printed).split() == NUMBER.sub("", shown).split()
    # The last places of a fit depend on the processor.
    numbers = [np.array([float(number) for number in NUMBER.findall(text)]) for text in (printed, shown)]
    np.testing.assert_allclose(*numbers, rtol=2e-3, atol=2e-3)


def test_it_is_short() -> None:
    assert len(README.split()) <= 700
    assert max(map(len, README.splitlines())) <= 120


def test_help_tells_the_same_story() -> None:
    for text in (README, aucdist.__doc__ or "", app.info.help or ""):
        said = " ".join(text.split())
        assert "linear and additive models that rank a rare class above the rest" in said
        assert "over all pairs" in said
        assert "close to the optimum" in said


def test_the_top_of_the_list_stands_where_the_kept_table_says() -> None:
    table = pd.read_csv(Path(__file__).parents[1] / "docs" / "benchmarks" / "curves.csv")
    sums = table[table["data"].str.startswith("all ")]
    assert "on most sets, ahead on none" in " ".join(README.split())
    assert (sums["wins"] == 0).all()
    assert (sums["ties"] > sums["loses"]).all()

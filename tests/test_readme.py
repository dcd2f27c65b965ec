"""The example of the README runs as it stands."""

import re
from pathlib import Path

import pytest

from aucdist.metrics import IntervalWarning


def test_python_example(capsys: pytest.CaptureFixture[str]) -> None:
    text = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    with pytest.warns(IntervalWarning):  # few eights among the test rows
        exec(compile(example, "README.md", "exec"), {})
    assert "converged" in capsys.readouterr().out

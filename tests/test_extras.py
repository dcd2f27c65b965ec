"""The core works without the extras, and a missing package is one line that names its extra."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from support.processes import assert_absent_in_turn

from aucdist.data.storage.files import read_bytes
from aucdist.errors import InputError
from aucdist.extras import EXTRAS, explain_missing, load_optional

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

BLOCK = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {missing!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
"""


def test_extras_of_the_table_exist_and_the_core_has_none_of_their_packages() -> None:
    assert set(EXTRAS.values()) <= set(PROJECT["optional-dependencies"])
    core = {re.split(r"[\[<>= ]", line)[0] for line in PROJECT["dependencies"]}
    assert not core & {name.replace("_", "-") for name in EXTRAS}


def test_a_missing_module_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # import then fails as if it were not installed
    with pytest.raises(InputError, match=re.escape("in the folder of the source code, run pip install '.[plot]'")):
        load_optional("matplotlib")


def test_a_file_on_the_web_names_the_extra_of_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    with pytest.raises(InputError, match=re.escape("aiohttp is not installed: in the folder of the source code, run")):
        read_bytes("https://localhost/x.csv")


def test_a_module_whose_library_is_not_there_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "needs_a_library.py").write_text("raise OSError('libgomp.so.1: cannot open shared object file')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match=r"needs_a_library is installed, but cannot be loaded: libgomp\.so\.1"):
        load_optional("needs_a_library")


def test_an_unknown_module_keeps_its_message() -> None:
    error = ModuleNotFoundError("No module named 'nowhere'", name="nowhere")
    assert explain_missing(error) == "No module named 'nowhere'"


FIT = """
import numpy as np
from aucdist import PairwiseHingeClassifier
from aucdist.model import load_model, write_model
from aucdist.metrics import roc_auc_score
X = np.random.default_rng(0).normal(size=(60, 3))
y = X[:, 0] > 0
assert roc_auc_score(y, PairwiseHingeClassifier().fit(X, y).decision_function(X)) > 0.9
"""


def test_a_fit_needs_none_of_them() -> None:
    assert_absent_in_turn(
        ("import aucdist", ["numba", "sklearn", "dask", "aucdist.report"]),
        (FIT, ["distributed", "click", "aucdist.report"]),
        before=BLOCK.format(missing=set(EXTRAS)),
    )


@pytest.mark.parametrize(
    ("package", "words", "extra", "code"), [("rich", ["list"], "cli", 1), ("s3fs", ["show", "s3://bucket/x"], "s3", 2)]
)
def test_the_command_names_the_extra_in_one_line(package: str, words: list[str], extra: str, code: int) -> None:
    start = f"import sys; sys.argv = {['aucdist', 'data', *words]!r}; from flows.cli import main; main()"
    command = [sys.executable, "-c", BLOCK.format(missing={package}) + start]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == code
    remedy = f"in the folder of the source code, run pip install '.[{extra}]'"
    assert done.stderr.strip() == f"error: {package} is not installed: {remedy}"

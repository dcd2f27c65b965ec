"""Imports only run down from floor to floor; the packages that cost seconds stay out of the library's way."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FLOORS = [
    {"kernels", "metrics"},
    {"objectives", "data", "report"},
    {"engine"},
    {"solvers", "sampling", "selection"},
    {"estimators"},
    {"search"},
]
"""From the ground up. Folds (selection) lie below the estimators, so that calibration can use them; samplers call solvers."""

ANYWHERE = {"errors"}
FILES = sorted((ROOT / "aucdist").rglob("*.py"))


def imported(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


def floor_of(part):
    return next((i for i, names in enumerate(FLOORS) if part in names), None)


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(ROOT)))
def test_imports_run_down(file):
    part = file.relative_to(ROOT / "aucdist").parts[0]
    here = floor_of(part)
    for module in imported(file):
        top, *rest = module.split(".")
        assert top not in {"prefect", "flows", "dask_kubernetes"}, f"{file.name} imports {module}"
        assert top != "distributed" or file == ROOT / "aucdist" / "engine" / "dask.py"
        if top == "aucdist" and rest and rest[0] not in ANYWHERE and here is not None:
            there = floor_of(rest[0])
            assert there is not None, f"{module} has no floor"
            assert there <= here, f"{file.name} imports {module} from a floor above"


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import aucdist", ["numba", "sklearn", "dask", "prefect"]),
        ("from aucdist import PairwiseHingeClassifier", ["prefect", "distributed", "matplotlib"]),
        ("import flows.cli", ["numba", "sklearn", "dask", "prefect", "pandas"]),
        ("import flows.train.run", ["prefect"]),
    ],
)
def test_what_costs_seconds_is_loaded_where_it_is_used(statement, absent):
    code = f"import sys; {statement}; print([m for m in {absent!r} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"

"""Mutants: small faults put into the code one at a time. A fault that no test notices is a hole in the tests.

``python tests/mutants.py`` tries `NAMED`, which once survived, and then a random sample; ``--count 0`` tries the first alone.
Each mutant is a copy of the package with one change, and runs the tests of its part as plain Python
(``NUMBA_DISABLE_JIT=1``), so that nothing has to be compiled. A mutant that makes the tests fail or hang is killed. What
survives is printed with its line.
"""

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from support.tables import table_beside

ROOT = Path(__file__).resolve().parents[1]
PARTS = {
    "kernels": ["tests/kernels", "tests/pairs", "tests/metrics"],
    "kernels/codes": ["tests/kernels", "tests/maps"],
    "data/formats/svmlight_kernels": ["tests/data/formats"],
    "pairs": ["tests/pairs"],
    "solvers": ["tests/solvers"],
    "papers": ["tests/papers"],
    "metrics": ["tests/metrics"],
    "engine": ["tests/engine/test_blocks.py", "tests/engine/test_steps.py"],
    "data/storage/scratch": ["tests/data/storage/test_scratch.py", "tests/engine/test_stream.py"],
    "engine/checkpoint": ["tests/engine/test_checkpoint.py"],
    "data/serialization": ["tests/data/test_serialization.py"],
    "engine/worker_calls": ["tests/engine/test_lost_workers.py"],
    "engine/worker_part": ["tests/engine/test_lost_workers.py"],
    "engine/workers": ["tests/flows/compute/test_clusters.py"],
    "engine/dask": ["tests/engine/test_lost_workers.py", "tests/engine/test_stream.py"],
    "probability": ["tests/probability"],
}
"""The tests that each part of the package answers to; the longest name that fits counts."""

MARKED = ("kernels", "pairs", "solvers", "papers")
"""Parts of whose tests only those run that are quick without compiled kernels."""

HANGS = 600
"""Seconds after which a mutant counts as one that hangs."""

NAMED = table_beside(__file__)
"""Six that survived a review: file, text, what takes its place, and the test that has to notice."""

COMPARISONS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult}
NAMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "argmin": "argmax", "argmax": "argmin"}


def changes(tree):
    """Return (line, what changes, number of the node) for every change there is to a module."""
    changed = []
    for number, node in enumerate(ast.walk(tree)):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
            changed.append((line, f"{type(node.ops[0]).__name__}", number))
        elif (
            (isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in OPERATORS)
            or isinstance(node, ast.BoolOp)
            or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not))
        ):
            changed.append((line, f"{type(node.op).__name__}", number))
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float, bool):
            changed.append((line, f"constant {node.value}", number))
        elif isinstance(node, ast.Attribute | ast.Name) and _name(node) in NAMES:
            changed.append((line, _name(node), number))
    return changed


def _name(node):
    return node.attr if isinstance(node, ast.Attribute) else node.id


def changed(tree, number):
    """Return the module's text with the change at a node."""
    tree = copy.deepcopy(tree)
    node = list(ast.walk(tree))[number]
    if isinstance(node, ast.Compare):
        node.ops[0] = COMPARISONS[type(node.ops[0])]()
    elif isinstance(node, ast.BinOp | ast.AugAssign):
        node.op = OPERATORS[type(node.op)]()
    elif isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    elif isinstance(node, ast.UnaryOp):
        node.op = ast.UAdd()
    elif isinstance(node, ast.Constant):
        node.value = (not node.value) if isinstance(node.value, bool) else node.value + 1
    elif isinstance(node, ast.Attribute):
        node.attr = NAMES[node.attr]
    else:
        node.id = NAMES[node.id]
    return ast.unparse(tree)


def tests_of(file):
    """Return the tests that a file of the package answers to."""
    name = file.relative_to(ROOT / "aucdist").as_posix()
    part = max((part for part in PARTS if name.startswith((f"{part}/", f"{part}."))), key=len)
    return PARTS[part]


def survives(name, text, tests):
    """Tell whether the tests pass on a copy of the package in which a file has this text."""
    with tempfile.TemporaryDirectory() as folder:
        for part in ("aucdist", "tests", "flows", "configs"):
            shutil.copytree(ROOT / part, Path(folder) / part, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", folder)
        (Path(folder) / "aucdist" / name).write_text(text)
        environment = os.environ | {"PYTHONPATH": folder, "NUMBA_DISABLE_JIT": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
        few = name.split("/")[0] in MARKED and Path(tests[0]).suffix != ".py"
        marked = ["-m", "nojit" if few else "not slow"]
        try:
            done = subprocess.run(
                [*command, *marked],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=HANGS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False
        if done.returncode not in (0, 1):
            raise SystemExit(f"the tests of {name} did not run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.returncode == 0


def named():
    """Yield (what, file, text, tests) for those that once survived."""
    for name, old, new, test in NAMED:
        text = (ROOT / "aucdist" / name).read_text()
        if text.count(old) != 1:
            raise SystemExit(f"{name} has this text {text.count(old)} times, not once:\n{old}")
        yield f"{name}: {old.strip().splitlines()[0]}", name, text.replace(old, new), [test]


def sampled(count, seed):
    """Yield the same for a random sample of all changes."""
    files = [
        file
        for part in ("kernels", "solvers", "papers", "metrics", "engine")
        for file in (ROOT / "aucdist" / part).rglob("*.py")
    ]
    every = [(file, *change) for file in sorted(files) for change in changes(ast.parse(file.read_text()))]
    for file, line, what, number in random.Random(seed).sample(every, min(count, len(every))):
        name = file.relative_to(ROOT / "aucdist").as_posix()
        yield f"{name}:{line}: {what}", name, changed(ast.parse(file.read_text()), number), tests_of(file)


def main():
    """Try mutants, and return how many survived."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=50, help="how many of the sample")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--skip-named", action="store_true")
    options = parser.parse_args()
    tried, survivors = 0, []
    for source in ([] if options.skip_named else [named()]) + [sampled(options.count, options.seed)]:
        for what, name, text, tests in source:
            tried += 1
            alive = survives(name, text, tests)
            survivors += [what] * alive
            print(f"{'SURVIVES' if alive else 'killed  '} {what}", flush=True)
    print(f"{tried - len(survivors)} of {tried} killed")
    return len(survivors)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)

"""Measure the size of the code in tokens, which formatting cannot change, and compare it with the budget of each package.

    python tests/code_size.py            # a row for each package: tokens, budget, lines, files
    python tests/code_size.py --lower    # lower each budget to what its package has now; nothing is ever raised

Comments, docstrings and line breaks are not counted. `tests/size_budget.yaml` has the budgets. A budget is lowered in the commit
that earns it, and is raised only by hand, with a reason in the message of the commit.
"""

import argparse
import ast
import io
import re
import tokenize
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
BUDGET = Path(__file__).with_name("size_budget.yaml")
ROOTS = ("aucdist", "flows")
LAYOUT = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER,
}  # fmt: skip


@dataclass
class Size:
    """What a package has: tokens, lines of code, files, functions, and functions with seven or more parameters."""

    tokens: int = 0
    lines: int = 0
    files: int = 0
    functions: int = 0
    many_parameters: int = 0

    def __add__(self, other: "Size") -> "Size":
        return Size(*(a + b for a, b in zip(vars(self).values(), vars(other).values(), strict=True)))


def docstring_lines(tree: ast.AST) -> set[int]:
    """Return the numbers of the lines that hold docstrings, or other bare texts."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def measure(source: str) -> Size:
    """Return the size of one file."""
    tree = ast.parse(source)
    hidden = docstring_lines(tree)
    tokens = sum(
        token.type not in LAYOUT and not (token.type == tokenize.STRING and token.start[0] in hidden)
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
    )
    lines = sum(
        bool(line.strip()) and not line.strip().startswith("#") and number not in hidden
        for number, line in enumerate(source.splitlines(), start=1)
    )
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    many = sum(len(f.args.posonlyargs) + len(f.args.args) + len(f.args.kwonlyargs) >= 7 for f in functions)
    return Size(tokens, lines, 1, len(functions), many)


def packages(root: Path = ROOT) -> dict[str, Size]:
    """Return the size of each package, which is a folder below `aucdist` or `flows`, or one of the two itself."""
    sizes: dict[str, Size] = defaultdict(Size)
    for name in ROOTS:
        for path in sorted((root / name).rglob("*.py")):
            package = "/".join(path.relative_to(root).parent.parts[:2])
            sizes[package] += measure(path.read_text())
    return dict(sizes)


def mentioned_once(root: Path = ROOT) -> int:
    """Return how many functions are named at most once outside their definition."""
    sources = [path.read_text() for name in ROOTS for path in sorted((root / name).rglob("*.py"))]
    defined: dict[str, int] = defaultdict(int)
    words: dict[str, int] = defaultdict(int)
    for source in sources:
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                defined[node.name] += 1
        for word in re.findall(r"\w+", source):
            words[word] += 1
    return sum(n == 1 and words[name] <= 2 and not name.startswith("__") for name, n in defined.items())


def read_budget() -> dict[str, int]:
    """Return the most tokens that each package may have."""
    return dict(yaml.safe_load(BUDGET.read_text())["tokens"])


def lower(sizes: dict[str, Size]) -> None:
    """Write budgets that are no larger than the packages; comments stay.

    Packages that are gone lose theirs; new packages need one by hand.
    """
    lines = []
    for line in BUDGET.read_text().splitlines():
        package, colon, most = line.strip().partition(": ")
        if line.startswith("  ") and colon and most.isdecimal():
            if package not in sizes:
                continue
            line = f"  {package}: {min(int(most), sizes[package].tokens)}"
        lines.append(line)
    BUDGET.write_text("\n".join(lines) + "\n")


def main() -> None:
    """Print the table, or lower the budgets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lower", action="store_true", help="lower each budget to the package's size")
    sizes = packages()
    if parser.parse_args().lower:
        lower(sizes)
    budget = read_budget()
    print(
        f"{'package':24s}{'tokens':>9s}{'budget':>9s}{'lines':>8s}{'files':>7s}{'functions':>11s}{'>= 7 parameters':>17s}"
    )
    for package, size in sorted(sizes.items()):
        most = budget.get(package, 0)
        print(
            f"{package:24s}{size.tokens:9d}{most:9d}{size.lines:8d}{size.files:7d}{size.functions:11d}{size.many_parameters:17d}"
        )
    total = sum(sizes.values(), Size())
    print(
        f"{'total':24s}{total.tokens:9d}{sum(budget.values()):9d}{total.lines:8d}{total.files:7d}{total.functions:11d}"
        f"{total.many_parameters:17d}"
    )
    print(f"functions mentioned at most once outside their definition: {mentioned_once()}")


if __name__ == "__main__":
    main()

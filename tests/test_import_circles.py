"""No file of the packages imports itself by way of others, not even inside a function."""

import ast
import graphlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def modules_of(package):
    """Return each module's name and file."""
    found = {}
    for file in sorted((ROOT / package).rglob("*.py")):
        parts = file.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def imports_of(tree, known):
    """Return the known modules that a file imports: at its top, in functions, and for type checkers alike."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports are not followed here"
            # A name may be a module of the package, or something that the package's own file defines.
            found |= {
                deeper if (deeper := f"{node.module}.{alias.name}") in known else node.module for alias in node.names
            }
    return found & known


def circle_in(graph):
    """Return the modules of a circle, each importing the one before; None where there is none."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return None


@pytest.mark.parametrize("package", ["aucdist"])
def test_no_file_imports_itself_by_way_of_others(package):
    files = modules_of(package)
    graph = {name: imports_of(ast.parse(file.read_text(encoding="utf-8")), set(files)) for name, file in files.items()}
    assert sum(map(len, graph.values())) > len(graph) / 2, "the imports were not found"
    circle = circle_in(graph)
    assert circle is None, f"import circle: {' <- '.join(circle)}"


def test_a_circle_is_found_wherever_the_import_stands():
    known = {"a", "a.b", "a.c"}
    lazy = imports_of(ast.parse("def f():\n    from a import c"), known)
    typed = imports_of(ast.parse("if TYPE_CHECKING:\n    from a.b import thing"), known)
    assert (lazy, typed) == ({"a.c"}, {"a.b"})
    assert set(circle_in({"a.b": lazy, "a.c": typed})) == {"a.b", "a.c"}
    assert circle_in({"a.b": lazy, "a.c": set()}) is None

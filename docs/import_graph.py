"""The import graph between the folders of aucdist and flows: its layers, circles and a picture.

``python docs/import_graph.py`` prints a line for each layer and fails if there is a circle; with ``--svg FILE`` it also draws
the graph. `tests/test_layers.py` and the documentation use the same functions.
"""

import ast
import sys
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("aucdist", "flows")

Graph = dict[str, set[str]]
"""What each node imports."""


def module_of(file: Path) -> str:
    """Return the dotted name of a file below the root."""
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(file: Path, modules: set[str], *, deferred: bool = True) -> Iterator[str]:
    """Yield the modules of aucdist and flows that a file imports, whether when it is loaded or inside a function.

    Parameters
    ----------
    file : Path
    modules : set of str
        Names of all modules, to tell ``from package import module`` from ``from module import name``.
    deferred : bool
        Whether imports inside functions count.
    """
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in _visited(tree, deferred):
        if isinstance(node, ast.Import):
            names: Iterable[str] = (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            inside = {f"{node.module}.{alias.name}" for alias in node.names} & modules
            names = inside if len(inside) == len(node.names) else {*inside, str(node.module)}
        else:
            continue
        yield from (name for name in names if name.partition(".")[0] in PACKAGES)


def _visited(node: ast.AST, deferred: bool) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):  # an expression imports nothing
            if not deferred and isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            yield child
            yield from _visited(child, deferred)


def files_of_modules() -> dict[str, Path]:
    """Return the file of each module of aucdist and flows, by dotted name."""
    return {module_of(file): file for top in PACKAGES for file in sorted((ROOT / top).rglob("*.py"))}


def graph_of_files(*, deferred: bool = True) -> Graph:
    """Return the imports between files, by dotted name."""
    files = files_of_modules()
    names = set(files)
    return {name: set(imports_of(file, names, deferred=deferred)) & names - {name} for name, file in files.items()}


def folder_of(module: str) -> str:
    """Return the folder of a module; a file that lies directly in aucdist or flows stands for itself."""
    path = ROOT.joinpath(*module.split("."))
    inner = module if path.is_dir() else module.rpartition(".")[0]
    return module if inner in PACKAGES else inner


def graph_of_folders(files: Graph) -> Graph:
    """Return the imports between folders, given those between files."""
    folders: Graph = {}
    for name, imported in files.items():
        here = folder_of(name)
        folders.setdefault(here, set()).update(folder_of(other) for other in imported)
    return {name: imported - {name} for name, imported in folders.items()}


def circles(graph: Graph) -> list[list[str]]:
    """Return the circles of a graph: its strongly connected components of more than one node (Tarjan, 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    components: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph[node]):
            if other not in index:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == index[node]:
            component = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(component) > 1:
                components.append(sorted(component))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return components


def layers(graph: Graph) -> list[list[str]]:
    """Return the nodes from the ground up: each layer imports from lower ones only.

    Raises
    ------
    ValueError
        If there is a circle.
    """
    left = {node: set(imported) for node, imported in graph.items()}
    levels = []
    while left:
        ground = sorted(node for node, imported in left.items() if not imported)
        if not ground:
            raise ValueError(f"circles: {circles(graph)}")
        levels.append(ground)
        left = {node: imported - set(ground) for node, imported in left.items() if node not in ground}
    return levels


def drawing(graph: Graph) -> str:
    """Return the graph as SVG: a row for each layer, the lowest one below; a line for each import between folders."""
    rows = layers(graph)
    width, height = 1200, 40 + 70 * len(rows)
    at = {
        name: ((k + 0.5) * width / len(row), height - 45 - 70 * level)
        for level, row in enumerate(rows)
        for k, name in enumerate(row)
    }
    lines = [
        f'<line x1="{at[a][0]:.0f}" y1="{at[a][1]:.0f}" x2="{at[b][0]:.0f}" y2="{at[b][1]:.0f}" />'
        for a in sorted(graph)
        for b in sorted(graph[a])
    ]
    boxes = []
    for name, (x, y) in sorted(at.items()):
        half = 4.2 * len(name) + 8
        boxes.append(
            f'<rect x="{x - half:.0f}" y="{y - 14:.0f}" width="{2 * half:.0f}" height="26" rx="5" />'
            f'<text x="{x:.0f}" y="{y + 4:.0f}">{escape(name)}</text>'
        )
    style = (
        "line{stroke:#8aa;stroke-width:1;opacity:.45}rect{fill:#eef4f8;stroke:#567}"
        "text{font:13px sans-serif;text-anchor:middle;fill:#123}"
    )
    body = "\n".join([*lines, *boxes])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="Imports between folders"><style>{style}</style>\n{body}\n</svg>\n'
    )


def print_floors(arguments: list[str]) -> int:
    """Print the layers and the number of imports between folders; return 1 if there is a circle."""
    files = graph_of_files()
    graph = graph_of_folders(files)
    for kind, checked in (("folders", graph), ("files", graph_of_files(deferred=False))):
        for circle in circles(checked):
            print(f"circle of {kind}: {', '.join(circle)}")
    if circles(graph) or circles(graph_of_files(deferred=False)):
        return 1
    for level, row in reversed(list(enumerate(layers(graph), 1))):
        print(f"layer {level:2}  {'  '.join(row)}")
    print(f"{len(files)} files in {len(graph)} folders, {sum(map(len, graph.values()))} imports between folders")
    if "--svg" in arguments:
        target = Path(arguments[arguments.index("--svg") + 1])
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(drawing(graph), encoding="utf-8")
        print(target)
    return 0


if __name__ == "__main__":
    sys.exit(print_floors(sys.argv[1:]))

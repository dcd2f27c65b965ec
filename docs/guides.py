"""The outputs that the guides show: each page's Python code is run from top to bottom, in a folder of its own.

    python docs/guides.py [PAGE ...]               write what the code prints today into the pages (all, or those named)
    python docs/guides.py --commands PAGE ...      the same for the commands of these pages

A fence of text right below a fence of Python holds what that code printed.
`tests/test_page_code.py` runs the same code and compares the words exactly and the numbers by size. Commands print much that
changes, such as times, so only a fence of text that is there already holds what the commands above it print;
`tests/test_printed_commands.py` compares these. One page is kept as a notebook as well. The stories of docs/pages/examples have
a script of their own, docs/stories.py.
"""

import contextlib
import io
import json
import os
import re
import sys
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from stories import printed_by_commands

PAGES = Path(__file__).resolve().parent / "pages"
CODE = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
COMMANDS = re.compile(r"^```sh\n(.*?)^```\n(\n```text\n.*?^```\n)?", re.MULTILINE | re.DOTALL)
ELSEWHERE = ("how-to/dask-cluster", "how-to/exporting")
"""These need a cluster, or the files that the commands of the page write."""
NOTEBOOK = PAGES / "rare-class.ipynb"
"""The page of this name as a notebook."""


def names() -> list[str]:
    """Return the names of the pages that have Python code and are not stories."""
    files = [file for file in sorted(PAGES.rglob("*.md")) if file.parent.name != "examples"]
    return [name_of(file) for file in files if CODE.search(file.read_text(encoding="utf-8"))]


def name_of(file: Path) -> str:
    """Return the name of a page."""
    return file.relative_to(PAGES).with_suffix("").as_posix()


def with_outputs(page: str, replace: tuple[str, str] | None = None) -> str:
    """Run the Python code of a page in the current folder, and return the page with what each piece of code prints.

    `replace` is a text in the code, such as an address, and what to run in its place.
    """
    namespace: dict[str, Any] = {"__name__": "__main__"}

    def renew(fences: re.Match[str]) -> str:
        printed = _run(fences[1].replace(*replace) if replace else fences[1], namespace)
        return f"```python\n{fences[1]}```\n\n```text\n{printed.rstrip()}\n```\n" if printed.strip() else fences[0]

    return CODE.sub(renew, (PAGES / f"{page}.md").read_text(encoding="utf-8"))


def with_outputs_of_commands(page: str) -> str:
    """Run the commands of a page in the current folder, and return the page with what they print, if it shows that."""

    def renew(fences: re.Match[str]) -> str:
        printed = printed_by_commands(fences[1])
        return f"```sh\n{fences[1]}```\n\n```text\n{printed.rstrip()}\n```\n" if fences[2] else fences[0]

    return COMMANDS.sub(renew, (PAGES / f"{page}.md").read_text(encoding="utf-8"))


def notebook() -> str:
    """Return the page of the notebook with its code and the printed output in cells, as the JSON of a file."""
    text, cells, end = NOTEBOOK.with_suffix(".md").read_text(encoding="utf-8"), list[dict[str, Any]](), 0

    def add(kind: str, source: str, **of_code: Any) -> None:
        if lines := source.strip().splitlines(keepends=True):
            cells.append({"cell_type": kind, "id": f"cell-{len(cells)}", "metadata": {}, "source": lines} | of_code)

    for number, fences in enumerate(CODE.finditer(text), 1):
        add("markdown", text[end : fences.start()])
        printed = {"name": "stdout", "output_type": "stream", "text": (fences[2] or "").splitlines(keepends=True)}
        add("code", fences[1], execution_count=number, outputs=[printed] if fences[2] else [])
        end = fences.end()
    add("markdown", text[end:])
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    about = {"kernelspec": kernel, "language_info": {"name": "python"}}
    whole = {"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _run(code: str, namespace: dict[str, Any]) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the data of examples are small
        exec(compile(code, "page", "exec"), namespace)
    return out.getvalue()


def write(page: str, *, commands: bool = False) -> None:
    """Write what the code of a page prints into it."""
    with TemporaryDirectory() as folder, contextlib.chdir(folder):
        text = with_outputs_of_commands(page) if commands else with_outputs(page)
        (PAGES / f"{page}.md").write_text(text, encoding="utf-8")
    if page == NOTEBOOK.stem:
        NOTEBOOK.write_text(notebook(), encoding="utf-8")


if __name__ == "__main__":
    os.environ.setdefault("MPLBACKEND", "agg")
    commands, pages = "--commands" in sys.argv, [name for name in sys.argv[1:] if name != "--commands"]
    for page in pages or [page for page in names() if page not in ELSEWHERE]:
        write(page, commands=commands)
        print(page)

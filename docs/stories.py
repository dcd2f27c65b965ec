"""The stories of docs/pages/examples: run as they are printed, each page's code from top to bottom, in a folder of its own.

    python docs/stories.py [NAME ...]     write what the code prints and draws today into the pages (all, or those named)

The data are files that the catalog or the page names, below AUCDIST_DATA. A fence of text holds what the fence of code above
it printed. `tests/test_stories.py` runs the same and compares the words, and the numbers by size. Code that imports `interpret`
runs where that package is installed. Elsewhere its output is the kept one of `docs/benchmarks/stories.csv`, which the last run
with the package wrote.
"""

import contextlib
import csv
import io
import os
import re
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import fill
from typing import Any

import aucdist

PAGES = Path(__file__).resolve().parent / "pages" / "examples"
KEPT = PAGES.parents[1] / "benchmarks" / "stories.csv"
"""What explainable boosting machines print: by story, with the versions and the seconds of the run."""
FENCE = re.compile(r"^```(python|sh|text)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
PRINTED_BY = re.compile(r"^Printed by.*\n\Z", re.MULTILINE)
CHANGING = re.compile(
    r"^(?:. (?:Run|Time) +.|# Scorecard of |run: |report: |written: |drawn in |\d{4}-\d\d-\d\dT|card\.).*\n",
    re.MULTILINE,
)
"""Lines with times, with the names of runs, and with the sizes of files that hold such names, which are not shown."""
WIDTH = 110
"""Longer lines of what commands print are wrapped."""


def names() -> list[str]:
    """Return the names of the stories."""
    return sorted(file.stem for file in PAGES.glob("*.md"))


def run(name: str) -> tuple[str, dict[str, Any]]:
    """Return a page with what its code prints now, and the row of `KEPT` (empty if nothing of it was run).

    The code runs in the current folder, where its pictures are left.
    """
    namespace: dict[str, Any] = {"__name__": "__main__"}
    printed = ""
    row: dict[str, Any] = {}

    def renew(fence: re.Match[str]) -> str:
        nonlocal printed
        language, body = fence.groups()
        if language == "text":
            return f"```text\n{printed.rstrip()}\n```\n"
        if "from interpret" in body and find_spec("interpret") is None:
            printed = kept()[name]["printed"]
            return fence[0]
        began = time.process_time()
        printed = _python(body, namespace) if language == "python" else printed_by_commands(body)
        if "from interpret" in body:
            row.update(
                story=name,
                printed=printed.rstrip(),
                seconds=round(time.process_time() - began, 1),
                interpret=version("interpret-core"),
                aucdist=aucdist.__version__,
            )
        return fence[0]

    return FENCE.sub(renew, (PAGES / f"{name}.md").read_text(encoding="utf-8")), row


def kept() -> dict[str, dict[str, Any]]:
    """Return the rows of `KEPT` by story."""
    with KEPT.open(encoding="utf-8", newline="") as file:
        return {row["story"]: row for row in csv.DictReader(file)}


def _python(code: str, namespace: dict[str, Any]) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out, warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = lambda message, category, *_: print(fill(f"{category.__name__}: {message}", 110))
        exec(compile(code, "story", "exec"), namespace)
    return out.getvalue()


def printed_by_commands(code: str) -> str:
    """Return what commands print, as the pages show it: without lines that change, and wrapped."""
    lines = CHANGING.sub("", run_shell(code)).replace(f"{Path.cwd()}/", "").splitlines()
    return "\n".join(line if len(line) <= WIDTH else fill(line, WIDTH, subsequent_indent="  ") for line in lines)


def run_shell(code: str) -> str:
    """Return what commands print; raises RuntimeError if one fails."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", code], env=os.environ | {"PATH": path, "PREFECT_API_URL": "", "COLUMNS": "110"},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=1800,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{code}\n{done.stderr[-2000:]}")
    return done.stdout


@contextlib.contextmanager
def drawing() -> Iterator[None]:
    """Draw without a screen, and the same file from the same data."""
    import matplotlib.pyplot as plt

    os.environ["SOURCE_DATE_EPOCH"] = "0"
    with plt.rc_context(
        {"svg.hashsalt": "aucdist", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    ):
        yield
        plt.close("all")


def write(name: str) -> None:
    """Run a story and write what it prints, and its pictures, into `PAGES`."""
    page = PAGES / f"{name}.md"
    with TemporaryDirectory() as folder, contextlib.chdir(folder), drawing():
        text, row = run(name)
        if row:
            rows = (kept() if KEPT.exists() else {}) | {name: row}
            with KEPT.open("w", encoding="utf-8", newline="") as file:
                table = csv.DictWriter(file, list(row), lineterminator="\n")
                table.writeheader()
                table.writerows(rows[story] for story in sorted(rows))
        versions = ", ".join(f"{package} {version(package)}" for package in ("lightgbm", "scikit-learn", "numpy"))
        if name in (kept() if KEPT.exists() else {}):
            versions += f", interpret-core {kept()[name]['interpret']}"
        page.write_text(
            PRINTED_BY.sub(f"Printed by aucdist {aucdist.__version__}, {versions}.\n", text), encoding="utf-8"
        )
        for picture in Path(folder).glob("*.svg"):
            (PAGES / picture.name).write_text(picture.read_text(encoding="utf-8"), encoding="utf-8")


if __name__ == "__main__":
    for story in sys.argv[1:] or names():
        write(story)
        print(story)

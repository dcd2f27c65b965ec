"""The page "Gallery": the text, the code, the output and the picture of each file in docs/examples.

    python docs/gallery.py    run the files, and write the page and its pictures

`tests/test_doctests.py` compares them with what the files print and draw.
"""

import ast
import contextlib
import io
import os
import runpy
import shutil
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

DOCS = Path(__file__).resolve().parent
EXAMPLES = sorted((DOCS / "examples").glob("*.py"))
PAGE = DOCS / "pages" / "gallery.md"


def output_of(file: Path) -> str:
    """Run an example in the current folder, where it leaves its picture, and return what it prints."""
    with contextlib.redirect_stdout(io.StringIO()) as out, warnings.catch_warnings(action="error"):
        runpy.run_path(str(file), run_name="__main__")
    return out.getvalue()


def section(file: Path, output: str) -> str:
    """Return the part of the page about an example."""
    source = file.read_text(encoding="utf-8")
    title, _, rest = (ast.get_docstring(ast.parse(source)) or "").partition("\n")
    code = source.split('"""', 2)[2].strip()
    parts = [f"## {title.rstrip('.')}", rest.strip(), f"`{file.name}`", f"```py\n{code}\n```"]
    parts += [f"```text\n{output.rstrip()}\n```", f"![What the example draws](gallery/{file.stem}.svg)"]
    return "\n\n".join(part for part in parts if part)


def page(outputs: dict[str, str]) -> str:
    """Return the page, with the output of each example by the name of its file."""
    head = """# Gallery

Each example is a file in `docs/examples` that prints a result and draws a picture. To run one, install the extra `plot`, and call
`python docs/examples/NAME.py`. The picture is written to the current folder."""
    return "\n\n".join([head, *(section(file, outputs[file.stem]) for file in EXAMPLES)]) + "\n"


if __name__ == "__main__":
    import matplotlib as mpl

    # Identifiers and the date of a picture do not change from run to run.
    os.environ |= {"MPLBACKEND": "svg", "SOURCE_DATE_EPOCH": "0"}
    mpl.rcParams["svg.hashsalt"] = "gallery"
    with TemporaryDirectory() as folder, contextlib.chdir(folder):
        PAGE.write_text(page({file.stem: output_of(file) for file in EXAMPLES}), encoding="utf-8")
        for file in EXAMPLES:
            shutil.copy(f"{file.stem}.svg", PAGE.with_suffix(""))

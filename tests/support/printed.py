"""What the documentation prints, compared with what it prints today."""

import importlib.util
import re
import shlex
import sys
from pathlib import Path
from types import ModuleType

DOCS = Path(__file__).resolve().parents[2] / "docs"
NUMBER = re.compile(r"\d+(?:\.(\d+))?(e-?\d+)?")
TIME_OF_RUN = re.compile(r"\d{8}-\d{6}-\d{3}(?=-)")
"""The time in the name of a run folder, which is not compared."""
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
STEP = re.compile(
    r"^(?:cat > (\S+)|python -) <<'(\w+)'\n(.*?)^\2$|^aucdist ((?:\\\n|[^\n])*)$", re.MULTILINE | re.DOTALL
)
"""What a shell block does: it writes a file, runs Python code, or runs the command `aucdist`."""


def script(name: str) -> ModuleType:
    """Return a script of the documentation as a module."""
    if str(DOCS) not in sys.path:
        sys.path.append(str(DOCS))  # scripts call each other
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_page(page: Path) -> list[tuple[str, str]]:
    """Do in the current folder what the shell blocks of a page do, and return each command with what it printed.

    Models are not exported to ONNX where it is not installed.
    """
    from support.command_line import run

    printed = []
    for file, _, body, command in STEP.findall("".join(SHELL.findall(page.read_text(encoding="utf-8")))):
        if file:
            Path(file).write_text(body, encoding="utf-8")
        elif not command:
            exec(compile(body, page.name, "exec"), {})
        elif "onnx" not in command or importlib.util.find_spec("onnx"):
            words = [
                name
                for word in shlex.split(command.replace("\\\n", "").partition(" > ")[0])
                for name in sorted(Path().glob(word)) or [word]
            ]
            printed.append((command, run(*words)[0]))
    return printed


def differences(printed: str, page: str) -> list[tuple[str, str]]:
    """Return the pairs of numbers that differ by more than another processor may make them differ.

    Libraries add in another order on another processor. So the words have to be the same, and a number may differ by one in a
    hundred or by five units of its last place. Of a gap, which is printed with an exponent, only the size is compared.
    """
    printed, page = (TIME_OF_RUN.sub("TIME", text) for text in (printed, page))
    assert " ".join(NUMBER.sub("#", printed).split()) == " ".join(NUMBER.sub("#", page).split())

    def far(now: re.Match[str], then: re.Match[str]) -> bool:
        if then[2]:
            return not 0.1 < float(now[0]) / float(then[0]) < 10
        return abs(float(now[0]) - float(then[0])) > max(0.01 * float(then[0]), 5 / 10 ** len(then[1] or ""))

    pairs = zip(NUMBER.finditer(printed), NUMBER.finditer(page), strict=True)
    return [(now[0], then[0]) for now, then in pairs if far(now, then)]

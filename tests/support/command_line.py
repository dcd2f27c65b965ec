"""Run the command `aucdist` inside the test process, and read what it has written."""

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from flows.cli import app


def run(*args: object, code: int = 0) -> tuple[str, str]:
    """Return what the command prints on stdout and on stderr; its exit code must be `code`."""
    result = CliRunner().invoke(app, [str(arg) for arg in args])
    assert result.exit_code == code, result.output
    return result.stdout, result.stderr


def result_of(*args: object, code: int = 0) -> dict[str, Any]:
    """Return the object that the command prints with ``--json``."""
    result: dict[str, Any] = json.loads(run(*args, "--json", code=code)[0].splitlines()[-1])
    return result


def refused(*args: object) -> str:
    """Return what the command says on stderr of wrong input: it ends with 2, prints no result and no traceback."""
    out, err = run(*args, code=2)
    assert out == ""
    assert "Traceback" not in err
    return err


def sets(*settings: str) -> list[str]:
    """Return settings as a command takes them."""
    return [part for setting in settings for part in ("--set", setting)]


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder, without the hidden `.part` files that a killed writer leaves."""
    files = (p for p in folder.rglob("*") if p.is_file() and not (p.name.startswith(".") and p.suffix == ".part"))
    return {str(p.relative_to(folder)): p.read_bytes() for p in files}

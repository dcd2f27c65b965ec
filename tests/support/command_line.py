"""Run the command `aucdist` inside the test process, and read what it has written."""

from pathlib import Path

from click.testing import CliRunner

from flows.cli import app


def run(*args: object, code: int = 0) -> tuple[str, str]:
    """Return what the command prints on stdout and on stderr; its exit code must be `code`."""
    result = CliRunner().invoke(app, [str(arg) for arg in args])
    assert result.exit_code == code, result.output
    return result.stdout, result.stderr


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder, without the hidden `.part` files that a killed writer leaves."""
    files = (p for p in folder.rglob("*") if p.is_file() and not (p.name.startswith(".") and p.suffix == ".part"))
    return {str(p.relative_to(folder)): p.read_bytes() for p in files}

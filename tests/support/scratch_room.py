"""Copies on the local disk within a limit that a test or a measurement sets."""

import tempfile
from pathlib import Path

import pytest

from aucdist.data.formats import parts
from aucdist.data.storage import scratch


def start_anew(limit: int | None = None) -> None:
    """Keep copies of blocks that are read from now on within this limit, by default that of the environment."""
    most = scratch.limit_from_environment() if limit is None else limit
    scratch._scratch = scratch.Scratch(Path(tempfile.gettempdir()), most)


def noted_parts(monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[int]:
    """Return a list of where the parts begin that are parsed from now on, in whatever order; copies lie in the folder."""
    noted: list[int] = []
    parse_part = parts.parse_part
    monkeypatch.setattr(scratch, "_is_memory", lambda folder: False)
    monkeypatch.setattr(scratch, "_scratch", scratch.Scratch(folder))
    monkeypatch.setattr(parts, "parse_part", lambda *args: noted.append(args[-1].start) or parse_part(*args))
    return noted

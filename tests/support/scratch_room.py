"""Copies on the local disk within a limit that a test or a measurement sets."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aucdist.data.formats.base import FilePart, Format, Parsed
from aucdist.data.formats.registry import FORMATS
from aucdist.data.storage import scratch


def start_anew(limit: int | None = None) -> None:
    """Keep copies of blocks that are read from now on within this limit, by default that of the environment."""
    most = scratch.limit_from_environment() if limit is None else limit
    scratch._scratch = scratch.Scratch(Path(tempfile.gettempdir()), most)


def noted_parts(monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[int]:
    """Return a list of where the parts begin that are parsed from now on, in whatever order; copies lie in the folder."""
    noted: list[int] = []
    monkeypatch.setattr(scratch, "_is_memory", lambda folder: False)
    monkeypatch.setattr(scratch, "_scratch", scratch.Scratch(folder))
    watch_parts(monkeypatch, lambda part: noted.append(part.start))
    return noted


def watch_parts(monkeypatch: pytest.MonkeyPatch, note: Callable[[FilePart], object]) -> None:
    """Call a function with each part that this process parses from now on."""
    for kind, read in [(kind, kind.read_part) for kind in FORMATS.values()]:

        def read_part(self: Format, part: FilePart, read: Any = read) -> Parsed:
            note(part)
            return read(self, part)

        monkeypatch.setattr(kind, "read_part", read_part)

"""Copies on the local disk within a limit that a test or a measurement sets."""

import tempfile
from pathlib import Path

from aucdist.data.storage import scratch


def start_anew(limit: int | None = None) -> None:
    """Keep copies of blocks that are read from now on within this limit, by default that of the environment."""
    most = scratch.limit_from_environment() if limit is None else limit
    scratch._scratch = scratch.Scratch(Path(tempfile.gettempdir()), most)

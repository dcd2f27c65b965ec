"""What a table of a benchmark was measured with: the command, the version, the machine, the packages, the load."""

import json
import os
import platform
import re
import subprocess
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import requires
from pathlib import Path
from typing import Any

import aucdist
from flows.run_folder.folder import versions


@dataclass(frozen=True)
class Measurement:
    """A run of a suite.

    `command`: the command line that repeats it.
    `load`: processes that wanted a core in the minute before it began; None where the system does not say.
    """

    command: str
    began: datetime = field(default_factory=lambda: datetime.now(UTC))
    load: float | None = field(
        default_factory=lambda: round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None
    )

    def to_json(self, conditions: str) -> str:
        """Return what is known of the run after it has ended, as a JSON object."""
        content: dict[str, Any] = {
            "command": self.command,
            "aucdist": aucdist.__version__,
            "commit": _commit(),
            "began": self.began.isoformat(timespec="seconds"),
            "minutes": round((datetime.now(UTC) - self.began).total_seconds() / 60.0, 1),
            "machine": platform.machine(),
            "cores": os.cpu_count(),
            "load before": self.load,
            "conditions": conditions,
            "packages": versions(_required()),
        }
        return json.dumps(content, indent=1) + "\n"


def _required() -> list[str]:
    """Return the packages that aucdist or one of its extras asks for, in the order of the alphabet."""
    return sorted({re.split(r"[^A-Za-z0-9._-]", requirement)[0] for requirement in requires("aucdist") or []})


def _commit() -> str | None:
    """Return the commit of the checkout that this code lies in, with a plus if files differ from it; None without one."""
    git = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--abbrev=12", "--exclude=*", "--dirty=+"]
    try:
        done = subprocess.run(git, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()

"""What a table of a benchmark was measured with: the command, the version, the machine, the packages, the load."""

import json
import os
import platform
import re
import subprocess
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

import aucdist


@dataclass(frozen=True)
class Measurement:
    """A run of a suite.

    Attributes
    ----------
    command : str
        The command line that repeats it.
    began : datetime
    load : float or None
        Processes that wanted a core in the minute before it began; None where the system does not say.
    """

    command: str
    began: datetime = field(default_factory=lambda: datetime.now(UTC))
    load: float | None = field(default_factory=lambda: _load())

    def to_json(self, conditions: str) -> str:
        """Return what is known of the run after it has ended, as a JSON object.

        Parameters
        ----------
        conditions : str
            Those of the suite.
        """
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
            "packages": {"python": platform.python_version(), **_packages()},
        }
        return json.dumps(content, indent=1) + "\n"


def _load() -> float | None:
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def _commit() -> str | None:
    """Return the commit of the checkout that this code lies in, with a plus if files differ from it; None without one."""
    git = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--abbrev=12", "--exclude=*", "--dirty=+"]
    try:
        done = subprocess.run(git, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _packages() -> dict[str, str]:
    """Return the versions of the installed packages that aucdist or one of its extras asks for."""
    found = {}
    for requirement in requires("aucdist") or []:
        name = re.split(r"[^A-Za-z0-9._-]", requirement)[0]
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return dict(sorted(found.items()))

"""Free ports, waiting, and what a process of its own loads: it runs several pieces of code in turn, as a start takes seconds."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
IN_TURN = """
import json, sys
for code, absent in json.loads(sys.argv[1]):
    exec(code)
    print(code, [m for m in absent if m in sys.modules])
"""


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def until(holds: Callable[[], Any], log: Path | None = None) -> Any:
    """Wait until something holds, and return it; the log of another process explains why it never does."""
    end = time.monotonic() + 240
    while not (value := holds()):
        assert time.monotonic() < end, log and log.read_text(encoding="utf-8")
        time.sleep(0.1)
    return value


def assert_absent_in_turn(*steps: tuple[str, list[str]], before: str = "", cwd: Path | None = None) -> None:
    """Check that after each piece of code some modules are not loaded; the code that loads least comes first."""
    path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-c", before + IN_TURN, json.dumps(steps)]
    out = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path}, cwd=cwd)
    assert out.returncode == 0, out.stderr
    assert out.stdout == "".join(f"{code} []\n" for code, _ in steps)

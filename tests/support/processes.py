"""What a process of its own loads: it runs several pieces of code in turn, since each process takes seconds to start."""

import json
import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
IN_TURN = """
import json, sys
for code, absent in json.loads(sys.argv[1]):
    exec(code)
    print(code, [m for m in absent if m in sys.modules])
"""


def absent_in_turn(*steps: tuple[str, list[str]], before: str = "", cwd: Path | None = None) -> None:
    """Check that after each piece of code some modules are not loaded; the code that loads least comes first."""
    path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-c", before + IN_TURN, json.dumps(steps)]
    out = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path}, cwd=cwd)
    assert out.returncode == 0, out.stderr
    assert out.stdout == "".join(f"{code} []\n" for code, _ in steps)

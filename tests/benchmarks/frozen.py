"""``python tests/benchmarks/frozen.py [SUITE...]``: measure all kept tables on one commit, and say which are left.

The commit is that of the first call, kept in ``build/frozen``, a work tree of its own. What is committed later changes no figure,
so that the tables may be measured in several sessions. A table whose JSON file names the commit is not measured again. Each is
measured with the options of its last measurement, which its JSON file also names. Delete ``build/frozen`` to begin anew.
"""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parents[2]
KEPT, FROZEN = HERE / "docs" / "benchmarks", HERE / "build" / "frozen"
RECORDS = {"scale", "scale-delays"}
"""Tables whose code is gone; ``docs/pages/internals/scale.md`` is the record of them."""


def main(suites: list[str]) -> int:
    """Measure those tables, or none if no suite is named; print each table's state; return 1 if a measurement failed."""
    commit, failed = frozen_commit(), False
    print(f"the tables are those of {commit}", flush=True)
    for path in sorted(path for path in KEPT.glob("*.json") if path.stem not in RECORDS):
        about = json.loads(path.read_text(encoding="utf-8"))
        if about["commit"] == commit:
            print(f"{path.stem}: measured", flush=True)
        elif path.stem not in suites:
            print(f"{path.stem}: left, about {about['minutes']:.0f} minutes", flush=True)
        else:
            print(f"{path.stem}: measuring, about {about['minutes']:.0f} minutes", flush=True)
            failed |= not measure(path.stem, about["command"])
    return int(failed)


def frozen_commit() -> str:
    """Return the commit in ``build/frozen``, which is made of the last commit where there is none."""
    if not FROZEN.exists():
        git("worktree", "prune")
        git("worktree", "add", "--quiet", "--detach", str(FROZEN))
    return git("-C", str(FROZEN), "describe", "--always", "--abbrev=12", "--exclude=*", "--dirty=+")


def git(*arguments: str) -> str:
    """Return what git prints."""
    return subprocess.run(["git", *arguments], cwd=HERE, check=True, capture_output=True, text=True).stdout.strip()


def measure(suite: str, command: str) -> bool:
    """Run the suite from the frozen work tree, into its kept files; return whether it ended well."""
    words = shlex.split(command.split(" --output")[0])[1:]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(FROZEN), str(FROZEN / "tests")))}
    done = subprocess.run(
        [sys.executable, *words, "--output", str(KEPT / f"{suite}.csv")], cwd=FROZEN, env=environment, check=False
    )
    return done.returncode == 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

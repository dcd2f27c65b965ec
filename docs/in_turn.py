"""Runs scripts as copies of this process, which has imported what they share: most of a start is imports.

What a script prints goes to a file with its name in this folder, which ends with ``.txt``.
"""

import multiprocessing
import runpy
import sys
import warnings
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path

SHARED = (
    "aucdist.estimators", "aucdist.metrics", "dask.array", "matplotlib.pyplot", "pandas", "sklearn.datasets",
    "sklearn.linear_model", "sklearn.model_selection",
)  # fmt: skip


def run(script: str) -> None:
    """Run a script as Python runs its main program."""
    with Path(f"{Path(script).stem}.txt").open("w", encoding="utf-8") as file, redirect_stdout(file):
        runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    for name in SHARED:
        import_module(name)
    # Python 3.12 warns, and warnings are errors here; the other thread is one that a library imported above keeps for itself.
    warnings.filterwarnings("ignore", r"This process \(pid=", DeprecationWarning)
    for script in sys.argv[1:]:
        copy = multiprocessing.get_context("fork").Process(target=run, args=(script,))
        copy.start()
        copy.join()
        if copy.exitcode:
            sys.exit(f"{script} ended with exit code {copy.exitcode}")

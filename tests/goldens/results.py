"""Results that must not change when code only moves: what each command prints, and what fits, searches and papers give.

    python tests/goldens/results.py --check            # all of them, several minutes; exit code 1 if one differs
    python tests/goldens/results.py --write [NAME ...]  # keep what the code gives now, after a change that is meant

Names are `help`, `train/<configuration>`, `cv/digits` and `paper/<number>`. Each is kept as `<name>.json` beside this file: the
numbers themselves, and of arrays and tables a digest, the sum and the largest value. On the kind of machine on which they were
kept, results agree to the last bit. Elsewhere another BLAS or another processor may round differently: there numbers agree to
one part in ten thousand, and digests are not compared.
"""

import argparse
import hashlib
import json
import math
import os
import platform
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from click.testing import CliRunner
from llvmlite.binding import get_host_cpu_features, get_host_cpu_name

from flows.cli import app

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DATA = Path(os.environ.get("AUCDIST_DATA", ROOT.parent / "shared" / "data"))
ABSENT = {"covtype"}
"""A configuration whose data set is too large for the folder of real data sets."""
TRAINED = sorted(path.stem for path in (ROOT / "configs" / "train").glob("*.yaml") if path.stem not in ABSENT)
PAPERS = sorted(path.name for path in (ROOT / "configs" / "reproduce").iterdir() if path.is_dir())
NAMES = ("help", *(f"train/{name}" for name in TRAINED), "cv/digits", *(f"paper/{name}" for name in PAPERS))
FAST = ("help", "train/digits", "cv/digits")
CHANGING = {
    "digests", "seconds", "run", "versions", "fingerprint", "output", "report", "peak_memory", "timings", "created",
    "baselines", "fastest",
}  # fmt: skip
"""Keys that say when, where, how fast, by which versions and beside which optional packages something was made."""
TIMES = {"optimisers.csv"}
"""Tables of seconds."""


def machine() -> str:
    """Return what the last bits of a result may depend on."""
    # Processors of one name may have other instructions, by which kernels and products of matrices add up in another order.
    features = hashlib.sha256(str(sorted(get_host_cpu_features().items())).encode()).hexdigest()[:16]
    return f"{platform.machine()} {get_host_cpu_name()} {features}, numpy {np.__version__}"


ENVIRONMENT = {"COLUMNS": "100", "NO_COLOR": "1", "AUCDIST_DATA": str(DATA), "DO_NOT_TRACK": "1"}
"""Of a command: these data, no colours, 100 columns."""


def run(*arguments: str) -> str:
    """Return what a command prints: help as wide as in a terminal, which Click's runner makes wider."""
    done = CliRunner().invoke(app, list(arguments), env=ENVIRONMENT, prog_name="aucdist", terminal_width=78)
    if done.exit_code:
        raise SystemExit(f"aucdist {' '.join(arguments)} ended with {done.exit_code}:\n{done.stderr}")
    return done.stdout


def of_array(values: np.ndarray) -> dict[str, Any]:
    """Return the digest of an array, and two numbers that nearly equal arrays have nearly in common."""
    numbers = np.ascontiguousarray(values, dtype=np.float64)
    finite = numbers[np.isfinite(numbers)]
    return {
        "digest": hashlib.sha256(numbers.tobytes()).hexdigest()[:16],
        "shape": list(values.shape),
        "sum": math.fsum(finite.ravel()),
        "largest": float(np.abs(finite).max(initial=0.0)),
    }


def without_changing(value: Any) -> Any:
    """Return a JSON value without the keys of `CHANGING`."""
    if isinstance(value, dict):
        return {
            key: without_changing(entry)
            for key, entry in value.items()
            if key not in CHANGING and not key.startswith("seconds, ")
        }
    return [without_changing(entry) for entry in value] if isinstance(value, list) else value


def of_folder(folder: Path) -> dict[str, Any]:
    """Return what a run folder holds: JSON values, and digests of arrays and of the numbers in tables."""
    kept: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.name == "metrics.json" or path.name == "summary.json":
            kept[name] = without_changing(json.loads(path.read_text()))
        elif path.suffix == ".npy":
            kept[name] = of_array(np.load(path, allow_pickle=False))
        elif path.suffix in {".parquet", ".csv"} and "history" not in path.name and path.name not in TIMES:
            table = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
            if "measure" in table:
                table = table[table["measure"] != "seconds"]
            numbers = table.select_dtypes("number").drop(
                columns=[c for c in table if "second" in str(c)], errors="ignore"
            )
            kept[name] = of_array(numbers.to_numpy(dtype=np.float64))
    return kept


def result(name: str) -> dict[str, Any]:
    """Return what the code gives now."""
    kind, _, which = name.partition("/")
    if kind == "help":
        helps = ((), *((name,) for name in app.list_commands(None)))
        return {" ".join(name) or "aucdist": run(*name, "--help").splitlines() for name in helps}
    with tempfile.TemporaryDirectory() as folder:
        if kind == "train":
            printed = run("train", which, "--json", "--output", folder)
        elif kind == "cv":
            quick = ("cluster={kind: none}", "grid.lam=[0.1, 0.01]", "folds.repeats=1", "nested=2")
            settings = [part for setting in quick for part in ("--set", setting)]
            printed = run("cv", which, "--json", "--output", folder, *settings)
        else:
            printed = run("reproduce", which, "--quick", "--json", "--output", folder)
        folders = sorted(Path(folder).iterdir())
        return {"json": without_changing(json.loads(printed)), "files": of_folder(folders[-1])}


def differences(old: Any, new: Any, *, exact: bool, at: str = "") -> list[str]:
    """Return where two results differ: to the last bit, or by more than rounding explains."""
    if isinstance(old, dict) and isinstance(new, dict):
        names = [key for key in {**old, **new} if exact or "digest" not in key]
        return [
            line for key in names for line in differences(old.get(key), new.get(key), exact=exact, at=f"{at}/{key}")
        ]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [
            line
            for i, pair in enumerate(zip(old, new, strict=True))
            for line in differences(*pair, exact=exact, at=f"{at}[{i}]")
        ]
    close = not exact and all(isinstance(value, int | float) for value in (old, new))
    if old == new or (close and math.isclose(old, new, rel_tol=1e-4, abs_tol=1e-9)):
        return []
    return [f"{at}: {old!r} was kept, {new!r} is given now"]


def path_of(name: str) -> Path:
    """Return the file in which a result is kept."""
    return HERE / f"{name.replace('/', '-')}.json"


def compare(name: str) -> list[str]:
    """Return how what the code gives now differs from what was kept."""
    kept = json.loads(path_of(name).read_text())
    return differences(kept["result"], result(name), exact=kept["machine"] == machine())


def main() -> None:
    """Check the results, or keep them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--check", action="store_true")
    action.add_argument("--write", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"all by default: {', '.join(NAMES)}")
    options = parser.parse_args()
    failed = False
    for name in options.names or NAMES:
        if options.write:
            path_of(name).write_text(json.dumps({"machine": machine(), "result": result(name)}, indent=1) + "\n")
            print(f"{name}: kept", flush=True)
            continue
        lines = compare(name)
        failed |= bool(lines)
        print(f"{name}: {'as kept' if not lines else f'{len(lines)} differences'}", *lines[:20], sep="\n  ", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()

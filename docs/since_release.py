"""What got better and worse since 0.3.0: figures of the tables of that release beside those of the files of today.

python docs/since_release.py             `docs/benchmarks/since-0.3.0.csv` with the figures of today
python docs/since_release.py COMMIT      and with those of a release, from the files of its commit
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd

KEPT = Path(__file__).resolve().parent / "benchmarks"
SINCE = KEPT / "since-0.3.0.csv"
LEVEL = {"seconds": 0.1, "times": 0.1, "MiB": 0.02, "AUC": 1e-3, "passes": 0.02, "sets": 0.0}
"""By how much of itself a figure of a kind may change before it counts: seconds of a shared machine differ by a tenth."""

Text = Callable[[str], str]
"""Gives the text of a file of `KEPT`."""
Figure = tuple[str, str, str, float]


def figures(read: Callable[[str], pd.DataFrame]) -> Iterator[Figure]:
    """Yield table, figure, its kind in `LEVEL` and its value; less is better but for AUC and sets, unless they are lost."""
    yield from _peers(read("peers"))
    yield from _trees(read("trees"))
    yield from _top(read("top"))
    passes = read("passes")
    for data, rows in passes[passes["value"] == 0.01].groupby("data", sort=False):
        yield "passes", f"passes of {data}, share 0.01 of the negatives", "passes", float(rows["passes"].iloc[0])
    for name in ("few positives", "balanced"):
        row = _only(read("large-runs"), "run", name)
        yield "large-runs", f"seconds of {row['rows']:.3g} rows, {name}, two workers", "seconds", row["whole run s"]
        yield "large-runs", f"MiB of {row['rows']:.3g} rows, {name}, two workers", "MiB", row["all MiB"]
    growth = read("scale").dropna(subset=["growth"])
    for where, rows in growth.groupby("growth", sort=False):
        largest = rows.loc[rows["rows"].idxmax()]
        yield "scale", f"seconds of a fit of {largest['rows']:.3g} rows, {where}", "seconds", largest["seconds"]
    for name, rows in read("large-maps").groupby("features map", sort=False):
        yield "large-maps", f"seconds of four runs, {name}", "seconds", rows["whole run s"].sum()
        yield "large-maps", f"most MiB of four runs, {name}", "MiB", rows["all MiB"].max()
    fits = read("pairwise")
    for data in ("kddcup99", "a9a", "news20"):
        of_data = fits[fits["data"] == data]
        row = of_data[(of_data["system"] == "all-pairs") & (of_data["lam"] == 1e-3)].iloc[0]
        share = row["seconds"] / _only(of_data, "system", "LogisticRegression(lbfgs)")["seconds"]
        yield "pairwise", f"seconds of {data}, lam 0.001, over those of logistic regression", "times", share
        yield "pairwise", f"passes of {data}, lam 0.001", "passes", row["passes"]


def _peers(rows: pd.DataFrame) -> Iterator[Figure]:
    every = _only(rows, "data", "all")
    sets = rows[(rows["kind"] == "summary") & (rows["data"] != "all")]
    times = pd.to_numeric(sets["times the fastest"])
    first = sets["our fastest"].notna() & (times.isna() | (times <= 1.05))
    yield "peers", "sets and peers where ours wins in AUC", "sets", every["wins"]
    yield "peers", "sets and peers where ours loses in AUC", "sets", every["loses"]
    yield "peers", f"sets of {len(sets)} where ours is within 1e-3 of the best AUC first", "sets", float(first.sum())
    yield "peers", "times the fastest peer, median", "times", float(times.median())


def _trees(rows: pd.DataFrame) -> Iterator[Figure]:
    means = rows[rows["split"] == "all"]
    boosted = "LightGBM, budget of auto"
    for name in ("auto", "bins + pairs", "leaves", boosted):
        row = _only(means, "system", name)
        yield "trees", f"mean AUC of {name}, {row['set']}", "AUC", row["AUC"]
        if name != boosted:  # seconds of two machines: beside those of the same run alone they say something
            share = row["seconds"] / _only(means, "system", boosted)["seconds"]
            yield "trees", f"seconds of {name} over those of {boosted}", "times", share


def _top(rows: pd.DataFrame) -> Iterator[Figure]:
    ours = rows[rows["system"] == "aucdist top"]
    yield "top", f"mean partial AUC at 0.01, {len(ours)} sets", "AUC", float(ours["partial AUC 0.01"].mean())
    yield "top", f"seconds of all {len(ours)} sets", "seconds", float(ours["seconds"].sum())
    sums = rows[rows["data"].str.startswith("all ")]
    for name in ("LogisticRegression lbfgs", "lightgbm"):
        row = _only(sums, "system", name)
        yield "top", f"sets where ours wins against {name}", "sets", row["wins"]
        yield "top", f"sets where ours loses against {name}", "sets", row["loses"]


def _only(rows: pd.DataFrame, column: str, value: str) -> pd.Series:
    (place,) = rows.index[rows[column] == value]
    return rows.loc[place]


def change(figure: str, kind: str, then: float, now: float) -> str:
    """Return whether a figure is better, worse or level."""
    if abs(now - then) <= LEVEL[kind] * abs(then):
        return "level"
    more_is_better = kind in ("AUC", "sets") and "loses" not in figure
    return "better" if (now > then) == more_is_better else "worse"


def table(then: Text | pd.DataFrame, now: Text) -> pd.DataFrame:
    """Return the rows of `SINCE`; `then` are the files of the release, or an earlier `SINCE`."""
    if not isinstance(then, pd.DataFrame):
        then = pd.DataFrame(_measured(then))
    old = then.set_index("figure")
    rows = []
    for row in _measured(now):
        if (figure := row["figure"]) not in old.index:
            continue
        value, commit = old.loc[figure, ["0.3.0", "commit, 0.3.0"]]
        anew = row["commit, 0.3.0"] != commit
        rows.append(
            {
                "table": row["table"], "figure": figure, "0.3.0": value, "now": row["0.3.0"],
                "change": change(figure, row["kind"], value, row["0.3.0"]) if anew else "not measured since",
                "commit, 0.3.0": commit, "commit, now": row["commit, 0.3.0"],
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


def _measured(text: Text) -> list[dict[str, Any]]:
    """Return the figures of one set of files, with the commits that they were measured at."""
    return [
        {"table": name, "figure": figure, "kind": kind, "0.3.0": float(f"{value:.6g}"), "commit, 0.3.0": _commit(text, name)}
        for name, figure, kind, value in figures(lambda file: pd.read_csv(StringIO(text(f"{file}.csv")), low_memory=False))
    ]  # fmt: skip


def _commit(text: Text, name: str) -> str:
    return json.loads(text(f"{name}.json"))["commit"]


def of_today(name: str) -> str:
    """Return the text of a file as it is."""
    return (KEPT / name).read_text(encoding="utf-8")


def main() -> None:
    """Write `SINCE`."""

    def of_release(name: str) -> str:
        command = ["git", "show", f"{sys.argv[1]}:./{name}"]
        return subprocess.run(command, cwd=KEPT, capture_output=True, text=True, check=True).stdout

    then = of_release if sys.argv[1:] else pd.read_csv(SINCE)
    table(then, of_today).to_csv(SINCE, index=False, float_format="%.6g", lineterminator="\n")


if __name__ == "__main__":
    main()

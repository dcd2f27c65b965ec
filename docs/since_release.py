"""What got better and worse since 0.4.0: figures of the tables of that release beside those of the files of today.

python docs/since_release.py             `docs/benchmarks/since-0.4.0.csv` with the figures of today
python docs/since_release.py COMMIT      and with those of a release, from the files of its commit

Seconds of two days do not compare on a shared machine, so only ratios of seconds of one run are compared.
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
SINCE = KEPT / "since-0.4.0.csv"
LEVEL = {"ratio": 0.1, "MiB": 0.02, "AUC": 1e-3, "passes": 0.02}
"""By how much of itself a figure of a kind may change before it counts."""

Text = Callable[[str], str]
"""Gives the text of a file of `KEPT`."""
Figure = tuple[str, str, str, float]


def figures(read: Callable[[str], pd.DataFrame]) -> Iterator[Figure]:
    """Yield table, figure, its kind in `LEVEL` and its value; less is better but for AUC."""
    means = read("trees").query("split == 'all'").set_index("system")
    boosted = "LightGBM, budget of auto"
    for name in ("auto", "bins + pairs", "leaves"):
        yield "trees", f"mean AUC of {name}, 100 sets", "AUC", means["AUC"][name]
        share = means["seconds"][name] / means["seconds"][boosted]
        yield "trees", f"seconds of {name} over those of {boosted}", "ratio", share
    for _, row in read("passes").query("kind == 'passes'").iterrows():
        if row["value"] in (0.05, 0.01):
            yield "passes", f"passes of {row['data']}, share {row['value']} of the negatives", "passes", row["passes"]
    for _, row in read("large-runs").iterrows():
        yield "large-runs", f"passes of {row['rows']:.3g} rows, {row['run']}", "passes", row["passes"]
        yield "large-runs", f"MiB of {row['rows']:.3g} rows, {row['run']}, two workers", "MiB", row["all MiB"]
    for name, rows in read("large-maps").groupby("features map", sort=False):
        yield "large-maps", f"passes of four runs, {name}", "passes", rows["passes"].sum()
        yield "large-maps", f"most MiB of four runs, {name}", "MiB", rows["all MiB"].max()
    for data, rows in read("pairwise").groupby("data", sort=False):
        peer = rows.loc[rows["system"] == "LogisticRegression(lbfgs)", "seconds"]
        for _, row in rows[rows["system"] == "all-pairs"].iterrows():
            yield "pairwise", f"passes of {data}, lam {row['lam']:g}", "passes", row["passes"]
            if len(peer):
                share = row["seconds"] / peer.iloc[0]
                yield (
                    "pairwise",
                    f"seconds of {data}, lam {row['lam']:g}, over those of logistic regression",
                    "ratio",
                    share,
                )
    for _, row in read("hinge").dropna(subset=["sdcd / liblinear"]).iterrows():
        yield (
            "hinge",
            f"seconds of sdcd over liblinear, {row['data']}, lam {row['lam']:g}",
            "ratio",
            row["sdcd / liblinear"],
        )
    for _, row in read("monotone").dropna(subset=["passes"]).iterrows():
        yield "monotone", f"passes with directions of {row['data']}, lam {row['lam']:g}", "passes", row["passes"]
    for _, row in read("groups").iterrows():
        if row["system"].startswith(("hinge", "ramp")):
            yield "groups", f"AUC within groups of {row['system']}, {row['data']}", "AUC", row["GAUC"]


def change(kind: str, then: float, now: float) -> str:
    """Return whether a figure is better, worse or level."""
    if abs(now - then) <= LEVEL[kind] * abs(then):
        return "level"
    return "better" if (now > then) == (kind == "AUC") else "worse"


def table(then: Text | pd.DataFrame, now: Text) -> pd.DataFrame:
    """Return the rows of `SINCE`; `then` are the files of the release, or an earlier `SINCE`.

    A figure that the release did not have has no row.
    """
    if isinstance(then, pd.DataFrame):
        old = then.set_index("figure")[["0.4.0", "commit, 0.4.0"]]
    else:
        old = (
            pd.DataFrame(_measured(then))
            .set_index("figure")[["value", "commit"]]
            .set_axis(["0.4.0", "commit, 0.4.0"], axis=1)
        )
    rows = []
    for row in _measured(now):
        if row["figure"] not in old.index:
            continue
        value, commit = old.loc[row["figure"]]
        said = change(row["kind"], value, row["value"]) if row["commit"] != commit else "not measured since"
        rows.append(
            {
                "table": row["table"], "figure": row["figure"], "0.4.0": value, "now": row["value"], "change": said,
                "commit, 0.4.0": commit, "commit, now": row["commit"],
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


def _measured(text: Text) -> list[dict[str, Any]]:
    """Return the figures of one set of files, with the commits that they were measured at."""
    return [
        {"table": name, "figure": figure, "kind": kind, "value": float(f"{value:.6g}"), "commit": _commit(text, name)}
        for name, figure, kind, value in figures(
            lambda file: pd.read_csv(StringIO(text(f"{file}.csv")), low_memory=False)
        )
    ]


def _commit(text: Text, name: str) -> str:
    return json.loads(text(f"{name}.json"))["commit"]


def of_today(name: str) -> str:
    """Return the text of a file as it is."""
    return (KEPT / name).read_text(encoding="utf-8")


def write_differences() -> None:
    """Write `SINCE`."""

    def of_release(name: str) -> str:
        command = ["git", "show", f"{sys.argv[1]}:./{name}"]
        return subprocess.run(command, cwd=KEPT, capture_output=True, text=True, check=True).stdout

    then = of_release if sys.argv[1:] else pd.read_csv(SINCE)
    table(then, of_today).to_csv(SINCE, index=False, float_format="%.6g", lineterminator="\n")


if __name__ == "__main__":
    write_differences()

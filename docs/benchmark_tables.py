"""Puts the tables of `docs/benchmarks` into the pages `PAGES`: what stands between their markers comes from the
CSV files.

A marker is ``<!-- table NAME -->``, with a name of `TABLES`, and what it begins ends with ``<!-- end -->``.
"""

import csv
import json
import math
import re
import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).resolve().parent
KEPT = DOCS / "benchmarks"
PAGES = tuple(DOCS / "pages" / name for name in ("benchmarks.md", "internals/measurements.md"))
ADDED_PAIRS, LABEL = r"(?<=bins)( \+|,)( 10)? pairs", r"\1\2 interactions"
"""Interactions are called pairs in the labels of some files, and on no page: there a pair is one of rows."""
MARKED = re.compile(r"(<!-- table ([a-z ]+) -->\n).*?(<!-- end -->)", re.DOTALL)

Cells = dict[str, str]
Form = Callable[[str], str]


def plain(text: str) -> str:
    """Return a cell as it is."""
    return text


def short(text: str) -> str:
    """Return a number with three digits that count, those from 1,000 on with commas; other text as it is."""
    try:
        number = float(text)
    except ValueError:
        return text
    if not math.isfinite(number):
        return text
    if number == round(number) and abs(number) < 1e9:
        return f"{number:,.0f}"
    if 1e-3 <= abs(number) < 1e6:
        return f"{number:.3g}" if abs(number) < 1e3 else f"{number:,.0f}"
    return re.sub(r"(\.0)?e([+-])0*", r"e\2", f"{number:.1e}").replace("e+", "e")


def four(text: str) -> str:
    """Return a number with four digits that count."""
    return f"{float(text):.4g}"


def area(text: str) -> str:
    """Return an area or a share with four decimals."""
    return f"{float(text):.4f}" if text else ""


def signed(text: str) -> str:
    """Return a difference of areas with its sign and four decimals."""
    return f"{float(text):+.4f}" if text else ""


def yes_or_no(text: str) -> str:
    """Return a boolean as a word, and a number of such values as a number."""
    return {"True": "yes", "False": "no"}.get(text) or short(text)


def chosen_of_twenty(text: str) -> str:
    """Return a system of the suite `trees` by the name that pages use: its budget was not time, but a number of settings."""
    return text.replace("budget of auto", "20 settings")


def tuned(text: str) -> str:
    """Return a system of the suite `curves`, where the number of settings differs, by the name that pages use."""
    return text.replace("budget of auto", "tuned")


@dataclass(frozen=True)
class Table:
    """A table of the page.

    Attributes
    ----------
    file : str
        The CSV file in `docs/benchmarks`, without its suffix.
    columns : dict
        For each heading the column of the file and how a cell is written.
    where : callable
        Tells whether a row of the file is shown.
    mean_of : str
        The column that names the data set. If given, each data set has one row with the means over its splits, and the standard
        deviations as ``sd`` and the name of the column; a last row has the means over the data sets.
    """

    file: str
    columns: Mapping[str, tuple[str, Form]]
    where: Callable[[Cells], bool] = lambda row: True
    mean_of: str = ""

    def lines(self) -> Iterator[str]:
        """Yield the lines of the table, then what it was measured with."""
        yield f"| {' | '.join(self.columns)} |"
        yield f"|{'---|' * len(self.columns)}"
        rows = list(filter(self.where, read(self.file)))
        for row in with_means(rows, self.mean_of) if self.mean_of else rows:
            cells = (form(row.get(column) or "") for column, form in self.columns.values())
            yield f"| {re.sub(ADDED_PAIRS, LABEL, ' | '.join(cells))} |"
        yield ""
        yield from measured_with(self.file)


def read(name: str) -> list[Cells]:
    """Return the rows of a CSV file."""
    with (KEPT / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def with_means(rows: list[Cells], column: str) -> list[Cells]:
    """Return a row of means for each value of a column, and a last row with the means of these."""
    sets: dict[str, list[Cells]] = {}
    for row in rows:
        sets.setdefault(row[column], []).append(row)
    means = [_mean(of_set) | _deviations(of_set) for of_set in sets.values()]
    return [*means, _mean(means) | {column: f"mean of {len(means)} data sets"}]


def _mean(rows: list[Cells]) -> Cells:
    """Return the mean of each column of numbers, and the first text of the others."""
    cells = {}
    for column in rows[0]:
        texts = [row[column] for row in rows]
        try:
            cells[column] = repr(sum(map(float, texts)) / len(texts))
        except ValueError:
            cells[column] = texts[0]
    return cells


def _deviations(rows: list[Cells]) -> Cells:
    """Return the standard deviation of each column of numbers over several rows, and an empty text for the others."""
    cells = {}
    for column in rows[0]:
        try:
            cells[f"sd {column}"] = repr(statistics.stdev(float(row[column]) for row in rows))
        except ValueError:  # StatisticsError, of a single row, is one
            cells[f"sd {column}"] = ""
    return cells


def measured_with(name: str) -> Iterator[str]:
    """Yield what a file was measured with."""
    path = KEPT / f"{name}.json"
    if not path.exists():
        yield f"`docs/benchmarks/{name}.csv`."
        return
    about = json.loads(path.read_text(encoding="utf-8"))
    packages = about["packages"]
    yield f"`{_command_today(about['command'])}`, `docs/benchmarks/{name}.csv`:"
    yield (
        f"{about['began'][:10]}, {about['minutes']:g} minutes, aucdist {about['aucdist']} (commit {about['commit']}), "
        f"{about['cores']} cores,"
    )
    yield (
        f"Python {packages['python']}, NumPy {packages['numpy']}, scikit-learn {packages['scikit-learn']}; "
        f"the load of the machine before the run was {about['load before']}."
    )


def _command_today(command: str) -> str:
    """Return what makes a file today: `aucdist bench` ran the suites when some of the files were measured."""
    return re.sub(r"^aucdist bench ", "python -m benchmarks ", command)


def has(column: str) -> Callable[[Cells], bool]:
    """Return a test of whether a row has a value in a column."""
    return lambda row: bool(row.get(column))


DATA, SYSTEM, LAM, SECONDS = ("data", plain), ("system", plain), ("lam", short), ("seconds", short)
AVERAGE_PRECISION = ("PR-AUC", area)
TREES_SYSTEM, CURVES_SYSTEM = ("system", chosen_of_twenty), ("system", tuned)
TOP_SHOWN = ("aucdist top", "LogisticRegression lbfgs", "lightgbm")
PEERS_IN_SHORT = (
    "LogisticRegression lbfgs",
    "LogisticRegression, balanced",
    "lightgbm",
)
GROUPS_IN_SHORT = (
    "LightGBM lambdarank", "hinge within groups", "ramp within groups", "hinge within groups, leaves", "logistic regression",
    "LightGBM on grades", "LightGBM on classes", "XGBoost rank:pairwise",
)  # fmt: skip
LINKS_SHOWN = ("kddcup99", "a9a", "a9a, 80 features that leave one optimum")
LARGE = ("letter-recognition", "magic04", "a9a", "skin_nonskin", "covtype-ramp-test")
HINGE_AND_RAMP = ("aucdist pairwise hinge", "aucdist pairwise ramp")
LOSSES_SHOWN = ("letter-recognition", "magic04", "a9a", "100 sets")
MAPS_SHOWN = (
    "linear",
    "bins + pairs",
    "nystroem",
    "leaves",
    "auto",
    "LightGBM, default",
    "LightGBM, budget of auto",
    "XGBoost hist",
    "EBM",
)
RARE_SYSTEMS = {
    "logistic": "logistic regression",
    "readable": "auto, readable",
    "auto": "auto",
    "LightGBM": "LightGBM, default",
    "LightGBM tuned": "LightGBM, 20 settings",
    "EBM": "EBM",
}
"""The systems of the suite `rare`, and their names on the pages."""
LARGE_IN_SHORT = ("linear", "bins + pairs", "auto", "LightGBM, default", "LightGBM, budget of auto", "EBM")
TREES_IN_SHORT = (*LARGE_IN_SHORT, "XGBoost hist", "SVC, RBF")
OURS_IN_PAIRS = ("all-pairs", "LogisticRegression", "LinearSVC")
"""The systems of the suite `pairwise` that are fits; its other rows are single steps and products."""

TABLES = {
    "auto": Table(
        "auto",
        {
            "table": ("table", plain), "rows": ("rows", short), "positives": ("positives", short),
            "AUC, auto": ("AUC auto", area), "AUC, sd": ("sd AUC auto", area), "AUC, LightGBM": ("AUC LightGBM", area),
            "AUC, HistGB": ("AUC HGB", area), "AP, auto": ("AP auto", area), "AP, sd": ("sd AP auto", area),
            "AP, LightGBM": ("AP LightGBM", area), "AP, HistGB": ("AP HGB", area), "CPU seconds, auto": ("CPU s auto", short),
            "CPU seconds, LightGBM": ("CPU s LightGBM", short),
        },
        has("AUC auto"),
        mean_of="table",
    ),
    **{
        f"rare {title}": Table(
            "rare",
            {"table": ("table", plain), "rows": ("rows", short), "positives": ("positives", short)}
            | {
                heading: (f"{prefix}{figure} {system}", form)
                for system, name in RARE_SYSTEMS.items()
                for heading, prefix in ((name, ""), (f"sd, {name}", "sd "))[: 2 if figure == "AP" else 1]
            },
            mean_of="table",
        )
        for title, figure, form in (("precision", "AP", area), ("areas", "AUC", area), ("seconds", "CPU s", short))
    },
    "trees in short": Table(
        "trees",
        {
            "system": TREES_SYSTEM, "sets": ("set", plain), "AUC": ("AUC", area),
            "average precision": AVERAGE_PRECISION, "seconds": SECONDS, "AUC of rare sets": ("AUC of rare sets", area),
        },
        lambda row: row["split"] == "all" and row["system"] in TREES_IN_SHORT,
    ),
    "large sets in short": Table(
        "trees",
        {
            "data": ("set", plain), "rows": ("rows", short), "system": TREES_SYSTEM, "AUC": ("AUC", area),
            "average precision": AVERAGE_PRECISION, "seconds": SECONDS,
        },
        lambda row: row["split"] == "mean" and row["set"] in LARGE and row["system"] in LARGE_IN_SHORT,
    ),
    "pairwise in short": Table(
        "pairwise",
        {
            "data": DATA, "system": SYSTEM, "lam": LAM, "seconds": SECONDS, "passes": ("passes", short),
            "gap": ("relative gap", short), "test AUC": ("test AUC", area),
        },
        lambda row: row["system"].startswith(OURS_IN_PAIRS) and row["lam"] in ("", "0.001", "0.0001"),
    ),
    "large runs in short": Table(
        "large-runs",
        {
            "positives": ("run", plain), "rows": ("rows", short), "features": ("features", short), "passes": ("passes", short),
            "fit, s": ("fit s", short), "whole run, s": ("whole run s", short), "all processes, MiB": ("all MiB", short),
            "test AUC": ("test AUC", area),
        },
    ),
    "top in short": Table(
        "top",
        {
            "sets": ("data", plain), "linear model for the top against": SYSTEM, "wins": ("wins", short),
            "ties": ("ties", short), "loses": ("loses", short),
        },
        lambda row: row["data"].startswith("all ") and row["system"] in PEERS_IN_SHORT,
    ),
    "curves in short": Table(
        "curves",
        {
            "sets": ("data", plain), "`auto` against": CURVES_SYSTEM, "mean difference": ("aucdist minus this", signed),
            "p": ("p", short), "wins": ("wins", short), "ties": ("ties", short), "loses": ("loses", short),
        },
        lambda row: row["data"].startswith("all "),
    ),
    "groups in short": Table(
        "groups",
        {
            "data": DATA, "system": SYSTEM, "GAUC": ("GAUC", area), "NDCG@10": ("NDCG@10", area), "seconds": SECONDS,
        },
        lambda row: row["system"] in GROUPS_IN_SHORT,
    ),
    "worse": Table(
        "since-0.4.0",
        {"table": ("table", plain), "figure": ("figure", plain), "0.4.0": ("0.4.0", four), "now": ("now", four)},
        lambda row: row["change"] == "worse",
    ),
    "since": Table(
        "since-0.4.0",
        {
            "table": ("table", plain), "figure": ("figure", plain), "0.4.0": ("0.4.0", four), "now": ("now", four),
            "change": ("change", plain),
        },
    ),
    "pairwise": Table(
        "pairwise",
        {
            "data": DATA, "system": SYSTEM, "lam": LAM, "seconds": SECONDS, "passes": ("passes", short),
            "gap": ("relative gap", short), "test AUC": ("test AUC", area), "over X w": ("times X @ w", short),
        },
        lambda row: row["system"].startswith(OURS_IN_PAIRS),
    ),
    "peers": Table(
        "peers",
        {
            "data": DATA, "rows": ("train rows", short), "wins": ("wins", short), "ties": ("ties", short),
            "loses": ("loses", short), "cut off": ("excluded, cut off by the limit", short), "our first": ("our fastest", plain),
            "their first": ("their fastest", plain), "our time over theirs": ("times the fastest", short),
            "first that reads all rows": ("fastest that reads all rows", plain),
            "our time over its": ("times the fastest that reads all rows", short),
            "ours before or equal": ("before or equal", yes_or_no),
        },
        lambda row: row["kind"] == "summary",
    ),
    "top": Table(
        "top",
        {
            "data": DATA, "system": SYSTEM, "partial AUC 0.01": ("partial AUC 0.01", area),
            "recall at FPR 0.001": ("recall at FPR 0.001", area), "AUC": ("AUC", area), "seconds": SECONDS,
            "aucdist": ("aucdist", plain), "wins": ("wins", short), "ties": ("ties", short), "loses": ("loses", short),
        },
        lambda row: row["data"].startswith("all ") or row["system"] in TOP_SHOWN,
    ),
    "curves": Table(
        "curves",
        {
            "data": DATA, "split": ("split", plain), "system": CURVES_SYSTEM, "partial AUC 0.01": ("partial AUC 0.01", area),
            "AUC": ("AUC", area), "CPU seconds": ("CPU seconds", short), "aucdist minus this": ("aucdist minus this", signed),
            "p": ("p", short), "aucdist": ("aucdist", plain), "wins": ("wins", short), "ties": ("ties", short),
            "loses": ("loses", short),
        },
    ),
    "passes": Table(
        "passes",
        {
            "data": DATA, "beta": ("value", short), "passes": ("passes", short),
            "times all pairs": ("times all pairs", short), "note": ("note", plain),
        },
    ),
    "monotone passes": Table(
        "monotone",
        {
            "data": DATA, "rows": ("train rows", short), "lam": LAM, "passes, free": ("passes free", short),
            "passes": ("passes", short), "test AUC, free": ("AUC bins", area), "test AUC": ("AUC monotone", area),
        },
        has("passes"),
    ),
    "monotone rare": Table(
        "monotone",
        {
            "data": DATA, "lam": LAM, "AUC, linear": ("AUC linear", area), "bins": ("AUC bins", area),
            "monotone": ("AUC monotone", area), "bins below linear": ("bins below linear", short),
            "monotone below linear": ("monotone below linear", short),
        },
        has("bins below linear"),
    ),
    "hinge": Table(
        "hinge",
        {
            "data": DATA, "system": SYSTEM, "lam": LAM, "seconds": SECONDS, "passes": ("passes", short),
            "gap": ("relative gap", short), "sdcd over liblinear": ("sdcd / liblinear", short),
        },
    ),
    "link": Table(
        "link",
        {
            "data": DATA, "system": SYSTEM, "seconds": SECONDS, "passes": ("passes", short),
            "gap": ("relative gap", short), "times ours": ("times ours", short),
        },
        lambda row: row["data"] in LINKS_SHOWN,
    ),
    "cv": Table(
        "cv",
        {
            "folds": ("folds", short), "lams": ("lams", short), "path, s": ("path s", short),
            "fits from nothing, s": ("55 cold fits s", short), "two workers, s": ("two workers s", short),
            "two processes, s": ("two processes s", short),
        },
    ),
    "parsers": Table(
        "data",
        {
            "what": ("what", plain), "ours, MB/s": ("ours MB/s", short), "pandas, MB/s": ("pandas MB/s", short),
            "pyarrow, MB/s": ("pyarrow MB/s", short), "scikit-learn, MB/s": ("scikit-learn MB/s", short),
        },
        has("ours MB/s"),
    ),
    "workers": Table(
        "workers",
        {
            "workers": ("workers", short), "threads": ("threads", short), "fit, s": ("fit s", short),
            "30 products, s": ("30 products s", short), "fit, 1 over 2 workers": ("fit, 1 over 2 workers", short),
            "products, 1 over 2 workers": ("products, 1 over 2 workers", short),
            "fit, 1 over 2 threads": ("fit, 1 over 2 threads", short),
            "products, 1 over 2 threads": ("products, 1 over 2 threads", short),
        },
    ),
    "reductions": Table(
        "engine",
        {
            "carrier": ("carrier", plain), "size": ("of", plain), "least, ms": ("ms (least of 100)", short),
            "median, ms": ("ms (median)", short),
        },
        has("ms (median)"),
    ),
    "fits on carriers": Table(
        "engine",
        {
            "carrier": ("carrier", plain), "of": ("of", plain), "seconds": SECONDS,
            "over one process": ("over one process", short), "over rows in memory": ("times rows in memory", short),
        },
        has("seconds"),
    ),
    "trees": Table(
        "trees",
        {
            "system": TREES_SYSTEM, "sets": ("set", plain), "AUC": ("AUC", area),
            "average precision": AVERAGE_PRECISION, "seconds": SECONDS,
            "near the best peer": ("within 0.005 of the best peer", plain),
            "AUC of rare sets": ("AUC of rare sets", area), "most below linear": ("most below linear", area),
        },
        lambda row: row["split"] == "all",
    ),
    "trees on large sets": Table(
        "trees",
        {
            "data": ("set", plain), "rows": ("rows", short), "system": TREES_SYSTEM, "AUC": ("AUC", area),
            "average precision": AVERAGE_PRECISION, "seconds": SECONDS,
            "AUC over the best peer": ("AUC - best peer", signed), "p": ("p", short),
        },
        lambda row: row["split"] == "mean" and row["set"] in LARGE and row["system"] in MAPS_SHOWN,
    ),
    "groups": Table(
        "groups",
        {
            "data": DATA, "system": SYSTEM, "GAUC": ("GAUC", area), "NDCG@10": ("NDCG@10", area),
            "NDCG@10 over lambdarank": ("NDCG@10 over LightGBM lambdarank", signed), "from": ("NDCG@10 over, low", signed),
            "to": ("NDCG@10 over, high", signed), "seconds": SECONDS,
        },
    ),
    "bins of many rows": Table(
        "large-maps",
        {
            "features map": ("features map", plain), "where": ("carrier", plain), "passes": ("passes", short),
            "fit, s": ("fit s", short), "whole run, s": ("whole run s", short),
            "memory of all processes, MiB": ("all MiB", short), "test AUC": ("test AUC", area),
        },
    ),
    "hinge and ramp": Table(
        "peers",
        {"data": DATA, "system": SYSTEM, "value chosen": ("value", short), "AUC": ("AUC", area)},
        lambda row: row["data"] in ("skin", "covtype-93k", "magic04") and row["system"] in HINGE_AND_RAMP,
    ),
    "which loss": Table(
        "trees",
        {
            "data": ("set", plain), "system": SYSTEM, "AUC": ("AUC", area), "average precision": AVERAGE_PRECISION,
            "AUC of rare sets": ("AUC of rare sets", area),
        },
        lambda row: row["system"] in ("bins", "bins, logit") and row["split"] in ("mean", "all") and row["set"] in LOSSES_SHOWN,
    ),
    "a million rows": Table(
        "shapes",
        {
            "system": SYSTEM, "rows": ("rows", short), "features": ("features", short), "threads": ("threads", short),
            "seconds": SECONDS, "CPU seconds": ("CPU s", short), "AUC": ("AUC", area), "average precision": AVERAGE_PRECISION,
        },
    ),
}  # fmt: skip


def tables_in(page: str) -> list[str]:
    """Return the names of the tables that a page has."""
    return [name for _, name, _ in MARKED.findall(page)]


def with_tables(page: str) -> str:
    """Return the page with the tables that the CSV files have now."""
    return MARKED.sub(lambda match: match[1] + "\n".join(TABLES[match[2]].lines()) + "\n" + match[3], page)


def write_tables() -> None:
    """Write the pages."""
    for page in PAGES:
        page.write_text(with_tables(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    write_tables()

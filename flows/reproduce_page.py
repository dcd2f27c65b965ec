"""The page of a reproduction: its tables, figures, data sets and configuration, in the looks of the page of a run."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup

import aucdist.report
from aucdist.report import plots
from aucdist.report.table import figure
from flows.reproduce_cells import BETTER, MISS, WITHIN_1, WITHIN_2, Cell, Results, grid_means, tally
from flows.reproduce_config import Course, Paper, Table

LINES = [
    (plots.POS, "-"), (plots.NEG, "-"), (plots.INK, "--"), (plots.MUTED, "-."), (plots.POS, ":"), (plots.NEG, ":"),
]  # fmt: skip
COLOURS = {BETTER: "better", WITHIN_1: "", WITHIN_2: "below", MISS: "miss", "": ""}
Curve = tuple[str, np.ndarray, np.ndarray]


def render(config: Paper, versions: Any, results: Results, tables: dict[str, list[Cell]], yaml: str) -> str:
    """Return the page as HTML. The same results give the same text.

    Parameters
    ----------
    config : Paper
    versions : dict of str to dict of str to Version
        By experiment and data set.
    results : dict
    tables : dict of str to list of Cell
        By experiment.
    yaml : str
        The resolved configuration.
    """
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    template = environment.from_string(Path(__file__).with_suffix(".html").read_text(encoding="utf-8"))
    sections = []
    for name, experiment in config.experiments.items():
        drawn = _figures(name, experiment, results)
        table = _table(experiment, tables[name]) if isinstance(experiment, Table) else None
        sections.append({"title": experiment.title, "table": table, "figures": drawn})
    return template.render(
        title=config.title,
        style=Markup(_style()),
        departures=config.departures,
        sections=sections,
        datasets={key: version for by_name in versions.values() for key, version in by_name.items()},
        config=yaml,
    )


def _style() -> str:
    """Return the style sheet of the page of a run."""
    (folder,) = aucdist.report.__path__
    text = (Path(folder) / "template.html").read_text(encoding="utf-8")
    return text.partition("<style>")[2].partition("</style>")[0]


def _table(table: Table, cells: list[Cell]) -> dict[str, Any]:
    by_place = {(c.dataset, c.system): c for c in cells}
    rows = [(d, [_shown(by_place[d, s]) for s in table.systems]) for d in table.datasets]
    protocol = table.protocol
    choice = (
        "the best point of the grid over these very folds"
        if protocol.choose == "best"
        else "chosen within the training part"
    )
    words = f"{protocol.repeats} x {protocol.folds} folds; parameters: {choice}; scaling: {protocol.scale}."
    return {"systems": list(table.systems), "rows": rows, "words": words, "tally": _tally(cells)}


def _shown(cell: Cell) -> dict[str, str]:
    ours = "not run here" if cell.auc is None else _with_deviation(cell.auc, cell.deviation)
    paper = "" if cell.paper is None else f"paper {_with_deviation(cell.paper, cell.paper_deviation)}"
    apart = "" if cell.in_deviations is None else f"{cell.in_deviations:+.2f} deviations"
    return {"ours": ours, "paper": paper, "apart": apart, "chosen": cell.chosen, "colour": COLOURS[cell.verdict]}


def _with_deviation(value: float, deviation: float | None) -> str:
    return f"{value:.4f}" + ("" if deviation is None else f" ± {deviation:.4f}")


def _tally(cells: list[Cell]) -> str:
    found = tally(cells)
    return (
        f"Of {found['compared']} figures compared, {found['within_1']} are within one deviation of the paper's, "
        f"{found['better_by_more_than_1']} are better by more, {found['below_by_1_to_2']} are one to two deviations below, "
        f"and {found['below_by_more_than_2']} are farther below."
    )


def _figures(name: str, experiment: Table | Course, results: Results) -> dict[str, Any]:
    """Return the title of the figures and their SVG by data set."""
    if isinstance(experiment, Course):
        return {"title": "", "drawn": _courses(name, experiment, results)}
    if experiment.figure is None:
        return {"title": "", "drawn": []}
    ((parameter, values),) = experiment.grid.items()
    drawn = []
    for dataset in experiment.datasets:
        means = {s: grid_means(name, experiment, dataset, s, results) for s in experiment.systems}
        curves = [(s, np.array(values, dtype=float), m) for s, m in means.items() if m is not None]
        if curves:
            words = f"Mean test AUC on {dataset} against {parameter}."
            plot = _lines(curves, xlabel=f"{parameter}, log scale", ylabel="Test AUC", log_x=True)
            drawn.append((dataset, "", _svg(f"{name}-{dataset}-grid", dataset, words, plot)))
    return {"title": experiment.figure, "drawn": drawn}


def _courses(name: str, course: Course, results: Results) -> list[tuple[str, str, Any]]:
    drawn = []
    for dataset, about in course.datasets.items():
        areas, objectives = [], []
        for system in course.systems:
            runs = [
                r for key, r in results.items() if (key.experiment, key.dataset, key.system) == (name, dataset, system)
            ]
            if runs:
                steps = np.array(runs[0]["steps"], dtype=float)
                areas.append((system, steps, 1 - np.mean([r["auc"] for r in runs], axis=0)))
                excess = [np.array(r["objective"], dtype=float) / r["optimum"]["primal"] - 1 for r in runs]
                objectives.append((system, steps, np.mean(excess, axis=0)))
        lam = f"lam {figure(about.lam)}"
        for curves, what, label in (
            (areas, "auc", "1 - AUC"),
            (objectives, "objective", "Relative function value difference"),
        ):
            if curves:
                plot = _lines(curves, xlabel="Steps", ylabel=label, log_y=True)
                words = f"{label} of each system on {dataset} against its steps, {lam}."
                drawn.append((f"{dataset}: {label}", lam, _svg(f"{name}-{dataset}-{what}", dataset, words, plot)))
    return drawn


def _lines(
    curves: list[Curve], *, xlabel: str, ylabel: str, log_x: bool = False, log_y: bool = False
) -> Callable[[Any], None]:
    def plot(axes: Any) -> None:
        for (label, x, y), (colour, style) in zip(curves, LINES * len(curves), strict=False):
            axes.plot(x, y, style, color=colour, label=label, marker="." if len(x) <= 20 else None)
        axes.set(xlabel=xlabel, ylabel=ylabel + ", log scale" * log_y)
        if log_x:
            axes.set_xscale("log")
        if log_y and any((y > 0).any() for _, _, y in curves):
            axes.set_yscale("log")
        axes.legend(loc="best", fontsize=8)

    return plot


def _svg(name: str, title: str, words: str, plot: Callable[[Any], None]) -> Any:
    safe = "".join(c if c.isalnum() else "-" for c in name)
    return Markup(plots.draw(safe, title, words, plot))

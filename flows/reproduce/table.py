"""The kind `table`: test AUCs of systems on data sets, compared with the printed ones."""

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from aucdist.data.block import Block
from flows.config.base import Strict
from flows.reproduce.kind import (
    DataSet,
    Folds,
    Grid,
    GridSystem,
    Params,
    ProtocolKind,
    Result,
    Results,
    Task,
    auc_on,
    choose,
    choose_once,
    fit_on_fold,
    results_of,
    train_and_test,
)
from flows.reproduce.page import Curve, Figure, Report

WITHIN_1, WITHIN_2, BETTER, MISS = "within 1", "within 2", "better", "miss"
COUNTED = {
    "within_1": WITHIN_1, "better_by_more_than_1": BETTER, "below_by_1_to_2": WITHIN_2, "below_by_more_than_2": MISS,
}  # fmt: skip
"""The verdicts that the page counts, by the names of the counts."""
HIGHLIGHTS = {BETTER: "better", WITHIN_2: "below", MISS: "miss"}
ROUNDING = 1e-9
"""How far a difference may lie beyond the tolerance: subtraction of printed figures rounds."""


class Target(Strict):
    """A printed figure."""

    dataset: str
    system: str
    value: float
    deviation: float | None = None


class TableDataSet(DataSet):
    """A row of the table."""

    group: str | None = None
    """Name of a data set from which this is one of several random draws; the page has a row for all of them"""


class Choice(Folds):
    """Cross-validation, and the choice of the parameters."""

    choose: Literal["best", "cv", "once"] = "best"
    """`best`: the point of the grid with the highest mean over the test folds themselves, which is optimistic. `cv`: for each
    fold, the best over inner folds of its training part. `once`: for all folds, the best over inner folds of the first
    training part"""
    inner_folds: int = Field(default=5, ge=2)
    """For `cv` and `once`"""


FIGURES = ("paper", "paper_deviation", "auc", "deviation", "difference", "in_deviations")
COLUMNS = ("dataset", "system", *FIGURES, "verdict", "n_folds", "chosen")
"""The columns of the cells, which are the lines of the CSV.

`paper`, `paper_deviation`: as printed.
`auc`, `deviation`: mean and standard deviation (n - 1) over the folds.
`difference`: ours minus the paper's.
`in_deviations`: the difference in units of the paper's deviation; of ours where it prints none.
`verdict`: how the two compare; empty where one is missing.
`chosen`: the chosen parameters, and how often each was chosen where every fold chooses its own.
"""


def compare(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells with differences and verdicts."""
    difference = cells["auc"] - cells["paper"]
    unit = cells["paper_deviation"].fillna(cells["deviation"])
    apart = difference / unit.where(unit > 0.0)
    verdict = np.select([apart > 1, apart >= -1, apart >= -2, apart < -2], [BETTER, WITHIN_1, WITHIN_2, MISS], "")
    return cells.assign(difference=difference, in_deviations=apart, verdict=verdict)


def reaches(difference: Any, tolerance: float) -> Any:
    """Return whether our figures are at least the printed ones minus a tolerance; False where one is missing."""
    return difference >= -tolerance - ROUNDING


class Table(ProtocolKind):
    """Means over folds, at the chosen point of a grid."""

    kind: Literal["table"]
    systems: dict[str, GridSystem]
    """A system with a grid of its own has that in place of the table's"""
    datasets: dict[str, TableDataSet]
    protocol: Choice = Field(default_factory=Choice)
    grid: Grid
    targets: list[Target] = Field(default=[])
    """Or a CSV beside this file with these columns"""
    tolerance: float | None = Field(default=None, ge=0)
    """The page states for each cell whether it is at least the printed AUC minus this"""
    figure: str | None = None
    """Title of a figure: the mean AUC at every point of a grid of one parameter"""

    def task_of(self, dataset: str, system: GridSystem) -> Task:
        """Return estimator and points of a system."""
        return {"estimator": system.model.estimator, "points": system.points(self.grid)}

    @staticmethod
    def run_task(task: Task) -> Result:
        """Return the test AUC at every point of the grid (`best`), or at the chosen one alone; None elsewhere."""
        train, test = train_and_test(task)
        areas: list[float | None] = [None] * len(task["points"])
        to_run = list(range(len(areas)))
        if task["protocol"]["choose"] == "once":
            to_run = [choose_once(task, _auc_of_point)]
        elif task["protocol"]["choose"] == "cv" and len(areas) > 1:
            to_run = [choose(task, train, _auc_of_point)]
        for i in to_run:
            areas[i] = _auc_of_point(task, task["points"][i], train, test)
        return {"auc": areas}

    def report(self, results: Results) -> Report:
        """Return the table, the figure of the grid if there is one, and how many cells agree with the paper."""
        lines, key = self.cells(results), "at_least_print_minus_tolerance"
        counts, figures = count_agreement(lines), [] if self.figure is None else list(self._grid_figures(results))
        if self.tolerance is not None:
            reached, compared = reaches(lines["difference"], self.tolerance), lines["difference"].notna()
            tallies = reached[compared].groupby(lines["system"], sort=False).agg(["sum", "size"])
            texts = {system: f"{n} of {size}" for system, n, size in tallies.itertuples()}
            counts[key] = {"tolerance": self.tolerance, **texts}
            lines = lines.assign(**{key: np.select([reached, compared], ["yes", "no"], "")})
        # The mean of the draws of each data set, and their range, beside the one printed figure.
        groups = lines["dataset"].map({name: dataset.group for name, dataset in self.datasets.items()})
        draws = lines.assign(dataset=groups + ", all draws").groupby(["dataset", "system"], sort=False)
        means = draws.agg(auc=("auc", "mean"), least=("auc", "min"), most=("auc", "max"), paper=("paper", "first"))
        shown = pd.concat([lines, means.reset_index()])
        shown["highlight"] = [HIGHLIGHTS.get(verdict, "") for verdict in shown["verdict"]]
        table = self.page_table(
            "", shown, "{auc:.4f}", "± {deviation:.4f}", "{least:.4f} to {most:.4f}", "paper {paper:.4f}",
            "± {paper_deviation:.4f}", "{in_deviations:+.2f} deviations",
            f"at least the print - {self.tolerance}: {{{key}}}", "{chosen}",
        )  # fmt: skip
        return Report(self.title, [replace(table, rows=shown["dataset"].unique())], figures, lines, counts)

    def cells(self, results: Results) -> pd.DataFrame:
        """Return a line for every data set and system, whether it was run or not, in the order of the configuration."""
        printed = {(target.dataset, target.system): target for target in self.targets}
        cells = []
        for dataset, (system, settings) in itertools.product(self.datasets, self.systems.items()):
            cell = {"dataset": dataset, "system": system, "n_folds": 0, "chosen": ""}
            if target := printed.get((dataset, system)):
                cell |= {"paper": target.value, "paper_deviation": target.deviation}
            areas = _areas(dataset, system, results)
            if areas is not None:
                if self.protocol.choose == "best":
                    chosen = np.full(len(areas), np.argmax(areas.mean(axis=0)))
                else:  # each fold was scored at its choice alone
                    chosen = np.argmax(~np.isnan(areas), axis=1)
                values, points = areas[np.arange(len(areas)), chosen], settings.points(self.grid)
                varied = list(settings.grid or self.grid)
                texts = Counter(", ".join(f"{name}={points[i][name]:g}" for name in varied) for i in chosen)
                text = "; ".join(f"{n} times {text}" if len(texts) > 1 else text for text, n in texts.most_common())
                cell |= {"auc": values.mean(), "deviation": values.std(ddof=1), "n_folds": len(values), "chosen": text}
            cells.append(cell)
        return compare(pd.DataFrame(cells, columns=COLUMNS).astype(dict.fromkeys(FIGURES, float)))

    def _grid_figures(self, results: Results) -> Iterator[Figure]:
        ((parameter, values),) = self.grid.items()
        for dataset in self.datasets:
            areas = {system: _areas(dataset, system, results) for system in self.systems}
            x = np.array(values, dtype=float)
            curves = [Curve(system, x, a.mean(axis=0)) for system, a in areas.items() if a is not None]
            if curves:
                yield Figure(f"{self.figure}: {dataset}", curves, parameter, "Test AUC", log_x=True)


def _auc_of_point(task: Task, point: Params, train: Block, validation: Block) -> float:
    return auc_on(fit_on_fold(task, point, train), validation)


def _areas(dataset: str, system: str, results: Results) -> np.ndarray | None:
    """Return the AUCs by fold and point of the grid, nan where a point was not run; None without results."""
    areas = [run["auc"] for run in results_of(results, dataset, system)]
    return np.array(areas, dtype=float) if areas else None


def count_agreement(cells: pd.DataFrame) -> dict[str, Any]:
    """Return how many cells agree with the paper, and those that are below it."""
    verdict = cells["verdict"]
    below = cells[verdict.isin([MISS, WITHIN_2])].sort_values("in_deviations", kind="stable")
    return {
        "compared": int((verdict != "").sum()),
        **{key: int((verdict == value).sum()) for key, value in COUNTED.items()},
        "below": below[["dataset", "system", "paper", "auc", "in_deviations"]].to_dict("records"),
    }

"""The kind `table`: test AUCs of systems on data sets, compared with the printed ones."""

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import pandas as pd
from pydantic import Field, model_validator

from aucdist.data.block import Block
from aucdist.errors import InputError
from flows.config.base import Strict
from flows.reproduce.kind import (
    DataSet,
    Folds,
    Grid,
    Params,
    ProtocolKind,
    Result,
    Results,
    System,
    Task,
    auc_on,
    choose,
    choose_once,
    fit_on_fold,
    results_of,
    train_and_test,
)
from flows.reproduce.page import (
    NOT_RUN,
    Curve,
    Figure,
    PageSection,
    Report,
    TableCell,
    line_figure,
    table_rows,
    text_of,
)

WITHIN_1, WITHIN_2, BETTER, MISS = "within 1", "within 2", "better", "miss"
COUNTED = {
    "within_1": WITHIN_1, "better_by_more_than_1": BETTER, "below_by_1_to_2": WITHIN_2, "below_by_more_than_2": MISS,
}  # fmt: skip
"""The verdicts that the page counts, by the names of the counts."""
HIGHLIGHTS = {BETTER: "better", WITHIN_1: "", WITHIN_2: "below", MISS: "miss", "": ""}
ROUNDING = 1e-9
"""How far a difference may lie beyond the tolerance: subtraction of printed figures rounds."""

CHOICES = {
    "best": "the best point of the grid over these test folds themselves, which is optimistic",
    "cv": "chosen for each fold by inner folds of its own training part",
    "once": "chosen for all folds by inner folds of the first training part, whose rows are test rows of other folds",
}


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


class TableSystem(System):
    """A column of the table."""

    grid: Grid | None = None
    """Instead of the table's"""

    def all_points(self, grid: Grid) -> list[Params]:
        """Return the points of its own grid, or of the table's."""
        return self.grid_points(grid if self.grid is None else self.grid)


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
    systems: dict[str, TableSystem]
    datasets: dict[str, TableDataSet]
    protocol: Choice = Field(default_factory=Choice)
    grid: Grid
    targets: list[Target] = Field(default=[])
    """Or a CSV beside this file with these columns"""
    tolerance: float | None = Field(default=None, ge=0)
    """The page states for each cell whether it is at least the printed AUC minus this"""
    figure: str | None = None
    """Title of a figure: the mean AUC at every point of the grid"""

    @model_validator(mode="after")
    def _check_grid(self) -> "Table":
        for system in self.systems.values():
            system.all_points(self.grid)
        if self.figure is not None and len(self.grid) != 1:
            raise InputError("`figure` draws the AUC against one parameter: give `grid` one parameter")
        return self

    def tasks_of_systems(self, dataset: str) -> dict[str, Task]:
        """Return estimator and points of each system."""
        return {
            name: {"estimator": system.model.estimator, "points": system.all_points(self.grid)}
            for name, system in self.systems.items()
        }

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

    def report(self, name: str, results: Results) -> Report:
        """Return the table, the figure of the grid if there is one, and how many cells agree with the paper."""
        protocol, cells = self.protocol, self.cells(results)
        caption = (
            f"Test AUC, mean ± standard deviation over {protocol.repeats} x {protocol.folds} folds; scaling: {protocol.scale}. "
            f"Parameters: {CHOICES[protocol.choose]}. Differences are in units of the deviation that the paper prints, or of "
            "ours where it prints none."
        )
        sections = [PageSection(self.title, [caption], ["Data set", *self.systems], list(self._rows(cells)))]
        if self.figure is not None:
            sections.append(PageSection(self.figure, figures=list(self._grid_figures(name, results))))
        counts = count_agreement(cells)
        if self.tolerance is None:
            return Report(sections, cells, counts)
        key, reached = "at_least_print_minus_tolerance", reaches(cells["difference"], self.tolerance)
        compared = cells["difference"].notna()
        tallies = reached[compared].groupby(cells["system"], sort=False).agg(["sum", "size"])
        texts = {system: f"{n} of {size}" for system, n, size in tallies.itertuples()}
        cells = cells.assign(**{key: np.select([reached, compared], ["yes", "no"], "")})
        return Report(sections, cells, {**counts, key: {"tolerance": self.tolerance, **texts}})

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
                values, points = areas[np.arange(len(areas)), chosen], settings.all_points(self.grid)
                varied = list(self.grid if settings.grid is None else settings.grid)
                texts = Counter(", ".join(f"{name}={points[i][name]:g}" for name in varied) for i in chosen)
                text = "; ".join(f"{n} times {text}" if len(texts) > 1 else text for text, n in texts.most_common())
                cell |= {"auc": values.mean(), "deviation": values.std(ddof=1), "n_folds": len(values), "chosen": text}
            cells.append(cell)
        return compare(pd.DataFrame(cells, columns=COLUMNS).astype(dict.fromkeys(FIGURES, float)))

    def _rows(self, cells: pd.DataFrame) -> Iterator[tuple[str, list[TableCell]]]:
        """Yield the rows of the page: the data sets, and below the last draw of a data set the row of all its draws."""
        last_of = {settings.group: dataset for dataset, settings in self.datasets.items()}
        for dataset, settings in self.datasets.items():
            yield from table_rows(cells, [dataset], self.systems, self._cell)
            if settings.group is not None and last_of[settings.group] == dataset:
                whole = f"{settings.group}, all draws"
                draws = [key for key, other in self.datasets.items() if other.group == settings.group]
                draw_cells = cells[cells["dataset"].isin(draws)].assign(dataset=whole)
                yield from table_rows(draw_cells, [whole], self.systems, _all_draws_cell)

    def _cell(self, lines: pd.DataFrame) -> TableCell:
        """Return the cell of a system on a data set."""
        cell = lines.iloc[0]
        missed = self.tolerance is not None and cell.difference < -self.tolerance - ROUNDING
        below = f"below print - {self.tolerance:g}" if missed else ""
        units = text_of("{:+.2f} deviations", cell.in_deviations)
        here = text_of("{:.4f}", cell.auc) or NOT_RUN
        return TableCell(
            here + text_of(" ± {:.4f}", cell.deviation), (_printed(cell), units, below, cell.chosen), HIGHLIGHTS[cell.verdict]
        )  # fmt: skip

    def _grid_figures(self, name: str, results: Results) -> Iterator[Figure]:
        ((parameter, values),) = self.grid.items()
        for dataset in self.datasets:
            areas = {system: _areas(dataset, system, results) for system in self.systems}
            x = np.array(values, dtype=float)
            curves = [Curve(system, x, a.mean(axis=0)) for system, a in areas.items() if a is not None]
            if curves:
                yield line_figure(
                    f"{name}-{dataset}-grid", dataset, curves, xlabel=parameter, ylabel="Test AUC", log_x=True
                )


def _auc_of_point(task: Task, point: Params, train: Block, validation: Block) -> float:
    return auc_on(fit_on_fold(task, point, train), validation)


def _areas(dataset: str, system: str, results: Results) -> np.ndarray | None:
    """Return the AUCs by fold and point of the grid, nan where a point was not run; None without results."""
    areas = [run["auc"] for run in results_of(results, dataset, system)]
    return np.array(areas, dtype=float) if areas else None


def _all_draws_cell(draws: pd.DataFrame) -> TableCell:
    """Return mean and range of a system over the draws of a data set, beside the one printed figure."""
    areas = draws["auc"].dropna()
    if not len(areas):
        return TableCell(NOT_RUN)
    extent = f"{areas.min():.4f} to {areas.max():.4f} in {len(areas)}"
    return TableCell(f"mean {areas.mean():.4f}", (extent, _printed(draws.iloc[0])))


def _printed(cell: pd.Series) -> str:
    return text_of("paper {:.4f}", cell.paper) + text_of(" ± {:.4f}", cell.paper_deviation)


def count_agreement(cells: pd.DataFrame) -> dict[str, Any]:
    """Return how many cells agree with the paper, and those that are below it."""
    verdict = cells["verdict"]
    below = cells[verdict.isin([MISS, WITHIN_2])].sort_values("in_deviations", kind="stable")
    return {
        "compared": int((verdict != "").sum()),
        **{key: int((verdict == value).sum()) for key, value in COUNTED.items()},
        "below": below[["dataset", "system", "paper", "auc", "in_deviations"]].to_dict("records"),
    }

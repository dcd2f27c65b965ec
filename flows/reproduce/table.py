"""The kind `table`: test AUCs of systems on data sets, compared with the printed ones."""

import itertools
import math
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from pydantic import Field, model_validator

from aucdist.data.block import Block
from aucdist.errors import InputError
from flows.config.base import Strict
from flows.reproduce.kind import NOT_RUN, DataSet, Result, Results, Task, check_names, csv_bytes, results_of
from flows.reproduce.page import Curve, Figure, PageSection, TableCell, line_plot, page_figure
from flows.reproduce.protocol import (
    Folds,
    Grid,
    Params,
    ProtocolKind,
    System,
    auc_on,
    choose,
    choose_once,
    fit_on_fold,
    train_and_test,
)

WITHIN_1, WITHIN_2, BETTER, MISS = "within 1", "within 2", "better", "miss"
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

    group: str | None = Field(
        default=None,
        description="Name of a data set from which this is one of several random draws; the page has a row for all of them",
    )


class TableSystem(System):
    """A column of the table."""

    grid: Grid | None = Field(default=None, description="Instead of the table's")

    def all_points(self, grid: Grid) -> list[Params]:
        """Return the points of its own grid, or of the table's."""
        return self.grid_points(grid if self.grid is None else self.grid)


class Choice(Folds):
    """Cross-validation, and the choice of the parameters."""

    choose: Literal["best", "cv", "once"] = Field(
        default="best",
        description="`best`: the point of the grid with the highest mean over the test folds themselves, which is optimistic. "
        "`cv`: for each fold, the best over inner folds of its training part. `once`: for all folds, the best over inner folds "
        "of the first training part",
    )
    inner_folds: int = Field(default=5, ge=2, description="For `cv` and `once`")


@dataclass(frozen=True)
class TableResult:
    """A system on a data set: a row of the CSV, and a cell of the page.

    `paper` and `paper_deviation`: as printed; None where nothing is.
    `auc` and `deviation`: mean and standard deviation (n - 1) over the folds; None where the data set is absent.
    `difference`: ours minus the paper's.
    `in_deviations`: the difference in units of the paper's deviation; of ours where it prints none.
    `verdict`: how the two compare; empty where one is missing.
    `chosen`: the chosen parameters, and how often each was chosen where every fold chooses its own.
    """

    dataset: str
    system: str
    paper: float | None = None
    paper_deviation: float | None = None
    auc: float | None = None
    deviation: float | None = None
    difference: float | None = None
    in_deviations: float | None = None
    verdict: str = ""
    n_folds: int = 0
    chosen: str = ""

    @classmethod
    def of(cls, dataset: str, system: str, target: Target | None, values: np.ndarray, chosen: str) -> "TableResult":
        """Return the cell of a printed figure, if there is one, and of the AUCs of the folds, if it was run."""
        paper, printed_deviation = (None, None) if target is None else (target.value, target.deviation)
        if not len(values):
            return cls(dataset, system, paper, printed_deviation)
        auc, deviation = float(values.mean()), float(values.std(ddof=1))
        difference = None if paper is None else auc - paper
        unit = deviation if printed_deviation is None else printed_deviation
        apart = None if difference is None or not unit else difference / unit
        verdict = ""
        if apart is not None:
            verdict = BETTER if apart > 1 else WITHIN_1 if apart >= -1 else WITHIN_2 if apart >= -2 else MISS
        return cls(
            dataset, system, paper, printed_deviation, auc, deviation, difference, apart, verdict, len(values), chosen
        )

    def reaches(self, tolerance: float) -> bool:
        """Return whether our figure is at least the printed one minus a tolerance; False where one is missing."""
        return self.difference is not None and self.difference >= -tolerance - ROUNDING

    def table_cell(self, tolerance: float | None) -> TableCell:
        """Return the cell for the page; `tolerance` is that of the table."""
        here = NOT_RUN if self.auc is None else auc_text(self.auc, self.deviation)
        units = "" if self.in_deviations is None else f"{self.in_deviations:+.2f} deviations"
        missed = tolerance is not None and self.difference is not None and not self.reaches(tolerance)
        below = f"below print - {tolerance:g}" if missed else ""
        paper = printed_text(self.paper, self.paper_deviation)
        return TableCell(here, (paper, units, below, self.chosen), HIGHLIGHTS[self.verdict])


COLUMNS = tuple(TableResult.__dataclass_fields__)


class Table(ProtocolKind):
    """Means over folds, at the chosen point of a grid."""

    kind: Literal["table"]
    systems: dict[str, TableSystem]
    datasets: dict[str, TableDataSet]
    protocol: Choice = Field(default_factory=Choice)
    grid: Grid
    targets: list[Target] = Field(default=[], description="Or a CSV beside this file with these columns")
    tolerance: float | None = Field(
        default=None,
        ge=0,
        description="The page states for each cell whether it is at least the printed AUC minus this",
    )
    figure: str | None = Field(default=None, description="Title of a figure: the mean AUC at every point of the grid")

    @model_validator(mode="after")
    def _check_grid_and_targets(self) -> "Table":
        for system in self.systems.values():
            system.all_points(self.grid)
        check_names("data set of a target", (target.dataset for target in self.targets), self.datasets)
        check_names("system of a target", (target.system for target in self.targets), self.systems)
        if self.figure is not None and len(self.grid) != 1:
            raise InputError("`figure` draws the AUC against one parameter, but `grid` has another number of them")
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
        start = time.perf_counter()
        train, test = train_and_test(task)
        areas: list[float | None] = [None] * len(task["points"])
        with warnings.catch_warnings():
            # Some points do not converge, and the papers' solvers stop after a fixed number of steps.
            warnings.simplefilter("ignore")
            to_run = list(range(len(areas)))
            if task["protocol"]["choose"] == "once":
                to_run = [choose_once(task, _auc_of_point)]
            elif task["protocol"]["choose"] == "cv" and len(areas) > 1:
                to_run = [choose(task, train, _auc_of_point)]
            for i in to_run:
                areas[i] = auc_on(fit_on_fold(task, task["points"][i], train), test)
        return {"auc": areas, "seconds": time.perf_counter() - start}

    def page_sections(self, name: str, results: Results) -> list[PageSection]:
        """Return the table, and the figure of the grid if there is one."""
        protocol = self.protocol
        caption = (
            f"Test AUC, mean ± standard deviation over {protocol.repeats} x {protocol.folds} folds; scaling: {protocol.scale}. "
            f"Parameters: {CHOICES[protocol.choose]}. Differences are in units of the deviation that the paper prints, or of "
            "ours where it prints none."
        )
        rows = list(self._table_rows(self.cells(results)))
        sections = [PageSection(self.title, [caption], ["Data set", *self.systems], rows)]
        if self.figure is not None:
            sections.append(PageSection(self.figure, figures=list(self._grid_figures(name, results))))
        return sections

    def csv_files(self, name: str, results: Results) -> dict[str, bytes]:
        """Return the cells."""
        rows = [asdict(cell) for cell in self.cells(results)]
        if self.tolerance is None:
            return {f"{name}.csv": csv_bytes(COLUMNS, rows)}
        reached = "at_least_print_minus_tolerance"
        for row, cell in zip(rows, self.cells(results), strict=True):
            row[reached] = "" if cell.difference is None else "yes" if cell.reaches(self.tolerance) else "no"
        return {f"{name}.csv": csv_bytes([*COLUMNS, reached], rows)}

    def summary(self, results: Results) -> dict[str, Any]:
        """Return how many cells agree with the paper, those below it, and how many reach its figures minus the tolerance."""
        cells = self.cells(results)
        counts = count_agreement(cells)
        if self.tolerance is not None:
            counts["at_least_print_minus_tolerance"] = {"tolerance": self.tolerance}
            for system in self.systems:
                compared = [cell for cell in cells if cell.system == system and cell.difference is not None]
                if compared:
                    n = sum(cell.reaches(self.tolerance) for cell in compared)
                    counts["at_least_print_minus_tolerance"][system] = f"{n} of {len(compared)}"
        return counts

    def cells(self, results: Results) -> list[TableResult]:
        """Return a cell for every data set and system, whether it was run or not, in the order of the configuration."""
        printed = {(target.dataset, target.system): target for target in self.targets}
        cells = []
        for dataset, (system, settings) in itertools.product(self.datasets, self.systems.items()):
            areas, values, text = _areas(dataset, system, results), np.zeros(0), ""
            if areas is not None:
                if self.protocol.choose == "best":
                    chosen = np.full(len(areas), np.argmax(areas.mean(axis=0)))
                else:  # each fold was scored at its choice alone
                    chosen = np.argmax(~np.isnan(areas), axis=1)
                values, points = areas[np.arange(len(areas)), chosen], settings.all_points(self.grid)
                varied = list(self.grid if settings.grid is None else settings.grid)
                text = _choices_text([points[i] for i in chosen], varied)
            cells.append(TableResult.of(dataset, system, printed.get((dataset, system)), values, text))
        return cells

    def _table_rows(self, cells: list[TableResult]) -> Iterator[tuple[str, list[TableCell]]]:
        """Yield the rows of the page: the data sets, and below the last draw of a data set the row of all its draws."""
        last_of = {settings.group: dataset for dataset, settings in self.datasets.items()}
        for dataset, settings in self.datasets.items():
            yield dataset, [cell.table_cell(self.tolerance) for cell in cells if cell.dataset == dataset]
            if settings.group is not None and last_of[settings.group] == dataset:
                draws = [cell for cell in cells if self.datasets[cell.dataset].group == settings.group]
                by_system = [[cell for cell in draws if cell.system == system] for system in self.systems]
                yield f"{settings.group}, all draws", [_all_draws_cell(of_system) for of_system in by_system]

    def _grid_figures(self, name: str, results: Results) -> Iterator[Figure]:
        ((parameter, values),) = self.grid.items()
        for dataset in self.datasets:
            areas = {system: _areas(dataset, system, results) for system in self.systems}
            x = np.array(values, dtype=float)
            curves = [Curve(system, x, a.mean(axis=0)) for system, a in areas.items() if a is not None]
            if curves:
                description = f"Mean test AUC on {dataset} against {parameter}."
                plot = line_plot(curves, xlabel=parameter, ylabel="Test AUC", log_x=True)
                yield page_figure(f"{name}-{dataset}-grid", dataset, "", description, plot)


def _auc_of_point(task: Task, point: Params, train: Block, validation: Block) -> float:
    return auc_on(fit_on_fold(task, point, train), validation)


def _areas(dataset: str, system: str, results: Results) -> np.ndarray | None:
    """Return the AUCs by fold and point of the grid, nan where a point was not run; None without results."""
    areas = [run["auc"] for run in results_of(results, dataset, system)]
    return np.array(areas, dtype=float) if areas else None


def _choices_text(points: list[Params], names: list[str]) -> str:
    texts = [", ".join(f"{name}={point[name]:g}" for name in names) for point in points]
    counts = {text: texts.count(text) for text in dict.fromkeys(texts)}
    if len(counts) == 1:
        return texts[0]
    return "; ".join(f"{n} times {text}" for text, n in sorted(counts.items(), key=lambda item: -item[1]))


def _all_draws_cell(draws: list[TableResult]) -> TableCell:
    """Return mean and range of a system over the draws of a data set, beside the one printed figure."""
    areas = [cell.auc for cell in draws if cell.auc is not None]
    if not areas:
        return TableCell(NOT_RUN)
    paper = printed_text(draws[0].paper, draws[0].paper_deviation)
    return TableCell(f"mean {np.mean(areas):.4f}", (f"{min(areas):.4f} to {max(areas):.4f} in {len(areas)}", paper))


def auc_text(value: float, deviation: float | None) -> str:
    """Return an AUC with its deviation as text."""
    return f"{value:.4f}" + ("" if deviation is None else f" ± {deviation:.4f}")


def printed_text(value: float | None, deviation: float | None) -> str:
    """Return a printed AUC as text; empty where nothing is printed."""
    return "" if value is None else f"paper {auc_text(value, deviation)}"


def count_agreement(cells: Sequence[TableResult]) -> dict[str, Any]:
    """Return how many cells agree with the paper, and those that are below it."""
    verdicts = [cell.verdict for cell in cells]
    below = [
        {"dataset": c.dataset, "system": c.system, "paper": c.paper, "auc": c.auc, "in_deviations": c.in_deviations}
        for c in sorted(cells, key=lambda c: math.inf if c.in_deviations is None else c.in_deviations)
        if c.verdict in (MISS, WITHIN_2)
    ]
    return {
        "compared": sum(v != "" for v in verdicts),
        "within_1": verdicts.count(WITHIN_1),
        "better_by_more_than_1": verdicts.count(BETTER),
        "below_by_1_to_2": verdicts.count(WITHIN_2),
        "below_by_more_than_2": verdicts.count(MISS),
        "below": below,
    }

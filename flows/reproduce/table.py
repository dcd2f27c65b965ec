"""The kind `table`: test AUCs of systems on data sets, held against printed ones."""

import csv
import functools
import io
import itertools
import json
import math
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from aucdist.data.block import Block
from aucdist.engine.blocks import block_seed
from aucdist.errors import InputError, unknown
from aucdist.selection.folds import fold_numbers
from flows.config.base import Strict
from flows.reproduce.datasets import NOT_RUN, DataSet, Version
from flows.reproduce.folds import Folds, Grid, Params, System, area, fitted, fold_tasks, parts
from flows.reproduce.kind import Key, Kind, Result, Results, Task
from flows.reproduce.lines import Curve, drawing, lines
from flows.reproduce.page import Drawing, Entry, Section

WITHIN_1, WITHIN_2, BETTER, MISS = "within 1", "within 2", "better", "miss"
UNITS = "Differences are in units of the deviation that the paper prints; of ours where it prints none."
COLOURS = {BETTER: "better", WITHIN_1: "", WITHIN_2: "below", MISS: "miss", "": ""}


class TableSet(DataSet):
    """A row of the table."""

    group: str | None = Field(
        default=None, description="Name of a data set of which this is one draw of several; the page sums them up"
    )


class TableSystem(System):
    """A column of the table."""

    grid: Grid | None = Field(default=None, description="Instead of the table's")

    def all_points(self, grid: Grid) -> list[Params]:
        """Return the points of its own grid, or of the table's."""
        return self.points(grid if self.grid is None else self.grid)


class Choice(Folds):
    """How the rows are parted and the parameters are chosen."""

    choose: Literal["best", "cv", "once"] = Field(
        default="best",
        description="`best`: the point of the grid with the highest mean over these very test folds, which flatters. "
        "`cv`: each time the best by folds of the training part. `once`: for all the best by folds of the first training part",
    )
    inner_folds: int = Field(default=5, ge=2, description="For `cv` and `once`")


class Target(Strict):
    """A printed figure."""

    dataset: str
    system: str
    value: float
    deviation: float | None = None


@dataclass(frozen=True)
class Cell:
    """A system on a data set.

    Attributes
    ----------
    dataset, system : str
    paper, paper_deviation : float or None
        As printed; None where nothing is.
    auc, deviation : float or None
        Mean and standard deviation (n - 1) over the folds; None where the data set is absent.
    n_folds : int
    chosen : str
        The parameters chosen; how often each, where every fold chooses its own.
    """

    COLUMNS: ClassVar[tuple[str, ...]] = (
        "dataset", "system", "paper", "paper_deviation", "auc", "deviation", "difference", "in_deviations", "verdict",
        "n_folds", "chosen",
    )  # fmt: skip

    dataset: str
    system: str
    paper: float | None = None
    paper_deviation: float | None = None
    auc: float | None = None
    deviation: float | None = None
    n_folds: int = 0
    chosen: str = ""

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return None if self.auc is None or self.paper is None else self.auc - self.paper

    @property
    def in_deviations(self) -> float | None:
        """The difference in units of the paper's deviation; of ours where it prints none."""
        unit = self.deviation if self.paper_deviation is None else self.paper_deviation
        return None if self.difference is None or not unit else self.difference / unit

    @property
    def verdict(self) -> str:
        """How the two compare; empty where there are not two."""
        if self.in_deviations is None:
            return ""
        if abs(self.in_deviations) <= 1:
            return WITHIN_1
        if self.in_deviations > 1:
            return BETTER
        return WITHIN_2 if self.in_deviations >= -2 else MISS

    def row(self) -> dict[str, Any]:
        """Return the cell as a row of the CSV."""
        found = {name: getattr(self, name) for name in self.COLUMNS}
        return {k: f"{v:.6g}" if isinstance(v, float) else "" if v is None else v for k, v in found.items()}

    def entry(self) -> Entry:
        """Return the cell as it stands on the page."""
        ours = NOT_RUN if self.auc is None else _with_deviation(self.auc, self.deviation)
        apart = "" if self.in_deviations is None else f"{self.in_deviations:+.2f} deviations"
        paper = _printed(self.paper, self.paper_deviation)
        return Entry(ours, (paper, apart, self.chosen), COLOURS[self.verdict])


class Table(Kind):
    """Means over folds, at the chosen point of a grid."""

    kind: Literal["table"]
    systems: dict[str, TableSystem]
    datasets: dict[str, TableSet]
    protocol: Choice = Field(default_factory=Choice)
    grid: Grid
    targets: list[Target] = Field(default=[], description="Or a CSV beside this file with these columns")
    figure: str | None = Field(default=None, description="Title of a figure: the mean AUC at every point of the grid")

    @model_validator(mode="after")
    def _accepted(self) -> "Table":
        for system in self.systems.values():
            system.all_points(self.grid)
        for target in self.targets:
            for what, name, known in (
                ("data set", target.dataset, self.datasets), ("system", target.system, self.systems),
            ):  # fmt: skip
                if name not in known:
                    raise unknown(f"{what} of a target", name, known)
        if self.figure is not None and len(self.grid) != 1:
            raise InputError("`figure` draws the AUC against one parameter, but `grid` has another number of them")
        return self

    def tasks(self, versions: Mapping[str, Version]) -> Iterator[tuple[Key, Task]]:
        """Yield every fold of every system on the data sets that are present."""

        def more(dataset: str, system: str) -> Task:
            # The last three have no use; results that were kept before know them.
            return {"points": self.systems[system].all_points(self.grid), "steps": None, "every": 0, "until": 0}

        return fold_tasks(self.protocol, self.datasets, self.systems, versions, more)

    @staticmethod
    def run(task: Task) -> Result:
        """Return the test AUC at every point of the grid (`best`), or at the chosen one alone; None elsewhere."""
        start = time.perf_counter()
        train, test = parts(task)
        areas: list[float | None] = [None] * len(task["points"])
        with warnings.catch_warnings():
            # Some points are hopeless, and the papers' solvers stop after a number of steps whatever they have reached.
            warnings.simplefilter("ignore")
            for i in _which(task, train):
                areas[i] = area(fitted(task, task["points"][i], train), test)
        return {"auc": areas, "seconds": time.perf_counter() - start}

    def sections(self, name: str, results: Results) -> list[Section]:
        """Return the table, and the figure of the grid if there is one."""
        cells = self.cells(results)
        choice = (
            "the best point of the grid over these very folds"
            if self.protocol.choose == "best"
            else "chosen within the training part"
        )
        words = (
            f"Test AUC, mean ± standard deviation. {self.protocol.repeats} x {self.protocol.folds} folds; "
            f"parameters: {choice}; scaling: {self.protocol.scale}. {_counted(tally(cells))}"
        )
        found = [Section(self.title, [words, UNITS], ["Data set", *self.systems], list(self._rows(cells)))]
        if self.figure is not None:
            found.append(Section(self.figure, drawings=list(self._drawn(name, results))))
        return found

    def files(self, name: str, results: Results) -> dict[str, bytes]:
        """Return the cells as CSV."""
        stream = io.StringIO()
        writer = csv.DictWriter(stream, list(Cell.COLUMNS), lineterminator="\n")
        writer.writeheader()
        writer.writerows(cell.row() for cell in self.cells(results))
        return {f"{name}.csv": stream.getvalue().encode()}

    def tally(self, results: Results) -> dict[str, Any]:
        """Return how many cells agree with the paper."""
        return tally(self.cells(results))

    def cells(self, results: Results) -> list[Cell]:
        """Return a cell for every data set and system, whether it was run or not, in the order of the configuration."""
        printed = {(t.dataset, t.system): (t.value, t.deviation) for t in self.targets}
        cells = []
        for dataset, (system, about) in itertools.product(self.datasets, self.systems.items()):
            paper, paper_deviation = printed.get((dataset, system), (None, None))
            areas = self._areas(dataset, system, results)
            if areas is None:
                cells.append(Cell(dataset, system, paper, paper_deviation))
                continue
            chosen, values = _best(areas) if self.protocol.choose == "best" else _by_fold(areas)
            points = about.all_points(self.grid)
            words = _words([points[i] for i in chosen], list(self.grid if about.grid is None else about.grid))
            mean, deviation = float(values.mean()), float(values.std(ddof=1))
            cells.append(Cell(dataset, system, paper, paper_deviation, mean, deviation, len(values), words))
        return cells

    def _areas(self, dataset: str, system: str, results: Results) -> np.ndarray | None:
        """Return the AUCs by fold and point of the grid, nan where a point was not run; None where nothing was."""
        places = itertools.product(range(self.protocol.repeats), range(self.protocol.folds))
        found = [results[key]["auc"] for at in places if (key := Key(dataset, system, *at)) in results]
        return np.array(found, dtype=float) if found else None

    def _rows(self, cells: list[Cell]) -> Iterator[tuple[str, list[Entry]]]:
        """Yield the rows of the page: the data sets, and below the draws of one what they come to."""
        last_of = {about.group: dataset for dataset, about in self.datasets.items()}
        for dataset, about in self.datasets.items():
            yield dataset, [cell.entry() for cell in cells if cell.dataset == dataset]
            if about.group is not None and last_of[about.group] == dataset:
                draws = [cell for cell in cells if self.datasets[cell.dataset].group == about.group]
                by_system = [[cell for cell in draws if cell.system == system] for system in self.systems]
                yield f"{about.group}, all draws", [_summed_up(some) for some in by_system]

    def _drawn(self, name: str, results: Results) -> Iterator[Drawing]:
        ((parameter, values),) = self.grid.items()
        for dataset in self.datasets:
            areas = {system: self._areas(dataset, system, results) for system in self.systems}
            x = np.array(values, dtype=float)
            curves = [Curve(system, x, a.mean(axis=0)) for system, a in areas.items() if a is not None]
            if curves:
                words = f"Mean test AUC on {dataset} against {parameter}."
                plot = lines(curves, xlabel=parameter, ylabel="Test AUC", log_x=True)
                yield drawing(f"{name}-{dataset}-grid", dataset, "", words, plot)


def _which(task: Task, train: Block) -> list[int]:
    """Return the points of the grid to run."""
    choose, n_points = task["protocol"]["choose"], len(task["points"])
    if choose == "best" or n_points == 1:
        return list(range(n_points))
    return [_chosen(task, train) if choose == "cv" else _chosen_once(json.dumps(task | {"repeat": 0, "fold": 0}))]


@functools.lru_cache(maxsize=64)
def _chosen_once(first: str) -> int:
    """Return what is chosen on the first training part, found once in a process for all folds of a system on a data set."""
    task = json.loads(first)
    return _chosen(task, parts(task)[0])


def _chosen(task: Task, train: Block) -> int:
    """Return the point of the grid with the highest mean AUC over folds of the training rows."""
    protocol, points = task["protocol"], task["points"]
    seed = block_seed(protocol["seed"], task["repeat"], 2 + task["fold"])
    fold = fold_numbers(train.row_id, train.y, protocol["inner_folds"], seed)
    means = np.zeros(len(points))
    for number in range(protocol["inner_folds"]):
        inner, held_out = train.take(fold != number), train.take(fold == number)
        means += [area(fitted(task, point, inner), held_out) for point in points]
    return int(np.argmax(means))


def _best(areas: np.ndarray) -> tuple[list[int], np.ndarray]:
    """Return the point whose mean over the folds is highest, and its AUCs."""
    best = int(np.argmax(areas.mean(axis=0)))
    return [best], areas[:, best]


def _by_fold(areas: np.ndarray) -> tuple[list[int], np.ndarray]:
    """Return the point that each fold chose, and its AUC there."""
    chosen = np.argmax(~np.isnan(areas), axis=1)
    return chosen.tolist(), areas[np.arange(len(areas)), chosen]


def _words(points: list[Params], names: list[str]) -> str:
    texts = [", ".join(f"{name}={point[name]:g}" for name in names) for point in points]
    counts = {text: texts.count(text) for text in dict.fromkeys(texts)}
    if len(counts) == 1:
        return texts[0]
    return "; ".join(f"{n} times {text}" for text, n in sorted(counts.items(), key=lambda item: -item[1]))


def _with_deviation(value: float, deviation: float | None) -> str:
    return f"{value:.4f}" + ("" if deviation is None else f" ± {deviation:.4f}")


def _printed(value: float | None, deviation: float | None) -> str:
    return "" if value is None else f"paper {_with_deviation(value, deviation)}"


def _summed_up(draws: list[Cell]) -> Entry:
    """Return what a system comes to over the draws of a data set, beside the one printed figure."""
    ours = [cell.auc for cell in draws if cell.auc is not None]
    if not ours:
        return Entry(NOT_RUN)
    paper = _printed(draws[0].paper, draws[0].paper_deviation)
    return Entry(f"mean {np.mean(ours):.4f}", (f"{min(ours):.4f} to {max(ours):.4f} in {len(ours)}", paper))


def tally(cells: list[Cell]) -> dict[str, Any]:
    """Return how many cells agree with the paper, and those that are below it."""
    verdicts = [cell.verdict for cell in cells]
    farthest = [
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
        "below": farthest,
    }


def _counted(found: dict[str, Any]) -> str:
    return (
        f"Of {found['compared']} figures compared, {found['within_1']} are within one deviation of the paper's, "
        f"{found['better_by_more_than_1']} are better by more, {found['below_by_1_to_2']} are one to two deviations below, "
        f"and {found['below_by_more_than_2']} are farther below."
    )

"""The kind `g-mean`: G-means and seconds of systems that may sample the rows first, held against printed ones."""

import csv
import functools
import io
import itertools
import json
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pydantic import Field, model_validator

from aucdist.data.block import Block
from aucdist.engine.blocks import block_seed
from aucdist.errors import unknown
from aucdist.metrics import g_mean_score
from aucdist.sampling import MWMOTE, DistanceUnderSampler
from aucdist.selection.folds import fold_numbers
from flows.config.base import Strict
from flows.reproduce.datasets import NOT_RUN, DataSet, Version
from flows.reproduce.folds import Folds, Grid, Params, System, fitted, fold_tasks, parts
from flows.reproduce.kind import Key, Kind, Result, Results, Task
from flows.reproduce.lines import Curve, drawing, lines
from flows.reproduce.page import Drawing, Entry, Section

Measure = Literal["train", "test", "seconds"]
MEASURES: tuple[Measure, ...] = ("train", "test", "seconds")
COLUMNS = ("dataset", "system", "measure", "paper", "here", "deviation", "difference", "chosen")
FILE_DIGITS = 6


def _svc() -> Any:
    from sklearn.svm import SVC

    return SVC(C=10.0, class_weight="balanced")


SAMPLERS: dict[str, Callable[[int], Any]] = {
    "none": lambda seed: None,
    "u": lambda seed: DistanceUnderSampler(random_state=seed),
    "u-svc": lambda seed: DistanceUnderSampler(svm=_svc(), random_state=seed),
    "mwmote": lambda seed: MWMOTE(random_state=seed),
}
"""What `samplers` may name: all rows; U1 or U2 by the default hyperplane or by a Gaussian support vector machine's; MWMOTE."""


class SampledSystem(System):
    """A system, what it may sample with, and its grid."""

    samplers: list[str] = Field(
        default=[], description="Each with every point of the grid; only for MarginMeanClassifier"
    )
    grid: Grid = Field(default={}, description="Parameters to choose from")
    rule: Literal["zero", "predict"] = Field(
        default="predict",
        description="`zero`: the sign of the margin, as in the paper. `predict`: the threshold of the estimator",
    )

    @model_validator(mode="after")
    def _known(self) -> "SampledSystem":
        for name in self.samplers:
            if name not in SAMPLERS:
                raise unknown("sampler", name, SAMPLERS)
        return self

    def all_points(self) -> list[Params]:
        """Return the points of the grid, each with its sampler's name where there are samplers."""
        points = self.points(self.grid)
        return [point | {"sampler": name} for name in self.samplers for point in points] if self.samplers else points

    def words(self, point: Params) -> str:
        """Return what was chosen."""
        shown = [f"{name} {point[name]:g}" for name in self.grid]
        return ", ".join([point["sampler"], *shown] if len(self.samplers) > 1 else shown)


class ChosenOnce(Folds):
    """How the rows are parted; parameters are chosen by folds of the first training part, for all folds."""

    inner_folds: int = Field(default=3, ge=2)


class Target(Strict):
    """A printed figure: a G-mean in per cent, or seconds."""

    dataset: str
    system: str
    measure: Measure
    value: float


@dataclass(frozen=True)
class Cell:
    """A system on a data set: the mean over the folds (of seconds the median), its deviation, what is printed; or None."""

    dataset: str
    system: str
    measure: Measure
    paper: float | None = None
    here: float | None = None
    deviation: float | None = None
    chosen: str = ""

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return None if self.here is None or self.paper is None else self.here - self.paper

    @property
    def reached(self) -> bool:
        """Whether ours is at least as good as printed; not so where there are not two figures."""
        if self.difference is None:
            return False
        return self.difference <= 0 if self.measure == "seconds" else self.difference >= 0

    def row(self) -> dict[str, Any]:
        """Return the cell as a row of the CSV."""
        found = {name: getattr(self, name) for name in COLUMNS}
        return {k: f"{v:.{FILE_DIGITS}g}" if isinstance(v, float) else "" if v is None else v for k, v in found.items()}


class GMeans(Kind):
    """G-means and seconds over folds, at parameters chosen within the first training part."""

    kind: Literal["g-mean"]
    accuracy: str = Field(description="The printed table of the G-means")
    times: str = Field(description="The printed table of the seconds")
    figures: str = Field(description="The printed figures of the training and of the test G-means")
    systems: dict[str, SampledSystem]
    datasets: dict[str, DataSet]
    protocol: ChosenOnce = Field(default_factory=ChosenOnce)
    choice_rows: int | None = Field(
        default=None, ge=10, description="Parameters are chosen on so many rows of the first training part at most"
    )
    targets: list[Target] = Field(default=[], description="Or a CSV beside this file with these columns")

    @model_validator(mode="after")
    def _accepted(self) -> "GMeans":
        for system in self.systems.values():
            system.all_points()
        for target in self.targets:
            for what, name, known in (
                ("data set", target.dataset, self.datasets), ("system", target.system, self.systems),
            ):  # fmt: skip
                if name not in known:
                    raise unknown(f"{what} of a target", name, known)
        return self

    def tasks(self, versions: Mapping[str, Version]) -> Iterator[tuple[Key, Task]]:
        """Yield every fold of every system on the data sets that are present."""

        def more(dataset: str, system: str) -> Task:
            about = self.systems[system]
            return {"points": about.all_points(), "rule": about.rule, "choice_rows": self.choice_rows}

        return fold_tasks(self.protocol, self.datasets, self.systems, versions, more)

    @staticmethod
    def run(task: Task) -> Result:
        """Return the G-means at the chosen point of the grid, and the seconds of its fit and of scoring both parts."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a fixed number of rounds, whatever they have reached
            chosen = _chosen_once(json.dumps(task | {"repeat": 0, "fold": 0}))
            train, test = parts(task)
            start = time.perf_counter()
            model = _fit(task, chosen, train)
            found = {"train": _g_mean(task, model, train), "test": _g_mean(task, model, test)}
        return found | {"seconds": time.perf_counter() - start, "chosen": chosen}

    def sections(self, name: str, results: Results) -> list[Section]:
        """Return the table of G-means, that of seconds, and the figures."""
        cells = self.cells(results)
        heads = ["Data set", *self.systems]
        words = (
            f"Mean G-mean in per cent over {self.protocol.repeats} x {self.protocol.folds} folds, training / test. Parameters: "
            f"chosen by {self.protocol.inner_folds} folds of the first training part."
        )
        accuracy = Section(
            f"{self.accuracy}: {self.title}",
            [words, *self._counted(cells)],
            heads,
            self._rows(cells, ("train", "test")),
        )
        again = "Fit, sampling included, and scoring of both parts: the median fold here, on one core, beside the paper's mean."
        times = Section(f"{self.times}: {self.title}, seconds", [again], heads, self._rows(cells, ("seconds",)))
        return [
            accuracy,
            times,
            Section(self.figures, drawings=[self._drawn(name, cells, m) for m in ("train", "test")]),
        ]

    def files(self, name: str, results: Results) -> dict[str, bytes]:
        """Return the cells as CSV."""
        stream = io.StringIO()
        writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(cell.row() for cell in self.cells(results))
        return {f"{name}.csv": stream.getvalue().encode()}

    def tally(self, results: Results) -> dict[str, Any]:
        """Return how often each system is at least as good as printed, and where it is not."""
        cells = self.cells(results)
        found = {}
        for system in self.systems:
            tests = [c for c in cells if (c.system, c.measure) == (system, "test") and c.difference is not None]
            if tests:
                below = [
                    {"dataset": c.dataset, "paper": c.paper, "here": c.here, "best_here": _best(cells, c.dataset)}
                    for c in tests
                    if not c.reached
                ]
                found[system] = {"compared": len(tests), "at_least_the_papers": len(tests) - len(below), "below": below}
        return found

    def cells(self, results: Results) -> list[Cell]:
        """Return the cells in the order of the configuration, whether they were run or not."""
        printed = {(t.dataset, t.system, t.measure): t.value for t in self.targets}
        cells = []
        for dataset, (system, about) in itertools.product(self.datasets, self.systems.items()):
            runs = [r for key, r in results.items() if (key.dataset, key.system) == (dataset, system)]
            for measure in MEASURES:
                paper = printed.get((dataset, system, measure))
                if not runs:
                    cells.append(Cell(dataset, system, measure, paper))
                    continue
                values = np.array([run[measure] for run in runs]) * (1.0 if measure == "seconds" else 100.0)
                words = about.words(about.all_points()[runs[0]["chosen"]])
                deviation = float(values.std(ddof=1)) if len(values) > 1 else None
                # One fold may have waited for a compiler.
                here = float(np.median(values) if measure == "seconds" else values.mean())
                cells.append(Cell(dataset, system, measure, paper, here, deviation, words))
        return cells

    def _rows(self, cells: list[Cell], measures: tuple[Measure, ...]) -> list[tuple[str, list[Entry]]]:
        by_place = {(c.dataset, c.system, c.measure): c for c in cells}
        return [
            (dataset, [_entry([by_place[dataset, system, m] for m in measures]) for system in self.systems])
            for dataset in self.datasets
        ]

    def _counted(self, cells: list[Cell]) -> Iterator[str]:
        """Yield what the test G-means come to, system by system, and who is best."""
        for system in self.systems:
            tests = [c for c in cells if (c.system, c.measure) == (system, "test") and c.difference is not None]
            below = [
                f"{c.dataset} (paper {c.paper:.1f}, here {c.here:.1f}, best here {_best(cells, c.dataset):.1f})"
                for c in tests
                if not c.reached
            ]
            if tests:
                rest = f" Below it: {'; '.join(below)}." if below else ""
                yield f"{system}: test G-mean at least the paper's on {len(tests) - len(below)} of {len(tests)} data sets.{rest}"
        wins = [max(of_set, key=lambda c: c.here or 0.0).system for of_set in _tests_by_set(cells)]
        if wins:
            counts = ", ".join(f"{system} on {wins.count(system)}" for system in self.systems if system in wins)
            yield f"Highest test G-mean here: {counts}."

    def _drawn(self, name: str, cells: list[Cell], measure: Measure) -> Drawing:
        curves = []
        for system in self.systems:
            there = [(i, c.here) for i, c in enumerate(_of(cells, system, measure), start=1) if c.here is not None]
            if there:
                x, y = np.array(there).T
                curves.append(Curve(system, x, y))
        what = {"train": "Training", "test": "Test"}[measure]
        words = f"{what} G-mean of each system on each data set."
        plot = lines(curves, xlabel="Data set, in the order of the table", ylabel=f"{what} G-mean, %")
        return drawing(f"{name}-{measure}", f"{what} G-mean", "", words, plot)


def _of(cells: list[Cell], system: str, measure: Measure) -> list[Cell]:
    return [c for c in cells if (c.system, c.measure) == (system, measure)]


def _tests_by_set(cells: list[Cell]) -> list[list[Cell]]:
    """Return the test G-means of each data set that was run."""
    tests = [c for c in cells if c.measure == "test" and c.here is not None]
    return [list(of_set) for _, of_set in itertools.groupby(tests, key=lambda c: c.dataset)]


def _best(cells: list[Cell], dataset: str) -> float:
    return max(c.here for c in cells if (c.dataset, c.measure) == (dataset, "test") and c.here is not None)


def _entry(cells: list[Cell]) -> Entry:
    """Return the cells of one place, in which the last one says whether the figure is reached."""
    last = cells[-1]
    if last.here is None:
        return Entry(NOT_RUN)
    digits = 3 if last.measure == "seconds" else 1
    here = " / ".join(f"{c.here:.{digits}f}" for c in cells)
    if last.difference is None:
        return Entry(here, (last.chosen,))
    paper = "paper " + " / ".join("-" if c.paper is None else f"{c.paper:g}" for c in cells)
    return Entry(here, (paper, f"{last.difference:+.{digits}f}", last.chosen), "better" if last.reached else "miss")


@functools.lru_cache(maxsize=64)
def _chosen_once(first: str) -> int:
    """Return the point of the grid with the highest mean G-mean over folds of the first training part."""
    task = json.loads(first)
    points, protocol = task["points"], task["protocol"]
    if len(points) == 1:
        return 0
    train, _ = parts(task)
    train = train.take(np.arange(train.n_samples)[: task["choice_rows"]])  # they are in a random order
    fold = fold_numbers(train.row_id, train.y, protocol["inner_folds"], block_seed(protocol["seed"], 0, 2))
    means = np.zeros(len(points))
    for number in range(protocol["inner_folds"]):
        inner, held_out = train.take(fold != number), train.take(fold == number)
        means += [_g_mean(task, _fit(task, i, inner), held_out) for i in range(len(points))]
    return int(np.argmax(means))


def _fit(task: Task, i: int, train: Block) -> Any:
    point = dict(task["points"][i])
    if "sampler" in point:
        point["sampler"] = SAMPLERS[point["sampler"]](
            block_seed(task["protocol"]["seed"], task["repeat"], 100 + task["fold"]) % 2**31
        )
    return fitted(task, point, train)


def _g_mean(task: Task, model: Any, block: Block) -> float:
    scores = model.decision_function(block.X)
    if task["rule"] == "zero":
        scores = scores + model.margin_threshold_
    return float(g_mean_score(block.y, np.where(scores > 0, 1, -1)))

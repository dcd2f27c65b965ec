"""The kind `g-mean`: G-means and seconds of systems that may sample the rows first, compared with printed figures."""

import itertools
import time
import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from pydantic import Field, model_validator
from sklearn.svm import SVC

from aucdist.data.block import Block
from aucdist.engine.blocks import block_seed
from aucdist.metrics import g_mean_score
from aucdist.sampling import MWMOTE, DistanceUnderSampler
from flows.config.base import Strict
from flows.reproduce.kind import NOT_RUN, DataSet, Result, Results, Task, check_names, csv_bytes, results_of
from flows.reproduce.page import Curve, Figure, PageSection, TableCell, line_plot, page_figure
from flows.reproduce.protocol import Folds, Grid, Params, ProtocolKind, System, choose_once, fit_on_fold, train_and_test
from flows.reproduce.rankings import is_ahead, rankings

Measure = Literal["train", "test", "seconds"]
MEASURES: tuple[Measure, ...] = ("train", "test", "seconds")

SAMPLERS: dict[str, Callable[[int], Any]] = {
    "none": lambda seed: None,
    "u": lambda seed: DistanceUnderSampler(random_state=seed),
    "u-svc": lambda seed: DistanceUnderSampler(svm=SVC(C=10.0, class_weight="balanced"), random_state=seed),
    "mwmote": lambda seed: MWMOTE(random_state=seed),
}
"""The samplers of the YAML: none; U1 or U2 with the default hyperplane or that of a Gaussian SVM; MWMOTE."""


class Target(Strict):
    """A printed figure: a G-mean in per cent, or seconds."""

    dataset: str
    system: str
    measure: Measure
    value: float


class Claim(Strict):
    """A statement of the paper: one system is ahead of others."""

    text: str
    system: str
    than: list[str] = Field(min_length=1)
    measures: list[Measure] = Field(min_length=1)


class SampledSystem(System):
    """A system, its samplers and its grid."""

    samplers: list[str] = Field(
        default=[], description="Each with every point of the grid; only for MarginMeanClassifier"
    )
    grid: Grid = Field(default={}, description="Parameters to choose from")
    rule: Literal["zero", "predict"] = Field(
        default="predict",
        description="`zero`: the sign of the margin, as in the paper. `predict`: the threshold of the estimator",
    )

    @model_validator(mode="after")
    def _check_samplers(self) -> "SampledSystem":
        check_names("sampler", self.samplers, SAMPLERS)
        return self

    def all_points(self) -> list[Params]:
        """Return the points of the grid, each with the name of each sampler."""
        points = self.grid_points(self.grid)
        return [point | {"sampler": name} for name in self.samplers for point in points] if self.samplers else points

    def point_text(self, point: Params) -> str:
        """Return the parameters of a point that the grid varies."""
        varied = [f"{name} {point[name]:g}" for name in self.grid]
        return ", ".join([point["sampler"], *varied] if len(self.samplers) > 1 else varied)


class ChosenOnce(Folds):
    """Cross-validation; folds of the first training part choose the parameters for all folds."""

    inner_folds: int = Field(default=3, ge=2)


@dataclass(frozen=True)
class GMeanResult:
    """A system on a data set: the mean over the folds (of seconds the median), its deviation, the printed figure; or None."""

    dataset: str
    system: str
    measure: Measure
    paper: float | None = None
    here: float | None = None
    deviation: float | None = None
    chosen: str = ""

    @property
    def difference(self) -> float | None:
        """Our figure minus the paper's."""
        return None if self.here is None or self.paper is None else self.here - self.paper

    @property
    def reached(self) -> bool:
        """Whether our figure is at least as good as the printed one; False where one of them is missing."""
        if self.difference is None:
            return False
        return self.difference <= 0 if self.measure == "seconds" else self.difference >= 0


COLUMNS = ("dataset", "system", "measure", "paper", "here", "deviation", "difference", "chosen")


class GMeans(ProtocolKind):
    """G-means and seconds over folds, at parameters chosen within the first training part."""

    kind: Literal["g-mean"]
    accuracy: str = Field(description="The printed table of the G-means")
    times: str = Field(description="The printed table of the seconds")
    figures: str = Field(description="The printed figures of the training and of the test G-means")
    systems: dict[str, SampledSystem]
    datasets: dict[str, DataSet]
    protocol: ChosenOnce = Field(default_factory=ChosenOnce)
    choice_rows: int | None = Field(
        default=None, ge=10, description="At most so many rows of the first training part choose the parameters"
    )
    targets: list[Target] = Field(default=[], description="Or a CSV beside this file with these columns")
    claims: list[Claim] = Field(default=[], description="Statements of the paper; the page counts where they hold")

    @model_validator(mode="after")
    def _check_names(self) -> "GMeans":
        for system in self.systems.values():
            system.all_points()
        check_names("data set of a target", (target.dataset for target in self.targets), self.datasets)
        check_names("system of a target", (target.system for target in self.targets), self.systems)
        check_names(
            "system of a claim", (s for claim in self.claims for s in (claim.system, *claim.than)), self.systems
        )
        return self

    def tasks_of_systems(self, dataset: str) -> dict[str, Task]:
        """Return estimator, points and rule of each system."""
        return {
            name: {
                "estimator": system.model.estimator, "points": system.all_points(), "rule": system.rule,
                "choice_rows": self.choice_rows,
            }
            for name, system in self.systems.items()
        }  # fmt: skip

    @staticmethod
    def run_task(task: Task) -> Result:
        """Return the G-means at the chosen point of the grid, and the seconds of its fit and of scoring both parts."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the solvers stop after a fixed number of rounds, converged or not
            chosen = choose_once(task, _g_mean_of_point)
            train, test = train_and_test(task)
            start = time.perf_counter()
            model = _fit(task, task["points"][chosen], train)
            scores = {"train": _g_mean(task, model, train), "test": _g_mean(task, model, test)}
        return scores | {"seconds": time.perf_counter() - start, "chosen": chosen}

    def page_sections(self, name: str, results: Results) -> list[PageSection]:
        """Return the table of G-means, the table of seconds, and the figures."""
        cells = self.cells(results)
        columns = ["Data set", *self.systems]
        about_accuracy = (
            f"Mean G-mean in per cent over {self.protocol.repeats} x {self.protocol.folds} folds, training / test. Parameters: "
            f"chosen by {self.protocol.inner_folds} folds of the first training part."
        )
        about_seconds = (
            "Seconds of the fit, sampling included, and of scoring both parts: the median over the folds on one core, beside "
            "the paper's mean."
        )
        return [
            PageSection(
                f"{self.accuracy}: {self.title}", [about_accuracy], columns, self._table_rows(cells, ("train", "test"))
            ),
            PageSection(
                f"{self.times}: {self.title}, seconds", [about_seconds], columns, self._table_rows(cells, ("seconds",))
            ),
            PageSection(self.figures, figures=[self._figure(name, cells, measure) for measure in ("train", "test")]),
        ]

    def csv_files(self, name: str, results: Results) -> dict[str, bytes]:
        """Return the cells."""
        rows = [asdict(cell) | {"difference": cell.difference} for cell in self.cells(results)]
        return {f"{name}.csv": csv_bytes(COLUMNS, rows)}

    def summary(self, results: Results) -> dict[str, Any]:
        """Return where each system reaches the print, mean ranks, best systems, and where each claim holds."""
        cells = self.cells(results)
        return {
            "against_print": self._print_counts(cells),
            "in_this_run": rankings(values_by_dataset(cells, "test", self.systems), higher_is_better=True),
            "claims": {claim.text: count_leads(claim, cells) for claim in self.claims},
        }

    def cells(self, results: Results) -> list[GMeanResult]:
        """Return the cells in the order of the configuration, whether they were run or not."""
        printed = {(t.dataset, t.system, t.measure): t.value for t in self.targets}
        cells = []
        for dataset, (system, settings) in itertools.product(self.datasets, self.systems.items()):
            runs = results_of(results, dataset, system)
            for measure in MEASURES:
                paper = printed.get((dataset, system, measure))
                if not runs:
                    cells.append(GMeanResult(dataset, system, measure, paper))
                    continue
                values = np.array([run[measure] for run in runs]) * (1.0 if measure == "seconds" else 100.0)
                chosen = settings.point_text(settings.all_points()[runs[0]["chosen"]])
                deviation = float(values.std(ddof=1)) if len(values) > 1 else None
                # The first fold may include the compilation of kernels, so the median stands for the seconds.
                here = float(np.median(values) if measure == "seconds" else values.mean())
                cells.append(GMeanResult(dataset, system, measure, paper, here, deviation, chosen))
        return cells

    def _table_rows(self, cells: list[GMeanResult], measures: tuple[Measure, ...]) -> list[tuple[str, list[TableCell]]]:
        by_key = {(c.dataset, c.system, c.measure): c for c in cells}
        return [
            (dataset, [_table_cell([by_key[dataset, system, m] for m in measures]) for system in self.systems])
            for dataset in self.datasets
        ]

    def _print_counts(self, cells: list[GMeanResult]) -> dict[str, dict[str, Any]]:
        """Return, for each system with printed test G-means, how many it reaches and the cells below the print."""
        counts = {}
        for system in self.systems:
            compared = [c for c in cells if (c.system, c.measure) == (system, "test") and c.difference is not None]
            if compared:
                below = [
                    {"dataset": c.dataset, "paper": c.paper, "here": c.here, "best_here": best_here(cells, c.dataset)}
                    for c in compared
                    if not c.reached
                ]
                counts[system] = {
                    "compared": len(compared), "at_least_the_papers": len(compared) - len(below), "below": below,
                }  # fmt: skip
        return counts

    def _figure(self, name: str, cells: list[GMeanResult], measure: Measure) -> Figure:
        curves = []
        for system in self.systems:
            of_system = [c for c in cells if (c.system, c.measure) == (system, measure)]
            points = [(i, c.here) for i, c in enumerate(of_system, start=1) if c.here is not None]
            if points:
                x, y = np.array(points).T
                curves.append(Curve(system, x, y))
        part = {"train": "Training", "test": "Test"}[measure]
        description = f"{part} G-mean of each system on each data set."
        plot = line_plot(curves, xlabel="Data set, in the order of the table", ylabel=f"{part} G-mean, %")
        return page_figure(f"{name}-{measure}", f"{part} G-mean", "", description, plot)


def count_leads(claim: Claim, cells: Sequence[GMeanResult]) -> dict[str, str]:
    """Return, for each measure and rival, on how many data sets the claim holds, here and in print; a tie is no lead."""
    counts = {}
    for measure, rival in itertools.product(claim.measures, claim.than):
        texts = []
        for source, where in (("here", "here"), ("paper", "in print")):
            pairs = values_by_dataset(cells, measure, (claim.system, rival), source)
            higher = measure != "seconds"
            ahead = sum(is_ahead(values[claim.system], values[rival], higher_is_better=higher) for values in pairs)
            texts += [f"{ahead} of {len(pairs)} {where}"] if pairs else []
        counts[f"{measure}, {rival}"] = ", ".join(texts) or NOT_RUN
    return counts


def values_by_dataset(
    cells: Sequence[GMeanResult], measure: Measure, systems: Collection[str], source: str = "here"
) -> list[dict[str, float]]:
    """Return the values of the systems, `here` or in the `paper`, on each data set for which all of them have one."""
    by_dataset: dict[str, dict[str, float]] = {}
    for cell in cells:
        value = getattr(cell, source)
        if cell.measure == measure and cell.system in systems and value is not None:
            by_dataset.setdefault(cell.dataset, {})[cell.system] = value
    return [values for values in by_dataset.values() if len(values) == len(systems)]


def best_here(cells: Sequence[GMeanResult], dataset: str) -> float:
    """Return the highest test G-mean of any system on a data set."""
    return max(c.here for c in cells if (c.dataset, c.measure) == (dataset, "test") and c.here is not None)


def _table_cell(cells: list[GMeanResult]) -> TableCell:
    """Return the figures of one system on one data set; the last one decides the highlight."""
    last = cells[-1]
    if last.here is None:
        return TableCell(NOT_RUN)
    digits = 3 if last.measure == "seconds" else 1
    here = " / ".join(f"{c.here:.{digits}f}" for c in cells)
    if last.difference is None:
        return TableCell(here, (last.chosen,))
    paper = "paper " + " / ".join("-" if c.paper is None else f"{c.paper:g}" for c in cells)
    details = (paper, f"{last.difference:+.{digits}f}", last.chosen)
    return TableCell(here, details, "better" if last.reached else "miss")


def _g_mean_of_point(task: Task, point: Params, train: Block, validation: Block) -> float:
    return _g_mean(task, _fit(task, point, train), validation)


def _fit(task: Task, point: Params, train: Block) -> Any:
    if "sampler" in point:
        seed = block_seed(task["protocol"]["seed"], task["repeat"], 100 + task["fold"]) % 2**31
        point = point | {"sampler": SAMPLERS[point["sampler"]](seed)}
    return fit_on_fold(task, point, train)


def _g_mean(task: Task, model: Any, block: Block) -> float:
    scores = model.decision_function(block.X)
    if task["rule"] == "zero":
        scores = scores + model.margin_threshold_
    return float(g_mean_score(block.y, np.where(scores > 0, 1, -1)))

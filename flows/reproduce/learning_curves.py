"""The kind `course`: how AUC and objective go on while the systems take their steps, all at the same lam."""

import time
import warnings
from collections.abc import Iterator, Mapping
from typing import Literal

import numpy as np
from pydantic import Field, model_validator

from aucdist.data.block import Block
from aucdist.engine.blocks import LocalBlocks
from aucdist.report.table import figure
from aucdist.solvers.base import solve
from aucdist.solvers.pairs.all_pairs import all_pairs
from aucdist.solvers.pairs.objective import pairwise_objective
from flows.reproduce.datasets import DataSet, Version
from flows.reproduce.folds import Folds, System, area, fitted, fold_tasks, parts
from flows.reproduce.kind import Key, Kind, Result, Results, Task
from flows.reproduce.lines import Curve, drawing, lines
from flows.reproduce.page import Drawing, Section

OPTIMUM_GAP = 1e-4


class CourseSet(DataSet):
    """A data set with its lam."""

    lam: float = Field(gt=0, description="The lam of every system")


class CourseSystem(System):
    """A system that can be stopped on its way."""

    steps: str | None = Field(
        default=None, description="The parameter that limits the steps; without it rows arrive one by one"
    )


class LearningCurves(Kind):
    """Test AUC and training objective after every so many steps."""

    kind: Literal["course"]
    systems: dict[str, CourseSystem]
    datasets: dict[str, CourseSet]
    protocol: Folds = Field(default_factory=Folds)
    every: int = Field(default=100, ge=1, description="Steps between two points")
    until: int = Field(default=5000, ge=1, description="Last step")

    @model_validator(mode="after")
    def _accepted(self) -> "LearningCurves":
        for system in self.systems.values():
            # Of the first rows alone, `n_pairs` says how many pairs all of them make.
            system.points({"lam": [1.0], system.steps or "n_pairs": [self.every]})
        return self

    def tasks(self, versions: Mapping[str, Version]) -> Iterator[tuple[Key, Task]]:
        """Yield every fold of every system on the data sets that are present."""

        def more(dataset: str, name: str) -> Task:
            system = self.systems[name]
            points = system.points({"lam": [self.datasets[dataset].lam]})
            return {"points": points, "steps": system.steps, "every": self.every, "until": self.until}

        return fold_tasks(self.protocol, self.datasets, self.systems, versions, more)

    @staticmethod
    def run(task: Task) -> Result:
        """Return test AUC and training objective after every so many steps, and the least objective there is."""
        start = time.perf_counter()
        train, test = parts(task)
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # the papers' solvers stop after a number of steps whatever they have reached
            found = _course(task, train, test)
        return found | {"seconds": time.perf_counter() - start}

    def sections(self, name: str, results: Results) -> list[Section]:
        """Return two figures for each data set: 1 - AUC, and the objective above the least one."""
        drawings = [d for dataset in self.datasets for d in self._drawn(name, dataset, results)]
        return [Section(self.title, drawings=drawings)]

    def _drawn(self, name: str, dataset: str, results: Results) -> Iterator[Drawing]:
        areas, objectives = [], []
        for system in self.systems:
            runs = [r for key, r in results.items() if (key.dataset, key.system) == (dataset, system)]
            if runs:
                steps = np.array(runs[0]["steps"], dtype=float)
                areas.append(Curve(system, steps, 1 - np.mean([r["auc"] for r in runs], axis=0)))
                excess = [np.array(r["objective"], dtype=float) / r["optimum"]["primal"] - 1 for r in runs]
                objectives.append(Curve(system, steps, np.mean(excess, axis=0)))
        lam = f"lam {figure(self.datasets[dataset].lam)}"
        for curves, what, label in (
            (areas, "auc", "1 - AUC"),
            (objectives, "objective", "Relative function value difference"),
        ):
            if curves:
                plot = lines(curves, xlabel="Steps", ylabel=label, log_y=True)
                words = f"{label} of each system on {dataset} against its steps, {lam}."
                yield drawing(f"{name}-{dataset}-{what}", f"{dataset}: {label}", lam, words, plot)


def _course(task: Task, train: Block, test: Block) -> Result:
    point, blocks = task["points"][0], LocalBlocks([train])
    steps = list(range(task["every"], task["until"] + 1, task["every"]))
    areas, objectives = [], []
    for limit in steps:
        if task["steps"] is None:
            model = fitted(task, point | {"n_pairs": blocks.n_pos * blocks.n_neg}, _arrived(train, limit))
        else:
            model = fitted(task, point | {task["steps"]: limit}, train)
        areas.append(area(model, test))
        objectives.append(pairwise_objective(blocks, model.coef_[0], point["lam"]))
    optimum = solve(all_pairs(blocks, point["lam"]), tol=OPTIMUM_GAP, max_passes=5000).certificate
    return {"steps": steps, "auc": areas, "objective": objectives, "optimum": optimum.as_dict()}


def _arrived(train: Block, n_pairs: int) -> Block:
    """Return as many of the first rows as make at most so many pairs, but at least one."""
    pairs = np.cumsum(train.y > 0) * np.cumsum(train.y < 0)
    n = max(int(np.searchsorted(pairs, n_pairs, side="right")), int(np.argmax(pairs > 0)) + 1)
    return train.take(np.arange(n))

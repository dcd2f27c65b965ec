"""The kind `learning-curves`: test AUC and training objective after every so many steps, with the same lam for all systems."""

import time
import warnings
from collections.abc import Iterator
from typing import Literal

import numpy as np
from pydantic import Field, model_validator

from aucdist.data.block import Block
from aucdist.engine.blocks import LocalBlocks
from aucdist.report.text import number_text
from aucdist.solvers.base import solve
from aucdist.solvers.pairs.cutting_planes import AllPairs
from aucdist.solvers.pairs.objective import pairwise_objective
from flows.reproduce.kind import DataSet, Result, Results, Task, results_of
from flows.reproduce.page import Curve, Figure, PageSection, Report, line_figure
from flows.reproduce.protocol import Folds, ProtocolKind, System, auc_on, fit_on_fold, train_and_test

OPTIMUM_GAP = 1e-4
"""The relative gap to which the minimum of the objective is computed."""


class LearningCurveDataSet(DataSet):
    """A data set with its lam."""

    lam: float = Field(gt=0, description="The lam of every system")


class LearningCurveSystem(System):
    """A system that can be stopped after any number of steps."""

    steps: str | None = Field(
        default=None, description="The parameter that limits the steps; without it, rows arrive one by one"
    )


class LearningCurves(ProtocolKind):
    """Learning curves of systems on data sets."""

    kind: Literal["learning-curves"]
    systems: dict[str, LearningCurveSystem]
    datasets: dict[str, LearningCurveDataSet]
    protocol: Folds = Field(default_factory=Folds)
    every: int = Field(default=100, ge=1, description="Steps between two points")
    until: int = Field(default=5000, ge=1, description="Last step")

    @model_validator(mode="after")
    def _check_systems(self) -> "LearningCurves":
        for system in self.systems.values():
            # With the first rows alone, `n_pairs` states how many pairs all rows make.
            system.grid_points({"lam": [1.0], system.steps or "solver__n_pairs": [self.every]})
        return self

    def tasks_of_systems(self, dataset: str) -> dict[str, Task]:
        """Return estimator, parameters and steps of each system."""
        lam = {"lam": [self.datasets[dataset].lam]}
        return {
            name: {
                "estimator": system.model.estimator, "points": system.grid_points(lam), "steps": system.steps,
                "every": self.every, "until": self.until,
            }
            for name, system in self.systems.items()
        }  # fmt: skip

    @staticmethod
    def run_task(task: Task) -> Result:
        """Return test AUC and training objective after every so many steps, and the certificate of the minimum."""
        start = time.perf_counter()
        train, test = train_and_test(task)
        with warnings.catch_warnings():
            # The papers' solvers stop after a fixed number of steps, converged or not.
            warnings.simplefilter("ignore")
            curve = _learning_curve(task, train, test)
        return curve | {"seconds": time.perf_counter() - start}

    def report(self, name: str, results: Results) -> Report:
        """Return two figures for each data set: 1 - AUC, and the relative excess of the objective over its minimum."""
        figures = [figure for dataset in self.datasets for figure in self._figures(name, dataset, results)]
        return Report([PageSection(self.title, figures=figures)])

    def _figures(self, name: str, dataset: str, results: Results) -> Iterator[Figure]:
        errors, objectives = [], []
        for system in self.systems:
            runs = results_of(results, dataset, system)
            if runs:
                steps = np.array(runs[0]["steps"], dtype=float)
                errors.append(Curve(system, steps, 1 - np.mean([run["auc"] for run in runs], axis=0)))
                excess = [np.array(run["objective"], dtype=float) / run["optimum"]["primal"] - 1 for run in runs]
                objectives.append(Curve(system, steps, np.mean(excess, axis=0)))
        lam = f"lam {number_text(self.datasets[dataset].lam)}"
        for curves, quantity, label in (
            (errors, "auc", "1 - AUC"), (objectives, "objective", "Relative function value difference"),
        ):  # fmt: skip
            if curves:
                yield line_figure(
                    f"{name}-{dataset}-{quantity}", f"{dataset}: {label}", curves, xlabel="Steps", ylabel=label,
                    caption=lam, log_y=True,
                )  # fmt: skip


def _learning_curve(task: Task, train: Block, test: Block) -> Result:
    point, blocks = task["points"][0], LocalBlocks([train])
    steps = list(range(task["every"], task["until"] + 1, task["every"]))
    areas, objectives = [], []
    for limit in steps:
        if task["steps"] is None:
            rows = _first_rows(train, limit)
            model = fit_on_fold(task, point | {"solver__n_pairs": blocks.n_pos * blocks.n_neg}, rows)
        else:
            model = fit_on_fold(task, point | {task["steps"]: limit}, train)
        areas.append(auc_on(model, test))
        objectives.append(pairwise_objective(blocks, model.coef_[0], point["lam"]))
    optimum = solve(AllPairs().rounds(blocks, point["lam"]), tol=OPTIMUM_GAP, max_passes=5000).certificate
    return {"steps": steps, "auc": areas, "objective": objectives, "optimum": optimum.as_dict()}


def _first_rows(train: Block, n_pairs: int) -> Block:
    """Return the first rows, as many as make at most so many pairs, but enough for one pair."""
    pairs = np.cumsum(train.y > 0) * np.cumsum(train.y < 0)
    n = max(int(np.searchsorted(pairs, n_pairs, side="right")), int(np.argmax(pairs > 0)) + 1)
    return train.take(np.arange(n))

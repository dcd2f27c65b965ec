"""Two kinds of experiments that draw curves.

`learning-curves` draws AUC and objective against steps. `descent` draws the objective against sweeps and time.
"""

import functools
import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy import ndarray
from pydantic import Field

from aucdist.data.block import Block
from aucdist.engine.blocks import LocalBlocks
from aucdist.errors import Json, RunError
from aucdist.estimators import ESTIMATORS
from aucdist.pairs.cutting_planes import AllPairs
from aucdist.pairs.penalty import L1
from aucdist.pairs.problem import pairwise_objective
from aucdist.solvers.base import solve
from aucdist.text import number_text
from flows.config.loading import AtLeastOne, Positive
from flows.reproduce import kind
from flows.reproduce.kind import (
    DataSet,
    ExperimentKind,
    ProtocolKind,
    RepeatedFolds,
    Result,
    Results,
    Scale,
    System,
    Task,
    TaskKey,
    Tasks,
    Versions,
    auc_on,
    by_system,
    fit_on_fold,
    fit_scaling,
    n_ahead,
    read_dataset,
    results_of,
    train_and_test,
)
from flows.reproduce.page import Curve, ExperimentReport, Figure

# ---- learning curves -------------------------------------------------------------------------------------------------

OPTIMUM_GAP = 1e-4
"""The relative gap to which the minimum of the objective is computed."""

REFERENCE = "reference"
MIN_SHOWN = 1e-7
"""Smaller excesses of the objective are drawn at this value, because the axis is logarithmic."""
CURVE_FIGURES = ("eta", "sweeps", "seconds", "excess", "zeros")
CURVE_COLUMNS = ("dataset", "system", *CURVE_FIGURES)
"""The columns of the CSV: when the goal was reached, if it was, and the final state."""
NEVER = 1e6
"""A number that is larger than any number of sweeps or seconds. Systems that do not reach the goal are compared by their final
excess."""


class LearningCurveDataSet(DataSet):
    """A data set with its lam."""

    lam: Positive
    """The regularisation strength of every system."""


class LearningCurveSystem(System):
    """A system that can be stopped after any number of steps."""

    steps: str | None = None
    """The parameter that limits the steps. Without it, rows arrive one by one."""


class LearningCurves(ProtocolKind):
    """Learning curves of systems on data sets."""

    kind: Literal["learning-curves"]
    systems: dict[str, LearningCurveSystem]
    datasets: dict[str, LearningCurveDataSet]
    protocol: RepeatedFolds = Field(default_factory=RepeatedFolds)
    every: AtLeastOne = 100
    """The number of steps between two points of the curve."""
    until: AtLeastOne = 5000
    """The last step."""

    def task_of(self, dataset: str, system: LearningCurveSystem) -> Task:
        """Return estimator, parameters and steps of a system."""
        points = system.points({"lam": [self.datasets[dataset].lam]})
        task = {"estimator": system.model.estimator, "points": points, "steps": system.steps}
        return task | {"every": self.every, "until": self.until}

    @staticmethod
    def run_task(task: Task) -> Result:
        """Return the test AUC and the training objective after fixed numbers of steps, and the certificate of the minimum."""
        (train, test), point = train_and_test(task), task["points"][0]
        blocks, steps = LocalBlocks([train]), list(range(task["every"], task["until"] + 1, task["every"]))
        areas, objectives = [], []
        for limit in steps:
            if task["steps"] is None:
                # The fit uses the first rows, which form at most `limit` pairs. `n_pairs` is the number of pairs of all rows.
                pairs = np.cumsum(train.y > 0) * np.cumsum(train.y < 0)
                n = max(
                    int(np.searchsorted(pairs, limit, side="right")), int(np.argmax(pairs > 0)) + 1
                )  # there is at least one pair
                rows, limits = train.take(np.arange(n)), {"solver__n_pairs": blocks.n_pos * blocks.n_neg}
            else:
                rows, limits = train, {task["steps"]: limit}
            model = fit_on_fold(task, point | limits, rows)
            areas.append(auc_on(model, test))
            objectives.append(pairwise_objective(blocks, model.coef_[0], point["lam"]))
        optimum = solve(AllPairs().rounds(blocks, point["lam"]), tol=OPTIMUM_GAP, max_passes=5000).certificate
        return {"steps": steps, "auc": areas, "objective": objectives, "optimum": optimum.as_dict()}

    def report(self, results: Results) -> ExperimentReport:
        """Return two figures for each data set: 1 - AUC, and the relative excess of the objective over its minimum."""
        plots = {
            "1 - AUC": lambda run: 1 - np.array(run["auc"]),
            "Relative function value difference": lambda run: np.array(run["objective"]) / run["optimum"]["primal"] - 1,
        }
        figures = []
        for dataset, (ylabel, values) in itertools.product(self.datasets, plots.items()):
            runs = {system: fits for system in self.systems if (fits := results_of(results, dataset, system))}
            curves = [
                Curve(system, np.array(fits[0]["steps"], dtype=float), np.mean([values(run) for run in fits], axis=0))
                for system, fits in runs.items()
            ]
            if curves:
                lam = f"lam {number_text(self.datasets[dataset].lam)}"
                figures.append(Figure(f"{dataset}: {ylabel}", curves, "Steps", ylabel, lam, log_y=True))
        return ExperimentReport(self.title, figures=figures)


# ---- descent ---------------------------------------------------------------------------------------------------------


class DescentDataSet(DataSet):
    """A data set, all rows of which are training rows."""

    scale: Scale = "none"


class DescentSystem(System):
    """A system, and the grid of its step sizes. The one with the lowest final objective for seed 0 is chosen."""

    relative_radius: bool = False
    """Whether the parameter `radius` is in units of the L1 norm of the reference's weights."""


class GoalClaim(kind.Claim):
    """A claim that one system reaches the goal before others do."""

    rows: Literal["any", "fewer than features", "at least features"] = "any"
    """The data sets that the claim is about."""
    zeros_within: float | None = None
    """The final shares of zero weights also differ by at most this."""


class Descent(ExperimentKind):
    """The excess of the objective over the best known one, as a figure for each data set and axis, and the paper's claims."""

    kind: Literal["descent"]
    systems: dict[str, DescentSystem]
    datasets: dict[str, DescentDataSet]
    reference: System | Literal["linear programme"]
    """The system that gives the best known objective, unless another one reaches a lower objective. The programme is that
    of the L1 penalty."""
    lam: float | Literal["1/n"] = "1/n"
    """The regularisation strength of every system."""
    sweeps: AtLeastOne = 100
    """The number of rounds of each system."""
    seeds: AtLeastOne = 10
    """The number of runs of a random system. A deterministic one runs once."""
    goal: Positive = 1e-2
    """The relative excess at which the claims compare the systems."""
    claims: list[GoalClaim] = Field(default=[])

    def tasks(self, versions: Versions) -> Tasks:
        """Yield the reference, and each seed of each system, on the data sets that are present."""
        for name, version, data in self.present(versions):
            lam = 1.0 / version.n_samples if self.lam == "1/n" else self.lam
            common = data | {"scale": self.datasets[name].scale, "lam": lam}
            reference: Task = common | {"programme": True}
            if isinstance(self.reference, System):
                model = self.reference.model
                reference = common | {"estimator": model.estimator, "points": self.reference.points()}
            yield TaskKey(name, REFERENCE), reference
            for key, system in self.systems.items():
                system_task = {"estimator": system.model.estimator, "points": system.points(), "sweeps": self.sweeps}
                if system.relative_radius:
                    system_task["reference"] = reference
                for seed in range(self.seeds if system.model.built.resolved_solver.is_random else 1):
                    yield TaskKey(name, key, seed), common | system_task | {"seed": seed}

    @staticmethod
    def run_task(task: Task) -> Result:
        """Return objective, seconds and share of zeros after each sweep.

        For the reference, return its objective and the norm of its weights.
        """
        if "sweeps" not in task:
            return _fit_reference(json.dumps(task))
        chosen = _choose_point(json.dumps(task | {"seed": 0}))
        return _learning_curve(task, chosen) | {"chosen": chosen}

    def report(self, results: Results) -> ExperimentReport:
        """Return the table of sweeps and seconds until the goal, and the figures.

        The counts are the numbers of data sets on which each claim holds.
        """
        references = {n: fits[0] for n in self.datasets if (fits := results_of(results, n, REFERENCE))}
        ends: list[Json] = []
        figures: list[Figure] = []
        for dataset, reference in references.items():
            runs = {system: results_of(results, dataset, system) for system in self.systems}
            best = min(reference["primal"], *(min(run["objective"]) for fits in runs.values() for run in fits))
            goal = best * (1.0 + self.goal)
            for system, fits in runs.items():
                excess = _by_sweep(fits, "objective", self.sweeps) / best - 1.0
                at_goal = np.flatnonzero(excess.mean(axis=0) <= self.goal)
                eta, seconds = self.systems[system].points()[fits[0]["chosen"]].get("solver__eta"), None
                if all(min(run["objective"]) <= goal for run in fits):
                    seconds = np.median([r["seconds"][np.argmax(np.array(r["objective"]) <= goal)] for r in fits])
                cell = {
                    "eta": eta if isinstance(eta, int | float) else None,
                    "sweeps": at_goal[0] + 1 if len(at_goal) else None,
                    "seconds": seconds, "excess": excess[:, -1].mean(), "zeros": np.mean([run["zeros"][-1] for run in fits]),
                }  # fmt: skip
                ends.append({"dataset": dataset, "system": system} | cell)
            figures += self._figures(dataset, runs, reference, best)
        lines = pd.DataFrame(ends, columns=CURVE_COLUMNS).astype(dict.fromkeys(CURVE_FIGURES, float))
        reached = [f"{n:.0f} sweeps" if n > 0 else "not reached" for n in lines["sweeps"]]
        texts = "{reached}", "{seconds:.2g} s", "final {excess:.1e}", "zeros {zeros:.3f}", "eta {eta:g}"
        table = self.page_table("", lines.assign(reached=reached), *texts)
        shapes = {dataset: reference["shape"] for dataset, reference in references.items()}
        counts = {claim.text: count_holding(claim, lines, shapes) for claim in self.claims}
        return ExperimentReport(self.title, [table], figures, lines, counts)

    def _figures(self, dataset: str, runs: dict[str, list[Result]], reference: Result, best: float) -> Iterator[Figure]:
        sweeps, (n, d) = np.arange(1, self.sweeps + 1), reference["shape"]
        about = f"{n} x {d}, lam {reference['lam']:.3g}, best known {best:.6g}, no lower than {reference['dual']:.6g}"
        excess = "Relative excess over the best known"
        by_sweep = [
            _mean_curve(s, sweeps, _by_sweep(fits, "objective", self.sweeps) / best - 1.0) for s, fits in runs.items()
        ]
        by_second = [_mean_curve(s, *_excess_by_second(fits, best)) for s, fits in runs.items()]
        zeros = [_mean_curve(s, sweeps, _by_sweep(fits, "zeros", self.sweeps)) for s, fits in runs.items()]
        plots = [("sweeps", "Sweeps", excess, by_sweep), ("seconds", "Seconds", excess, by_second)]
        lasso = any(point.get("penalty") == "l1" for s in self.systems.values() for point in s.points())
        if lasso and any((curve.y > 0.0).any() for curve in zeros):
            plots.append(("zeros", "Sweeps", "Share of weights that are 0", zeros))
        for quantity, xlabel, ylabel, curves in plots:
            yield Figure(f"{dataset}: {quantity}", curves, xlabel, ylabel, about, log_x=True, log_y=quantity != "zeros")


def count_holding(claim: GoalClaim, lines: pd.DataFrame, shapes: Mapping[str, Any]) -> dict[str, int]:
    """Count the data sets on which a claim holds.

    The keys of the result are the number of data sets, and the numbers of those on which the system is ahead in sweeps, is
    ahead in seconds, and is as sparse.
    """
    names = [
        name
        for name, (n, d) in shapes.items()
        if claim.rows == "any" or (n < d) == (claim.rows == "fewer than features")
    ]
    lines = lines[lines["dataset"].isin(names)]
    systems, counts = (claim.system, *claim.than), {"data_sets": len(names)}
    for axis in ("sweeps", "seconds"):
        times = lines.assign(time=lines[axis].fillna(NEVER * (1.0 + lines["excess"])))
        counts[axis] = n_ahead(by_system(times, "time", systems), claim.system, claim.than, higher_is_better=False)
    if claim.zeros_within is not None:
        zeros = by_system(lines, "zeros", systems)
        distance = zeros[claim.than].sub(zeros[claim.system], axis=0).abs()
        counts["as_sparse"] = int((distance <= claim.zeros_within).all(axis=1).sum())
    return counts


# ---- the curves -----------------------------------------------------------------------------------------------------------


def _by_sweep(runs: list[Result], name: str, sweeps: int) -> ndarray:
    """Return a value of each run after each sweep. After a run has converged, its last value is repeated."""
    return np.array([np.pad(run[name], (0, sweeps - len(run[name])), mode="edge") for run in runs])


def _excess_by_second(runs: list[Result], best: float) -> tuple[ndarray, ndarray]:
    """Return times, and the relative excess of each run at these times.

    Before its first round, a run has the excess of this round.

    The times range from the median start to the median end of the runs, so that one slow run does not shorten the curves of the
    others.
    """
    first, last = (float(np.median([r["seconds"][k] for r in runs])) for k in (0, -1))
    times = np.geomspace(first, last, 60)
    rounds = [np.maximum(np.searchsorted(r["seconds"], times, side="right") - 1, 0) for r in runs]
    return times, np.array([np.array(r["objective"])[at] for r, at in zip(runs, rounds, strict=True)]) / best - 1.0


def _mean_curve(label: str, x: ndarray, values: ndarray) -> Curve:
    """Return the mean of the runs, with a band from the smallest to the largest."""
    values = np.maximum(values, MIN_SHOWN) if values.max() > 0.0 else values
    band = (values.min(axis=0), values.max(axis=0)) if len(values) > 1 else (None, None)
    return Curve(label, x, values.mean(axis=0), *band)


# ---- the tasks ------------------------------------------------------------------------------------------------------------


def _training_rows(task: Task) -> Block:
    data = read_dataset(task)
    return fit_scaling(data, task["scale"], data.block).transform(data.block)


@functools.lru_cache(maxsize=8)
def _fit_reference(reference_task: str) -> Result:
    task = json.loads(reference_task)
    train, lam = _training_rows(task), task["lam"]
    if "programme" in task:
        w, primal, dual = minimise_l1_hinge(train, lam)
    else:
        model = ESTIMATORS[task["estimator"]](random_state=0).set_params(**task["points"][0] | {"lam": lam})
        model.fit(LocalBlocks([train]))
        w, primal, dual = model.coef_[0], model.certificate_.primal, model.certificate_.dual
    reference = {"primal": primal, "dual": dual, "length": float(np.abs(w).sum())}
    return reference | {"lam": lam, "shape": [train.n_samples, train.n_features]}


@functools.lru_cache(maxsize=8)
def _choose_point(first_task: str) -> int:
    """Return the point of the grid with the lowest final objective."""
    task = json.loads(first_task)
    if len(task["points"]) == 1:
        return 0
    return int(np.argmin([min(_learning_curve(task, i)["objective"]) for i in range(len(task["points"]))]))


def _learning_curve(task: Task, i: int) -> Result:
    point, train = task["points"][i] | {"lam": task["lam"], "tol": 0.0}, _training_rows(task)
    model = ESTIMATORS[task["estimator"]](random_state=task["seed"]).set_params(**point)
    if "reference" in task:
        length = _fit_reference(json.dumps(task["reference"]))["length"]
        model.set_params(solver__radius=model.resolved_solver.radius * length)
    few_rows = train.take(np.append(np.flatnonzero(train.y > 0)[:9], np.flatnonzero(train.y < 0)[:9]))
    model.set_params(max_passes=4).fit(LocalBlocks([few_rows]))  # to compile the kernels
    # No solver takes more than two passes in a round.
    model.set_params(max_passes=2 * task["sweeps"]).fit(LocalBlocks([train]))
    history = model.history_.iloc[: task["sweeps"]]
    return {
        "objective": np.minimum.accumulate(history["primal"]).tolist(),
        "seconds": history["seconds"].tolist(),
        "zeros": history["zeros"].tolist(),
    }


def minimise_l1_hinge(block: Block, lam: float) -> tuple[ndarray, float, float]:
    """Minimise ``mean of max(0, 1 - y w.x) + lam |w|_1`` through its dual, with SciPy's HiGHS solver.

    The dual is ``max mean of a, subject to |mean of a y x|_inf <= lam and 0 <= a <= 1``. The weights are the dual values of
    its constraints, two for each feature. Ten thousand rows take seconds.

    Parameters
    ----------
    block : Block
        Rows of weight 1.
    lam : float
        The regularisation strength.

    Returns
    -------
    tuple (ndarray, float, float)
        The weights of shape (n_features,), float64; the objective at these weights; and the optimal value of the linear program,
        which is a lower bound up to the tolerances of HiGHS.

    Raises
    ------
    RunError
        If the linear program was not solved.
    """
    from scipy.optimize import linprog

    n, d = block.n_samples, block.n_features
    Z = sp.csr_array(sp.diags_array(block.y.astype(np.float64)) @ sp.csr_array(block.X))
    sums = sp.vstack([Z.T, -Z.T], format="csr") / n
    used = np.flatnonzero(np.diff(sums.indptr))  # features that are 0 in all rows give no constraints
    solution = linprog(np.full(n, -1.0 / n), sums[used], np.full(len(used), lam), bounds=(0.0, 1.0), method="highs")
    if solution.status != 0:
        raise RunError(f"the linear programme of {n} rows and {d} features was not solved: {solution.message}")
    prices = np.zeros(2 * d)
    prices[used] = -solution.ineqlin.marginals
    w = prices[:d] - prices[d:]
    primal = float(np.maximum(1.0 - Z @ w, 0.0).mean()) + L1(lam).value(w)
    return w, primal, -float(solution.fun)

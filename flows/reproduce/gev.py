"""Three kinds of experiments about the GEV link.

`links` draws the link, `shapes` estimates its shape parameter, and `optimisers` times its solvers.
"""

import itertools
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy import ndarray
from pydantic import Field

from aucdist.data.block import Block
from aucdist.engine.blocks import LocalBlocks
from aucdist.errors import Json
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.probability import log_loss
from aucdist.papers.gev.shape import map_shape
from aucdist.papers.gev.solvers import Gradient, LinkSolver, Lipschitz, Newton
from aucdist.probability.link_kernels import curvature
from aucdist.probability.links import Link, LinkLoss
from flows.config.loading import AtLeastOne, Positive
from flows.config.model import ModelConfig
from flows.reproduce.kind import (
    DataSet,
    ExperimentKind,
    ProtocolKind,
    Result,
    Results,
    Splits,
    System,
    Task,
    TaskKey,
    Tasks,
    Versions,
    results_of,
    train_and_test,
)
from flows.reproduce.page import Curve, ExperimentReport, Figure, PageTable

TOLERANCE = 0.1
"""A mean estimate counts as correct if its distance from the true shape is at most this."""
SHAPE_COLUMNS = ("system", "n", "xi", "mean", "deviation", "first", "sets", "rounds", "acceptance", "effective_samples")

SOLVERS: dict[str, LinkSolver] = {"lipschitz": Lipschitz(momentum=False), "gradient": Gradient(), "newton": Newton()}
MAX_XI = 0.99
OPTIMISER_COLUMNS = ["dataset", "system", "seconds", "rounds", "xi"]

# ---- links ------------------------------------------------------------------------------------------------------------


class Links(ExperimentKind):
    """Two figures that need no data."""

    kind: Literal["links"]
    shapes: list[float] = Field(min_length=1)
    reach: Positive = 4.0
    """The figures show scores from -reach to reach."""

    def report(self, results: Results) -> ExperimentReport:
        """Return the figures."""
        scores = np.linspace(-self.reach, self.reach, 401)
        functions: dict[str, Callable[[float], ndarray]] = {
            "Distribution function": lambda xi: Link("gev", xi).probabilities(scores)[0],
            "Density": lambda xi: gev_density(xi, scores),
        }
        figures = [
            Figure(heading, [Curve(f"xi = {xi:g}", scores, function(xi)) for xi in self.shapes], "Score", heading)
            for heading, function in functions.items()
        ]
        return ExperimentReport(self.title, figures=figures)


def gev_density(xi: float, scores: ndarray) -> ndarray:
    """Return the GEV density with shape xi. It is the curvature of the calibrated loss."""
    terms = LinkLoss(Link("gev", xi)).terms
    return np.array([curvature(terms, score, True) for score in scores])


# ---- shapes -----------------------------------------------------------------------------------------------------------


class ShapeSystem(System):
    """A method that estimates the shape parameter xi."""

    table: str
    """The printed table and figure, which is the heading of the section."""
    sets: AtLeastOne = 1
    """The number of data sets for each size and shape. The figures show the first one."""


class Shapes(ExperimentKind):
    """Estimates of xi from rows x ~ N(0, I), whose labels are drawn from the link at the score w.x."""

    kind: Literal["shapes"]
    systems: dict[str, ShapeSystem]
    weights: list[float] = Field(min_length=1)
    """The true weights. There is no intercept."""
    sizes: list[int] = Field(min_length=1)
    """The numbers of rows."""
    shapes: list[float] = Field(min_length=1)
    """The true shapes."""

    def tasks(self, versions: Versions) -> Tasks:
        """Yield a task for each system, size and shape. If Markov chains sample xi, yield one for each data set."""
        for (name, system), n, xi in itertools.product(self.systems.items(), self.sizes, self.shapes):
            model = system.model.model_dump(exclude_none=True)
            seeds = list(range(system.sets))
            groups = [[seed] for seed in seeds] if model.get("xi") == "bayes" else [seeds]
            for repeat, group in enumerate(groups):
                task = {"model": model, "n": n, "xi": xi, "weights": self.weights, "seeds": group}
                yield TaskKey(_dataset_name(n, xi), name, repeat), task

    @staticmethod
    def run_task(task: Task) -> Result:
        """Return the estimate on each data set, and the trace of the first estimate."""
        estimator, estimates, traces = ModelConfig(**task["model"]).built, [], []
        for seed in task["seeds"]:
            estimator.set_params(random_state=seed).fit(LocalBlocks([simulate_rows(task, seed)]))
            estimates.append(estimator.xi_)
            traces.append(estimator.xi_trace_)
        columns = traces[0].drop(columns="round")
        last = {name: float(np.mean([trace[name].iloc[-1] for trace in traces])) for name in columns}
        return {
            "xi": estimates,
            "rounds": float(np.mean([len(trace) for trace in traces])),
            "last": last,
            "trace": {name: columns[name].tolist() for name in columns},
        }

    def report(self, results: Results) -> ExperimentReport:
        """Return a table and figures for each system, and how often its mean estimate is close to the true shape."""
        lines = self.lines(results)
        near = (lines["mean"] - lines["xi"]).abs() <= TOLERANCE
        shown = lines.assign(highlight=np.where(near, "better", "below"))
        text = (
            "{mean:.3f}", "± {deviation:.3f}", "first {first:.3f}", "{rounds:.3g} rounds", "acceptance {acceptance:.2f}",
            "{effective_samples:.0f} effective samples",
        )  # fmt: skip
        tables: list[PageTable] = []
        counts: Json = {}
        figures: list[Figure] = []
        for key, system in self.systems.items():
            of_system = lines["system"] == key
            tables.append(
                PageTable(f"{system.table}: {key}", shown[of_system], text, self.sizes, self.shapes, by=("n", "xi"))
            )
            figures += self._figures(key, results)
            counts[key] = {str(n): f"{hits.sum()} of {len(hits)}" for n, hits in near[of_system].groupby(lines["n"])}
        return ExperimentReport(self.title, tables, figures, lines, counts)

    def lines(self, results: Results) -> pd.DataFrame:
        """Return the estimates of each system that was run, by size and shape."""
        summaries = []
        for key, n, xi in itertools.product(self.systems, self.sizes, self.shapes):
            if runs := results_of(results, _dataset_name(n, xi), key):
                estimates = np.concatenate([run["xi"] for run in runs])
                last = pd.DataFrame([run["last"] | {"rounds": run["rounds"]} for run in runs]).mean()
                cell = {"system": key, "n": n, "xi": xi, "mean": estimates.mean(), "deviation": estimates.std()}
                summaries.append(last.to_dict() | cell | {"first": estimates[0], "sets": len(estimates)})
        return pd.DataFrame(summaries, columns=SHAPE_COLUMNS)

    def _figures(self, key: str, results: Results) -> Iterator[Figure]:
        for xi in self.shapes:
            runs = {n: results_of(results, _dataset_name(n, xi), key) for n in self.sizes}
            first = {n: runs_of_size[0]["trace"] for n, runs_of_size in runs.items() if runs_of_size}
            if not first:
                continue
            longest = max(len(trace["xi"]) for trace in first.values())
            curves = [_trace_curve(f"{n} rows", trace["xi"]) for n, trace in first.items()]
            curves.append(Curve("true", np.array([1.0, longest]), np.full(2, xi)))
            yield Figure(f"{key}: xi = {xi:g}", curves, "Round", "xi")
            if "log_likelihood" in next(iter(first.values())):
                curves = [_trace_curve(f"{n} rows", np.array(t["log_likelihood"]) / n) for n, t in first.items()]
                yield Figure(f"{key}: xi = {xi:g}, log-likelihood", curves, "Round", "Mean log-likelihood per row")


def simulate_rows(task: Task, seed: int) -> Block:
    """Return a synthetic data set with rows of both classes."""
    rng = np.random.default_rng([seed, task["n"], round(1000 * (task["xi"] + 10))])
    X = rng.normal(size=(task["n"], len(task["weights"])))
    p = Link("gev", task["xi"]).probabilities(X @ task["weights"])[0]
    return Block.of(X, np.where(rng.random(task["n"]) < p, 1, -1))


def _dataset_name(n: int, xi: float) -> str:
    return f"n{n}-xi{xi:g}"


def _trace_curve(label: str, values: Any) -> Curve:
    return Curve(label, np.arange(1.0, len(values) + 1), np.asarray(values, dtype=float))


# ---- optimisers -------------------------------------------------------------------------------------------------------


class Optimisers(ProtocolKind):
    """Log loss against iterations from zero weights, and the seconds that a number of iterations takes.

    One task runs all solvers, so that their times are comparable.
    """

    kind: Literal["optimisers"]
    figure: str
    """The printed figure."""
    table: str
    """The printed table."""
    datasets: dict[str, DataSet]
    drawn: list[str]
    """The data sets of the figure."""
    protocol: Splits = Field(default_factory=lambda: Splits(repeats=1))
    shape_rounds: AtLeastOne = 20
    """The number of rounds of the estimation of xi."""
    iterations: AtLeastOne = 10
    """The number of iterations in the figure."""
    timed: AtLeastOne = 100
    """The number of iterations in the table."""
    times: AtLeastOne = 10
    """The number of repetitions of each measurement. The table has the median."""

    def task_of(self, dataset: str, system: None) -> Task:
        """Return the numbers of rounds."""
        return self.model_dump(include={"shape_rounds", "iterations", "timed", "times"})

    @staticmethod
    def run_task(task: Task) -> Result:
        """Return the log losses and seconds of each solver on the training rows."""
        train, _ = train_and_test(task)
        blocks, lam = LocalBlocks([train]), task["protocol"]["penalty"] / train.n_samples
        shapes = map_shape(blocks, fit_intercept=True, penalise_intercept=True, most_xi=MAX_XI)
        *_, shape = itertools.islice(shapes, task["shape_rounds"])
        loss = LinkLoss(Link("gev", shape.xi))

        def iterate(name: str, n: int) -> list[Any]:
            start = np.zeros(train.n_features + 1)
            rounds = SOLVERS[name].rounds(blocks, lam, start, loss=loss, penalise_intercept=True)
            return list(itertools.islice(rounds, n + 1))

        curves: dict[str, list[float]] = {}
        for s in SOLVERS:
            scores = [train.scores(state.w) + state.intercept for state in iterate(s, task["iterations"])]
            p = [loss.link.probabilities(scores_of_round)[0] for scores_of_round in scores]
            curves[s] = [log_loss(ScoreCounts.from_scores(train.y, p_of_round)) for p_of_round in p]
        measured: dict[str, list[float]] = {s: [] for s in SOLVERS}
        iterations = {}
        # The solvers take turns, so that other work on the machine slows all of them equally.
        for _, s in itertools.product(range(task["times"]), SOLVERS):
            begin = time.perf_counter()
            iterations[s] = max(len(iterate(s, task["timed"])) - 1, 1)
            measured[s].append((time.perf_counter() - begin) / iterations[s] * task["timed"])
        seconds = {s: statistics.median(times) for s, times in measured.items()}
        return {"xi": shape.xi, "log_loss": curves, "seconds": seconds, "rounds": iterations}

    def report(self, results: Results) -> ExperimentReport:
        """Return the figure and the table, and on how many data sets each solver is the fastest."""
        lines: list[tuple[Any, ...]] = []
        figures = []
        for dataset in self.datasets:
            for run in results_of(results, dataset, "all")[:1]:
                lines += [(dataset, s, seconds, run["rounds"][s], run["xi"]) for s, seconds in run["seconds"].items()]
                if dataset in self.drawn:
                    curves = [Curve(s, np.arange(0.0, len(v)), np.array(v)) for s, v in run["log_loss"].items()]
                    heading, about = f"{self.figure}: {dataset}", f"xi {run['xi']:.3f}"
                    figures.append(Figure(heading, curves, "Iteration", "Log loss", about))
        frame = pd.DataFrame(lines, columns=OPTIMISER_COLUMNS)
        fastest = frame["seconds"] == frame.groupby("dataset")["seconds"].transform("min")
        shown = frame.assign(highlight=np.where(fastest, "better", ""))
        text = "{seconds:.4g}", "{rounds} iterations", "xi {xi:.3f}"
        table = PageTable(f"{self.table}: seconds of {self.timed} iterations", shown, text, self.datasets, SOLVERS)
        counts = {"fastest": fastest.groupby(frame["system"]).sum().reindex(list(SOLVERS), fill_value=0).to_dict()}
        return ExperimentReport(self.title, [table], figures, frame, counts)

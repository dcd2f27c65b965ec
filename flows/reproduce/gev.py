"""The kinds of the GEV link: `links` draws it, `shapes` estimates its shape, `optimisers` times its solvers."""

import itertools
import statistics
import time
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np
from pydantic import Field, model_validator

from aucdist.data.block import Block
from aucdist.engine.blocks import LocalBlocks
from aucdist.errors import InputError
from aucdist.estimators import ESTIMATORS
from aucdist.kernels.link_functions import curvature
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.probability import log_loss
from aucdist.objectives.links import Link, LinkLoss
from aucdist.papers.gev.shape import map_shape
from aucdist.papers.gev.solvers import Gradient, LinkSolver, Lipschitz, Newton
from aucdist.solvers.base import Round
from flows.config.base import Strict
from flows.config.model import ModelConfig
from flows.reproduce.kind import NOT_RUN, DataSet, Kind, Result, Results, Task, TaskKey, Version, csv_bytes, results_of
from flows.reproduce.page import Curve, Figure, PageSection, TableCell, line_plot, page_figure
from flows.reproduce.protocol import ProtocolKind, Splits, train_and_test

# ---- links ------------------------------------------------------------------------------------------------------------


class Links(Kind):
    """Two figures that need no data."""

    kind: Literal["links"]
    shapes: list[float] = Field(min_length=1)
    reach: float = Field(default=4.0, gt=0, description="The figures show scores from -reach to reach")

    def page_sections(self, name: str, results: Results) -> list[PageSection]:
        """Return the figures."""
        scores = np.linspace(-self.reach, self.reach, 401)
        figures = []
        for suffix, heading, function in (
            ("cdf", "Distribution function", gev_distribution), ("pdf", "Density", gev_density)
        ):  # fmt: skip
            curves = [Curve(f"xi = {xi:g}", scores, function(xi, scores)) for xi in self.shapes]
            description = f"{heading} of the GEV link at several shapes."
            plot = line_plot(curves, xlabel="Score", ylabel=heading)
            figures.append(page_figure(f"{name}-{suffix}", heading, "", description, plot))
        return [PageSection(self.title, figures=figures)]


def gev_distribution(xi: float, scores: np.ndarray) -> np.ndarray:
    """Return the GEV distribution function of shape xi."""
    return Link("gev", xi).probabilities(scores)[0]


def gev_density(xi: float, scores: np.ndarray) -> np.ndarray:
    """Return the GEV density of shape xi, which is the curvature of the calibrated loss."""
    terms = LinkLoss(Link("gev", xi)).terms
    return np.array([curvature(terms, score, True) for score in scores])


# ---- shapes -----------------------------------------------------------------------------------------------------------

TOLERANCE = 0.1
"""A mean estimate this near the true shape counts as correct."""
COLUMNS = ("system", "n", "xi", "mean", "deviation", "first", "sets", "rounds", "acceptance", "effective_samples")


class ShapeSystem(Strict):
    """A method that estimates xi."""

    model: ModelConfig
    table: str = Field(description="The printed table and figure, as the heading of the section")
    sets: int = Field(
        default=1, ge=1, description="Number of data sets for each size and shape; the figures show the first one"
    )

    @model_validator(mode="after")
    def _check_estimates_xi(self) -> "ShapeSystem":
        parameters = self.model.built.get_params()
        if parameters.get("link") != "gev" or isinstance(parameters.get("xi"), int | float):
            raise InputError("a system of the kind `shapes` must be a LinkClassifier that estimates xi")
        return self


class Shapes(Kind):
    """Estimates from rows x ~ N(0, I) with labels drawn from the link at the score w.x."""

    kind: Literal["shapes"]
    systems: dict[str, ShapeSystem]
    weights: list[float] = Field(min_length=1, description="The true weights; there is no intercept")
    sizes: list[int] = Field(min_length=1, description="Numbers of rows")
    shapes: list[float] = Field(min_length=1, description="The true shapes")

    def tasks(self, versions: Mapping[str, Version]) -> Iterator[tuple[TaskKey, Task]]:
        """Yield a task for each system, size and shape; where xi is sampled by Markov chains, one for each data set."""
        for (name, system), n, xi in itertools.product(self.systems.items(), self.sizes, self.shapes):
            model = {k: v for k, v in system.model.model_dump().items() if v is not None}
            seeds = list(range(system.sets))
            groups = [[seed] for seed in seeds] if model.get("xi") == "bayes" else [seeds]
            for repeat, group in enumerate(groups):
                task = {"model": model, "n": n, "xi": xi, "weights": self.weights, "seeds": group}
                yield TaskKey(_dataset_name(n, xi), name, repeat), task

    @staticmethod
    def run_task(task: Task) -> Result:
        """Return the estimate on each set, and the trace of the first one."""
        parameters = dict(task["model"])
        estimator = ESTIMATORS[parameters.pop("estimator")]().set_params(**parameters)
        estimates, traces = [], []
        for seed in task["seeds"]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # only xi matters here; a likelihood with xi > 0 has no bound
                estimator.set_params(random_state=seed).fit(LocalBlocks([simulate_rows(task, seed)]))
            estimates.append(estimator.xi_)
            traces.append(estimator.xi_trace_)
        columns = traces[0].drop(columns="round")
        last = {name: float(np.mean([trace[name].iloc[-1] for trace in traces])) for name in columns}
        return {
            "xi": estimates, "rounds": float(np.mean([len(trace) for trace in traces])), "last": last,
            "trace": {name: columns[name].tolist() for name in columns},
        }  # fmt: skip

    def page_sections(self, name: str, results: Results) -> list[PageSection]:
        """Return a table and figures for each system."""
        return [
            PageSection(
                f"{system.table}: {self.title}, {key}",
                [
                    f"Mean and standard deviation of xi over {system.sets} data set(s) of each size and shape; below it, xi of "
                    "the first one, which the figures show."
                ],
                ["Rows", *(f"xi = {xi:g}" for xi in self.shapes)],
                [(str(n), [_shape_cell(_runs(key, n, xi, results), xi) for xi in self.shapes]) for n in self.sizes],
                list(self._figures(name, key, results)),
            )
            for key, system in self.systems.items()
        ]

    def csv_files(self, name: str, results: Results) -> dict[str, bytes]:
        """Return the estimates."""
        rows = [
            _csv_row(key, n, xi, runs)
            for key, n, xi in itertools.product(self.systems, self.sizes, self.shapes)
            if (runs := _runs(key, n, xi, results))
        ]
        return {f"{name}.csv": csv_bytes(COLUMNS, rows)}

    def summary(self, results: Results) -> dict[str, Any]:
        """Return how often each system's mean estimate is near the true shape, by number of rows."""
        return {
            key: {
                str(n): f"{near} of {total}" for n in self.sizes for near, total in [self._near_truth(key, n, results)]
            }
            for key in self.systems
        }

    def _near_truth(self, key: str, n: int, results: Results) -> tuple[int, int]:
        """Return for how many shapes the mean estimate is near the true one, and how many were run."""
        means = {xi: _estimates(runs).mean() for xi in self.shapes if (runs := _runs(key, n, xi, results))}
        return sum(abs(mean - xi) <= TOLERANCE for xi, mean in means.items()), len(means)

    def _figures(self, name: str, key: str, results: Results) -> Iterator[Figure]:
        for xi in self.shapes:
            first = {n: runs[0]["trace"] for n in self.sizes if (runs := _runs(key, n, xi, results))}
            if not first:
                continue
            longest = max(len(trace["xi"]) for trace in first.values())
            curves = [_trace_curve(f"{n} rows", trace["xi"]) for n, trace in first.items()]
            curves.append(Curve("true", np.array([1.0, longest]), np.full(2, xi)))
            plot = line_plot(curves, xlabel="Round", ylabel="xi")
            description = f"xi against rounds, {key}, true {xi:g}."
            yield page_figure(f"{name}-{key}-{xi}", f"xi = {xi:g}", "", description, plot)
            if "log_likelihood" in next(iter(first.values())):
                curves = [_trace_curve(f"{n} rows", np.array(t["log_likelihood"]) / n) for n, t in first.items()]
                plot = line_plot(curves, xlabel="Round", ylabel="Mean log-likelihood per row")
                heading, description = f"xi = {xi:g}: log-likelihood", f"Log-likelihood against rounds, {key}."
                yield page_figure(f"{name}-{key}-{xi}-likelihood", heading, "", description, plot)


def simulate_rows(task: Task, seed: int) -> Block:
    """Return a synthetic data set with rows of both classes."""
    rng = np.random.default_rng([seed, task["n"], round(1000 * (task["xi"] + 10))])
    X = rng.normal(size=(task["n"], len(task["weights"])))
    p = Link("gev", task["xi"]).probabilities(X @ task["weights"])[0]
    return Block.of(X, np.where(rng.random(task["n"]) < p, 1, -1))


def _dataset_name(n: int, xi: float) -> str:
    return f"n{n}-xi{xi:g}"


def _runs(key: str, n: int, xi: float, results: Results) -> list[Result]:
    return results_of(results, _dataset_name(n, xi), key)


def _estimates(runs: list[Result]) -> np.ndarray:
    return np.concatenate([run["xi"] for run in runs])


def _mean_of(runs: list[Any], name: str) -> float:
    return float(np.mean([run[name] for run in runs]))


def _trace_curve(label: str, values: Any) -> Curve:
    return Curve(label, np.arange(1.0, len(values) + 1), np.asarray(values, dtype=float))


def _csv_row(key: str, n: int, xi: float, runs: list[Result]) -> dict[str, Any]:
    estimates, last = _estimates(runs), [run["last"] for run in runs]
    row = {
        "system": key, "n": n, "xi": str(xi), "mean": f"{estimates.mean():.4f}", "deviation": f"{estimates.std():.4f}",
        "first": f"{estimates[0]:.4f}", "sets": len(estimates), "rounds": f"{_mean_of(runs, 'rounds'):.4g}",
    }  # fmt: skip
    sampled = [column for column in ("acceptance", "effective_samples") if column in last[0]]
    return row | {column: f"{_mean_of(last, column):.4g}" for column in sampled}


def _shape_cell(runs: list[Result], xi: float) -> TableCell:
    if not runs:
        return TableCell("-")
    estimates, last = _estimates(runs), [run["last"] for run in runs]
    details = [f"first {estimates[0]:.3f}", f"{_mean_of(runs, 'rounds'):.3g} rounds"]
    if "acceptance" in last[0]:
        acceptance, samples = _mean_of(last, "acceptance"), _mean_of(last, "effective_samples")
        details.append(f"acceptance {acceptance:.2f}, effective samples {samples:.0f}")
    text = f"{estimates.mean():.3f}" + (f" ± {estimates.std():.3f}" if len(estimates) > 1 else "")
    return TableCell(text, details, "better" if abs(estimates.mean() - xi) <= TOLERANCE else "below")


# ---- optimisers -------------------------------------------------------------------------------------------------------

SOLVERS: dict[str, LinkSolver] = {"lipschitz": Lipschitz(momentum=False), "gradient": Gradient(), "newton": Newton()}
SYSTEM = "all"
"""One task runs all solvers, so that their times are comparable."""
MOST_XI = 0.99


class Optimisers(ProtocolKind):
    """Log loss against iterations from weights of 0, and the seconds of a number of iterations."""

    kind: Literal["optimisers"]
    figure: str = Field(description="The printed figure")
    table: str = Field(description="The printed table")
    datasets: dict[str, DataSet]
    drawn: list[str] = Field(description="The data sets of the figure")
    protocol: Splits = Field(default_factory=lambda: Splits(repeats=1))
    shape_rounds: int = Field(default=20, ge=1, description="Rounds of the estimation of xi")
    iterations: int = Field(default=10, ge=1, description="Iterations in the figure")
    timed: int = Field(default=100, ge=1, description="Iterations in the table")
    times: int = Field(default=10, ge=1, description="Repetitions of each measurement; the table has the median")

    def tasks_of_systems(self, dataset: str) -> dict[str, Task]:
        """Return the numbers of rounds."""
        return {SYSTEM: self.model_dump(include={"shape_rounds", "iterations", "timed", "times"})}

    @staticmethod
    def run_task(task: Task) -> Result:
        """Return the log losses and seconds of each solver on the training rows."""
        train, _ = train_and_test(task)
        blocks, lam = LocalBlocks([train]), task["protocol"]["penalty"] / train.n_samples
        shapes = map_shape(blocks, fit_intercept=True, penalise_intercept=True, most_xi=MOST_XI)
        *_, shape = itertools.islice(shapes, task["shape_rounds"])
        loss = LinkLoss(Link("gev", shape.xi))

        def iterate(name: str, n: int) -> list[Round]:
            start = np.zeros(train.n_features + 1)
            rounds = SOLVERS[name].rounds(blocks, lam, start, loss=loss, penalise_intercept=True)
            return list(itertools.islice(rounds, n + 1))

        curves = {s: [_log_loss(train, state, loss.link) for state in iterate(s, task["iterations"])] for s in SOLVERS}
        measured: dict[str, list[float]] = {s: [] for s in SOLVERS}
        iterations = {}
        # The solvers take turns, so that other work on the machine slows all of them alike.
        for _, s in itertools.product(range(task["times"]), SOLVERS):
            begin = time.perf_counter()
            iterations[s] = max(len(iterate(s, task["timed"])) - 1, 1)
            measured[s].append((time.perf_counter() - begin) / iterations[s] * task["timed"])
        seconds = {s: statistics.median(times) for s, times in measured.items()}
        return {"xi": shape.xi, "log_loss": curves, "seconds": seconds, "rounds": iterations}

    def page_sections(self, name: str, results: Results) -> list[PageSection]:
        """Return the figure and the table."""
        runs = self._runs(results)
        figure = PageSection(
            f"{self.figure}: {self.title}",
            ["Log loss of the training rows, from weights of 0."],
            figures=[_log_loss_figure(name, dataset, runs[dataset]) for dataset in self.drawn if dataset in runs],
        )
        caption = (
            f"Seconds of {self.timed} iterations, the median of {self.times} runs; below it the number of iterations after which "
            "the weights no longer changed, or the limit."
        )
        rows = [(dataset, _table_row(runs.get(dataset))) for dataset in self.datasets]
        return [figure, PageSection(f"{self.table}: seconds", [caption], ["Data set", *SOLVERS, "xi"], rows)]

    def csv_files(self, name: str, results: Results) -> dict[str, bytes]:
        """Return the seconds of each solver."""
        rows = [
            {"dataset": dataset, "xi": f"{run['xi']:.4f}", **run["seconds"]}
            for dataset, run in self._runs(results).items()
        ]
        return {f"{name}.csv": csv_bytes(["dataset", "xi", *SOLVERS], rows)}

    def summary(self, results: Results) -> dict[str, Any]:
        """Return on how many data sets each solver is the fastest."""
        runs = self._runs(results).values()
        return {"fastest": {s: sum(run["seconds"][s] == min(run["seconds"].values()) for run in runs) for s in SOLVERS}}

    def _runs(self, results: Results) -> dict[str, Result]:
        """Return the result of each data set that was run."""
        runs_of = {dataset: results_of(results, dataset, SYSTEM) for dataset in self.datasets}
        return {dataset: runs[0] for dataset, runs in runs_of.items() if runs}


def _log_loss_figure(name: str, dataset: str, run: Result) -> Figure:
    curves = [
        Curve(solver, np.arange(len(values), dtype=float), np.array(values))
        for solver, values in run["log_loss"].items()
    ]
    plot = line_plot(curves, xlabel="Iteration", ylabel="Log loss")
    description = f"Log loss of each solver on {dataset} against iterations."
    return page_figure(f"{name}-{dataset}", dataset, f"xi {run['xi']:.3f}", description, plot)


def _log_loss(train: Block, state: Any, link: Link) -> float:
    scores = np.asarray(train.X @ state.w).ravel() + state.intercept
    return log_loss(ScoreCounts.from_scores(train.y, link.probabilities(scores)[0]))


def _table_row(run: Result | None) -> list[TableCell]:
    if run is None:
        return [TableCell(NOT_RUN)] * (len(SOLVERS) + 1)
    seconds = run["seconds"]
    cells = [
        TableCell(
            f"{seconds[s]:.4g}",
            (f"{run['rounds'][s]} iterations",),
            "better" if seconds[s] == min(seconds.values()) else "",
        )
        for s in SOLVERS
    ]
    return [*cells, TableCell(f"{run['xi']:.3f}")]

"""The kind `optimisers`: log loss of the link solvers against their iterations, and the seconds of an iteration."""

import itertools
import statistics
import time
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from pydantic import Field

from aucdist.data.block import Block
from aucdist.engine.blocks import LocalBlocks
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.probability import log_loss
from aucdist.objectives.links import Link, LinkLoss
from aucdist.papers.gev.shape import map_shape
from aucdist.papers.gev.solvers import Gradient, LinkSolver, Lipschitz, Newton
from aucdist.solvers.base import Round
from flows.reproduce.datasets import NOT_RUN, DataSet
from flows.reproduce.figures import Curve, line_plot, page_figure
from flows.reproduce.kind import Result, Results, Task, csv_bytes, results_of
from flows.reproduce.page import Figure, PageSection, TableCell
from flows.reproduce.protocol import ProtocolKind, Splits, train_and_test

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
        paragraphs = [
            f"Seconds of {self.timed} iterations, the median of {self.times} runs; below it the number of iterations after which "
            "the weights no longer changed, or the limit.",
            *self._conclusions(results),
        ]
        rows = [(dataset, _table_row(runs.get(dataset))) for dataset in self.datasets]
        return [figure, PageSection(f"{self.table}: seconds", paragraphs, ["Data set", *SOLVERS, "xi"], rows)]

    def csv_files(self, name: str, results: Results) -> dict[str, bytes]:
        """Return the seconds of each solver."""
        rows = [
            {"dataset": dataset, "xi": f"{run['xi']:.4f}", **run["seconds"]}
            for dataset, run in self._runs(results).items()
        ]
        return {f"{name}.csv": csv_bytes(["dataset", "xi", *SOLVERS], rows)}

    def summary(self, results: Results) -> dict[str, Any]:
        """Return on how many data sets each solver is the fastest."""
        return {"fastest": self._fastest(results)}

    def _runs(self, results: Results) -> dict[str, Result]:
        """Return the result of each data set that was run."""
        found = {dataset: results_of(results, dataset, SYSTEM) for dataset in self.datasets}
        return {dataset: runs[0] for dataset, runs in found.items() if runs}

    def _fastest(self, results: Results) -> dict[str, int]:
        runs = self._runs(results).values()
        return {s: sum(run["seconds"][s] == min(run["seconds"].values()) for run in runs) for s in SOLVERS}

    def _conclusions(self, results: Results) -> Iterator[str]:
        fastest = self._fastest(results)
        n = sum(fastest.values())
        if n:
            counts = ", ".join(f"{s} on {count}" for s, count in fastest.items() if count)
            verdict = "The same holds here" if fastest["lipschitz"] == n else "This does not hold here"
            yield (
                "In the paper, an iteration of lipschitz takes the least time on every data set. "
                f"{verdict}: the fastest solver is {counts} of {n} data sets."
            )


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

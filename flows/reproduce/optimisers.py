"""The kind `optimisers`: how the log loss falls with the iterations of the link solvers, and the time that these take."""

import csv
import io
import itertools
import statistics
import time
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np
from pydantic import Field

from aucdist.data.block import Block
from aucdist.engine.blocks import LocalBlocks
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.probability import log_loss
from aucdist.objectives.links import Link, LinkLoss
from aucdist.solvers.base import Round
from aucdist.solvers.links.gev_shape import map_shape
from aucdist.solvers.links.solvers import gradient, lipschitz, newton
from flows.reproduce.datasets import NOT_RUN, DataSet, Version
from flows.reproduce.kind import Key, Kind, Result, Results, Task
from flows.reproduce.lines import Curve, drawing, lines
from flows.reproduce.page import Drawing, Entry, Section
from flows.reproduce.splits import Splits, split_parts, split_tasks

SOLVERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "lipschitz": (lipschitz, {"momentum": False}),
    "gradient": (gradient, {}),
    "newton": (newton, {}),
}
MOST_XI = 0.99


class Optimisers(Kind):
    """Log loss against iterations from weights of 0, and seconds of a number of iterations."""

    kind: Literal["optimisers"]
    figure: str = Field(description="The printed figure")
    table: str = Field(description="The printed table")
    datasets: dict[str, DataSet]
    drawn: list[str] = Field(description="The data sets of the figure")
    protocol: Splits = Field(default_factory=lambda: Splits(repeats=1))
    shape_rounds: int = Field(default=20, ge=1, description="Rounds in which xi is looked for")
    iterations: int = Field(default=10, ge=1, description="Of the figure")
    timed: int = Field(default=100, ge=1, description="Iterations of the table")
    times: int = Field(default=10, ge=1, description="Runs, of which the median counts")

    def tasks(self, versions: Mapping[str, Version]) -> Iterator[tuple[Key, Task]]:
        """Yield a task for each data set that is present."""
        names = ("shape_rounds", "iterations", "timed", "times")
        more = {"all": {name: getattr(self, name) for name in names}}
        return split_tasks(self.protocol, self.datasets, more, versions)

    @staticmethod
    def run(task: Task) -> Result:
        """Return the log losses and seconds of each solver on the training rows."""
        train, _ = split_parts(task)
        blocks, lam = LocalBlocks([train]), task["protocol"]["penalty"] / train.n_samples
        shapes = map_shape(blocks, fit_intercept=True, penalise_intercept=True, most_xi=MOST_XI)
        *_, shape = itertools.islice(shapes, task["shape_rounds"])
        loss = LinkLoss(Link("gev", shape.xi))

        def rounds(name: str, n: int) -> list[Round]:
            solver, options = SOLVERS[name]
            start = np.zeros(train.n_features + 1)
            every = solver(blocks, lam, start, loss=loss, penalise_intercept=True, **options)
            return list(itertools.islice(every, n + 1))

        curves = {s: [_log_loss(train, state, loss.link) for state in rounds(s, task["iterations"])] for s in SOLVERS}
        taken: dict[str, list[float]] = {s: [] for s in SOLVERS}
        done = {}
        # In turn, so that whatever else the machine does slows them alike.
        for _, s in itertools.product(range(task["times"]), SOLVERS):
            begin = time.perf_counter()
            done[s] = max(len(rounds(s, task["timed"])) - 1, 1)
            taken[s].append((time.perf_counter() - begin) / done[s] * task["timed"])
        seconds = {s: statistics.median(times) for s, times in taken.items()}
        return {"xi": shape.xi, "log_loss": curves, "seconds": seconds, "rounds": done}

    def sections(self, name: str, results: Results) -> list[Section]:
        """Return the figure and the table."""
        drawings = [d for key in self.drawn for d in self._drawn(name, key, results)]
        rows = [(key, _entries(self._of(key, results))) for key in self.datasets]
        figure = Section(
            f"{self.figure}: {self.title}", ["Log loss of the training rows, from weights of 0."], drawings=drawings
        )
        words = [
            f"Seconds of {self.timed} iterations, the median of {self.times} runs; below it the iterations after which the "
            "weights no longer changed, or all of them.",
            *self._words(results),
        ]
        return [figure, Section(f"{self.table}: seconds", words, ["Data set", *SOLVERS, "xi"], rows)]

    def files(self, name: str, results: Results) -> dict[str, bytes]:
        """Return the seconds as CSV."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["dataset", "xi", *SOLVERS])
        for key in self.datasets:
            if run := self._of(key, results):
                writer.writerow([key, f"{run['xi']:.4f}", *(f"{run['seconds'][s]:.6g}" for s in SOLVERS)])
        return {f"{name}.csv": stream.getvalue().encode()}

    def tally(self, results: Results) -> dict[str, Any]:
        """Return on how many data sets each solver is fastest."""
        return {"fastest": self._fastest(results)}

    def _of(self, dataset: str, results: Results) -> Result | None:
        return next((results[k] for k in results if k.dataset == dataset), None)

    def _fastest(self, results: Results) -> dict[str, int]:
        runs = [run for key in self.datasets if (run := self._of(key, results))]
        return {s: sum(run["seconds"][s] == min(run["seconds"].values()) for run in runs) for s in SOLVERS}

    def _words(self, results: Results) -> Iterator[str]:
        fastest = self._fastest(results)
        if sum(fastest.values()):
            held = "So do ours" if fastest["lipschitz"] == sum(fastest.values()) else "Not so ours"
            counts = ", ".join(f"{s} on {n}" for s, n in fastest.items() if n)
            yield f"In the paper an iteration of lipschitz takes the least time on every data set. {held}: fastest are {counts}."

    def _drawn(self, name: str, dataset: str, results: Results) -> Iterator[Drawing]:
        run = self._of(dataset, results)
        if run is not None:
            curves = [
                Curve(solver, np.arange(len(values), dtype=float), np.array(values))
                for solver, values in run["log_loss"].items()
            ]
            plot = lines(curves, xlabel="Iteration", ylabel="Log loss")
            words = f"Log loss of each solver on {dataset} against iterations."
            yield drawing(f"{name}-{dataset}", dataset, f"xi {run['xi']:.3f}", words, plot)


def _log_loss(train: Block, state: Any, link: Link) -> float:
    scores = np.asarray(train.X @ state.w).ravel() + state.intercept
    return log_loss(ScoreCounts.from_scores(train.y, link.probabilities(scores)[0]))


def _entries(run: Result | None) -> list[Entry]:
    if run is None:
        return [Entry(NOT_RUN)] * (len(SOLVERS) + 1)
    least = min(run["seconds"].values())
    entries = [
        Entry(
            f"{run['seconds'][s]:.4g}",
            (f"{run['rounds'][s]} iterations",),
            "better" if run["seconds"][s] == least else "",
        )
        for s in SOLVERS
    ]
    return [*entries, Entry(f"{run['xi']:.3f}")]

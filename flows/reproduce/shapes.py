"""The kind `shapes`: the shape xi of the GEV link, looked for on synthetic data whose shape is known."""

import csv
import io
import itertools
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np
from pydantic import Field, model_validator

from aucdist.data.block import Block
from aucdist.engine.blocks import LocalBlocks
from aucdist.errors import InputError
from aucdist.estimators import ESTIMATORS
from aucdist.objectives.links import Link
from flows.config.base import Strict
from flows.config.model import ModelConfig
from flows.reproduce.datasets import Version
from flows.reproduce.kind import Key, Kind, Result, Results, Task
from flows.reproduce.lines import Curve, drawing, lines
from flows.reproduce.page import Drawing, Entry, Section

NEAR = 0.1
"""A mean this near the true shape counts as found."""
COLUMNS = ("system", "n", "xi", "mean", "deviation", "first", "sets", "rounds", "acceptance", "effective_samples")


class ShapeSystem(Strict):
    """A way to look for xi."""

    model: ModelConfig
    table: str = Field(description="The printed table and figure, as the section's heading")
    sets: int = Field(
        default=1, ge=1, description="So many data sets are drawn of each kind; the first one is drawn as a figure"
    )

    @model_validator(mode="after")
    def _looks_for_xi(self) -> "ShapeSystem":
        parameters = self.model.built.get_params()
        if parameters.get("link") != "gev" or isinstance(parameters.get("xi"), int | float):
            raise InputError("a system of the kind `shapes` is a LinkClassifier that looks for xi")
        return self


class Shapes(Kind):
    """Shapes found from rows x ~ N(0, I) with labels drawn from the link at the score w.x."""

    kind: Literal["shapes"]
    systems: dict[str, ShapeSystem]
    weights: list[float] = Field(min_length=1, description="The true ones; there is no intercept")
    sizes: list[int] = Field(min_length=1, description="Numbers of rows")
    shapes: list[float] = Field(min_length=1, description="True ones")

    def tasks(self, versions: Mapping[str, Version]) -> Iterator[tuple[Key, Task]]:
        """Yield a task for each kind of data set, system, and where xi comes from chains also for each set."""
        for (name, system), n, xi in itertools.product(self.systems.items(), self.sizes, self.shapes):
            model = {k: v for k, v in system.model.model_dump().items() if v is not None}
            seeds = list(range(system.sets))
            groups = [[seed] for seed in seeds] if model.get("xi") == "bayes" else [seeds]
            for repeat, group in enumerate(groups):
                task = {"model": model, "n": n, "xi": xi, "weights": self.weights, "seeds": group}
                yield Key(_place(n, xi), name, repeat), task

    @staticmethod
    def run(task: Task) -> Result:
        """Return the shape found on each set, and the trace on the first one."""
        parameters = dict(task["model"])
        estimator = ESTIMATORS[parameters.pop("estimator")](**parameters)
        found, traces = [], []
        for seed in task["seeds"]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what is asked for is xi; a likelihood with xi > 0 has no bound
                estimator.set_params(random_state=seed).fit(LocalBlocks([drawn(task, seed)]))
            found.append(estimator.xi_)
            traces.append(estimator.xi_trace_)
        columns = traces[0].drop(columns="round")
        means = {name: float(np.mean([trace[name].iloc[-1] for trace in traces])) for name in columns}
        return {
            "xi": found, "rounds": float(np.mean([len(trace) for trace in traces])), "last": means,
            "trace": {name: columns[name].tolist() for name in columns},
        }  # fmt: skip

    def sections(self, name: str, results: Results) -> list[Section]:
        """Return a table and figures for each system."""
        return [
            Section(
                f"{system.table}: {self.title}, {key}",
                list(self._words(key, system, results)),
                ["Rows", *(f"xi = {xi:g}" for xi in self.shapes)],
                [(str(n), [_entry(self._runs(key, n, xi, results), xi) for xi in self.shapes]) for n in self.sizes],
                list(self._drawn(name, key, results)),
            )
            for key, system in self.systems.items()
        ]

    def files(self, name: str, results: Results) -> dict[str, bytes]:
        """Return what was found as CSV."""
        stream = io.StringIO()
        writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for key, n, xi in itertools.product(self.systems, self.sizes, self.shapes):
            runs = self._runs(key, n, xi, results)
            if runs:
                all_ = _shapes(runs)
                about = {
                    "system": key,
                    "n": n,
                    "xi": xi,
                    "mean": f"{all_.mean():.4f}",
                    "deviation": f"{all_.std():.4f}",
                }
                about |= {"first": f"{all_[0]:.4f}", "sets": len(all_), "rounds": f"{_mean(runs, 'rounds'):.4g}"}
                last = [run["last"] for run in runs]
                for column in ("acceptance", "effective_samples"):
                    about[column] = f"{_mean(last, column):.4g}" if column in last[0] else ""
                writer.writerow(about)
        return {f"{name}.csv": stream.getvalue().encode()}

    def tally(self, results: Results) -> dict[str, Any]:
        """Return how often each system's mean is near the truth, by number of rows."""
        return {
            key: {str(n): f"{found} of {of}" for n in self.sizes for found, of in [self._found(key, n, results)]}
            for key in self.systems
        }

    def _runs(self, key: str, n: int, xi: float, results: Results) -> list[Result]:
        return [results[k] for k in sorted(results, key=str) if (k.dataset, k.system) == (_place(n, xi), key)]

    def _found(self, key: str, n: int, results: Results) -> tuple[int, int]:
        means = {xi: _shapes(runs).mean() for xi in self.shapes if (runs := self._runs(key, n, xi, results))}
        return sum(abs(mean - xi) <= NEAR for xi, mean in means.items()), len(means)

    def _words(self, key: str, system: ShapeSystem, results: Results) -> Iterator[str]:
        yield (
            f"Mean and deviation of xi over {system.sets} data set(s) of each kind; below it xi of the first set, which is in "
            "the figures as well."
        )
        for n in self.sizes:
            found, of = self._found(key, n, results)
            if of:
                yield f"{n} rows: the mean is within {NEAR:g} of the true shape for {found} of {of}."
        spread = {
            n: float(
                np.mean([_shapes(runs).std() for xi in self.shapes if (runs := self._runs(key, n, xi, results))] or [0])
            )
            for n in self.sizes
        }
        if system.sets > 1 and any(spread.values()):
            yield (
                "Mean deviation of a single set: "
                + ", ".join(f"{v:.3f} with {n} rows" for n, v in spread.items())
                + "."
            )

    def _drawn(self, name: str, key: str, results: Results) -> Iterator[Drawing]:
        for xi in self.shapes:
            first = {n: runs[0]["trace"] for n in self.sizes if (runs := self._runs(key, n, xi, results))}
            if not first:
                continue
            longest = max(len(trace["xi"]) for trace in first.values())
            curves = [_curve(f"{n} rows", trace["xi"]) for n, trace in first.items()]
            curves.append(Curve("true", np.array([1.0, longest]), np.full(2, xi)))
            plot = lines(curves, xlabel="Round", ylabel="xi")
            yield drawing(f"{name}-{key}-{xi}", f"xi = {xi:g}", "", f"xi against rounds, {key}, true {xi:g}.", plot)
            level = next((column for column in ("log_likelihood",) if column in next(iter(first.values()))), None)
            if level is not None:
                curves = [_curve(f"{n} rows", np.array(trace[level]) / n) for n, trace in first.items()]
                plot = lines(curves, xlabel="Round", ylabel="Mean log-likelihood per row")
                heading = f"xi = {xi:g}: log-likelihood"
                yield drawing(f"{name}-{key}-{xi}-level", heading, "", f"Log-likelihood against rounds, {key}.", plot)


def drawn(task: Task, seed: int) -> Block:
    """Return a synthetic data set with rows of both classes."""
    rng = np.random.default_rng([seed, task["n"], round(1000 * (task["xi"] + 10))])
    X = rng.normal(size=(task["n"], len(task["weights"])))
    p = Link("gev", task["xi"]).probabilities(X @ task["weights"])[0]
    return Block.of(X, np.where(rng.random(task["n"]) < p, 1, -1))


def _place(n: int, xi: float) -> str:
    return f"n{n}-xi{xi:g}"


def _shapes(runs: list[Result]) -> np.ndarray:
    return np.concatenate([run["xi"] for run in runs])


def _mean(runs: list[Any], name: str) -> float:
    return float(np.mean([run[name] for run in runs]))


def _curve(label: str, values: Any) -> Curve:
    return Curve(label, np.arange(1.0, len(values) + 1), np.asarray(values, dtype=float))


def _entry(runs: list[Result], xi: float) -> Entry:
    if not runs:
        return Entry("-")
    found = _shapes(runs)
    small = [f"first {found[0]:.3f}", f"{_mean(runs, 'rounds'):.3g} rounds"]
    last = [run["last"] for run in runs]
    if "acceptance" in last[0]:
        small.append(
            f"acceptance {_mean(last, 'acceptance'):.2f}, effective samples {_mean(last, 'effective_samples'):.0f}"
        )
    text = f"{found.mean():.3f}" + (f" ± {found.std():.3f}" if len(found) > 1 else "")
    return Entry(text, small, "better" if abs(found.mean() - xi) <= NEAR else "below")

"""The kind `descent`: the training objective against sweeps and seconds, and whether the paper's conclusions hold for it."""

import csv
import functools
import io
import json
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pydantic import Field, model_validator

from aucdist.data.block import Block
from aucdist.data.preprocess import fit_preprocessor
from aucdist.engine.blocks import LocalBlocks
from aucdist.errors import unknown
from aucdist.estimators import ESTIMATORS
from flows.config.base import Strict
from flows.reproduce.datasets import NOT_RUN, DataSet, Version
from flows.reproduce.folds import Grid, Params, System, dataset
from flows.reproduce.kind import Key, Kind, Result, Results, Task
from flows.reproduce.lines import Curve, drawing, lines
from flows.reproduce.page import Drawing, Entry, Section
from flows.reproduce.programme import least_l1_hinge

REFERENCE = "reference"
LEAST_SHOWN = 1e-7
COLUMNS = ("dataset", "system", "eta", "sweeps", "seconds", "excess", "zeros")


class DescentSet(DataSet):
    """A data set, all of whose rows are trained on."""

    scale: Literal["none", "standard", "minmax", "maxabs", "unit-row"] = "none"


class DescentSystem(System):
    """A system, and the grid from which its steps are chosen."""

    grid: Grid = Field(default={}, description="The point with the least objective in the end, with seed 0, is taken")
    relative_radius: bool = Field(
        default=False, description="Its `radius` counts in L1 norms of the reference's weights"
    )

    def all_points(self) -> list[Params]:
        """Return the points of the grid, accepted by the estimator."""
        return self.points(self.grid)


class Claim(Strict):
    """A conclusion of the paper: one system gets to the goal before others."""

    text: str
    faster: str
    than: list[str]
    rows: Literal["any", "fewer than features", "at least features"] = Field(
        default="any", description="The data sets that it speaks of"
    )
    zeros_within: float | None = Field(
        default=None, description="And the shares of zeros in the end are not further apart than this"
    )


class Descent(Kind):
    """The objective above the best known, sweep by sweep: one figure for each data set and axis, and the conclusions."""

    kind: Literal["descent"]
    systems: dict[str, DescentSystem]
    datasets: dict[str, DescentSet]
    reference: System | Literal["linear programme"] = Field(
        description="Gives the best known objective, unless another system gets lower; the programme is that of the L1 penalty"
    )
    lam: float | Literal["1/n"] = Field(default="1/n", description="The lam of every system")
    sweeps: int = Field(default=100, ge=1, description="Rounds of each system")
    seeds: int = Field(default=10, ge=1, description="Runs of a random system; one that is not runs once")
    goal: float = Field(default=1e-2, gt=0, description="How near the best known, relatively, the conclusions ask for")
    claims: list[Claim] = Field(default=[])

    @model_validator(mode="after")
    def _accepted(self) -> "Descent":
        for system in self.systems.values():
            system.all_points()
        for claim in self.claims:
            for name in (claim.faster, *claim.than):
                if name not in self.systems:
                    raise unknown("system of a claim", name, self.systems)
        return self

    def tasks(self, versions: Mapping[str, Version]) -> Iterator[tuple[Key, Task]]:
        """Yield the reference and every seed of every system on the data sets that are present."""
        for name, version in versions.items():
            if not version.present:
                continue
            of_set = {
                "source": self.datasets[name].source.model_dump(mode="json"),
                "fingerprint": version.fingerprint,
                "scale": self.datasets[name].scale,
                "lam": 1.0 / version.n_samples if self.lam == "1/n" else self.lam,
            }
            reference = of_set | self._of_reference()
            yield Key(name, REFERENCE), reference
            for key, system in self.systems.items():
                own = {"estimator": system.model.estimator, "points": system.all_points(), "sweeps": self.sweeps}
                if system.relative_radius:
                    own["reference"] = reference
                solver = ESTIMATORS[system.model.estimator].solvers[system.model.solver or ""]
                for seed in range(self.seeds if solver.random else 1):
                    yield Key(name, key, seed), of_set | own | {"seed": seed}

    def _of_reference(self) -> Task:
        if not isinstance(self.reference, System):
            return {"programme": True}
        return {"estimator": self.reference.model.estimator, "points": self.reference.points({})}

    @staticmethod
    def run(task: Task) -> Result:
        """Return objective, seconds and share of zeros after every sweep; of the reference what is needed of it."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it ends after the sweeps, whatever has been reached
            if "sweeps" not in task:
                return _reference(json.dumps(task))
            chosen = _chosen(json.dumps(task | {"seed": 0}))
            return _course(task, chosen) | {"chosen": chosen}

    def sections(self, name: str, results: Results) -> list[Section]:
        """Return the conclusions, a table of who got to the goal when, and the figures."""
        told = _Told.of(self, results)
        words = [
            f"Sweeps and seconds until the objective is {self.goal:g} above the best known, relatively; below them, how far "
            "above it is in the end. The objective is the least so far, the mean of the seeds; the seconds are their median.",
            *(f"{claim.text} {_verdict(claim, told)}" for claim in self.claims),
        ]
        rows = [(of, [told.entry(of, system) for system in self.systems]) for of in self.datasets]
        drawings = [d for of in told.best for d in self._drawn(name, of, told)]
        return [Section(self.title, words, ("Data set", *self.systems), rows, drawings)]

    def files(self, name: str, results: Results) -> dict[str, bytes]:
        """Return the table as a CSV."""
        told, out = _Told.of(self, results), io.StringIO()
        writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for (of, system), reached in told.reached.items():
            writer.writerow({"dataset": of, "system": system} | reached.row())
        return {f"{name}.csv": out.getvalue().encode()}

    def tally(self, results: Results) -> dict[str, Any]:
        """Return the verdict on each claim."""
        told = _Told.of(self, results)
        return {claim.text: _verdict(claim, told) for claim in self.claims}

    def _drawn(self, name: str, of: str, told: "_Told") -> Iterator[Drawing]:
        by_sweep, by_second, zeros = [], [], []
        for system in self.systems:
            runs = told.runs[of, system]
            excess = np.array([_padded(run["objective"], self.sweeps) for run in runs]) / told.best[of] - 1.0
            by_sweep.append(_curve(system, np.arange(1, self.sweeps + 1), excess))
            at, excess = _at_seconds(runs, told.best[of])
            by_second.append(_curve(system, at, excess))
            shares = np.array([_padded(run["zeros"], self.sweeps) for run in runs])
            zeros.append(_curve(system, np.arange(1, self.sweeps + 1), shares))
        what = "Relatively above the best known"
        for curves, label, kind in ((by_sweep, "Sweeps", "sweeps"), (by_second, "Seconds", "seconds")):
            words = f"How far the objective is above the best known, of each system on {of} against its {kind}."
            plot = lines(curves, xlabel=label, ylabel=what, log_x=True, log_y=True)
            yield drawing(f"{name}-{of}-{kind}", f"{of}: {label.lower()}", told.about[of], words, plot)
        if any((curve.y > 0.0).any() for curve in zeros) and self._sparse:
            plot = lines(zeros, xlabel="Sweeps", ylabel="Share of weights that are 0", log_x=True)
            words = f"Share of weights that are 0, of each system on {of} against its sweeps."
            yield drawing(f"{name}-{of}-zeros", f"{of}: zeros", told.about[of], words, plot)

    @property
    def _sparse(self) -> bool:
        return any(point.get("penalty") == "l1" for s in self.systems.values() for point in s.all_points())


# ---- what was found ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Reached:
    """When a system got to the goal, None where it did not, and where it was in the end."""

    sweeps: int | None
    seconds: float | None
    excess: float
    zeros: float
    eta: float | None

    def rank(self, by: Literal["sweeps", "seconds"]) -> tuple[float, float]:
        """Return what sorts systems: who got there first, then who came nearest."""
        value = getattr(self, by)
        return (np.inf, self.excess) if value is None else (float(value), 0.0)

    def row(self) -> dict[str, Any]:
        return {k: "" if v is None else f"{v:.6g}" for k, v in vars(self).items()}


@dataclass(frozen=True)
class _Told:
    """The results by data set and system."""

    runs: dict[tuple[str, str], list[Result]]
    best: dict[str, float]
    reached: dict[tuple[str, str], _Reached]
    shape: dict[str, tuple[int, int]]
    about: dict[str, str]

    @classmethod
    def of(cls, kind: Descent, results: Results) -> "_Told":
        runs: dict[tuple[str, str], list[Result]] = {}
        for key, result in results.items():
            runs.setdefault((key.dataset, key.system), []).append(result)
        there = [name for name in kind.datasets if (name, REFERENCE) in runs]
        references = {name: runs[name, REFERENCE][0] for name in there}
        own = {name: [r for system in kind.systems for r in runs[name, system]] for name in there}
        best = {name: min(references[name]["primal"], *(min(r["objective"]) for r in own[name])) for name in there}
        reached = {
            (name, system): _reached(runs[name, system], best[name], kind, system)
            for name in there
            for system in kind.systems
        }
        about = {
            name: "{} x {}, lam {:.3g}, best known {:.6g}, no lower than {:.6g}".format(
                *r["shape"], r["lam"], best[name], r["dual"]
            )
            for name, r in references.items()
        }
        return cls(runs, best, reached, {name: tuple(r["shape"]) for name, r in references.items()}, about)

    def entry(self, of: str, system: str) -> Entry:
        found = self.reached.get((of, system))
        if found is None:
            return Entry(NOT_RUN)
        text = "not there" if found.sweeps is None else f"{found.sweeps} sweeps"
        seconds = "" if found.seconds is None else f"{found.seconds:.2g} s"
        eta = "" if found.eta is None else f"eta {found.eta:g}"
        return Entry(text, [seconds, f"end {found.excess:.1e}", f"zeros {found.zeros:.3f}", eta])


def _reached(runs: list[Result], best: float, kind: Descent, system: str) -> _Reached:
    excess = np.array([_padded(run["objective"], kind.sweeps) for run in runs]) / best - 1.0
    there = np.flatnonzero(excess.mean(axis=0) <= kind.goal)
    firsts = [_first_second(run, best * (1.0 + kind.goal)) for run in runs]
    seconds = None if None in firsts else float(np.median([s for s in firsts if s is not None]))
    eta = kind.systems[system].all_points()[runs[0]["chosen"]].get("eta")
    return _Reached(
        int(there[0]) + 1 if len(there) else None, seconds, float(excess[:, -1].mean()),
        float(np.mean([run["zeros"][-1] for run in runs])), eta if isinstance(eta, int | float) else None,
    )  # fmt: skip


def _first_second(run: Result, goal: float) -> float | None:
    there = np.flatnonzero(np.array(run["objective"]) <= goal)
    return float(run["seconds"][there[0]]) if len(there) else None


def _verdict(claim: Claim, told: _Told) -> str:
    """Return on which data sets a claim holds."""
    wanted = {
        "any": lambda rows, features: True,
        "fewer than features": lambda rows, features: rows < features,
        "at least features": lambda rows, features: rows >= features,
    }[claim.rows]
    sets = [name for name, shape in told.shape.items() if wanted(*shape)]
    if not sets:
        return "Here: no data set to tell."
    held, words = [], []
    for by in ("sweeps", "seconds"):
        yes = [s for s in sets if all(_before(told, s, claim.faster, rival, by) for rival in claim.than)]
        held.append(len(yes))
        words.append(f"in {by} on {len(yes)} of {len(sets)} data sets" + (f" ({', '.join(yes)})" if yes else ""))
    if claim.zeros_within is not None:
        yes = [s for s in sets if all(_as_sparse(told, s, claim, rival) for rival in claim.than)]
        held.append(len(yes))
        words.append(
            f"as sparse to within {claim.zeros_within:g} on {len(yes)}" + (f" ({', '.join(yes)})" if yes else "")
        )
    whole = "borne out" if min(held) == len(sets) else "not borne out" if max(held) == 0 else "borne out in part"
    return f"Here: {whole}; {', '.join(words)}."


def _before(told: _Told, of: str, system: str, rival: str, by: Literal["sweeps", "seconds"]) -> bool:
    return told.reached[of, system].rank(by) < told.reached[of, rival].rank(by)


def _as_sparse(told: _Told, of: str, claim: Claim, rival: str) -> bool:
    assert claim.zeros_within is not None
    return abs(told.reached[of, claim.faster].zeros - told.reached[of, rival].zeros) <= claim.zeros_within


# ---- curves -----------------------------------------------------------------------------------------------------------


def _padded(values: list[float], length: int) -> np.ndarray:
    """Return the values, the last one repeated: who has converged stays where he is."""
    return np.append(values, np.full(length - len(values), values[-1]))


def _at_seconds(runs: list[Result], best: float) -> tuple[np.ndarray, np.ndarray]:
    """Return times, and what each run has reached by then; before its first round it stands where that one does.

    From when half of the runs are there to when half of them have ended: one that was held up does not cut off the others.
    """
    begin, end = (float(np.median([r["seconds"][k] for r in runs])) for k in (0, -1))
    times = np.geomspace(begin, end, 60)
    rounds = [np.maximum(np.searchsorted(r["seconds"], times, side="right") - 1, 0) for r in runs]
    return times, np.array([np.array(r["objective"])[at] for r, at in zip(runs, rounds, strict=True)]) / best - 1.0


def _curve(label: str, x: np.ndarray, values: np.ndarray) -> Curve:
    """Return the mean of the runs, with the least and the greatest as a band."""
    values = np.maximum(values, LEAST_SHOWN) if values.max() > 0.0 else values
    band = (values.min(axis=0), values.max(axis=0)) if len(values) > 1 else (None, None)
    return Curve(label, x, values.mean(axis=0), *band)


# ---- tasks ------------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=2)
def _train(source: str, fingerprint: str, scale: str) -> Block:
    data = dataset({"source": json.loads(source), "fingerprint": fingerprint})
    schema = data.schema
    scaling = fit_preprocessor(
        [data.block], schema.feature_names, log1p=None, scale=scale, categories=schema.categories
    )
    return scaling.transform(data.block)


def _rows_of(task: Task) -> Block:
    return _train(json.dumps(task["source"]), task["fingerprint"], task["scale"])


@functools.lru_cache(maxsize=8)
def _reference(reference: str) -> Result:
    task = json.loads(reference)
    train, lam = _rows_of(task), task["lam"]
    if "programme" in task:
        w, primal, dual = least_l1_hinge(train, lam)
    else:
        model = ESTIMATORS[task["estimator"]](**task["points"][0] | {"lam": lam}, random_state=0)
        model.fit(LocalBlocks([train]))
        w, primal, dual = model.coef_[0], model.certificate_.primal, model.certificate_.dual
    found = {"primal": primal, "dual": dual, "length": float(np.abs(w).sum())}
    return found | {"lam": lam, "shape": [train.n_samples, train.n_features]}


@functools.lru_cache(maxsize=8)
def _chosen(first: str) -> int:
    """Return the point of the grid with the least objective in the end."""
    task = json.loads(first)
    if len(task["points"]) == 1:
        return 0
    return int(np.argmin([min(_course(task, i)["objective"]) for i in range(len(task["points"]))]))


def _course(task: Task, i: int) -> Result:
    point, train = task["points"][i] | {"lam": task["lam"], "tol": 0.0}, _rows_of(task)
    if "reference" in task:
        point["radius"] *= _reference(json.dumps(task["reference"]))["length"]
    model = ESTIMATORS[task["estimator"]](**point, random_state=task["seed"])
    compiled = train.take(np.append(np.flatnonzero(train.y > 0)[:9], np.flatnonzero(train.y < 0)[:9]))
    model.set_params(max_passes=4).fit(LocalBlocks([compiled]))
    # No solver has more than two passes to a round.
    model.set_params(max_passes=2 * task["sweeps"]).fit(LocalBlocks([train]))
    history = model.history_.iloc[: task["sweeps"]]
    return {
        "objective": np.minimum.accumulate(history["primal"]).tolist(),
        "seconds": history["seconds"].tolist(),
        "zeros": history["zeros"].tolist(),
    }

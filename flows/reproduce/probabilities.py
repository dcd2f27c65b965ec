"""The kind `probabilities`: AUC, Brier score and calibration loss of models over random splits, and what is significant."""

import csv
import io
import itertools
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pydantic import Field, model_validator
from scipy.stats import rankdata, wilcoxon

from aucdist.errors import InputError
from aucdist.metrics.auc import auc
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.probability import brier, calibration_loss
from flows.config.base import Strict
from flows.config.model import ModelConfig
from flows.reproduce.datasets import NOT_RUN, DataSet, Version
from flows.reproduce.kind import Key, Kind, Result, Results, Task
from flows.reproduce.page import Entry, Section
from flows.reproduce.splits import Splits, oversampled, seed_of, split_fit, split_parts, split_tasks

MEASURES = {"auc": "AUC", "brier": "Brier score", "calibration": "Calibration loss"}
HIGHER_IS_BETTER = {"auc"}
LEVELS = ((0.05, "**"), (0.1, "*"))
COLUMNS = ("measure", "dataset", "system", "mean", "deviation", "p_value")


class ProbabilitySystem(Strict):
    """A model with probabilities."""

    model: ModelConfig
    smote: bool = Field(default=False, description="Fit to rows evened out by SMOTE")

    @model_validator(mode="after")
    def _gives_probabilities(self) -> "ProbabilitySystem":
        if not hasattr(self.model.built, "predict_proba"):
            raise InputError(f"{self.model.estimator} gives no probabilities")
        return self


@dataclass(frozen=True)
class Cell:
    """A system on a data set by one measure: over the splits mean, deviation, and how likely the best one is no better."""

    measure: str
    dataset: str
    system: str
    mean: float
    deviation: float
    best: bool
    p_value: float

    @property
    def mark(self) -> str:
        """The paper's marks for a difference to the best one."""
        return "" if self.best else next((mark for level, mark in LEVELS if self.p_value < level), "")


class Probabilities(Kind):
    """One table for each measure."""

    kind: Literal["probabilities"]
    tables: dict[Literal["auc", "brier", "calibration"], str] = Field(description="The printed table of each measure")
    claims: str = Field(description="The system of which the paper says that it is best on most data sets")
    systems: dict[str, ProbabilitySystem]
    datasets: dict[str, DataSet]
    protocol: Splits = Field(default_factory=Splits)

    def tasks(self, versions: Mapping[str, Version]) -> Iterator[tuple[Key, Task]]:
        """Yield every split of every system on the data sets that are present."""
        systems = {
            name: {"model": {k: v for k, v in s.model.model_dump().items() if v is not None}, "smote": s.smote}
            for name, s in self.systems.items()
        }
        return split_tasks(self.protocol, self.datasets, systems, versions)

    @staticmethod
    def run(task: Task) -> Result:
        """Return the measures on the test rows."""
        train, test = split_parts(task)
        start = time.perf_counter()
        model = split_fit(task, task["model"], oversampled(train, seed_of(task)) if task["smote"] else train)
        seconds = time.perf_counter() - start
        counts = ScoreCounts.from_scores(test.y, model.decision_function(test.X))
        probabilities = ScoreCounts.from_scores(test.y, model.predict_proba(test.X)[:, 1])
        return {
            "auc": auc(counts), "brier": brier(probabilities), "calibration": calibration_loss(probabilities),
            "xi": getattr(model, "xi_", None), "seconds": seconds,
        }  # fmt: skip

    def sections(self, name: str, results: Results) -> list[Section]:
        """Return a table for each measure, with what it comes to."""
        cells = self.cells(results)
        return [
            Section(
                f"{table}: {self.title}, {MEASURES[measure]}",
                [
                    f"Mean over {self.protocol.repeats} splits, and its deviation. ** and *: two-sided Wilcoxon test against the "
                    "best of the row, p below 0.05 and 0.1.",
                    *self._words(measure, cells),
                ],
                ["Data set", *self.systems],
                [(key, [_entry(cells, measure, key, system) for system in self.systems]) for key in self.datasets],
            )
            for measure, table in self.tables.items()
        ]

    def files(self, name: str, results: Results) -> dict[str, bytes]:
        """Return the cells as CSV."""
        stream = io.StringIO()
        writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for cell in self.cells(results):
            found = {column: getattr(cell, column) for column in COLUMNS}
            writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in found.items()})
        return {f"{name}.csv": stream.getvalue().encode()}

    def tally(self, results: Results) -> dict[str, Any]:
        """Return mean ranks, and how often each system is best."""
        cells = self.cells(results)
        return {
            measure: {"mean_rank": self.ranks(measure, cells), "best": self._best(measure, cells)}
            for measure in self.tables
        }

    def cells(self, results: Results) -> list[Cell]:
        """Return the cells of the data sets on which all systems were run."""
        found = []
        for measure, dataset in itertools.product(self.tables, self.datasets):
            values = {
                system: np.array(
                    [
                        results[k][measure]
                        for k in sorted(results, key=lambda k: k.repeat)
                        if (k.dataset, k.system) == (dataset, system)
                    ]
                )
                for system in self.systems
            }
            if not all(len(v) for v in values.values()):
                continue
            sign = -1.0 if measure in HIGHER_IS_BETTER else 1.0
            best = min(values, key=lambda system: sign * values[system].mean())
            for system, v in values.items():
                spread = float(v.std(ddof=1)) if len(v) > 1 else 0.0
                found.append(
                    Cell(measure, dataset, system, float(v.mean()), spread, system == best, p_value(v, values[best]))
                )
        return found

    def ranks(self, measure: str, cells: list[Cell]) -> dict[str, float]:
        """Return the mean over the data sets of each system's rank, 1 being best and equals sharing theirs."""
        sign = -1.0 if measure in HIGHER_IS_BETTER else 1.0
        of_sets = [
            rankdata([sign * c.mean for c in of_set])
            for _, of_set in itertools.groupby((c for c in cells if c.measure == measure), key=lambda c: c.dataset)
        ]
        if not of_sets:
            return {}
        return dict(zip(self.systems, np.mean(of_sets, axis=0).tolist(), strict=True))

    def _best(self, measure: str, cells: list[Cell]) -> dict[str, int]:
        return {s: sum(c.best for c in cells if (c.measure, c.system) == (measure, s)) for s in self.systems}

    def _words(self, measure: str, cells: list[Cell]) -> Iterator[str]:
        ranks, best = self.ranks(measure, cells), self._best(measure, cells)
        if not ranks:
            return
        n = sum(best.values())
        order = sorted(ranks, key=lambda system: ranks[system])
        yield f"Mean rank over {n} data sets, 1 is best: " + ", ".join(f"{s} {ranks[s]:.2f}" for s in order) + "."
        claimed = self.claims
        held = "bear that out" if 2 * best[claimed] > n else "do not bear that out"
        lost = [c for c in cells if (c.measure, c.system) == (measure, claimed) and c.mark]
        yield (
            f"The paper finds {claimed} best on most of its data sets; its figures are lost. Ours {held}: {claimed} is best on "
            f"{best[claimed]} of {n}, significantly behind the best on {len(lost)}, and place {order.index(claimed) + 1} of "
            f"{len(order)} by mean rank."
        )


def p_value(values: np.ndarray, best: np.ndarray) -> float:
    """Return the two-sided p-value of Wilcoxon's signed rank test; 1 where no pair differs."""
    if not (values != best).any():
        return 1.0
    return float(wilcoxon(values, best, method="approx" if (values == best).any() else "auto").pvalue)


def _entry(cells: list[Cell], measure: str, dataset: str, system: str) -> Entry:
    cell = next((c for c in cells if (c.measure, c.dataset, c.system) == (measure, dataset, system)), None)
    if cell is None:
        return Entry(NOT_RUN)
    return Entry(f"{cell.mean:.4f}{cell.mark}", (f"± {cell.deviation:.4f}",), "better" if cell.best else "")

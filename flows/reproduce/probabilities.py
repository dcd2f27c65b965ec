"""The kind `probabilities`: AUC, Brier score and calibration loss over random splits, with ranks and Wilcoxon tests."""

import itertools
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pydantic import Field, model_validator
from scipy.stats import wilcoxon

from aucdist.data.block import Block
from aucdist.engine.blocks import LocalBlocks, block_seed
from aucdist.errors import InputError
from aucdist.estimators import ESTIMATORS
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.probability import brier, calibration_loss
from aucdist.metrics.ranking import auc
from flows.config.base import Strict
from flows.config.model import ModelConfig
from flows.reproduce.kind import NOT_RUN, DataSet, Result, Results, Task, csv_bytes, results_of
from flows.reproduce.page import PageSection, TableCell
from flows.reproduce.protocol import ProtocolKind, Splits, train_and_test
from flows.reproduce.rankings import best_systems, rankings, ranks

Measure = Literal["auc", "brier", "calibration"]
MEASURE_NAMES: dict[Measure, str] = {"auc": "AUC", "brier": "Brier score", "calibration": "Calibration loss"}
HIGHER_IS_BETTER = {"auc"}
SIGNIFICANCE_MARKS = ((0.05, "**"), (0.1, "*"))
COLUMNS = ("measure", "dataset", "system", "mean", "deviation", "rank", "p_value")


class ProbabilitySystem(Strict):
    """A model with probabilities."""

    model: ModelConfig
    smote: bool = Field(default=False, description="Fit to rows whose classes SMOTE has balanced")

    @model_validator(mode="after")
    def _check_probabilities(self) -> "ProbabilitySystem":
        if not hasattr(self.model.built, "predict_proba"):
            raise InputError(f"{self.model.estimator} gives no probabilities")
        return self


@dataclass(frozen=True)
class ProbabilityResult:
    """A system on a data set by one measure.

    `mean` and `deviation`: over the splits.
    `rank`: among the systems on this data set; equal means share their rank.
    `best`: whether no system has a better mean.
    `p_value`: of the two-sided Wilcoxon test against a best system.
    """

    measure: str
    dataset: str
    system: str
    mean: float
    deviation: float
    rank: float
    best: bool
    p_value: float

    @property
    def mark(self) -> str:
        """The paper's mark for a significant difference from the best system."""
        return "" if self.best else next((mark for level, mark in SIGNIFICANCE_MARKS if self.p_value < level), "")


class Probabilities(ProtocolKind):
    """One table for each measure."""

    kind: Literal["probabilities"]
    tables: dict[Measure, str] = Field(description="The printed table of each measure")
    systems: dict[str, ProbabilitySystem]
    datasets: dict[str, DataSet]
    protocol: Splits = Field(default_factory=Splits)

    def packages(self) -> set[str]:
        """Return the package of SMOTE where a system uses it."""
        return {"imblearn"} if any(system.smote for system in self.systems.values()) else set()

    def tasks_of_systems(self, dataset: str) -> dict[str, Task]:
        """Return the model of each system, and whether SMOTE comes before it."""
        return {
            name: {"model": s.model.model_dump(exclude_none=True), "smote": s.smote} for name, s in self.systems.items()
        }

    @staticmethod
    def run_task(task: Task) -> Result:
        """Return the measures on the test rows."""
        train, test = train_and_test(task)
        start = time.perf_counter()
        if task["smote"]:
            train = oversample(train, block_seed(task["protocol"]["seed"], task["repeat"], 1) % 2**31)
        parameters = task["model"] | {"lam": task["protocol"]["penalty"] / train.n_samples}
        model: Any = ESTIMATORS[parameters.pop("estimator")]()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a fit that stops at its limit
            model.set_params(**parameters).fit(LocalBlocks([train]))
        seconds = time.perf_counter() - start
        scores = ScoreCounts.from_scores(test.y, model.decision_function(test.X))
        probabilities = ScoreCounts.from_scores(test.y, model.predict_proba(test.X)[:, 1])
        return {
            "auc": auc(scores), "brier": brier(probabilities), "calibration": calibration_loss(probabilities),
            "xi": getattr(model, "xi_", None), "seconds": seconds,
        }  # fmt: skip

    def page_sections(self, name: str, results: Results) -> list[PageSection]:
        """Return a table for each measure."""
        cells = self.cells(results)
        by_key = {(c.measure, c.dataset, c.system): c for c in cells}
        return [
            PageSection(
                f"{table}: {self.title}, {MEASURE_NAMES[measure]}",
                [
                    f"Mean and standard deviation over {self.protocol.repeats} splits. ** and *: two-sided Wilcoxon test against "
                    "the best of the row, p below 0.05 and 0.1."
                ],
                ["Data set", *self.systems],
                [
                    (key, [_table_cell(by_key.get((measure, key, system))) for system in self.systems])
                    for key in self.datasets
                ],
            )
            for measure, table in self.tables.items()
        ]

    def csv_files(self, name: str, results: Results) -> dict[str, bytes]:
        """Return the cells."""
        return {f"{name}.csv": csv_bytes(COLUMNS, [vars(cell) for cell in self.cells(results)])}

    def summary(self, results: Results) -> dict[str, Any]:
        """Return mean ranks, on how many data sets each system is the best, and on how many it is significantly behind."""
        cells = self.cells(results)
        summary: dict[str, Any] = {}
        for measure in self.tables:
            of_measure = [cell for cell in cells if cell.measure == measure]
            by_dataset = [
                {cell.system: cell.mean for cell in of_dataset}
                for _, of_dataset in itertools.groupby(of_measure, key=lambda cell: cell.dataset)
            ]
            behind = {s: sum(bool(c.mark) for c in of_measure if c.system == s) for s in self.systems}
            ranked = rankings(by_dataset, higher_is_better=measure in HIGHER_IS_BETTER)
            summary[measure] = ranked | {"significantly_behind": behind}
        return summary

    def cells(self, results: Results) -> list[ProbabilityResult]:
        """Return the cells of the data sets on which all systems were run."""
        return [
            cell
            for measure, dataset in itertools.product(self.tables, self.datasets)
            for cell in self._cells_of(measure, dataset, results)
        ]

    def _cells_of(self, measure: Measure, dataset: str, results: Results) -> Iterator[ProbabilityResult]:
        values = {
            system: np.array([run[measure] for run in results_of(results, dataset, system)]) for system in self.systems
        }
        if not all(len(v) for v in values.values()):
            return
        means = {system: float(v.mean()) for system, v in values.items()}
        higher = measure in HIGHER_IS_BETTER
        best, rank = best_systems(means, higher_is_better=higher), ranks(means, higher_is_better=higher)
        for system, v in values.items():
            deviation = float(v.std(ddof=1)) if len(v) > 1 else 0.0
            p = p_value(v, values[best[0]])
            yield ProbabilityResult(measure, dataset, system, means[system], deviation, rank[system], system in best, p)


def oversample(train: Block, seed: int) -> Block:
    """Return the rows with the smaller class oversampled to the size of the larger one, by SMOTE.

    SMOTE uses 5 neighbours, or as many as the smaller class has.
    """
    from imblearn.over_sampling import SMOTE

    n_minority = int(min((train.y > 0).sum(), (train.y < 0).sum()))
    sampler = SMOTE(sampling_strategy=1.0, k_neighbors=min(5, n_minority - 1), random_state=seed)
    X, y = sampler.fit_resample(np.asarray(train.X), train.y)
    return Block.of(X, y)


def p_value(values: np.ndarray, best: np.ndarray) -> float:
    """Return the two-sided p-value of Wilcoxon's signed rank test; 1 where no pair differs."""
    if not (values != best).any():
        return 1.0
    return float(wilcoxon(values, best, method="approx" if (values == best).any() else "auto").pvalue)


def _table_cell(cell: ProbabilityResult | None) -> TableCell:
    if cell is None:
        return TableCell(NOT_RUN)
    return TableCell(f"{cell.mean:.4f}{cell.mark}", (f"± {cell.deviation:.4f}",), "better" if cell.best else "")

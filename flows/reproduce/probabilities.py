"""The kind `probabilities`: AUC, Brier score and calibration loss over random splits, with ranks and Wilcoxon tests."""

from typing import Any, Literal

import numpy as np
import pandas as pd
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
from flows.reproduce.kind import (
    DataSet,
    ProtocolKind,
    Result,
    Results,
    Splits,
    Task,
    by_system,
    rankings,
    ranks,
    results_of,
    train_and_test,
)
from flows.reproduce.page import PageSection, Report, TableCell

Measure = Literal["auc", "brier", "calibration"]
MEASURE_NAMES: dict[Measure, str] = {"auc": "AUC", "brier": "Brier score", "calibration": "Calibration loss"}
HIGHER_IS_BETTER = {"auc"}
COLUMNS = ("measure", "dataset", "system", "mean", "deviation", "rank", "p_value")
"""The columns of the cells, which are the lines of the CSV.

`mean`, `deviation`: over the splits.
`rank`: among the systems on this data set; equal means share their rank.
`p_value`: of the two-sided Wilcoxon test against a best system.
"""


class ProbabilitySystem(Strict):
    """A model with probabilities."""

    model: ModelConfig
    smote: bool = False
    """Fit to rows whose classes SMOTE has balanced"""

    @model_validator(mode="after")
    def _check_probabilities(self) -> "ProbabilitySystem":
        if not hasattr(self.model.built, "predict_proba"):
            raise InputError(f"{self.model.estimator} gives no probabilities")
        return self


class Probabilities(ProtocolKind):
    """One table for each measure."""

    kind: Literal["probabilities"]
    tables: dict[Measure, str]
    """The printed table of each measure"""
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
        if task["smote"]:
            train = oversample(train, block_seed(task["protocol"]["seed"], task["repeat"], 1) % 2**31)
        parameters = task["model"] | {"lam": task["protocol"]["penalty"] / train.n_samples}
        model = ESTIMATORS[parameters.pop("estimator")]().set_params(**parameters).fit(LocalBlocks([train]))
        scores = ScoreCounts.from_scores(test.y, model.decision_function(test.X))
        probabilities = ScoreCounts.from_scores(test.y, model.predict_proba(test.X)[:, 1])
        return {"auc": auc(scores), "brier": brier(probabilities), "calibration": calibration_loss(probabilities)}

    def report(self, name: str, results: Results) -> Report:
        """Return a table for each measure, mean ranks, and how often each system is the best and significantly behind."""
        cells = self.cells(results)
        caption = (
            f"Mean and standard deviation over {self.protocol.repeats} splits. ** and *: two-sided Wilcoxon test against the "
            "best of the row, p below 0.05 and 0.1."
        )
        sections: list[PageSection] = []
        counts: dict[str, Any] = {}
        for measure, table in self.tables.items():
            measured = cells[cells["measure"] == measure]
            title = f"{table}: {self.title}, {MEASURE_NAMES[measure]}"
            sections.append(self.table_section(title, caption, measured, _cell))
            means = by_system(measured, "mean", self.systems)
            behind = measured["system"][measured["mark"] != ""].value_counts().reindex(list(self.systems), fill_value=0)
            ranked = rankings(means, higher_is_better=measure in HIGHER_IS_BETTER)
            counts[measure] = ranked | {"significantly_behind": behind.to_dict()}
        return Report(sections, cells[list(COLUMNS)], counts)

    def cells(self, results: Results) -> pd.DataFrame:
        """Return the cells of the data sets on which all systems were run, with the paper's marks of those behind the best."""
        cells = [pd.DataFrame(columns=[*COLUMNS, "best", "mark"])]
        for measure in self.tables:
            for dataset in self.datasets:
                values = pd.DataFrame(
                    {s: pd.Series([run[measure] for run in results_of(results, dataset, s)]) for s in self.systems}
                )
                means = values.mean()
                if means.isna().any():
                    continue
                rank = ranks(means.to_frame().T, higher_is_better=measure in HIGHER_IS_BETTER).iloc[0]
                best = rank == rank.min()
                p = values.apply(p_value, best=values[best.idxmax()])
                mark = np.select([best, p < 0.05, p < 0.1], ["", "**", "*"], "")
                about = {"measure": measure, "dataset": dataset, "system": means.index, "mean": means}
                deviation = values.std().fillna(0.0)
                cells.append(
                    pd.DataFrame(
                        about | {"deviation": deviation, "rank": rank, "p_value": p, "best": best, "mark": mark}
                    )
                )
        return pd.concat(cells if len(cells) == 1 else cells[1:], ignore_index=True)


def oversample(train: Block, seed: int) -> Block:
    """Return the rows with the smaller class oversampled to the size of the larger one, by SMOTE.

    SMOTE uses 5 neighbours, or as many as the smaller class has.
    """
    from imblearn.over_sampling import SMOTE

    n_minority = int(min((train.y > 0).sum(), (train.y < 0).sum()))
    sampler = SMOTE(sampling_strategy=1.0, k_neighbors=min(5, n_minority - 1), random_state=seed)
    X, y = sampler.fit_resample(np.asarray(train.X), train.y)
    return Block.of(X, y)


def p_value(values: Any, best: Any) -> float:
    """Return the two-sided p-value of Wilcoxon's signed rank test; 1 where no pair differs."""
    if not (values != best).any():
        return 1.0
    return float(wilcoxon(values, best, method="approx" if (values == best).any() else "auto").pvalue)


def _cell(lines: pd.DataFrame) -> TableCell:
    cell = lines.iloc[0]
    return TableCell(f"{cell['mean']:.4f}{cell.mark}", (f"± {cell.deviation:.4f}",), "better" if cell.best else "")

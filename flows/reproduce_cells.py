"""From the results of the folds to the cells of a table: ours, the paper's, and how far they are apart."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from flows.reproduce_config import Course, Table
from flows.reproduce_tasks import Params

WITHIN_1, WITHIN_2, BETTER, MISS = "within 1", "within 2", "better", "miss"


@dataclass(frozen=True)
class Key:
    """Where a result belongs."""

    experiment: str
    dataset: str
    system: str
    repeat: int
    fold: int


Results = dict[Key, Params]


@dataclass(frozen=True)
class Cell:
    """A system on a data set.

    Attributes
    ----------
    dataset, system : str
    paper, paper_deviation : float or None
        As printed; None where nothing is.
    auc, deviation : float or None
        Mean and standard deviation (n - 1) over the folds; None where the data set is absent.
    n_folds : int
    chosen : str
        The parameters chosen; how often each, where every fold chooses its own.
    """

    COLUMNS: ClassVar[tuple[str, ...]] = (
        "dataset", "system", "paper", "paper_deviation", "auc", "deviation", "difference", "in_deviations", "verdict",
        "n_folds", "chosen",
    )  # fmt: skip

    dataset: str
    system: str
    paper: float | None = None
    paper_deviation: float | None = None
    auc: float | None = None
    deviation: float | None = None
    n_folds: int = 0
    chosen: str = ""

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return None if self.auc is None or self.paper is None else self.auc - self.paper

    @property
    def in_deviations(self) -> float | None:
        """The difference in units of the paper's deviation; of ours where it prints none."""
        unit = self.deviation if self.paper_deviation is None else self.paper_deviation
        return None if self.difference is None or not unit else self.difference / unit

    @property
    def verdict(self) -> str:
        """How the two compare; empty where there are not two."""
        if self.in_deviations is None:
            return ""
        if abs(self.in_deviations) <= 1:
            return WITHIN_1
        if self.in_deviations > 1:
            return BETTER
        return WITHIN_2 if self.in_deviations >= -2 else MISS

    def row(self) -> dict[str, Any]:
        """Return the cell as a row of the CSV."""
        found = {name: getattr(self, name) for name in self.COLUMNS}
        return {k: f"{v:.6g}" if isinstance(v, float) else "" if v is None else v for k, v in found.items()}


def cells_of(name: str, table: Table, results: Results) -> list[Cell]:
    """Return the cells of a table, data set by data set."""
    printed = {(t.dataset, t.system): (t.value, t.deviation) for t in table.targets}
    cells = []
    for dataset in table.datasets:
        for system, about in table.systems.items():
            paper, paper_deviation = printed.get((dataset, system), (None, None))
            areas = _areas(name, table, dataset, system, results)
            if areas is None:
                cells.append(Cell(dataset, system, paper, paper_deviation))
                continue
            chosen, values = _best(areas) if table.protocol.choose == "best" else _by_fold(areas)
            points = about.points(table.grid)
            words = _words([points[i] for i in chosen], list(table.grid if about.grid is None else about.grid))
            mean, deviation = float(values.mean()), float(values.std(ddof=1))
            cells.append(Cell(dataset, system, paper, paper_deviation, mean, deviation, len(values), words))
    return cells


def _areas(name: str, table: Table | Course, dataset: str, system: str, results: Results) -> np.ndarray | None:
    """Return the AUCs by fold and point of the grid, nan where a point was not run; None where nothing was."""
    found = [
        results[key]["auc"]
        for repeat in range(table.protocol.repeats)
        for fold in range(table.protocol.folds)
        if (key := Key(name, dataset, system, repeat, fold)) in results
    ]
    return np.array(found, dtype=float) if found else None


def grid_means(name: str, table: Table, dataset: str, system: str, results: Results) -> np.ndarray | None:
    """Return the mean AUC over the folds at every point of the grid."""
    areas = _areas(name, table, dataset, system, results)
    return None if areas is None else areas.mean(axis=0)


def _best(areas: np.ndarray) -> tuple[list[int], np.ndarray]:
    """Return the point whose mean over the folds is highest, and its AUCs."""
    best = int(np.argmax(areas.mean(axis=0)))
    return [best], areas[:, best]


def _by_fold(areas: np.ndarray) -> tuple[list[int], np.ndarray]:
    """Return the point that each fold chose, and its AUC there."""
    chosen = np.argmax(~np.isnan(areas), axis=1)
    return chosen.tolist(), areas[np.arange(len(areas)), chosen]


def _words(points: list[Params], names: list[str]) -> str:
    texts = [", ".join(f"{name}={point[name]:g}" for name in names) for point in points]
    counts = {text: texts.count(text) for text in dict.fromkeys(texts)}
    if len(counts) == 1:
        return texts[0]
    return "; ".join(f"{n} times {text}" for text, n in sorted(counts.items(), key=lambda item: -item[1]))


def tally(cells: list[Cell]) -> dict[str, Any]:
    """Return how many cells agree with the paper: what ``aucdist reproduce --json`` prints of a table."""
    verdicts = [cell.verdict for cell in cells]
    farthest = [
        {"dataset": c.dataset, "system": c.system, "paper": c.paper, "auc": c.auc, "in_deviations": c.in_deviations}
        for c in sorted(cells, key=lambda c: math.inf if c.in_deviations is None else c.in_deviations)
        if c.verdict in (MISS, WITHIN_2)
    ]
    return {
        "compared": sum(v != "" for v in verdicts),
        "within_1": verdicts.count(WITHIN_1),
        "better_by_more_than_1": verdicts.count(BETTER),
        "below_by_1_to_2": verdicts.count(WITHIN_2),
        "below_by_more_than_2": verdicts.count(MISS),
        "below": farthest,
    }

"""The cells of the kind `table`, and how many of them agree with the paper."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from flows.config.base import Strict
from flows.reproduce.datasets import NOT_RUN
from flows.reproduce.page import TableCell

WITHIN_1, WITHIN_2, BETTER, MISS = "within 1", "within 2", "better", "miss"
HIGHLIGHTS = {BETTER: "better", WITHIN_1: "", WITHIN_2: "below", MISS: "miss", "": ""}
ROUNDING = 1e-9
"""How far a difference may lie beyond the tolerance: subtraction of printed figures rounds."""


class Target(Strict):
    """A printed figure."""

    dataset: str
    system: str
    value: float
    deviation: float | None = None


@dataclass(frozen=True)
class TableResult:
    """A system on a data set.

    `paper` and `paper_deviation`: as printed; None where nothing is.
    `auc` and `deviation`: mean and standard deviation (n - 1) over the folds; None where the data set is absent.
    `chosen`: the chosen parameters, and how often each was chosen where every fold chooses its own.
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
        """Our figure minus the paper's."""
        return None if self.auc is None or self.paper is None else self.auc - self.paper

    @property
    def in_deviations(self) -> float | None:
        """The difference in units of the paper's deviation; of ours where it prints none."""
        unit = self.deviation if self.paper_deviation is None else self.paper_deviation
        return None if self.difference is None or not unit else self.difference / unit

    @property
    def verdict(self) -> str:
        """How the two compare; empty where one is missing."""
        if self.in_deviations is None:
            return ""
        if abs(self.in_deviations) <= 1:
            return WITHIN_1
        if self.in_deviations > 1:
            return BETTER
        return WITHIN_2 if self.in_deviations >= -2 else MISS

    def reaches(self, tolerance: float) -> bool:
        """Return whether our figure is at least the printed one minus a tolerance; False where one is missing."""
        return self.difference is not None and self.difference >= -tolerance - ROUNDING

    def row(self) -> dict[str, Any]:
        """Return the cell as a row of the CSV."""
        return {name: getattr(self, name) for name in self.COLUMNS}

    def table_cell(self, tolerance: float | None) -> TableCell:
        """Return the cell for the page; `tolerance` is that of the table."""
        here = NOT_RUN if self.auc is None else auc_text(self.auc, self.deviation)
        units = "" if self.in_deviations is None else f"{self.in_deviations:+.2f} deviations"
        missed = tolerance is not None and self.difference is not None and not self.reaches(tolerance)
        below = f"below print - {tolerance:g}" if missed else ""
        paper = printed_text(self.paper, self.paper_deviation)
        return TableCell(here, (paper, units, below, self.chosen), HIGHLIGHTS[self.verdict])


def auc_text(value: float, deviation: float | None) -> str:
    """Return an AUC with its deviation as text."""
    return f"{value:.4f}" + ("" if deviation is None else f" ± {deviation:.4f}")


def printed_text(value: float | None, deviation: float | None) -> str:
    """Return a printed AUC as text; empty where nothing is printed."""
    return "" if value is None else f"paper {auc_text(value, deviation)}"


def count_agreement(cells: Sequence[TableResult]) -> dict[str, Any]:
    """Return how many cells agree with the paper, and those that are below it."""
    verdicts = [cell.verdict for cell in cells]
    below = [
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
        "below": below,
    }


def agreement_text(found: dict[str, Any]) -> str:
    """Return the counts of `count_agreement` as a sentence."""
    return (
        f"Of {found['compared']} figures compared, {found['within_1']} are within one deviation of the paper's, "
        f"{found['better_by_more_than_1']} are better by more, {found['below_by_1_to_2']} are one to two deviations below, "
        f"and {found['below_by_more_than_2']} are farther below."
    )

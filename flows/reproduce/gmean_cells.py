"""The cells of the kind `g-mean`, and the verdicts on the claims of a paper."""

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from flows.config.base import Strict
from flows.reproduce.rankings import is_ahead

Measure = Literal["train", "test", "seconds"]
MEASURES: tuple[Measure, ...] = ("train", "test", "seconds")
COLUMNS = ("dataset", "system", "measure", "paper", "here", "deviation", "difference", "chosen")


class Target(Strict):
    """A printed figure: a G-mean in per cent, or seconds."""

    dataset: str
    system: str
    measure: Measure
    value: float


class Claim(Strict):
    """A statement of the paper: one system is ahead of others."""

    text: str
    system: str
    than: list[str] = Field(min_length=1)
    measures: list[Measure] = Field(min_length=1)
    holds_on: Literal["all", "most"] = Field(
        description="The share of the data sets on which it holds according to the paper"
    )


@dataclass(frozen=True)
class GMeanResult:
    """A system on a data set: the mean over the folds (of seconds the median), its deviation, the printed figure; or None."""

    dataset: str
    system: str
    measure: Measure
    paper: float | None = None
    here: float | None = None
    deviation: float | None = None
    chosen: str = ""

    @property
    def difference(self) -> float | None:
        """Our figure minus the paper's."""
        return None if self.here is None or self.paper is None else self.here - self.paper

    @property
    def reached(self) -> bool:
        """Whether our figure is at least as good as the printed one; False where one of them is missing."""
        if self.difference is None:
            return False
        return self.difference <= 0 if self.measure == "seconds" else self.difference >= 0

    def row(self) -> dict[str, Any]:
        """Return the cell as a row of the CSV."""
        return {name: getattr(self, name) for name in COLUMNS}


def claim_verdict(claim: Claim, cells: Sequence[GMeanResult]) -> str:
    """Return on how many data sets a claim holds in print and in this run; a tie is no lead."""
    printed, here = _leads(claim, cells, "paper"), _leads(claim, cells, "here")
    in_print = f"In print: {_leads_text(printed)}. " if printed else ""
    if not here:
        return f"{in_print}Here: not run."
    holds = [ahead == total if claim.holds_on == "all" else 2 * ahead > total for ahead, total in here.values()]
    verdict = "supported" if all(holds) else "supported in part" if any(holds) else "not supported"
    return f"{in_print}Here: {verdict}; {_leads_text(here)}."


Comparison = tuple[Measure, str]
"""A measure and a rival."""


def _leads(
    claim: Claim, cells: Sequence[GMeanResult], source: Literal["paper", "here"]
) -> dict[Comparison, tuple[int, int]]:
    """Return on how many data sets the system of a claim is ahead of each rival, and how many have both figures."""
    found = {}
    for measure, rival in itertools.product(claim.measures, claim.than):
        pairs = values_by_dataset(cells, measure, (claim.system, rival), source)
        higher = measure != "seconds"
        ahead = sum(is_ahead(values[claim.system], values[rival], higher_is_better=higher) for values in pairs)
        if pairs:
            found[measure, rival] = (ahead, len(pairs))
    return found


def _leads_text(leads: Mapping[Comparison, tuple[int, int]]) -> str:
    texts = {"train": "higher training G-mean", "test": "higher test G-mean", "seconds": "less time"}
    parts = [
        f"{texts[measure]} than {rival} on {ahead} of {total} data sets"
        for (measure, rival), (ahead, total) in leads.items()
    ]
    return ", ".join(parts)


def values_by_dataset(
    cells: Sequence[GMeanResult], measure: Measure, systems: Collection[str], source: Literal["paper", "here"] = "here"
) -> list[dict[str, float]]:
    """Return the values of the systems on each data set for which all of them have one."""
    found: dict[str, dict[str, float]] = {}
    for cell in cells:
        value = getattr(cell, source)
        if cell.measure == measure and cell.system in systems and value is not None:
            found.setdefault(cell.dataset, {})[cell.system] = value
    return [values for values in found.values() if len(values) == len(systems)]


def best_here(cells: Sequence[GMeanResult], dataset: str) -> float:
    """Return the highest test G-mean of any system on a data set."""
    return max(c.here for c in cells if (c.dataset, c.measure) == (dataset, "test") and c.here is not None)

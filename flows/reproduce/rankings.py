"""Ranks of systems on data sets. Equal values share a rank, and only a system that is alone ahead wins."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

DECIMALS = 12
"""Values that agree to so many decimals are equal: what differs beyond is rounding."""

Values = Mapping[str, float]
"""The value of each system on one data set."""


@dataclass(frozen=True)
class BestCounts:
    """On how many data sets a system is the best.

    `alone`: data sets on which every other system is worse.
    `shared`: data sets on which it has the best value together with another system.
    """

    alone: int
    shared: int

    def sentence(self, n: int) -> str:
        """Return the counts as the predicate of a sentence about a system on n data sets."""
        shared = f", and shares the best value on {self.shared}" if self.shared else ""
        return f"is the best on {self.alone} of {n}{shared}"


def ranks(values: Values, *, higher_is_better: bool) -> dict[str, float]:
    """Return the rank of each system on one data set; 1 is best, and equal values get the mean of their ranks."""
    rounded = np.round(np.array(list(values.values()), dtype=float), DECIMALS)
    return dict(zip(values, rankdata(-rounded if higher_is_better else rounded).tolist(), strict=True))


def mean_ranks(by_dataset: Sequence[Values], *, higher_is_better: bool) -> dict[str, float]:
    """Return the mean rank of each system over data sets, all of which have the same systems."""
    if not by_dataset:
        return {}
    by_rank = [ranks(values, higher_is_better=higher_is_better) for values in by_dataset]
    return {system: float(np.mean([found[system] for found in by_rank])) for system in by_dataset[0]}


def best_systems(values: Values, *, higher_is_better: bool) -> list[str]:
    """Return the systems with the best value on one data set, more than one if they tie."""
    rounded = {system: round(float(value), DECIMALS) for system, value in values.items()}
    best = max(rounded.values()) if higher_is_better else min(rounded.values())
    return [system for system, value in rounded.items() if value == best]


def is_ahead(value: float, rival: float, *, higher_is_better: bool) -> bool:
    """Return whether a value is strictly better than another one."""
    difference = round(float(value), DECIMALS) - round(float(rival), DECIMALS)
    return difference > 0 if higher_is_better else difference < 0


def best_counts(by_dataset: Sequence[Values], *, higher_is_better: bool) -> dict[str, BestCounts]:
    """Return on how many data sets each system is the best, alone or with others."""
    if not by_dataset:
        return {}
    best = [best_systems(values, higher_is_better=higher_is_better) for values in by_dataset]
    return {
        system: BestCounts(sum(found == [system] for found in best), sum(system in found and len(found) > 1 for found in best))
        for system in by_dataset[0]
    }  # fmt: skip


def rank_sentence(mean_rank: Mapping[str, float], n: int) -> str:
    """Return the mean ranks as a sentence, the best one first."""
    order = sorted(mean_rank, key=lambda system: mean_rank[system])
    listed = ", ".join(f"{system} {mean_rank[system]:.2f}" for system in order)
    return f"Mean rank over {n} data sets (1 is best, ties share their mean rank): {listed}."

"""Ranks of systems on data sets. Equal values share a rank, and only a system that is alone ahead wins."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import rankdata

DECIMALS = 12
"""Values that agree to so many decimals are equal: what differs beyond is rounding."""

Values = Mapping[str, float]
"""The value of each system on one data set."""


def ranks(values: Values, *, higher_is_better: bool) -> dict[str, float]:
    """Return the rank of each system on one data set; 1 is best, and equal values get the mean of their ranks."""
    rounded = np.round(np.array(list(values.values()), dtype=float), DECIMALS)
    return dict(zip(values, rankdata(-rounded if higher_is_better else rounded).tolist(), strict=True))


def best_systems(values: Values, *, higher_is_better: bool) -> list[str]:
    """Return the systems with the best value on one data set, more than one if they tie."""
    rounded = {system: round(float(value), DECIMALS) for system, value in values.items()}
    best = max(rounded.values()) if higher_is_better else min(rounded.values())
    return [system for system, value in rounded.items() if value == best]


def is_ahead(value: float, rival: float, *, higher_is_better: bool) -> bool:
    """Return whether a value is strictly better than another one."""
    return best_systems({"value": value, "rival": rival}, higher_is_better=higher_is_better) == ["value"]


def rankings(by_dataset: Sequence[Values], *, higher_is_better: bool) -> dict[str, Any]:
    """Return the mean rank of each system over data sets with the same systems, and on how many it is the best.

    `best_alone` counts the data sets on which every other system is worse, `best_shared` those on which another one is level.
    """
    systems = list(by_dataset[0]) if by_dataset else []
    by_rank = [ranks(values, higher_is_better=higher_is_better) for values in by_dataset]
    best = [best_systems(values, higher_is_better=higher_is_better) for values in by_dataset]
    return {
        "data_sets": len(by_dataset),
        "mean_rank": {system: float(np.mean([rank[system] for rank in by_rank])) for system in systems},
        "best_alone": {system: sum(names == [system] for names in best) for system in systems},
        "best_shared": {system: sum(system in names and len(names) > 1 for names in best) for system in systems},
    }

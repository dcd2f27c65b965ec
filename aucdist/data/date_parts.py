"""The numbers that a date may become. Loading this module loads nothing else."""

from collections.abc import Iterable
from typing import Literal, get_args

DatePart = Literal["year", "month", "weekday", "hour", "days"]
PARTS: tuple[DatePart, ...] = get_args(DatePart)
"""Monday is weekday 0. `hour` has the minutes as a fraction, and `days`, which counts from 1970-01-01 in UTC, the time."""


def date_features(column: str, parts: Iterable[str]) -> list[str]:
    """Return the names of the features of a column of dates."""
    return [f"{column}.{part}" for part in parts]

"""The summaries of the experiments as lines of text, for the terminal and for Prefect."""

from collections.abc import Iterator, Mapping
from typing import Any


def summary_entries(summary: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each count of a summary; lists, which hold single cases, are left out.

    The numbers of one mapping become one text; every string has an entry of its own.

    `summary`: what `Kind.summary` returns.
    """
    numbers = {key: value for key, value in summary.items() if isinstance(value, int | float)}
    if numbers:
        yield prefix, ", ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in numbers.items())
    for key, value in summary.items():
        name = f"{prefix} {key}".strip()
        if isinstance(value, str):
            yield name.removesuffix("."), value
        elif isinstance(value, Mapping):
            yield from summary_entries(value, name)

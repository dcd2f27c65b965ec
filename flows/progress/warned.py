"""Warnings of Python as notes of a run."""

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from flows.progress.console import RunObserver


@contextmanager
def warnings_to(observer: RunObserver, ignored: Sequence[type[Warning]] = ()) -> Iterator[None]:
    """Send warnings to `observer` as notes, without the paths of Python's own lines.

    Those that differ in their numbers only, as from the fits of several folds, are one note, which has the first and the count.

    `ignored`: warnings of these kinds are left out.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for category in ignored:
            warnings.simplefilter("ignore", category)
        yield
    alike: dict[tuple[str, str], list[str]] = {}
    for warning in caught:
        kind, text = warning.category.__name__, str(warning.message)
        alike.setdefault((kind, re.sub(r"[0-9.]+", "", text)), []).append(text)
    for (kind, _), texts in alike.items():
        more = f" (and {len(texts) - 1} more like it)" if len(texts) > 1 else ""
        observer.note(f"{kind}: {texts[0]}{more}")

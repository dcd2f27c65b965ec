"""Docstrings of estimators: what a parameter or an attribute is stands once, with the class that brings it."""

import inspect
import re

SECTIONS = ("Parameters", "Attributes")
ENTRY = re.compile(r"\n(?=\S)")


def inherit_entries(estimator: type) -> None:
    """Complete the docstring of a class: behind its own parameters and attributes come those that its base classes describe.

    `estimator`: what it describes itself stays as it is.
    """
    text = inspect.cleandoc(vars(estimator).get("__doc__") or "")
    for title in SECTIONS:
        own = _entries(title, text)
        entries = list(own)
        known = {name for entry in own for name in _names(entry)}
        for base in estimator.__mro__[1:]:
            for entry in _entries(title, inspect.cleandoc(base.__doc__ or "")):
                if not known.issuperset(_names(entry)):
                    known |= _names(entry)
                    entries.append(entry)
        if own:
            text = text.replace("\n".join(own), "\n".join(entries), 1)
    if text:
        estimator.__doc__ = text


def _entries(title: str, text: str) -> list[str]:
    """Return the entries of a section, none without that section."""
    found = re.search(rf"^{title}\n-+\n(.+?)(?=\n\n\w+\n-+\n|\Z)", text, re.MULTILINE | re.DOTALL)
    return [] if found is None else ENTRY.split(found[1])


def _names(entry: str) -> set[str]:
    """Return the names that an entry such as ``lam1, lam2 : float`` describes."""
    return set(entry.split(" : ")[0].split(", "))

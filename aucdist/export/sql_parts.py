"""Pieces of SQL: names, texts, numbers, sums and cases, written so that every system reads the same."""

import math
import re
from collections.abc import Iterable, Sequence

from aucdist.errors import InputError

PART = re.compile(r'"(?:[^"]|"")*"|[^".]+')


def identifier(name: str) -> str:
    """Return a name in quotes.

    Raises InputError if it is empty or has the character NUL, which no name can have.
    """
    if not name or "\0" in name:
        raise InputError(f"{name!r} cannot be a name in SQL")
    return '"' + name.replace('"', '""') + '"'


def table_name(name: str) -> str:
    """Return the name of a table in quotes; dots stand between schema and table, except within quotes.

    Raises InputError if it is no such name.
    """
    parts = PART.findall(name)
    whole = ".".join(parts)
    if not parts or whole != name:
        raise InputError(f'{name!r} is no name of a table: give clicks, sales.clicks or "a.b" (in quotes, with a dot)')
    plain = [part[1:-1].replace('""', '"') if part.startswith('"') else part for part in parts]
    return ".".join(identifier(part) for part in plain)


def text(value: str) -> str:
    """Return a text in quotes.

    Raises InputError if it has the character NUL, which no text can have.
    """
    if "\0" in value:
        raise InputError(f"{value!r} has the character NUL, which SQL has no text for")
    return "'" + value.replace("'", "''") + "'"


def number(value: float) -> str:
    """Return a number with as many digits as tell it from all other floats; its exponent makes it one of double precision."""
    if not math.isfinite(value):
        raise InputError(f"{value} is not a number that SQL can write")
    digits = repr(float(value)).upper()
    digits = digits if "E" in digits else f"{digits}E0"
    return f"({digits})" if digits.startswith("-") else digits


def total(terms: Sequence[str]) -> str:
    """Return the sum of terms, in brackets by halves: a system may not take thousands in a row."""
    if len(terms) <= 4:
        between = "\n    + " if any("CASE" in term for term in terms) else " + "  # a line for each case
        return between.join(terms) if terms else number(0.0)
    middle = len(terms) // 2
    return f"({total(terms[:middle])})\n    + ({total(terms[middle:])})"


def case(cases: Iterable[tuple[str, str]], otherwise: str) -> str:
    """Return ``CASE WHEN condition THEN value ... ELSE otherwise END``, or what is left of it without cases."""
    whens = " ".join(f"WHEN {condition} THEN {value}" for condition, value in cases)
    return f"CASE {whens} ELSE {otherwise} END" if whens else otherwise


def one_of(expression: str, values: Iterable[str]) -> str:
    """Return the condition that an expression is one of some texts."""
    return f"{expression} IN ({', '.join(text(value) for value in values)})"


def polynomial(coefs: Sequence[float], x: str) -> str:
    """Return a polynomial whose highest power comes first."""
    found = number(coefs[0])
    for coef in coefs[1:]:
        found = f"({found} * {x} + {number(coef)})"
    return found


def free_name(wanted: str, taken: set[str]) -> str:
    """Return a name that none of those taken is in any case of letters, and take it."""
    name = wanted
    while name.casefold() in taken:
        name += "_"
    taken.add(name.casefold())
    return name

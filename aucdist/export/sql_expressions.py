"""SQL expressions that all supported systems evaluate alike: names, texts, numbers, sums, cases, dates and scores."""

import math
import re
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from aucdist.errors import InputError
from aucdist.export.portable import Kernel, Linear, Node, Portable, Trees, trees_of
from aucdist.maps.explain import Additive

PART = re.compile(r'"(?:[^"]|"")*"|[^".]+')
DAY_OF_EPOCH = 2440588
"""The Julian day of 1970-01-01, a Thursday. The Julian day of each Monday is a multiple of 7."""
IsCategory = Callable[[int, str], str]


def identifier(name: str) -> str:
    """Return a name in quotes.

    Raises InputError if it is empty or has the character NUL, which no name can have.
    """
    if not name or "\0" in name:
        raise InputError(
            f"{name!r} cannot be a name in SQL: rename the column; a name must not be empty or contain NUL"
        )
    return '"' + name.replace('"', '""') + '"'


def table_name(name: str) -> str:
    """Return the name of a table in quotes; dots stand between schema and table, except within quotes.

    Raises InputError if it is no such name.
    """
    parts = PART.findall(name)
    whole = ".".join(parts)
    if not parts or whole != name:
        raise InputError(
            f'{name!r} is not the name of a table: give clicks, sales.clicks or "a.b" (in quotes, with a dot)'
        )
    plain = [part[1:-1].replace('""', '"') if part.startswith('"') else part for part in parts]
    return ".".join(identifier(part) for part in plain)


def text(value: str) -> str:
    """Return a text in quotes.

    Raises InputError if it has the character NUL, which no text can have.
    """
    if "\0" in value:
        raise InputError(
            f"{value!r} has the character NUL, which a text of SQL cannot hold: replace it, or export to json"
        )
    return "'" + value.replace("'", "''") + "'"


def number(value: float) -> str:
    """Return a number with the shortest digits that restore the same float. Its exponent makes it a double."""
    if not math.isfinite(value):
        raise InputError(f"{value} cannot be written as a number of SQL: export to json")
    digits = repr(float(value)).upper()
    digits = digits if "E" in digits else f"{digits}E0"
    return f"({digits})" if digits.startswith("-") else digits


def total(terms: Sequence[str]) -> str:
    """Return the sum of terms, in brackets by halves, because some systems do not accept thousands of terms in a row."""
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


def date_part(timestamp: str, part: str) -> str:
    """Return a part of a date, one of `aucdist.data.dataset.PARTS`, as a number of double precision.

    `timestamp`: the expression of a timestamp without a time zone.
    """

    def field(name: str) -> str:
        """Return the expression of a part of the time."""
        return f"CAST(EXTRACT({name} FROM {timestamp}) AS DOUBLE PRECISION)"

    if part in ("year", "month"):
        return field(part.upper())
    if part == "hour":
        return f"({field('HOUR')} + {field('MINUTE')} / 6E1)"
    # The Julian day of the Gregorian calendar: years begin in March, so that leap days end them.
    early = f"FLOOR((14 - {field('MONTH')}) / 1.2E1)"
    y, m = f"({field('YEAR')} + 4800 - {early})", f"({field('MONTH')} + 12 * {early} - 3)"
    days = f"FLOOR((153 * {m} + 2) / 5E0) + 365 * {y} + FLOOR({y} / 4E0) - FLOOR({y} / 1E2) + FLOOR({y} / 4E2)"
    day = f"({field('DAY')} + {days} - 32045)"
    if part == "weekday":
        return f"({day} - 7E0 * FLOOR({day} / 7E0))"
    seconds = f"({field('HOUR')} * 3.6E3 + {field('MINUTE')} * 6E1 + {field('SECOND')})"
    return f"({day} - {DAY_OF_EPOCH}E0 + {seconds} / 8.64E4)"


def score_of(described: Portable, values: Sequence[str], texts: dict[int, str], is_category: IsCategory) -> str:
    """Return the score of a row that has one.

    `values`: the expression of each feature's value; of a kernel of each scaled feature, and of the sum of their
        squares.
    `texts`: the expression of each column whose categories are there as texts.
    `is_category`: from a column and a category to the condition that the column has it.
    """
    score = described.score
    if isinstance(score, Kernel):
        *z, square = values
        terms = [number(score.constant)]
        terms += [f"{number(weight)} * {name}" for weight, name in zip(score.weights, z, strict=True) if weight]
        for landmark, amount in zip(score.landmarks, score.amounts, strict=True):
            products = [f"{number(2.0 * place)} * {name}" for place, name in zip(landmark, z, strict=True) if place]
            distance = f"{total([number(-float(landmark @ landmark)), *products])} - {square}"
            # Rounding can make a distance slightly negative; and some systems refuse to underflow.
            exponent = f"GREATEST(LEAST(({distance}) / {number(score.width**2)}, 0E0), -7E2)"
            terms.append(f"{number(amount)} * EXP({exponent})")
        return total(terms)
    if isinstance(score, Trees):
        return total([number(score.constant), *(_tree(tree, values) for tree in score.trees)])
    adds, pairs = _adds(score, values)
    constant, terms = score.constant, []
    for i, features in enumerate(described.features_by_column):
        own = [(j, *adds[j]) for j in features if j in adds]
        if i not in texts:
            terms += [expression for _, expression, _, _ in own]
            continue
        # one CASE expression for all features of a categorical column
        constant += sum(at_zero for _, _, at_zero, _ in own)
        cases = [
            (is_category(i, str(described.features[j].item)), number(at_one - at_zero))
            for j, _, at_zero, at_one in own
            if at_one != at_zero
        ]
        if cases:
            terms.append(case(cases, number(0.0)))
    return total([number(constant), *terms, *pairs])


def contributions_of(described: Portable, values: Sequence[str]) -> list[str]:
    """Return what each feature and each pair adds, and last the constant, in the order of `LinearModel.contribution_names`."""
    score = described.score
    assert isinstance(score, Linear | Additive)
    adds, pairs = _adds(score, values)
    return [*(expression for expression, _, _ in adds.values()), *pairs, number(score.constant)]


def _adds(score: Linear | Additive, values: Sequence[str]) -> tuple[dict[int, tuple[str, float, float]], list[str]]:
    """Return what each feature adds, as an expression and as numbers where its value is 0 and 1, and what each pair adds."""
    if isinstance(score, Linear):
        weights = enumerate(zip(score.weights, score.centers, strict=True))
        return {
            j: (
                f"{number(w)} * ({values[j]} - {number(c)})" if c else f"{number(w)} * {values[j]}",
                w * (0.0 - c),
                w * (1.0 - c),
            )
            for j, (w, c) in weights
        }, []
    adds, expressions = {}, (_tree(tree, values) for tree in trees_of(score))
    for shape in score.shapes:
        at = [float(shape.values[np.searchsorted(shape.edges, x)]) for x in (0.0, 1.0)]
        adds[shape.feature] = (next(expressions), at[0], at[1])
    return adds, list(expressions)


def _tree(node: Node, values: Sequence[str]) -> str:
    if isinstance(node, float):
        return number(node)
    value, then, otherwise = values[node.feature], _tree(node.then, values), _tree(node.otherwise, values)
    test = f"{value} IS NOT NULL" if node.at_most == np.inf else f"{value} <= {number(node.at_most)}"
    return case([(f"{test} OR {value} IS NULL" if node.missing_to_then else test, then)], otherwise)

"""What each parameter may be, as a table: scikit-learn's ``_parameter_constraints``, with an `InputError` for what is refused.

The weights of rows have one check for fits and metrics.
"""

import numbers
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, dataclass_transform

import numpy as np

from aucdist.errors import InputError, unknown

LARGEST_INTEGER = 2**63
"""Compiled kernels and NumPy take integers below this one."""

T = TypeVar("T")


class Constraint(Protocol):
    """What a parameter may be."""

    def check(self, name: str, value: Any) -> None:
        """Raise an InputError that names the parameter, its value and what is allowed, unless the value is allowed."""


Constraints = Mapping[str, Constraint]
"""By the name of the parameter."""


@dataclass(frozen=True)
class Number:
    """A number in a range, or one of a few words.

    Attributes
    ----------
    range_text : str
        The range in words, as in ``"above 0 and finite"``.
    holds : callable
        Tells whether a number is in the range.
    whole : bool
        Only integers are allowed.
    words : tuple of str
        Allowed in place of a number.
    optional : bool
    """

    range_text: str
    holds: Callable[[Any], bool]
    whole: bool = False
    words: tuple[str, ...] = ()
    optional: bool = False

    def check(self, name: str, value: Any) -> None:
        """Raise an InputError unless the value is allowed."""
        if (value is None and self.optional) or (isinstance(value, str) and value in self.words):
            return
        kind = numbers.Integral if self.whole else numbers.Real
        if isinstance(value, numbers.Integral) and abs(int(value)) >= LARGEST_INTEGER:
            raise InputError(
                f"{name} is an integer of {int(value).bit_length()} bits, and at most 63 are possible"
                f"{'' if self.whole else f': write it as a float, such as {name}=1e20'}"
            )
        if isinstance(value, kind) and not isinstance(value, bool) and self.holds(value):
            return
        *first, last = [
            f"{'an integer' if self.whole else 'a number'} {self.range_text}",
            *map(repr, self.words),
            *(["None"] if self.optional else []),
        ]
        raise InputError(f"{name} must be {', '.join(first) + ' or ' if first else ''}{last}; got {value!r}")


@dataclass(frozen=True)
class OneOf:
    """One of some names."""

    names: Collection[Any]
    optional: bool = False

    def check(self, name: str, value: Any) -> None:
        """Raise an InputError unless the value is allowed."""
        if not (value is None and self.optional) and not (isinstance(value, str | None) and value in self.names):
            raise unknown(name, value, [*self.names, *([None] if self.optional else [])])


@dataclass(frozen=True)
class Condition:
    """What `holds` says of a value, which `text` says in words."""

    holds: Callable[[Any], bool]
    text: str

    def check(self, name: str, value: Any) -> None:
        """Raise an InputError unless the value is allowed."""
        if not self.holds(value):
            raise InputError(f"{name} must be {self.text}; got {value!r}")


SWITCH = Condition(lambda v: isinstance(v, bool | np.bool_), "True or False")
VERBOSITY = Condition(
    lambda v: isinstance(v, numbers.Integral | np.bool_) and int(v) >= 0, "an integer at least 0, True or False"
)
NOT_NEGATIVE = Number("at least 0 and finite", lambda v: 0 <= v < np.inf)
PRIOR = Number("above 0 and below 1", lambda v: 0 < v < 1, optional=True)
"""The share of positives for probabilities, or None."""
SEED = Condition(
    lambda v: (
        v is None
        or isinstance(v, np.random.RandomState)
        or (isinstance(v, numbers.Integral) and not isinstance(v, bool) and 0 <= int(v) < 2**32)
    ),
    "an integer of at least 0 and below 2**32, a RandomState or None",
)


def above_0(words: tuple[str, ...] = (), *, optional: bool = False) -> Number:
    """Return the constraint of a finite number above 0."""
    return Number("above 0 and finite", lambda v: 0 < v < np.inf, words=words, optional=optional)


def count(least: int = 1, words: tuple[str, ...] = (), *, optional: bool = False) -> Number:
    """Return the constraint of an integer of at least `least`."""
    return Number(f"at least {least}", lambda v: v >= least, whole=True, words=words, optional=optional)


def between(least: int, most: int) -> Number:
    """Return the constraint of an integer from `least` to `most`."""
    return Number(f"from {least} to {most}", lambda v: least <= v <= most, whole=True)


def at_most_1(*, optional: bool = False) -> Number:
    """Return the constraint of a number above 0 and at most 1."""
    return Number("above 0 and at most 1", lambda v: 0 < v <= 1, optional=optional)


def check_constraints(thing: Any) -> None:
    """Check the parameters that have a row in `_parameter_constraints` of the class, or in that of a class it is derived from.

    The row of a class counts in place of an inherited one.

    Raises
    ------
    InputError
        The message names the parameter, its value and what is allowed.
    """
    rows: dict[str, Constraint] = {}
    for cls in reversed(type(thing).__mro__):
        rows |= vars(cls).get("_parameter_constraints", {})
    for name, constraint in rows.items():
        constraint.check(name, getattr(thing, name))


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """Make a class a frozen dataclass whose objects are compared by identity, because ``==`` of arrays gives an array."""
    return dataclass(frozen=True, eq=False)(cls)


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
def keyword_parameters(**constraints: Constraint) -> Callable[[type[T]], type[T]]:
    """Make the annotated attributes of a class, its parameters with their defaults, the keywords of its ``__init__``.

    It is a dataclass without ``__eq__`` and ``__repr__``: objects are compared by identity, and scikit-learn's repr stays.

    Parameters
    ----------
    **constraints : Constraint
        What the parameters may be, for `check_constraints`.
    """

    def decorator(cls: type[T]) -> type[T]:
        """Give a class its constraints, and make it a dataclass of keywords."""
        cls._parameter_constraints = constraints  # type: ignore[attr-defined]
        return dataclass(kw_only=True, eq=False, repr=False)(cls)

    return decorator


MIN_WEIGHT = 1e-100
"""The smallest weight of a row: the product of the weights of a pair must be a float above zero."""
MAX_WEIGHT = 1e100
"""The largest weight of a row: sums over all pairs must be finite."""


def check_weights(weights: np.ndarray) -> None:
    """Raise an InputError that names the first weight of a row that is neither 0 nor of a size whose products are floats."""
    wrong = ~((weights == 0) | ((weights >= MIN_WEIGHT) & (weights <= MAX_WEIGHT)))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"the weight of row {row} (counted from 0) is {weights[row]:g}; weights are 0, or from {MIN_WEIGHT:g} to "
            f"{MAX_WEIGHT:g}: divide them all by their mean"
        )

"""Constraints of parameters: a table like scikit-learn's ``_parameter_constraints`` whose violations are an `InputError`.

Fits and metrics check the weights of rows by `check_weights`.
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
    """A rule that the value of a parameter must satisfy."""

    def check(self, name: str, value: Any) -> None:
        """Raise an InputError that names the parameter, its value and what is allowed, unless the value is allowed."""


Constraints = Mapping[str, Constraint]
"""The constraint of each parameter, by its name."""


@dataclass(frozen=True)
class Number:
    """A constraint for a number in a range, or one of a few words.

    Attributes
    ----------
    range_text : str
        The range in words, as in ``"above 0 and finite"``.
    holds : callable
        Returns whether a number is in the range.
    whole : bool
        Whether only integers are allowed.
    words : tuple of str
        Words that are allowed in place of a number.
    optional : bool
        Whether None is allowed.
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
    """A constraint for one of some names, and None if `optional` is true."""

    names: Collection[Any]
    optional: bool = False

    def check(self, name: str, value: Any) -> None:
        """Raise an InputError unless the value is allowed."""
        if not (value is None and self.optional) and not (isinstance(value, str | None) and value in self.names):
            raise unknown(name, value, [*self.names, *([None] if self.optional else [])])


@dataclass(frozen=True)
class Condition:
    """A constraint for values for which `holds` returns true. `text` describes them in messages."""

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
"""The constraint of a prior: the share of positives for which probabilities are computed, or None."""
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
    """Check the parameters of an object by the table `_parameter_constraints` of its class.

    Tables of base classes apply too. If a class and its base class constrain the same parameter, the constraint of the class
    counts.

    Parameters
    ----------
    thing : object
        An object whose parameters are attributes.

    Raises
    ------
    InputError
        If a value is not allowed. The message names the parameter, its value and what is allowed.
    """
    rows: dict[str, Constraint] = {}
    for cls in reversed(type(thing).__mro__):
        rows |= vars(cls).get("_parameter_constraints", {})
    for name, constraint in rows.items():
        constraint.check(name, getattr(thing, name))


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """Make a class a frozen dataclass whose objects are compared by identity.

    The ``==`` of a dataclass would compare arrays element by element, and fail.
    """
    return dataclass(frozen=True, eq=False)(cls)


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
def keyword_parameters(**constraints: Constraint) -> Callable[[type[T]], type[T]]:
    """Make the annotated attributes of a class the keyword parameters of its ``__init__``, with their defaults.

    The class becomes a dataclass without ``__eq__`` and ``__repr__``: objects are compared by identity, and the repr of
    scikit-learn stays.

    Parameters
    ----------
    **constraints : Constraint
        The constraint of each parameter, for `check_constraints`.

    Returns
    -------
    callable
        A decorator of classes.
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
    """Check that each weight of a row is 0, or of a size whose products and sums are finite and not 0.

    Parameters
    ----------
    weights : ndarray of shape (n_samples,), float64
        The weights of the rows.

    Raises
    ------
    InputError
        If a weight is neither 0 nor from `MIN_WEIGHT` to `MAX_WEIGHT`. The message names the first such row.
    """
    wrong = ~((weights == 0) | ((weights >= MIN_WEIGHT) & (weights <= MAX_WEIGHT)))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"the weight of row {row} (counted from 0) is {weights[row]:g}; weights are 0, or from {MIN_WEIGHT:g} to "
            f"{MAX_WEIGHT:g}: divide them all by their mean"
        )

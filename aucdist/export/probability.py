"""Convert scores to probabilities by one formula for every system that has arithmetic, exp and log."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partialmethod
from typing import Any

import numpy as np

from aucdist.errors import InputError
from aucdist.parameters import frozen
from aucdist.probability.link_kernels import NO_SHAPE
from aucdist.probability.links import IsotonicMap, Link, LinkMap, ProbabilityMap

NEAR_TAIL = 7.071067811865475
"""The number of standard deviations from which the continued fraction replaces the quotient of polynomials."""
MAX_EXPONENT = 37.0
"""Above this value, the tail of the normal distribution is taken as 0."""
NUMERATOR = (
    3.52624965998911e-02, 0.700383064443688, 6.37396220353165, 33.912866078383, 112.079291497871, 221.213596169931,
    220.206867912376,
)  # fmt: skip
DENOMINATOR = (
    8.83883476483184e-02, 1.75566716318264, 16.064177579207, 86.7807322029461, 296.564248779674, 637.333633378831,
    793.826512519948, 440.413735824752,
)  # fmt: skip
"""Coefficients of the quotient ``NUMERATOR / DENOMINATOR``, the highest power first: algorithm 5666 of Hart et al., "Computer
Approximations" (1968).
Times ``exp(-x^2 / 2)`` it is the upper tail at x from 0 to `NEAR_TAIL`. Both ways the error is below 1e-15, and below 1e-8 of the
tail."""
TAIL_FRACTION = (0.65, 4.0, 3.0, 2.0, 1.0)
"""Numbers of the tail's continued fraction ``x + 1/(x + 2/(x + 3/(x + 4/(x + 0.65))))``, the innermost first."""
ROOT_TAU = 2.5066282746310002
MAX_OF_EXP = 700.0
"""The bound on the absolute value of arguments of exp, because some systems raise errors for overflow and underflow."""


class TargetLanguage(ABC):
    """The operations of another system. Numbers and conditions are expressions or names in its language."""

    @abstractmethod
    def number(self, value: Any) -> str:
        """Return a double-precision number as text in the language."""

    @abstractmethod
    def operation(self, operator: str, *parts: str, **options: Any) -> str:
        """Return the result of an operator of ONNX: Add, Sub, Mul, Div, Neg, Abs, Exp, Log, Greater, Less or Where."""

    @abstractmethod
    def kept(self, part: str, name: str) -> str:
        """Return a name for a number that is used more than once."""

    @abstractmethod
    def interpolated(self, points: IsotonicMap, score: str) -> str:
        """Return the probability between the points of a calibration."""

    def apply(self, operator: str, *parts: "Operand", **options: Any) -> "Term":
        """Return the result of an operator as a term.

        The operands are terms, numbers or other constants that the system accepts.
        """
        names = [part.name if isinstance(part, Term) else self.number(part) for part in parts]
        return Term(self, self.operation(operator, *names, **options))


@frozen
class Term:
    """A number or a condition of each row, as text in the language of a system."""

    target: TargetLanguage
    name: str
    __array_ufunc__ = None  # an array operand is a constant, and not an array of terms

    def applied(self, operator: str, *others: "Operand") -> "Term":
        """Return the result of an operator. This term is its first operand."""
        return self.target.apply(operator, self, *others)

    __add__ = partialmethod(applied, "Add")
    __sub__ = partialmethod(applied, "Sub")
    __mul__ = partialmethod(applied, "Mul")
    __truediv__ = partialmethod(applied, "Div")
    __mod__ = partialmethod(applied, "Mod")
    __matmul__ = partialmethod(applied, "MatMul")
    __neg__ = partialmethod(applied, "Neg")
    __abs__ = partialmethod(applied, "Abs")
    __gt__ = partialmethod(applied, "Greater")
    __lt__ = partialmethod(applied, "Less")

    def __rsub__(self, other: "Operand") -> "Term":
        return self.target.apply("Sub", other, self)

    def __rtruediv__(self, other: "Operand") -> "Term":
        return self.target.apply("Div", other, self)

    def choose(self, yes: "Operand", no: "Operand", **options: Any) -> "Term":
        """Return `yes` where this condition holds, and `no` where it does not."""
        return self.target.apply("Where", self, yes, no, **options)

    def exp(self) -> "Term":
        """Return exp of this term. The argument is clipped so that the result does not overflow."""
        x = self.kept("x")
        return self.target.apply("Exp", (x > MAX_OF_EXP).choose(MAX_OF_EXP, (x < -MAX_OF_EXP).choose(-MAX_OF_EXP, x)))

    log = partialmethod(applied, "Log")

    def kept(self, name: str) -> "Term":
        """Give this number a name, because it is used more than once."""
        return Term(self.target, self.target.kept(self.name, name))


Operand = Term | float | np.ndarray | list[int]


def probability_of(score: Term, probability: ProbabilityMap) -> Term:
    """Return the probability of the positive class, given the score.

    Raises
    ------
    InputError
        If the map is not one of those in `aucdist.probability.links`.
    """
    if isinstance(probability, LinkMap):
        above, below = _link(probability.link, (score * probability.slope + probability.offset).kept("u"))
    elif isinstance(probability, IsotonicMap):
        above = Term(score.target, score.target.interpolated(probability, score.name)).kept("p")
        below = 1.0 - above
    else:
        raise InputError(
            f"probabilities by {type(probability).__name__} cannot be exported: fit the estimator with "
            "calibration='logit', 'isotonic' or None"
        )
    weighted = (above * probability.odds).kept("w")
    return weighted / (weighted + below)


def _link(link: Link, u: Term) -> tuple[Term, Term]:
    """Return the probability that a link gives, and its complement."""
    if link.name == "logit":
        t = u.exp().kept("t")
        return t / (t + 1.0), 1.0 / (t + 1.0)
    if link.name == "probit":
        tail = _upper_tail(abs(u).kept("a")).kept("t")
        rest = 1.0 - tail
        return (u > 0.0).choose(rest, tail), (u > 0.0).choose(tail, rest)
    if link.name == "cloglog":
        t = u.exp()
    elif abs(link.xi) < NO_SHAPE:
        t = (-u).exp()
    else:  # ``(1 + xi u) ** (-1 / xi)``, and its limits where the power does not exist
        inside = (u * link.xi + 1.0).kept("i")
        is_positive = inside > 0.0
        power = (is_positive.choose(inside, 1.0).log() / -link.xi).exp()
        t = is_positive.choose(power, MAX_OF_EXP if link.xi > 0 else 0.0)
    t = t.kept("t")
    survives = (-t).exp().kept("q")
    # for small t the complement loses all digits, so t itself is used
    dies = (t < 1e-8).choose(t, 1.0 - survives)
    return (dies, survives) if link.name == "cloglog" else (survives, dies)


def _upper_tail(x: Term) -> Term:
    """Return the upper tail probability of the normal distribution for x >= 0, because no system has it in double precision."""
    fraction = x + TAIL_FRACTION[0]
    for numerator in TAIL_FRACTION[1:]:
        fraction = x + numerator / fraction
    density = (x * x * -0.5).exp()
    tail = (x < NEAR_TAIL).choose(_polynomial(NUMERATOR, x) / _polynomial(DENOMINATOR, x), (1.0 / ROOT_TAU) / fraction)
    return (x > MAX_EXPONENT).choose(0.0, density * tail)


def _polynomial(coefs: Sequence[float], x: Term) -> Term:
    """Evaluate a polynomial. The coefficient of the highest power comes first."""
    value = x * coefs[0] + coefs[1]
    for coef in coefs[2:]:
        value = value * x + coef
    return value

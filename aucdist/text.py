"""Numbers, intervals, parameters and certificates as text, for messages, the terminal and pages."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from aucdist.errors import Json, counted

NOT_BOUNDED = "at an unknown distance from the minimum: no lower bound above 0 is known"
COUNTS = {"trillion": 1e12, "billion": 1e9, "million": 1e6}


def ends_text(interval: Sequence[float] | None, text: Callable[[float], str]) -> str:
    """Return an interval in brackets, to be written after its value. The text is empty if there is no interval."""
    return " (95 % interval {} to {})".format(*map(text, interval)) if interval else ""


def parameters_text(parameters: Mapping[str, Any]) -> str:
    """Return the values of parameters as text. Monotonic constraints are left out if there are none."""
    return ", ".join(
        f"{name} {value_text(value)}" for name, value in parameters.items() if (name, value) != ("monotone", None)
    )


def value_text(value: Any) -> str:
    """Return the value of a parameter as text. A feature map becomes its name and its parameters."""
    if isinstance(value, Mapping):
        arguments = [
            counted(v, "interaction") if name == "interactions" else f"{name} {value_text(v)}"
            for name, v in value.items()
            if name != "map"
        ]
        return f"{value.get('map', '')}{' with ' if arguments and 'map' in value else ''}{', '.join(arguments)}"
    if value is None:
        return "none"
    return number_text(value, 4) if isinstance(value, float) else str(value)


def certificate_text(certificate: Json) -> str:
    """Describe the result of a certificate, in words that follow "the objective is".

    Parameters
    ----------
    certificate : dict
        The certificate of a run, with the values ``primal`` and ``dual``.
    """
    excess = proved_excess(certificate)
    if excess is None:
        return NOT_BOUNDED
    if excess == 0:
        return "the minimum, up to rounding errors"
    return f"at most {excess_text(excess)} above the minimum"


def sentence(text: str) -> str:
    """Return a text that begins with a capital letter and ends with a full stop, unless it ends with a question mark."""
    return f"{text[0].upper()}{text[1:]}{'.' * (text[-1] != '?')}"


def proved_excess(certificate: Json) -> float | None:
    """Return an upper bound on the relative excess of the objective over its minimum, or None if the dual value is not positive.

    The minimum is at least the dual value, so the bound is ``primal / dual - 1``. It is slightly larger than the relative gap,
    which is divided by the primal value.
    """
    primal, dual = certificate["primal"], certificate["dual"]
    if primal is None or dual is None or not math.isfinite(primal):
        return None
    if primal <= dual:
        return 0.0
    return primal / dual - 1 if dual > 1e-9 * primal else None


def excess_text(excess: float) -> str:
    """Return a relative excess in percent, rounded up.

    The smallest value that is shown is 0.0001 %, because smaller ones are of no use to a reader.
    """
    return "0 %" if excess == 0 else f"{rounded_up_text(max(100 * excess, 1e-4))} %"


def number_text(value: float | None, digits: int = 3) -> str:
    """Return a number with significant digits. It has an exponent only if it is very large or very small."""
    if value is None or not math.isfinite(value):
        return "unknown"
    text = f"{value:.{digits}g}"
    if "e" not in text:
        return text
    if 1 <= abs(value) < 1e7:
        return f"{value:.0f}"
    mantissa, exponent = text.split("e")
    return f"{mantissa}e{int(exponent)}"


def rounded_up_text(value: float) -> str:
    """Return a positive number rounded up to two significant digits, because a bound must not be rounded down."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return number_text(math.ceil(value / unit - 1e-9) * unit, 2 if value < 99 else 3)


def count_text(number: float) -> str:
    """Return a count as text. Counts below ten million are written in full.

    Larger ones are given in millions, billions or trillions, with two digits.
    """
    if number < 1e7:
        return f"{number:,.0f}"
    name, unit = next((name, unit) for name, unit in COUNTS.items() if number >= unit)
    return f"{number_text(number / unit, 2)} {name}"


def difference_text(value: float | None) -> str:
    """Return a difference with two significant digits."""
    return "no bound" if value is None else number_text(value, 2)


def auc_text(value: float | None, *beside: float) -> str:
    """Return an AUC with four decimals, or with more if these are necessary to show two significant digits of its distance to 1.

    The values in `beside` are printed in the same text. They are taken into account, so that all values get equally many
    decimals.
    """
    if value is None:
        return "not measured"
    return f"{value:.{_decimals(4, (1 - v for v in (value, *beside)))}f}"


def auc_with_interval(value: float | None, interval: Sequence[float] | None) -> str:
    """Return an AUC and its interval, if there is one, with equally many decimals."""
    if value is None or not interval:
        return auc_text(value)
    every = value, *interval
    return auc_text(*every) + ends_text(interval, lambda end: auc_text(end, *every))


def percent_text(share: float | None) -> str:
    """Return a share in percent with one decimal.

    It has more decimals if these are necessary to show two digits of the share, or one digit of its distance to 100 %.
    """
    if share is None:
        return "undefined"
    return f"{100 * share:.{_decimals(1, (100 * share, 1000 * (1 - share)))}f} %"


def _decimals(least: int, rests: Iterable[float]) -> int:
    """Return how many decimals show two digits of the smallest number above 0. The result is between `least` and 12."""
    smallest = min((rest for rest in rests if rest > 0), default=1.0)
    return min(max(least, 1 - math.floor(math.log10(smallest))), 12)


def seconds_text(value: float) -> str:
    """Return a duration in milliseconds, seconds, minutes or hours."""
    if value < 1:
        return f"{number_text(1000 * value, 2)} ms"
    if value < 100:
        return f"{number_text(value)} s"
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"

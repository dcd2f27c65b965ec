"""Errors whose messages are written for users, and the type of JSON objects."""

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

Json = dict[str, Any]
"""A JSON object, such as the content of a file, the result that a command prints by ``--json``, or the variables of a
template."""
MAX_NAMES = 20
"""The largest number of allowed names that a message lists."""
MAX_NAME = 200
"""The largest number of characters of a name that a message shows."""
UNFINISHED = {
    "max-passes": ("max_passes was reached", "Raise `max_passes`, `tol` or `lam`, or scale the features"),
    "max-steps": (
        "the solver took all its steps",
        "Raise `tol`, give the solver more steps (`epochs` or `n_outer`), or use the default solver"
    ),
    "diverged": (
        "the steps diverged because `eta` is too large, and the weights are those before they did",
        "Give the solver a smaller `eta`, or use the default solver"
    ),
    "rounding": ("rounding errors are as large as the gap that is left or as the next step", "Raise `tol` or scale the features"),
}  # fmt: skip
"""For each status of a fit that has not reached `tol`, the reason why it ended and the remedy."""


class InputError(ValueError):
    """Something the user gave is wrong: a file, a configuration, an argument.

    The message says what is wrong, where it is (file, line, column, key) and what to do. The command line shows the message
    without a traceback, and exits with 2.
    """


class RunError(RuntimeError):
    """The input was correct, but the run failed. The command line shows the message without a traceback, and exits with 1."""


class ClusterLost(RunError):
    """The cluster that a run worked on is gone, or can no longer be reached.

    The run can be started again on another cluster, and resumes from its checkpoints.
    """


def unknown(kind: str, name: object, allowed: Iterable[object], other_names: Mapping[str, str] = {}) -> InputError:
    """Return the error for a name that is not allowed. Its message suggests the most similar allowed name.

    Parameters
    ----------
    kind : str
        What the name stands for, as in ``"solver"``.
    name : object
        The name that the user gave.
    allowed : iterable
        The allowed names.
    other_names : mapping of str to str
        Names that other libraries use, in lower case, and the allowed name for each.

    Returns
    -------
    InputError
        The error, which the caller raises.
    """
    names = [shortened(str(a)) for a in allowed]
    name = shortened(name) if isinstance(name, str) else name
    folded = {known.casefold(): known for known in names} | dict(other_names)
    said = str(name).casefold()
    near = difflib.get_close_matches(said, folded, n=MAX_NAMES, cutoff=0.65)
    # The similarity of strings misses names that contain the other one, such as `default` in `default.payment.next.month`.
    near = [
        folded[known] for known in near or [known for known in folded if len(said) > 2 and said in known][:MAX_NAMES]
    ]
    if len(names) > MAX_NAMES:
        # Show one screen of names: the nearest ones, or the first ones.
        shown = near if len(near) > 1 else names[:MAX_NAMES]
        names = [*shown, f"and {len(names) - len(shown)} more"]
    return InputError(
        f"unknown {kind} {name!r}.{f' Did you mean {near[0]!r}?' if near else ''} Allowed: {', '.join(names)}"
    )


def check_keys_known(content: Any, known: Iterable[str], other_names: Callable[[], Mapping[str, str]] = dict) -> None:
    """Raise an InputError for a key of a mapping that is not allowed.

    Parameters
    ----------
    content : object
        The mapping. Anything else is ignored.
    known : iterable of str
        The allowed keys.
    other_names : callable
        Returns the names that other libraries use, as `unknown` takes them.
    """
    for key in content if isinstance(content, dict) else ():
        if key not in known:
            raise unknown("key", key, known, other_names())


def first_line(error: BaseException) -> str:
    """Return the first line of the message of an error, or its type if it has no message."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def error_text(error: BaseException) -> str:
    """Return the message of an error that was written for users, and the type and the message of any other."""
    return str(error) if isinstance(error, InputError | RunError) else f"{type(error).__name__}: {error}"


@contextmanager
def as_input_error(
    text: str, *kinds: type[BaseException], say: Callable[[BaseException], str] = first_line
) -> Iterator[None]:
    """Turn exceptions of these kinds into an `InputError`.

    An `InputError` and a `MemoryError` pass through unchanged.

    Parameters
    ----------
    text : str
        The beginning of the message. A colon and the result of `say` follow.
    *kinds : type
        The classes of the exceptions.
    say : callable, optional
        Returns what the message says of the exception.
    """
    try:
        yield
    except (InputError, MemoryError):
        raise
    except kinds as e:
        raise InputError(f"{text}: {say(e)}") from None


def shortened(text: str, most: int = MAX_NAME) -> str:
    """Return a text. If it is too long for a screen, return its beginning and its length."""
    return text if len(text) <= most else f"{text[:most]}... ({len(text):,} characters)"


def counted(n: int, noun: str) -> str:
    """Return a number with its noun, which is in the plural unless the number is 1: "1 row", "2 rows", "2 classes"."""
    return f"{n:,} {noun}{'' if n == 1 else 'es' if noun.endswith('s') else 's'}"


def printable(text: str) -> str:
    """Return a text for a terminal, in which characters that move its cursor, set a colour or overwrite text are escaped."""
    if text.replace("\n", "").isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)

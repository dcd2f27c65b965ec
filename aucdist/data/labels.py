"""Names of classes and numbers of groups: a single spelling for each, and the choice of the positive classes."""

import re
import unicodedata
import warnings
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray

from aucdist.errors import InputError, counted
from aucdist.parameters import frozen

if TYPE_CHECKING:
    import pandas as pd

LABELS_SHOWN = 20
NO_TOPIC = "(none)"
EACH = "each"
"""The value of ``positive`` that means that each class is fitted against the rest."""
MAX_CLASSES = 1000
"""The largest number of classes that are fitted against the rest. More distinct values mean a regression target or an id."""
WHOLE_NUMBER = re.compile(r"-?\d{1,18}")
HEXADECIMAL = re.compile(r"\d+e\d+", re.IGNORECASE)
"""Digits around an "e". They are probably an identifier, because programs write numbers with a point or a sign, as in 1e+06."""


class LabelWarning(UserWarning):
    """Warns that some classes have names that look like spellings of the same class."""


@frozen
class Labels:
    """The label of each row.

    Parameters
    ----------
    class_numbers : ndarray of shape (n_samples,), int
        The class of each row, as a position in `names`.
    names : tuple of str
        The distinct classes, as `class_name` spells them. With `topics`, distinct lists of classes with commas between them.
    topics : bool
        Whether a row may have several classes, or none.
    """

    class_numbers: ndarray
    names: tuple[str, ...]
    topics: bool = False

    @classmethod
    def of(cls, class_numbers: ndarray, texts: Sequence[str], *, topics: bool = False) -> "Labels":
        """Make labels from strings. Different strings may stand for the same class, such as 1 and +1."""
        spelled = [class_name(text) for text in texts]
        if topics:  # the classes in a list like ``ccat,c15`` are sorted
            lists = ({class_name(topic) for topic in text.split(",") if topic.strip()} for text in texts)
            spelled = [",".join(sorted(names)) or NO_TOPIC for names in lists]
        names, places = np.unique(np.array(spelled, dtype=object), return_inverse=True)
        return cls(places[class_numbers], tuple(names.tolist()), topics)

    def counts(self) -> dict[str, int]:
        """Return the number of rows of each class that occurs."""
        return {
            name: n
            for name, n in zip(
                self.names, np.bincount(self.class_numbers, minlength=len(self.names)).tolist(), strict=True
            )
            if n
        }

    def binary_labels(self, positive: Iterable[str], negative: Iterable[str], where: str) -> ndarray:
        """Return +1 for rows of a positive class and -1 for rows of a negative one: int8 of shape (n_samples,).

        Parameters
        ----------
        positive, negative : iterable of str
            The classes, as `class_name` spells them. With `topics`, a row with one positive class is positive, and all other
            rows are negative.
        where : str
            The name of the data in error messages.

        Raises
        ------
        InputError
            If the class of a row is neither positive nor negative.
        """
        if self.topics:
            classes = set(positive)
            sign_of_name = [1 if classes & set(name.split(",")) else -1 for name in self.names]
        else:
            sign = dict.fromkeys(positive, 1) | dict.fromkeys(negative, -1)
            for name, n in self.counts().items():
                if name not in sign:
                    raise InputError(
                        f"{where}: class {name!r} ({counted(n, 'row')}) is not among the classes of the training data: "
                        f"{listed(sign)}. Correct the labels, or train again with this class"
                    )
            sign_of_name = [sign.get(name, 0) for name in self.names]
        return np.array(sign_of_name, dtype=np.int8)[self.class_numbers]

    def grades(self, where: str) -> ndarray:
        """Return the label of each row as a grade, float64.

        Raises
        ------
        InputError
            If a label is not a number.
        """
        return np.array([_grade(name, where) for name in self.names])[self.class_numbers]


def _grade(name: str, where: str) -> float:
    number = _number(name)
    if number is None:
        raise InputError(f"{where}: `labels: grades` needs numbers as labels, and {name[:40]!r} is not one: correct it")
    return number


def above_lowest(counts: Iterable[str], positive: object, where: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the grades above the lowest one, and the lowest one, in the form of `choose_positive`.

    Raises
    ------
    InputError
        If there is one grade only, one is not a number, or `positive` was given.
    """
    if positive != "minority":
        raise InputError(
            "`positive` does not apply to `labels: grades`, where any two rows with different grades make a pair: "
            "leave `positive` out"
        )
    ordered = sorted(counts, key=lambda name: _grade(name, where))
    if len(ordered) < 2:
        raise InputError(
            f"{where}: all rows have one grade only ({listed(ordered)}): check the labels, or leave `labels: grades` out"
        )
    return tuple(ordered[1:]), (ordered[0],)


def class_name(value: object) -> str:
    """Return the single spelling of a class: a string without spaces around it.

    Numbers are spelled by value, so "+1" and 1.0 are "1".
    """
    text = str(value).strip()
    number = _number(text)
    if number is None:
        return text
    return str(int(number)) if number.is_integer() else repr(number)


def choose_positive(counts: dict[str, int], positive: object, where: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the positive and the negative classes.

    Parameters
    ----------
    counts : dict of str to int
        The number of rows of each class, as `class_name` spells it.
    positive : object
        A class, several classes, or ``"minority"``, the class with the fewest rows. Among classes with the same number of rows,
        it is the last in order (+1 and not -1).
    where : str
        The name of the data in error messages.

    Raises
    ------
    InputError
        If there is only one class, if a positive class does not occur, or if no negative class is left.
    """
    if len(counts) < 2:
        raise InputError(
            f"{where}: all rows are of one class only ({listed(counts)}): check `label`, or give rows of both classes"
            if counts
            else f"{where} has no rows: name a file with at least one row"
        )
    if isinstance(positive, str) and positive.strip() == "minority":
        chosen = {max(counts, key=lambda name: (-counts[name], class_order(name)))}
    else:
        chosen = {class_name(value) for value in (positive if isinstance(positive, list | tuple) else [positive])}
    absent = sorted(chosen - set(counts), key=class_order)
    if absent:
        raise InputError(
            f"{where}: positive class {absent[0]!r} is not in the data. Its classes are: {listed(counts)}."
            f"{''.join(f' Did you mean {name!r}?' for name in counts if look_alikes({name, absent[0]}))} "
            "Set `positive` (or the option --positive) to one of them, or to `minority`"
        )
    negative = set(counts) - chosen
    if not negative:
        raise InputError(
            f"{where}: every class is listed as positive ({listed(counts)}); leave out at least one, which is then negative"
        )
    for names in look_alikes(counts):
        if chosen & set(names) and negative & set(names):
            warnings.warn(
                f"{where}: classes that differ only in case or spaces: {_counted(names, counts)}. Positive is "
                f"{listed(chosen)}, and rows of the others count as negative; if they are one class, give `positive: "
                f"[{', '.join(names)}]`",
                LabelWarning,
                stacklevel=2,
            )
    return tuple(sorted(chosen, key=class_order)), tuple(sorted(negative, key=class_order))


def look_alikes(names: Iterable[str]) -> list[list[str]]:
    """Return groups of classes whose names differ only in case, spaces or Unicode normal form."""
    groups: dict[str, list[str]] = {}
    for name in sorted(names, key=class_order):
        groups.setdefault("".join(unicodedata.normalize("NFC", name).casefold().split()), []).append(name)
    return [names for names in groups.values() if len(names) > 1]


def _counted(names: Iterable[str], counts: dict[str, int]) -> str:
    return ", ".join(f"{name!r} ({counted(counts[name], 'row')})" for name in names)


def choose_classes(
    counts: dict[str, int], chosen: Sequence[object] | None, where: str, *, topics: bool
) -> tuple[str, ...]:
    """Return the classes that are fitted against the rest, in order.

    Parameters
    ----------
    counts : dict of str to int
        The number of rows of each class, as `class_name` spells it.
    chosen : sequence or None
        Some of the topics. None means all classes.
    where : str
        The name of the data in error messages.
    topics : bool
        Whether a row may be of several classes, or of none.

    Raises
    ------
    InputError
        If there are fewer than three classes or two topics, there are too many of them, or a chosen one does not occur.
    """
    present = set(counts) - ({NO_TOPIC} if topics else set())
    names = present if chosen is None else {class_name(value) for value in chosen}
    if chosen is not None and not topics:
        raise InputError(
            f"{where}: `positive: {{each: [...]}}` chooses among topics, but here each row has one class: use `positive: each`"
        )
    if absent := sorted(names - present, key=class_order):
        raise InputError(f"{where}: topic {absent[0]!r} is not in the data. Its topics are: {listed(present)}")
    check_number_of_classes(names, f"{where}: ")
    if len(names) < (2 if topics else 3):
        raise InputError(
            f"{where}: `positive: each` is for {'two or more topics' if topics else 'three or more classes'}, and there are: "
            f"{listed(names)}. Set `positive` (or the option --positive) to one of them"
        )
    for alike in look_alikes(names):
        warnings.warn(
            f"{where}: classes that differ only in case or spaces are fitted as different ones: {_counted(alike, counts)}; if "
            "they are one class, give them one spelling in the data",
            LabelWarning,
            stacklevel=2,
        )
    return tuple(sorted(names, key=class_order))


def check_number_of_classes(names: Collection[str], before: str = "") -> None:
    """Raise an InputError if there are too many classes. `before` is the beginning of its message."""
    if len(names) > MAX_CLASSES:
        raise InputError(
            f"{before}the labels have {len(names)} values ({listed(names)}), and at most {MAX_CLASSES} classes are fitted. "
            "aucdist predicts classes, not numbers: name another column as the label, or group the values into classes"
        )


def class_order(name: str) -> tuple[bool, float, str]:
    """Return the key that sorts classes: numbers by value, and then other names."""
    number = _number(name)
    return number is None, number or 0.0, name


def _number(text: str) -> float | None:
    """Return the value of a class that is a number. Return None above 2**53, where two classes could have the same value."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if abs(number) < 2**53 and "_" not in text and not HEXADECIMAL.fullmatch(text) else None


def listed(names: Iterable[str]) -> str:
    """Return names for a message, sorted. If there are many, return only the first ones."""
    ordered = sorted(names, key=class_order)
    more = f" and {len(ordered) - LABELS_SHOWN} more" if len(ordered) > LABELS_SHOWN else ""
    return ", ".join(ordered[:LABELS_SHOWN]) + more


def group_numbers(groups: Any, first: int = 0) -> ndarray | None:
    """Return a number for each row, which is the same for rows of one group, or None for None.

    Integers are returned as they are. All other values are hashed to 64 bits. So the numbers do not depend on the block. Among a
    million groups, two share a number with a probability of 3e-8, and would then be treated as one group.

    Parameters
    ----------
    groups : array-like of shape (n_samples,) or None
        Numbers, strings, dates or categories.
    first : int, default=0
        The number of the first row in error messages.

    Returns
    -------
    ndarray of shape (n_samples,), int64, or None

    Raises
    ------
    InputError
        If the group of a row is missing, or the number of groups differs from the number of rows.

    Examples
    --------
    >>> from aucdist.data.labels import group_numbers
    >>> group_numbers([7, 7, -1]).tolist()
    [7, 7, -1]
    """
    if groups is None:
        return None
    import pandas as pd

    if isinstance(groups, ndarray) and groups.ndim != 1:
        raise InputError(
            f"groups must have the shape (n_samples,), with one value for each row; got the shape {groups.shape}"
        )
    series = pd.Series(groups)
    missing = series.isna().to_numpy()
    if missing.any():
        raise InputError(
            f"the group of row {first + int(np.argmax(missing))} (counted from 0) is missing: each row needs one. Rows that "
            "belong to no group can have a group of their own, which then has no pair"
        )
    if series.dtype.kind in "iu":
        return series.to_numpy().astype(np.int64)
    if series.dtype.kind == "f":
        numbers = series.to_numpy(dtype=np.float64)
        whole = (np.abs(numbers) < 2.0**53) & (numbers == np.floor(numbers))
        groups_of_rows = np.where(whole, numbers, 0.0).astype(np.int64)
        groups_of_rows[~whole] = _hashed(series[~whole])
        return groups_of_rows
    return _hashed(series)


def _hashed(series: "pd.Series") -> ndarray:
    import pandas as pd

    values = series.astype(object).map(str).to_numpy() if series.dtype.kind not in "mM" else series.to_numpy()
    return pd.util.hash_array(values, categorize=False).view(np.int64)


def numbers_of_texts(texts: Sequence[str]) -> ndarray:
    """Return a number for each string, int64: the value of an integer, however it is written, or a hash of any other string."""
    import pandas as pd

    spelled = [class_name(text) for text in texts]
    hashed = _hashed(pd.Series(spelled, dtype=object))
    whole = [i for i, text in enumerate(spelled) if WHOLE_NUMBER.fullmatch(text)]
    hashed[whole] = [int(spelled[i]) for i in whole]
    return hashed

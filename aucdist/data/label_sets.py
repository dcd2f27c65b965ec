"""Labels of rows with several classes: a table of the sets of classes that occur, and the index of each row's set."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy import ndarray

from aucdist.data.dataset import Schema
from aucdist.data.labels import Labels, check_number_of_classes
from aucdist.errors import InputError
from aucdist.parameters import frozen


@frozen
class LabelSets:
    """The distinct sets of classes that rows have. `Block.code` is the index of a row's set.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        The names of the classes.
    members : csc_array of shape (n_sets, n_classes), bool
        Which classes are in each set.
    exclusive : bool
        Whether a row has at most one class. Otherwise, a row may have any number of classes, as with labels or topics.
    """

    classes: ndarray
    members: sp.csc_array
    exclusive: bool

    @classmethod
    def of_classes(cls, classes: Any) -> "LabelSets":
        """Return the table of rows that have one class each, where the index of a row's set is the index of its class.

        Parameters
        ----------
        classes : array-like of shape (n_classes,)
            The names of the classes.

        Raises
        ------
        InputError
            If there are more than 1,000 classes.
        """
        names = np.asarray(classes)
        check_number_of_classes([str(name) for name in names.tolist()])
        return cls(names, sp.csc_array(sp.eye_array(len(names), dtype=bool, format="csc")), True)

    @classmethod
    def of_indicator(cls, Y: Any, classes: Any = None) -> "tuple[LabelSets, ndarray]":
        """Return the table of an indicator matrix, and the index of each row's set.

        Parameters
        ----------
        Y : ndarray or scipy sparse matrix or array of shape (n_samples, n_classes)
            An indicator matrix of zeros and ones.
        classes : array-like of shape (n_classes,), optional
            The names of the classes. By default, they are 0, 1, 2, ...

        Returns
        -------
        sets : LabelSets
        numbers : ndarray of shape (n_samples,), int32

        Raises
        ------
        InputError
            If an entry is neither 0 nor 1, or two columns have one name.
        """
        rows = sp.csr_array(Y)
        if not np.isin(rows.data, (0, 1)).all():
            raise InputError(
                "the labels are a matrix whose entries are not all 0 and 1: give an indicator matrix with a column "
                "for each class, or fit one model for each target"
            )
        names = np.arange(rows.shape[1]) if classes is None else np.asarray(classes)
        check_distinct(names)
        rows.eliminate_zeros()
        rows.sum_duplicates()
        set_numbers: dict[bytes, int] = {}
        keys = (rows.indices[start:stop].tobytes() for start, stop in itertools.pairwise(rows.indptr))
        numbers = np.array([set_numbers.setdefault(key, len(set_numbers)) for key in keys], dtype=np.int32)
        return cls(names, sp.csc_array(rows[np.unique(numbers, return_index=True)[1]].astype(bool)), False), numbers

    @classmethod
    def of_schema(cls, schema: Schema) -> "LabelSets":
        """Return the table for rows whose schema has `classes`."""
        if not schema.topics:
            return cls.of_classes(schema.classes)
        rows = [k for members in schema.sets for k in members]
        shape = len(schema.sets), len(schema.classes)
        members = sp.csr_array((np.ones(len(rows), dtype=bool), rows, np.cumsum([0, *map(len, schema.sets)])), shape)
        return cls(np.array(schema.classes), sp.csc_array(members), False)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    def names(self) -> list[str]:
        """Return the names of the classes as text."""
        return [str(name) for name in self.classes.tolist()]

    def labels_against_rest(self, k: int) -> ndarray:
        """Return +1 for sets with the class at position `k` and -1 for others, int8 of shape (n_sets,)."""
        labels = np.full(self.members.shape[0], -1, dtype=np.int8)
        labels[self.members.indices[self.members.indptr[k] : self.members.indptr[k + 1]]] = 1
        return labels

    def only(self, classes: Sequence[int]) -> "LabelSets":
        """Return the table with some of the classes only. Rows of other classes stay, with an empty set."""
        at = np.asarray(classes, dtype=np.intp)
        return replace(self, classes=self.classes[at], members=self.members[:, at])

    def counts(self, numbers: ndarray) -> ndarray:
        """Return the number of rows of each class, int64 of shape (n_classes,), given the number of each row's set."""
        return np.asarray(self.members.T @ np.bincount(numbers, minlength=self.members.shape[0]), dtype=np.int64)

    def indicator(self, numbers: ndarray) -> ndarray:
        """Return the classes of each row, bool of shape (n_samples, n_classes), given the number of each row's set."""
        return np.asarray(self.members.toarray()[numbers])


def sets_of_topics(
    texts: Iterable[str], classes: Sequence[str], known: Sequence[tuple[int, ...]] = ()
) -> tuple[tuple[int, ...], ...]:
    """Return the sets that are `known`, followed by other sets that rows have, as positions in `classes`.

    Parameters
    ----------
    texts : iterable of str
        The classes of rows, with commas between them. Classes that are not in `classes` are ignored.
    classes : sequence of str
        The names of the classes.
    known : sequence of tuple of int
        The sets that come first.

    Returns
    -------
    tuple of tuple of int
    """
    positions = {name: k for k, name in enumerate(classes)}
    sets = {_set_of(text, positions) for text in texts}
    return (*known, *sorted(sets - set(known)))


def set_numbers(labels: Labels, schema: Schema, where: str) -> ndarray:
    """Return the index of each row's set of classes in the table of a schema, int32 of shape (n_samples,).

    Parameters
    ----------
    schema : Schema
        A schema with `classes`. If it has `topics`, it has the sets of all rows.
    where : str
        The name of the data in error messages.

    Raises
    ------
    InputError
        If each row has one class, and a class is not in the schema.
    """
    if not schema.topics:
        # Raises an error for other classes.
        Labels(labels.class_numbers, labels.names).binary_labels(schema.classes, (), where)
    positions = {name: k for k, name in enumerate(schema.classes)}
    table = np.zeros(len(labels.names), dtype=np.int32)
    number_of_set = {members: k for k, members in enumerate(schema.sets)}
    for k in np.unique(labels.class_numbers).tolist():
        name = labels.names[k]
        table[k] = number_of_set[_set_of(name, positions)] if schema.topics else positions[name]
    return table[labels.class_numbers]


def _set_of(text: str, positions: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(sorted(positions[name] for name in text.split(",") if name in positions))


def check_distinct(names: ndarray) -> None:
    """Raise an InputError if two classes have the same name."""
    distinct, counts = np.unique([str(name) for name in names.tolist()], return_counts=True)
    if (counts > 1).any():
        raise InputError(
            f"two classes have the name {str(distinct[counts > 1][0])!r}: give each class a different name"
        )

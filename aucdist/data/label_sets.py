"""Labels of rows with several classes: a table of sets of classes, and for each row its place in the table."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from aucdist.data.labels import MOST_CLASSES, Labels, listed
from aucdist.errors import InputError


@dataclass(frozen=True, eq=False)
class LabelSets:
    """The distinct sets of classes that rows have; `Block.y` holds the place of a row's set, before a class is chosen.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Their names.
    members : csc_array of shape (n_sets, n_classes), bool
        Which classes are in each set.
    exclusive : bool
        Whether a row has one class at most. Else it has any number of them: these are labels, or topics.
    """

    classes: np.ndarray
    members: sp.csc_array
    exclusive: bool

    @classmethod
    def of_classes(cls, classes: Any) -> "LabelSets":
        """Return the table of rows that have one class each: the place of a row's set is that of its class.

        Parameters
        ----------
        classes : array-like of shape (n_classes,)

        Raises
        ------
        InputError
            For more than 1 000 classes.
        """
        names = np.asarray(classes)
        if len(names) > MOST_CLASSES:
            first = ", ".join(repr(name) for name in names[:5].tolist())
            raise InputError(
                f"the labels have {len(names)} values ({first}, ...), and at most {MOST_CLASSES} classes are fitted: is this a "
                "number to predict, or an identifier?"
            )
        return cls(names, sp.csc_array(sp.eye_array(len(names), dtype=bool, format="csc")), True)

    @classmethod
    def of_indicator(cls, Y: Any, classes: Any = None) -> "tuple[LabelSets, np.ndarray]":
        """Return the table of an indicator matrix, and the place of each row's set.

        Parameters
        ----------
        Y : ndarray or scipy sparse matrix or array of shape (n_samples, n_classes)
            Of zeros and ones.
        classes : array-like of shape (n_classes,), optional
            By default 0, 1, 2, ...

        Returns
        -------
        sets : LabelSets
        codes : ndarray of shape (n_samples,), int32

        Raises
        ------
        InputError
            If an entry is neither 0 nor 1, or two columns have one name.
        """
        rows = sp.csr_array(Y)
        if not np.isin(rows.data, (0, 1)).all():
            raise InputError(
                "the labels are a matrix whose entries are not all 0 and 1: an indicator matrix has a column for each class, and "
                "several targets of a row cannot be fitted at once"
            )
        names = np.arange(rows.shape[1]) if classes is None else np.asarray(classes)
        check_distinct(names)
        rows.eliminate_zeros()
        rows.sum_duplicates()
        places: dict[bytes, int] = {}
        codes = np.empty(rows.shape[0], dtype=np.int32)
        firsts: list[int] = []
        for row in range(rows.shape[0]):
            key = rows.indices[rows.indptr[row] : rows.indptr[row + 1]].tobytes()
            place = places.setdefault(key, len(places))
            if place == len(firsts):
                firsts.append(row)
            codes[row] = place
        members = sp.csc_array(rows[firsts].astype(bool))
        return cls(names, members, False), codes

    @classmethod
    def of_labels(cls, labels: Sequence[Labels], classes: Sequence[str], where: str) -> "tuple[LabelSets, np.ndarray]":
        """Return the table of labels that were read, and the place of each row's set.

        Parameters
        ----------
        labels : sequence of Labels
            Of the parts of the data, in their order.
        classes : sequence of str
            Those that are fitted.
        where : str
            Names the data in errors.

        Raises
        ------
        InputError
            If a row has one class, and it is not among these.
        """
        topics, place = labels[0].topics, {name: k for k, name in enumerate(classes)}
        places: dict[tuple[int, ...], int] = {} if topics else {(k,): k for k in range(len(classes))}
        codes = []
        for part in labels:
            used = set(np.unique(part.codes).tolist())
            table = np.zeros(len(part.names), dtype=np.int32)
            for code, name in enumerate(part.names):
                if code not in used:
                    continue
                names = name.split(",") if topics else [name]
                if not topics and name not in place:
                    raise InputError(
                        f"{where}: class {name!r} is not among the classes of the training data: {listed(classes)}"
                    )
                found = tuple(sorted(place[topic] for topic in names if topic in place))
                table[code] = places.setdefault(found, len(places))
            codes.append(table[part.codes])
        rows = [k for found in places for k in found]
        ends = np.cumsum([0, *map(len, places)])
        members = sp.csr_array((np.ones(len(rows), dtype=bool), rows, ends), (len(places), len(classes)))
        return cls(np.array(classes), sp.csc_array(members), not topics), np.concatenate(codes)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    def names(self) -> list[str]:
        """Return the names of the classes as text."""
        return [str(name) for name in self.classes.tolist()]

    def signs(self, k: int) -> np.ndarray:
        """Return for each set +1 where it has the class at position `k`, and else -1: int8 of shape (n_sets,)."""
        signs = np.full(self.members.shape[0], -1, dtype=np.int8)
        signs[self.members.indices[self.members.indptr[k] : self.members.indptr[k + 1]]] = 1
        return signs

    def only(self, which: Sequence[int]) -> "LabelSets":
        """Return the table with some classes; rows of the others stay, and have none of these."""
        at = np.asarray(which, dtype=np.intp)
        return replace(self, classes=self.classes[at], members=self.members[:, at])

    def counts(self, codes: np.ndarray) -> np.ndarray:
        """Return the number of rows of each class, int64 of shape (n_classes,); `codes` are the places of their sets."""
        of_sets = np.bincount(codes, minlength=self.members.shape[0])
        return np.asarray(self.members.T @ of_sets, dtype=np.int64)

    def indicator(self, codes: np.ndarray) -> sp.csr_array:
        """Return which classes rows have: csr_array of shape (n_samples, n_classes), bool."""
        return sp.csr_array(sp.csr_array(self.members)[codes])


@dataclass(frozen=True, eq=False)
class RowLabels:
    """Which classes the rows of a data set have.

    Attributes
    ----------
    sets : LabelSets
    codes : ndarray of shape (n_rows,), int32
        The place of the set of each row, by its ``row_id``.
    """

    sets: LabelSets
    codes: np.ndarray

    def only(self, which: Sequence[int]) -> "RowLabels":
        """Return the labels of some classes."""
        return RowLabels(self.sets.only(which), self.codes)

    def strata(self, row_id: np.ndarray) -> np.ndarray:
        """Return for each row the number of the group within which it is split: its class, or with topics one for all rows."""
        return self.codes[row_id] if self.sets.exclusive else np.zeros(len(row_id), dtype=np.int32)


def check_distinct(names: np.ndarray) -> None:
    """Raise an InputError if two classes have one name."""
    found, counts = np.unique([str(name) for name in names.tolist()], return_counts=True)
    if (counts > 1).any():
        raise InputError(f"two classes have the name {str(found[counts > 1][0])!r}: give each its own")

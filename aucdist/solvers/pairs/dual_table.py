"""Dual variables of pairs in a table that holds only those that are not 0."""

from dataclasses import dataclass

import numpy as np

from aucdist.kernels.pair_epochs import ENTRY, pour

LEAST = 256
"""The shortest table."""

FULL = 0.7
"""The share of its places that may be used. A table takes 16 bytes a place: 23 to 46 for each variable."""


@dataclass(frozen=True)
class Table:
    """Dual variables by pair.

    Attributes
    ----------
    entries : ndarray of ENTRY
        As `aucdist.kernels.pair_epochs` lays them out.
    used : int
        Places that are not free, those of variables that went back to 0 among them.
    """

    entries: np.ndarray
    used: int

    @classmethod
    def for_entries(cls, n: int) -> "Table":
        """Return an empty table that n entries fill to at most half of what is allowed."""
        length = LEAST
        while n > FULL / 2 * length:
            length *= 2
        return cls(np.zeros(length, dtype=ENTRY), 0)

    @property
    def room(self) -> int:
        """Places that may be used before the table has to be enlarged."""
        return int(FULL * len(self.entries))

    def plus(self, entries: np.ndarray, factor: float = 1.0) -> "Table":
        """Return another table, with factor times these entries added to its own; what is 0 is left out."""
        n = int(np.count_nonzero(self.entries["value"]) + np.count_nonzero(entries["value"]))
        other = Table.for_entries(n)
        used = pour(self.entries, 1.0, other.entries, 0)
        return Table(other.entries, pour(entries, factor, other.entries, used))

    def copy(self) -> "Table":
        """Return a table to be changed, without the zeros unless they are few: then copying them is faster."""
        if 2 * np.count_nonzero(self.entries["value"]) >= self.used:
            return Table(self.entries.copy(), self.used)
        return self.enlarged()

    def enlarged(self) -> "Table":
        """Return a table with room, and without the zeros."""
        return self.plus(self.entries[:0])

    def towards(self, other: "Table", share: float) -> "Table":
        """Return this much of the way from these variables to others."""
        way = Table.for_entries(0).plus(self.entries, 1.0 - share).plus(other.entries, share)
        np.minimum(way.entries["value"], 1.0, out=way.entries["value"])
        return way

    def total(self) -> float:
        """Return the sum of the variables."""
        return float(self.entries["value"].sum())

    def stored(self) -> np.ndarray:
        """Return the entries that are not 0, those of the lowest numbers first."""
        entries = self.entries[self.entries["value"] != 0.0]
        return entries[np.argsort(entries["number"])]

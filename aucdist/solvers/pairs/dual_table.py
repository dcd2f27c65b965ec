"""Dual variables of pairs in a hash table that stores only those that are not 0."""

from dataclasses import dataclass

import numpy as np

from aucdist.kernels.pair_epochs import ENTRY, add_entries

LEAST = 256
"""The smallest number of slots of a table."""

FULL = 0.7
"""The share of the slots that may be used. A slot takes 16 bytes, which is 23 to 46 bytes for each variable."""


@dataclass(frozen=True)
class DualTable:
    """Dual variables by pair.

    `entries`: in the layout of `aucdist.kernels.pair_epochs`.
    `used`: the number of slots that are not free; they include variables that are 0 again.
    """

    entries: np.ndarray
    used: int

    @classmethod
    def for_entries(cls, n: int) -> "DualTable":
        """Return an empty table in which n entries take at most half of the slots that may be used."""
        length = LEAST
        while n > FULL / 2 * length:
            length *= 2
        return cls(np.zeros(length, dtype=ENTRY), 0)

    @property
    def room(self) -> int:
        """The number of slots that may be used before the table has to be enlarged."""
        return int(FULL * len(self.entries))

    def plus(self, entries: np.ndarray, factor: float = 1.0) -> "DualTable":
        """Return a table of this one's variables plus factor times these entries; zeros are dropped."""
        n = int(np.count_nonzero(self.entries["value"]) + np.count_nonzero(entries["value"]))
        other = DualTable.for_entries(n)
        used = add_entries(self.entries, 1.0, other.entries, 0)
        return DualTable(other.entries, add_entries(entries, factor, other.entries, used))

    def copy(self) -> "DualTable":
        """Return a copy that may be changed. Zeros are dropped if they are many; else a plain copy is faster."""
        if 2 * np.count_nonzero(self.entries["value"]) >= self.used:
            return DualTable(self.entries.copy(), self.used)
        return self.enlarged()

    def enlarged(self) -> "DualTable":
        """Return a table with free slots and without zeros."""
        return self.plus(self.entries[:0])

    def towards(self, other: "DualTable", share: float, most: float = 1.0) -> "DualTable":
        """Return ``(1 - share)`` times these variables plus ``share`` times others, none of them above `most`."""
        mixed = DualTable.for_entries(0).plus(self.entries, 1.0 - share).plus(other.entries, share)
        np.minimum(mixed.entries["value"], most, out=mixed.entries["value"])
        return mixed

    def total(self) -> float:
        """Return the sum of the variables."""
        return float(self.entries["value"].sum())

    def stored(self) -> np.ndarray:
        """Return the entries that are not 0, in ascending order of their numbers."""
        entries = self.entries[self.entries["value"] != 0.0]
        return entries[np.argsort(entries["number"])]

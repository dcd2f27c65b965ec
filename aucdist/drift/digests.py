"""Whether rows were among those that a model was trained on, by digests of their features."""

import io
from dataclasses import dataclass

import numpy as np

from aucdist.data.block import Block, n_rows
from aucdist.engine.blocks import Blocks, Summary
from aucdist.errors import InputError
from aucdist.kernels.row_statistics import csr_digests, dense_digests
from aucdist.kernels.rows import CsrRows

MOST_KEPT = 2**16
"""Digests that are kept: all of fewer different rows, else those of the smallest numbers, 512 KiB."""


@dataclass(frozen=True, eq=False)
class RowDigests:
    """The digests of rows, or of a sample of them; those of several blocks merge by ``+``, in any order.

    A digest is a pseudo-random number that the features of a row decide. The smallest `MOST_KEPT` are kept, and with them the
    range that they cover: a row of other data whose digest lies in this range is known if it is among the kept ones, and was not
    in the training if it is not. So a share of any rows can be looked up, chosen without regard to whether they were there.

    Attributes
    ----------
    kept : ndarray of shape (n_kept,), uint64
        Ascending, each once.
    """

    kept: np.ndarray

    def __add__(self, other: "RowDigests") -> "RowDigests":
        """Return the digests of the rows of both."""
        return RowDigests(np.union1d(self.kept, other.kept)[:MOST_KEPT])

    def look_up(self, digests: np.ndarray) -> tuple[int, int]:
        """Return how many of some rows can be looked up, and how many of those are among the kept."""
        if len(self.kept) == MOST_KEPT:
            digests = digests[digests <= self.kept[-1]]
        at = np.searchsorted(self.kept, digests)
        known = self.kept[np.minimum(at, len(self.kept) - 1)] == digests if len(self.kept) else np.zeros(0, dtype=bool)
        return len(digests), int(np.count_nonzero(known))

    def to_bytes(self) -> bytes:
        """Return them as a ``.npy`` file."""
        buffer = io.BytesIO()
        np.save(buffer, self.kept, allow_pickle=False)
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> "RowDigests":
        """Return the digests in a ``.npy`` file.

        Raises
        ------
        InputError
            If it is damaged.
        """
        try:
            kept = np.load(io.BytesIO(data), allow_pickle=False)
        except Exception as e:  # NumPy parses the header as Python
            raise InputError(f"{where} is damaged: {e}") from None
        if not isinstance(kept, np.ndarray) or kept.dtype != np.uint64 or kept.ndim != 1 or len(kept) > MOST_KEPT:
            raise InputError(f"{where} is damaged: at most {MOST_KEPT} numbers of type uint64 are needed")
        if not (kept[:-1] < kept[1:]).all():
            raise InputError(f"{where} is damaged: its numbers do not ascend")
        return cls(kept)


def digests_of(block: Block) -> np.ndarray:
    """Return the digest of each row, uint64 of shape (n_samples,); the layout and the type of its values do not matter."""
    rows = block.rows
    out = np.empty(n_rows(rows), dtype=np.uint64)
    bits = np.ascontiguousarray(rows.values, dtype=np.float64).view(np.uint64)
    if isinstance(rows, CsrRows):
        csr_digests(bits, rows.indices, rows.offsets, out)
    else:
        dense_digests(bits, out)
    return out


def fit_digests(blocks: Blocks) -> RowDigests:
    """Return the digests of all rows; one reduction."""
    digests: RowDigests = blocks.sum(_digests_step)["digests"]
    return digests


def _digests_step(block: Block) -> Summary:
    return {"digests": RowDigests(smallest(digests_of(block), MOST_KEPT))}


def smallest(numbers: np.ndarray, n: int) -> np.ndarray:
    """Return the `n` smallest different numbers, ascending; all of them where they are fewer."""
    if len(numbers) > 2 * n + 1:
        least = np.unique(np.partition(numbers, 2 * n)[: 2 * n + 1])  # the smallest ones, and most rows are there once
        if len(least) >= n:
            return least[:n]
    return np.unique(numbers)[:n]


def count_known(blocks: Blocks, known: RowDigests) -> tuple[int, int]:
    """Return what `RowDigests.look_up` returns of all rows; one reduction."""
    counts = blocks.sum(_known_step, known)
    return int(counts["checked"]), int(counts["known"])


def _known_step(block: Block, known: RowDigests) -> Summary:
    checked, n_known = known.look_up(digests_of(block))
    return {"checked": checked, "known": n_known}

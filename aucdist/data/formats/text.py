"""The bytes of a text file: pieces of it, and errors that name the line and the column."""

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from aucdist.errors import InputError
from aucdist.kernels.svmlight import gather

SHOWN = 40  # characters of a wrong piece of text
MOST_DIGITS = 400  # more are more than a float64 has
BEYOND_EXACT = "is an integer beyond 2**53 that no float64 has"
REMEDY_EXACT = "; leave the column out, or list it under `categorical` or `hashed`"


@dataclass(frozen=True)
class Text:
    """Whole lines of a file.

    `data`: the last byte is a line break.
    `first_line`: the number of the first line.
    """

    data: bytes
    where: str
    first_line: int = 1

    @classmethod
    def of(cls, data: bytes, where: str, first_line: int = 1) -> "Text":
        """Return the text; a line break that is missing at the end is added."""
        return cls(data if data.endswith(b"\n") else data + b"\n", where, first_line)

    @property
    def array(self) -> np.ndarray:
        """The bytes as an array of uint8."""
        return np.frombuffer(self.data, dtype=np.uint8)

    def line(self, offset: int) -> str:
        """Return the file and the number of the line of a byte, as in ``f.csv, line 3``."""
        number = self.first_line + self.data.count(b"\n", 0, offset)
        return f"{self.where}, line {number}"

    def fault(self, offset: int, reason: str) -> InputError:
        """Return the error that names a byte by line and column, both from 1."""
        column = offset - self.data.rfind(b"\n", 0, offset)
        return InputError(f"{self.line(offset)}, column {column}: {reason}")

    def rest_of_line(self, offset: int) -> bytes:
        """Return what stands from a byte to the end of its line."""
        return self.data[offset : self.data.index(b"\n", offset)]

    def distinct(self, spans: np.ndarray) -> tuple[np.ndarray, list[bytes]]:
        """Return the distinct ones of many pieces.

        `spans`, of shape (n, 2), int64: where each piece starts and stops.
        Returns `codes` of shape (n,), int32, for each piece its position among the distinct ones; `pieces`.
        """
        offsets = np.concatenate([[0], np.cumsum(spans[:, 1] - spans[:, 0])])
        joined = np.empty(offsets[-1], dtype=np.uint8)
        gather(self.array, spans, offsets, joined)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(joined)]
        found = pa.Array.from_buffers(pa.large_binary(), len(spans), buffers).dictionary_encode()
        return found.indices.to_numpy(), found.dictionary.to_pylist()


def not_utf8(byte: int) -> str:
    """Return what is wrong with a byte that is no UTF-8, and what to do."""
    other = "`encoding: utf-16`" if byte in (0xFE, 0xFF) else "`encoding: cp1252`, latin-1 or utf-16"
    return f"not UTF-8 text (byte {byte:#x}); if the file is written in another encoding, say so by {other}"


def shown(raw: bytes) -> str:
    """Return a wrong piece of text for a message."""
    return repr(raw[: 4 * SHOWN].decode(errors="replace")[:SHOWN])


def problem_with_number(raw: bytes, value: float) -> str | None:
    """Return what is wrong with a number of many digits, if anything.

    `raw`: its text, which Python's `float` can read.
    `value`: what it became.
    """
    if not math.isfinite(value):
        return "is not finite"
    if raw.lstrip(b"+-").isdigit() and len(raw) < MOST_DIGITS and int(raw) != int(float(raw)):
        return BEYOND_EXACT
    return None

"""svmlight files: ``label index:value index:value ... # comment``, with one row on each line and ascending indices."""

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from aucdist.data.formats import svmlight_kernels as kernels
from aucdist.data.formats.base import Parsed, Survey
from aucdist.data.formats.source_fields import SourceFields
from aucdist.data.formats.table_options import is_finite_number
from aucdist.data.formats.tables import as_arrow, as_numpy
from aucdist.data.formats.text import SHOWN_OF_TEXT, describe_bad_number, excerpt, is_number
from aucdist.data.labels import Labels
from aucdist.errors import InputError

LAST_INDEX = np.iinfo(np.int32).max - 1
"""The largest index of a feature. The number of features is larger by one, and has to fit into 32 bits as well."""


@dataclass(frozen=True)
class Lines:
    """Whole lines of a file.

    Attributes
    ----------
    data : bytes
        The bytes, of which the last one is a line break.
    where : str
        The name of the data in error messages.
    first_line : int
        The number of the first line.
    """

    data: bytes
    where: str
    first_line: int = 1

    def fault(self, offset: int, reason: str) -> InputError:
        """Return the error that names a byte by line and column, both counted from 1."""
        line, column = self.first_line + self.data.count(b"\n", 0, offset), offset - self.data.rfind(b"\n", 0, offset)
        return InputError(f"{self.where}, line {line}, column {column}: {reason}")


def parse_svmlight(
    data: bytes, where: str, source: SourceFields, n_features: int | None, first_line: int = 1
) -> Parsed:
    """Read a file, or a part of it that consists of whole lines. There may be no rows.

    Every number has the value that Python's `float` returns, or the nearest float32 to it.

    Parameters
    ----------
    data : bytes
        The content of the file.
    where : str
        The name of the data in error messages.
    source : SourceFields
        The source of the rows.
    n_features : int or None
        The number of features. None means the largest index that occurs.
    first_line : int, default=1
        The number of the first line, for error messages.

    Raises
    ------
    InputError
        If a line is malformed, an index is below the first one, above `n_features`, or not above the previous one, or a value
        or a label is not finite. The message names line and column.
    """
    text, dtype = Lines(data if data.endswith(b"\n") else data + b"\n", where, first_line), source.dtype or "float64"
    array, first = np.frombuffer(text.data, dtype=np.uint8), 0 if source.zero_based else 1
    most_rows, most_values = kernels.count_at_most(array)
    spans, offsets = np.empty((most_rows, 2), dtype=np.int64), np.empty(most_rows + 1, dtype=np.int64)
    indices, values = np.empty(most_values, dtype=np.int32), np.empty(most_values, dtype=dtype)
    hard = np.empty((most_values, 3), dtype=np.int64)  # the system allocates only memory pages that are written
    last, most = LAST_INDEX if n_features is None else n_features - 1 + first, float(np.finfo(dtype).max)
    queries = np.empty(most_rows if source.qid == "use" else 0, dtype=np.int64)
    topics = source.labels == "topics"
    n, n_values, n_hard, width, fault, offset = kernels.parse_rows(
        array, first, last, most, topics, source.qid == "ignore", queries, spans, offsets, indices, values,
        hard,
    )  # fmt: skip
    if fault != kernels.NO_FAULT:
        raise text.fault(offset, _pair_fault(text, offset, fault, n_features, dtype))
    positions, spans_of_hard = hard[:n_hard, 0], hard[:n_hard, 1:]
    numbers = as_numpy(_spans(text, spans_of_hard).view(pa.large_string()).cast(pa.float64()))
    for i in np.flatnonzero(~(np.abs(numbers) < 2.0**53)):
        start, stop = spans_of_hard[i]
        raw = text.data[start:stop]
        if not abs(numbers[i]) <= most:
            index = len(text.data[: start - 1].rstrip(b"0123456789"))
            raise text.fault(index, _pair_fault(text, index, kernels.TOO_LARGE, n_features, dtype))
        if problem := describe_bad_number(raw, numbers[i]):
            raise text.fault(start, f"value {excerpt(raw)} {problem}")
    values[positions] = numbers
    X = sp.csr_matrix((values[:n_values], indices[:n_values], offsets[: n + 1]), (n, n_features or width))
    X.has_canonical_format = True
    if not numbers.all():
        X.eliminate_zeros()
    group = queries[:n] if source.qid == "use" else None
    if group is not None and kernels.NO_QUERY in group:
        raise text.fault(
            int(spans[np.argmax(group == kernels.NO_QUERY), 0]),
            "the row has no query id right after its label (qid:7), which `qid: use` needs of every row",
        )
    labels = _labels(text, spans[:n], topics)
    return Parsed(Survey.of(where, labels, stored=X.nnz, width=X.shape[1]), labels, X, group=group)


def _spans(text: Lines, spans: np.ndarray) -> pa.Array:
    """Return pieces of a text as large_binary. `spans`, of shape (n, 2), has the start and the end of each piece."""
    ends, n = np.append(spans.ravel(), 0), len(spans)  # The text between two pieces becomes an item that is not used.
    items = pa.Array.from_buffers(
        pa.large_binary(), max(2 * n - 1, 0), [None, pa.py_buffer(ends), pa.py_buffer(text.data)]
    )
    return items.take(as_arrow(np.arange(0, 2 * n, 2)))


def _labels(text: Lines, spans: np.ndarray, topics: bool) -> Labels:
    """Return the labels in a text. `spans`, of shape (n, 2), has the start and the end of each label."""
    encoded = _spans(text, spans).dictionary_encode()
    codes, pieces = as_numpy(encoded.indices), encoded.dictionary.to_pylist()
    labels = [raw.decode("utf-8" if topics else "ascii", "replace") for raw in pieces]
    for code, (raw, label) in enumerate(zip(pieces, labels, strict=True)):
        if label.encode() == raw if topics else is_finite_number(label):
            continue
        expected = "a number; for words, or several labels a row, give `labels: topics`"
        if topics:
            expected = "UTF-8 text"
        elif ":" in label:
            expected = "a number; is the label missing?"
        elif is_number(label):
            expected = "a finite number: correct it, or leave the row out"
        raise text.fault(int(spans[np.argmax(codes == code), 0]), f"label {excerpt(raw)} is not {expected}")
    return Labels.of(codes, labels, topics=topics)


def _pair_fault(text: Lines, offset: int, fault: int, n_features: int | None, dtype: str) -> str:
    """Describe what is wrong with the pair at an offset."""
    token = (text.data[offset : text.data.index(b"\n", offset)].partition(b"#")[0].split() or [b""])[0]
    index, _, value = token.partition(b":")
    if fault == kernels.NO_PAIR and index == b"qid":
        return (
            f"the row has a query id ({excerpt(token)}). Give `qid: use` to compare only rows of the same query, or "
            "`qid: ignore` to compare all rows"
        )
    if fault == kernels.BAD_QUERY:
        return f"{excerpt(token)}: a query id is a whole number of at most 18 digits"
    if fault == kernels.NO_PAIR:
        return f"{excerpt(token)} is not of the form index:value"
    if fault == kernels.TOO_LOW:
        return "index 0, but the first feature is number 1; give `zero_based: true` if it is number 0 here"
    number = index[:SHOWN_OF_TEXT].decode()
    if fault == kernels.TOO_HIGH and n_features is not None:
        return f"index {number}, but there are {n_features} features (`n_features`, or the training data)"
    if fault == kernels.TOO_HIGH:
        return f"index {number} is too large; the largest possible is {LAST_INDEX}"
    if fault == kernels.NOT_ASCENDING:
        # The label has no colon. If a row has no topics, its line begins with a pair.
        words = text.data[text.data.rfind(b"\n", 0, offset) + 1 : offset].split()
        pair = [word for word in words if b":" in word and not word.startswith(b"qid")][-1]
        return f"index {number} after {pair.partition(b':')[0].decode()}: indices must ascend within a row"
    if fault == kernels.TOO_LARGE and math.isfinite(float(value)):
        return f"value {excerpt(value)} is too large for {dtype}; read it as float64"
    infinite = fault == kernels.TOO_LARGE or value.lower().lstrip(b"+-") in (b"inf", b"infinity", b"nan")
    return f"value {excerpt(value)} is not {'finite' if infinite else 'a number'}"

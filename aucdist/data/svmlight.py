"""svmlight files: ``label index:value index:value ... # comment``, one row a line, indices ascending."""

import io
import math
import re
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from aucdist.errors import InputError

TOKEN = re.compile(rb"\S+")
INDEX = re.compile(rb"[0-9]+")
# The quick parser passes these by, but we want none of them: query ids (dropped) and 1_000 (read as 1000).
SUSPECT = re.compile(rb"qid:|[0-9]_[0-9]")


def parse_svmlight(
    data: bytes, where: str, *, n_features: int | None, zero_based: bool
) -> tuple[sp.csr_matrix, np.ndarray]:
    """Read a file.

    Parameters
    ----------
    data : bytes
        Its content.
    where : str
        Names the file in errors.
    n_features : int or None
        The width; None takes the largest index that occurs.
    zero_based : bool
        Whether the first feature is number 0 instead of 1.

    Returns
    -------
    X : csr_matrix of shape (n_samples, n_features), float64
        Zeros that the file writes out are not kept.
    y : ndarray of shape (n_samples,), float64
        The labels.

    Raises
    ------
    InputError
        If a line is malformed, naming line and column; if an index is below the first, above `n_features`, or not
        above the one before it; or if a value or a label is not finite.
    """
    limits: dict[str, Any] = {"n_features": n_features, "zero_based": zero_based}
    try:
        X, y = load_svmlight_file(io.BytesIO(data), **limits)
    except (ValueError, OverflowError) as e:
        find_fault(data, where, **limits)
        raise InputError(f"{where}: {e}") from None
    if X.nnz == 0 or SUSPECT.search(data) or not (np.isfinite(X.data).all() and np.isfinite(y).all()):
        find_fault(data, where, **limits)
    X.eliminate_zeros()
    return X, y


def find_fault(data: bytes, where: str, *, n_features: int | None, zero_based: bool) -> None:
    """Go through a file token by token and raise at the first fault. Slow: for files thought to have one.

    Raises
    ------
    InputError
        Naming line and column (both from 1), or if there is no row or no feature.
    """
    n_values = 0
    for number, line in enumerate(data.split(b"\n"), 1):
        tokens = list(TOKEN.finditer(line.partition(b"#")[0]))
        before = -1
        for k, token in enumerate(tokens):
            try:
                if k == 0:
                    _finite(token[0], "label")
                else:
                    before = _pair(token[0], before, n_features, zero_based)
            except ValueError as e:
                raise InputError(f"{where}, line {number}, column {token.start() + 1}: {e}") from None
        n_values += max(0, len(tokens) - 1)
    if n_values == 0:
        raise InputError(f"{where}: no row has a feature")


def _pair(token: bytes, before: int, n_features: int | None, zero_based: bool) -> int:
    """Check one ``index:value`` and return its index."""
    text = token.decode(errors="replace")[:40]
    index, colon, value = token.partition(b":")
    if index == b"qid":
        raise ValueError(f"{text!r}: query ids are not supported; remove them")
    if not colon or not INDEX.fullmatch(index):
        raise ValueError(f"{text!r} is not of the form index:value")
    i = int(index)
    if i == 0 and not zero_based:
        raise ValueError("index 0, but the first feature is number 1; give `zero_based: true` if it is number 0 here")
    if n_features is not None and i >= n_features + (not zero_based):
        raise ValueError(f"index {i}, but there are {n_features} features (`n_features`, or the training data)")
    if i >= np.iinfo(np.int32).max:
        raise ValueError(f"index {i} is too large")
    if i <= before:
        raise ValueError(f"index {i} after {before}: indices must ascend within a row")
    _finite(value, "value")
    return i


def _finite(token: bytes, kind: str) -> None:
    text = token.decode(errors="replace")[:40]
    try:
        number = float(token)
    except ValueError:
        raise ValueError(f"{kind} {text!r} is not a number") from None
    if b"_" in token:
        raise ValueError(f"{kind} {text!r} is not a number")
    if not math.isfinite(number):
        raise ValueError(f"{kind} {text!r} is not finite")

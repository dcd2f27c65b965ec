"""Serialize trees of numbers, strings, arrays and dataclasses of this package without any loss. Reading them runs no code.

Checkpoints, saved models and saved feature maps are such trees.
"""

import hashlib
import importlib
import io
import json
import threading
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import numpy as np
import scipy.sparse as sp
from numpy import ndarray

from aucdist.errors import InputError

TREE = "tree"
PLAIN_TYPES = (bool, int, float, str)
OWN_PACKAGE = "aucdist."
CSR = (sp.csr_matrix, sp.csr_array)
ONE_AT_A_TIME = threading.Lock()
"""A lock. NumPy parses the header of each array as Python, and CPython before 3.11.8 may fail if two threads parse at the same
time (CPython issue 106905)."""

RENAMED_MODULES = {
    "aucdist.maps.basis": "aucdist.maps.binning",
    "aucdist.maps.edges": "aucdist.maps.binning",
    "aucdist.maps.forest": "aucdist.maps.leaves",
    "aucdist.maps.rising_leaves": "aucdist.maps.leaves",
}
"""Modules that were renamed in 0.5.0: the old name, which stored models have, and the new one."""


def serialize(tree: Any) -> bytes:
    """Serialize a tree as the bytes of an ``.npz`` file: its arrays, and the rest as JSON.

    Parameters
    ----------
    tree : object
        None, bool, int, float, str, NumPy arrays and scalars, CSR matrices, and lists, tuples, dicts, dataclasses and named
        tuples of such. Classes must be of this package.

    Raises
    ------
    TypeError
        For any other value.
    """
    arrays = list[ndarray]()
    text = json.dumps(_to_json(tree, arrays))
    buffer = io.BytesIO()
    named = {str(i): array for i, array in enumerate(arrays)}
    np.savez(buffer, allow_pickle=False, **{TREE: np.frombuffer(text.encode(), dtype=np.uint8)}, **named)
    return buffer.getvalue()


def deserialize(data: bytes) -> Any:
    """Return the tree from which `serialize` made these bytes.

    Raises
    ------
    InputError
        If the bytes are not a serialized tree.
    """
    try:
        with ZipFile(io.BytesIO(data)) as packed:
            if any(member.compress_type != ZIP_STORED for member in packed.infolist()):
                raise ValueError("its arrays are compressed, but aucdist writes uncompressed arrays only")
        with ONE_AT_A_TIME, np.load(io.BytesIO(data), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        return _from_json(json.loads(arrays[TREE].tobytes()), arrays)
    # NumPy parses headers as Python literals, and records check their fields, so any error is possible.
    except Exception as error:
        raise InputError(
            f"the data are not a value that aucdist has serialized: {type(error).__name__}: {error}"
        ) from None


def _to_json(value: Any, arrays: list[ndarray], other: Callable[[Any], Any] | None = None) -> Any:
    """Return a value as JSON. Numbers and strings stay as they are, and most others become a list that begins with their kind.

    Parameters
    ----------
    value : object
        The value to convert.
    arrays : list of ndarray
        The arrays in the value are appended to it.
    other : callable, optional
        Called with a value of any other kind.
    """

    def inner(part: Any) -> Any:
        """Return a part of the value as JSON, with its arrays in the same list."""
        return _to_json(part, arrays, other)

    kind = type(value)
    if value is None or kind in PLAIN_TYPES:
        return value
    if isinstance(value, ndarray | np.generic):
        array = np.asarray(value)
        if array.dtype.hasobject:
            raise TypeError("an array of objects cannot be serialized")
        arrays.append(array)
        return ["array" if isinstance(value, ndarray) else "scalar", len(arrays) - 1]
    if kind in (list, tuple):
        return [kind.__name__, *map(inner, value)]
    if kind is dict:
        return ["dict", *([inner(k), inner(v)] for k, v in value.items())]
    if isinstance(value, CSR):
        return [
            "csr",
            CSR.index(kind),
            list(value.shape),
            *map(inner, (value.data, value.indices, value.indptr)),
        ]
    fields = _fields(kind) if kind.__module__.startswith(OWN_PACKAGE) else None
    if fields is None:
        if other is None:
            raise TypeError(f"{kind.__module__}.{kind.__qualname__} cannot be serialized")
        return other(value)
    values, optional = [getattr(value, name) for name in fields], list(fields.values())
    while values and values[-1] is None and optional[len(values) - 1]:
        values.pop()  # older versions, which lack the field, can then read records that do not use it
    return ["record", kind.__module__, kind.__qualname__, *map(inner, values)]


def _from_json(value: Any, arrays: dict[str, ndarray]) -> Any:
    if not isinstance(value, list):
        return value
    head, *rest = value
    if head == "array":
        return arrays[str(rest[0])]
    if head == "scalar":
        return arrays[str(rest[0])][()]
    if head == "list":
        return [_from_json(v, arrays) for v in rest]
    if head == "tuple":
        return tuple(_from_json(v, arrays) for v in rest)
    if head == "dict":
        return {_from_json(k, arrays): _from_json(v, arrays) for k, v in rest}
    if head == "csr":
        kind, shape, *parts = rest
        return CSR[kind](tuple(_from_json(part, arrays) for part in parts), shape=tuple(shape), copy=False)
    if head == "record":
        # Only dataclasses and named tuples of this package are allowed. Other classes, and functions, are errors.
        written, name, *values = rest
        module = RENAMED_MODULES.get(written, str(written))
        if not module.startswith(OWN_PACKAGE):
            raise ValueError(f"{module} is not a module of aucdist")
        kind = getattr(importlib.import_module(module), name)
        known = _fields(kind) if isinstance(kind, type) and kind.__module__ == module else None
        if known is None:
            raise ValueError(f"{module}.{name} is not a dataclass or named tuple of aucdist")
        if len(values) > len(known) or not all(list(known.values())[len(values) :]):
            raise ValueError(f"{module}.{name} has {len(known)} fields, but the file has {len(values)}")
        return kind(**dict(zip(known, (_from_json(v, arrays) for v in values), strict=False)))
    raise ValueError(f"unknown head {head!r}")


def _fields(kind: Any) -> dict[str, bool] | None:
    """Return for each field of a record whether it may be missing, because its default is None. Return None for other classes."""
    if is_dataclass(kind):
        return {field.name: field.default is None for field in fields(kind)}
    return dict.fromkeys(kind._fields, False) if issubclass(kind, tuple) and hasattr(kind, "_fields") else None


def digest(tree: Any) -> str:
    """Return a digest of the arguments of a step: the bytes of arrays and numbers, and the names of functions and classes."""
    arrays = list[ndarray]()
    text = json.dumps(
        _to_json(tree, arrays, lambda other: f"{type(other).__name__} {getattr(other, '__qualname__', '')}")
    )
    sha256 = hashlib.sha256(text.encode())
    for array in arrays:
        sha256.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
    return sha256.hexdigest()[:16]

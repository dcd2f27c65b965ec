"""Serialize trees of plain values, arrays and our own dataclasses, to the last bit; reading them runs no code."""

import dataclasses
import importlib
import io
import json
import threading
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import numpy as np
import scipy.sparse as sp

from aucdist.errors import InputError

TREE = "tree"
PLAIN = (bool, int, float, str)
OURS = "aucdist."
CSR = (sp.csr_matrix, sp.csr_array)
ONE_AT_A_TIME = threading.Lock()
"""NumPy parses the header of each array as Python, and CPython before 3.11.8 fails at times where two threads parse (its issue
106905)."""

MOVED = {
    "aucdist.maps.basis": "aucdist.maps.binning",
    "aucdist.maps.edges": "aucdist.maps.binning",
    "aucdist.maps.rising_leaves": "aucdist.maps.leaves",
}
"""The present modules of the records of models that were saved before 0.5.0."""


def serialize(tree: Any) -> bytes:
    """Serialize a tree as the bytes of an ``.npz`` file: its arrays, and the rest as JSON.

    `tree`: None, bool, int, float, str, NumPy arrays and scalars, CSR matrices, and lists, tuples, dicts, dataclasses
        and named tuples of such. Classes must be of this package.
    Raises TypeError for anything else.
    """
    arrays: list[np.ndarray] = []
    text = json.dumps(_to_json(tree, arrays))
    buffer = io.BytesIO()
    named = {str(i): array for i, array in enumerate(arrays)}
    np.savez(buffer, allow_pickle=False, **{TREE: np.frombuffer(text.encode(), dtype=np.uint8)}, **named)
    return buffer.getvalue()


def deserialize(data: bytes) -> Any:
    """Return the tree that `serialize` was given.

    Raises InputError if the bytes are not a serialized tree.
    """
    try:
        with ZipFile(io.BytesIO(data)) as packed:
            if any(member.compress_type != ZIP_STORED for member in packed.infolist()):
                raise ValueError("its arrays are compressed, but aucdist writes uncompressed arrays only")
        with ONE_AT_A_TIME, np.load(io.BytesIO(data), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        return _from_json(json.loads(arrays[TREE].tobytes()), arrays)
    except Exception as error:  # any exception: NumPy parses headers as Python literals, and records check fields
        raise InputError(
            f"the data are not a value that aucdist has serialized: {type(error).__name__}: {error}"
        ) from None


def _to_json(value: Any, arrays: list[np.ndarray]) -> Any:
    """Return a value as JSON: plain ones as they are, all others as a list whose head says what it is."""
    if value is None or type(value) in PLAIN:
        return value
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        if array.dtype.hasobject:
            raise TypeError("an array of objects cannot be serialized")
        arrays.append(array)
        return ["array" if isinstance(value, np.ndarray) else "scalar", len(arrays) - 1]
    if type(value) in (list, tuple):
        return [type(value).__name__, *(_to_json(v, arrays) for v in value)]
    if type(value) is dict:
        return ["dict", *([_to_json(k, arrays), _to_json(v, arrays)] for k, v in value.items())]
    if isinstance(value, CSR):
        parts = [_to_json(part, arrays) for part in (value.data, value.indices, value.indptr)]
        return ["csr", CSR.index(type(value)), list(value.shape), *parts]
    kind = type(value)
    fields = _fields(kind) if kind.__module__.startswith(OURS) else None
    if fields is None:
        raise TypeError(f"{kind.__module__}.{kind.__qualname__} cannot be serialized")
    values, optional = [getattr(value, name) for name in fields], list(fields.values())
    while values and values[-1] is None and optional[len(values) - 1]:
        values.pop()  # so that older versions, which lack the field, can read records that do not use it
    return ["record", kind.__module__, kind.__qualname__, *(_to_json(v, arrays) for v in values)]


def _from_json(value: Any, arrays: dict[str, np.ndarray]) -> Any:
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
        return _record(rest[0], rest[1], [_from_json(v, arrays) for v in rest[2:]])
    raise ValueError(f"unknown head {head!r}")


def _record(module: str, name: str, fields: list[Any]) -> Any:
    """Return an object of one of our own dataclasses or named tuples: other classes, and functions, are refused."""
    if not module.startswith(OURS):
        raise ValueError(f"{module} is not a module of aucdist")
    module = MOVED.get(module, module)
    kind = getattr(importlib.import_module(module), name)
    known = _fields(kind) if isinstance(kind, type) and kind.__module__ == module else None
    if known is None:
        raise ValueError(f"{module}.{name} is not a dataclass or named tuple of aucdist")
    if len(fields) > len(known) or not all(list(known.values())[len(fields) :]):
        raise ValueError(f"{module}.{name} has {len(known)} fields, but the file has {len(fields)}")
    return kind(**dict(zip(known, fields, strict=False)))


def _fields(kind: Any) -> dict[str, bool] | None:
    """Return the fields of a record, each with whether it may be left out, being None by default; None of other classes."""
    if dataclasses.is_dataclass(kind):
        return {field.name: field.default is None for field in dataclasses.fields(kind)}
    return dict.fromkeys(kind._fields, False) if issubclass(kind, tuple) and hasattr(kind, "_fields") else None

"""Checks of JSON that a run wrote and another one reads back: it may be damaged, or made by somebody else.

A type of JSON is a dataclass or a pydantic model with limits. `CHECKED` as its ``__pydantic_config__`` refuses unknown keys and
values of other types.
"""

import functools
import re
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import from_json

from aucdist.errors import InputError

T = TypeVar("T")

CHECKED = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
MOST_BYTES = 2**31
"""The largest JSON that is read. Ten million features with their names take a tenth of it."""
SHOWN = 120  # characters of a value in an error

Count = Annotated[int, Field(ge=0, le=2**62)]
Positive = Annotated[int, Field(ge=1, le=2**62)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


def _file_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}", name):
        raise ValueError(f"{name[:SHOWN]!r} is not the name of a file in its folder")
    return name


FileName = Annotated[str, AfterValidator(_file_name)]
"""The name of a file in its folder: no path leads out of it."""


def _file_path(path: str) -> str:
    folder, _, name = path.rpartition("/")
    return f"{_file_name(folder)}/{_file_name(name)}" if folder else _file_name(name)


FilePath = Annotated[str, AfterValidator(_file_path)]
"""The name of a file in a folder, or in a folder of it."""


def parse_checked(data: bytes, kind: type[T], where: str, *, context: dict[str, Any] | None = None) -> T:
    """Return JSON as an object of a type.

    `kind`: a dataclass, a pydantic model, or a type such as ``list[int]``.
    `context`: for the validators of pydantic.
    Raises InputError if it is no JSON, is too large or too deep, or is not of that type, naming the key.
    """
    if len(data) > MOST_BYTES:
        raise InputError(f"{where} is damaged: {len(data)} bytes, and at most {MOST_BYTES} are read")
    try:
        found: T = _adapter(kind).validate_json(data, context=context)  # type: ignore[arg-type]  # types are hashable
        return found
    except ValidationError as e:
        raise InputError(f"{where} is damaged: {first_fault(e)}") from None


def parse_any(data: bytes, where: str) -> Any:
    """Return JSON of unknown content; errors as `parse_checked`."""
    try:
        return from_json(data, allow_inf_nan=False)
    except ValueError as e:
        raise InputError(f"{where} is damaged: {e}") from None


def to_jsonable(content: Any, kind: type[Any]) -> Any:
    """Return an object of a type that `parse_checked` reads, in types of JSON."""
    return _adapter(kind).dump_python(content, mode="json")  # type: ignore[arg-type]


def first_fault(error: ValidationError) -> str:
    """Return the first fault that pydantic found, with its key, in one line of bounded length."""
    first = error.errors(include_url=False)[0]
    key = ".".join(str(part)[:SHOWN] for part in first["loc"])
    cause = str(first.get("ctx", {}).get("error", first["msg"])).splitlines()[0][: 4 * SHOWN]
    plain = isinstance(first["input"], str | int | float | bool | None) and first["type"] != "value_error"
    shown = repr(first["input"])[:SHOWN] if plain else ""
    return f"{f'`{key}`: ' if key else ''}{cause}{f', not {shown}' if shown else ''}"


@functools.cache
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)

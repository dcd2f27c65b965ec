"""Read JSON, Parquet and NumPy files that aucdist wrote, which may be damaged or forged.

Each kind of file has a schema. For JSON, it is a dataclass, a pydantic model or a typed dictionary with limits. With
`NO_MORE_KEYS` as its ``__pydantic_config__``, unknown keys and values of other types are errors. With `MORE_KEYS`, only values
of other types are. For Parquet, it is a schema of Arrow.
"""

import functools
import io
import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import AfterValidator, AliasChoices, ConfigDict, Field, TypeAdapter, ValidationError, with_config
from pydantic_core import from_json, to_jsonable_python
from typing_extensions import TypedDict

from aucdist.data.storage import files
from aucdist.data.storage.guard import check_growth
from aucdist.errors import InputError, as_input_error, first_line, printable

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

T = TypeVar("T")

NO_MORE_KEYS = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
MORE_KEYS = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)
MAX_JSON_BYTES = 2**31
"""The size limit of JSON files, in bytes. The names of ten million features take a tenth of it."""
SHOWN = 120  # the number of characters of a value in an error message
REPAIR = "Copy the file again, or run the command that wrote it again"
"""The remedy in errors about damaged files that aucdist wrote."""

Count = Annotated[int, Field(ge=0, le=2**62)]
PositiveCount = Annotated[int, Field(ge=1, le=2**62)]
MAX_GROWTH = 1000
"""The largest expansion of a Parquet file. The scores of a constant model compress to a thousandth of their size."""
ROW_ID = "row_id"
UNLABELLED = {"labelled": False}
"""The validation context of pydantic for a source that needs no label. Either its rows are only scored, or a file that aucdist
wrote says how they were read."""


_patterns: dict[str, str] = {}


def pattern_of(words: str, pattern: str) -> str:
    """Return a regular expression of strings, instead of which error messages show these words."""
    _patterns[pattern] = words
    return pattern


Sha256 = Annotated[str, Field(pattern=pattern_of("64 hexadecimal digits", r"^[0-9a-f]{64}$"))]


def read_as(*names: str) -> Any:
    """Return the annotation of a key that is written with the first name.

    Files of earlier versions may have one of the other names.
    """
    return Field(validation_alias=AliasChoices(*names))


def _file_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}", name):
        raise ValueError(f"{name[:SHOWN]!r} is not the name of a file in its folder")
    return name


FileName = Annotated[str, AfterValidator(_file_name)]
"""A file name without a path, so that it cannot lead out of its folder."""


FilePath = Annotated[str, AfterValidator(lambda path: "/".join(map(_file_name, path.split("/", 1))))]
"""The path of a file relative to a folder. It is in the folder itself or in one of its subfolders."""


def parse_checked(data: bytes, kind: type[T], where: str) -> T:
    """Parse JSON as an object of a type.

    Parameters
    ----------
    data : bytes
        The content of the file.
    kind : type
        A dataclass, a pydantic model, or a type such as ``list[int]``.
    where : str
        The name of the data in error messages.

    Raises
    ------
    InputError
        If it is not JSON, is too large or too deeply nested, has a number that is not finite, or is not of that type. The message
        names the key.
    """
    if len(data) > MAX_JSON_BYTES:
        raise InputError(
            f"{where} is damaged: it has {len(data)} bytes, and at most {MAX_JSON_BYTES} are read. {REPAIR}"
        )
    try:
        content: T = _adapter(kind).validate_json(data, context=UNLABELLED)  # type: ignore[arg-type]  # types are hashable
    except ValidationError as e:
        raise InputError(f"{where} is damaged: {first_fault(e)}. {REPAIR}") from None
    parse_any(data, where)  # numbers in fields that the schema does not check must be finite as well
    return content


def read_json(url: str, kind: type[T]) -> T:
    """Return the content of a JSON file as an object of a type, as `parse_checked` does.

    Raises
    ------
    InputError
        If the file cannot be read, or is not of that type.
    """
    return parse_checked(files.read_bytes(url), kind, files.shown(url))


def write_json(url: str, content: Any) -> None:
    """Write a dataclass or JSON values, so that `read_json` can read the file."""
    files.write_bytes(url, json.dumps(to_jsonable(content, type(content))).encode())


@with_config(NO_MORE_KEYS)
class _Sealed(TypedDict):
    """The content of a JSON file with a checksum."""

    sha256: Sha256
    content: Any


def write_sealed(url: str, content: Any) -> None:
    """Write a JSON value with its checksum, so that `read_sealed` can read the file."""
    files.write_bytes(url, json.dumps({"sha256": json_digest(content), "content": content}).encode())


def read_sealed(url: str) -> Any:
    """Return the JSON value in a file that `write_sealed` wrote.

    Raises
    ------
    InputError
        If the file cannot be read, or its checksum is wrong.
    """
    stored = read_json(url, _Sealed)
    if stored["sha256"] != json_digest(stored["content"]):
        raise InputError(f"{files.shown(url)} is damaged: its checksum is wrong. {REPAIR}")
    return stored["content"]


def json_digest(content: Any) -> str:
    """Return the SHA-256 of a JSON value. It does not depend on the order of its keys."""
    return files.sha256_of(json.dumps(content, sort_keys=True).encode())


def read_parquet(
    url: str, columns: Mapping[str, Any], optional: Callable[[str], Any] = lambda name: None
) -> "pd.DataFrame":
    """Return a table that aucdist wrote.

    Parameters
    ----------
    url : str
        The path or URL of the file.
    columns : mapping
        The columns that the table must have, with their types of Arrow.
    optional : callable, optional
        Returns the type of a column that the table may have, given its name, or None for a column that is left out.

    Returns
    -------
    DataFrame

    Raises
    ------
    InputError
        If the file cannot be read or is damaged, a column is missing or of another type, a value is missing or not finite,
        a row has the id of another one, or a label ``y`` of two classes is neither -1 nor +1; the message names the row and
        the column.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    data, where = files.read_bytes(url), files.shown(url)
    kinds = pa.ArrowException, OSError, ValueError, OverflowError
    with as_input_error(
        f"{where} is damaged", *kinds, say=lambda e: f"{printable(first_line(e)[: 4 * SHOWN]).rstrip('.')}. {REPAIR}"
    ):
        file = pq.ParquetFile(pa.BufferReader(data))
        stored_columns = file.schema_arrow.names
        kinds_of_columns = dict(columns) | {
            name: kind for name in stored_columns if name not in columns and (kind := optional(name))
        }
        for name in kinds_of_columns:
            if stored_columns.count(name) != 1:
                raise InputError(
                    f"{where} is damaged: it has {stored_columns.count(name) or 'no'} columns {name!r}. {REPAIR}"
                )
        check_growth(len(data), 8 * file.metadata.num_rows * len(kinds_of_columns), where, "write it again", MAX_GROWTH)
        names = list(kinds_of_columns)
        table = file.read(columns=names, use_threads=False).select(names).cast(pa.schema(kinds_of_columns))
        for name, kind in kinds_of_columns.items():
            values = table[name]
            if values.null_count:
                row = values.is_null().to_pylist().index(True)
                raise InputError(f"{where}, row {row + 1}, column {name!r}: the value is missing. {REPAIR}")
            if pa.types.is_floating(kind) and not (finite := np.isfinite(values.to_numpy())).all():
                row = int(np.argmin(finite))
                raise InputError(f"{where}, row {row + 1}, column {name!r}: {values[row]} is not finite. {REPAIR}")
        frame: pd.DataFrame = table.to_pandas(ignore_metadata=True)  # the metadata may be forged
    if ROW_ID in frame and ((frame[ROW_ID] < 0).any() or frame[ROW_ID].duplicated().any()):
        raise InputError(f"{where} is damaged: its row numbers are negative, or not all different. {REPAIR}")
    if "y" in frame and frame["y"].dtype == np.int8 and not frame["y"].isin([-1, 1]).all():
        raise InputError(f"{where} is damaged: its labels are not -1 and +1. {REPAIR}")
    return frame


def npy_of(numbers: "np.ndarray") -> bytes:
    """Return the content of a ``.npy`` file with these numbers, which `parse_npy` reads."""
    import numpy as np

    file = io.BytesIO()
    np.save(file, numbers, allow_pickle=False)
    return file.getvalue()


def parse_npy(data: bytes, kind: type, n: int | None, where: str) -> "np.ndarray":
    """Return the numbers in a ``.npy`` file, of shape (n,). Its header is checked before any memory is allocated.

    Parameters
    ----------
    data : bytes
        The content of the file.
    kind : type
        The type of the numbers.
    n : int or None
        How many numbers the file must have; None for any number.
    where : str
        The name of the data in error messages.

    Raises
    ------
    InputError
        If the file is damaged, or has other numbers.
    """
    import numpy as np

    file = io.BytesIO(data)
    # NumPy parses the header as Python code, so damaged headers also raise errors of Python's tokenizer and compiler.
    with as_input_error(f"{where} has a damaged header", Exception, say=str):
        version = np.lib.format.read_magic(file)
        if version != (1, 0):
            raise ValueError(f"version {version} of the npy format")
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    if dtype != kind or len(shape) != 1 or n not in (None, *shape):
        raise InputError(
            f"{where} must have {kind.__name__} of shape ({'n' if n is None else n},); got {dtype} of shape {shape}"
        )
    start, needed = file.tell(), dtype.itemsize * shape[0]
    if len(data) - start != needed:
        raise InputError(f"{where} must have {needed} bytes of numbers; got {len(data) - start}")
    return np.frombuffer(data, kind, offset=start).copy()


def parse_any(data: bytes, where: str) -> Any:
    """Parse JSON without a schema. The errors are those of `parse_checked`."""
    with as_input_error(f"{where} is damaged", ValueError, say=lambda e: f"{e}. {REPAIR}"):
        content = from_json(data)
        json.dumps(content, allow_nan=False)
    return content


def to_jsonable(content: Any, kind: type[Any]) -> Any:
    """Return an object as JSON values that `parse_checked` can read."""
    return _adapter(kind).dump_python(content, mode="json")  # type: ignore[arg-type]


def jsonable(value: Any) -> Any:
    """Return any value as a JSON value. Numbers that are not finite become null."""
    # The only values that pydantic does not know are NumPy scalars.
    return to_jsonable_python(value, inf_nan_mode="null", fallback=lambda scalar: scalar.item())


def json_text(value: Any) -> str:
    """Return any value as the text of a JSON file."""
    return json.dumps(jsonable(value), indent=2, allow_nan=False) + "\n"


def first_fault(error: ValidationError) -> str:
    """Return the first error that pydantic reports, with its key, in one line of limited length."""
    key, said = next(iter(faults_of(error).items()))
    return printable(f"{f'`{key}`: ' if key else ''}{said.splitlines()[0][: 4 * SHOWN]}".replace("`: must", "` must"))


def faults_of(error: ValidationError) -> dict[str, str]:
    """Return, for each key that pydantic rejects, a sentence that says what its value must be and what it is.

    If the value of a key may have several types, the sentence names all of them.
    """
    sentences: dict[str, str] = {}
    for fault in error.errors(include_url=False):
        key = ".".join(str(part)[:SHOWN] for part in fault["loc"] if not TYPE_IN_KEY.fullmatch(str(part)))
        before = sentences.get(key, "").partition("; got ")[0]
        sentences[key] = f"{before} or {_said_of(fault)}".removeprefix(" or ").replace(" or must be", " or")
    return sentences


TYPE_IN_KEY = re.compile(r"(constrained-)?(int|float|str)|bool|EachOf|Adaptive|[a-z-]+\[.*\]")
"""A part of a key of pydantic's error that is the name of a type."""
PLAIN_WORDS = {
    r"^[\w ]*should": "must", ", (unable to|got a) .*| after validation.*": "", "a valid ": "a ", "an? integer": "a whole number",
    "dictionary.*": "mapping of keys", "^Field required": "must be given", "^(Extra|Unexpected).*": "must be left out: unknown",
    r"^Input tag .* using (\S+) .*tags: ": r"must be a mapping whose \1 is one of ",
    r"^Unable to extract .* (\S+)$": r"must be a mapping with the key \1",
}  # fmt: skip
"""The words of errors that replace pydantic's words."""


def _said_of(fault: Any) -> str:
    """Return what a value that pydantic rejects must be, and what it is."""
    context, text = fault.get("ctx", {}), fault["msg"]
    for words, plain in PLAIN_WORDS.items():
        text = re.sub(words, plain, text)
    if pattern := context.get("pattern"):
        text = f"must be {_patterns.get(pattern, f'of the form {pattern}')}"
    if isinstance(cause := context.get("error"), ValueError):
        text = str(cause)
    # A value below `s3` may be a secret that was put in the wrong place.
    if fault["type"] != "missing" and "s3" not in fault["loc"] and text.startswith("must"):
        with suppress(ValueError):  # Python refuses to write numbers with very many digits
            text += f"; got {fault['input']!r:.{SHOWN}}"
    return text


@functools.cache
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)

"""All formats by name: a new one is a module beside this one, and a row here."""

import re
from pathlib import PurePosixPath
from typing import Any

from aucdist.data.formats.arrow_formats import (
    ArrowFormat,
    DeltaFormat,
    ExcelFormat,
    IcebergFormat,
    JsonLinesFormat,
    SqlFormat,
)
from aucdist.data.formats.base import Format
from aucdist.data.formats.csv_format import CsvFormat
from aucdist.data.formats.embedded_format import EmbeddedFormat
from aucdist.data.formats.encodings import found_encoding
from aucdist.data.formats.keel_format import KeelFormat
from aucdist.data.formats.parquet_format import ParquetFormat
from aucdist.data.formats.shards_format import ShardsFormat
from aucdist.data.formats.svmlight_format import SvmlightFormat
from aucdist.errors import InputError

FORMATS: dict[str, Format] = {
    of.name: of
    for of in (
        SvmlightFormat(),
        CsvFormat(),
        KeelFormat(),
        ParquetFormat(),
        JsonLinesFormat(),
        ArrowFormat(),
        ExcelFormat(),
        SqlFormat(),
        DeltaFormat(),
        IcebergFormat(),
        EmbeddedFormat(),
        ShardsFormat(),
    )
}
COMMON_FIELDS = frozenset({"source", "format", "rows", "features", "title", "origin", "licence", "note"})
"""The keys that a source of any format may have."""


def formats_with(field: str) -> list[str]:
    """Return the names of the formats that take a key of a source."""
    return [name for name, of in FORMATS.items() if field in of.fields or field in COMMON_FIELDS]


def keys_by_suffix(name: str) -> dict[str, Any]:
    """Return the keys of a source that the ending of a file's name decides, its format among them; none for another ending."""
    suffix = PurePosixPath(name).suffix
    for of in FORMATS.values():
        if suffix in of.suffixes:
            return {"format": of.name, **of.suffixes[suffix]}
    return {}


SVMLIGHT_ROW = re.compile(rb"\s*[+-]?[\w.]+(,[\w.]+)*(\s+qid:\d+)?(\s+\d+:[^\s:]+)+\s*(#.*)?")
FIRST_BYTES = {b"PAR1": "parquet", b"ARROW1": "arrow", b"PK\x03\x04": "excel", b"{": "jsonl", b"[": "jsonl"}


def keys_by_content(head: bytes, where: str) -> dict[str, Any]:
    """Return the keys of a source that the first bytes of a file decide, its format among them.

    `head`: unpacked.
    Raises InputError if they are those of a page of the web, or of no format that is known.
    """
    first = head.lstrip()
    if first[:1] == b"<":
        raise InputError(f"{where} is a page of the web ({first[:40].decode(errors='replace')!r}), and no table")
    for begin, name in FIRST_BYTES.items():
        if first.startswith(begin):
            return {"format": name}
    if b"\0" in head and found_encoding(head) != "utf-16":
        raise InputError(
            f"{where}: its name and its first bytes do not show its format; name one, as in --set format=csv"
        )
    lines = [
        line for line in head.split(b"\n")[:-1] or [head] if line.strip() and not line.lstrip().startswith((b"#", b"%"))
    ]
    if lines and lines[0].lstrip().lower().startswith((b"@relation", b"@attribute")):
        return {"format": "keel"}
    if lines and SVMLIGHT_ROW.fullmatch(lines[0]):
        return {"format": "svmlight"}
    return {"format": "csv"}

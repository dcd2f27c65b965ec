"""All formats by name: a new one is a module beside this one, and a row here."""

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
from aucdist.data.formats.keel_format import KeelFormat
from aucdist.data.formats.parquet_format import ParquetFormat
from aucdist.data.formats.shards_format import ShardsFormat
from aucdist.data.formats.svmlight_format import SvmlightFormat

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

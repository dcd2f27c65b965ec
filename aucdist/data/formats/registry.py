"""All formats by name: a new one is a module beside this one, and a row here."""

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from aucdist.data.formats.arrow_formats import (
    ArrowFormat,
    DeltaFormat,
    ExcelFormat,
    IcebergFormat,
    JsonLinesFormat,
    ParquetFormat,
    SqlFormat,
)
from aucdist.data.formats.base import UNSHARDED, FilePart, Format, LineFormat, are_local, described
from aucdist.data.formats.csv_format import CsvFormat
from aucdist.data.formats.keel_format import KeelFormat
from aucdist.data.formats.source_fields import SourceFields
from aucdist.data.formats.text import found_encoding
from aucdist.data.storage import files
from aucdist.data.storage.guard import check_fits
from aucdist.errors import InputError, unknown

if TYPE_CHECKING:
    from aucdist.data.dataset import Schema
    from aucdist.data.formats.base import Parsed
    from aucdist.data.formats.survey import Survey


DENSE_ABOVE = 0.5
"""Above this share of non-zero entries a row is read faster as a dense one, and takes hardly more memory."""
ALWAYS_WIDE, WIDTH_PER_VALUE = 2**20, 10
"""A file of one line could name feature 2 147 483 647. Features beyond the first are seldom rarer than this."""
BYTES_PER_FEATURE = 150
"""What name, weight and statistics of a feature take."""


class SvmlightFormat(LineFormat):
    """Files of svmlight and libsvm."""

    name = "svmlight"
    fields = UNSHARDED | {"n_features", "zero_based", "labels", "qid"}
    suffixes: ClassVar = {".svm": {}, ".svmlight": {}, ".libsvm": {}}

    def parse(self, data: bytes, source: SourceFields, part: FilePart, schema: "Schema | None") -> "Parsed":
        """Return the rows as CSR."""
        from aucdist.data.formats.svmlight import parse_svmlight

        return parse_svmlight(
            data, files.shown(part.url), n_features=len(schema.feature_names) if schema else source.n_features,
            zero_based=source.zero_based, topics=source.labels == "topics", qid=source.qid,
            dtype=source.dtype or "float64", first_line=part.line or 1,
        )  # fmt: skip

    def feature_names(self, source: SourceFields, survey: "Survey") -> tuple[str, ...]:
        """Return the numbers of the features, up to the largest that occurs or that the source states."""
        if survey.width == 0:
            raise InputError(f"{survey.where}: no row has a feature")
        if source.n_features is None and survey.width > max(ALWAYS_WIDE, WIDTH_PER_VALUE * survey.stored):
            raise InputError(
                f"{survey.where}: the largest feature is number {survey.width}, but only {survey.stored} values are not "
                f"zero: a model of so many weights would fill the memory. If it is meant, give n_features: {survey.width}"
            )
        check_fits((source.n_features or survey.width) * BYTES_PER_FEATURE, f"{survey.where}: names of all features")
        start = 0 if source.zero_based else 1
        return tuple(str(i) for i in range(start, start + (source.n_features or survey.width)))

    def is_sparse(self, survey: "Survey", n_features: int) -> bool:
        """Tell whether at most half of the entries are not zero."""
        return survey.stored <= DENSE_ABOVE * survey.rows * n_features

    def for_scoring(self, source: SourceFields, schema: "Schema") -> dict[str, Any]:
        """Refuse a model whose features have names."""
        start = 0 if source.zero_based else 1
        if schema.feature_names != tuple(str(i) for i in range(start, start + len(schema.feature_names))):
            raise InputError(
                f"{files.shown(str(source.source))}: the model's features have names ({schema.feature_names[0]}, ...), but "
                "those of svmlight files are numbers"
            )
        return {
            "qid": "ignore" if source.qid == "use" else source.qid,
            "labels": "numbers" if source.labels == "grades" else source.labels,
        }


class ShardsFormat(Format):
    """Sharded data sets."""

    name = "shards"
    is_sharded = True

    def check(self, source: SourceFields) -> None:
        """Refuse several sources."""
        if not isinstance(source.source, str):
            raise InputError("format 'shards' takes one folder")

    def is_present(self, source: SourceFields) -> bool:
        """Tell whether the folder is local and exists."""
        return are_local(source)

    def describe_files(self, source: SourceFields) -> list[dict[str, Any]]:
        """Return URL, size and ETag of each file of the folder."""
        return described(source)

    def n_bytes(self, source: SourceFields) -> int:
        """Refuse."""
        _refuse()

    def split(self, source: SourceFields, n: int) -> list[FilePart]:
        """Refuse."""
        _refuse()

    def read_part(
        self, source: SourceFields, part: FilePart, schema: "Schema | None", digests: list[str] | None = None
    ) -> NoReturn:
        """Refuse."""
        _refuse()


def _refuse() -> NoReturn:
    raise InputError("shards are blocks already: read them with aucdist.data.shards.reading.open_reader")


EMBEDDED = ("breast_cancer", "digits", "iris", "wine")


class EmbeddedFormat(Format):
    """Bundled data sets, by their names."""

    name = "embedded"
    fields = UNSHARDED

    def describe_files(self, source: SourceFields) -> list[dict[str, Any]]:
        """Return the name of the data set as the only URL."""
        return [{"url": str(source.source)}]

    def read_part(
        self, source: SourceFields, part: FilePart, schema: "Schema | None", digests: list[str] | None = None
    ) -> "tuple[Parsed, int]":
        """Return all rows; their checksum is that of the numbers."""
        import sklearn.datasets

        from aucdist.data.formats.tables import embedded_table

        if not isinstance(source.source, str):
            raise InputError("format 'embedded' takes the name of one data set")
        if source.source not in EMBEDDED:
            raise unknown("embedded data set", source.source, EMBEDDED)
        table, digest = embedded_table(getattr(sklearn.datasets, f"load_{source.source}")())
        if digests is not None:
            digests.append(digest)
        return table, 0


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

"""What a format is: the keys of a source it takes, how its files are split into parts, and how their bytes become rows.

A new format is a module with one subclass of `Format` and a row in `aucdist.data.formats.registry`. Modules of formats import
their parsers inside the methods, so that a source can be checked without loading Arrow, pandas and compiled kernels.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from aucdist.data.formats.part import FilePart
from aucdist.data.formats.source_fields import SourceFields
from aucdist.data.storage import files
from aucdist.data.storage.guard import unpacked
from aucdist.errors import InputError

if TYPE_CHECKING:
    from aucdist.data.dataset import Schema
    from aucdist.data.formats.survey import Survey
    from aucdist.data.formats.svmlight import SparseRows
    from aucdist.data.formats.tables import Table

    Parsed = Table | SparseRows

UNSHARDED = frozenset({"positive", "layout", "dtype", "sha256", "classes"})
"""The keys of every format but shards, which are read as they were written and have checksums of their own."""
OF_TABLES = UNSHARDED | {"label", "groups", "cost_column", "categorical", "hashed", "missing", "missing_values"}
OF_COLUMNS = OF_TABLES | {"labels", "keep", "drop", "dates", "date_format", "unknown"}
"""The keys of the formats whose features are columns that a source may choose by name."""


class Format(ABC):
    """A format of data.

    Attributes
    ----------
    name : str
        Its name in a source.
    fields : frozenset of str
        The keys of a source that it takes besides those of every source. Any other key is refused.
    suffixes : mapping of str to mapping
        The endings of file names that identify the format, each with the keys that this ending decides.
    needs_label : bool
        Whether a source must name the label column. It then chooses its features by the names of columns, too.
    is_sharded : bool
        Whether its rows are blocks already, which are read through `aucdist.data.shards` only.
    """

    name: ClassVar[str]
    fields: ClassVar[frozenset[str]] = frozenset()
    suffixes: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    needs_label: ClassVar[bool] = False
    is_sharded: ClassVar[bool] = False

    def check(self, source: SourceFields) -> None:  # noqa: B027  # most formats have nothing to check
        """Do nothing if the keys of a source go together.

        Raises
        ------
        InputError
            If they do not.
        """

    def is_present(self, source: SourceFields) -> bool:
        """Tell whether a data set can be read here without a network; by default that is not known before it is read."""
        return True

    @abstractmethod
    def describe_files(self, source: SourceFields) -> list[dict[str, Any]]:
        """Return URL, size and ETag (of local files: the time of the last change) of each file, in types of JSON."""

    def n_bytes(self, source: SourceFields) -> int:
        """Return the bytes that `split` divides; 0, as by default, where that is not known before reading."""
        return 0

    def part_urls(self, source: SourceFields) -> list[str]:
        """Return the URLs that parts of a source may have."""
        return source.urls()

    def whole_files(self, source: SourceFields) -> list[FilePart]:
        """Return each file of a source as one part, whatever its version."""
        return [FilePart(url) for url in self.part_urls(source)]

    def split(self, source: SourceFields, n: int) -> list[FilePart]:
        """Split a source into about `n` parts of about the same size, in the order of its rows, each of one file.

        By default each file, or whatever a URL stands for, is a part.
        """
        return self.whole_files(source)

    @abstractmethod
    def read_part(
        self, source: SourceFields, part: FilePart, schema: "Schema | None", digests: list[str] | None = None
    ) -> "tuple[Parsed, int]":
        """Return what is in a part, and its number of line breaks.

        Parameters
        ----------
        schema : Schema or None
            That of the training data, for rows that are encoded like them.
        digests : list of str, optional
            Gets a checksum of what was read, if the part is a whole file.

        Raises
        ------
        InputError
            If the part cannot be read, or something in it is wrong.
        """

    def feature_names(self, source: SourceFields, survey: "Survey") -> tuple[str, ...]:
        """Return the names of the features of a data set; by default those of the columns and their categories."""
        from aucdist.data.formats.survey import column_features

        return column_features(survey)

    def is_sparse(self, survey: "Survey", n_features: int) -> bool:
        """Tell whether rows become CSR where the source leaves the layout open; by default if columns are hashed."""
        return bool(survey.hashed)

    def for_scoring(self, source: SourceFields, schema: "Schema") -> dict[str, Any]:
        """Return the changes to a source that make its rows those of a model, whatever their labels.

        Raises
        ------
        InputError
            If rows of this format cannot have the features of the model.
        """
        return {}


class FileFormat(Format):
    """A format of files that are read whole; subclasses may split them."""

    def is_present(self, source: SourceFields) -> bool:
        """Tell whether the files are local and exist."""
        return are_local(source)

    def describe_files(self, source: SourceFields) -> list[dict[str, Any]]:
        """Return URL, size and ETag of each file; of a file of the web the URL alone."""
        return described(source)

    def part_urls(self, source: SourceFields) -> list[str]:
        """Return the URLs of the files.

        Raises
        ------
        InputError
            If there are none, or several and the checksum of one.
        """
        urls = files.expand(source.source)
        if source.sha256 is not None and len(urls) > 1:
            raise InputError(
                f"`sha256` is the checksum of one file, but {files.shown(str(source.source))} means {len(urls)} of them"
            )
        return urls

    def n_bytes(self, source: SourceFields) -> int:
        """Return the size of all files but those of the web."""
        return sum(files.stat(url).size for url in files.expand(source.source) if not files.is_web(url))

    def split(self, source: SourceFields, n: int) -> list[FilePart]:
        """Return one part for each file."""
        return [replace(part, version=version_of(part.url)) for part in self.whole_files(source)]

    def read_part(
        self, source: SourceFields, part: FilePart, schema: "Schema | None", digests: list[str] | None = None
    ) -> "tuple[Parsed, int]":
        """Return what is in a file, or in a range of one."""
        if part.version and files.stat(part.url).etag != part.version:
            raise InputError(
                f"{files.shown(part.url)} has changed since it was first read: start again when it is complete"
            )
        if part.stop is not None:
            return self.read_range(source, part, schema)
        data = stored_bytes(part.url, source)
        if digests is not None:
            digests.append(hashlib.sha256(data).hexdigest() + self.digest_of_path(part.url))
        return self.parse(unpacked(data, part.url), source, part, schema), 0

    def read_range(self, source: SourceFields, part: FilePart, schema: "Schema | None") -> "tuple[Parsed, int]":
        """Return what is in a range of a file, for formats whose `split` makes ranges."""
        raise NotImplementedError(f"files of format {self.name!r} are not split")

    def digest_of_path(self, url: str) -> str:
        """Return what the path of a file adds to its checksum, for formats that read values from the path."""
        return ""

    @abstractmethod
    def parse(self, data: bytes, source: SourceFields, part: FilePart, schema: "Schema | None") -> "Parsed":
        """Return the rows in bytes.

        Parameters
        ----------
        data : bytes
            A file, decompressed, or a range of whole lines.
        part : FilePart
            Where they are from, for errors; of a range its columns too, as it has no header.
        schema : Schema or None
            That of the training data, for rows that are encoded like them.

        Raises
        ------
        InputError
            If something in it is wrong, naming the line or row and the column.
        """


class TableFormat(Format):
    """A format of named columns, of which a source chooses the label and the features."""

    def for_scoring(self, source: SourceFields, schema: "Schema") -> dict[str, Any]:
        """Choose the columns of the model, whatever their order in the file, and no label."""
        return {
            "label": None, "groups": None, "cost_column": None, "labels": "numbers", "keep": schema.columns(), "drop": None,
            "categorical": [], "hashed": {}, "dates": {},
        }  # fmt: skip

    def check(self, source: SourceFields) -> None:
        """Refuse a column that is to be read in two ways, and words for missing values that may not be missing."""
        if source.missing_values and source.missing == "refuse":
            raise InputError("`missing_values` says what stands for a missing value: give `missing: keep` with it")
        if source.labels == "topics":
            raise InputError("`labels: topics` does not apply to tables, only to svmlight")
        refuse_shared_roles(source)
        costs = [] if source.cost_column is None else [source.cost_column]
        ways = {"cost_column": costs, "categorical": source.categorical, "hashed": source.hashed, "dates": source.dates}
        given: dict[str | int, str] = {}
        for way, columns in ways.items():
            for column in columns if columns != "auto" else ():
                if column in given:
                    raise InputError(f"column {column!r} is listed under both `{given[column]}` and `{way}`")
                given[column] = way


def refuse_shared_roles(source: SourceFields) -> None:
    """Refuse a column that is to be two of the label, the groups and the costs."""
    roles = {"label": source.label, "groups": source.groups, "cost_column": source.cost_column}
    given: dict[str | int, str] = {}
    for role, column in roles.items():
        if column is not None and column in given:
            raise InputError(f"column {column!r} cannot be both `{given[column]}` and `{role}`")
        if column is not None:
            given[column] = role


def are_local(source: SourceFields) -> bool:
    """Tell whether all files or folders of a source are local and exist."""
    return all(not files.is_web(url) and Path(files.locate(url)).exists() for url in source.urls())


def described(source: SourceFields) -> list[dict[str, Any]]:
    """Return URL, size and ETag of each file of a source; of a file of the web the URL alone."""
    urls = files.expand(source.source)
    return [{"url": files.shown(url)} | ({} if files.is_web(url) else asdict(files.stat(url))) for url in urls]


def version_of(url: str) -> str:
    """Return what identifies the version of a file as it is now; nothing for one of the web."""
    return "" if files.is_web(url) else files.stat(url).etag


def stored_bytes(url: str, source: SourceFields) -> bytes:
    """Return the bytes of a file as they are stored.

    Raises
    ------
    InputError
        If they have not the checksum that the source states.
    """
    data = files.read_bytes(url, source.sha256)
    if source.sha256 is not None:
        found = hashlib.sha256(data).hexdigest()
        if found != source.sha256:
            raise InputError(f"{files.shown(url)} has sha256 {found}, but {source.sha256} is expected")
    return data

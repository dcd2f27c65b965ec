"""The base classes of formats: the keys that a format takes, how it splits files into parts and parses them, and their surveys.

A new format is a subclass of `FileFormat`, or of `LoadedFormat` if a library fetches the rows by a URL, and a row in
`aucdist.data.formats.registry`. Modules of formats import their parsers inside the methods, so that a source can be checked
without loading Arrow, pandas and compiled kernels.
"""

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from aucdist.data.dataset import DatePart
from aucdist.data.formats.source_fields import MAX_CATEGORIES, MAX_DETECTED, MIN_DISTINCT, SourceFields
from aucdist.data.formats.text import check_names
from aucdist.data.labels import Labels
from aucdist.data.own_files import NO_MORE_KEYS, Count
from aucdist.data.storage import files
from aucdist.data.storage.faults import StorageError
from aucdist.data.storage.guard import BOM, packing_of, unpacked
from aucdist.data.storage.urls import find
from aucdist.errors import InputError, Json
from aucdist.parameters import frozen

if TYPE_CHECKING:
    import numpy as np
    import scipy.sparse as sp

    from aucdist.data.dataset import Schema

UNSHARDED = frozenset({"positive", "layout", "dtype", "sha256", "classes"})
"""The keys of all formats except shards. Shards are read as they were written, and have their own checksums."""
OF_TABLES = UNSHARDED | {"label", "groups", "cost_column", "categorical", "hashed", "missing", "missing_values"}
OF_COLUMNS = OF_TABLES | {"labels", "keep", "drop", "dates", "date_format", "unknown"}
"""The keys of the formats whose features are columns that a source may choose by name."""
PART_BYTES = 64 * 2**20
"""Files are split into parts of about this size. The size is fixed, so that the same data always gives the same blocks
and the same bits."""
LINE_BREAK_WINDOW = 2**16  # the number of bytes that are searched for a line break at a time
BYTES_AT_ONCE = 2**24
HEAD_BYTES = 2**11  # the number of bytes by which a compressed file is recognised


@dataclass(frozen=True)
class FilePart:
    """A file, or a range of whole lines from offset `start` to `stop`. For Parquet, the offsets count row groups.

    Attributes
    ----------
    url : str
        The URL of the file.
    start : int
        The offset of the first byte or row group.
    stop : int or None
        The offset of the end. None means the whole file, which may be compressed and have a header.
    columns : tuple of str
        For a range of a CSV file, the names of its columns.
    row : int
        The number of its first row in the data set, counted from 0, once it is known.
    line : int
        The number of its first line in the file, counted from 1. Lines are counted only if an error needs the number.
    folder_texts : tuple of str
        Columns that folders stand for (`aucdist.data.formats.arrow_tables`) and that have a string in some folder of the data
        set.
    version : str
        An identifier of this version of the file (`aucdist.data.storage.files.Stat`). Empty for a file on the web.
    """

    __pydantic_config__ = NO_MORE_KEYS

    url: str
    start: Count = 0
    stop: Count | None = None
    columns: tuple[str, ...] = ()
    row: Count = 0
    line: Count = 1
    folder_texts: tuple[str, ...] = ()
    version: str = ""

    @property
    def where(self) -> str:
        """The name of the file in messages."""
        return files.shown(self.url)

    def check_version(self) -> None:
        """Raise a StorageError if the file has changed since the part was made."""
        if self.version and files.stat(self.url).etag != self.version:
            raise StorageError(f"{self.where} has changed since it was first read: start again when it is complete")


@dataclass(frozen=True)
class Survey:
    """Counts over the rows of a part, and the names in it. Surveys can be merged by ``+``.

    Attributes
    ----------
    where : str
        The name of the part in error messages. After merging, it is that of the first part.
    rows : int
        The number of rows.
    labels : dict of str to int
        The number of rows of each class, as `class_name` spells it. With `topics`, the number of rows of each distinct list of
        classes, with commas between them.
    topics : bool
        Whether a row may have several classes, or none.
    stored, width : int
        For svmlight, the number of values that are not zero, and the number of features up to the last one that occurs.
    single : bool
        Whether all numbers are stored as float32.
    label : str
        The name of the label column. Empty for svmlight.
    columns : tuple of str
        The columns of a table that are features. Empty for svmlight.
    categories : dict of str to tuple of str
        The values of each categorical column, in alphabetical order.
    hashed : dict of str to int
        The number of features of each hashed column.
    dates : dict of str to tuple of DatePart
        The parts of each column of dates that are among `columns`.
    missing, unknown : dict of str to int
        For each column that has some, the number of missing values, and of values of categories that the training data did not
        have.
    """

    where: str
    rows: int
    labels: dict[str, int]
    topics: bool = False
    stored: int = 0
    width: int = 0
    single: bool = False
    label: str = ""
    columns: tuple[str, ...] = ()
    categories: dict[str, tuple[str, ...]] = field(default_factory=dict)
    hashed: dict[str, int] = field(default_factory=dict)
    dates: dict[str, tuple[DatePart, ...]] = field(default_factory=dict)
    missing: dict[str, int] = field(default_factory=dict)
    unknown: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, where: str, labels: Labels, **columns: Any) -> "Survey":
        """Return the survey of a part whose rows have these labels. `columns` are its other fields."""
        return cls(where, len(labels.class_numbers), labels.counts(), labels.topics, **columns)

    def _of_classes(self) -> Iterator[tuple[list[str], int]]:
        for name, n in self.labels.items():
            yield (name.split(",") if self.topics else [name]), n

    @property
    def classes(self) -> dict[str, int]:
        """The number of rows of each class, as `class_name` spells it. A row with several labels counts for each of them."""
        counts: dict[str, int] = {}
        for names, n in self._of_classes():
            for name in names:
                counts[name] = counts.get(name, 0) + n
        return counts

    def n_rows_of(self, classes: Collection[str]) -> int:
        """Return the number of rows that belong to at least one of these classes."""
        return sum(n for names, n in self._of_classes() if not set(classes).isdisjoint(names))

    def __add__(self, other: "Survey") -> "Survey":
        """Merge two surveys.

        Raises
        ------
        InputError
            If their columns differ.
        """
        ours, theirs = ((part.columns, part.label, set(part.categories)) for part in (self, other))
        if ours != theirs:
            differing = ", ".join(sorted(set(self.columns) ^ set(other.columns)))
            raise InputError(
                f"{other.where} has other columns than {self.where}: "
                f"{differing or 'their order, their label or the categorical ones differ'}. Give all files of a source the same "
                "columns"
            )
        return replace(
            self,
            rows=self.rows + other.rows,
            labels=_summed(self.labels, other.labels),
            missing=_summed(self.missing, other.missing),
            unknown=_summed(self.unknown, other.unknown),
            stored=self.stored + other.stored,
            width=max(self.width, other.width),
            single=self.single and other.single,
            categories={k: tuple(sorted({*values, *other.categories[k]})) for k, values in self.categories.items()},
        )


class Texts(NamedTuple):
    """A column of strings: the distinct strings in alphabetical order, and the position of each row's string among them."""

    codes: "np.ndarray"
    categories: tuple[str, ...]


@frozen
class Parsed:
    """The rows of a part after parsing.

    Parameters
    ----------
    survey : Survey
        The survey of the part.
    labels : Labels
        The labels of the rows.
    X : ndarray or sp.csr_matrix
        For svmlight, a csr_matrix of shape (n_samples, width), float32 or float64, without zeros. Unless the width is given, it
        is that of the widest row, including zeros that are written. For a table, an ndarray of shape (n_samples, n_numbers)
        with the features that are numbers, in order. Values are finite, or NaN if they may be missing.
    texts : dict of str to Texts
        For a table, the categorical and hashed columns, without spaces around the strings.
    group : ndarray of shape (n_samples,), int64, or None
        As in `Block`.
    cost : ndarray of shape (n_samples,), float64, or None
        As in `Block`.
    digest : str
        If the part is a whole file without a version, a checksum of its content and of the columns in its path. Rows in memory
        are identified by it, and all others by the versions of their files.
    """

    survey: Survey
    labels: Labels
    X: "np.ndarray | sp.csr_matrix"
    texts: dict[str, Texts] = field(default_factory=dict)
    group: "np.ndarray | None" = None
    cost: "np.ndarray | None" = None
    digest: str = ""


def _summed(counts: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    return {name: counts.get(name, 0) + other.get(name, 0) for name in sorted({*counts, *other})}


def check_expectations(source: SourceFields, name: str, figures: Mapping[str, Any]) -> None:
    """Compare the numbers of rows, of features and of rows of each class with those that the source states.

    Raises
    ------
    InputError
        If one differs. The message has both numbers.
    """
    stated = {"rows": source.rows, "features": source.features, "rows of each class": source.classes}
    for figure, value in figures.items():
        if stated[figure] not in (None, value):
            raise InputError(
                f"{name}: {stated[figure]} {figure} were expected, but {value} were found: check the file, or correct the "
                "number in the source"
            )


def feature_names(
    columns: Sequence[str], categories: Mapping[str, Sequence[str]], hashed: Mapping[str, int]
) -> list[str]:
    """Return the name of each feature: the name of its column, ``column=category``, or ``column#number`` for hashed columns."""
    made = {name: [f"{name}={value}" for value in values] for name, values in categories.items()}
    made |= {name: [f"{name}#{i}" for i in range(n)] for name, n in hashed.items()}
    return [feature for name in columns for feature in made.get(name, [name])]


def check_not_identifiers(
    source: SourceFields, where: str, categories: Mapping[str, Collection[str]], rows: int
) -> None:
    """Raise an InputError if a column has too many categories.

    The limit is lower for columns that were detected (``categorical: auto``).
    """
    guessed = source.categorical == "auto"
    most = min(MAX_DETECTED, max(MIN_DISTINCT, rows // 2)) if guessed else MAX_CATEGORIES
    for name, values in categories.items():
        if len(values) > most:
            reason = f"more than {most}{f' in {rows} rows' if guessed else ''}"
            more = ", or list it under `categorical`" if guessed and len(values) <= MAX_CATEGORIES else ""
            raise InputError(
                f"{where}, column {name!r}: there are {len(values)} categories, {reason}: it looks like an "
                f"identifier or a text. Leave it out with `drop: [{name}]`, hash it with `hashed: {{{name}: 256}}`{more}"
            )


class Format(ABC):
    """The base class of all formats: a source that is read in one of them.

    Attributes
    ----------
    source : SourceFields
        The files, and how they are read.
    schema : Schema or None
        The schema of the training data, if the rows are encoded like them.
    fields : frozenset of str
        The keys that a source of this format may have in addition to the general ones. Any other key is an error.
    needs_label : bool
        Whether a source must name the label column. It then also selects its features by the names of columns.
    of_one : str
        The reason why a source cannot be a list of files. Empty if it can.
    """

    fields: frozenset[str] = frozenset()
    needs_label = False
    of_one = ""

    def __init__(self, source: SourceFields, schema: "Schema | None" = None):
        self.source, self.schema = source, schema

    def check(self) -> None:  # noqa: B027  # most formats have nothing to check
        """Raise an InputError if the keys of the source contradict each other."""

    def is_present(self) -> bool:
        """Return whether a data set can be read without a network. Formats that cannot determine this return True."""
        return True

    def describe_files(self) -> list[Json]:
        """Return each URL without its password.

        For files, also return the size and the ETag (for local files, the time of the last change).
        """
        return [{"url": files.shown(url)} for url in self.source.urls()]

    def pinned(self) -> Json:
        """Return the keys of the source that name the present versions of its tables, if they have versions."""
        return {}

    def part_urls(self) -> list[str]:
        """Return the URLs that parts of a source may have."""
        return self.source.urls()

    def whole_files(self) -> list[FilePart]:
        """Return each file of a source as one part, without its version."""
        return [FilePart(url) for url in self.part_urls()]

    def split(self, n: int | None) -> list[FilePart]:
        """Split a source into about `n` parts of about the same size, in the order of its rows. Each part belongs to one file.

        None means parts of about `PART_BYTES`. By default, each file, or whatever a URL stands for, is a part.
        """
        return self.whole_files()

    @abstractmethod
    def read_part(self, part: FilePart) -> Parsed:
        """Parse a part and return its rows.

        Raises
        ------
        InputError
            If the part cannot be read or is malformed.
        """

    def feature_names(self, survey: Survey) -> tuple[str, ...]:
        """Return the names of the features of a data set. By default, these are the names of the columns and their categories."""
        return tuple(check_names(feature_names(survey.columns, survey.categories, survey.hashed), survey.where))

    def is_sparse(self, survey: Survey, n_features: int) -> bool:
        """Return whether rows become CSR if the source states no layout. By default, they do if columns are hashed."""
        return bool(survey.hashed)

    def for_scoring(self, schema: "Schema") -> Json:
        """Return the changes to a source with which its rows have the features of a model, without labels.

        Raises
        ------
        InputError
            If rows of this format cannot have the features of the model.
        """
        return {}


class FileFormat(Format):
    """A format of files that are read as a whole. Subclasses may split them."""

    def is_present(self) -> bool:
        """Return whether all files or folders of a source are local and exist."""
        return all(not files.is_web(url) and Path(find(url) or url).exists() for url in self.source.urls())

    def describe_files(self) -> list[Json]:
        """Return the URL, the size and the ETag of each file. For a file on the web, return only the URL."""
        return [
            {"url": files.shown(url)} | ({} if files.is_web(url) else asdict(files.stat(url)))
            for url in files.files_of(self.source.source)
        ]

    def part_urls(self) -> list[str]:
        """Return the URLs of the files.

        Raises
        ------
        InputError
            If there are no files, or if there are several files and one checksum.
        """
        urls = files.files_of(self.source.source)
        if self.source.sha256 is not None and len(urls) > 1:
            raise InputError(
                f"`sha256` is the checksum of one file, but {self.source.display_name} means {len(urls)} of "
                "them: name one file, or leave `sha256` out"
            )
        return urls

    def split(self, n: int | None) -> list[FilePart]:
        """Return one part for each file."""
        return [
            replace(part, version="" if files.is_web(part.url) else files.stat(part.url).etag)
            for part in self.whole_files()
        ]

    def read_part(self, part: FilePart) -> Parsed:
        """Parse a whole file and return its rows."""
        data = files.read_bytes(part.url, self.source.sha256)
        part.check_version()  # The version is checked after reading, so that all bytes belong to one version.
        # Hashing can take as long as reading, so a part with a version is only hashed if its source states a checksum.
        digest = "" if part.version and self.source.sha256 is None else files.sha256_of(data)
        if self.source.sha256 not in (None, digest):
            raise InputError(
                f"{part.where} has sha256 {digest}, but {self.source.sha256} is expected: download the file again, or "
                "correct `sha256`"
            )
        parsed = self.parse(unpacked(data, part.url), part)
        return replace(parsed, digest=digest + parsed.digest)

    @abstractmethod
    def parse(self, data: bytes, part: FilePart) -> Parsed:
        """Return the rows in the content of a file.

        Parameters
        ----------
        data : bytes
            The decompressed content of a file, or of a range of whole lines.
        part : FilePart
            The part, which names the file in errors. For a range, which has no header, it also has the columns.

        Raises
        ------
        InputError
            If the content is malformed. The message names the line or row and the column.
        """


class TableFormat(Format):
    """A format with named columns, from which a source selects the label and the features."""

    needs_label = True

    def for_scoring(self, schema: "Schema") -> Json:
        """Return changes that select the columns of the model, in any order in the file, and no label."""
        return {
            "label": None, "groups": None, "cost_column": None, "labels": "numbers", "keep": schema.columns(), "drop": None,
            "categorical": [], "hashed": {}, "dates": {},
        }  # fmt: skip

    def check(self) -> None:
        """Raise an InputError for a column with two roles, and for words for missing values without ``missing: keep``."""
        source = self.source
        if source.missing_values and source.missing == "refuse":
            raise InputError("`missing_values` says what stands for a missing value: give `missing: keep` with it")
        if source.labels == "topics":
            raise InputError("`labels: topics` applies to svmlight files only: leave `labels` out for tables")
        costs = [] if source.cost_column is None else [source.cost_column]
        ways = {"cost_column": costs, "categorical": source.categorical, "hashed": source.hashed, "dates": source.dates}
        way_of: dict[str | int, str] = {}
        for way, columns in ways.items():
            for column in columns if columns != "auto" else ():
                if column in way_of:
                    raise InputError(
                        f"column {column!r} is listed under both `{way_of[column]}` and `{way}`: remove one"
                    )
                way_of[column] = way


class LineFormat(FileFormat):
    """A format of files that are split at line breaks.

    Files that are compressed or on the web are not split, and neither are files with a `sha256`, which needs the whole file. To
    split a file, only its size, the header, and a few bytes around each edge are read."""

    def split(self, n: int | None) -> list[FilePart]:
        """Return ranges of files. There are fewer than `n` if lines are long, and more than `n` if there are more files."""
        parts = super().split(n)
        # In UTF-16 a line break is not a single byte.
        if self.source.sha256 is not None or self.source.encoding == "utf-16":
            return parts
        stats = {part.url: files.stat(part.url) for part in parts if not files.is_web(part.url)}
        part_bytes = even_share(sum(stat.size for stat in stats.values()), n)
        ranges: list[FilePart] = []
        for part in parts:
            url, stat = part.url, stats.get(part.url)
            if stat is None or stat.size <= part_bytes or packing_of(url, files.read_range(url, 0, HEAD_BYTES)):
                ranges.append(part)
                continue
            mark = len(BOM) if files.read_range(url, 0, len(BOM), stat.etag) == BOM else 0
            start, columns = self.read_header(url, mark, stat)
            edges, file = [start], files.RangeFile(url, stat)
            for edge in range(start + part_bytes, stat.size, part_bytes):
                if edge > edges[-1]:
                    file.seek(edge - 1)
                    file.readuntil(b"\n", LINE_BREAK_WINDOW)
                    edges.append(file.tell())
            if edges[-1] < stat.size:
                edges.append(stat.size)
            pieces = [FilePart(url, a, b, columns, version=stat.etag) for a, b in itertools.pairwise(edges)]
            ranges += pieces or [part]
        return ranges

    def read_header(self, url: str, start: int, stat: files.Stat) -> tuple[int, tuple[str, ...]]:
        """Return where the rows start, and the columns. By default, there is no header."""
        return start, ()

    def read_part(self, part: FilePart) -> Parsed:
        """Parse a file, or a range of one, and return its rows."""
        if part.stop is None:
            return super().read_part(part)
        data = files.read_range(part.url, part.start, part.stop, part.version)
        try:
            return self.parse(data, part)
        except InputError:  # the part is parsed again with counted lines, so that the error names the line
            chunks = ((at, min(at + BYTES_AT_ONCE, part.start)) for at in range(0, part.start, BYTES_AT_ONCE))
            before = sum(files.read_range(part.url, *chunk, part.version).count(b"\n") for chunk in chunks)
            self.parse(data, replace(part, line=1 + before))
            raise


def even_share(n_bytes: int, n: int | None) -> int:
    """Return the number of bytes of each part: all bytes divided by `n`, or about `PART_BYTES` if `n` is None."""
    return max(1, math.ceil(n_bytes / (n or max(1, math.ceil(n_bytes / PART_BYTES)))))

"""Parts of files, so that one large file is read by all workers: byte ranges that start and end at line breaks.

The way is: cut a source into `parts`; let any worker make the `survey` of any part; `plan` merges the surveys, which numbers the
rows and gives the schema; let any worker read any part of the plan as a block::

    cut = parts(source, 64)
    planned = plan(source, cut, [survey(source, part) for part in cut])
    blocks = [read_part(planned.source, part, planned.schema) for part in planned.parts]

Whatever the parts, the rows together are those of `aucdist.data.formats.readers.read`, with the same row ids.
"""

import functools
import itertools
import math
import operator
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from aucdist.data.block import Block
from aucdist.data.dataset import Schema
from aucdist.data.formats.delimited import csv_head
from aucdist.data.formats.embedded import load_embedded
from aucdist.data.formats.encode import encode
from aucdist.data.formats.parquet import parse_row_groups, row_group_sizes
from aucdist.data.formats.readers import Parsed, check, parse, whole
from aucdist.data.formats.survey import Survey, schema_of, settled, survey_of
from aucdist.data.labels import choose_positive
from aucdist.data.source import Source
from aucdist.data.storage import files
from aucdist.data.storage.compression import BOM, is_packed, unpacked
from aucdist.errors import InputError

WINDOW = 2**16  # bytes that are looked at first for a line break; as many as needed after that
CHUNK = 2**24


@dataclass(frozen=True)
class Part:
    """A file, or the bytes from `start` to `stop` of one, which are whole lines; of a Parquet file, its row groups.

    Attributes
    ----------
    url : str
    start : int
    stop : int or None
        None: the whole file, which may be compressed and have a header.
    columns : tuple of str
        For a range of a CSV file the names of its columns.
    row, line : int or None
        The number of its first row in the data set (from 0) and of its first line in the file (from 1), once known.
    version : str
        What tells this version of the file from another (`aucdist.data.storage.files.Stat`); empty for one of the web.
    """

    url: str
    start: int = 0
    stop: int | None = None
    columns: tuple[str, ...] = ()
    row: int | None = None
    line: int | None = None
    version: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the part in types of JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> "Part":
        """Make a part from what `to_json` returned."""
        return cls(**content | {"columns": tuple(content["columns"])})


@dataclass(frozen=True)
class Plan:
    """Parts whose rows are numbered, and what is needed to encode them alike.

    Attributes
    ----------
    source : Source
        As it was given, with the layout and the type of the values settled.
    parts : tuple of Part
    schema : Schema
    survey : Survey
        That of all parts: rows, classes, ...
    """

    source: Source
    parts: tuple[Part, ...]
    schema: Schema
    survey: Survey


def parts(source: Source, n: int) -> list[Part]:
    """Cut a source into about so many parts of about the same size, in the order of its rows.

    A part never holds more than one file. Only svmlight, CSV and Parquet files are cut, and among them neither those that are
    compressed or come from the web, nor one with a `sha256`, which needs all of the file. Little is read: the sizes, the header,
    and a few bytes around each cut.

    Parameters
    ----------
    source : Source
    n : int
        At least 1. There are fewer parts where lines are long, and more where there are more files.

    Raises
    ------
    InputError
        If there is nothing to read, or if the place cannot be reached.
    """
    if n < 1:
        raise InputError(f"{n} parts; at least 1 is needed")
    if source.format == "embedded":
        return [Part(str(source.source))]
    urls = files.expand(source.source)
    if source.format == "parquet" and source.sha256 is None:
        return _row_groups({url: row_group_sizes(url, source) for url in urls}, n)
    if not any(_can_be_cut(url, source) for url in urls):
        return [_whole(url) for url in urls]
    found = [files.stat(url) for url in urls]
    share = max(1, math.ceil(sum(stat.size for stat in found) / n))
    return [
        part
        for url, stat in zip(urls, found, strict=True)
        for part in (
            _cut(url, stat, share, source) if _can_be_cut(url, source) and stat.size > share else [_whole(url)]
        )
    ]


def _whole(url: str) -> Part:
    return Part(url, version="" if files.is_web(url) else files.stat(url).etag)


def _row_groups(sizes: dict[str, dict[int, int]], n: int) -> list[Part]:
    """Return ranges of row groups that follow each other, each of about an n-th of all bytes."""
    share = max(1, math.ceil(sum(sum(of_file.values()) for of_file in sizes.values()) / n))
    found: list[Part] = []
    held = 0
    for url, of_file in sizes.items():
        file = _whole(url)
        for i, size in of_file.items():
            if found and (found[-1].url, found[-1].stop) == (url, i) and held + size <= share:
                found[-1] = replace(found[-1], stop=i + 1)
                held += size
            else:
                found.append(replace(file, start=i, stop=i + 1))
                held = size
    return found or [replace(_whole(next(iter(sizes))), stop=0)]


def _can_be_cut(url: str, source: Source) -> bool:
    whole_only = files.is_web(url) or is_packed(url) or source.sha256 is not None
    return source.format in ("svmlight", "csv") and not whole_only


def _cut(url: str, stat: files.Stat, share: int, source: Source) -> list[Part]:
    """Return ranges of one file, each from after a line break to after another one."""
    start, columns, line = _beginning(url, stat, source)
    edges = [start]
    for wanted in range(start + share, stat.size, share):
        if wanted > edges[-1]:
            edges.append(_after_break(url, wanted, stat))
    if edges[-1] < stat.size:
        edges.append(stat.size)
    ranges = [Part(url, a, b, columns, version=stat.etag) for a, b in itertools.pairwise(edges)]
    return [replace(ranges[0], line=line), *ranges[1:]] if ranges else [Part(url)]


def _beginning(url: str, stat: files.Stat, source: Source) -> tuple[int, tuple[str, ...], int]:
    """Return where the rows start, the columns of a CSV file, and the number of the first line of rows."""
    mark = len(BOM) if files.read_range(url, 0, len(BOM), stat) == BOM else 0
    if source.format == "svmlight":
        return mark, (), 1
    head, stop = b"", mark
    while head.isspace() or not head:
        if stop == stat.size:
            raise InputError(f"{files.shown(url)} is empty")
        stop = _after_break(url, stop + 1, stat)
        head = files.read_range(url, mark, stop, stat)
    names, start, line = csv_head(head, files.shown(url), source)
    return mark + start, tuple(names), line


def _after_break(url: str, position: int, stat: files.Stat) -> int:
    """Return the place after the first line break at or after a position less one, or the end of the file."""
    start, window = max(0, position - 1), WINDOW
    while start < stat.size:
        stop = min(start + window, stat.size)
        found = files.read_range(url, start, stop, stat).find(b"\n")
        if found >= 0:
            return start + found + 1
        start, window = stop, window * 4
    return stat.size


def survey(source: Source, part: Part, schema: Schema | None = None) -> Survey:
    """Read a part and return what must be known of it.

    Parameters
    ----------
    source : Source
    part : Part
    schema : Schema, optional
        That of the training data, for rows that are to be encoded like them.

    Raises
    ------
    InputError
        If the part cannot be read or is malformed.
    """
    parsed, lines = _parsed(source, part, schema)
    return survey_of(parsed, files.shown(part.url), lines)


def plan(
    source: Source,
    cut: Sequence[Part],
    surveys: Sequence[Survey],
    *,
    schema: Schema | None = None,
    labelled: bool = True,
    name: str = "",
) -> Plan:
    """Number the rows, and settle how all parts are encoded.

    Parameters
    ----------
    source : Source
    cut : sequence of Part
        As `parts` returned them.
    surveys : sequence of Survey
        Theirs, in the same order.
    schema : Schema, optional
        That of the training data, for rows that are to be encoded like them.
    labelled : bool, default=True
        False for rows that are only scored: whatever their labels are, they count as negative.
    name : str
        Names the data set in errors; by default its source.

    Raises
    ------
    InputError
        If the parts do not go together, if there is only one class, or if rows, features or classes are not the expected ones.
    """
    name = name or files.shown(str(source.source))
    total = functools.reduce(operator.add, surveys)
    if schema is None:
        schema = schema_of(source, total, name)
        check(source, name, total, schema)
    elif not labelled:
        if total.rows == 0:
            raise InputError(f"{name} has no rows")
        schema = replace(schema, positive=(), negative=tuple(total.classes))
    else:
        choose_positive(total.classes, "minority", name)
        check(source.model_copy(update={"features": None}), name, total, schema)
    row, numbered = 0, []
    line, url = 1, ""
    for part, one in zip(cut, surveys, strict=True):
        if part.url != url:
            line, url = part.line or 1, part.url
        numbered.append(replace(part, row=row, line=line))
        row, line = row + one.rows, line + one.lines
    return Plan(settled(source, total, len(schema.feature_names)), tuple(numbered), schema, total)


def read_part(source: Source, part: Part, schema: Schema) -> Block:
    """Read a part of a plan as a block.

    Parameters
    ----------
    source, part, schema
        Of one `Plan`.

    Returns
    -------
    Block
        Its `row_id` counts the rows of the data set from 0. A block may have no rows, or one class only.

    Raises
    ------
    InputError
        If the part is not one of a plan, or if it has changed since.
    """
    if part.row is None or source.dtype is None or source.layout == "auto":
        raise InputError(
            f"{files.shown(part.url)}: its rows have no numbers yet; take the parts and the source of a plan"
        )
    parsed, _ = _parsed(source, part, schema)
    return encode(parsed, files.shown(part.url), source, schema, part.row)


def _parsed(source: Source, part: Part, schema: Schema | None) -> tuple[Parsed, int]:
    """Return what is in a part, and its number of line breaks."""
    where = files.shown(part.url)
    if source.format == "embedded":
        return load_embedded(part.url)[0], 0
    if part.version and files.stat(part.url).etag != part.version:
        raise InputError(f"{where} has changed since it was first looked at: start again when it is complete")
    if part.stop is None:
        return parse(unpacked(whole(part.url, source), part.url), where, source, schema), 0
    if source.format == "parquet":
        return parse_row_groups(part.url, source, schema.categories if schema else None, part.start, part.stop), 0
    data = files.read_range(part.url, part.start, part.stop, _version(part))
    try:
        parsed = parse(data, where, source, schema, columns=part.columns, first_line=part.line or 1)
    except InputError:
        if part.line is None:  # once more, now that it is worth counting the lines before
            parse(data, where, source, schema, columns=part.columns, first_line=_first_line(part))
        raise
    return parsed, data.count(b"\n")


def _first_line(part: Part) -> int:
    """Return the number of the line that a part starts with."""
    chunks = ((at, min(at + CHUNK, part.start)) for at in range(0, part.start, CHUNK))
    return 1 + sum(files.read_range(part.url, *chunk, _version(part)).count(b"\n") for chunk in chunks)


def _version(part: Part) -> files.Stat | None:
    return files.Stat(0, part.version) if part.version else None

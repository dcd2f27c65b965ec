"""Reads the first rows of a file as text, to find out what each column holds."""

import re
from dataclasses import dataclass

import pandas as pd
from pandas.api.types import union_categoricals

from aucdist.data.formats.base import FilePart
from aucdist.data.formats.csv_format import QUOTES, csv_head, csv_text, separator_of
from aucdist.data.formats.csv_text import parse_cells
from aucdist.data.formats.spelling import Spelling
from aucdist.data.formats.table_form import TableForm
from aucdist.data.formats.tables import Table
from aucdist.data.formats.text import first_row, found_encoding, looks_like_values, pick
from aucdist.data.sources.source import Source
from aucdist.data.storage import files
from aucdist.data.storage.guard import is_packed, unpacked
from flows.init.layout import with_layout
from flows.init.spelling import found_spelling

MOST_BYTES = 2**24
MOST_FILES = 64
ROWS_BELOW = 200
"""So many rows are compared with the first one, to tell values from names."""


@dataclass(frozen=True, eq=False)
class FirstRows:
    """The first rows of a file.

    `source`: with the separator decided.
    `texts`: the cells of every column but the label.
    `classes`: the label of each row.
    `unread`: columns of types that are neither numbers nor texts.
    `n_files`: the files that they are the first rows of.
    """

    source: Source
    texts: dict[str, pd.Categorical]
    classes: pd.Categorical
    label: str
    unread: dict[str, str]
    whole: bool
    n_files: int = 1


def first_rows(source: Source) -> FirstRows:
    """Read the first rows of a source.

    Raises InputError if the file cannot be read.
    """
    urls = source.format_of().part_urls(source)
    if source.format == "csv":
        return _of_csv(source, urls)
    return _of_parquet(source, urls) if source.format == "parquet" else _of_arrow(source, urls)


def _of_csv(source: Source, urls: list[str]) -> FirstRows:
    data, whole = head_of(urls[0])
    where = files.shown(urls[0])
    source, data = with_layout(source, data, where)
    if "header" not in source.model_fields_set and _has_no_header(data, where, source):
        source = source.model_copy(update={"header": False})
    names, start, line = csv_head(data, where, source)
    if isinstance(source.label, str) and source.label not in names and re.fullmatch(r"-?\d{1,9}", source.label):
        source = source.model_copy(update={"label": int(source.label)})  # a position, as on the command line
    label = pick(names, source.label, where, "label")
    features = tuple(name for name in names if name != label)
    spelling = Spelling(tuple(source.missing_values))
    form = TableForm(label, features, features, missing=True, spelling=spelling)
    table = parse_cells(csv_text(data[start:], where, source, names, line), form)
    if not {"decimal", "thousands", "symbols"} & source.model_fields_set:
        found = found_spelling({name: table.texts[name] for name in features})
        source = source.model_copy(
            update={"decimal": found.decimal, "thousands": found.thousands, "symbols": list(found.symbols)}
        )
    texts = {name: table.texts[name] for name in features}
    return FirstRows(source, texts, table.texts[label], label, {}, whole and len(urls) == 1)


def head_of(url: str) -> tuple[bytes, bool]:
    """Return the first lines of a file, and whether they are all."""
    if files.is_web(url) or is_packed(url) or files.stat(url).size <= MOST_BYTES:
        data = unpacked(files.read_bytes(url), url)
    else:
        data = files.read_range(url, 0, MOST_BYTES + 1)
    if len(data) <= MOST_BYTES:
        return data, True
    if found_encoding(data[: 2**16]) == "utf-16":
        return unpacked(files.read_bytes(url), url), True  # a line break is two bytes there
    return data[: data.rfind(b"\n", 0, MOST_BYTES) + 1], False


def _has_no_header(data: bytes, where: str, source: Source) -> bool:
    """Return whether the first line of a file is one of values."""
    separator, start = separator_of(source), csv_head(data, where, source.model_copy(update={"header": False}))[1]
    rows: list[list[str]] = []
    while len(rows) <= ROWS_BELOW and data[start : start + 2**20].strip():
        _, cells, start = first_row(data, where, separator, start=start, quote=QUOTES[source.quote])
        rows.append(cells)
    return looks_like_values(rows[0], rows[1:])


def _of_arrow(source: Source, urls: list[str]) -> FirstRows:
    """Read all rows of a format that becomes a table of Arrow."""
    from aucdist.data.formats.arrow_formats import ArrowFileFormat, LoadedFormat
    from aucdist.data.formats.parquet import parse_arrow
    from aucdist.data.formats.tables import is_plain

    of, where = source.format_of(), files.shown(urls[0])
    if isinstance(of, LoadedFormat):
        arrow = of.load(urls[0], source)
    else:
        assert isinstance(of, ArrowFileFormat)
        arrow = of.to_arrow(unpacked(files.read_bytes(urls[0]), urls[0]), where, source)
    fields = {field.name: field.type for field in arrow.schema}
    label = pick(list(fields), source.label, where, "label")
    unread = {name: str(kind) for name, kind in fields.items() if not is_plain(kind) and name != label}
    keep = [name for name in fields if name not in unread and name != label]
    read = source.model_copy(update={"keep": keep or None, "categorical": keep, "missing": "keep", "label": label})
    table = parse_arrow(arrow, where, read, None)
    texts = {name: table.texts[name] for name in table.features}
    return FirstRows(source, texts, table.texts[label], label, unread, len(urls) == 1)


def _of_parquet(source: Source, urls: list[str]) -> FirstRows:
    import pyarrow as pa

    from aucdist.data.formats.parquet import column_types, path_values
    from aucdist.data.formats.tables import is_plain

    fields = column_types(urls[0])
    folders = path_values(urls[0])
    fields |= {name: pa.string() for name in folders if name not in fields}
    label = pick(list(fields), source.label, files.shown(urls[0]), "label")
    unread = {name: str(kind) for name, kind in fields.items() if not is_plain(kind) and name != label}
    keep = [name for name in fields if name not in unread and name != label]
    read = source.model_copy(update={"keep": keep or None, "categorical": keep, "missing": "keep", "label": label})
    # In one file alone each column of the folders would have one value.
    some = [urls[i * len(urls) // MOST_FILES] for i in range(MOST_FILES)] if len(urls) > MOST_FILES else urls
    some = some if folders else urls[:1]
    found = [_first_row_groups(url, source, read, MOST_BYTES // len(some)) for url in some]
    columns = {name: union_categoricals([table.texts[name] for table, _ in found]) for name in (*keep, label)}
    whole = len(some) == len(urls) and all(of_file for _, of_file in found)
    return FirstRows(source, {name: columns[name] for name in keep}, columns[label], label, unread, whole, len(some))


def _first_row_groups(url: str, source: Source, read: Source, most_bytes: int) -> tuple[Table, bool]:
    """Return the first row groups of a file, at least one of them, and whether these are all."""
    from aucdist.data.formats.parquet import parse_row_groups, row_group_sizes

    sizes, stop, total = row_group_sizes(url, source), 0, 0
    while stop < len(sizes) and (stop == 0 or total + sizes[stop] <= most_bytes):
        total += sizes[stop]
        stop += 1
    return parse_row_groups(read, FilePart(url, stop=stop), None), stop == len(sizes)

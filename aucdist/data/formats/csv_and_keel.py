"""The formats `csv` and `keel`: text files with cells between separators, with or without a header, or with declared attributes.

pyarrow reads the cells. If it cannot, plain Python reads them, and its errors name line and column.
"""

import itertools
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from aucdist.data.formats.base import OF_COLUMNS, OF_TABLES, FileFormat, FilePart, LineFormat, Parsed, TableFormat
from aucdist.data.formats.source_fields import SourceFields
from aucdist.data.formats.text import BLANKS, as_utf8, check_names, first_row, not_utf8, resolve_column, rows_of_cells
from aucdist.data.storage import files
from aucdist.errors import InputError, Json

if TYPE_CHECKING:
    import pyarrow as pa

    from aucdist.data.dataset import Schema
    from aucdist.data.formats.table_options import TableOptions


BYTES_PARSED_FIRST = 2**16
"""The number of bytes that are parsed first to find text columns. Otherwise a text cell costs a second reading of all bytes."""
BLOCK_BYTES = 2**20
"""The block size of pyarrow. A block fits into the processor's cache and must hold a whole line."""
LINES_IN_BLOCK = 256
"""The block size of files of long lines, in lines."""
BLANK_TO_SPACE = bytes.maketrans(b"\t\v\f\r", b"    ")
FAILED_COLUMN = re.compile(r"In CSV column #(\d+):")
SEPARATORS = {"space": BLANKS, "tab": "\t"}
QUOTES = {"double": '"', "single": "'"}
MAX_BYTES_BELOW_HEADER = 2**20
"""The number of bytes that are read for the row below a header."""
OF_CELLS = frozenset(
    {"header", "columns", "separator", "encoding", "decimal", "thousands", "symbols", "quote", "skip_lines"}
)
"""The keys that describe the syntax of the lines of a file."""
ARFF_ATTRIBUTE = re.compile(
    r"""(?P<name>'[^']*'|"[^"]*"|[^\s{\[]+)\s*(?P<domain>\{.*\}|(?:real|integer|numeric|string|date)\b.*)""", re.I
)
ARFF_VALUE = re.compile(r"""\s*(?:'([^']*)'|"([^"]*)"|([^,]*))\s*(?:,|$)""")
ARFF_COMMENT = re.compile(rb"(?m)^[ \t]*%.*$")
TEXT_DOMAIN = "string"


@dataclass(frozen=True)
class CsvText:
    """Whole lines of cells, without a header.

    Attributes
    ----------
    data : bytes
        The text in UTF-8. The last byte is a line break. Blank lines are ignored.
    where : str
        The name of the file in error messages.
    names : sequence of str
        The columns.
    separator : str
        One character, or `BLANKS`. A cell in quotes may contain separators, line breaks and doubled quotes.
    quote : str
        The character of quotes.
    decimal : str
        The decimal separator of numbers.
    first_line : int
        The number of the first line in its file.
    """

    data: bytes
    where: str
    names: Sequence[str]
    separator: str = ","
    quote: str = '"'
    decimal: str = "."
    first_line: int = 1

    def read(self, names: Sequence[str], numbers: Collection[str], missing: Collection[str]) -> "pa.Table":
        """Return the columns. Those in `numbers` are float64 if each cell is a number. All others are dictionaries of strings.

        Parameters
        ----------
        names : sequence of str
            The columns to return.
        numbers : collection of str
            The columns that are expected to be numbers.
        missing : collection of str
            The words, in lower case, that mark a missing number. They become nulls.

        Raises
        ------
        InputError
            If a line has too many or too few cells, or a cell cannot be read. The message names line and column.
        """
        import pyarrow as pa

        floats = list(numbers)
        if not self._arrow_agrees:
            return self._read_in_python(names)
        head = self.data[: self.data.rfind(b"\n", 0, BYTES_PARSED_FIRST) + 1]
        for part in (replace(self, data=head), self) if floats and len(self.data) > 4 * BYTES_PARSED_FIRST else (self,):
            table = None
            while table is None:
                try:
                    table = part._read_by_arrow(names, floats, missing)
                except pa.ArrowInvalid as e:
                    failed = FAILED_COLUMN.search(str(e))
                    if failed is None or self.names[int(failed[1])] not in floats:
                        break
                    floats.remove(self.names[int(failed[1])])
        return self._read_in_python(names) if table is None else table

    def location(self, row: int, name: str) -> str:
        """Return the file and the line of a cell, as in ``f.csv, line 3``. Rows are counted from 0."""
        cells = next(itertools.islice(self.rows(), row, None))
        return f"{self.where}, line {cells[self.names.index(name)][0]}"

    def rows(self) -> Iterator[list[tuple[int, str]]]:
        """Yield the cells of each row with their lines. Bytes that are not UTF-8 become surrogates.

        Raises
        ------
        InputError
            If a row has too many or too few cells, or quotes are not closed.
        """
        text = self.data.decode(errors="surrogateescape")
        for cells, _ in rows_of_cells(text, self.where, self.separator, self.quote, self.first_line, self.names):
            if len(cells) != len(self.names):
                raise InputError(
                    f"{self.where}, line {cells[0][0]}: the row has {len(cells)} cells, but there are "
                    f"{len(self.names)} columns: correct the row, and quote cells that contain the separator"
                )
            yield cells

    def _read_in_python(self, names: Sequence[str]) -> "pa.Table":
        import pyarrow as pa

        rows = list(self.rows())
        columns = {}
        for name in names:
            j = self.names.index(name)
            cells = [row[j][1] for row in rows]
            for row, cell in enumerate(cells):
                if not cell.isascii() and (problem := not_utf8(cell)):
                    raise InputError(f"{self.where}, line {rows[row][j][0]}, column {name!r}: {problem}")
            columns[name] = pa.array(cells, pa.string()).dictionary_encode()
        return pa.table(columns)

    @cached_property
    def _arrow_agrees(self) -> bool:
        """Whether pyarrow splits cells as `rows` does, because quotes enclose whole cells, and lines end in LF or CR LF."""
        data, sep = self.data, self.separator
        returns = data.count(b"\r")
        if data.isspace() or not data or (returns and returns != data.count(b"\r\n")):
            return False
        if len(self.names) == 1 and re.search(rb"(?m)^[ \t\v\f]+\r?$", data):
            return False
        if self.quote.encode() not in data:
            return True
        if sep == BLANKS:
            return False
        array = np.frombuffer(data, np.uint8)
        at = np.flatnonzero(array == ord(self.quote))
        if len(at) % 2:
            return False
        fits = np.zeros(256, dtype=bool)
        fits[[ord(sep), ord("\n"), ord(self.quote)]] = True
        before = fits[array[at[::2] - 1]]
        before[:1] |= at[0] == 0
        fits[ord("\r")] = True
        return bool(before.all() and fits[array[at[1::2] + 1]].all())

    def _read_by_arrow(self, names: Collection[str], floats: Collection[str], missing: Collection[str]) -> "pa.Table":
        import pyarrow as pa
        import pyarrow.csv

        data, separator = self.data, self.separator
        if separator == BLANKS:
            data, separator = data.translate(BLANK_TO_SPACE), " "
            while b"  " in data:  # this is several times as fast as a regular expression
                data = data.replace(b"  ", b" ")
            data = data.replace(b" \n", b"\n").replace(b"\n ", b"\n").lstrip(b" ")
        spelled = {form for text in missing for form in (text, text.upper(), text.title(), text.capitalize(), "NaN")}
        kinds = {name: pa.float64() if name in floats else pa.dictionary(pa.int32(), pa.string()) for name in names}
        table = pa.csv.read_csv(
            pa.BufferReader(data),
            pa.csv.ReadOptions(
                use_threads=False, block_size=max(BLOCK_BYTES, LINES_IN_BLOCK * data.find(b"\n")), column_names=list(self.names)
            ),
            pa.csv.ParseOptions(
                delimiter=separator, quote_char=self.quote, newlines_in_values=self.quote.encode() in data
            ),
            pa.csv.ConvertOptions(
                column_types=kinds, include_columns=list(kinds), decimal_point=self.decimal, strings_can_be_null=False,
                null_values=sorted(blank + form for form in spelled for blank in ("", " ")) if missing else [],
            ),
        )  # fmt: skip
        return table.unify_dictionaries() if table.num_rows else table


def parse_cells(text: CsvText, options: "TableOptions") -> Parsed:
    """Return lines of cells as a table. Each number has the value that Python's `float` returns for its text.

    Raises
    ------
    InputError
        As `CsvText.read` and `aucdist.data.formats.tables.parse_table`.
    """
    import pyarrow as pa

    from aucdist.data.formats.tables import as_numpy, parse_table

    numbers, spelling = options.parsed_numbers, options.spelling
    missing = spelling.number_words if options.missing else ()
    columns = text.read(options.columns, () if spelling.thousands or spelling.symbols else numbers, missing)
    # Above 2**53, the digits show whether a float64 can represent the number, and errors name values that are not finite.
    most = min(2.0**53, float(np.finfo(options.dtype or "float64").max))
    for i, name in enumerate(columns.column_names):
        if not pa.types.is_float64(columns[name].type):
            continue
        chunks = (as_numpy(chunk.drop_null()) for chunk in columns[name].chunks)
        # The comparison is also true for NaN.
        if not all(len(values) == 0 or (-most < values.min() and values.max() < most) for values in chunks):
            columns = columns.set_column(i, name, text.read([name], (), ())[name])
    return parse_table(columns, options, text.where, text.location, are_cells=True)


class CsvFormat(TableFormat, LineFormat):
    """CSV files and other files with separators."""

    fields = OF_COLUMNS | OF_CELLS

    def check(self) -> None:
        """Raise an InputError for column names if files have a header, and for a column with two roles."""
        super().check()
        source = self.source
        if source.columns is not None and source.header:
            raise InputError("`columns` names the columns of a file without a header: give `header: false` with it")
        if source.decimal == source.thousands:
            raise InputError(f"`decimal` and `thousands` are both {source.decimal!r}: give two different characters")

    def read_header(self, url: str, start: int, stat: files.Stat) -> tuple[int, tuple[str, ...]]:
        """Return where the rows start, and the columns."""
        where, size = files.shown(url), MAX_BYTES_BELOW_HEADER
        while True:
            head = files.read_range(url, start, min(start + size, stat.size), stat.etag)
            below = b"".join(head.split(b"\n", self.source.skip_lines)[self.source.skip_lines :]).lstrip()
            # The header and the row below it have been read.
            if below.count(b"\n") > 1 or start + len(head) == stat.size:
                break
            size *= 4
        if not head.strip():
            raise InputError(f"{where} is empty: name a file with at least one row")
        names, after, _ = csv_head(head, where, self.source, self.source.encoding)
        return start + after, tuple(names)

    def parse(self, data: bytes, part: FilePart) -> Parsed:
        """Return the columns. A range of a file has no header, so the names come from `part`."""
        from aucdist.data.formats.table_options import TableOptions

        where, first_line, names = part.where, part.line, list(part.columns)
        data = as_utf8(data, where, self.source, first_line)
        if not names:
            names, start, first_line = csv_head(data, where, self.source)
            data = data[start:]
        options = TableOptions.of(self.source, self.schema, names, where)
        return parse_cells(csv_text(data, where, self.source, names, first_line), options)


def csv_text(data: bytes, where: str, source: SourceFields, names: Sequence[str], first_line: int) -> "CsvText":
    """Return the lines below the header of a CSV file, in UTF-8, with the separators of a source."""
    data = data if data.endswith(b"\n") else data + b"\n"
    return CsvText(data, where, names, separator_of(source), QUOTES[source.quote], source.decimal, first_line)


def separator_of(source: SourceFields) -> str:
    """Return the separator of the cells of a CSV file."""
    return SEPARATORS.get(source.separator, source.separator)


def csv_head(data: bytes, where: str, source: SourceFields, encoding: str = "utf-8") -> tuple[list[str], int, int]:
    """Return the column names of a CSV file, the offset of its first row, and the number of the line there.

    Empty cells of the header get names: ``index`` for the first column, which pandas writes without a name, and x2, x3, ... for
    others. Row names also get a name, because R writes a header with one cell less. A name that occurs again becomes name.1,
    name.2, ...

    Parameters
    ----------
    data : bytes
        At least the header and the row below it.
    where : str
        The name of the data in error messages.
    source : SourceFields
        The source of the rows.
    encoding : str, default="utf-8"
        The encoding of `data`.
    """
    skip, start = source.skip_lines, 0
    for i in range(skip):
        start = data.find(b"\n", start) + 1
        if start == 0:
            raise InputError(f"{where} has {i + 1} lines, but `skip_lines` skips {skip}: give a smaller number")
    separator, quote = separator_of(source), QUOTES[source.quote]
    next_line, cells, end = first_row(data, where, separator, start=start, encoding=encoding, quote=quote)
    if not source.header:
        return (
            check_names(source.columns or [f"x{i}" for i in range(1, len(cells) + 1)], where, source),
            start,
            1 + skip,
        )
    try:
        first = first_row(data, where, separator, start=end, encoding=encoding, quote=quote)[1]
    except InputError:  # there are no rows, or reading the rows will raise the error
        first = None
    if not any(cells):
        return check_names(cells, where), end, next_line
    if first is not None and len(first) == len(cells) + 1 and first[-1]:
        cells = ["", *cells]
    named = [cell or ("index" if i == 1 and "index" not in cells else f"x{i}") for i, cell in enumerate(cells, 1)]
    seen: set[str] = set()
    for j, name in enumerate(named):
        n_repeated = 0
        while named[j] in seen or (n_repeated and named[j] in named[:j] + named[j + 1 :]):
            n_repeated += 1
            named[j] = f"{name}.{n_repeated}"
        seen.add(named[j])
    return check_names(named, where, source), end, next_line


class KeelFormat(FileFormat):
    """KEEL files. ARFF files are read by the same code. They have no inputs and outputs, and may have comments."""

    fields = OF_TABLES | {"drop"}

    def for_scoring(self, schema: "Schema") -> Json:
        """Return changes with which neither groups nor costs are read."""
        return {"groups": None, "cost_column": None}

    def parse(self, data: bytes, part: FilePart) -> Parsed:
        """Return the columns below ``@attribute`` lines with types, ``@inputs``, ``@outputs`` and ``@data``.

        The categories of a nominal attribute are those that it declares, whether they occur or not. So the parts of a
        partitioned data set are encoded in the same way. Without ``@inputs``, all attributes but the label are features.
        Without ``@outputs``, the last attribute is the label.
        """
        from aucdist.data.formats.table_options import MISSING_CATEGORY, TableOptions

        source, schema, where = self.source, self.schema, part.where
        domains, roles, data, first_line = _keel_header(data, where)
        names = list(domains)
        outputs = roles.get("output") or names[-1:]
        if source.label is None and len(outputs) != 1:
            raise InputError(
                f"{where}: there are several outputs ({', '.join(outputs)}); name one of them with `label`"
            )
        label = resolve_column(names, outputs[0] if source.label is None else source.label, where, "label")
        inputs = roles.get("input") or [name for name in names if name not in outputs]
        if schema is not None:  # As with other tables, a model reads its own columns and ignores others.
            inputs = [name for name in schema.columns() if name in names]
        options = TableOptions.of(source.model_copy(update={"label": label}), schema, names, where)
        others = {
            label,
            options.groups,
            options.cost,
            *(resolve_column(names, name, where, "drop") for name in source.drop or ()),
        }
        features = tuple(resolve_column(names, name, where, "@inputs") for name in inputs if name not in others)
        texts = set(options.categorical)
        if schema is None:
            texts |= {name for name in features if domains[name]}
        more = (MISSING_CATEGORY,) if options.missing else ()
        allowed = {
            name: domain if name == label else (*domain, *more)
            for name, domain in domains.items()
            if domain and domain != (TEXT_DOMAIN,)
        }
        if data.lstrip().startswith(b"{"):
            raise InputError(
                f"{where}, line {first_line}: rows of index and value in braces (sparse ARFF) are not read: save the "
                "table as dense ARFF or CSV"
            )
        quote = "'" if b"'" in data and b'"' not in data else '"'
        lines = ARFF_COMMENT.sub(b"", data) + (b"" if data.endswith(b"\n") else b"\n")
        return parse_cells(
            CsvText(lines, where, names, ",", quote, first_line=first_line),
            replace(
                options, features=features, categorical=texts & set(features), guess=False,
                allowed=allowed | dict(options.allowed),
            ),
        )  # fmt: skip


def _keel_header(data: bytes, where: str) -> tuple[dict[str, tuple[str, ...]], dict[str, list[str]], bytes, int]:
    """Return the declared values of each attribute (none for a number), the roles, and the data with its first line's number."""
    domains: dict[str, tuple[str, ...]] = {}
    roles: dict[str, list[str]] = {}
    start = 0
    for number, raw in enumerate(data.split(b"\n"), 1):
        start += len(raw) + 1
        line = raw.decode(errors="replace").strip()
        keyword, rest = [*line.split(None, 1), "", ""][:2]
        keyword = keyword.lower()
        if keyword == "@data":
            if not domains:
                raise InputError(
                    f"{where}: there is no @attribute line before @data: describe each column by such a line, or give the "
                    "`format` of the file"
                )
            return domains, roles, data[start:], number + 1
        if keyword == "@attribute":
            match = ARFF_ATTRIBUTE.fullmatch(rest)
            if match is None:
                raise InputError(
                    f"{where}, line {number}: {rest[:40]!r} is not `name {{value, ...}}`, `name real [low, high]` or "
                    "`name integer`: correct the line, or give the `format` of the file"
                )
            domain, name = match["domain"], match["name"].strip("'\"")
            check_names([*domains, name], f"{where}, line {number}")
            if domain.startswith("{"):
                domains[name] = tuple(
                    (a or b or c).strip() for a, b, c in ARFF_VALUE.findall(domain[1:-1].strip()) if a or b or c
                )
            else:
                domains[name] = (TEXT_DOMAIN,) if domain.lower().startswith(("string", "date")) else ()
        elif keyword in ("@input", "@inputs", "@output", "@outputs"):
            roles[keyword[1:].rstrip("s")] = [name.strip() for name in rest.split(",")]
        elif line and keyword != "@relation" and not line.startswith("%"):
            raise InputError(
                f"{where}, line {number}: {line[:40]!r} is not a line of a KEEL or ARFF header: correct it, or give `format`"
            )
    raise InputError(f"{where}: there is no @data line, which KEEL and ARFF files have: give the `format` of the file")

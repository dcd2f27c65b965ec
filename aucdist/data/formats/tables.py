"""Convert Arrow columns to parsed rows. Numbers become a matrix, and all other values become categories."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy import ndarray

from aucdist.data.dataset import date_features
from aucdist.data.formats.base import Parsed, Survey, Texts
from aucdist.data.formats.table_options import (
    BOOLEANS,
    MISSING_CATEGORY,
    REMEDY,
    REMEDY_OF_LABELS,
    UNKNOWN_CATEGORY,
    ZERO_DATE,
    TableOptions,
    category_key,
    check_not_dates,
    date_numbers,
    is_finite_number,
    problem_with_date,
)
from aucdist.data.formats.text import BEYOND_EXACT, REMEDY_EXACT, describe_bad_number
from aucdist.data.labels import Labels, listed, numbers_of_texts
from aucdist.errors import InputError, shortened
from aucdist.parameters import frozen

CellLocation = Callable[[int, str], str]
"""A function that describes the location of a cell, given its row (counted from 0) and its column."""
SHOWN_OF_CELL = 40
VALUES_IN_CACHE = 2**17  # the number of values that fit into the cache of the processor


def parse_table(
    columns: pa.Table, options: TableOptions, where: str, location: CellLocation, *, are_cells: bool = False
) -> Parsed:
    """Parse the columns of a table. Dates become numbers.

    Parameters
    ----------
    columns : pyarrow.Table
        The columns, at least those of ``options.columns``.
    options : TableOptions
        How the columns are read.
    where : str
        The name of the file in error messages.
    location : CellLocation
        A function that describes the location of a value for errors.
    are_cells : bool, default=False
        Whether numbers may be strings, as in a CSV file.

    Raises
    ------
    InputError
        If a number is invalid or not finite, or if a value is missing or not allowed. The message names the line or row and the
        column.
    """
    columns = columns.select(options.columns)
    if not are_cells:
        for i, (name, kind) in enumerate(zip(columns.column_names, columns.schema.types, strict=True)):
            # A dictionary may contain values that do not occur in any row.
            plain = kind.value_type if pa.types.is_dictionary(kind) else kind
            if pa.types.is_null(plain):  # without any value, the type is unknown
                plain = pa.string() if name in options.texts else pa.float64()
            if plain != kind:
                columns = columns.set_column(i, name, columns.column(i).cast(plain))
    reader = _TableReader(columns, options, where, location, are_cells)
    if not options.guess:
        return reader.table()
    texts = {
        name for name in options.numbers if name != options.cost and not reader.holds_numbers(columns[name], are_cells)
    }
    table = replace(reader, options=replace(options, categorical={*options.categorical, *texts})).table()
    check_not_dates(sorted(texts), table.texts, where)
    return table


def is_numeric_type(kind: pa.DataType) -> bool:
    """Return whether the values of a type are numbers, booleans or durations."""
    types = pa.types
    kinds = types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_duration
    return any(is_of_kind(kind) for is_of_kind in kinds)


def is_plain(kind: pa.DataType) -> bool:
    """Return whether the values of a type can be labels or categories: strings, numbers, booleans, dates and times."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    types = pa.types
    kinds = is_numeric_type, is_text, types.is_binary, types.is_large_binary, types.is_temporal
    return any(is_of_kind(kind) for is_of_kind in kinds)


def is_text(kind: pa.DataType) -> bool:
    """Return whether the values of a type are strings."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_text(kind: pa.DataType) -> bool:
    return is_text(kind.value_type if pa.types.is_dictionary(kind) else kind)


def as_numpy(column: pa.Array | pa.ChunkedArray) -> ndarray:
    """Return numbers or booleans as an array with NaN for nulls.

    `to_numpy`, `pa.array` and `pa.scalar` are not used, because they load pandas, which takes longer than reading a small file.
    """
    array = one_array(column) if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_boolean(array.type):
        return np.from_dlpack(array.cast(pa.uint8())).astype(bool)
    return np.from_dlpack(array.fill_null(scalar(math.nan, array.type)) if array.null_count else array)


def as_arrow(values: ndarray) -> pa.Array:
    """Return an array of numbers as an Arrow array."""
    return pa.Array.from_buffers(
        pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(np.ascontiguousarray(values))]
    )


def scalar(value: float, kind: pa.DataType) -> pa.Scalar:
    """Return a number as an Arrow scalar."""
    return as_arrow(np.array([value]))[0].cast(kind)


def distinct(column: pa.ChunkedArray) -> tuple[ndarray, pa.Array]:
    """Return the index of each value of a column among its distinct values (the last one for null), and these values."""
    array = one_array(column)
    encoded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
    positions, values = encoded.indices, encoded.dictionary
    last_code = scalar(len(values), pa.int64())
    return as_numpy(positions.cast(pa.int64()).fill_null(last_code) if positions.null_count else positions), values


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array, without a copy if it has one chunk."""
    array = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    # Without chunks, pyarrow does not return an array.
    return array if isinstance(array, pa.Array) else pa.nulls(0, column.type)


def plain_values(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return labels or categories as strings, or None if the type is not plain (`is_plain`). Equal values have equal strings."""
    if _is_text(column.type):
        return column
    if not is_plain(column.type):
        return None
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_boolean(column.type):
        # `positive: true` in a YAML file is read as 1, and must match its class.
        column = column.cast(pa.int8())
    if pa.types.is_float16(column.type):  # Arrow does not support arithmetic with float16
        column = column.cast(pa.float32())
    # -0.0 becomes 0.0.
    return pc.add(column, scalar(0.0, column.type)) if pa.types.is_floating(column.type) else column


@frozen
class _TableReader:
    """Parses Arrow columns. See `parse_table`."""

    columns: pa.Table
    options: TableOptions
    where: str
    location: CellLocation
    are_cells: bool

    def table(self) -> Parsed:
        """Return the table."""
        options, columns = self.options, self.columns
        for name in columns.column_names:
            if columns[name].null_count and not self._may_miss(name):
                raise self._fault(
                    columns[name].is_null().to_numpy(),
                    name,
                    f"the value is missing; {REMEDY_OF_LABELS if name == options.label else REMEDY}",
                )
        parsed_numbers = {name: self._numbers_of(name) for name in options.parsed_numbers}
        cost = np.array(as_numpy(parsed_numbers[options.cost]), dtype=np.float64) if options.cost else None
        single = all(pa.types.is_float32(parsed_numbers[name].type) for name in options.numbers)
        kind = (options.dtype if self.are_cells else None) or ("float32" if options.numbers and single else "float64")
        texts: dict[str, Texts] = {}
        missing: dict[str, int] = {}
        unknown: dict[str, int] = {}
        for name in options.texts:
            texts[name], missing[name], unknown[name] = self._texts_of(name)
        features: list[str] = []
        pieces: list[Any] = []
        places: dict[str, int] = {}
        for name in options.features:
            if parts := options.dates.get(name):
                dates = date_numbers(texts.pop(name), parts, options.date_format)
                pieces += map(as_arrow, dates.astype(kind).T)
                features += date_features(name, parts)
                continue
            features.append(name)
            if name not in texts:
                places[name] = len(pieces)
                pieces.append(parsed_numbers[name])
        numbers, start = np.empty((columns.num_rows, len(pieces)), kind), 0
        rows_in_cache = max(64, VALUES_IN_CACHE // max(1, len(pieces)))
        for batch in pa.table(pieces, [str(j) for j in range(len(pieces))]).to_batches(max_chunksize=rows_in_cache):
            for j, array in enumerate(batch.columns):
                numbers[start : start + len(array), j] = as_numpy(array)
            start += batch.num_rows
        if options.missing:
            if len(words := options.spelling.missing_numbers):
                for j in places.values():
                    numbers[np.isin(numbers[:, j], words), j] = np.nan
            counts = np.isnan(numbers).sum(axis=0)
            missing |= {name: int(counts[j]) for name, j in places.items()}
        group = None
        if options.groups:
            column = texts.pop(options.groups)
            group = numbers_of_texts(column.categories)[column.codes]
        # Rows without labels, which are only scored, form one class.
        labels = Labels.of(*texts.pop(options.label, Texts(np.zeros(columns.num_rows, np.int8), ("?",))))
        categories = {
            name: tuple(sorted(options.allowed.get(name, texts[name].categories)))
            for name in options.features
            if name in options.categorical
        }
        survey = Survey.of(
            self.where, labels, single=kind == "float32" and numbers.shape[1] > 0, label=options.label, columns=tuple(features),
            categories=categories, hashed=dict(options.hashed), dates=dict(options.dates), missing=_occurring(missing),
            unknown=_occurring(unknown),
        )  # fmt: skip
        return Parsed(survey, labels, numbers, texts, group, cost)

    def holds_numbers(self, column: pa.ChunkedArray, are_cells: bool) -> bool:
        """Return whether all values of a column are numbers, or mark missing values where these are allowed."""
        if not (are_cells and _is_text(column.type)):
            return is_numeric_type(column.type)
        spelling, texts = self.options.spelling, pc.utf8_trim_whitespace(distinct(column)[1])
        return all(
            plain is not None or (self.options.missing and spelling.is_missing_number(text))
            for text, plain in zip(texts.to_pylist(), spelling.plain_numbers(texts).to_pylist(), strict=True)
        )

    def _may_miss(self, name: str) -> bool:
        return self.options.missing and name in self.options.features

    def _fault(self, rows: ndarray, name: str, problem: str) -> InputError:
        """Return the error for the first of these rows."""
        return InputError(
            f"{self.location(int(np.argmax(rows)), name)}, column {name!r}: {problem}"
            f"{f'. {rows.sum():,} of {len(rows):,} rows read lack it' if problem.endswith(REMEDY_OF_LABELS) else ''}"
        )

    def _numbers_of(self, name: str) -> pa.Array | pa.ChunkedArray:
        """Return a column of numbers."""
        column = self.columns[name]
        if _is_text(column.type):
            if not self.are_cells:  # for example a column of a workbook that mixes numbers and strings
                column = column.cast(pa.string()).fill_null("")
            if self.are_cells or self.holds_numbers(column, True):
                return self._parsed_numbers(column, name)
        if self.are_cells:
            return column
        if not is_numeric_type(column.type):
            raise InputError(
                f"{self.where}, column {name!r}: its type is {shortened(str(column.type), 80)}, not a number; "
                "if the column holds categories, "
                "list it under `categorical`"
            )
        if pa.types.is_duration(column.type):  # durations are converted to seconds
            per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[column.type.unit]
            column = pc.divide(column.cast(pa.int64()).cast(pa.float64(), safe=False), float(per_second))
        kind = pa.float32() if pa.types.is_float32(column.type) else pa.float64()
        # Decimals are converted via strings, which are rounded correctly as in CSV.
        if pa.types.is_decimal(column.type):
            column = column.cast(pa.string()).cast(kind)
        values = as_numpy(column.cast(kind, safe=False))
        if column.type in (pa.int64(), pa.uint64()):
            integers = as_numpy(column.fill_null(0))
            if len(integers) and not -(2**53) <= integers.min() <= integers.max() <= 2**53:
                changed = np.array([int(float(number)) != number for number in integers.tolist()])
                if changed.any():
                    first = integers[np.argmax(changed)]
                    raise self._fault(changed, name, f"{first} {BEYOND_EXACT}{REMEDY_EXACT}")
        bad = np.isinf(values) if self._may_miss(name) else ~np.isfinite(values)
        if bad.any():
            raise self._fault(bad, name, f"{values[np.argmax(bad)]} is not finite: correct it, or leave the row out")
        return as_arrow(values)

    def _parsed_numbers(self, column: pa.ChunkedArray, name: str) -> pa.Array:
        """Return the numbers of a text column."""
        codes, cells = distinct(column)
        texts = pc.utf8_trim_whitespace(cells)
        values = np.full(len(texts), np.nan, dtype=self.options.dtype or "float64")
        plain_numbers = self.options.spelling.plain_numbers(texts).to_pylist()
        for code, (text, plain) in enumerate(zip(texts.to_pylist(), plain_numbers, strict=True)):
            plain = plain or BOOLEANS.get(text.lower())
            if plain is not None:
                with np.errstate(over="ignore"):
                    values[code] = float(plain)
            if problem := _problem_with_cell(text, plain, values[code], self.options):
                raise self._fault(codes == code, name, problem)
        return as_arrow(values[codes])

    def _texts_of(self, name: str) -> tuple[Texts, int, int]:
        """Return a text column, and the numbers of missing values and of unknown categories in it."""
        options, column = self.options, self.columns[name]
        if name in options.dates and pa.types.is_temporal(column.type):
            options = replace(options, date_format=None)  # the format is for strings
        if not _is_text(column.type):  # labels or categories may have another type
            plain = plain_values(column)
            if plain is None:
                raise InputError(
                    f"{self.where}, column {name!r}: its type is {shortened(str(column.type), 80)}; "
                    "labels and categories are strings, numbers "
                    "or booleans: convert the column, or leave it out"
                )
            if self._may_miss(name) or pa.types.is_binary(plain.type) or pa.types.is_large_binary(plain.type):
                column = plain.cast(pa.string())
            else:
                codes, kinds = distinct(plain)
                spelled = [str(value) for value in kinds.to_pylist()]
                if "nan" in spelled:  # NaN is not a null in Arrow
                    raise self._fault(
                        codes == spelled.index("nan"),
                        name,
                        f"the value is missing ('nan'); {REMEDY_OF_LABELS if name == options.label else REMEDY}",
                    )
                column = pa.chunked_array([pa.array(spelled, pa.string()).take(as_arrow(codes))])
        codes, texts = distinct(column)
        values: list[str] = []
        for code, text in enumerate([*texts.to_pylist(), *[MISSING_CATEGORY] * bool(column.null_count)]):
            value, problem = _admitted(text.strip(), name, options)
            if problem:
                raise self._fault(codes == code, name, problem)
            values.append(value)
        counts = np.bincount(codes, minlength=len(values))
        missing, unknown = (
            sum(int(count) for value, count in zip(values, counts, strict=True) if value == kind)
            for kind in (MISSING_CATEGORY, UNKNOWN_CATEGORY)
        )
        if MISSING_CATEGORY not in options.allowed.get(name, (MISSING_CATEGORY,)):
            if unknown and options.unknown == "as-missing":
                raise InputError(
                    f"column {name!r} has {unknown} values that are unknown categories. `unknown: as-missing` treats them as "
                    "missing values, but this column had no missing values in training: use `unknown: ignore`"
                )
            values = [UNKNOWN_CATEGORY if value == MISSING_CATEGORY else value for value in values]
        elif options.unknown == "as-missing":
            values = [MISSING_CATEGORY if value == UNKNOWN_CATEGORY else value for value in values]
        ordered = sorted(set(values))
        position = {value: i for i, value in enumerate(ordered)}
        places = np.array([position[value] for value in values], dtype=np.min_scalar_type(-len(ordered) - 1))
        return Texts(places[codes], tuple(ordered)), missing, unknown


def _occurring(counts: dict[str, int]) -> dict[str, int]:
    return {name: n for name, n in counts.items() if n}


def _problem_with_cell(cell: str, plain: str | None, value: float, options: TableOptions) -> str | None:
    """Return what is wrong with a cell of a column of numbers, if anything.

    Parameters
    ----------
    cell : str
        The cell.
    plain : str or None
        The number as Python writes it, or None if the cell is not a number.
    value : float
        The number that was read.
    options : TableOptions
        How the columns are read.
    """
    spelling = options.spelling
    if plain is not None:
        problem = describe_bad_number(plain.encode(), value)
        if problem == BEYOND_EXACT:
            problem += REMEDY_EXACT
        elif problem and math.isfinite(float(plain)):
            problem = f"is too large for {options.dtype}; read it as float64"
        return problem and f"{cell[:SHOWN_OF_CELL]!r} {problem}"
    if spelling.is_missing_number(cell):
        return None if options.missing else f"the value is missing ({cell!r}); {REMEDY}"
    if cell.lower().lstrip("+-") in ("inf", "infinity"):
        return f"{cell[:SHOWN_OF_CELL]!r} is not finite"
    if not spelling.plain and is_finite_number(cell):
        return f"{cell[:SHOWN_OF_CELL]!r} is not a number as `decimal`, `thousands` and `symbols` say that numbers are written"
    remedy = (
        "if the column holds categories, list it under `categorical`; if it stands for a missing value, list it under "
        "`missing_values`"
    )
    if spelling.plain and any(character.isdigit() for character in cell) and not cell[0].isalpha():
        remedy = (
            "where numbers have a decimal comma, thousands separators or a currency, say so (`decimal`, `thousands`, `symbols`; "
            "`aucdist init` finds them); if the column holds categories, list it under `categorical`"
        )
    return f"{cell[:SHOWN_OF_CELL]!r} is not a number; {remedy}"


def _admitted(value: str, name: str, options: TableOptions) -> tuple[str, str | None]:
    """Return the category for a string of a column, and what is wrong with the string, if anything."""
    known = options.spellings.get(name)
    if known is not None:
        value = known.get(value) or known.get(category_key(value)) or value
        if value in known:
            return value, None
    is_label, is_date = name in (options.label, options.groups), name in options.dates
    may_miss = options.missing and not is_label
    is_missing = options.spelling.is_missing(value, label=is_label) or (is_date and ZERO_DATE.match(value) is not None)
    if is_missing and not may_miss:
        return value, f"the value is missing ({value!r}); {REMEDY_OF_LABELS if name == options.label else REMEDY}"
    if is_missing or (may_miss and value == MISSING_CATEGORY):
        if known is None or MISSING_CATEGORY in known or options.unknown == "ignore":
            return MISSING_CATEGORY, None
        return value, (
            "the value is missing, but no training row had a missing value in this column; fill it in, remove the row, or give "
            "`unknown: ignore`, so that the row has none of the known categories"
        )
    if is_date:
        return value, problem_with_date(value, options.date_format)
    if known is None:
        return value, None
    if options.unknown != "error" and not is_label:
        return UNKNOWN_CATEGORY, None
    return (
        value,
        f"unknown category {value[:80]!r}; known: {listed(options.allowed[name])}. Correct it, or give `unknown: ignore`",
    )

"""`read`: any supported source to a data set in memory."""

import functools
import hashlib
import json
import operator
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from aucdist.data.block import stacked
from aucdist.data.dataset import Dataset, Schema
from aucdist.data.formats.delimited import parse_csv, parse_keel
from aucdist.data.formats.embedded import load_embedded
from aucdist.data.formats.encode import encode
from aucdist.data.formats.parquet import parse_parquet
from aucdist.data.formats.survey import Survey, schema_of, settled, survey_of
from aucdist.data.formats.svmlight import SparseRows, parse_svmlight
from aucdist.data.formats.tables import Table
from aucdist.data.labels import choose_positive
from aucdist.data.source import Source
from aucdist.data.storage import files
from aucdist.data.storage.compression import unpacked
from aucdist.errors import InputError

TABLE_PARSERS = {"csv": parse_csv, "keel": parse_keel, "parquet": parse_parquet}
Parsed = Table | SparseRows


def read(source: Source, *, schema: Schema | None = None, name: str = "") -> Dataset:
    """Read a data set.

    Parameters
    ----------
    source : Source
        What to read and how.
    schema : Schema, optional
        That of the training data: the rows are then encoded like them, with the same features and classes.
    name : str
        What to call the data set; by default its source.

    Returns
    -------
    Dataset
        Dense, or CSR for svmlight files of which at most half of the entries are not zero (`Source.layout` decides
        otherwise). float64, but float32 for Parquet files whose numbers are all float32 (`Source.dtype` decides otherwise).

    Raises
    ------
    InputError
        If a file is missing, empty, damaged or malformed, if a value is missing or not finite, if there is only one class,
        or if rows, features, classes or checksum are not the expected ones.
    """
    name = name or files.shown(str(source.source))
    if source.format == "embedded":
        table, digest = load_embedded(source.source)
        parsed: list[tuple[str, Parsed]] = [(name, table)]
    else:
        parsed, digest = _read_files(source, schema)
    survey = functools.reduce(operator.add, (survey_of(part, where, 0) for where, part in parsed))
    expected = source if schema is None else source.model_copy(update={"features": None})
    if schema is None:
        schema = schema_of(source, survey, name)
    else:
        choose_positive(survey.classes, "minority", name)  # two classes are needed here as well
    as_settled = settled(source, survey, len(schema.feature_names))
    rows = stacked([encode(part, where, as_settled, schema) for where, part in parsed])
    block = replace(rows, row_id=np.arange(rows.n_samples))
    check(expected, name, survey, schema)
    options = json.dumps(source.reading(), sort_keys=True)
    return Dataset(block, schema, hashlib.sha256(f"{digest} {options}".encode()).hexdigest(), name)


def _read_files(source: Source, schema: Schema | None) -> tuple[list[tuple[str, Parsed]], str]:
    """Return what is in each file of a source, and the checksums of the files."""
    urls = files.expand(source.source)
    if source.sha256 is not None and len(urls) > 1:
        raise InputError(
            f"`sha256` is the checksum of one file, but {files.shown(str(source.source))} means {len(urls)} of them"
        )
    parsed, digests = [], []
    for url in urls:
        data = whole(url, source)
        digests.append(hashlib.sha256(data).hexdigest())
        where = files.shown(url)
        parsed.append((where, parse(unpacked(data, url), where, source, schema)))
    return parsed, " ".join(digests)


def whole(url: str, source: Source) -> bytes:
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


def parse(
    data: bytes, where: str, source: Source, schema: Schema | None, *, columns: Sequence[str] = (), first_line: int = 1
) -> Parsed:
    """Read what is in a file, or in a part of one.

    Parameters
    ----------
    data : bytes
        Whole lines, decompressed.
    where : str
        Names the file in errors.
    source : Source
    schema : Schema or None
        That of the training data, for rows that are encoded like them.
    columns : sequence of str
        For a part of a CSV file, which has no header: the names of the columns.
    first_line : int
        The number of the first line, for errors.
    """
    if source.format == "svmlight":
        n_features = len(schema.feature_names) if schema else source.n_features
        return parse_svmlight(
            data, where, n_features=n_features, zero_based=source.zero_based, topics=source.labels == "topics",
            ignore_qid=source.qid == "ignore", dtype=source.dtype or "float64", first_line=first_line,
        )  # fmt: skip
    if schema is not None:
        source = source.model_copy(update={"hashed": schema.hashed})
    known = schema.categories if schema else None
    if source.format == "csv":
        return parse_csv(data, where, source, known, columns=columns, first_line=first_line)
    return TABLE_PARSERS[source.format](data, where, source, known)


def check(source: Source, name: str, survey: Survey, schema: Schema) -> None:
    """Compare with what the source says must be found.

    Raises
    ------
    InputError
        Naming what was expected and what was found.
    """
    for what, found, wanted in (
        ("rows", survey.rows, source.rows),
        ("features", len(schema.feature_names), source.features),
        ("rows of each class", survey.classes, source.classes),
    ):
        if wanted is not None and found != wanted:
            raise InputError(f"{name}: {wanted} {what} are expected, but {found} were found")

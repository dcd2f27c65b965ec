"""`read`: any source but shards to a data set in memory."""

import functools
import hashlib
import json
import operator
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from aucdist.data.block import stacked
from aucdist.data.dataset import Dataset, Schema
from aucdist.data.formats.base import FileFormat
from aucdist.data.formats.encode import Parsed, encode
from aucdist.data.formats.registry import FORMATS
from aucdist.data.formats.source_fields import SourceFields
from aucdist.data.formats.survey import check_expectations, schema_of, survey_of, with_layout_and_dtype
from aucdist.data.labels import choose_positive
from aucdist.data.storage import files
from aucdist.errors import InputError


def read(source: SourceFields, *, schema: Schema | None = None, name: str = "") -> Dataset:
    """Read a data set.

    Parameters
    ----------
    source : SourceFields
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
        or if rows, features, classes or checksum are not the expected ones. Shards are refused: they are read block by block.
    """
    name = name or files.shown(str(source.source))
    of = FORMATS[source.format]
    parsed, digest = of.read_all(source, schema)
    if len(parsed) == 1 and not isinstance(of, FileFormat):
        parsed = [(name, parsed[0][1])]
    survey = functools.reduce(operator.add, (survey_of(part, where, 0) for where, part in parsed))
    expected = source if schema is None else source.model_copy(update={"features": None})
    if schema is None:
        schema = schema_of(source, of, survey, name)
    else:
        choose_positive(survey.classes, "minority", name)  # two classes are needed here as well
    complete = with_layout_and_dtype(source, of, survey, len(schema.feature_names))
    rows = stacked([encode(part, where, complete, schema) for where, part in parsed])
    block = replace(rows, row_id=np.arange(rows.n_samples))
    check_expectations(expected, name, survey, schema)
    options = json.dumps(source.reading(), sort_keys=True)
    return Dataset(block, schema, hashlib.sha256(f"{digest} {options}".encode()).hexdigest(), name)


def parse(
    data: bytes,
    where: str,
    source: SourceFields,
    schema: Schema | None,
    *,
    columns: Sequence[str] = (),
    first_line: int = 1,
) -> Parsed:
    """Return the rows in bytes; parameters and errors as `aucdist.data.formats.base.FileFormat.parse`."""
    of = FORMATS[source.format]
    if not isinstance(of, FileFormat):
        raise InputError(f"format {of.name!r} has no files")
    return of.parse(data, where, source, schema, columns=columns, first_line=first_line)

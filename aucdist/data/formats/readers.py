"""`read`: any source but shards to a data set in memory."""

import hashlib
import json
from collections.abc import Sequence

from aucdist.data.block import stacked
from aucdist.data.dataset import Dataset, Schema
from aucdist.data.formats.base import FileFormat
from aucdist.data.formats.encode import Parsed, encode
from aucdist.data.formats.part import FilePart
from aucdist.data.formats.parts import plan_parts
from aucdist.data.formats.registry import FORMATS
from aucdist.data.formats.source_fields import SourceFields
from aucdist.data.formats.survey import survey_of
from aucdist.data.label_sets import LabelSets, RowLabels
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
    surveys = [survey_of(rows, where, 0) for where, rows in parsed]
    plan = plan_parts(source, [FilePart(where) for where, _ in parsed], surveys, schema=schema, name=name)
    numbered = zip(parsed, plan.parts, strict=True)
    block = stacked([encode(rows, where, plan.source, plan.schema, part.row or 0) for (where, rows), part in numbered])
    options = json.dumps(source.fingerprint_keys(), sort_keys=True)
    labels = None
    if plan.schema.classes:
        labels = RowLabels(*LabelSets.of_labels([part.labels for _, part in parsed], plan.schema.classes, name))
    fingerprint = hashlib.sha256(f"{digest} {options}".encode()).hexdigest()
    return Dataset(block, plan.schema, fingerprint, name, labels)


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

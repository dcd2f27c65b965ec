"""`read`: any source but shards to a data set in memory."""

import hashlib
import json

from aucdist.data.block import stacked
from aucdist.data.dataset import Dataset, Schema
from aucdist.data.formats.base import FileFormat
from aucdist.data.formats.encode import encode
from aucdist.data.formats.parts import plan_parts
from aucdist.data.formats.registry import FORMATS
from aucdist.data.formats.source_fields import SourceFields
from aucdist.data.formats.survey import survey_of
from aucdist.data.storage import files


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
    digests: list[str] = []
    parts = of.whole_files(source)
    parsed = [of.read_part(source, part, schema, digests)[0] for part in parts]
    called = [files.shown(part.url) if isinstance(of, FileFormat) or len(parts) > 1 else name for part in parts]
    surveys = [survey_of(rows, where, 0) for rows, where in zip(parsed, called, strict=True)]
    plan = plan_parts(source, parts, surveys, schema=schema, name=name)
    numbered = zip(parsed, called, plan.parts, strict=True)
    block = stacked([encode(rows, where, plan.source, plan.schema, part.row or 0) for rows, where, part in numbered])
    options = json.dumps(source.fingerprint_keys(), sort_keys=True)
    fingerprint = hashlib.sha256(f"{' '.join(digests)} {options}".encode()).hexdigest()
    return Dataset(block, plan.schema, fingerprint, name)

"""Scores of any data set by a model that was saved: Parquet files with a row for each row, made one by one.

A part that is there is not made again, so a run that was ended goes on where it was. A folder belongs to one model and one
version of the data, which ``_scoring.json`` names; ``_scores.json`` is written last, and says that all is there.
"""

import functools
import hashlib
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from aucdist.data.dataset import Schema
from aucdist.data.shards.block_reader import BlockReader, ParallelMap, fingerprint_of, open_reader
from aucdist.data.shards.manifest import below, read_manifest
from aucdist.data.sources.redaction import secret_urls, unveiled, veiled
from aucdist.data.sources.source import Source
from aucdist.data.storage import files
from aucdist.data.storage.arrow_files import absolute, opened
from aucdist.errors import InputError
from aucdist.model import ABOUT, WEIGHTS, LinearModel, load_model

BEGUN, DONE = "_scoring.json", "_scores.json"


@dataclass(frozen=True)
class Scoring:
    """What every worker must know to score a part.

    Attributes
    ----------
    model, output : str
        The folders of the model and of the scores.
    key : str
        What tells this model and this version of the data from others.
    opening : Opening
        The rows.
    urls : tuple of str
        Those with passwords, which are no part of the file: see `aucdist.data.sources.redaction`.
    """

    model: str
    output: str
    key: str
    opening: BlockReader
    urls: tuple[str, ...] = ()

    @property
    def url(self) -> str:
        """Where it lies for the workers."""
        return below(self.output, BEGUN)

    def part(self, index: int) -> str:
        """Return the URL of a part of the scores."""
        return below(self.output, f"part-{index:05d}.parquet")


def begin(
    model: str, source: Source, output: str, *, each: ParallelMap = map, n_parts: int | None = None, name: str = ""
) -> Scoring:
    """Check that the rows have the features of the model, and number them; or take up what was begun before.

    Parameters
    ----------
    model : str
        The folder of the model: a path or an fsspec URL.
    source : Source
        The rows. They need no label; columns that the model does not know are left on disk.
    output : str
        The folder of the scores.
    each, n_parts, name
        As for `open_reader`.

    Raises
    ------
    InputError
        If there is no such model or data set, if its features are not those of the model, or if `output` cannot be written to
        or holds something else.
    """
    model, output = absolute(model), absolute(output)
    loaded = load_model(model)
    source = to_score(source, loaded.schema)
    digests = [hashlib.sha256(files.read_bytes(below(model, file))).hexdigest() for file in (WEIGHTS, ABOUT)]
    place = read_manifest(files.locate(str(source.source))).url if source.format_of().is_sharded else None
    key = hashlib.sha256(json.dumps([digests, fingerprint_of(source), place, n_parts]).encode()).hexdigest()
    urls = secret_urls(source, model, place or "")
    begun = json.loads(files.read_bytes(below(output, BEGUN))) if files.exists(below(output, BEGUN)) else {}
    if begun.get("key") == key and "opening" in begun:
        return _scoring(begun, urls)
    if "opening" in begun or not (begun or files.is_vacant(output)):
        raise InputError(
            f"{files.shown(output)} is not empty, and what is in it are not scores of this model for this version of the data; "
            "name another folder"
        )
    files.write_bytes(
        below(output, BEGUN), json.dumps({"key": key}).encode()
    )  # before the long way: may it be written?
    opening = open_reader(source, each=each, n_parts=n_parts, schema=loaded.schema, labelled=False, name=name)
    made = Scoring(model, output, key, opening, urls)
    content = {"model": model, "output": output, "key": key, "opening": opening.to_json()}
    files.write_bytes(made.url, json.dumps(veiled(content, urls)).encode())
    return made


def to_score(source: Source, schema: Schema) -> Source:
    """Return the source without its label, and with the columns of the model only where columns are told apart by name.

    Raises
    ------
    InputError
        If the features of the model have names that rows of this format cannot have.
    """
    changes = source.format_of().for_scoring(source, schema)
    return source.model_copy(update={"classes": None, "features": None} | changes)


def _scoring(content: dict[str, Any], urls: tuple[str, ...]) -> Scoring:
    known = unveiled(content, urls)
    return Scoring(**known | {"opening": BlockReader.from_json(known["opening"]), "urls": urls})


@functools.lru_cache(maxsize=2)
def _at(url: str, key: str, urls: tuple[str, ...]) -> tuple[Scoring, LinearModel]:
    begun = _scoring(json.loads(files.read_bytes(url)), urls)
    return begun, load_model(begun.model)


def score_part(url: str, key: str, index: int, urls: tuple[str, ...] = ()) -> dict[str, Any]:
    """Write the scores of one part, unless they are there.

    Parameters
    ----------
    url, key : str
        Of the `Scoring`.
    index : int
        The part.
    urls : tuple of str
        Of the `Scoring`.

    Returns
    -------
    dict
        ``file`` and ``rows``.
    """
    scoring, model = _at(url, key, urls)
    place = scoring.part(index)
    if not files.exists(place):
        block = scoring.opening.read(index)
        out = io.BytesIO()
        pq.write_table(_scores(model, block.X, block.row_id), out, compression="zstd")
        files.write_bytes(place, out.getvalue())
    with opened(place) as file:
        return {"file": place.rpartition("/")[2], "rows": pq.ParquetFile(file).metadata.num_rows}


def _scores(model: LinearModel, X: Any, row_id: np.ndarray) -> pa.Table:
    scores = model.decision_function(X)
    columns = {"row_id": row_id, "score": scores, "prediction": np.where(scores > 0, 1, -1).astype(np.int8)}
    if model.probability is not None:
        columns["probability"] = model.probability(scores)[:, 1]
    return pa.table(columns)


def finish(scoring: Scoring, parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Say that all scores are there, and return what is.

    Parameters
    ----------
    scoring : Scoring
    parts : sequence of dict
        What `score_part` returned of each.
    """
    done = {"output": files.shown(scoring.output), "rows": sum(part["rows"] for part in parts), "parts": len(parts)}
    files.write_bytes(below(scoring.output, DONE), json.dumps(done | {"files": list(parts)}, indent=1).encode())
    return done

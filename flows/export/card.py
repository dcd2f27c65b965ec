"""A scorecard of a run: what its rounding costs on the rows of the run, and the file that is asked for."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import yaml
from pydantic import ValidationError

from aucdist.data.block import Block
from aucdist.data.dataset import Schema
from aucdist.data.shards.reading import open_reader, read
from aucdist.data.sources import Source
from aucdist.data.storage.files import exists, read_bytes
from aucdist.errors import InputError
from aucdist.export.card_pages import to_csv, to_markdown, to_page
from aucdist.export.cards import Losses, to_scorecard
from aucdist.linear_model import LinearModel
from aucdist.scorecard import Scorecard
from flows.config.data import DataConfig, configured_source, source_of
from flows.export.config import CardConfig
from flows.run_folder.folder import METRICS, read_about
from flows.run_folder.scores import SCORES, read_scores


def card_of(model: LinearModel, folder: str, config: CardConfig) -> Scorecard:
    """Return the scorecard of a model, with what rounding costs on the rows of its run where those can be read.

    `folder`: of the model; the run is the folder that it is in.
    """
    card = to_scorecard(model, config.scaling(), rows=config.rows)
    try:
        measured = _measured(model, card, folder.rpartition("/")[0])
    except InputError as e:
        measured = {"not_measured": str(e).rstrip(".")}
    return replace(card, rounding=card.rounding | measured)


def card_file(card: Scorecard, suffix: str, title: str) -> bytes:
    """Return a card as a file of one of `flows.export.config.CARD_SUFFIXES`."""
    if suffix == "json":
        return card.to_json().encode()
    text = to_csv(card) if suffix == "csv" else to_markdown(card, title) if suffix == "md" else to_page(card, title)
    return text.encode()


def _measured(model: LinearModel, card: Scorecard, run: str) -> dict[str, Any]:
    """Return the AUC and the loss of the model and of the card on the training and on the test rows of a run."""
    parts = {"train": Losses(model, card), "test": Losses(model, card)}
    for name, block in _rows_of_run(run, model):
        parts[name].add(block)
    return {name: found.values() for name, found in parts.items() if found.has_both_classes}


def _rows_of_run(run: str, model: LinearModel) -> Iterator[tuple[str, Block]]:
    """Yield the rows of a run, read again: those whose scores it kept are its test rows."""
    if not exists(f"{run}/{METRICS}") or not exists(f"{run}/config.yaml"):
        raise InputError("the model lies in no run folder")
    data = _data_of(run)
    source = configured_source(data)
    fingerprint, blocks = _read(source, data, None)
    if read_about(run)["data"]["fingerprint"] != fingerprint:
        raise InputError("the data have changed since the run")
    test_rows = read_scores(run)["row_id"].to_numpy() if exists(f"{run}/{SCORES}") else np.zeros(0, dtype=np.int64)
    apart = data.test is not None and data.test.is_apart
    for block in blocks:
        inside = np.zeros(block.n_samples, dtype=bool) if apart else np.isin(block.row_id, test_rows)
        for name, rows in (("train", ~inside), ("test", inside)):
            if rows.any():
                yield name, block.take(np.flatnonzero(rows))
    if apart and data.test is not None:
        for block in _read(source_of(data.test), data, model.schema)[1]:
            yield "test", block


def _data_of(run: str) -> DataConfig:
    try:
        return DataConfig.model_validate(yaml.safe_load(read_bytes(f"{run}/config.yaml"))["data"])
    except (ValidationError, yaml.YAMLError, KeyError, TypeError) as e:
        raise InputError(f"the configuration of the run cannot be read ({type(e).__name__})") from None


def _read(source: Source, data: DataConfig, schema: Schema | None) -> tuple[str, Iterator[Block]]:
    """Return the fingerprint of a data set and its rows, read as the run did: as a whole, or block by block."""
    if not data.direct and not source.is_sharded:
        whole = read(source, schema=schema)
        return whole.fingerprint, iter([whole.block])
    reader = open_reader(source, schema=schema)
    return reader.fingerprint, (reader.read(index) for index in range(reader.n_blocks))

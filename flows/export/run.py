"""Exports: a model as a file that another system reads."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from aucdist.data.block import Block
from aucdist.data.dataset import Schema
from aucdist.data.shards.reading import open_reader, read
from aucdist.data.sources import Source
from aucdist.data.storage.files import exists, shown, write_bytes
from aucdist.errors import InputError
from aucdist.export import to_json, to_onnx, to_sql
from aucdist.export.card_pages import card_rows, to_csv, to_markdown, to_page
from aucdist.export.cards import Losses, to_scorecard
from aucdist.linear_model import LinearModel
from aucdist.model import load_model, load_two_classes
from aucdist.scorecard import Scorecard
from flows.compute.s3_environment import s3_as_configured
from flows.config.cluster import NoCluster
from flows.config.data import DataConfig, configured_source, source_of
from flows.export.config import CardConfig, ExportConfig
from flows.progress.console import RunObserver
from flows.run_folder.folder import CONFIG, METRICS, data_of, model_folder, read_about
from flows.run_folder.scores import SCORES, read_scores


def export(config: ExportConfig, observer: RunObserver) -> dict[str, Any]:
    """Write a model in the form of another system.

    Raises InputError if there is no such model, the target cannot express it, or the file is there already.
    """
    with s3_as_configured(config.s3, NoCluster(), observer):
        observer.stage("export")
        folder = model_folder(config.model)
        output = config.output or f"{_name_of(folder)}{'.card' if config.to == 'scorecard' else ''}.{config.suffix}"
        if exists(output) and not config.force:
            raise InputError(f"{shown(output)} is there already: name another by --output, or replace it by --force")
        model = load_two_classes(folder, "a scorecard") if config.to == "scorecard" else load_model(folder)
        if config.to == "scorecard":
            card = card_of(model, folder, config.card or CardConfig())
            data = card_file(card, config.suffix, f"Scorecard of {_name_of(folder)}")
            more = {"lines": len(card_rows(card)), "rounding": card.rounding}
        else:
            data, more = _exported(model, config), {}
        write_bytes(output, data)
    return {
        "model": shown(config.model), "output": shown(output), "to": config.to, "bytes": len(data),
        "columns": model.schema.columns(), **more,
    }  # fmt: skip


def export_lines(result: dict[str, Any]) -> list[str]:
    """Return what `aucdist export` prints."""
    lines = f"{result['lines']} lines, " if "lines" in result else ""
    return [f"{result['output']}: {lines}{len(result['columns'])} columns, {result['bytes']:,} bytes"]


def _name_of(folder: str) -> str:
    """Return the name of the run whose model is in a folder."""
    parts = folder.split("/")
    return parts[-2] if len(parts) > 1 and parts[-1] == "model" and parts[-2] not in ("", ".", "..") else "model"


def _exported(model: LinearModel, config: ExportConfig) -> bytes:
    if config.to == "json":
        return to_json(model, contributions=config.contributions).encode()
    if config.to == "onnx":
        data: bytes = to_onnx(model, contributions=config.contributions).SerializeToString()
        return data
    adds = config.contributions
    return to_sql(model, table=config.table or "rows", ids=config.ids, contributions=adds).encode()


# ---- a scorecard, and what its rounding costs on the rows of the run ----------------------------------------------------------


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
    for name, block in rows_of_run(run, model):
        parts[name].add(block)
    return {name: losses.values() for name, losses in parts.items() if losses.has_both_classes}


def rows_of_run(run: str, model: LinearModel) -> Iterator[tuple[str, Block]]:
    """Yield the rows of a run, read again: those whose scores it kept are its test rows."""
    if not exists(f"{run}/{METRICS}") or not exists(f"{run}/{CONFIG}"):
        raise InputError("the model lies in no run folder")
    data = data_of(run)
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


def _read(source: Source, data: DataConfig, schema: Schema | None) -> tuple[str, Iterator[Block]]:
    """Return the fingerprint of a data set and its rows, read as the run did: as a whole, or block by block."""
    if not data.direct and not source.is_sharded:
        whole = read(source, schema=schema)
        return whole.fingerprint, iter([whole.block])
    reader = open_reader(source, schema=schema)
    return reader.fingerprint, (reader.read(index) for index in range(reader.n_blocks))

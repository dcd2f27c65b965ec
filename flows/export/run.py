"""Exports: a model as a file that another system reads."""

from typing import Any

from aucdist.data.storage.files import exists, shown, write_bytes
from aucdist.errors import InputError
from aucdist.export import to_json, to_onnx, to_sql
from aucdist.export.card_pages import card_rows
from aucdist.linear_model import ClassModels, LinearModel
from aucdist.model import load_model, load_two_classes
from flows.compute.s3_environment import s3_as_configured
from flows.config.cluster import NoCluster
from flows.export.card import card_file, card_of
from flows.export.config import CardConfig, ExportConfig
from flows.progress.console import RunObserver
from flows.run_folder.folder import model_folder


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


def _exported(model: LinearModel | ClassModels, config: ExportConfig) -> bytes:
    if config.to == "json":
        return to_json(model, contributions=config.contributions).encode()
    if config.to == "onnx":
        data: bytes = to_onnx(model, contributions=config.contributions).SerializeToString()
        return data
    adds = config.contributions
    return to_sql(model, table=config.table or "rows", ids=config.ids, contributions=adds).encode()

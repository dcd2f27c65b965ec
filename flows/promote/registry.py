"""Promotes the model of a run in MLflow: a version of a registered model, and the alias of the version in use."""

import contextlib
import io
import logging
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aucdist import __version__
from aucdist.data.storage.files import exists, read_bytes, shown
from aucdist.data.storage.urls import enter, hide_error, reveal
from aucdist.errors import InputError, RunError
from aucdist.extras import load_optional
from aucdist.model import ABOUT
from flows.promote.decision import PromoteConfig, decide
from flows.promote.store import decision_svg
from flows.run_folder.folder import CONFIG, METRICS, configuration_of, read_about

SCHEME = "models:"
"""How MLflow's URIs of registered models begin."""
REGISTERED = re.compile(r"models:/+([^/:@\s]+)(?:@([A-Za-z0-9_.-]+))?")
IN_USE = "champion"
"""The alias of the version in use, as MLflow's documentation calls it, unless the URI has another."""
TRACKING = "MLFLOW_TRACKING_URI"
DATA, REPORT = "aucdist", "report.html"
DEFAULTS = {
    # MLflow's own 7 tries take four minutes where no server listens.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "3",
    # The address that MLflow would print has the password.
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}
LARGEST = 2**1023
"""The largest number that MLflow takes."""
MOST_PARAMETER = 500
"""So many characters of a parameter every tracking server takes."""


@dataclass(frozen=True)
class Registered:
    """A registered model of MLflow.

    `name` and `alias`: of the model, and of its version in use.
    `server`: the tracking URI, without its secrets.
    """

    name: str
    alias: str
    server: str

    @property
    def url(self) -> str:
        """MLflow's URI of the version in use."""
        return f"{SCHEME}/{self.name}@{self.alias}"


def is_registered(url: str) -> bool:
    """Return whether a model store is a registered model of MLflow, by its URI."""
    return url.startswith(SCHEME)


def registered_model(url: str) -> Registered:
    """Return the registered model that a URI names, on the server of the environment.

    Raises InputError if it names none, or no server is configured.
    """
    named = REGISTERED.fullmatch(url)
    if named is None:
        raise InputError(
            f"{shown(url)} names no registered model of MLflow: give models:/NAME, or models:/NAME@ALIAS (by default {IN_USE})"
        )
    server = enter(os.environ.get(TRACKING, ""))
    if not server:
        raise InputError(f"{url} is in MLflow, but {TRACKING} does not say where: set it, as in http://127.0.0.1:5000")
    return Registered(named[1], named[2] or IN_USE, server)


def promote_registered(config: PromoteConfig, run: str, content: Mapping[str, bytes]) -> dict[str, Any]:
    """Log a run in MLflow and, if it is as good as asked, register its model and move the alias to it.

    The alias is moved last: a promotion that ends before leaves the version in use as it was.

    `config`: its store is as ``models:/churn`` or ``models:/churn@champion``.
    `run`: the run folder.
    `content`: the files of the version by name.
    Returns as `promote_run`; ``mlflow`` has the server, without password, and the ID of the run.
    Raises InputError as `promote_run`; or if MLflow is not installed.
    Raises RunError if the server cannot be reached, or refuses.
    """
    target = registered_model(config.store)
    mlflow = load_optional("mlflow")
    with _quiet(), _explained(mlflow, target), tempfile.TemporaryDirectory(prefix="aucdist-mlflow-") as folder:
        mlflow.set_tracking_uri(reveal(target.server))
        client = mlflow.MlflowClient()
        current = _version_in_use(mlflow, client, target)
        decision = None
        if config.condition != "always" and current is not None:
            in_use = _fetched(mlflow, target, current, Path(folder))
            decision = decide(config, run, in_use) | {"version": current}
        promoted = decision is None or bool(decision["holds"])
        with mlflow.start_run(run_name=shown(run).rpartition("/")[2]) as active:
            _log(mlflow, run, decision)
            version = _registered(mlflow, client, target, content, current, Path(folder)) if promoted else current
    result: dict[str, Any] = {"store": target.url, "run": shown(run), "condition": config.condition, "removed": []}
    if decision is not None:
        result["picture"] = f"decision.svg of MLflow's run {active.info.run_id}"
    return result | {
        "promoted": promoted, "version": version, "replaced": current if promoted else None, "decision": decision,
        "mlflow": {"server": shown(target.server), "run": active.info.run_id},
    }  # fmt: skip


def _version_in_use(mlflow: Any, client: Any, target: Registered) -> int | None:
    """Return the version that has the alias; None if none has, or there is no such model."""
    missing = ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE")
    try:
        client.get_registered_model(target.name)
        return int(client.get_model_version_by_alias(target.name, target.alias).version)
    except mlflow.exceptions.MlflowException as error:
        if error.error_code not in missing:
            raise
        return None


def _fetched(mlflow: Any, target: Registered, version: int, folder: Path) -> str:
    """Download a version, and return the folder of its model."""
    uri = f"{SCHEME}/{target.name}/{version}"
    there = Path(mlflow.artifacts.download_artifacts(artifact_uri=uri, dst_path=str(folder / "in-use")))
    model = there / "data" / DATA
    if not (model / ABOUT).is_file():
        raise InputError(
            f"version {version} of {target.url} is no model of aucdist: give --if always, or another alias"
        )
    return str(model)


def _log(mlflow: Any, run: str, decision: dict[str, Any] | None) -> None:
    """Log parameters, metrics, configuration and report of a run, and what was decided."""
    mlflow.set_tag("aucdist.version", __version__)
    if exists(f"{run}/{METRICS}"):
        mlflow.log_metrics(metrics_of(read_about(run)))
    if exists(f"{run}/{CONFIG}"):
        mlflow.log_params(parameters_of(configuration_of(run)))
        mlflow.log_text(read_bytes(f"{run}/{CONFIG}").decode(), CONFIG)
    if exists(f"{run}/{REPORT}"):
        mlflow.log_text(read_bytes(f"{run}/{REPORT}").decode(), REPORT)
    if decision is not None:
        mlflow.log_dict(decision, "decision.json")
        mlflow.log_text(decision_svg(decision, f"against version {decision['version']}"), "decision.svg")


def _registered(
    mlflow: Any, client: Any, target: Registered, content: Mapping[str, bytes], current: int | None, folder: Path
) -> int:
    """Log the model, register it, and move the alias to it."""
    data = folder / DATA
    data.mkdir()
    for name, value in content.items():
        data.joinpath(name).write_bytes(value)
    # With the requirements given, MLflow does not start a process to guess them.
    info = mlflow.pyfunc.log_model(
        name="model",
        loader_module="aucdist.export.pyfunc",
        data_path=str(data),
        pip_requirements=[f"aucdist=={__version__}"],
    )
    version = int(mlflow.register_model(info.model_uri, target.name).version)
    if _version_in_use(mlflow, client, target) != current:
        raise InputError(
            f"another promotion to {target.url} was made at the same moment: version {version} is registered, but not in use. "
            "Promote again"
        )
    client.set_registered_model_alias(target.name, target.alias, str(version))
    return version


def metrics_of(metrics: dict[str, Any]) -> dict[str, float]:
    """Return the numbers of a run's metrics, those of other sections with the name of the section, as in ``certificate.dual``."""
    flat: dict[str, float] = {}
    _flatten(metrics.get("metrics", {}), "", flat)
    _flatten({name: value for name, value in metrics.items() if name != "metrics"}, "", flat)
    return flat


def _flatten(section: dict[str, Any], before: str, flat: dict[str, float]) -> None:
    for name, value in section.items():
        if isinstance(value, dict):
            _flatten(value, f"{before}{name}.", flat)
        elif isinstance(value, list) and len(value) == 2 and "interval" in name:
            _flatten(dict(zip(("low", "high"), value, strict=True)), f"{before}{name}.", flat)
        elif isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LARGEST:
            flat[f"{before}{name}"] = float(value)


def parameters_of(config: Any) -> dict[str, str]:
    """Return the settings of the model in the configuration of a run, but for those that are not given."""
    settings = config.get("model", {}) if isinstance(config, dict) else {}
    return {name: str(value)[:MOST_PARAMETER] for name, value in settings.items() if value is not None}


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep what MLflow's client prints and logs away, where the tracking URI may stand with its password."""
    loggers = [logging.getLogger(name) for name in ("mlflow", "alembic")]
    levels = [logger.level for logger in loggers]
    added = {name: value for name, value in DEFAULTS.items() if name not in os.environ}
    os.environ.update(added)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            for logger in loggers:
                logger.setLevel(logging.CRITICAL)
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        for name in added:
            os.environ.pop(name, None)


@contextlib.contextmanager
def _explained(mlflow: Any, target: Registered) -> Iterator[None]:
    try:
        yield
    except mlflow.exceptions.MlflowException as error:
        text = f"MLflow at {shown(target.server)} did not promote {target.url}: {hide_error(error, target.server)}"
        raise RunError(text) from None

"""Log runs in MLflow and register their models. An alias of the registry names the version in use."""

import contextlib
import io
import logging
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aucdist import __version__
from aucdist.data.storage.files import exists, read_bytes, shown
from aucdist.data.storage.urls import enter, hide_error, reveal
from aucdist.errors import InputError, Json, RunError
from aucdist.extras import load_optional
from aucdist.model.files import MODEL_FILE, load_model
from flows.config.loading import flattened
from flows.model_store import decision_svg
from flows.run_folder.folder import CONFIG, METRICS, configuration_of, read_metrics

MODELS_SCHEME = "models:"
"""The beginning of MLflow's URIs of registered models."""
REGISTERED = re.compile(r"models:/+([^/:@\s]+)(?:@([A-Za-z0-9_.-]+))?")
CHAMPION = "champion"
"""The alias of the version in use, unless the URI has another alias. MLflow's documentation uses the same name."""
TRACKING = "MLFLOW_TRACKING_URI"
MODEL_FOLDER, REPORT = "aucdist", "report.html"
DEFAULTS = {
    # MLflow's default of 7 retries would take four minutes if no server listens.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "3",
    # Without this, MLflow would print the address with its password.
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}
LARGEST_METRIC = 2**1023
"""The largest number that MLflow accepts."""
MAX_PARAMETER_LENGTH = 500
"""The length of a parameter's text that every tracking server accepts."""


@dataclass(frozen=True)
class RegisteredModel:
    """A registered model of MLflow.

    Attributes
    ----------
    name, alias : str
        The name of the model, and the alias of its version in use.
    server : str
        The tracking URI, without its secrets.
    """

    name: str
    alias: str
    server: str

    @property
    def url(self) -> str:
        """The URI of the version in use, as MLflow writes it."""
        return f"{MODELS_SCHEME}/{self.name}@{self.alias}"


def registered_model(url: str) -> RegisteredModel:
    """Return the registered model that a URI names. The environment names the server.

    Raises
    ------
    InputError
        If the URI does not name a model, or if no server is configured.
    """
    named = REGISTERED.fullmatch(url)
    if named is None:
        raise InputError(
            f"{shown(url)} names no registered model of MLflow: give models:/NAME, or models:/NAME@ALIAS (by default {CHAMPION})"
        )
    server = enter(os.environ.get(TRACKING, ""))
    if not server:
        raise InputError(f"{url} is in MLflow, but {TRACKING} does not say where: set it, as in http://127.0.0.1:5000")
    return RegisteredModel(named[1], named[2] or CHAMPION, server)


@dataclass(frozen=True)
class Registry:
    """The connection to the registry of a model.

    Attributes
    ----------
    mlflow, client : object
        The module `mlflow`, and the client of its server.
    target : RegisteredModel
        The registered model.
    folder : Path
        A folder for temporary files.
    """

    mlflow: Any
    client: Any
    target: RegisteredModel
    folder: Path

    def version_in_use(self) -> int | None:
        """Return the version with the alias. None if no version has it, or if the model does not exist."""
        missing = ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE")
        name, alias = self.target.name, self.target.alias
        try:
            self.client.get_registered_model(name)
            return int(self.client.get_model_version_by_alias(name, alias).version)
        except self.mlflow.exceptions.MlflowException as error:
            if error.error_code not in missing:
                raise
            return None

    def fetch(self, version: int) -> str:
        """Download a version, and return the folder that contains its model."""
        uri, folder = f"{MODELS_SCHEME}/{self.target.name}/{version}", str(self.folder / "in-use")
        model = (
            Path(self.mlflow.artifacts.download_artifacts(artifact_uri=uri, dst_path=folder)) / "data" / MODEL_FOLDER
        )
        if not (model / MODEL_FILE).is_file():
            raise InputError(
                f"version {version} of {self.target.url} is not a model of aucdist: give --if always, or another alias"
            )
        return str(model)

    def log(self, run: str, decision: Json | None) -> None:
        """Log parameters, metrics, configuration and report of a run, and the decision about it."""
        mlflow = self.mlflow
        mlflow.set_tag("aucdist.version", __version__)
        if exists(f"{run}/{METRICS}"):
            mlflow.log_metrics(metrics_of(read_metrics(run)))
        if exists(f"{run}/{CONFIG}"):
            settings = configuration_of(run).get("model", {}).items()
            mlflow.log_params(
                {name: str(value)[:MAX_PARAMETER_LENGTH] for name, value in settings if value is not None}
            )
        for name in (CONFIG, REPORT):
            if exists(f"{run}/{name}"):
                mlflow.log_text(read_bytes(f"{run}/{name}").decode(), name)
        if decision is not None:
            mlflow.log_dict(decision, "decision.json")
            mlflow.log_text(decision_svg(decision, f"against version {decision['version']}"), "decision.svg")

    def register(self, content: Mapping[str, bytes], current: int | None) -> int:
        """Log the model, register it, and move the alias to it, unless `current` is no longer the version in use."""
        data, target = self.folder / MODEL_FOLDER, self.target
        data.mkdir()
        for name, value in content.items():
            data.joinpath(name).write_bytes(value)
        # The requirements are given, because MLflow would otherwise start a process to guess them.
        info = self.mlflow.pyfunc.log_model(
            name="model",
            loader_module="aucdist.export.pyfunc",
            data_path=str(data),
            pip_requirements=[f"aucdist=={__version__}"],
        )
        version = int(self.mlflow.register_model(info.model_uri, target.name).version)
        if self.version_in_use() != current:
            raise InputError(
                f"another promotion to {target.url} was made at the same moment: version {version} is registered, but not in "
                "use. Promote again"
            )
        self.client.set_registered_model_alias(target.name, target.alias, str(version))
        return version


def promote_to_mlflow(
    target: RegisteredModel, run: str, content: Mapping[str, bytes], condition: str, decide: Callable[[str], Json]
) -> Json:
    """Log a run in MLflow and, if the condition holds, register its model and move the alias to it.

    The alias is moved last, so that a promotion that is interrupted does not change the version in use.

    Parameters
    ----------
    target : RegisteredModel
        The registered model.
    run : str
        The run folder.
    content : mapping of str to bytes
        The files of the version by name.
    condition : str
        The condition of the promotion: ``better``, ``not-worse`` or ``always``.
    decide : callable
        Called with the folder of the model in use. Tests the run against it, and returns the decision.

    Returns
    -------
    dict
        What ``aucdist promote --json`` prints.
    """
    if load_model(run).classes:
        raise InputError(
            "MLflow's registry takes models of two classes: promote this one to a folder or a bucket, or one of its classes"
        )
    decision = None
    with open_registry(target) as registry:
        current = registry.version_in_use()
        if condition != "always" and current is not None:
            decision = decide(registry.fetch(current)) | {"version": current}
        promoted = decision is None or bool(decision["holds"])
        with registry.mlflow.start_run(run_name=shown(run).rpartition("/")[2]) as active:
            registry.log(run, decision)
            version = registry.register(content, current) if promoted else current
    result: Json = {"store": target.url, "run": shown(run), "condition": condition, "removed": []}
    if decision is not None:
        result["picture"] = f"decision.svg of MLflow's run {active.info.run_id}"
    return result | {
        "promoted": promoted, "version": version, "replaced": current if promoted else None, "decision": decision,
        "mlflow": {"server": shown(target.server), "run": active.info.run_id},
    }  # fmt: skip


def metrics_of(metrics: Json) -> dict[str, float]:
    """Return the numbers among the metrics of a run. Those of sections are named like ``certificate.dual``."""
    sections = {name: value for name, value in metrics.items() if name != "metrics"}
    numbers: dict[str, float] = {}
    for name, value in flattened(metrics.get("metrics", {}) | sections).items():
        is_interval = isinstance(value, list) and len(value) == 2 and "interval" in name.rpartition(".")[2]
        named = {f"{name}.low": value[0], f"{name}.high": value[1]} if is_interval else {name: value}
        for key, number in named.items():
            if isinstance(number, int | float) and not isinstance(number, bool) and abs(number) < LARGEST_METRIC:
                numbers[key] = float(number)
    return numbers


@contextlib.contextmanager
def open_registry(target: RegisteredModel) -> Iterator[Registry]:
    """Connect to the server of a registered model. Errors of MLflow are converted to errors that name the server and the model.

    The output and the log of MLflow's client are suppressed, because they may contain the tracking URI with its password.

    Raises
    ------
    InputError
        If MLflow is not installed.
    RunError
        If the server cannot be reached, or refuses the request.
    """
    mlflow = load_optional("mlflow")
    added = {name: value for name, value in DEFAULTS.items() if name not in os.environ}
    os.environ.update(added)
    try:
        with (
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
            tempfile.TemporaryDirectory(prefix="aucdist-mlflow-") as folder,
        ):
            logging.disable()
            mlflow.set_tracking_uri(reveal(target.server))
            yield Registry(mlflow, mlflow.MlflowClient(), target, Path(folder))
    except mlflow.exceptions.MlflowException as error:
        raise RunError(
            f"MLflow at {shown(target.server)} did not promote {target.url}: {hide_error(error, target.server)}"
        ) from None
    finally:
        logging.disable(logging.NOTSET)
        for name in added:
            os.environ.pop(name, None)

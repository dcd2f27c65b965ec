"""Promotes the model of a run: reads it, compares it with the version in use, and adds it to the store."""

from typing import Annotated, Any

from aucdist.data.sources import Source
from aucdist.data.storage.files import exists, read_bytes, refuse_link, shown
from aucdist.data.storage.urls import Location
from aucdist.errors import InputError, unknown
from aucdist.model import ABOUT, DIGESTS, PROFILE, files_of_model, load_model
from aucdist.store.history import check_name, keep, keep_decision, promote, read_store
from flows.config.base import Cli, Strict
from flows.config.data import UnlabelledRef, batch_name, source_of
from flows.progress.console import RunObserver
from flows.promote.decision import decide
from flows.promote.registry import is_registered, promote_registered, registered_model
from flows.promote.store import decision_svg
from flows.run_folder.folder import METRICS, model_folder
from flows.run_folder.scores import SCORES, SETTERS

CONDITIONS = ("better", "not-worse", "always")


class PromoteConfig(Strict):
    """A run whose model is to be put into use."""

    run: Annotated[Location, Cli(place=1)]
    """A run folder, a path or URL"""
    store: Annotated[Location, Cli(place=2, metavar="URL")]
    """The model store, a folder or URL, made if need be; or models:/NAME in MLflow"""
    condition: Annotated[str, Cli(flag="--if", metavar="better|not-worse|always")] = "always"
    """When to replace the version in use"""
    margin: Annotated[float, Cli()] = 0.0
    """The difference that counts: better by more, or not worse by as much"""
    data: Annotated[UnlabelledRef | None, Cli(flag="--data", data=True)] = None
    """Labelled rows for the test, which neither model has seen; by default the run's"""
    keep: Annotated[int | None, Cli(metavar="N")] = None
    """Remove old versions until N are left; by default none is removed"""


def promote_as_configured(config: PromoteConfig, observer: RunObserver) -> dict[str, Any]:
    """Promote the model of a run, if it is as good as asked; see `promote_run`."""
    rows = None if config.data is None else (batch_name(config.data), source_of(config.data))
    return promote_run(config.run, config.store, config.condition, config.margin, config.keep, rows)


def promote_run(
    run: str,
    store_url: str,
    condition: str = "always",
    margin: float = 0.0,
    most: int | None = None,
    data: tuple[str, Source] | None = None,
) -> dict[str, Any]:
    """Promote the model of a run, if it is as good as asked.

    `run`: a run folder, a path or a URL.
    `store_url`: the store: a folder or URL, made if need be; or ``models:/churn``, a registered model of MLflow, see
        `promote_registered`.
    `condition`: ``better``: the interval of the difference lies above `margin`; ``not-worse``: above ``-margin``;
        ``always``.
    `margin`: not negative.
    `most`: keep at most so many versions.
    `data`: name and source of the rows of the test; by default the run's test rows.
    Returns what ``aucdist promote --json`` prints.
    Raises InputError if there is no such run, an argument is wrong, a model was trained on rows of the test, or another
        promotion was made at the same moment.
    """
    _check(condition, margin, most)
    if data is not None and condition == "always":
        raise InputError("--data has no effect with --if always: give --if better or --if not-worse")
    run = run.rstrip("/")
    if is_registered(store_url):
        if most is not None:
            raise InputError("--keep is for a folder or bucket: MLflow keeps the versions of a registered model")
        registered_model(store_url)  # refuses a wrong one before anything is read
        if load_model(model_folder(run)).classes:
            raise InputError(
                "MLflow's registry takes models of two classes: promote this one to a folder or bucket, or a class of it"
            )
        return promote_registered(run, store_url, _version_of(run), condition, margin, data)
    check_name(store_url)
    store = read_store(store_url)  # before the decision: what changes meanwhile makes the promotion fail
    for change in store.versions.values() if most is not None else ():
        refuse_link(store.folder_of(change))  # before anything is promoted
    content = _version_of(run)
    current = store.current
    result: dict[str, Any] = {"store": shown(store.url), "run": shown(run), "condition": condition, "removed": []}
    decision: Any = None
    if condition != "always" and current is not None:
        in_use = store.folder_of(current)
        decision = decide(run, in_use, condition, margin, data) | {"version": current.version}
        title = f"{shown(run).rpartition('/')[2]} against version {current.version}"
        result["picture"] = shown(keep_decision(store, decision | {"run": shown(run)}, decision_svg(decision, title)))
        if not decision["holds"]:
            return result | {"promoted": False, "version": current.version, "replaced": None, "decision": decision}
    change = promote(store, content, ABOUT, {"run": shown(run), "condition": condition, "decision": decision})
    if most is not None:
        result["removed"] = keep(read_store(store.url), ABOUT, most)
    return result | {
        "promoted": True, "version": change.version, "replaced": change.replaced, "decision": decision
    }  # fmt: skip


def _version_of(run: str) -> dict[str, bytes]:
    """Return the files of a version by name: the model of a run, its profile, metrics and test scores."""
    folder = model_folder(run)
    optional = {PROFILE: folder, DIGESTS: folder, METRICS: run, SCORES: run, SETTERS: run}
    return files_of_model(folder) | {
        name: read_bytes(f"{place}/{name}") for name, place in optional.items() if exists(f"{place}/{name}")
    }


def _check(condition: str, margin: float, most: int | None) -> None:
    if condition not in CONDITIONS:
        raise unknown("condition", condition, CONDITIONS)
    if not 0.0 <= margin < 1.0:
        raise InputError(f"the margin is a difference of AUC, at least 0 and below 1, not {margin:g}")
    if margin and condition == "always":
        raise InputError("a margin has no effect with --if always: give --if better or --if not-worse")
    if most is not None and most < 1:
        raise InputError(f"at least 1 version is kept, not {most}")

"""Promotes the model of a run: reads it, compares it with the version in use, and adds it to the store."""

from typing import Any

from aucdist.data.storage.files import exists, read_bytes, refuse_link, shown
from aucdist.errors import InputError, unknown
from aucdist.model import ABOUT, DIGESTS, PROFILE, files_of_model, load_model
from aucdist.store import check_name, keep, keep_decision, promote, read_store
from flows.progress.console import RunObserver
from flows.promote.decision import PromoteConfig, decide
from flows.promote.registry import is_registered, promote_registered, registered_model
from flows.promote.store import decision_svg
from flows.run_folder.folder import METRICS, model_folder
from flows.run_folder.scores import SCORES, SETTERS

CONDITIONS = ("better", "not-worse", "always")


def promote_run(config: PromoteConfig, observer: RunObserver | None = None) -> dict[str, Any]:
    """Promote the model of a run, if it is as good as asked.

    ``better``: the interval of the difference lies above the margin; ``not-worse``: above minus the margin.

    Returns what ``aucdist promote --json`` prints.
    Raises InputError if there is no such run, an argument is wrong, a model was trained on rows of the test, or another
        promotion was made at the same moment.
    """
    _check(config)
    run = config.run.rstrip("/")
    if is_registered(config.store):
        if config.keep is not None:
            raise InputError("--keep is for a folder or bucket: MLflow keeps the versions of a registered model")
        registered_model(config.store)  # refuses a wrong one before anything is read
        if load_model(model_folder(run)).classes:
            raise InputError(
                "MLflow's registry takes models of two classes: promote this one to a folder or bucket, or a class of it"
            )
        return promote_registered(config, run, _version_of(run))
    check_name(config.store)
    store = read_store(config.store)  # before the decision: what changes meanwhile makes the promotion fail
    for change in store.versions.values() if config.keep is not None else ():
        refuse_link(store.folder_of(change))  # before anything is promoted
    content, current, condition = _version_of(run), store.current, config.condition
    result: dict[str, Any] = {"store": shown(store.url), "run": shown(run), "condition": condition, "removed": []}
    decision: Any = None
    if condition != "always" and current is not None:
        decision = decide(config, run, store.folder_of(current)) | {"version": current.version}
        title = f"{shown(run).rpartition('/')[2]} against version {current.version}"
        result["picture"] = shown(keep_decision(store, decision | {"run": shown(run)}, decision_svg(decision, title)))
        if not decision["holds"]:
            return result | {"promoted": False, "version": current.version, "replaced": None, "decision": decision}
    change = promote(store, content, ABOUT, {"run": shown(run), "condition": condition, "decision": decision})
    if config.keep is not None:
        result["removed"] = keep(read_store(store.url), ABOUT, config.keep)
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


def _check(config: PromoteConfig) -> None:
    if config.condition not in CONDITIONS:
        raise unknown("condition", config.condition, CONDITIONS)
    if not 0.0 <= config.margin < 1.0:
        raise InputError(f"the margin is a difference of AUC, at least 0 and below 1, not {config.margin:g}")
    for what, value in (("a margin", config.margin), ("--data", config.data)):
        if value and config.condition == "always":
            raise InputError(f"{what} has no effect with --if always: give --if better or --if not-worse")
    if config.keep is not None and config.keep < 1:
        raise InputError(f"at least 1 version is kept, not {config.keep}")

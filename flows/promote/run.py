"""Promotes the model of a run: reads it, compares it with the version in use, and adds it to the store."""

from dataclasses import asdict
from typing import Any

from aucdist.data.storage.files import exists, read_bytes, shown
from aucdist.errors import InputError, unknown
from aucdist.metrics.compare import delong_test
from aucdist.model import ABOUT, FEATURES, WEIGHTS, load_model
from aucdist.store.history import read_store
from aucdist.store.versions import keep, promote
from flows.compare.run import comparable, read_run
from flows.json_values import jsonable
from flows.run_folder.folder import METRICS, model_folder
from flows.run_folder.scores import SCORES

CONDITIONS = ("better", "not-worse", "always")
LEVEL = 0.95
"""Of the interval of the difference. Its two ends leave an equal model a chance of 2.5 % to be promoted by `better`."""


def promote_run(
    run: str, store_url: str, condition: str = "always", margin: float = 0.0, most: int | None = None
) -> dict[str, Any]:
    """Promote the model of a run, if it is as good as asked.

    Parameters
    ----------
    run : str
        A run folder, a path or a URL.
    store_url : str
        The store: a folder or URL; made if need be.
    condition : str
        ``better``: the interval of the difference of AUC lies above `margin`; ``not-worse``: above ``-margin``; ``always``.
    margin : float
        Not negative.
    most : int, optional
        Keep at most so many versions.

    Returns
    -------
    dict
        What ``aucdist promote --json`` prints.

    Raises
    ------
    InputError
        If there is no such run, an argument is wrong, the two models were not tested on the same held-out rows, or another
        promotion was made at the same moment.
    """
    _check(condition, margin, most)
    run = run.rstrip("/")
    store = read_store(store_url)  # before the decision: what changes meanwhile makes the promotion fail
    folder = model_folder(run)
    load_model(folder)  # refuses a damaged one
    content = {name: read_bytes(f"{folder}/{name}") for name in (ABOUT, WEIGHTS)}
    optional = {FEATURES: folder, METRICS: run, SCORES: run}
    content |= {name: read_bytes(f"{place}/{name}") for name, place in optional.items() if exists(f"{place}/{name}")}
    current = store.current
    result: dict[str, Any] = {"store": shown(store.url), "run": shown(run), "condition": condition, "removed": []}
    decision = None
    if condition != "always" and current is not None:
        decision = _decision(run, store.folder_of(current), condition, margin)
        if not decision["holds"]:
            return result | {"promoted": False, "version": current.version, "replaced": None, "decision": decision}
    change = promote(store, content, ABOUT, {"run": shown(run), "condition": condition, "decision": decision})
    if most is not None:
        result["removed"] = keep(read_store(store.url), ABOUT, most)
    return result | {
        "promoted": True, "version": change.version, "replaced": change.replaced, "decision": decision
    }  # fmt: skip


def _check(condition: str, margin: float, most: int | None) -> None:
    if condition not in CONDITIONS:
        raise unknown("condition", condition, CONDITIONS)
    if not 0.0 <= margin < 1.0:
        raise InputError(f"the margin is a difference of AUC, at least 0 and below 1, not {margin:g}")
    if margin and condition == "always":
        raise InputError("a margin has no effect with --if always: give --if better or --if not-worse")
    if most is not None and most < 1:
        raise InputError(f"at least 1 version is kept, not {most}")


def _decision(run: str, in_use: str, condition: str, margin: float) -> dict[str, Any]:
    """Return DeLong's paired test of the new model against the one in use, and whether the condition holds.

    Both runs must have held out the same rows, so no row of the test was in the training of either.
    """
    new, old = read_run(run), read_run(in_use)
    comparable([new, old])
    if new.about["data"]["fingerprint"] != old.about["data"]["fingerprint"]:
        raise InputError(
            f"{shown(run)} and the version in use were trained on other data, or read them in another way, so that test rows of "
            "one may be training rows of the other: train on the same data with the same `data.test`, or give --if always"
        )
    found = delong_test(new.y, new.scores, old.scores, LEVEL)
    bound = margin if condition == "better" else -margin
    decision: dict[str, Any] = jsonable(
        asdict(found) | {"measure": "auc", "margin": margin, "rows": len(new.y), "holds": found.low > bound}
    )
    return decision

"""The history of a model store, for people and programs."""

from typing import Any

from aucdist.data.storage.files import shown
from aucdist.errors import InputError
from aucdist.model import ABOUT
from aucdist.store.decisions import read_decisions
from aucdist.store.history import read_store
from aucdist.store.versions import present


def history(url: str) -> dict[str, Any]:
    """Return what ``aucdist models --json`` prints.

    Raises InputError if there is no model store, or it is damaged.
    """
    store = read_store(url)
    if store.current is None:
        raise InputError(f"{shown(url)} is no model store, or nothing was promoted to it: see `aucdist promote`")
    changes = [
        {
            "kind": change.kind, "version": change.version, "replaced": change.replaced, "time": change.time,
            "run": change.about.get("run"), "decision": change.about.get("decision"),
        }
        for change in store.changes
    ]  # fmt: skip
    declined = [decision for decision in read_decisions(store) if not decision.get("holds")]
    return {
        "store": shown(store.url), "current": store.current.version, "present": present(store, ABOUT), "changes": changes,
        "declined": declined,
    }  # fmt: skip

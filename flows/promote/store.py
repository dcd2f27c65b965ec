"""`aucdist models` and `aucdist rollback`: the history of a model store, and the way back."""

from typing import Annotated, Any

from aucdist.data.storage.files import shown
from aucdist.errors import InputError
from aucdist.model import ABOUT
from aucdist.store.history import present, read_decisions, read_store, split_version
from aucdist.store.history import rollback as go_back
from flows.config.base import Cli, Strict
from flows.progress.console import RunObserver
from flows.promote.text import measure_text


class StoreConfig(Strict):
    """A model store."""

    store: Annotated[str, Cli(place=1, metavar="URL")]
    """A model store, a folder or URL"""


class RollbackConfig(Strict):
    """A model store, and the version to go back to."""

    store: Annotated[str, Cli(place=1, metavar="URL")]
    """A model store; URL@2 for version 2, else the one replaced last"""


def history(config: StoreConfig, observer: RunObserver) -> dict[str, Any]:
    """Return what ``aucdist models --json`` prints.

    Raises InputError if there is no model store, or it is damaged.
    """
    url = config.store
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
    decisions, damaged = read_decisions(store)
    declined = [decision for decision in decisions if not decision.get("holds")]
    return {
        "store": shown(store.url), "current": store.current.version, "present": present(store, ABOUT), "changes": changes,
        "declined": declined, "damaged": damaged,
    }  # fmt: skip


def history_lines(result: dict[str, Any]) -> list[str]:
    """Return the history as lines of text, the first change first, with the runs that were not promoted."""
    lines = []
    for change in result["changes"]:
        number = change["version"]
        replaced = "" if change["replaced"] is None else f", replaced version {change['replaced']}"
        origin = f", {change['run']}" if change["run"] else ""
        test = change["decision"]
        why = f", {_test(test)}" if test else ""
        removed = "" if number in result["present"] else " (removed)"
        lines.append(f"{change['time']}  {change['kind']:8}  version {number}{removed}{replaced}{origin}{why}")
    for test in result["declined"]:
        of = f"{test.get('run', 'a run')} against version {test.get('version', '?')}"
        lines.append(f"{test.get('time', '?')}  declined  {of}, {_test(test)}")
    lines.sort(key=lambda line: line.partition(" ")[0])
    return [*lines, *result["damaged"], f"in use: version {result['current']}"]


def _test(test: dict[str, Any]) -> str:
    """Return the test that decided, in few words."""
    margin = f" by {test['margin']:g}" if test["margin"] else ""
    condition = f", {test['condition']}{margin}" if "condition" in test else ""
    value = f"{test['value']:+.5f} ({test['low']:+.5f} to {test['high']:+.5f})"
    return f"{measure_text(test)} {value} on {test['rows']:,} rows{condition}"


def rollback(config: RollbackConfig, observer: RunObserver) -> dict[str, Any]:
    """Go back to an earlier version of a model."""
    url, number = split_version(config.store)
    change = go_back(read_store(url), ABOUT, number)
    return {"store": shown(url), "version": change.version, "replaced": change.replaced}


def rollback_lines(result: dict[str, Any]) -> list[str]:
    """Return what `aucdist rollback` prints."""
    return [f"{result['store']}: version {result['version']} is in use again; it replaces version {result['replaced']}"]

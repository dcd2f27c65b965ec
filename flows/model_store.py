"""The commands `models` and `rollback`, and decisions about promotions as text and as a picture."""

import math
from typing import Annotated, Any

from aucdist.data.storage.files import shown
from aucdist.errors import InputError, Json
from aucdist.report.plots import standalone_svg
from aucdist.report.svg import GRID, MUTED, NEG, POS
from aucdist.report.text import warning_texts
from aucdist.store import read_decisions, read_store, rollback as go_back, split_store_url, stored_version_numbers
from flows.config.loading import Cli, Strict


class StoreConfig(Strict):
    """A model store."""

    store: Annotated[str, Cli(position=1, metavar="STORE")]
    """The model store: a folder or URL."""


class RollbackConfig(Strict):
    """A model store, and the version to go back to."""

    store: Annotated[str, Cli(position=1, metavar="STORE")]
    """The model store. URL@2 goes back to version 2; without @, it is the version that was replaced last."""


def history(config: StoreConfig) -> Json:
    """Return what ``aucdist models --json`` prints.

    Raises
    ------
    InputError
        If there is no model store, or it is damaged.
    """
    store = read_store(config.store)
    if store.current is None:
        raise InputError(
            f"{shown(store.url)} is not a model store, or nothing was promoted to it. Make a store with "
            "`aucdist promote RUN STORE`"
        )
    decisions, damaged = read_decisions(store)
    return {
        "store": shown(store.url), "current": store.current.version, "present": stored_version_numbers(store),
        "changes": [
            {
                "kind": change.kind, "version": change.version, "replaced": change.replaced, "time": change.time,
                "run": change.about.get("run"), "decision": change.about.get("decision"),
            }
            for change in store.changes
        ],
        "declined": [decision for decision in decisions if not decision.get("holds")], "damaged": damaged,
    }  # fmt: skip


def history_lines(result: Json) -> list[str]:
    """Return the history as lines of text in chronological order, including runs that were not promoted."""
    lines = []
    for change in result["changes"]:
        number = change["version"]
        replaced = f", replaced version {change['replaced']}" if change["replaced"] else ""
        test = change["decision"]
        lines.append(
            f"{change['time']}  {change['kind']:8}  version {number}{'' if number in result['present'] else ' (removed)'}"
            f"{replaced}{', ' * bool(change['run'])}{change['run'] or ''}{f', {_test_text(test)}' if test else ''}"
        )
    for test in result["declined"]:
        lines.append(
            f"{test.get('time', '?')}  declined  {test.get('run', 'a run')} against version {test.get('version', '?')}, "
            f"{_test_text(test)}"
        )
    lines.sort(key=lambda line: line.partition(" ")[0])
    return [*lines, *result["damaged"], f"in use: version {result['current']}"]


def _test_text(test: Json) -> str:
    """Summarise the test that decided."""
    margin = f" by {test['margin']:g}" if test["margin"] else ""
    condition = f", {test['condition']}{margin}" if "condition" in test else ""
    value = f"{test['value']:+.5f} ({test['low']:+.5f} to {test['high']:+.5f})"
    return f"{tested_metric(test)} {value} on {test['rows']:,} rows{condition}"


def rollback(config: RollbackConfig) -> Json:
    """Go back to an earlier version of a model, and return what was changed."""
    url, number = split_store_url(config.store)
    change = go_back(read_store(url), number)
    return {"store": shown(url), "version": change.version, "replaced": change.replaced}


def rollback_lines(result: Json) -> list[str]:
    """Return the lines that `aucdist rollback` prints."""
    return [f"{result['store']}: version {result['version']} is in use again; it replaces version {result['replaced']}"]


# ---- the decision about a promotion ------------------------------------------------------------------------------------------


def promotion_lines(result: Json) -> list[str]:
    """Return the lines that describe a decision about a promotion and the change of the store."""
    lines = []
    if (test := result["decision"]) is not None:
        lines.append(
            f"{tested_metric(test)} of the new run minus that of the version in use: {test['value']:+.5f}, "
            f"{100 * test['level']:.0f} % interval {test['low']:+.5f} to {test['high']:+.5f}, "
            f"on {test['rows']:,} rows ({test['of']})"
        )
        if (loss := test["calibration"]) is not None:
            lines.append(
                f"Brier score of the version in use minus that of the new run: {loss['value']:+.5f} "
                f"({loss['low']:+.5f} to {loss['high']:+.5f})"
            )
        lines.append(f"drawn in {result['picture']}")
    if result["promoted"]:
        after = f"; it replaces version {result['replaced']}" if result["replaced"] else ""
        lines.append(f"{result['store']}: version {result['version']} is in use{after}")
    else:
        margin = test["margin"]
        by_margin = f" by more than {margin:g}" if margin else ""
        missed = f"shown to be {'better' if result['condition'] == 'better' else 'no worse'}{by_margin}"
        if test["low"] > (margin if result["condition"] == "better" else -margin):
            missed = "as well calibrated: its Brier score is higher"
        lines.append(f"{result['store']}: version {result['version']} stays in use: the run is not {missed}")
    lines += [f"warning: {text}" for text in warning_texts(result)]
    if "mlflow" in result:
        lines.append(f"logged as run {result['mlflow']['run']} at {result['mlflow']['server']}")
    if result["removed"]:
        lines.append(f"removed: {', '.join(f'version {number}' for number in result['removed'])}")
    return lines


def tested_metric(test: Json) -> str:
    """Return the name of the metric that was compared.

    The oldest model stores do not contain it, because they always compared the AUC.
    """
    names = {
        "auc": "AUC", "average_precision": "average precision", "macro_auc": "mean AUC of the classes",
        "partial_auc": f"partial AUC up to a false positive rate of {test.get('max_fpr', math.nan):g}",
    }  # fmt: skip
    return names[test.get("metric", "auc")]


def decision_svg(decision: Json, title: str) -> str:
    """Return the picture of a decision as an SVG file."""
    rows = [(tested_metric(decision), decision)]
    if decision["calibration"] is not None:
        rows.append(("Brier score, decrease", decision["calibration"]))
    bound = decision["margin"] if decision["condition"] == "better" else -decision["margin"]

    def plot(axes: Any) -> None:
        axes.note(title)
        for place, (label, test) in enumerate(rows):
            holds = test["low"] > bound if place == 0 else test["high"] >= -decision["margin"]
            colour, values = NEG if holds else POS, f"{test['value']:+.4f} ({test['low']:+.4f} to {test['high']:+.4f})"
            axes.plot([test["low"], test["high"]], [-place, -place], color=colour, linewidth=3)
            axes.plot([test["value"]], [-place], "os"[place], color=colour, markersize=7, label=f"{label}: {values}")
        axes.axvline(0.0, "-", color=GRID)
        axes.axvline(
            bound, color=MUTED, label=f"{decision['condition']} {'holds' if decision['holds'] else 'does not hold'}"
        )
        axes.set(xlabel=f"run minus version in use, on {decision['rows']:,} rows", ylim=(-len(rows) + 0.4, 0.7))

    return standalone_svg("decision", plot)

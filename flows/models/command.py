"""`aucdist models`."""

from typing import Annotated, Any

import typer

from flows.command import AsJson, Command, Debug, print_json, report_errors


def models(
    store: Annotated[str, typer.Argument(metavar="URL", help="A model store, a folder or URL.")],
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Say which version of a model is in use, and what has changed when."""
    with report_errors(debug):
        from flows.models.run import history

        result = history(store)
        if as_json:
            print_json(result)
        else:
            typer.echo("\n".join(history_lines(result)))


def history_lines(result: dict[str, Any]) -> list[str]:
    """Return the history as lines of text, the first change first."""
    lines = []
    for change in result["changes"]:
        number = change["version"]
        replaced = "" if change["replaced"] is None else f", replaced version {change['replaced']}"
        origin = f", {change['run']}" if change["run"] else ""
        test = change["decision"]
        why = f", AUC {test['value']:+.5f} ({test['low']:+.5f} to {test['high']:+.5f})" if test else ""
        removed = "" if number in result["present"] else " (removed)"
        lines.append(f"{change['time']}  {change['kind']:8}  version {number}{removed}{replaced}{origin}{why}")
    return [*lines, f"in use: version {result['current']}"]


COMMAND = Command("models", models, page="in-service")

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
        lines.append(f"{test['time']}  declined  {test['run']} against version {test['version']}, {_test(test)}")
    return [*sorted(lines, key=lambda line: line.partition(" ")[0]), f"in use: version {result['current']}"]


def _test(test: dict[str, Any]) -> str:
    """Return the test that decided, in few words."""
    from flows.promote.text import measure_text

    margin = f" by {test['margin']:g}" if test["margin"] else ""
    condition = f", {test['condition']}{margin}" if "condition" in test else ""
    value = f"{test['value']:+.5f} ({test['low']:+.5f} to {test['high']:+.5f})"
    return f"{measure_text(test)} {value} on {test['rows']:,} rows{condition}"


COMMAND = Command("models", models, page="in-service")

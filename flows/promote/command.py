"""`aucdist promote`."""

from typing import Annotated, Any

import typer

from flows.command import AsJson, Command, Debug, print_json, report_errors


def promote(
    run: Annotated[str, typer.Argument(help="A run folder, a path or URL.")],
    store: Annotated[str, typer.Argument(metavar="URL", help="The model store, a folder or URL; made if need be.")],
    condition: Annotated[
        str, typer.Option("--if", metavar="better|not-worse|always", help="When to replace the version in use.")
    ] = "always",
    margin: Annotated[
        float, typer.Option(help="The difference of AUC that counts: better by more, or not worse by as much.")
    ] = 0.0,
    keep: Annotated[
        int | None, typer.Option(metavar="N", help="Remove old versions until N are left. [default: remove none]")
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Make the model of a run the one in use: a new version in a model store.

    With --if, the run and the version in use are compared on the test rows, which must be the same for both, by DeLong's paired
    test of the AUC. The exit code is 0 whether or not the condition holds.
    """
    with report_errors(debug):
        from flows.promote.run import promote_run

        result = promote_run(run, store, condition, margin, keep)
        if as_json:
            print_json(result)
        else:
            typer.echo("\n".join(promotion_lines(result)))


def promotion_lines(result: dict[str, Any]) -> list[str]:
    """Return what was decided and done, as lines of text."""
    lines = []
    if (test := result["decision"]) is not None:
        lines.append(
            f"AUC of the run minus that in use: {test['value']:+.5f}, {test['level']:.0%} interval "
            f"{test['low']:+.5f} to {test['high']:+.5f}, on {test['rows']:,} rows"
        )
    if result["promoted"]:
        after = "" if result["replaced"] is None else f"; it replaces version {result['replaced']}"
        lines.append(f"{result['store']}: version {result['version']} is in use{after}")
    else:
        lines.append(f"{result['store']}: version {result['version']} stays in use: the run is not {_missed(result)}")
    if result["removed"]:
        lines.append(f"removed: {', '.join(f'version {number}' for number in result['removed'])}")
    return lines


def _missed(result: dict[str, Any]) -> str:
    margin = result["decision"]["margin"]
    beyond = f" by more than {margin:g}" if margin else ""
    return f"shown to be better{beyond}" if result["condition"] == "better" else f"shown to be no worse{beyond}"


COMMAND = Command("promote", promote, page="in-service")

"""`aucdist keep-current`."""

from typing import Annotated

import typer

from flows.command import ALARMS, AsJson, Command, Debug, print_json, report_errors


def keep_current(
    config: Annotated[str, typer.Argument(help="A YAML file, or the name of one in configs/keep_current.")],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a key, as in --set window=28. May be repeated."),
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Keep a model current: train on the newest rows, compare, promote, score and watch. Once a night, say.

    One run at a time works on a store. The exit code is 3 if the new rows raise alarms.
    """
    with report_errors(debug):
        from flows.keep_current.config import load_keep_current
        from flows.promote.text import promotion_lines
        from flows.watch.text import watch_lines

        result = COMMAND.run(load_keep_current(config, settings or ()), debug)
        if as_json:
            print_json(result)
        else:
            watched = [] if result["watched"] is None else watch_lines(result["watched"])
            typer.echo("\n".join([f"trained {result['run']}", *promotion_lines(result["promotion"]), *watched]))
        if result["alarms"]:
            raise typer.Exit(ALARMS)


COMMAND = Command(
    "keep-current",
    keep_current,
    page="in-service",
    function="keep_current",
    flow="keep_current",
    config="KeepCurrentConfig",
)

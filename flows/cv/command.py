"""`aucdist cv`."""

from typing import Annotated, Any

import typer

from flows.command import AsJson, Debug, followed, print_json, quieten_prefect, reported


def cv(
    config: Annotated[str, typer.Argument(help="A YAML file, or the name of one in configs/cv, such as a9a.")],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a key, as in --set folds.number=10. May be repeated."),
    ] = None,
    output: Annotated[
        str | None, typer.Option(metavar="URL", help="Where everything is kept: a folder or a URL. [default: runs]")
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Choose parameters by cross-validation, fit all training rows with them, and write the run folder.

    Each fold is a task of its own and its result is kept, so that a search that was ended goes on where it was.
    """
    with reported(debug):
        from flows.config.prefect_api import api_configured
        from flows.cv.config import load_cv

        loaded = load_cv(config, settings or (), output)
        if api_configured():
            from flows.cv.flow import cross_validate_flow

            quieten_prefect(debug)
            result = cross_validate_flow(loaded)
        else:
            from flows.cv.run import cross_validate

            result = followed(lambda observer: cross_validate(loaded, observer))
        if as_json:
            print_json(result)
        else:
            _show(result)


def _show(result: dict[str, Any]) -> None:
    from rich.console import Console

    from aucdist.report.text import search_verdict
    from flows.progress.console import search_table

    Console().print(search_table(result))
    typer.echo(search_verdict(result))
    typer.echo(f"report: {result['run']}/report.html")

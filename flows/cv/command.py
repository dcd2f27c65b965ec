"""`aucdist cv`."""

from typing import Annotated, Any

import typer

from flows.command import AsJson, Command, Debug, print_json, report_errors


def cv(
    config: Annotated[str, typer.Argument(help="A YAML file, or the name of one in configs/cv, such as a9a.")],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a key, as in --set folds.number=10. May be repeated."),
    ] = None,
    output: Annotated[
        str | None, typer.Option(metavar="URL", help="Where results are written: a folder or a URL. [default: runs]")
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Choose parameters by cross-validation, fit all training rows with them, and write the run folder.

    The result of each fold is stored when it is done: if a search is interrupted, run the same command again to resume it.
    """
    with report_errors(debug):
        from flows.cv.config import load_cv

        result = COMMAND.run(load_cv(config, settings or (), output), debug)
        if as_json:
            print_json(result)
        else:
            _print_summary(result)


def _print_summary(result: dict[str, Any]) -> None:
    from rich.console import Console

    from aucdist.report.text import search_verdict
    from flows.progress.console import search_table

    Console().print(search_table(result))
    typer.echo(search_verdict(result))
    typer.echo(f"report: {result['run']}/report.html")


COMMAND = Command("cv", cv, page="cross-validate", function="cross_validate", flow="cross_validate", config="CvConfig")

"""`aucdist compare`."""

from typing import Annotated, Any

import typer

from flows.command import AsJson, Debug, print_json, reported


def compare(
    runs: Annotated[list[str], typer.Argument(metavar="RUN RUN ...", help="Run folders, paths or URLs.")],
    output: Annotated[str, typer.Option(metavar="URL", help="Where the page's folder is made.")] = "runs",
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Hold runs against each other on the same test rows: paired tests, intervals, and one page."""
    with reported(debug):
        from flows.compare.run import compare as work

        result = work(runs, output)
        if as_json:
            print_json(result)
        else:
            _show(result)


def _show(result: dict[str, Any]) -> None:
    from aucdist.report.comparison import sentences

    for sentence in sentences(result):
        typer.echo(sentence)
    typer.echo(f"report: {result['run']}/report.html")

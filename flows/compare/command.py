"""`aucdist compare`."""

from typing import Annotated, Any

import typer

from flows.command import AsJson, Command, Debug, print_json, report_errors


def compare(
    runs: Annotated[list[str], typer.Argument(metavar="RUN RUN ...", help="Run folders, paths or URLs.")],
    output: Annotated[str, typer.Option(metavar="URL", help="Where the folder of the report is made.")] = "runs",
    max_fpr: Annotated[
        float | None,
        typer.Option(
            min=0.0, max=1.0, help="Compares the partial AUC up to this false positive rate as well, such as 0.01."
        ),
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Compare runs on the same test rows: paired tests, confidence intervals, and a report."""
    with report_errors(debug):
        from flows.compare import run

        result = run.compare(runs, output, max_fpr)
        if as_json:
            print_json(result)
        else:
            _print_summary(result)


def _print_summary(result: dict[str, Any]) -> None:
    from aucdist.report.classes_comparison import classes_sentences
    from aucdist.report.comparison import sentences

    for folder in result["skipped"]:
        typer.echo(f"skipped {folder}: it is not the folder of a run")
    for sentence in classes_sentences(result) if "classes" in result else sentences(result):
        typer.echo(sentence)
    typer.echo(f"report: {result['run']}/report.html")


COMMAND = Command("compare", compare, page="compare")

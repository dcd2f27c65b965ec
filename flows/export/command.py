"""`aucdist export`."""

from typing import Annotated

import typer

from flows.command import AsJson, Command, Debug, print_json, report_errors


def export(
    run: Annotated[str, typer.Argument(help="A run folder, or the model in it: a folder or URL.")],
    to: Annotated[str, typer.Option(metavar="onnx|sql|json|scorecard", help="What the other system reads.")],
    output: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="The file; of a scorecard .json, .md, .csv or .html. [default: named after the run, in the current folder]",
        ),
    ] = None,
    table: Annotated[
        str | None, typer.Option(metavar="NAME", help="sql: the table with the rows. [default: rows]")
    ] = None,
    ids: Annotated[
        list[str] | None,
        typer.Option(
            "--id",
            metavar="COLUMN",
            help="sql: a column that stands beside the scores. May be repeated. [default: the columns that the model reads]",
        ),
    ] = None,
    contributions: Annotated[
        bool,
        typer.Option("--contributions", help="onnx, sql, json: also what each feature adds to a score."),
    ] = False,
    rows: Annotated[int | None, typer.Option(metavar="N", help="scorecard: at most so many lines.")] = None,
    total: Annotated[
        int | None,
        typer.Option(metavar="N", help="scorecard: points between the lowest and the highest sum. [default: 1000]"),
    ] = None,
    points_to_double_odds: Annotated[
        float | None, typer.Option(metavar="N", help="scorecard: points that double the odds, in place of --total.")
    ] = None,
    base_points: Annotated[
        float | None, typer.Option(metavar="N", help="scorecard: points of a row with the odds --base-odds.")
    ] = None,
    base_odds: Annotated[float | None, typer.Option(metavar="X", help="scorecard: odds, positive to negative.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Write a model for another system: an ONNX graph, a query in SQL, a description in JSON, or a scorecard.

    Each takes the columns of the training data as they are, and gives what `aucdist score` gives.
    """
    with report_errors(debug):
        from pydantic import ValidationError

        from aucdist.errors import InputError
        from flows.config import loading
        from flows.export.config import ExportConfig

        given = {
            "rows": rows, "total": total, "points_to_double_odds": points_to_double_odds, "base_points": base_points,
            "base_odds": base_odds,
        }  # fmt: skip
        card = {name: value for name, value in given.items() if value is not None} or None
        try:
            config = ExportConfig.model_validate(
                {
                    "model": run,
                    "to": to,
                    "output": output,
                    "table": table,
                    "ids": ids or [],
                    "contributions": contributions,
                    "card": card,
                    "force": force,
                }
            )
        except ValidationError as error:
            raise InputError(loading.explain(error, ExportConfig, "aucdist export")) from None
        result = COMMAND.run(config, debug)
        if as_json:
            print_json(result)
        else:
            lines = f"{result['lines']} lines, " if "lines" in result else ""
            typer.echo(f"{result['output']}: {lines}{len(result['columns'])} columns, {result['bytes']:,} bytes")


COMMAND = Command("export", export, page="take-elsewhere", function="export")

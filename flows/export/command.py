"""`aucdist export`."""

from typing import Annotated

import typer

from flows.command import AsJson, Command, Debug, print_json, report_errors


def export(
    run: Annotated[str, typer.Argument(help="A run folder, or the model in it: a folder or URL.")],
    to: Annotated[str, typer.Option(metavar="onnx|sql|json", help="What the other system reads.")],
    output: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The file. [default: named after the run, in the current folder]"),
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
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Write a model for another system: an ONNX graph, a query in SQL, or a description in JSON.

    Each takes the columns of the training data as they are, and gives what `aucdist score` gives.
    """
    with report_errors(debug):
        from pydantic import ValidationError

        from aucdist.errors import InputError
        from flows.config import loading
        from flows.export.config import ExportConfig

        try:
            config = ExportConfig(model=run, to=to, output=output, table=table, ids=ids or [], force=force)
        except ValidationError as error:
            raise InputError(loading.explain(error, ExportConfig, "aucdist export")) from None
        result = COMMAND.run(config, debug)
        if as_json:
            print_json(result)
        else:
            typer.echo(f"{result['output']}: {len(result['columns'])} columns, {result['bytes']:,} bytes")


COMMAND = Command("export", export, page="take-elsewhere", function="export")

"""`aucdist init`."""

from pathlib import Path
from typing import Annotated

import typer

from flows.command import AsJson, Command, Debug, SourceSettings, print_json, report_errors


def init(
    data: Annotated[str, typer.Argument(help="A CSV, Parquet, svmlight or KEEL file, a path or a URL.")],
    label: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column with the classes; svmlight and KEEL files name it themselves."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The YAML file. [default: the name of the data, in this folder]")
    ] = None,
    settings: SourceSettings = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the YAML file if it is there.")] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Look at a file and write a commented configuration: label, identifiers, dates, categories, missing values."""
    with report_errors(debug):
        from aucdist.errors import InputError
        from flows.config.sources import source_from_name
        from flows.init import run
        from flows.init.no_columns import is_svmlight

        name, source = source_from_name(
            data, settings or (), label=label, otherwise=lambda: "svmlight" if is_svmlight(data) else None
        )
        file = output or Path(f"{name}.yaml")
        if file.exists() and not force:
            raise InputError(f"{file} is there already: name another by --output, or replace it by --force")
        result = run.init(name, source, file)
        if as_json:
            print_json(result)
            return
        for column, kind in result["columns"].items():
            typer.echo(f"{column:24} {kind}")
        for column in result["leaks"]:
            typer.echo(
                f"warning: column {column!r} alone tells the classes apart; if it is known only once the label is, list it "
                f"under `drop` in {file}",
                err=True,
            )
        typer.echo(f"{file}: {result['rows']:,} rows, positive class {result['positive']!r}")
        typer.echo(f"next: aucdist data preview {file} --html {file.stem}.html")


COMMAND = Command("init", init, page="your-own-csv")

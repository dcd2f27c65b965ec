"""`aucdist data`: the catalog."""

from typing import Annotated

import typer

from flows.commands.common import Debug, reported

app = typer.Typer(no_args_is_help=True, help="The catalog of data sets.")


@app.command("list")
def data_list(debug: Debug = False) -> None:
    """List the data sets of the catalog."""
    with reported(debug):
        from aucdist.data.catalog import catalog

        for name, source in sorted(catalog().items()):
            shape = f"{source.rows or '?'} x {source.features or '?'}"
            typer.echo(f"{name:32} {source.format:10} {shape:>18}")


@app.command("show")
def data_show(name: Annotated[str, typer.Argument(help="A data set of the catalog.")], debug: Debug = False) -> None:
    """Show the catalog's entry of a data set."""
    with reported(debug):
        import yaml

        from aucdist.data.catalog import find

        entry = find(name).model_dump(mode="json", exclude_none=True)
        typer.echo(yaml.safe_dump({name: entry}, sort_keys=False, allow_unicode=True), nl=False)

"""`aucdist rollback`."""

from typing import Annotated

import typer

from flows.command import AsJson, Command, Debug, print_json, report_errors


def rollback(
    store: Annotated[
        str, typer.Argument(metavar="URL", help="A model store; URL@2 for version 2, else the one replaced last.")
    ],
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Go back to an earlier version of a model: by default the one that the version in use has replaced."""
    with report_errors(debug):
        from aucdist.data.storage.files import shown
        from aucdist.model import ABOUT
        from aucdist.store.history import read_store, split_version
        from aucdist.store.versions import rollback as go_back

        url, number = split_version(store)
        change = go_back(read_store(url), ABOUT, number)
        if as_json:
            print_json({"store": shown(url), "version": change.version, "replaced": change.replaced})
        else:
            typer.echo(f"{shown(url)}: version {change.version} is in use again; it replaces version {change.replaced}")


COMMAND = Command("rollback", rollback, page="in-service")

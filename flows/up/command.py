"""`aucdist up`."""

from typing import Annotated

import typer

from flows.command import Debug, reported


def up(
    port: Annotated[int, typer.Option(help="Of the server, which only this machine can reach.")] = 4200,
    debug: Debug = False,
) -> None:
    """Start a Prefect server here and serve all flows, until Ctrl-C.

    Then, in another terminal in the same folder: `prefect deployment run train-auc/local --watch`.
    """
    with reported(debug):
        from flows.up.run import up as run

        run(port, typer.echo)

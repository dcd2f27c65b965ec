"""`aucdist bench`."""

from typing import Annotated

import typer

from flows.commands.common import Debug, reported


def bench(
    suite: Annotated[str, typer.Argument(help="What is measured: see the error for an unknown one.")] = "pairwise",
    slow_peers: Annotated[bool, typer.Option("--slow-peers", help="Also the peers that take minutes.")] = False,
    output: Annotated[str | None, typer.Option(metavar="FILE", help="Write the table as CSV, too.")] = None,
    debug: Debug = False,
) -> None:
    """Measure on this machine, side by side with the peers in one process; warm-up apart."""
    with reported(debug):
        from flows.benches import bench as run

        table = run(suite, slow_peers=slow_peers, say=typer.echo)
        if output is not None:
            from aucdist.data.files import write_bytes

            write_bytes(output, table.to_csv(index=False).encode())

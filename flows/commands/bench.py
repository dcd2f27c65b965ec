"""`aucdist bench`."""

from typing import Annotated

import typer

from flows.commands.common import Debug, reported


def bench(
    suite: Annotated[str, typer.Argument(help="What is measured: see the error for an unknown one.")] = "pairwise",
    slow_peers: Annotated[bool, typer.Option("--slow-peers", help="Also the peers that take minutes.")] = False,
    only: Annotated[
        str | None, typer.Option(metavar="NAMES", help="peers: these data sets, with commas between them.")
    ] = None,
    threads: Annotated[int | None, typer.Option(help="peers: threads for each system. [default: 1]")] = None,
    repeats: Annotated[int | None, typer.Option(help="peers: turns of each system. [default: 3]")] = None,
    output: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write the table as CSV, too; of peers and limits also a picture beside it."),
    ] = None,
    debug: Debug = False,
) -> None:
    """Measure on this machine, side by side with the peers in one process; warm-up apart."""
    with reported(debug):
        from flows.benches.suites import bench as run
        from flows.benches.suites import picture

        table = run(suite, slow_peers=slow_peers, say=typer.echo, only=only, threads=threads, repeats=repeats)
        if output is not None:
            from aucdist.data.files import write_bytes

            write_bytes(output, table.to_csv(index=False).encode())
            drawn = picture(suite, table)
            if drawn is not None:
                write_bytes(f"{output.removesuffix('.csv')}.svg", drawn.encode())

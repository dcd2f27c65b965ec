"""`aucdist bench`."""

from typing import Annotated

import typer

from flows.command import Command, Debug, report_errors


def bench(
    suite: Annotated[str, typer.Argument(help="What is measured: see the error for an unknown one.")] = "pairwise",
    slow_peers: Annotated[bool, typer.Option("--slow-peers", help="Also the peers that take minutes.")] = False,
    only: Annotated[
        str | None, typer.Option(metavar="NAMES", help="peers: these data sets, with commas between them.")
    ] = None,
    threads: Annotated[int | None, typer.Option(help="peers: threads for each system. [default: 1]")] = None,
    repeats: Annotated[int | None, typer.Option(help="peers: turns of each system. [default: 3]")] = None,
    limit: Annotated[
        float | None, typer.Option(help="peers: seconds for a choice, and for a ladder. [default: 60]")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="FILE.html: a page of table and picture, and a CSV beside it; FILE.csv: CSV, SVG."
        ),
    ] = None,
    debug: Debug = False,
) -> None:
    """Measure on this machine, side by side with the peers in one process; warm-up apart."""
    with report_errors(debug):
        from flows.bench import output as written
        from flows.bench.suites import bench as run

        if output is not None:
            written.check(output)
        table = run(
            suite, slow_peers=slow_peers, say=typer.echo, only=only, threads=threads, repeats=repeats, limit=limit
        )
        if output is not None:
            written.write(suite, table, output)


COMMAND = Command("bench", bench, page="benchmark")

"""`aucdist bench`."""

from typing import Annotated

import typer

from flows.command import Command, Debug, report_errors

SlowPeers = Annotated[bool, typer.Option("--slow-peers", help="Also run the peers that take minutes.")]
Output = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="FILE.html: a page with table and figure, and a CSV file; FILE.csv: a CSV and an SVG file. Either has "
        "a JSON file beside it, which names versions and machine.",
    ),
]


def bench(
    suite: Annotated[str, typer.Argument(help="The suite to run; an unknown name prints the list.")] = "pairwise",
    slow_peers: SlowPeers = False,
    output: Output = None,
    debug: Debug = False,
) -> None:
    """Measure our code on this machine, after a warm-up."""
    with report_errors(debug):
        from flows.bench.measure import measure
        from flows.bench.suites import load_suite

        measure(load_suite(suite), "aucdist bench", slow_peers=slow_peers, output=output)


COMMAND = Command("bench", bench, page="benchmark")

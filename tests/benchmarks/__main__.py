"""``PYTHONPATH=tests python -m benchmarks SUITE``: run a suite, print its rows, and write its files."""

from typing import Annotated

import typer

from flows.command import Debug, report_errors

app = typer.Typer(add_completion=False)

SlowPeers = Annotated[bool, typer.Option("--slow-peers", help="Also run the peers that take minutes.")]
Output = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="FILE.html: a page with table and figure, and a CSV file; FILE.csv: a CSV and an SVG file. Either has "
        "a JSON file beside it, which names versions and machine.",
    ),
]


@app.command()
def main(
    suite: Annotated[str, typer.Argument(help="The suite to run; an unknown name prints the list.")],
    slow_peers: SlowPeers = False,
    only: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="groups, passes, peers, top, curves, trees: names of data sets, separated by commas; "
            "shapes: of systems.",
        ),
    ] = None,
    threads: Annotated[int | None, typer.Option(help="peers, shapes: threads for each system. [default: 1]")] = None,
    repeats: Annotated[int | None, typer.Option(help="peers: trials of each system. [default: 3]")] = None,
    splits: Annotated[
        int | None,
        typer.Option(
            help="trees: random splits of each data set; peers, curves: of those with few rows and no test rows of their own. "
            "[default: 5, curves: 3]"
        ),
    ] = None,
    processes: Annotated[
        int | None, typer.Option(help="trees: splits side by side, each in a process of its own. [default: 1]")
    ] = None,
    limit: Annotated[
        float | None,
        typer.Option(
            help="peers: seconds for the choice of the value on a split, and again for the fits; top: for the choice. "
            "[default: 60, top: 300]"
        ),
    ] = None,
    output: Output = None,
    debug: Debug = False,
) -> None:
    """Measure our code and its peers on this machine, after a warm-up."""
    with report_errors(debug):
        from benchmarks.measure import measure
        from benchmarks.suites import load_suite

        measure(
            load_suite(suite), slow_peers=slow_peers, output=output, only=only,
            threads=threads, repeats=repeats, splits=splits, processes=processes, limit=limit,
        )  # fmt: skip


if __name__ == "__main__":
    app(prog_name="python -m benchmarks")

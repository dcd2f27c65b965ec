"""`aucdist bench`."""

import functools
from typing import Annotated, Any

import typer

from flows.command import Command, Debug, report_errors


def bench(
    suite: Annotated[str, typer.Argument(help="The suite to run; an unknown name prints the list.")] = "pairwise",
    slow_peers: Annotated[bool, typer.Option("--slow-peers", help="Also run the peers that take minutes.")] = False,
    only: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="passes, peers, top, trees: names of data sets, separated by commas."),
    ] = None,
    threads: Annotated[int | None, typer.Option(help="peers: threads for each system. [default: 1]")] = None,
    repeats: Annotated[int | None, typer.Option(help="peers: trials of each system. [default: 3]")] = None,
    splits: Annotated[
        int | None,
        typer.Option(
            help="trees: random splits of each data set; peers: of those with few rows and no test rows of their own. "
            "[default: 5]"
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
    output: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="FILE.html: a page with table and figure, and a CSV file; FILE.csv: a CSV and an SVG file. Either has "
            "a JSON file beside it, which names versions and machine.",
        ),
    ] = None,
    debug: Debug = False,
) -> None:
    """Measure our code and its peers on this machine, after a warm-up."""
    with report_errors(debug):
        from flows.bench import output as files
        from flows.bench.about import Measurement
        from flows.bench.suites import bench as run

        if output is not None:
            files.check_output(suite, output)
        options: dict[str, Any] = {
            "only": only,
            "threads": threads,
            "repeats": repeats,
            "splits": splits,
            "processes": processes,
        }
        options["limit"] = limit
        measurement = Measurement(_command(suite, slow_peers, options))
        keep = None if output is None else functools.partial(files.write_table, output)
        table = run(suite, slow_peers=slow_peers, log=typer.echo, keep=keep, **options)
        if output is not None:
            files.write_results(suite, table, output, measurement)


def _command(suite: str, slow_peers: bool, options: dict[str, Any]) -> str:
    """Return the line that runs a suite again."""
    given = [f"--{name} {value}" for name, value in options.items() if value is not None]
    return " ".join(["aucdist", "bench", suite, *(["--slow-peers"] if slow_peers else []), *given])


COMMAND = Command("bench", bench, page="benchmark")

"""``PYTHONPATH=tests python -m benchmarks SUITE``: run a suite, print its rows, and write its files."""

import functools
from typing import Any

import click

from flows.command import report_errors


@click.command()
@click.argument("suite", default="pairwise")
@click.option("--slow-peers", is_flag=True, help="Also run the peers that take minutes.")
@click.option(
    "--only",
    metavar="NAMES",
    help="groups, passes, peers, top, curves, trees: names of data sets, separated by commas; shapes: of systems.",
)
@click.option("--threads", type=int, help="peers, shapes: threads for each system. [default: 1]")
@click.option("--repeats", type=int, help="peers: trials of each system. [default: 3]")
@click.option(
    "--splits",
    type=int,
    help="auto, lam, rare, trees: random splits of each data set; peers, curves: of those with few rows and no test rows of "
    "their own. [default: 5, curves and lam: 3]",
)
@click.option("--processes", type=int, help="trees: splits side by side, each in a process of its own. [default: 1]")
@click.option(
    "--limit",
    type=float,
    help="peers: seconds for the choice of the value on a split, and again for the fits; top: for the choice. "
    "[default: 60, top: 300]",
)
@click.option(
    "--output",
    metavar="FILE",
    help="FILE.csv: the table; beside it a JSON file, which names versions and machine.",
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def app(suite: str, slow_peers: bool, output: str | None, debug: bool, **options: Any) -> None:
    """Measure our code and its peers on this machine, after a warm-up.

    An unknown SUITE prints the list of suites.
    """  # fmt: skip
    with report_errors(debug):
        from benchmarks import output as files
        from benchmarks.about import Measurement
        from benchmarks.suites import bench, load_suite

        loaded = load_suite(suite)
        if output is not None:
            files.check_output(loaded, output)
        asked = [f"--{name} {value}" for name, value in options.items() if value is not None]
        line = " ".join(["python -m benchmarks", suite, *(["--slow-peers"] if slow_peers else []), *asked])
        measurement = Measurement(line)
        keep = None if output is None else functools.partial(files.write_table, output)
        table = bench(loaded, slow_peers=slow_peers, log=click.echo, keep=keep, **options)
        if output is not None:
            files.write_results(loaded, table, output, measurement)


if __name__ == "__main__":
    app(prog_name="python -m benchmarks")

"""A suite from the command line: its rows as lines of text, and its files."""

import functools
from typing import Any

import click

from benchmarks import output as files
from benchmarks.about import Measurement
from benchmarks.suites import Suite, bench


def measure(suite: Suite, *, slow_peers: bool, output: str | None, **options: Any) -> None:
    """Run a suite, print its rows, and write its files.

    `output`: as `benchmarks.output.write_results` takes it.
    `options`: of the suite; None means that an option is not given.
    """
    if output is not None:
        files.check_output(suite, output)
    given = [f"--{name} {value}" for name, value in options.items() if value is not None]
    line = " ".join(["python -m benchmarks", suite.name, *(["--slow-peers"] if slow_peers else []), *given])
    measurement = Measurement(line)
    keep = None if output is None else functools.partial(files.write_table, output)
    table = bench(suite, slow_peers=slow_peers, log=click.echo, keep=keep, **options)
    if output is not None:
        files.write_results(suite, table, output, measurement)

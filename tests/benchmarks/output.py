"""The files of ``--output``: a CSV of the table, what it was measured with, and its figure or a page."""

from pathlib import PurePosixPath

import pandas as pd

from aucdist.data.storage.files import write_bytes
from aucdist.errors import InputError
from aucdist.extras import load_optional
from benchmarks.about import Measurement
from benchmarks.page import render_bench_page
from benchmarks.suites import CURVE, Suite

SUFFIXES = (".csv", ".html")


def check_output(suite: Suite, output: str) -> None:
    """Check that the files of a suite can be written, before work starts.

    Raises InputError if the name ends in neither .csv nor .html, or a package that pages or figures need is not
        installed.
    """
    if PurePosixPath(output).suffix not in SUFFIXES:
        raise InputError(f"--output {output} ends in neither of {', '.join(SUFFIXES)}")
    if suite.figure is not None:
        load_optional("matplotlib")
    if output.endswith(".html"):
        load_optional("jinja2")


def write_table(output: str, results: pd.DataFrame) -> None:
    """Write the CSV file of a table, which may not be complete yet; `output` is that of `write_results`."""
    stem = output.removesuffix(PurePosixPath(output).suffix)
    write_bytes(f"{stem}.csv", results.to_csv(index=False).encode())


def write_results(suite: Suite, results: pd.DataFrame, output: str, measurement: Measurement) -> None:
    """Write the table of a suite as CSV, and beside it what it was measured with as JSON, and a page or else the figure.

    `output`: path or URL that ends in .html, for a page, or in .csv; the other files differ in their suffix.
    `measurement`: the run that has just ended.
    """
    stem = output.removesuffix(PurePosixPath(output).suffix)
    svg = None if suite.figure is None else suite.figure(results)
    write_table(output, results)
    write_bytes(f"{stem}.json", measurement.to_json(results.attrs["conditions"]).encode())
    if output.endswith(".html"):
        shown = results.drop(columns=CURVE, errors="ignore")
        page = render_bench_page(suite.name, results.attrs["conditions"], shown, svg)
        write_bytes(output, page.encode())
    elif svg is not None:
        write_bytes(f"{stem}.svg", svg.encode())

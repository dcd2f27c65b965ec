"""The files of `aucdist bench --output`: a CSV of the table, and its figure or a page of both."""

from pathlib import PurePosixPath

import pandas as pd

from aucdist.data.storage.files import write_bytes
from aucdist.errors import InputError
from aucdist.report.bench import render_bench_page
from flows.bench.suites import CURVE, figure

SUFFIXES = (".csv", ".html")


def check_name(output: str) -> None:
    """Raise an InputError if the name ends in neither .csv nor .html."""
    if PurePosixPath(output).suffix not in SUFFIXES:
        raise InputError(f"--output {output} ends in neither of {', '.join(SUFFIXES)}")


def write_results(suite: str, results: pd.DataFrame, output: str) -> None:
    """Write the table of a suite as CSV, and beside it a page, or else the figure if there is one.

    Parameters
    ----------
    suite : str
        A key of `suites.SUITES`.
    results : DataFrame
        What `suites.bench` returned.
    output : str
        Path or URL that ends in .html, for a page, or in .csv; the other files differ in their suffix.
    """
    stem, svg = output.removesuffix(PurePosixPath(output).suffix), figure(suite, results)
    write_bytes(f"{stem}.csv", results.to_csv(index=False).encode())
    if output.endswith(".html"):
        shown = results.drop(columns=CURVE, errors="ignore")
        page = render_bench_page(f"aucdist bench {suite}", results.attrs["conditions"], shown, svg)
        write_bytes(output, page.encode())
    elif svg is not None:
        write_bytes(f"{stem}.svg", svg.encode())

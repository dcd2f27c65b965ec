"""What `aucdist bench --output` writes: the table for reading on, and the picture by itself or a page of both for reading."""

from pathlib import PurePosixPath

import pandas as pd

from aucdist.data.storage.files import write_bytes
from aucdist.errors import InputError
from aucdist.report.bench import render
from flows.bench.suites import CURVE, picture

SUFFIXES = (".csv", ".html")


def check(output: str) -> None:
    """Raise an InputError if this is not the name of a page or of a table, before work starts."""
    if PurePosixPath(output).suffix not in SUFFIXES:
        raise InputError(f"--output {output} ends in neither of {', '.join(SUFFIXES)}")


def write(suite: str, found: pd.DataFrame, output: str) -> None:
    """Write the table of a suite as CSV, and beside it a page if `output` is its name, or else the picture if there is one.

    Parameters
    ----------
    suite : str
        A key of `suites.SUITES`.
    found : DataFrame
        What `suites.bench` returned.
    output : str
        Path or URL that ends in .csv or .html; the others have the same name but for its end.
    """
    stem, drawn = output.removesuffix(PurePosixPath(output).suffix), picture(suite, found)
    write_bytes(f"{stem}.csv", found.to_csv(index=False).encode())
    if output.endswith(".html"):
        shown = found.drop(columns=CURVE, errors="ignore")
        page = render(f"aucdist bench {suite}", found.attrs["conditions"], shown, drawn)
        write_bytes(output, page.encode())
    elif drawn is not None:
        write_bytes(f"{stem}.svg", drawn.encode())

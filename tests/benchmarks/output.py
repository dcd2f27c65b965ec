"""The files of ``--output``: a CSV of the table, and what it was measured with."""

from pathlib import PurePosixPath

import pandas as pd

from aucdist.data.storage.files import write_bytes
from aucdist.errors import InputError
from benchmarks.about import Measurement
from benchmarks.suites import Suite


def check_output(suite: Suite, output: str) -> None:
    """Check that the files of a suite can be written, before work starts.

    Raises InputError if the name does not end in .csv.
    """
    if PurePosixPath(output).suffix != ".csv":
        raise InputError(f"--output {output} does not end in .csv")


def write_table(output: str, results: pd.DataFrame) -> None:
    """Write the CSV file of a table, which may not be complete yet."""
    write_bytes(output, results.to_csv(index=False).encode())


def write_results(suite: Suite, results: pd.DataFrame, output: str, measurement: Measurement) -> None:
    """Write the table of a suite as CSV, and beside it what it was measured with as JSON.

    `output`: path or URL that ends in .csv; the other files differ in their suffix.
    `measurement`: the run that has just ended.
    """
    stem = output.removesuffix(".csv")
    write_table(output, results)
    write_bytes(f"{stem}.json", measurement.to_json(results.attrs["conditions"]).encode())

"""The data sets of the Fraud Dataset Benchmark (Grover et al. 2022) as files that `aucdist` trains on and scores.

    PYTHONPATH=tests python -m benchmarks.fraud write ccfraud ccfraud     # train.csv and test.csv
    PYTHONPATH=tests python -m benchmarks.fraud judge ccfraud/test.csv ccfraud/scores

The page "Outside benchmarks" has the commands between these two. The first needs that benchmark's package `fdb`, which
downloads the data with a Kaggle account.
"""

# The package is in no extra: it is installed from its repository.
# mypy: disable-error-code="import-not-found"

from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd

from aucdist.errors import InputError
from aucdist.metrics import recall_at_fpr_interval, roc_auc_interval
from flows.command import report_errors

LABEL, EVENT = "EVENT_LABEL", "EVENT_ID"
NO_FEATURES = (EVENT, "EVENT_TIMESTAMP", "LABEL_TIMESTAMP", "ENTITY_TYPE", "ENTITY_ID")
"""The columns that the benchmark adds; its own scripts leave them out as well."""
FPR = 0.01
"""The false positive rate at which the benchmark reads the recall."""


@click.group()
def app() -> None:
    """Run aucdist on the data sets of the benchmark."""


def write_rows(dataset: Any, folder: Path) -> None:
    """Write ``train.csv`` and ``test.csv``, both with the label.

    Parameters
    ----------
    dataset : fdb.datasets.FraudDatasetBenchmark
        Its `train` has the column EVENT_LABEL; its `test` has none, and `test_labels` has it for the same rows.
    folder : Path
        Made if it is not there.

    Raises
    ------
    InputError
        If the labels are of other rows than `test`.
    """
    labels = dataset.test_labels
    if list(labels[EVENT]) != list(dataset.test[EVENT]):
        raise InputError(f"{dataset.key}: the test labels are of other rows than the test rows, by their {EVENT}")
    folder.mkdir(parents=True, exist_ok=True)
    of_part = {"train": dataset.train, "test": dataset.test.assign(**{LABEL: labels[LABEL].to_numpy()})}
    for name, rows in of_part.items():
        rows.drop(columns=[c for c in NO_FEATURES if c in rows]).to_csv(folder / f"{name}.csv", index=False)


def judge_scores(test: Path, scores: Path) -> str:
    """Return the benchmark's two figures with 95 % intervals: the AUC, and the recall at a false positive rate of 0.01.

    Parameters
    ----------
    test : Path
        The file of `write_rows`; the rarer label is the positive one.
    scores : Path
        The folder that `aucdist score` wrote for it.
    """
    labels = pd.read_csv(test, usecols=[LABEL], dtype=str)[LABEL]
    table = pd.read_parquet(scores).sort_values("row_id")
    if len(table) != len(labels):
        raise InputError(f"{scores} has {len(table)} scores, and {test} {len(labels)} rows")
    y, score = (labels == labels.value_counts().idxmin()).to_numpy(), table["score"].to_numpy()
    auc, recall = roc_auc_interval(y, score), recall_at_fpr_interval(y, score, FPR)
    return (
        f"{len(y)} test rows, {np.count_nonzero(y)} positives: AUC {auc.value:.3f} ({auc.low:.3f} to {auc.high:.3f}), "
        f"recall at {FPR:g} {recall.value:.3f} ({recall.low:.3f} to {recall.high:.3f})"
    )


@app.command()
@click.argument("key")
@click.argument("folder", type=click.Path(path_type=Path))
def write(key: str, folder: Path) -> None:
    """Write the rows of a data set, such as ccfraud, as train.csv and test.csv."""
    with report_errors(False):
        try:
            from fdb.datasets import FraudDatasetBenchmark
        except ImportError as error:
            raise InputError(
                f"the package fdb cannot be imported ({error}): the page says where it comes from"
            ) from None
        write_rows(FraudDatasetBenchmark(key=key), folder)


@app.command()
@click.argument("test", type=click.Path(path_type=Path))
@click.argument("scores", type=click.Path(path_type=Path))
def judge(test: Path, scores: Path) -> None:
    """Print the AUC, and the recall at a false positive rate of 0.01, of scores of test.csv."""
    with report_errors(False):
        click.echo(judge_scores(test, scores))


if __name__ == "__main__":
    app()

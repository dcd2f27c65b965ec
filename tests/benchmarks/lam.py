"""The suite `lam`: what each of five values of `lam` costs on the tables of the suite `auto`, and on a large rare class.

Tables are read from AUCDIST_DATA.
"""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import average_precision_score, roc_auc_score

from aucdist.data.storage.urls import data_root
from aucdist.estimators import PairwiseHingeClassifier
from benchmarks.auto import NAMES, drawn, table, with_medians
from benchmarks.common import TEST_SHARE, Row

LAMS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
MAPS = {"none": None, "bins": "bins"}
MAX_ROWS, SPLITS = 60_000, 3
COVTYPE = "covtype, class 4"
CONDITIONS = f"{TEST_SHARE:.0%} of the rows are held out, by class; at most {MAX_ROWS:,} training rows; one thread"


def lam(slow_peers: bool, splits: int = SPLITS) -> Iterator[Row]:
    """Yield a row for each table, split and map, with the test AUC and average precision of each value of `lam`.

    Missing values are the median of their column in the training rows, because fits without a map accept none.
    """
    for name in (COVTYPE, *NAMES):
        X, y = rows_of(name)
        for seed in range(splits):
            train, test = drawn(y, seed, TEST_SHARE, MAX_ROWS)
            scaled = with_medians(X, train)
            for title, features in MAPS.items():
                row: Row = {"table": name, "split": seed, "rows": len(train), "features": X.shape[1]}
                row |= {"positives": int(y[train].sum()), "map": title}
                yield row | figures(features, scaled, y, train, test)


def rows_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return features and labels of a table."""
    if name != COVTYPE:
        return table(name)
    frame = pd.read_csv(data_root() / "uci" / "covtype-ramp-test.csv.xz")
    y = (frame.pop("Cover_Type") == 4).to_numpy().astype(int)
    return frame.to_numpy(dtype=np.float64), y


def figures(features: Any, X: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> Row:
    """Return the figures of each value of `lam` on the test rows."""
    row: Row = {}
    for value in LAMS:
        model = PairwiseHingeClassifier(lam=value, features=features, random_state=0, n_jobs=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of few positives
            scores = model.fit(X[train], y[train]).decision_function(X[test])
        row[f"AUC {value:g}"] = float(roc_auc_score(y[test], scores))
        row[f"AP {value:g}"] = float(average_precision_score(y[test], scores))
    return row

"""The suite `rare`: aucdist, LightGBM, an EBM and logistic regression on real tables of at least 5,000 rows with a rare class.

Data are read from AUCDIST_DATA.
"""

# The peers are optional, and some have no type annotations.
# mypy: disable-error-code="import-not-found,import-untyped"

import json
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from aucdist.data.shards.reading import read
from aucdist.data.sources import find_source
from aucdist.data.storage.urls import data_root
from aucdist.estimators import PairwiseHingeClassifier
from aucdist.extras import load_optional
from benchmarks.auto import drawn, figures, with_medians
from benchmarks.common import TEST_SHARE, Row
from benchmarks.lam import COVTYPE, rows_of
from benchmarks.tree_systems import SETTINGS, tuned

SPLITS, MAX_ROWS, FOLDS = 5, 20_000, 5
CONDITIONS = (
    f"{TEST_SHARE:.0%} of the rows are held out, by class; at most {MAX_ROWS:,} training rows, so that an EBM ends; LightGBM's "
    f"{SETTINGS} settings are compared by the average precision of {FOLDS} folds of the training rows; all others have their "
    "defaults"
)
SCANS = "kddcup99, intrusions"
INTRUSIONS = (
    "ipsweep", "nmap", "portsweep", "satan", "ftp_write", "guess_passwd", "imap", "multihop", "phf", "spy", "warezclient",
    "warezmaster", "buffer_overflow", "loadmodule", "perl", "rootkit",
)  # fmt: skip
"""The attacks that are no floods."""
CATALOG = ("koil-poker", "koil-letter")
TABLES = ("aloi", "caravan", "fraud-oracle", "promotion")
NAMES = (SCANS, COVTYPE, *CATALOG, *TABLES)


def rare(slow_peers: bool, splits: int = SPLITS) -> Iterator[Row]:
    """Yield a row for each split of each table, all first splits first.

    Parameters
    ----------
    slow_peers : bool
        Also explainable boosting machines.
    splits : int
        Of each table.
    """
    tables = {name: features_and_labels(name) for name in NAMES}
    for seed in range(splits):
        for name, (X, y) in tables.items():
            train, test = drawn(y, seed, TEST_SHARE, MAX_ROWS)
            row: Row = {"table": name, "split": seed, "rows": len(train), "features": X.shape[1]}
            row["positives"] = int(y[train].sum())
            yield row | measured(with_medians(X, train), y, train, test, slow_peers)


def features_and_labels(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return features as float64, with 0/1 for categories, and labels 0 and 1."""
    if name == SCANS:
        path = data_root() / "uci" / "kddcup.data_10_percent.xz"
        frame = pd.read_csv(path, header=None).drop_duplicates()
        y = frame.pop(41).str.removesuffix(".").isin(INTRUSIONS).to_numpy().astype(int)
        return pd.get_dummies(frame, columns=[1, 2, 3], dtype=float).to_numpy(dtype=np.float64), y
    if name in CATALOG:
        block = read(find_source(name)).block
        return np.asarray(block.X, dtype=np.float64), (block.y > 0).astype(int)
    return rows_of(name)


def measured(X: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray, slow_peers: bool) -> Row:
    """Fit all systems to the training rows of a split, and return their figures on the test rows."""
    trees = load_optional("lightgbm").LGBMClassifier(n_jobs=1, random_state=0, verbosity=-1)
    ours = {
        "auto": PairwiseHingeClassifier(features="auto", random_state=0, n_jobs=1),
        "readable": PairwiseHingeClassifier(features={"map": "auto", "readable": True}, random_state=0, n_jobs=1),
    }
    systems: dict[str, Any] = {
        "logistic": LogisticRegression(max_iter=1000),
        **ours,
        "LightGBM": trees,
        "LightGBM tuned": tuned(trees, "average_precision", FOLDS),
    }
    if slow_peers:
        from interpret.glassbox import ExplainableBoostingClassifier

        systems["EBM"] = ExplainableBoostingClassifier(n_jobs=1, random_state=0)
    row: Row = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few positives
        for name, model in systems.items():
            decide = getattr(model, "decision_function", None)
            score = (
                decide
                if name != "EBM" and callable(decide)
                else lambda rows, model=model: model.predict_proba(rows)[:, 1]
            )
            row |= figures(name, model, X, y, train, test, score)
    return row | {f"chosen {name}": json.dumps(model.chosen_) for name, model in ours.items()}

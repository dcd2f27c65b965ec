"""The suite `auto`: `features: auto` beside the defaults of LightGBM and scikit-learn, on tables as people have them.

Tables are read from AUCDIST_DATA.
"""

# The peers are optional, and some have no type annotations.
# mypy: disable-error-code="import-untyped"

import json
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import train_test_split

from aucdist.data.shards.reading import read
from aucdist.data.sources import parse_source
from aucdist.data.storage.urls import data_root
from aucdist.estimators import PairwiseHingeClassifier
from aucdist.extras import load_optional
from benchmarks.common import TEST_SHARE, Row, chosen_names

MAX_ROWS, MIN_POSITIVES = 10_000, 50
FEW_MISSING = 20
"""A column with fewer missing values among the training rows has their median in place of them."""
SPLITS = 5
CONDITIONS = (
    f"{TEST_SHARE:.0%} of the rows are held out, by class; at most {MAX_ROWS:,} training rows; every system with its defaults, "
    "in one thread"
)

LABELS: dict[str, tuple[str, str | int, Any, dict[str, Any], tuple[str | int, ...]]] = {
    "aloi": ("aloi.csv.xz", "outlier", 1, {}, ()),
    "caravan": ("Caravan.csv", "Purchase", "Yes", {}, ()),
    "churn-telecom": ("churn80.csv", "Churn", True, {}, ()),
    "credit-default": ("UCI_Credit_Card.csv", "default.payment.next.month", 1, {}, ("ID",)),
    "fraud-oracle": ("fraud_oracle.csv", "FraudFound_P", 1, {"encoding": "utf-8-sig"}, ("PolicyNumber",)),
    "german": ("german.csv", 20, 2, {"header": None}, ()),
    "haberman": ("haberman.csv", 3, 2, {"header": None}, ()),
    "hr": ("hr.csv", "left", 1, {}, ()),
    "ionosphere": ("ionosphere.csv", 34, "b", {"header": None}, ()),
    "loan": ("loan.csv", "Loan_Status", 0, {"index_col": 0}, ("Loan_ID",)),
    "occupancy": ("occ_train.txt", "Occupancy", 1, {}, ("date",)),
    "promotion": ("promo_train.csv", "is_promoted", 1, {}, ("employee_id",)),
    "titanic": ("titanic.csv", "survived", 1, {}, ("alive",)),
}
"""Of each table its file, its label, the positive class, what pandas has to know, and columns that say the label or who it is."""
KEEL = (
    "car-good", "kr-vs-k-three_vs_eleven", "page-blocks0", "pima", "segment0", "vehicle1", "vehicle3", "winequality-red-4",
    "yeast1", "yeast3",
)  # fmt: skip
SIMULATED = {"simulated-1": 1, "simulated-2": 2}
"""Rows with interactions, and their seeds."""
NAMES = (*LABELS, *KEEL, *SIMULATED)


def table(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return features as float64, with NaN for missing values and 0/1 for categories, and labels 0 and 1."""
    if name in SIMULATED:
        return simulated(SIMULATED[name])
    if name in KEEL:
        file = str(data_root() / "keel" / f"{name}.dat")
        data = read(parse_source({"source": file, "format": "keel", "positive": "positive"}, name))
        return np.asarray(data.block.X, dtype=np.float64), (data.block.y > 0).astype(int)
    file, label, positive, options, dropped = LABELS[name]
    frame = pd.read_csv(data_root() / "tables" / file, **options).drop(columns=list(dropped))
    y = (frame.pop(label) == positive).to_numpy().astype(int)
    frame.columns = frame.columns.map(str)
    texts = list(frame.select_dtypes(exclude=["number", "bool"]).columns)
    return pd.get_dummies(frame, columns=texts, dtype=float).to_numpy(dtype=np.float64), y


def simulated(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return 6 000 rows whose score is made of two products and a straight line; 5 % are positive."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((6000, 12))
    score = 2.5 * X[:, 0] * X[:, 1] + 1.5 * np.abs(X[:, 2]) * (X[:, 3] > 0) + X[:, 4] + rng.standard_normal(6000)
    return X, (score > np.quantile(score, 0.95)).astype(int)


def auto(slow_peers: bool, only: str | None = None, splits: int = SPLITS) -> Iterator[Row]:
    """Yield a row for each split of each table, all first splits first.

    Parameters
    ----------
    slow_peers : bool
        There are none.
    only : str, optional
        Names of tables, separated by commas.
    splits : int
        Of each table.

    Raises
    ------
    InputError
        For another name.
    """
    names = chosen_names(only, NAMES, "table")
    for seed in range(splits):
        for name in names:
            yield measured(name, seed)


def measured(name: str, seed: int) -> Row:
    """Fit all systems to the training rows of a split, and return the row with their figures."""
    X, y = table(name)
    train, test = drawn(y, seed, TEST_SHARE, MAX_ROWS)
    row: Row = {
        "table": name,
        "split": seed,
        "rows": len(train),
        "features": X.shape[1],
        "positives": int(y[train].sum()),
    }
    if row["positives"] < MIN_POSITIVES:
        return row | {"note": f"left out: fewer than {MIN_POSITIVES} positives"}
    lightgbm = load_optional("lightgbm")
    peers = {
        "LightGBM": lightgbm.LGBMClassifier(n_jobs=1, verbosity=-1),
        "HGB": HistGradientBoostingClassifier(random_state=0),
    }
    ours = PairwiseHingeClassifier(features="auto", random_state=0, n_jobs=1)
    scaled = standardised(X, train)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few positives
        row |= figures("auto", ours, scaled, y, train, test, ours.decision_function)
        for peer, model in peers.items():
            row |= figures(peer, model, X, y, train, test, lambda rows, model=model: model.predict_proba(rows)[:, 1])
    return row | {"chosen": json.dumps(ours.chosen_), "note": ""}


def drawn(y: np.ndarray, seed: int, test_share: float, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return which rows are trained on, at most so many of them, and which are the test, both with the shares of the classes."""
    train, test = train_test_split(np.arange(len(y)), test_size=test_share, stratify=y, random_state=seed)
    if len(train) > most:
        train, _ = train_test_split(train, train_size=most, stratify=y[train], random_state=seed)
    return train, test


def standardised(X: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Return X with mean 0 and variance 1 over the training rows, and few missing values of a column filled in."""
    few = np.isnan(X[train]).sum(axis=0) < FEW_MISSING
    X = np.where(np.isnan(X) & few, np.nanmedian(X[train], axis=0), X)
    spread = np.nanstd(X[train], axis=0)
    return np.asarray((X - np.nanmean(X[train], axis=0)) / np.where(spread > 0, spread, 1.0))


def with_medians(X: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Return X standardised, with the median of the training rows in place of every missing value."""
    return standardised(np.where(np.isnan(X), np.nanmedian(X[train], axis=0), X), train)


def figures(
    system: str,
    model: Any,
    X: np.ndarray,
    y: np.ndarray,
    train: np.ndarray,
    test: np.ndarray,
    score: Callable[..., Any],
) -> Row:
    """Fit a model, and return its figures on the test rows, and the CPU seconds of the fit."""
    began = time.process_time()
    model.fit(X[train], y[train])
    seconds = time.process_time() - began
    scores = score(X[test])
    return {
        f"AUC {system}": float(roc_auc_score(y[test], scores)),
        f"AP {system}": float(average_precision_score(y[test], scores)),
        f"CPU s {system}": seconds,
    }

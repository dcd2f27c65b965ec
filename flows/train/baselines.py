"""What well-known models reach on the same split: a line in the report that tells whether the model is worth its trouble."""

import time
import warnings
from typing import Any

import numpy as np

from aucdist.errors import InputError
from aucdist.extras import load_optional
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.ranking import auc, average_precision
from flows.rows.rows import TrainTestRows

FEWEST_ROWS, MOST_VALUES = 100, 2**24
"""Of fewer training rows a baseline says nothing; more values would take longer than a line of a report is worth."""


def baselines(rows: TrainTestRows) -> list[dict[str, Any]]:
    """Return the test AUC and average precision of logistic regression on scaled features, and of LightGBM where it is installed.

    Both have the defaults of their libraries, and one thread. There are none without test rows, for several classes, and for rows
    that are not in this process, too few or too many.
    """
    if rows.tables is not None or rows.test is None or not (rows.train.are_here and rows.test.are_here):
        return []
    train, test = rows.train.block, rows.test.block
    if train.n_samples < FEWEST_ROWS or train.n_samples * train.n_features > MOST_VALUES:
        return []
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    sparse = hasattr(train.X, "tocsr")
    scaled = make_pipeline(SimpleImputer(strategy="median"), StandardScaler(with_mean=not sparse), LogisticRegression())
    models = [("Logistic regression", scaled, "logisticregression__sample_weight")]
    try:
        lightgbm = load_optional("lightgbm")
        model = lightgbm.LGBMClassifier(n_jobs=1, random_state=0, verbosity=-1, deterministic=True)
        models.append(("LightGBM", model, "sample_weight"))
    except InputError:  # it is not installed
        pass
    reached = []
    for name, model, weight in models:
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of rounds that were used up
            model.fit(train.X, train.y, **({} if train.weight is None else {weight: train.weight}))
            probability = np.asarray(model.predict_proba(test.X))[:, 1]
        counts = ScoreCounts.from_scores(test.y, probability, test.weight)
        reached.append(
            {
                "name": name,
                "test_auc": auc(counts),
                "average_precision": average_precision(counts),
                "seconds": time.perf_counter() - start,
            }
        )
    return reached

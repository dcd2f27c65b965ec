"""The suite `thresholds`: how many new negative rows a threshold for 5 % of the negatives flags, by the scores that set it.

Tables are read from AUCDIST_DATA.
"""

import warnings
from collections.abc import Iterator

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import LocalBlocks
from aucdist.estimators import PairwiseHingeClassifier
from aucdist.estimators.calibration import out_of_fold
from aucdist.estimators.scores import count_scores, map_for_model
from aucdist.metrics.decisions import threshold_at
from benchmarks.auto import NAMES, drawn, table, with_medians
from benchmarks.common import Row

MAPS = {"none": None, "bins": "bins", "bins and ten interactions": {"map": "bins", "interactions": 10}}
TARGET, TEST_SHARE, MAX_ROWS, SPLITS = 0.05, 0.4, 2_500, 4
CONDITIONS = (
    f"{TEST_SHARE:.0%} of the rows are held out, by class; at most {MAX_ROWS:,} training rows; lam 1e-3; one thread"
)


def thresholds(slow_peers: bool, splits: int = SPLITS) -> Iterator[Row]:
    """Yield a row for each table, split and map, with the share of the negative test rows above each threshold."""
    for name in NAMES:
        X, y = table(name)
        for seed in range(splits):
            train, test = drawn(y, seed, TEST_SHARE, MAX_ROWS)
            scaled = with_medians(X, train)
            rows = LocalBlocks([Block.of(scaled[train], np.where(y[train] > 0, 1, -1))])
            for title, features in MAPS.items():
                model = PairwiseHingeClassifier(features=features, random_state=0, n_jobs=1)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of few positives
                    model.fit(scaled[train], y[train])
                    unseen = out_of_fold(model, rows)
                seen = count_scores(map_for_model(model, rows), model.coef_[0])
                scores = model.decision_function(scaled[test][y[test] == 0]) - model.decision_intercept
                row: Row = {"table": name, "split": seed, "positives": int(y[train].sum()), "map": title}
                for scored, counts in (("training rows", seen), ("out of fold", unseen)):
                    row[scored] = float(np.mean(scores > threshold_at(counts, fpr=TARGET)))
                yield row

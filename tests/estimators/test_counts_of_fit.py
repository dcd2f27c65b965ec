"""The counts of the training scores: which fits return them, and that they stay small."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from aucdist import LinkClassifier, MarginMeanClassifier, PairwiseHingeClassifier
from aucdist.data.block import Block
from aucdist.engine.blocks import LocalBlocks
from aucdist.estimators.scores import count_scores
from aucdist.metrics import counts as counts_module
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.decisions import confusion
from aucdist.metrics.ranking import auc, auc_error

N = 600


def rows(weight: np.ndarray | None = None, n_blocks: int = 3) -> LocalBlocks:
    random = np.random.default_rng(0)
    X, y = random.normal(size=(N, 4)), np.where(random.random(N) < 0.2, 1, -1).astype(np.int8)
    X[y > 0] += 0.7
    return LocalBlocks(
        [
            Block.of(X[i], y[i], row_id=i, weight=None if weight is None else weight[i], index=number)
            for number, i in enumerate(np.array_split(np.arange(N), n_blocks))
        ]
    )


def same(a: ScoreCounts, b: ScoreCounts) -> bool:
    return all(getattr(a, key).tobytes() == getattr(b, key).tobytes() for key in ("values", "pos", "neg"))


@pytest.mark.parametrize("estimator", [PairwiseHingeClassifier(), MarginMeanClassifier(random_state=0)])
def test_a_fit_that_counts_scores_returns_the_counts(estimator):
    counts = estimator.fit_blocks(rows())
    assert counts is not None
    assert same(counts, count_scores(rows(), estimator.coef_[0]))


def test_a_fit_that_needs_no_counts_returns_none():
    assert LinkClassifier().fit_blocks(rows()) is None


def test_counts_without_the_weights_of_the_rows_are_not_returned():
    estimator = PairwiseHingeClassifier(solver="msgd", max_passes=2, random_state=0)
    with pytest.warns(ConvergenceWarning):
        assert estimator.fit_blocks(rows(np.full(N, 2.0))) is None


def test_many_scores_are_counted_in_cells_that_no_partition_changes(monkeypatch):
    monkeypatch.setattr(counts_module, "MOST_VALUES", 100)
    monkeypatch.setattr(counts_module, "MOST_CELLS", 64)
    estimator = PairwiseHingeClassifier()
    counts = estimator.fit_blocks(rows())
    assert counts.shift > 0
    assert len(counts.values) <= 64
    for n_blocks in (1, 2, 5, 60):
        assert same(counts, count_scores(rows(n_blocks=n_blocks), estimator.coef_[0]))
    whole = rows(n_blocks=1).reduce(_rows)
    X, y = whole["X"][0], whole["y"][0]
    predicted = np.where(estimator.predict(X) > 0, 1, -1)
    table = confusion(counts, estimator.raw_threshold)
    assert (table["tp"], table["fp"]) == (np.sum(predicted[y > 0] > 0), np.sum(predicted[y < 0] > 0))
    exact = ScoreCounts.from_scores(y, X @ estimator.coef_[0])
    assert 0 < abs(auc(counts) - auc(exact)) <= auc_error(counts)


def _rows(block, memory):
    return None, {"X": [block.X], "y": [block.y]}

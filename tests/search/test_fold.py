"""One fold of a search: rows are mapped once for all models along lam."""

import numpy as np
import pytest

from aucdist import PairwiseHingeClassifier
from aucdist.data.block import Block
from aucdist.engine.blocks import LocalBlocks
from aucdist.maps.bins import BinMap
from aucdist.metrics.measures import find_measure
from aucdist.search.fold import score_path
from aucdist.search.mask import masked_blocks


@pytest.mark.parametrize("metric", ["auc", "expected_cost@1,5"])
def test_rows_are_mapped_once_for_all_values_of_lam(metric, monkeypatch):
    r = np.random.default_rng(0)
    X = r.normal(size=(400, 3))
    blocks = LocalBlocks([Block.of(X, np.where(X[:, 0] + r.normal(size=400) > 1, 1, -1))])
    inside = r.random(400) < 0.7
    train, held_out = masked_blocks(blocks, inside), masked_blocks(blocks, ~inside)
    measure = find_measure(metric)
    sizes, encode = [], BinMap.encode
    monkeypatch.setattr(BinMap, "encode", lambda self, block: sizes.append(block.n_samples) or encode(self, block))
    points = [{"features": "bins", "lam": lam} for lam in (1e-1, 1e-2, 1e-3)]
    results = score_path(PairwiseHingeClassifier(tol=1e-6), points, train, held_out, measure)
    assert sizes.count((~inside).sum()) == 1
    assert sizes.count(inside.sum()) <= 2  # for the fit, and for the thresholds
    alone = [score_path(PairwiseHingeClassifier(tol=1e-6), [p], train, held_out, measure)[0]["value"] for p in points]
    np.testing.assert_allclose([one["value"] for one in results], alone, atol=2e-2)

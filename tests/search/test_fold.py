"""One fold of a search: rows are mapped once for all models along lam."""

from functools import partial

import numpy as np
import pytest

from aucdist import PairwiseHingeClassifier
from aucdist.data.block import Block
from aucdist.data.label_sets import LabelSets
from aucdist.engine.blocks import LocalBlocks
from aucdist.engine.view import ClassBlocks
from aucdist.maps.bins import BinExpander, BinMap
from aucdist.metrics.measures import find_measure
from aucdist.search.fold import score_path
from aucdist.search.folds import masked_blocks


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


def test_a_path_ends_at_the_first_value_that_is_not_better():
    r = np.random.default_rng(4)
    X = r.normal(size=(300, 30))
    blocks = LocalBlocks([Block.of(X, np.where(X[:, 0] + r.normal(size=300) > 1, 1, -1))])
    inside = r.random(300) < 0.5
    train, held_out = masked_blocks(blocks, inside), masked_blocks(blocks, ~inside)
    estimator, measure = PairwiseHingeClassifier(tol=1e-6), find_measure("auc")
    points = [{"lam": lam} for lam in (1.0, 1e-1, 1e-2, 1e-3, 1e-4)]
    values = [result["value"] for result in score_path(estimator, points, train, held_out, measure)]
    end = next(k for k in range(1, 5) if values[k] <= max(values[:k]))  # it overfits for a small lam
    ended = score_path(estimator, points, train, held_out, measure, n_always=2)
    assert [result.get("value") for result in ended] == values[: end + 1] + [None] * (4 - end)
    assert 0.0 < ended[0]["average_precision"] < 1.0
    assert (
        len([result for result in score_path(estimator, points, train, held_out, measure, n_always=4) if result]) >= 4
    )


@pytest.mark.parametrize("features", ["bins", {"map": "bins", "pairs": 2}, {"map": "nystroem", "landmarks": 8}, None])
def test_a_map_without_labels_is_fitted_once_for_all_classes(features, monkeypatch):
    r = np.random.default_rng(1)
    X = r.normal(size=(600, 3))
    codes = np.argmax(X + 0.3 * r.normal(size=(600, 3)), axis=1).astype(np.int32)
    blocks = [
        Block.of(X[side], np.where(codes[side] == 0, 1, -1), code=codes[side], row_id=side, index=index)
        for index, side in enumerate(np.array_split(np.arange(600), 2))
    ]
    rows = ClassBlocks(LocalBlocks(blocks), LabelSets.of_classes(["a", "b", "c"]))
    inside = r.random(600) < 0.7
    train, held_out = (rows.then(partial(masked_blocks, inside=side)) for side in (inside, ~inside))
    fits, sizes, fit, encode = [], [], BinExpander.fit_blocks, BinMap.encode
    estimator, measure = PairwiseHingeClassifier(tol=1e-6, random_state=0), find_measure("auc")
    points = [{"features": features, "lam": lam} for lam in (1e-1, 1e-2)]
    alone = [score_path(estimator, points, train.of_class(k), held_out.of_class(k), measure) for k in range(3)]
    monkeypatch.setattr(BinExpander, "fit_blocks", lambda self, *args: fits.append(1) or fit(self, *args))
    monkeypatch.setattr(BinMap, "encode", lambda self, block: sizes.append(block.n_samples) or encode(self, block))
    together = score_path(estimator, points, train, held_out, measure)
    for i, result in enumerate(together):
        assert result["classes"] == [of_class[i]["value"] for of_class in alone]  # to the last bit
        assert result["passes"] == sum(of_class[i]["passes"] for of_class in alone)
    if features == "bins":
        assert len(fits) == 1
        assert sum(sizes) == 600
    elif isinstance(features, dict) and features["map"] == "bins":
        assert len(fits) == 3

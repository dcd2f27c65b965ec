from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from aucdist.data.block import Block
from aucdist.data.dataset import Schema
from aucdist.data.serialization import serialize
from aucdist.engine.blocks import LocalBlocks
from aucdist.errors import InputError
from aucdist.kernels.rows import project
from aucdist.maps import BinExpander, map_from_bytes
from aucdist.maps.explain import additive, contribution_names, contributions
from aucdist.report.sections import additive_section


def rows(n=900, seed=0):
    r = np.random.default_rng(seed)
    X = np.column_stack(
        (r.normal(size=n), r.integers(0, 4, n), np.full(n, 2.0), r.exponential(size=n), r.normal(size=n))
    )
    X[::9, 3] = np.nan
    y = np.where(X[:, 0] * X[:, 4] + 0.2 * r.normal(size=n) > 0.0, 1, -1)
    return X, y


@pytest.fixture(scope="module")
def model():
    X, y = rows()
    fitted = BinExpander(bins=40, interactions=3).fit_blocks(LocalBlocks([Block.of(X, y)]))
    assert len(fitted.interactions) == 3
    return fitted, np.random.default_rng(1).normal(size=fitted.n_features_out)


def test_contributions_add_up_to_the_score(model):
    fitted, w = model
    X, y = rows(seed=4)
    block = Block.of(X, y)
    scores = np.empty(len(X))
    project(fitted.map_block(block).rows, w, scores)
    parts = additive(fitted, w, 0.7)
    adds = contributions(fitted, parts, block)
    assert adds.shape == (len(X), 4 + 3)
    np.testing.assert_allclose(adds.sum(axis=1) + parts.constant, scores + 0.7, rtol=1e-11, atol=1e-11)
    assert contribution_names(["a", "b", "c", "d", "e"], fitted)[:4] == ["a", "b", "d", "e"]


def test_shapes_are_centred_and_in_the_features_units(model):
    fitted, w = model
    X, y = rows()
    parts = additive(fitted, w)
    adds = contributions(fitted, parts, Block.of(X, y))
    for k, shape in enumerate(parts.shapes):
        x = X[:, shape.feature]
        there = ~np.isnan(x)
        np.testing.assert_array_equal(adds[there, k], shape.values[np.searchsorted(shape.edges, x[there])])
        assert adds[there, k].mean() == pytest.approx(0.0, abs=1e-12)
        assert adds[there, k].std() == pytest.approx(shape.spread, rel=1e-9)
        assert (shape.missing is not None) == (not there.all())
        if shape.missing is not None:
            assert (adds[~there, k] == shape.missing).all()


def test_pairs_say_nothing_of_one_feature_alone(model):
    fitted, w = model
    X, y = rows()
    parts = additive(fitted, w)
    adds = contributions(fitted, parts, Block.of(X, y))
    for k, pair in enumerate(parts.interactions):
        np.testing.assert_allclose(pair.shares[0] @ pair.values, 0.0, atol=1e-12)
        np.testing.assert_allclose(pair.values @ pair.shares[1], 0.0, atol=1e-12)
        at = []
        for j, edges, missing in zip(pair.features, pair.edges, pair.missing, strict=True):
            x = X[:, j]
            at.append(np.where(np.isnan(x), 0, np.searchsorted(edges, x) + missing))
        assert pair.values.shape == tuple(len(e) + 1 + m for e, m in zip(pair.edges, pair.missing, strict=True))
        np.testing.assert_array_equal(adds[:, 4 + k], pair.values[at[0], at[1]])


def test_points_run_from_nothing_to_the_total():
    X, y = rows()
    fitted = BinExpander(bins=10).fit_blocks(LocalBlocks([Block.of(X, y)]))
    w = np.random.default_rng(2).normal(size=fitted.n_features_out)
    parts = additive(fitted, w)
    points = points_of(parts)
    by_feature = points.groupby("feature")["points"]
    assert (by_feature.min() == 0.0).all()
    assert by_feature.max().sum() == pytest.approx(100.0, abs=0.3)
    assert points[points["values"].map(lambda values: values[0] == "missing")]["feature"].tolist() == ["d"]
    # Points rank rows as scores do, but for rounding.
    shape = parts.shapes[0]
    mine = points[points["feature"] == "a"]
    ends = pd.DataFrame([(values[0][0], values[-1][1]) for values in mine["values"]], mine.index, ["above", "up to"])
    scale = 100.0 / sum(np.ptp(s.bin_values) for s in parts.shapes)
    for x in X[:30, 0]:
        row = mine[(ends["above"] < x) & (x <= ends["up to"])]
        expected = (shape.values[np.searchsorted(shape.edges, x)] - shape.values.min()) * scale
        assert row["points"].item() == pytest.approx(expected, abs=0.051)
    assert mine["share"].sum() == pytest.approx(1.0)


def points_of(parts):
    section = additive_section(parts, Schema(tuple("abcde"), "y", ("1",), ("0",), {}), None, None, None, 100)
    return pd.DataFrame(section["points"], columns=["feature", "values", "points", "share"])


def test_a_model_of_nothing_has_no_points():
    fitted = BinExpander().fit_blocks(LocalBlocks([Block.of(*rows())]))
    assert points_of(additive(fitted, np.zeros(fitted.n_features_out))).empty


def test_a_map_keeps_the_smallest_and_the_largest_training_value():
    """Of all rows, not of the sample that the bins are made of; a map of an older version has none and still has shapes."""
    X, y = rows(3000)
    halves = [Block.of(X[:1000], y[:1000]), Block.of(X[1000:], y[1000:], index=1)]
    fitted = BinExpander(bins=8).fit_blocks(LocalBlocks(halves))
    np.testing.assert_array_equal(fitted.ranges, [np.nanmin(X, axis=0), np.nanmax(X, axis=0)])
    again = map_from_bytes(serialize(fitted))
    w = np.ones(fitted.n_features_out)
    for shape in additive(again, w).shapes:
        assert shape.extremes.tolist() == again.ranges[:, shape.feature].tolist()
        assert shape.distinct == (shape.feature == 1)  # whole numbers from 0 to 3
    older = map_from_bytes(serialize(replace(fitted, ranges=None)))
    for shape, known in zip(additive(older, w).shapes, additive(again, w).shapes, strict=True):
        np.testing.assert_array_equal(shape.values, known.values)
        assert np.isinf(shape.extremes).all()
        assert not shape.distinct
    with pytest.raises(InputError, match="one range for each feature"):
        map_from_bytes(serialize(replace(fitted, ranges=np.zeros((2, 4)))))

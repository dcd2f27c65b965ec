"""Feature maps with directions: no score falls where it must rise, checked on rows that differ in one feature only."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.fits import fitted, mapping, violations

from aucdist import PairwiseHingeClassifier
from aucdist.data.block import Block
from aucdist.data.preprocess import Preprocessor
from aucdist.data.serialization import serialize
from aucdist.engine.blocks import LocalBlocks
from aucdist.errors import InputError
from aucdist.export.portable import TreeSplit, forest
from aucdist.kernels.codes import expand
from aucdist.kernels.rows import project
from aucdist.maps import BinExpander, LeafExpander, map_from_bytes
from aucdist.maps.leaves import Forest, step_signs
from aucdist.solvers.signs import FREE, ZERO


def problem(seed: int, n: int = 160, missing: float = 0.1):
    r = np.random.default_rng(seed)
    X = np.round(r.normal(size=(n, 3)) * 10.0 ** r.integers(-2, 3, 3), int(r.integers(0, 3)))
    y = np.where(np.arange(n) < max(20, int(n * r.uniform(0.1, 0.5))), 1, -1)
    X[:, 0] += (y > 0) * r.normal()
    X[r.random((n, 3)) < missing] = np.nan
    signs = r.choice([-1, 0, 1], 3)
    signs[0] = signs[0] or 1
    return X, y, signs


def fit(features, X, y, signs, **options) -> PairwiseHingeClassifier:
    return fitted(PairwiseHingeClassifier(features=features, monotone=mapping(signs), max_passes=60, **options), X, y)


@settings(max_examples=20)
@given(
    seed=st.integers(0, 10**6), bins=st.sampled_from([2, 3, 20, 255]), linear=st.sampled_from(["keep", "drop"]),
    pairs=st.sampled_from([0, 2]), lam=st.sampled_from([1.0, 1e-2, 1e-4]),
)  # fmt: skip
def test_hats_become_ramps(seed, bins, linear, pairs, lam):
    X, y, signs = problem(seed)
    model = fit(
        {"map": "bins", "basis": "hat", "bins": bins, "linear": linear, "interactions": pairs}, X, y, signs, lam=lam
    )
    of_weights = model.feature_map_.signs(model.monotone_)
    assert not (np.where(of_weights == ZERO, 0, of_weights) * model.coef_[0] < 0.0).any()
    assert violations(model, X, signs, np.random.default_rng(seed)) == 0


def test_ramps_span_what_hats_do():
    X, y, _ = problem(0)
    blocks = LocalBlocks([Block.of(X, y)])
    expander = BinExpander(basis="hat", bins=40, linear="drop")
    hats, ramps = (expander.fit_blocks(blocks, d) for d in (None, np.array([1, 0, -1], dtype=np.int8)))
    assert ramps.names(["a", "b", "c"])[:2] == ["a missing", "a up to knot 1"]
    for k in (0, 2):
        of_hats, of_ramps = hats.parts[k].jumps, ramps.parts[k].jumps
        there = of_hats[1:]  # without the cell of missing values
        coef = np.linalg.lstsq(there, of_ramps[1:], rcond=None)[0]
        np.testing.assert_allclose(there @ coef, of_ramps[1:], atol=1e-12)
        assert np.linalg.matrix_rank(np.column_stack([of_ramps[1:], np.ones(len(there))])) == np.linalg.matrix_rank(
            there
        )
    np.testing.assert_array_equal(hats.parts[1].jumps, ramps.parts[1].jumps)
    with pytest.raises(InputError, match=r"feature 1 .* without a direction"):
        ramps.signs(np.array([1, 1, 0], dtype=np.int8))


def test_missing_values_keep_a_free_row_of_a_pair():
    X, y, _ = problem(1, n=2000)
    fitted = BinExpander(bins=8, interactions=3).fit_blocks(
        LocalBlocks([Block.of(X, y)]), np.array([1, 0, -1], dtype=np.int8)
    )
    signs = fitted.signs(np.array([1, 0, -1], dtype=np.int8))
    at = sum(part.jumps.shape[1] for part in fitted.parts[: len(fitted.used)])
    r = np.random.default_rng(0)
    w = np.abs(r.normal(size=len(signs))) * np.select([signs == ZERO, signs == FREE], [0.0, -1.0], signs)
    grids = np.split(expand(fitted.code_basis, w), fitted.code_basis.starts[1:-1])[len(fitted.used) :]
    seen = 0
    for (a, b), table in zip(fitted.interactions, grids, strict=True):
        grid = table.reshape(fitted.grid_size(a), fitted.grid_size(b))
        of_pair = signs[at : at + (grid.shape[0] - 1) * (grid.shape[1] - 1)].reshape(grid.shape[0] - 1, -1)
        at += of_pair.size
        assert of_pair[0, 0] == FREE  # beside missing values of both
        if (a, b) == (0, 2):
            assert (of_pair[1:, 0] == 1).all()
            assert (of_pair[0, 1:] == -1).all()
            assert (of_pair[1:, 1:] == ZERO).all()
            assert (np.diff(grid[1:], axis=0) >= 0.0).all()
            assert (np.diff(grid[:, 1:], axis=1) <= 0.0).all()
            seen += 1
        if (a, b) == (0, 1):
            assert (of_pair[0] == FREE).all()
            assert (of_pair[1:] == 1).all()
            assert (np.diff(grid[1:], axis=0) >= 0.0).all()
            assert (np.diff(grid[:2], axis=0) < 0.0).any()
            seen += 1
    assert seen == 2


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6), trees=st.sampled_from([1, 5, 30]), leaves=st.sampled_from([2, 4, 31]),
    lam=st.sampled_from([1.0, 1e-2, 1e-4]),
)  # fmt: skip
def test_leaves_keep_directions(seed, trees, leaves, lam):
    pytest.importorskip("lightgbm")
    X, y, signs = problem(seed)
    features = {"map": "leaves", "trees": trees, "leaves": leaves, "min_rows": 2, "learning_rate": 0.5}
    model = fit(features, X, y, signs, lam=lam)
    assert violations(model, X, signs, np.random.default_rng(seed)) == 0


def with_directions(**options):
    pytest.importorskip("lightgbm")
    X, y, _ = problem(3, n=600)
    directions = np.array([1, 0, 0], dtype=np.int8)
    return LeafExpander(trees=6, min_rows=5, **options).fit_blocks(LocalBlocks([Block.of(X, y)]), directions)


def test_trees_without_such_a_feature_keep_free_leaves():
    fitted = with_directions(leaves=2)
    signs, names = fitted.signs(fitted.directions), fitted.names(["a", "b", "c"])
    assert len(signs) == len(names) == fitted.n_features_out
    assert set(signs.tolist()) == {FREE, 1}
    for sign, name in zip(signs, names, strict=True):
        assert (" above " in name) == (sign != FREE)
    again = map_from_bytes(serialize(fitted))
    np.testing.assert_array_equal(again.code_basis.values, fitted.code_basis.values)
    np.testing.assert_array_equal(again.directions, fitted.directions)
    with pytest.raises(InputError, match="other monotonic constraints"):
        fitted.signs(-fitted.directions)
    with pytest.raises(InputError, match="not one direction for each feature"):
        map_from_bytes(serialize(replace(fitted, directions=np.array([3, 0, 0], dtype=np.int8))))


def test_trees_are_described_to_other_systems_with_the_steps_added_up():
    fitted = with_directions(leaves=8)
    w = np.random.default_rng(0).normal(size=fitted.n_features_out)
    X = problem(4)[0]
    scores = np.empty(len(X))
    project(fitted.map_block(Block.of(X, np.ones(len(X), dtype=np.int8))).rows, w, scores)
    trees = forest(fitted, w, Preprocessor((), "none", None, None))

    def reached(node, row) -> float:
        while isinstance(node, TreeSplit):
            x = row[node.feature]
            node = node.then if x <= node.at_most or (np.isnan(x) and node.missing_to_then) else node.otherwise
        return node

    sums = [sum(reached(tree, row) for tree in trees) for row in X]
    np.testing.assert_allclose(sums, scores, rtol=1e-12, atol=1e-12)


def chain(values, *, missing=2, default_left=True):
    """Return a tree of two splits in feature 0 and one in feature 1 between them, and the ranks of these leaves' values."""
    forest = Forest(
        np.array([0, 3]), np.array([0, 1, 0]), np.array([1.0, 5.0, 0.0]), np.full(3, missing, dtype=np.uint8),
        np.full(3, default_left), np.array([1, 2, -1]), np.array([-4, -3, -2]),
    )  # fmt: skip
    return forest, np.argsort(np.argsort(values))


UP = np.array([1, 0], dtype=np.int8)


def test_a_step_that_breaks_a_direction_is_0():
    # Leaves: 0 (x0 <= 0, x1 <= 5), 1 (0 < x0 <= 1, x1 <= 5), 2 (x0 <= 1, x1 > 5), 3 (x0 > 1).
    forest, ranks = chain([0.0, 1.0, 2.0, 3.0])
    assert step_signs(forest, 0, ranks, UP).tolist() == [1, 1, 1]
    forest, ranks = chain([1.0, 0.0, 2.0, 3.0])
    assert step_signs(forest, 0, ranks, UP).tolist() == [ZERO, 1, 1]
    assert step_signs(forest, 0, ranks, -UP).tolist() == [ZERO, ZERO, ZERO]
    forest, ranks = chain(
        [0.0, 2.0, 1.0, 3.0]
    )  # leaves 1 and 2 are apart in x1, so that no row passes from one to the other
    assert step_signs(forest, 0, ranks, UP).tolist() == [1, 1, 1]
    assert step_signs(forest, 0, chain([3.0, 2.0, 1.0, 0.0])[1], UP).tolist() == [ZERO, ZERO, ZERO]
    with pytest.raises(InputError, match="treats zeros as missing"):
        step_signs(chain([0.0, 1.0, 2.0, 3.0], missing=1)[0], 0, ranks, UP)


@given(st.integers(0, 10**6))
def test_sets_of_leaves_lose_no_row(seed):
    """Random trees with random values: each step that is kept rises wherever a feature moves in its direction."""
    r = np.random.default_rng(seed)
    n_splits = int(r.integers(1, 7))
    left, right, open_ends = np.zeros(n_splits, np.int64), np.zeros(n_splits, np.int64), []
    for k in range(n_splits):  # each split but the root replaces an end of an earlier one
        if k:
            side, parent = open_ends.pop(int(r.integers(len(open_ends))))
            side[parent] = k
        open_ends += [(left, k), (right, k)]
    for leaf, (side, parent) in enumerate(open_ends):
        side[parent] = -1 - leaf
    forest = Forest(
        np.array([0, n_splits]), r.integers(0, 3, n_splits), r.integers(-2, 3, n_splits).astype(float),
        r.choice([0, 2], n_splits).astype(np.uint8), r.random(n_splits) < 0.5, left, right,
    )  # fmt: skip
    directions = r.choice([-1, 0, 1], 3).astype(np.int8)
    ranks = np.argsort(np.argsort(r.integers(0, 4, n_splits + 1), kind="stable"))
    signs = step_signs(forest, 0, ranks, directions)
    rows = r.choice([-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, np.nan], (60, 3))
    for j in np.flatnonzero(directions):
        grid = np.repeat(rows, 7, axis=0)
        grid[:, j] = np.tile(np.arange(-3.0, 4.0), len(rows))
        steps = ranks[forest.codes(grid)[:, 0]][:, None] > np.flatnonzero(signs != ZERO)
        moves = np.diff(steps.reshape(len(rows), 7, -1).astype(int), axis=1)
        assert (directions[j] * moves >= 0).all()

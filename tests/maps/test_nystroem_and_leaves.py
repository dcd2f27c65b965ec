import numpy as np
import pytest
from scipy.spatial.distance import pdist
from support.small_sets import blocks_of

from aucdist import PairwiseHingeClassifier
from aucdist.data.block import Block, into_blocks, matrix_of
from aucdist.engine.blocks import LocalBlocks
from aucdist.errors import InputError
from aucdist.kernels.rows import project
from aucdist.maps import LeafExpander, NystroemMap
from aucdist.maps.binning import sample_by_class
from aucdist.maps.nystroem import landmark_rows


def ring(n=600, seed=0):
    r = np.random.default_rng(seed)
    X = r.normal(size=(n, 3)) * [1.0, 2.0, 1.0] + [0.0, 5.0, 0.0]
    return X, np.where(np.hypot(X[:, 0], (X[:, 1] - 5) / 2) > 1.6, 1, -1)


def test_with_all_rows_as_landmarks_the_products_are_the_kernel():
    X, y = ring(80)
    expander = NystroemMap(landmarks=1000, linear="drop", sigma=1.3).fit(
        np.vstack((X, X[::-1])), np.concatenate((y, y[::-1]))
    )
    fitted = expander.map_
    # Landmarks are half of the rows: some of them twice, some not at all; among landmarks the products are exact.
    landmarks = fitted.landmarks / fitted.factor + fitted.shift
    Z = expander.transform(landmarks)
    squares = ((fitted.landmarks[:, None] - fitted.landmarks[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(Z @ Z.T / 9.0, np.exp(-squares / 1.3**2), atol=2e-3)


def test_named_widths_are_those_of_the_median_distance():
    X, y = ring()
    fitted = {width: NystroemMap(sigma=width).fit(X, y).map_ for width in ("median", "half-median")}
    landmarks = fitted["median"].landmarks
    np.testing.assert_array_equal(landmarks, fitted["half-median"].landmarks)
    median = np.median(pdist(landmarks))
    assert fitted["median"].sigma == pytest.approx(np.sqrt(2) * median, rel=0.02)
    assert fitted["half-median"].sigma == pytest.approx(median / 2, rel=0.02)


def test_landmarks_are_of_both_classes_and_do_not_depend_on_the_blocks():
    X, y = ring()
    y[:] = -1
    y[:30] = 1
    for most, pos in ((20, 10), (100, 30), (1000, 30)):
        landmarks = landmark_rows(blocks_of(X, y, 1), most)
        assert (landmarks.y > 0).sum() == pos
        assert landmarks.n_samples == min(most, 300)
        other = landmark_rows(blocks_of(X, y, 4), most)
        np.testing.assert_array_equal(np.sort(landmarks.row_id), np.sort(other.row_id))


def test_rows_of_no_weight_are_no_landmarks():
    X, y = ring()
    weight = (np.arange(600) % 2).astype(float)
    masked = NystroemMap(landmarks=40).fit_blocks(blocks_of(X, y, 2, weight))
    assert not set(map(tuple, X[::2])) & set(map(tuple, masked.landmarks / masked.factor + masked.shift))


def test_leaves_are_those_of_the_trees():
    lightgbm = pytest.importorskip("lightgbm")
    X, y = ring()
    expander = LeafExpander(trees=7, leaves=9).fit(X, y)
    Z = expander.transform(X)
    leaves = lightgbm.Booster(model_str=expander.map_.model).predict(X, pred_leaf=True)
    np.testing.assert_array_equal(expander.map_.map_block(Block.of(X, y)).rows.codes, leaves)
    np.testing.assert_allclose(Z.sum(axis=1), 7 * np.sqrt(10 / 7), rtol=1e-12)
    names = expander.get_feature_names_out()
    assert names[Z[0].nonzero()[1][2]] == f"tree 2 leaf {leaves[0, 2]}"


@pytest.mark.parametrize("drawn", [{}, {"row_fraction": 0.5, "feature_fraction": 0.5}])
def test_the_score_of_the_trees_is_one_more_column(drawn):
    lightgbm = pytest.importorskip("lightgbm")
    X, y = ring()
    expander = LeafExpander(trees=7, leaves=9, forest_score=3.0, **drawn).fit(X, y)
    Z = expander.transform(X)
    score = lightgbm.Booster(model_str=expander.map_.model).predict(X, raw_score=True)
    np.testing.assert_allclose(Z[:, [-1]].toarray()[:, 0], score * 3.0 / np.std(score), rtol=1e-12)
    assert expander.get_feature_names_out()[-1] == "score of the trees"
    without = LeafExpander(trees=7, leaves=9, **drawn).fit_transform(X, y)
    assert (Z[:, :-1] != without).nnz == 0
    rows, w, table = (
        expander.map_.map_block(Block.of(X, y)).rows,
        np.arange(Z.shape[1], dtype=np.float64),
        np.empty(len(y)),
    )
    project(rows, w, table)
    np.testing.assert_allclose(table, Z @ w, rtol=1e-12)


def test_a_column_of_the_score_whose_weight_is_free_makes_the_model_that_of_the_trees():
    lightgbm = pytest.importorskip("lightgbm")
    X, y = ring(2000)
    features = {"map": "leaves", "trees": 10, "leaves": 5, "forest_score": 1e4}
    model = PairwiseHingeClassifier(lam=10.0, features=features).fit(X, y)
    assert model.certificate_.status == "converged"
    score = lightgbm.Booster(model_str=model.feature_map_.model).predict(X, raw_score=True)
    assert np.corrcoef(model.decision_function(X), score)[0, 1] > 0.999


def test_there_is_no_such_column_with_directions():
    pytest.importorskip("lightgbm")
    X, y = ring()
    features = {"map": "leaves", "forest_score": 1.0}
    with pytest.raises(InputError, match="cannot keep the directions"):
        PairwiseHingeClassifier(features=features, monotone={0: "increasing"}).fit(X, y)


def test_trees_within_groups_do_not_split_by_what_a_group_is(monkeypatch):
    pytest.importorskip("lightgbm")
    r = np.random.default_rng(2)
    X, group = r.normal(size=(900, 3)), r.integers(0, 30, 900)
    X[:, 2] = r.normal(size=30)[group]
    grade = X[:, 0] + 3 * X[:, 2] + r.normal(size=900)  # more grades than LightGBM's rankers take
    whole = Block.of(X, np.where(grade > 0, 1, -1), group=group, grade=grade)
    expander = LeafExpander(trees=10, leaves=2, within_groups=True)

    def splits(leaves, n_blocks=1):
        text = leaves.fit_blocks(LocalBlocks(into_blocks(whole, n_blocks))).model
        return {
            feature for line in text.splitlines() if line.startswith("split_feature=") for feature in line[14:].split()
        }

    assert splits(expander) == splits(expander, 4) <= {"0", "1"}
    assert "2" in splits(LeafExpander(trees=10, leaves=2))
    monkeypatch.setattr("aucdist.maps.leaves.MAX_ROWS_OF_QUERY", 12)  # parts of a group are within it
    assert splits(expander) <= {"0", "1"}
    with pytest.raises(InputError, match="needs rows with groups"):
        expander.fit(X, whole.y)


def test_a_sample_for_pairs_within_groups_has_whole_groups_unless_these_are_few():
    r = np.random.default_rng(3)
    y, group = np.where(r.random(4000) < 0.2, 1, -1), np.arange(4000) // 10
    for n_blocks in (1, 3):
        blocks = LocalBlocks(into_blocks(Block.of(np.zeros((4000, 1)), y, group=group), n_blocks))
        drawn = sample_by_class(blocks, 1000, whole_groups=True)
        assert (np.unique(drawn.group, return_counts=True)[1] == 10).all()
        assert 1600 < drawn.n_samples < 2400
    few = LocalBlocks([Block.of(np.zeros((4000, 1)), y, group=group // 40)])
    assert sample_by_class(few, 1000, whole_groups=True).n_samples == sample_by_class(few, 1000).n_samples


def test_trees_that_never_split_have_no_code():
    pytest.importorskip("lightgbm")
    X, y = ring(30)
    fitted = LeafExpander(trees=3, min_rows=20).fit_blocks(blocks_of(X, y))
    assert fitted.n_features_out == 0
    assert matrix_of(fitted.map_block(Block.of(X, y)).rows).shape == (30, 0)


@pytest.mark.parametrize(
    ("expander", "message"),
    [
        (NystroemMap(landmarks=1), "landmarks must be .*; got 1"),
        (NystroemMap(sigma=0), "sigma must be .*; got 0"),
        (NystroemMap(sigma="mean"), "sigma must be a number above 0 and finite, 'median' or 'half-median'; got 'mean'"),
        (NystroemMap(linear="yes"), "unknown linear 'yes'"),
        (LeafExpander(leaves=256), "leaves must be an integer from 2 to 255.*; got 256"),
        (LeafExpander(learning_rate=2.0), "learning_rate must be .*; got 2.0"),
        (LeafExpander(within_groups="yes"), "within_groups must be .*; got 'yes'"),
    ],
)
def test_what_is_out_of_range_is_refused(expander, message):
    with pytest.raises(InputError, match=message):
        expander.fit(*ring())

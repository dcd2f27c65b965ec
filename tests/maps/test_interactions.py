import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from support.small_sets import blocks_of

from aucdist.data.block import Block
from aucdist.errors import InputError
from aucdist.estimators import PairwiseHingeClassifier
from aucdist.kernels.rows import project
from aucdist.maps import BinExpander
from aucdist.maps.base import map_blocks
from aucdist.maps.bins import CELLS_COMPARED, PRIOR_ROWS, interaction_scores, merge_bins
from aucdist.maps.explain import reasons
from aucdist.pairs.cutting_planes import AllPairs
from aucdist.pairs.groups import pair_groups
from aucdist.solvers.base import solve


def checkerboard(n=1500, seed=0, rare=False):
    r = np.random.default_rng(seed)
    X = r.normal(size=(n, 5))
    X[:, 4] = r.integers(0, 3, n)
    score = np.sign(X[:, 1] * X[:, 3]) + 0.5 * X[:, 0] + 0.3 * r.normal(size=n)
    return X, np.where(score > (1.2 if rare else 0.0), 1, -1)


def slow_scores(X, y, weight, fitted, w, tables, group):
    """Return each pair's score, by loops over pairs of rows of one group and cells."""
    block = fitted.map_block(Block.of(X, y))
    s = np.empty(len(y))
    project(block.rows, w, s)
    pos, neg = np.flatnonzero(y > 0), np.flatnonzero(y < 0)
    coefs, h, total = np.zeros(len(y)), np.zeros(len(y)), 0.0
    for i in pos:
        for j in neg[group[neg] == group[i]]:
            pair = weight[i] * weight[j]
            total += pair
            h[[i, j]] += 0.5 * pair
            if s[i] - s[j] < 1.0:
                coefs[i] += pair
                coefs[j] -= pair
    coefs, h = coefs / total, h / total
    scores = []
    for a in range(1, X.shape[1]):
        for b in range(a):
            G, H = np.zeros((CELLS_COMPARED, CELLS_COMPARED)), np.zeros((CELLS_COMPARED, CELLS_COMPARED))
            for i, row in enumerate(block.rows.codes):
                at = tables[a][row[a]], tables[b][row[b]]
                G[at] += coefs[i]
                H[at] += h[i]
            prior = PRIOR_ROWS / len(y)
            own = sum((G.sum(axis=k) ** 2 / (H.sum(axis=k) + prior)).sum() for k in (0, 1))
            scores.append((G**2 / (H + prior)).sum() - own)
    return np.array(scores)


@pytest.mark.parametrize("rare", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_groups", [1, 20])
def test_scores_are_those_of_all_pairs_of_rows(rare, weighted, n_groups):
    X, y = checkerboard(150, rare=rare)
    r = np.random.default_rng(1)
    weight = r.integers(1, 4, 150).astype(float) if weighted else np.ones(150)
    group = r.integers(0, n_groups, 150)
    blocks = blocks_of(X, y, 3, weight if weighted else None, None if n_groups == 1 else group)
    fitted = BinExpander(bins=20).fit_blocks(blocks)
    w = r.normal(size=fitted.n_features_out)
    tables = {j: merge_bins(bins.shares, False, CELLS_COMPARED) for j, bins in enumerate(fitted.bins)}
    scores, twins = interaction_scores(map_blocks(blocks, fitted), w, tables, pair_groups(blocks))
    np.testing.assert_allclose(scores, slow_scores(X, y, weight, fitted, w, tables, group), rtol=1e-9, atol=1e-15)
    assert np.array_equal(twins, np.eye(5, dtype=bool))


def test_a_feature_without_values_is_not_among_those_of_the_largest_spread(monkeypatch):
    monkeypatch.setattr("aucdist.maps.bins.MAX_COMPARED", 4)
    X, y = checkerboard()
    expected = BinExpander(bins=8, interactions=1).fit(X, y).map_.interactions
    X = np.column_stack([X, np.full(len(X), np.nan)])  # such as one that began after the training rows
    assert np.array_equal(BinExpander(bins=8, interactions=1).fit(X, y).map_.interactions, expected)


def test_the_interaction_is_found_and_modelled():
    (X, y), (other, truth) = checkerboard(), checkerboard(seed=5)
    blocks = blocks_of(X, y, 2)
    expander = BinExpander(interactions=1).fit_blocks(blocks)
    np.testing.assert_array_equal(expander.interactions, [[1, 3]])
    auc = {}
    for pairs in (0, 1):
        fitted = BinExpander(interactions=pairs).fit_blocks(blocks)
        w = solve(AllPairs().rounds(map_blocks(blocks, fitted), 1e-3), tol=1e-2, max_passes=100).w
        out = np.empty(len(other))
        project(fitted.map_block(Block.of(other, truth)).rows, w, out)
        auc[pairs] = roc_auc_score(truth, out)
    assert auc[0] < 0.8
    assert auc[1] > 0.95


def test_an_interaction_is_modelled_once_if_columns_are_twins():
    X, y = checkerboard()
    r = np.random.default_rng(2)
    # columns 5 to 7: a copy of column 1, column 1 with noise, and column 3 in other units and the other direction
    twins = np.column_stack([X, X[:, 1], X[:, 1] + 0.05 * r.normal(size=len(X)), 32.0 - 1.8 * X[:, 3]])
    fitted = BinExpander(interactions=4).fit(twins, y).map_
    assert len(fitted.interactions) == 4
    kind = np.array([0, 1, 2, 3, 4, 1, 1, 3])  # the column that each is a twin of
    pairs = [tuple(sorted(kind[pair])) for pair in fitted.interactions]
    assert pairs[0] == (1, 3)
    assert len(set(pairs)) == 4


def test_a_column_that_is_related_to_another_one_is_no_twin():
    X, y = checkerboard()
    related = np.column_stack([X, X[:, 1] + 0.5 * np.random.default_rng(2).normal(size=len(X))])
    pairs = BinExpander(interactions=6).fit(related, y).map_.interactions.tolist()
    assert [1, 3] in pairs
    assert [3, 5] in pairs


def test_a_grid_counts_both_directions():
    X, y = checkerboard()
    X[:40, 1] = np.nan
    expander = BinExpander(interactions=1, bins=40).fit(X, y)
    fitted = expander.map_
    assert fitted.interactions.tolist() == [[1, 3]]
    names, Z = expander.get_feature_names_out(), expander.transform(X).toarray()
    codes = fitted.codes(Block.of(X, y))
    u, v = fitted.grid(1)[codes[:, 1]], fitted.grid(3)[codes[:, 3]]
    assert (u[:40] == 0).all()  # missing values have the first row
    assert (u[40:] > 0).all()
    own = [k for k, name in enumerate(names) if "&" in name]
    assert len(own) == 15 * 15
    assert names[own[0]] == "x1 & x3 corner 1, 1"
    expected = np.array([[(u >= a) & (v >= b) for b in range(1, 16)] for a in range(1, 16)]).reshape(225, -1).T / 15.0
    np.testing.assert_allclose(Z[:, own], expected, rtol=1e-14)


def test_coarse_cells_keep_neighbours_together():
    shares = np.random.default_rng(0).random(64)
    for missing in (False, True):
        cells = merge_bins(shares / shares.sum(), missing, 16)
        assert len(cells) == 64 + missing
        assert cells.max() == 15
        assert set(np.diff(cells.astype(int))) <= {0, 1}
        assert (cells == 0).sum() == 1 or not missing
    assert merge_bins(np.ones(3) / 3, True, 16).tolist() == [0, 1, 2, 3]


def test_no_more_interactions_than_say_anything():
    X, y = checkerboard(400)
    fitted = BinExpander(interactions=50).fit_blocks(blocks_of(X, y))
    assert 1 <= len(fitted.interactions) <= 10


def test_one_class_is_refused():
    with pytest.raises(InputError, match="one class only"):
        BinExpander(interactions=1).fit_blocks(blocks_of(np.eye(4), np.ones(4)))


def test_interactions_are_measured_within_groups():
    """Across groups two features that say the group interact most; within groups another pair does."""
    r = np.random.default_rng(3)
    group = r.integers(0, 40, 2400)
    X = r.normal(size=(2400, 4))
    of_group = r.normal(size=(40, 2))[group]
    X[:, 2:] = of_group
    score = np.sign(X[:, 0] * X[:, 1]) + 4.0 * np.sign(of_group[:, 0] * of_group[:, 1]) + 0.3 * r.normal(size=2400)
    y = np.where(score > np.quantile(score, 0.6), 1, -1)
    pairs = {}
    for name, groups in (("all", None), ("within", group)):
        pairs[name] = BinExpander(interactions=1).fit_blocks(blocks_of(X, y, 2, group=groups)).interactions.tolist()
    assert pairs == {"all": [[2, 3]], "within": [[0, 1]]}


def test_reasons_count_all_categories_of_two_columns_as_one():
    rng = np.random.default_rng(0)
    n, categories = 3000, {"A": ("a", "b", "c", "rare"), "B": ("x", "y")}
    first, second, z = rng.choice(list("abc"), n).astype(object), rng.choice(["x", "y"], n), rng.normal(size=n)
    first[:4] = "rare"
    score = (
        1.5 * ((first == "a") & (second == "x")) + 1.0 * ((first == "b") & (z > 0)) + 0.5 * z - 5.0 * (first == "rare")
    )
    columns = {"A": first, "B": second}
    names = ["z", *(f"{column}={value}" for column, values in categories.items() for value in values)]

    def rows(z, columns):
        indicators = [columns[column] == value for column, values in categories.items() for value in values]
        return np.column_stack([z, *indicators]).astype(float)

    X = rows(z, columns)
    model = PairwiseHingeClassifier(features={"map": "bins", "bins": 8, "interactions": 6}, lam=1e-3)
    model.fit(X, np.where(score + rng.normal(size=n) > 1.5, 1, -1))
    fitted, w = model.feature_map_, model.coef_[0]
    assert sum(names[a][0] == "A" and names[b][0] == "B" for a, b in fitted.interactions) > 1

    def reasons_of(X):
        return reasons(Block.of(X, np.ones(len(X), dtype=np.int8)), names, categories, w, fitted)

    of_rows = reasons_of(X)
    parts = list(of_rows.above_average.columns)
    assert parts[:3] == ["z", "A", "B"]
    assert len(parts) == len(set(parts)) < 3 + len(fitted.interactions)
    assert "A & B" in parts
    assert np.ptp(of_rows.above_average.sum(axis=1) - model.decision_function(X)) < 1e-12
    # The most favourable value of each column and each pair is that of some row, and it is none of four rows in 3,000.
    every = [(v, a, b) for v in np.quantile(z, np.linspace(0, 1, 200)) for a in "abc" for b in "xy"]
    z, first, second = (np.array(column) for column in zip(*every, strict=True))
    np.testing.assert_allclose(
        reasons_of(rows(z, {"A": first, "B": second})).above_most_favourable.min(axis=0), 0.0, atol=1e-12
    )
    np.testing.assert_array_equal(of_rows.above_most_favourable["A"].head(4), 0.0)

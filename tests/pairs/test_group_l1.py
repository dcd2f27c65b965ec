"""The penalty of groups of weights: against SciPy on the dual, finite differences, and the objective at random weights."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st
from support.optima import optimum_group_l1, optimum_l1
from support.oracle import pair_differences
from support.seeds import searched
from support.small_sets import blocks_of, small
from support.top_optima import top_hinge

from aucdist import PairwiseHingeClassifier, lam_path
from aucdist.errors import InputError
from aucdist.metrics.named import NAMED_METRICS
from aucdist.pairs import cutting_planes
from aucdist.pairs.cutting_planes import AllPairs, CuttingPlanes
from aucdist.pairs.penalty import GroupL1
from aucdist.pairs.problem import PairObjective
from aucdist.pairs.top_negatives import TopNegatives
from aucdist.search.choice import SettingScores
from aucdist.search.fold_scores import score_settings
from aucdist.solvers.base import Status, solve
from aucdist.solvers.signs import project_onto_cone

GROUPS = np.array([0, 0, 1, 1, 1, 2])
SIGNS = np.array([1, 1, 0, -1, 2, 1], dtype=np.int8)


def norms(w, groups=GROUPS):
    """Return the weighted sum of the groups' lengths, group by group."""
    return sum(np.sqrt(np.sum(groups == g)) * np.linalg.norm(w[groups == g]) for g in range(groups.max() + 1))


def objective(w, X, y, lam):
    return lam * norms(w) + np.maximum(0.0, 1.0 - pair_differences(X, y) @ w).mean()


@pytest.mark.parametrize("part", searched(range(4), quick=1))
def test_random_problems_against_slsqp(part):
    for seed in range(part, 60, 4):
        r = np.random.default_rng(seed)
        X, y = small(int(r.integers(1, 6)), int(r.integers(2, 9)), d=6, seed=seed, shift=r.random())
        X = np.round(X) if seed % 3 == 0 else X
        lam, signs = 10.0 ** r.uniform(-2, -0.3), SIGNS if seed % 2 else None
        if signs is not None:
            X[:, 4] = 0.0  # the sign 2 stands for a weight of 0
        best = optimum_group_l1(X, y, lam, GROUPS, signs)
        rounds = AllPairs().rounds(
            blocks_of(X, y, 1 + seed % 2), lam, penalty="group-l1", feature_groups=GROUPS, signs=signs
        )
        solution = solve(rounds, tol=1e-6, max_passes=1000)
        c = solution.certificate
        assert c.primal == pytest.approx(objective(solution.w, X, y, lam), rel=1e-12)
        assert c.primal == pytest.approx(best, rel=3e-6), seed
        assert c.dual <= best * (1 + 1e-7), seed
        np.testing.assert_array_equal(solution.w, project_onto_cone(solution.w, signs))


@given(st.integers(0, 10**6))
def test_bounds_hold_at_any_weights(seed):
    r = np.random.default_rng(seed)
    X, y = small(int(r.integers(1, 5)), int(r.integers(1, 9)), d=6, seed=seed)
    X = X * 10.0 ** r.integers(-3, 4, 6) if r.random() < 0.5 else X
    groups, signs = np.sort(r.integers(0, 3, 6)), r.choice([-1, 0, 1], 6).astype(np.int8)
    groups = np.unique(groups, return_inverse=True)[1]
    lam, signs = 10.0 ** r.uniform(-4, 1), signs if r.random() < 0.5 else None
    dual = 0.0
    for state in itertools.islice(
        AllPairs().rounds(blocks_of(X, y), lam, penalty="group-l1", feature_groups=groups, signs=signs), 12
    ):
        dual = max(dual, state.dual - state.dual_error)
    for _ in range(20):
        w = project_onto_cone(
            r.normal(size=6) / np.abs(X).max(axis=0) * (r.random(6) < 0.6) * 10.0 ** r.uniform(-3, 1), signs
        )
        value = lam * norms(w, groups) + np.maximum(0.0, 1.0 - pair_differences(X, y) @ w).mean()
        assert dual <= value * (1 + 1e-12)
    assert dual <= (state.primal + state.primal_error) * (1 + 1e-12)


@pytest.mark.parametrize("signs", [None, SIGNS])
def test_the_proximal_point_minimises_and_its_model_is_of_second_order(signs):
    r = np.random.default_rng(0)
    penalty = GroupL1(lam=0.3, signs=signs, groups=GROUPS)
    for _ in range(30):
        slope, centre, mu = r.normal(size=6), project_onto_cone(r.normal(size=6), signs), 10.0 ** r.uniform(-1, 1)

        def value(w, slope=slope, centre=centre, mu=mu):
            return slope @ w + 0.3 * norms(w) + 0.5 * mu * ((w - centre) ** 2).sum()

        w = penalty.minimiser(slope, centre, mu)
        np.testing.assert_array_equal(w, project_onto_cone(w, signs))
        tried = [project_onto_cone(w + 10.0 ** r.uniform(-4, 0) * r.normal(size=6), signs) for _ in range(60)]
        assert value(w) <= min(value(v) for v in [*tried, project_onto_cone(w * 0.0, signs)]) + 1e-12
        # The dual value as a function of the combination, its slope and its change of slope.
        points, b = r.normal(size=(4, 6)), r.random(4)
        points[0] = slope - b[1:] @ points[1:]
        points[0] /= b[0]

        def dual(b, points=points, value=value, centre=centre, mu=mu):
            minimiser = penalty.minimiser(b @ points, centre, mu)
            return (b @ points) @ minimiser + 0.3 * norms(minimiser) + 0.5 * mu * ((minimiser - centre) ** 2).sum()

        H, q = penalty.quadratic(points, b @ points, w, centre, mu)
        steps = 1e-6 * np.eye(4)
        slopes = np.array([(dual(b + s) - dual(b - s)) / 2e-6 for s in steps])
        np.testing.assert_allclose(q - H @ b, slopes, rtol=1e-5, atol=1e-7)
        same = [(penalty.minimiser((b + s) @ points, centre, mu) != 0) == (w != 0) for s in (*steps, *-steps)]
        if np.all(same):
            bends = [points @ (penalty.minimiser((b + s) @ points, centre, mu) - w) / 1e-6 for s in steps]
            np.testing.assert_allclose(-H, np.stack(bends), rtol=1e-3, atol=1e-4)


def test_groups_of_one_are_l1():
    X, y = small(9, 23, d=5, seed=1)
    solution = solve(AllPairs().rounds(blocks_of(X, y), 0.05, penalty="group-l1"), tol=1e-6, max_passes=500)
    assert solution.certificate.primal == pytest.approx(optimum_l1(X, y, 0.05), rel=2e-6)


@pytest.mark.parametrize("top_negatives", [None, TopNegatives(0.3)])
def test_blocks_sparse_rows_cells_and_the_top_share(top_negatives, monkeypatch):
    X, y = small(12, 50, d=6)
    X[np.abs(X) < 0.3] = 0.0
    penalty = GroupL1(groups=GROUPS)
    solutions = []
    for rows, n, most in ((X, 1, 12), (sp.csr_array(X), 3, 12), (X, 2, 11)):
        monkeypatch.setattr(cutting_planes, "MAX_ANCHORS", most)
        planes = CuttingPlanes(blocks_of(rows, y, n), PairObjective(penalty=penalty, top_negatives=top_negatives))
        solutions.append(solve(planes.rounds(0.02), tol=1e-5, max_passes=900))
    for solution in solutions:
        assert solution.certificate.status is Status.CONVERGED
        assert solution.certificate.primal == pytest.approx(solutions[0].certificate.primal, rel=3e-5)
        assert solution.certificate.dual <= solutions[0].certificate.primal
    loss = top_hinge(X @ solutions[0].w, y, 0.3 * 50 if top_negatives else 50)
    assert solutions[0].certificate.primal == pytest.approx(0.02 * norms(solutions[0].w) + loss, rel=1e-10)


def rows(n=900):
    r = np.random.default_rng(0)
    X = r.normal(size=(n, 6))
    return X, (np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * r.normal(size=n) > 0).astype(int)


def test_a_feature_is_left_out_with_all_its_bins():
    X, y = rows()
    estimator = PairwiseHingeClassifier(features={"map": "bins", "interactions": 3}, penalty="group-l1", tol=1e-3)
    models = lam_path(estimator, X, y, lams=[0.02, 0.005, 0.001])
    assert [m.certificate_.status for m in models] == ["converged"] * 3
    kept = [m.n_features_kept for m in models]
    assert kept == sorted(kept)
    assert 0 < kept[0] < kept[-1] <= 9
    for model in models:
        groups = model.feature_map_.groups()
        assert len(groups) == model.coef_.shape[1]
        sizes = np.bincount(groups)
        assert len(sizes) == 9
        used = np.bincount(groups, model.coef_[0] != 0)
        assert set(used[used > 0] == sizes[used > 0]) == {True}
        assert model.n_features_kept == np.count_nonzero(used)


@pytest.mark.parametrize("penalty", ["l1", "group-l1", None])
def test_a_search_says_how_many_features_each_fit_keeps(penalty):
    X, y = rows()
    train, held_out = blocks_of(X[:600], 2 * y[:600] - 1), blocks_of(X[600:], 2 * y[600:] - 1)
    estimator = PairwiseHingeClassifier(features="bins", penalty=penalty)
    scores = score_settings(estimator, [{"lam": 0.02}, {"lam": 0.002}], train, held_out, NAMED_METRICS["auc"])
    if penalty is None:
        assert all("features_kept" not in score for score in scores)
        return
    few, more = (score["features_kept"] for score in scores)
    assert 1 <= few <= more <= 6
    assert SettingScores({}, tuple(scores), 10).summary()["features_kept"] == [few, more]


def test_directions_hold_beside_groups():
    X, y = rows()
    model = PairwiseHingeClassifier(features="bins", penalty="group-l1", lam=2e-3, monotone={0: "increasing"}).fit(X, y)
    assert model.certificate_.status == "converged"
    assert not (model.feature_map_.signs(model.monotone_) * model.coef_[0] < 0).any()


def test_maps_that_mix_features_are_refused_before_any_work():
    X, y = rows(60)
    for features in ("nystroem", {"map": "leaves", "trees": 2}):
        with pytest.raises(InputError, match=r"group-l1.*leave out the feature map, or use features='bins'"):
            PairwiseHingeClassifier(penalty="group-l1", features=features).fit(X, y)

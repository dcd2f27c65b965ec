"""The ramp over the highest-scoring negatives against plain Python."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from support.oracle import ramp, ramp_objective
from support.rounds import last
from support.small_sets import blocks_of, small

from aucdist import PairwiseHingeClassifier, PairwiseRampClassifier
from aucdist.solvers.base import Status, solve
from aucdist.solvers.pairs import RampLBFGS, top_negatives
from aucdist.solvers.pairs.loss import RAMP
from aucdist.solvers.pairs.objective import PairObjective
from aucdist.solvers.pairs.penalty import L2
from aucdist.solvers.pairs.smooth import SmoothPairProblem, hinge_minima
from aucdist.solvers.pairs.top_negatives import TopNegatives

CLASSES = [(7, 22), (22, 7)]


def top_ramp_objective(w, X, y, lam, wanted, weight=None):
    """Return the objective, row after row in plain Python."""
    v = np.ones(len(y)) if weight is None else weight
    scores, left, total = X @ w, wanted, 0.0
    for j in sorted(np.flatnonzero(y < 0), key=lambda j: -scores[j]):
        part = min(left, v[j])
        total += part * sum(v[i] * ramp(scores[i] - scores[j])[0] for i in np.flatnonzero(y > 0))
        left -= part
    return 0.5 * lam * float(w @ w) + total / (v[y > 0].sum() * wanted)


@pytest.mark.parametrize("most", [3, 10**6])
@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("weighted", [False, True])
def test_value_and_gradient(monkeypatch, most, classes, weighted):
    monkeypatch.setattr(top_negatives, "MOST_GATHERED", most)
    X, y = small(*classes)
    r = np.random.default_rng(0)
    weight = r.uniform(0.5, 2.0, len(y)) if weighted else None
    wanted = 0.3 * (weight[y < 0].sum() if weighted else classes[1])
    problem = SmoothPairProblem(
        blocks_of(X, y, 3, weight), PairObjective(RAMP, subset=TopNegatives(0.3), penalty=L2(0.1))
    )
    for _ in range(5):
        w = r.normal(size=4)
        point = problem.evaluate(w)
        assert point.value == pytest.approx(top_ramp_objective(w, X, y, 0.1, wanted, weight), rel=1e-12)
        slopes = approx_fprime(w, top_ramp_objective, 1e-7, X, y, 0.1, wanted, weight)
        np.testing.assert_allclose(point.gradient, slopes, rtol=1e-4, atol=1e-6)


def test_ties_at_the_boundary_count_in_part():
    X, y = np.array([[1.0], [0.5], [0.0], [0.0], [0.0], [-1.0]]), np.array([1, 1, -1, -1, -1, -1])
    for sign in (1, -1):  # either class the smaller one
        rows, labels = sign * X, sign * y
        problem = SmoothPairProblem(
            blocks_of(rows, labels, 2), PairObjective(RAMP, subset=TopNegatives(max_false_positives=2), penalty=L2(0.1))
        )
        w = np.array([1.1])
        expected = top_ramp_objective(w, rows, labels, 0.1, 2.0)
        assert problem.evaluate(w).value == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("classes", CLASSES)
def test_whole_share_is_all_pairs(classes):
    X, y = small(*classes)
    w = np.random.default_rng(1).normal(size=4)
    point = SmoothPairProblem(blocks_of(X, y), PairObjective(RAMP, subset=TopNegatives(1.0), penalty=L2(0.1))).evaluate(
        w
    )
    value, gradient = ramp_objective(w, X, y, 0.1)
    assert point.value == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(point.gradient, gradient, rtol=1e-9, atol=1e-12)


def test_rounds_improve_on_both_starts():
    X, y = small(15, 60, shift=1.0, d=3)
    blocks = blocks_of(X, y, 2)
    starts, passes = hinge_minima(blocks, PairObjective(RAMP, subset=TopNegatives(0.2), penalty=L2(1e-2)))
    found = last(RampLBFGS().rounds(blocks, 1e-2, max_fpr=0.2))
    assert found.passes > passes
    for w in starts:
        assert found.primal <= top_ramp_objective(w, X, y, 1e-2, 12.0) + 1e-12
    assert found.primal == pytest.approx(top_ramp_objective(found.w, X, y, 1e-2, 12.0), rel=1e-10)


def test_no_weights_near_are_much_better_where_the_fit_is_stationary():
    X, y = small(40, 400, shift=0.8, d=2)
    found = solve(RampLBFGS().rounds(blocks_of(X, y), 1e-1, max_fpr=0.2, tol=1e-3), tol=1e-3, max_passes=500)
    assert found.certificate.status is Status.STATIONARY
    assert found.last.majorant_gap <= 1e-3
    for step in np.random.default_rng(0).normal(size=(50, 2)):
        nearby = top_ramp_objective(found.w + 0.03 * step, X, y, 1e-1, 80.0)
        assert nearby >= found.certificate.primal * (1 - 1.1e-3)


def test_a_given_start_is_used():
    X, y = small(15, 60)
    first = next(RampLBFGS().rounds(blocks_of(X, y), 1e-2, np.full(4, 0.5), max_fpr=0.2))
    assert first.primal == pytest.approx(top_ramp_objective(np.full(4, 0.5), X, y, 1e-2, 12.0), rel=1e-12)
    assert first.passes == 1


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_estimator_goes_on_where_the_hinge_collapses():
    r = np.random.default_rng(0)
    y = np.repeat([1, -1], [60, 600])
    X = r.normal(size=(660, 3))
    X[:30, 0] += 4.0  # half of the positives can be found, the others are like negatives
    hinge = PairwiseHingeClassifier(lam=1e-2, max_fpr=0.02).fit(X, y)
    found = PairwiseRampClassifier(lam=1e-2, max_fpr=0.02).fit(X, y)
    assert hinge.certificate_.dual > 0.95
    assert abs(found.coef_[0, 0]) > 2 * abs(found.coef_[0, 1:]).max()
    recall = (found.decision_function(X[:30]) > np.quantile(found.decision_function(X[60:]), 0.98)).mean()
    assert recall > 0.8

"""The solvers of the hinge that step along subgradients: Non-smooth SCD, COMID, RDA, PSA, Pegasos."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from support import hinge_twins
from support.rounds import rounds_of
from support.small_sets import FORMS, blocks_of
from support.square_twins import problem

from aucdist.data.block import Block
from aucdist.engine.blocks import LocalBlocks, block_seed
from aucdist.errors import InputError
from aucdist.papers.scd.dual import CDCD, SDCD
from aucdist.papers.scd.primal import SCD
from aucdist.papers.scd.subgradient import COMID, PSA, RDA, Pegasos
from aucdist.solvers.base import Status, solve

hinge_scd = rounds_of(SCD)
hinge_cdcd = rounds_of(CDCD)
hinge_sdcd = rounds_of(SDCD)
hinge_pegasos = rounds_of(Pegasos)
hinge_comid = rounds_of(COMID)
hinge_psa = rounds_of(PSA)
hinge_rda = rounds_of(RDA)

RADIUS = 1.5

SOLVERS = {
    ("scd", "l1"): lambda b, lam, **k: hinge_scd(b, lam, seed=5, penalty="l1", **k),
    ("scd", "l2"): lambda b, lam, **k: hinge_scd(b, lam, seed=5, **k),
    ("comid", "l1"): lambda b, lam, **k: hinge_comid(b, lam, penalty="l1", **k),
    ("comid", "l2"): hinge_comid,
    ("rda", "l1"): lambda b, lam, **k: hinge_rda(b, lam, penalty="l1", **k),
    ("rda", "l2"): hinge_rda,
    ("psa", "l1"): lambda b, lam, **k: hinge_psa(b, lam, radius=RADIUS, **k),
    ("pegasos", "l2"): lambda b, lam, **k: hinge_pegasos(b, lam, seed=5, **k),
}

ALL = SOLVERS | {("sdcd", "l2"): lambda b, lam, **k: hinge_sdcd(b, lam, seed=5, **k), ("cdcd", "l2"): hinge_cdcd}


def minimum(X, y, lam, penalty, weight=None, *, intercept=False):
    if penalty == "l1":
        return hinge_twins.l1_minimum(X, y, lam, weight, intercept=intercept)[0]
    return hinge_twins.l2_minimum(X, y, lam, weight, intercept=intercept)


# ---- one block: the published algorithms --------------------------------------------------------------------------------


def iterates(name, penalty, X, y, weight, lam, eta, intercept, n_rounds):
    """Return the weights and intercepts that the twins go through, by the formulas as they are printed (and corrected)."""
    n, shares, w, b, total = len(y), weight / weight.sum(), np.zeros(X.shape[1]), 0.0, 0.0
    path = [(w, b)]
    for t in range(1, n_rounds):
        g = hinge_twins.subgradient(w, b, X, y, shares)
        step = eta / np.sqrt(t) if penalty == "l1" else 1 / (lam * (t - 1) + 1 / eta)
        if name == "scd":
            both = np.append(w, b) if intercept else w
            both = hinge_twins.scd_sweep(
                X, y, shares, both, block_seed(5, t, 0), penalty, lam, step, 4 / np.sqrt(t), intercept
            )
            w, b = both[: len(w)], both[-1] if intercept else 0.0
        elif name == "pegasos":
            w, b = hinge_twins.pegasos_steps(
                X, y, n * shares, w, b, block_seed(5, t, 0), n, lam, (t - 1) * n, intercept
            )
        else:
            total = total + g
            if name == "psa":
                w = hinge_twins.onto_ball(w - step * g[:-1] / 2, RADIUS)
            elif name == "comid" and penalty == "l1":
                w = hinge_twins.soft(w - step * g[:-1] / 2, step * lam / 2)
            elif name == "comid":
                w = (2 * w - step * g[:-1]) / (2 * step * lam + 2)
            elif penalty == "l1":
                w = -np.sqrt(t) * eta / 2 * hinge_twins.soft(total[:-1] / t, lam)
            else:
                w = -total[:-1] / (2 * lam * t + 2 / eta - 2 * lam)
            b = intercept * ((0.0 if name == "rda" else b) - 2 / np.sqrt(t) * (total if name == "rda" else g)[-1])
        path.append((w, b))
    return path


@pytest.mark.nojit
@pytest.mark.parametrize(
    ("name", "penalty", "intercept", "average"),
    [
        (*solver, intercept, average)
        for solver, intercept, average in itertools.product(SOLVERS, (False, True), (False, True))
        if intercept != average or solver[0] == "pegasos"  # the others have these to the bit, below
    ],
)
def test_one_block_is_the_published_algorithm(name, penalty, intercept, average):
    X, y, weight = problem(9, 23, 4, weighted=True)
    lam, eta, n_rounds = 0.02, 50.0 if name == "pegasos" else 0.8, 25
    options = {} if name == "pegasos" else {"eta": eta}
    rounds = SOLVERS[name, penalty](blocks_of(X, y, 1, weight), lam, intercept=intercept, average=average, **options)
    best = (np.inf, None)
    if intercept:
        best = (hinge_twins.hinge_value(np.zeros(4), X, y, lam, penalty, weight, -1.0), np.append(np.zeros(4), -1.0))
    mean, heavy = np.zeros(5), 0.0
    path = iterates(name, penalty, X, y, weight, lam, eta, intercept, n_rounds)
    for t, ((w, b), state) in enumerate(zip(path, rounds, strict=False), start=1):
        heavy += t
        mean = mean + t / heavy * (np.append(w, b) - mean)
        shown = mean if average else np.append(w, b)
        value = hinge_twins.hinge_value(shown[:-1], X, y, lam, penalty, weight, shown[-1])
        if value < best[0]:
            best = value, shown
        assert state.primal == pytest.approx(best[0], rel=1e-11)
        np.testing.assert_allclose(state.w, best[1] if intercept else best[1][:-1], rtol=1e-9, atol=1e-12)
    assert best[0] < 0.95


@pytest.mark.nojit
@pytest.mark.parametrize(("name", "penalty"), [s for s in SOLVERS if s[0] != "pegasos"])  # it holds its weights scaled
@pytest.mark.parametrize("form", ["dense64", "csr64"])
@pytest.mark.parametrize(("intercept", "average"), [(False, False), (True, True)])
def test_one_block_is_the_twin_to_the_bit(name, penalty, form, intercept, average):
    X, y = hinge_twins.exact_problem()
    lam, eta, n_rounds = 0.02, 0.8, 25
    rounds = SOLVERS[name, penalty](blocks_of(FORMS[form](X), y), lam, intercept=intercept, average=average, eta=eta)
    path, mean = iterates(name, penalty, X, y, np.ones(32), lam, eta, intercept, n_rounds), np.zeros(3)
    seen = {np.array([0.0, 0.0, -1.0]).tobytes()} if intercept else set()  # no features: the negative rows are more
    for t, ((w, b), state) in enumerate(zip(path, rounds, strict=False), start=1):
        mean = mean + 2 / (t + 1) * (np.append(w, b) - mean)
        shown = (mean if average else np.append(w, b))[: 2 + intercept]
        seen.add((shown + 0.0).tobytes())  # -0 is 0
        assert (state.w + 0.0).tobytes() in seen
    assert state.w[:2].any()


# ---- the minimum and the certificate ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "penalty"), SOLVERS)
@pytest.mark.parametrize(("intercept", "n_blocks"), [(False, 3), (True, 1)])
def test_every_round_is_certified(name, penalty, intercept, n_blocks):
    X, y, weight = problem(8, 24, weighted=True)
    lowest = minimum(X, y, 0.03, penalty, weight, intercept=intercept)
    rounds = SOLVERS[name, penalty](blocks_of(X, y, n_blocks, weight), 0.03, intercept=intercept)
    for state in itertools.islice(rounds, 60):
        w, b = (state.w[:-1], state.w[-1]) if intercept else (state.w, 0.0)
        assert state.primal == pytest.approx(hinge_twins.hinge_value(w, X, y, 0.03, penalty, weight, b), rel=1e-12)
        assert 0.0 <= state.dual <= lowest * (1 + 1e-9)
        assert state.primal >= lowest * (1 - 1e-9)
    assert state.dual > 0.0


PASSES = {"scd": 300, "comid": 400, "rda": 600, "psa": 400, "pegasos": 100}


@pytest.mark.parametrize(("name", "penalty"), SOLVERS)
@pytest.mark.parametrize("intercept", [False, True])
def test_within_a_hundredth_of_the_minimum(name, penalty, intercept):
    X, y, _ = problem(60, 180, 6)
    if penalty == "l1":
        lowest, best = hinge_twins.l1_minimum(X, y, 1e-2, intercept=intercept)
    else:
        lowest = hinge_twins.l2_minimum(X, y, 1e-2, intercept=intercept)
    solve_it = SOLVERS[name, penalty]
    if name == "psa":
        solve_it = lambda b, lam, **k: hinge_psa(b, lam, radius=np.abs(best[:-1]).sum(), **k)  # noqa: E731
    for average in (False, True):
        rounds = solve_it(blocks_of(X, y), 1e-2, intercept=intercept, average=average)
        solution = solve(rounds, tol=0.0, max_passes=PASSES[name])
        assert lowest * (1 - 1e-9) <= solution.certificate.primal <= lowest * 1.01


@pytest.mark.parametrize("name", ["scd", "comid", "rda"])
def test_l1_makes_weights_zero(name):
    X, y, _ = problem(60, 180, 20, shift=0.0)
    y = np.where(X[:, 0] - X[:, 1] > 0.3, 1, -1)  # no other feature says anything
    rounds = SOLVERS[name, "l1"](blocks_of(X, y), 0.03)
    assert (solve(rounds, tol=0.0, max_passes=300).w[2:] == 0.0).mean() > 0.5


# ---- above lam_max ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "penalty"), [s for s in SOLVERS if s[1] == "l1"])
@pytest.mark.parametrize("n_blocks", [1, 3])
def test_above_lam_max_zero_is_the_minimum_at_once(name, penalty, n_blocks):
    X, y, weight = problem(weighted=True)
    lam_max = np.abs(X.T @ (weight * y)).max() / weight.sum()
    above = solve(SOLVERS[name, penalty](blocks_of(X, y, n_blocks, weight), 1.001 * lam_max), tol=1e-9, max_passes=9)
    assert above.certificate.status is Status.CONVERGED
    assert not above.w.any()
    assert len(above.history) == 1
    below = solve(SOLVERS[name, penalty](blocks_of(X, y, n_blocks, weight), 0.9 * lam_max), tol=1e-9, max_passes=200)
    assert below.w.any() or name == "psa"  # within its ball the loss falls by less than the penalty costs


@pytest.mark.parametrize(("name", "penalty"), [s for s in SOLVERS if s[1] == "l1"])
def test_above_lam_max_with_an_intercept_the_larger_class_is_all(name, penalty):
    X, y, weight = problem(weighted=True)
    for sign in (1, -1):
        lam = np.abs(X).max()  # above anything that balanced rows could add up to
        solution = solve(
            SOLVERS[name, penalty](blocks_of(X, sign * y, 1, weight), lam, intercept=True), tol=1e-9, max_passes=9
        )
        assert solution.certificate.status is Status.CONVERGED
        assert solution.w.tolist() == [0.0] * 4 + [-1.0 * sign]


# ---- other data ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "penalty"), ALL)
def test_empty_single_and_duplicate_columns(name, penalty):
    X, y, _ = problem(20, 60)
    X = np.column_stack([X, np.zeros(80), X[:, 0], np.eye(80)[3]])
    for form in (X, sp.csr_array(X)):
        state = next(itertools.islice(ALL[name, penalty](blocks_of(form, y, 2), 1e-2), 60, None))
        assert state.w[4] == 0.0
        assert np.isfinite(state.w).all()
        assert state.primal < 1.05 * minimum(X, y, 1e-2, penalty) or name == "psa"


# ---- many blocks --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", ["l1", "l2"])
@pytest.mark.parametrize("n_blocks", [2, 9])
def test_averaged_sweeps_reach_what_one_block_reaches(penalty, n_blocks):
    X, y, weight = problem(40, 120, 6, weighted=True)
    single, many = (
        solve(
            hinge_scd(blocks_of(X, y, k, weight), 1e-2, seed=0, penalty=penalty), tol=0.0, max_passes=600
        ).certificate.primal
        for k in (1, n_blocks)
    )
    assert many == pytest.approx(single, rel=1e-3)


def test_averaged_sweeps_over_equal_features():
    X, y, _ = problem(20, 60, 1)
    blocks = blocks_of(np.repeat(X, 6, axis=1), y, 3)
    values = [state.primal for state in itertools.islice(hinge_scd(blocks, 1e-3, seed=0), 40)]
    assert values[-1] < 1.01 * minimum(np.repeat(X, 6, axis=1), y, 1e-3, "l2")


@pytest.mark.parametrize(("name", "penalty"), [s for s in SOLVERS if s[0] in ("comid", "rda", "psa")])
def test_batch_methods_go_the_same_way_on_many_blocks(name, penalty):
    X, y, weight = problem(10, 40, weighted=True)
    single, many = (
        list(itertools.islice(SOLVERS[name, penalty](blocks_of(X, y, k, weight), 1e-2, intercept=True), 20))
        for k in (1, 4)
    )
    for a, b in zip(single, many, strict=True):
        np.testing.assert_allclose(a.w, b.w, atol=1e-12)


@pytest.mark.parametrize("name", ["pegasos", "scd"])
def test_blocks_of_one_class_and_empty_ones(name):
    X, y, _ = problem(10, 50)
    parts = [np.flatnonzero(y > 0), np.arange(0), np.flatnonzero(y < 0)]
    blocks = LocalBlocks([Block.of(X, y).take(part, index=i) for i, part in enumerate(parts)])
    solution = solve(SOLVERS[name, "l2"](blocks, 0.1, average=True), tol=0.0, max_passes=200)
    assert solution.certificate.primal < 1.01 * hinge_twins.l2_minimum(X, y, 0.1)


# ---- starts and wrong input ---------------------------------------------------------------------------------------------


def test_wrong_input_is_refused():
    X, y, _ = problem()
    with pytest.raises(InputError, match=r"weights to start from must have the shape \(5,\); got \(4,\)"):
        next(hinge_comid(blocks_of(X, y), 1e-2, np.zeros(4), intercept=True))
    with pytest.raises(InputError, match="unknown penalty 'l3'"):
        next(hinge_scd(blocks_of(X, y), 1e-2, seed=0, penalty="l3"))


def test_rounding_of_margins_that_are_moved_counts_in_the_bound():
    X, y, _ = problem()
    errors = [r.primal_error for r in itertools.islice(SOLVERS["scd", "l2"](blocks_of(X, y), 1e-3), 100)]
    # A sweep moves each margin about as often as there are features, and each move is rounded.
    assert errors[-1] - errors[0] > 50 * X.shape[1] * np.finfo(np.float64).eps

"""Every solver that takes codes does on them what it does on the CSR rows of the same basis functions."""

import itertools
from functools import partial

import numpy as np
import pytest
from support.code_sets import random_codes
from support.rounds import rounds_of
from support.seeds import searched

from aucdist.data.block import Block, into_blocks, matrix_of
from aucdist.engine.blocks import LocalBlocks
from aucdist.pairs import RampLBFGS
from aucdist.pairs.cutting_planes import AllPairs
from aucdist.papers.gev import problem, solvers
from aucdist.papers.gev.solvers import Gradient, Lipschitz, Newton
from aucdist.papers.scd.subgradient import COMID, PSA, RDA
from aucdist.papers.tpauc import exact as square
from aucdist.probability.links import Link, LinkLoss
from aucdist.solvers import sample
from aucdist.solvers.base import solve

hinge_comid, hinge_psa, hinge_rda = rounds_of(COMID), rounds_of(PSA), rounds_of(RDA)

newton, lipschitz, gradient = rounds_of(Newton), rounds_of(Lipschitz), rounds_of(Gradient)

LOGIT, CLOGLOG = LinkLoss(Link("logit"), "likelihood"), LinkLoss(Link("cloglog"), "calibrated")


SOLVERS = {
    "all-pairs l1": partial(AllPairs().rounds, penalty="l1"),
    "ramp": RampLBFGS().rounds,
    "square": rounds_of(square.Exact),
    "newton": partial(newton, loss=LOGIT),
    "newton cloglog": partial(newton, loss=CLOGLOG),
    "lipschitz": partial(lipschitz, loss=LOGIT),
    "gradient": partial(gradient, loss=LOGIT, penalise_intercept=True),
    "comid": partial(hinge_comid, intercept=True),
    "rda l1": partial(hinge_rda, penalty="l1"),
    "psa": partial(hinge_psa, radius=2.0),
}


def two_forms(seed, n_blocks=2):
    r = np.random.default_rng(seed)
    rows = random_codes(60, seed)
    y = np.where(r.random(60) < 0.3, 1, -1).astype(np.int8)
    y[:2] = 1, -1
    weight = r.integers(0, 4, 60).astype(np.float64) if seed % 3 == 0 else None
    if weight is not None:
        weight[:2] = 1.0
    codes = Block(rows, y, np.arange(60), weight)
    return [LocalBlocks(into_blocks(block, n_blocks)) for block in (codes, Block.of(matrix_of(rows), y, weight=weight))]


@pytest.mark.parametrize("seed", searched(range(15), quick=3))
def test_all_pairs_has_the_minimum_of_the_sparse_rows(seed):
    """Many scores are tied there, and the last bit of a tie decides where a Newton step ends: the minimum is the same."""
    codes, csr = (
        solve(AllPairs().rounds(form, [1e-2, 1e-1][seed % 2]), tol=1e-10, max_passes=500) for form in two_forms(seed)
    )
    assert codes.certificate.status == csr.certificate.status == "converged"
    assert codes.certificate.primal == pytest.approx(csr.certificate.primal, rel=2e-10)


def assert_same_rounds(rounds, seed, n_rounds=6):
    codes, csr = two_forms(seed)
    lam = [1e-2, 1e-1][seed % 2]
    of_codes, of_rows = (list(itertools.islice(rounds(form, lam), n_rounds)) for form in (codes, csr))
    assert of_codes
    for a, b in zip(of_codes, of_rows, strict=False):
        assert a.primal == pytest.approx(b.primal, rel=1e-9)
        assert a.dual == pytest.approx(b.dual, rel=1e-7, abs=1e-12)
        np.testing.assert_allclose(a.w, b.w, rtol=1e-6, atol=1e-8)
    # At the minimum, the last bit decides whether another round follows.
    assert len(of_codes) == len(of_rows) or a.primal - a.dual < 1e-12


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("seed", searched(range(15), quick=3))
def test_the_rounds_are_those_of_the_sparse_rows(name, seed):
    assert_same_rounds(SOLVERS[name], seed)


@pytest.mark.parametrize("name", ["newton", "lipschitz", "square"])
@pytest.mark.parametrize("seed", searched(range(12), quick=2))
def test_rounds_on_codes_agree_without_a_matrix_of_the_features(monkeypatch, name, seed):
    for module in (problem, solvers, square):
        monkeypatch.setattr(module, "MAX_FEATURES", 1)
    # Conjugate gradients that take many products amplify rounding; the first rounds take few.
    assert_same_rounds(SOLVERS[name], seed, 3)


@pytest.mark.parametrize("name", ["all-pairs", "ramp", "newton"])
def test_rounds_on_codes_agree_from_a_sample(monkeypatch, name):
    monkeypatch.setattr(sample, "MIN_ROWS_TO_SAMPLE", 60)
    monkeypatch.setattr(sample, "MAX_ROWS_PER_CLASS", 1000)
    monkeypatch.setattr(sample, "SAMPLE_SHARE", 0.5)
    codes, csr = two_forms(4)
    assert sample.noise(sample.draw_sample(codes)) == pytest.approx(sample.noise(sample.draw_sample(csr)), rel=1e-12)
    if name != "all-pairs":
        assert_same_rounds(SOLVERS[name], 4)

"""Part of the suite `pairwise`: the solvers of the pairwise square."""

import itertools
import time
from collections.abc import Iterator
from functools import partial

import numpy as np
import scipy.sparse as sp

from aucdist.data.block import Block
from aucdist.data.shards.sharding import simulate
from aucdist.engine.blocks import LocalBlocks
from aucdist.papers.tpauc.descent import SVRG, moments_of_pairs, within_class_covariance
from aucdist.papers.tpauc.exact import Exact
from aucdist.papers.tpauc.online import prepare_steps, two_pass_epoch
from aucdist.solvers.base import solve
from benchmarks.common import Row, fastest, read_train_and_test

GOAL = 1e-6
LAMS = (1e-2, 1e-3)
WIDE = 1_355_191
"""Features of the largest of the LIBSVM page's news20 sets."""


def compare_square() -> Iterator[Row]:
    """Time each solver against a matrix product of the same size, and compare its passes with those of L-BFGS."""
    yield _against_gram(simulate(581_012, 54, 0.18, seed=0))
    yield _against_product("news20", read_train_and_test("news20")[0])
    yield _against_product(f"simulated 20000 x {WIDE}, CSR", _wide_rows())
    for name in ("a9a", "kddcup99"):
        train, _ = read_train_and_test(name)
        yield {"data": name} | _path_times(train)
        for lam in LAMS:
            yield {"data": name, "lam": lam} | _compare_passes(train, lam)


def _against_gram(block: Block) -> Row:
    seconds = fastest(lambda: next(Exact().rounds(LocalBlocks([block]), 1e-3)))
    gram = fastest(lambda: block.X.T @ block.X)
    return {"data": "simulated 581012 x 54", "system": "exact", "seconds": seconds, "times X.T @ X": seconds / gram}


def _against_product(name: str, block: Block) -> Row:
    """Time an epoch of tpauc with known means and allocated weights."""
    known, w = moments_of_pairs(LocalBlocks([block])), np.ones(block.n_features)
    ready, _ = prepare_steps(block, None, known, block.n_samples, "corrected")
    epoch, start = partial(two_pass_epoch, eta=2.0**-6, lam=1e-3), np.zeros_like(w)
    seconds = fastest(lambda: epoch(block, ready, start.copy(), 1), 30)
    product = fastest(lambda: block.X @ w, 30)
    return {"data": name, "system": "tpauc, an epoch", "seconds": seconds, "times X @ w": seconds / product}


def _wide_rows() -> Block:
    rng = np.random.default_rng(0)
    X = sp.random_array((20_000, WIDE), density=450 / WIDE, format="csr", rng=rng)
    return Block.of(sp.csr_matrix(X), np.where(rng.random(20_000) < 0.5, 1, -1))


def _path(block: Block, lams: list[float]) -> None:
    path = Exact().path(LocalBlocks([block]))
    for lam in lams:
        next(path.rounds(lam))


def _path_times(block: Block) -> Row:
    first, all_ = (fastest(partial(_path, block, lams)) for lams in ([1e-2], np.logspace(1, -4, 20).tolist()))
    return {"system": "exact, 20 lam", "seconds": all_, "times one lam": all_ / first}


def _compare_passes(block: Block, lam: float) -> Row:
    """Count passes until the certified gap is below the goal, of svrg and of L-BFGS on the same value and gradient."""
    from scipy.optimize import minimize

    blocks = LocalBlocks([block])
    known, certified = moments_of_pairs(blocks), []

    def evaluate(w: np.ndarray) -> tuple[float, np.ndarray]:
        variance, covariance_w = within_class_covariance(blocks, known, w)
        primal, slope = known.value_and_gradient(w, variance, covariance_w, lam)
        certified.append(slope @ slope / (2.0 * lam) <= GOAL * primal)
        return primal, slope

    list(itertools.islice(SVRG().rounds(blocks, lam, seed=0), 2))  # compiles the kernels
    start = time.perf_counter()
    solution = solve(SVRG().rounds(blocks, lam, seed=0), tol=GOAL, max_passes=200)
    seconds = time.perf_counter() - start
    limits = {"maxiter": 3000, "maxfun": 3000, "ftol": 0.0, "gtol": 1e-7}
    minimize(evaluate, np.zeros(block.n_features), jac=True, method="L-BFGS-B", options=limits)
    peer = 1 + certified.index(True) if True in certified else None
    best = next(Exact().rounds(blocks, lam))
    return {
        "system": "svrg", "seconds": seconds, "passes": solution.passes, "relative gap": solution.certificate.relative_gap,
        "true gap": solution.certificate.primal / best.primal - 1, "passes of L-BFGS": peer,
    }  # fmt: skip

"""The suite `hinge`: dual coordinate descent against liblinear, and Non-smooth SCD against the batch methods."""

from collections.abc import Iterator
from functools import partial
from itertools import chain, count
from typing import Any

import numpy as np

from aucdist.data.block import Block
from aucdist.data.shards.sharding import simulate
from aucdist.engine.blocks import LocalBlocks
from aucdist.papers.scd.dual import SDCD
from aucdist.papers.scd.primal import SCD
from aucdist.papers.scd.subgradient import COMID, PSA, RDA
from aucdist.solvers.base import Solution, solve
from benchmarks.common import Row, fastest, read_train_and_test, seconds_of

GOAL = 1e-3
NEAR = 1e-2
L1_PASSES = 500
LAMS: dict[str, tuple[float | None, ...]] = {
    "a9a": (1e-3, 1e-4, None),
    "news20": (1e-3, 1e-4, None),
    "kddcup99": (1e-3,),
}
"""None means 1 / n_samples, the paper's choice."""

SLOW = {"kddcup99": (1e-4,)}
"""For these values liblinear and the L1 solvers take minutes."""


def hinge(slow_peers: bool) -> Iterator[Row]:
    """Time sdcd to a gap of 1e-3 and liblinear to the same objective; then the L1 solvers to 1e-2 above the lowest one found."""
    _compile_kernels()
    for name, lams in LAMS.items():
        train, _ = read_train_and_test(name)
        for lam in lams + (SLOW.get(name, ()) if slow_peers else ()):
            yield from _compare_l2(name, train, 1.0 / train.n_samples if lam is None else lam)
        if slow_peers or name not in SLOW:
            yield from _compare_l1(name, train, 1e-3)


def _compile_kernels() -> None:
    small = simulate(500, 5, 0.2, seed=0)
    sparse = Block.of(_as_csr(small), small.y)
    for block in (small, sparse):
        for rounds in (SDCD().rounds(LocalBlocks([block]), 0.1), *(s(block, 0.1, 1.0) for s in L1_SOLVERS.values())):
            solve(rounds, tol=0.0, max_passes=5)


def _as_csr(block: Block) -> Any:
    from scipy.sparse import csr_matrix

    return csr_matrix(block.X)


# ---- L2 ---------------------------------------------------------------------------------------------------------------


def _compare_l2(name: str, train: Block, lam: float) -> Iterator[Row]:
    solutions: list[Solution] = []
    seconds = fastest(
        lambda: solutions.append(solve(SDCD().rounds(LocalBlocks([train]), lam), tol=GOAL, max_passes=2000)), 3
    )
    certificate = solutions[0].certificate
    yield {
        "data": name, "system": "sdcd", "lam": lam, "seconds": seconds, "passes": solutions[0].passes,
        "relative gap": certificate.relative_gap, "objective": certificate.primal,
    }  # fmt: skip
    peer, iterations, objective = _time_liblinear(train, lam, certificate.primal)
    yield {
        "data": name, "system": "liblinear", "lam": lam, "seconds": peer, "passes": iterations,
        "objective": objective, "sdcd / liblinear": seconds / peer,
    }  # fmt: skip


def _time_liblinear(train: Block, lam: float, goal: float) -> tuple[float, int, float]:
    """Return the time of the shortest fit whose objective is at most the goal, its iterations, and its objective.

    The number of iterations grows in steps of at most a quarter. The search is not timed, because liblinear cannot stop at an
    objective by itself.
    """
    from sklearn.svm import LinearSVC

    X, y = _with_int32_indices(train.X), train.y
    for iterations in chain(range(1, 8), (int(8 * 1.25**k) for k in count())):
        svc = LinearSVC(
            loss="hinge", C=0.5 / (lam * len(y)), fit_intercept=False, tol=1e-12, max_iter=iterations, random_state=0
        )
        seconds = seconds_of(partial(svc.fit, X, y))
        w = svc.coef_[0]
        objective = float(np.maximum(1.0 - y * (train.X @ w), 0.0).mean() + lam * (w @ w))
        if objective <= goal or iterations > 3000:
            return fastest(partial(svc.fit, X, y), 3) if seconds < 5.0 else seconds, iterations, objective
    raise AssertionError("count() does not end")


def _with_int32_indices(X: Any) -> Any:
    """Return X with 32-bit indices, which liblinear needs."""
    if not isinstance(X, np.ndarray):
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X


# ---- L1 ---------------------------------------------------------------------------------------------------------------

L1_SOLVERS = {
    "scd": lambda block, lam, radius: SCD().rounds(LocalBlocks([block]), lam, seed=0, penalty="l1"),
    "comid": lambda block, lam, radius: COMID().rounds(LocalBlocks([block]), lam, penalty="l1"),
    "rda": lambda block, lam, radius: RDA().rounds(LocalBlocks([block]), lam, penalty="l1"),
    "psa": lambda block, lam, radius: PSA(radius=radius).rounds(LocalBlocks([block]), lam),
}


def _compare_l1(name: str, train: Block, lam: float) -> Iterator[Row]:
    """Time the solvers to 1e-2 above the lowest objective of any; the radius of psa is the L1 norm of scd's weights."""
    solutions: dict[str, Solution] = {}
    radius = 1.0
    for system, rounds in L1_SOLVERS.items():
        solutions[system] = solve(rounds(train, lam, radius), tol=GOAL, max_passes=L1_PASSES)
        if system == "scd":
            radius = float(np.abs(solutions[system].w).sum())
    least = min(solution.certificate.primal for solution in solutions.values())
    for system, solution in solutions.items():
        reached = solution.history[solution.history["primal"] <= (1.0 + NEAR) * least]
        first = reached.iloc[0] if len(reached) else None
        yield {
            "data": name, "system": f"{system}, L1", "lam": lam,
            "seconds": None if first is None else float(first["seconds"]),
            "passes": None if first is None else int(first["passes"]),
            "objective": solution.certificate.primal, "zeros": float((solution.w == 0).mean()),
        }  # fmt: skip

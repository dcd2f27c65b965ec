"""The suite `passes`: what a small false positive rate costs in passes, beside all pairs."""

import time
from collections.abc import Iterator

from aucdist.data.block import Block
from aucdist.engine.blocks import LocalBlocks
from aucdist.pairs.cutting_planes import AllPairs
from aucdist.solvers.base import solve
from benchmarks.common import Row, chosen_names
from benchmarks.peers.data_sets import data_sets

BETAS = (1.0, 0.1, 0.05, 0.01)
PASSES_DATA = ("kddcup99", "a9a", "news20", "skin", "covtype-93k")
LAM, TOL, MAX_PASSES = 1e-3, 1e-3, 1000


def passes(slow_peers: bool, *, only: str | None = None) -> Iterator[Row]:
    """Count passes on the data sets of `PASSES_DATA`; the suite `top` has the same rows.

    Parameters
    ----------
    slow_peers : bool
        Makes no difference.
    only : str, optional
        Names of data sets, separated by commas; None for all.

    Raises
    ------
    InputError
        For an unknown data set.
    """
    known = {name: load for name, load in data_sets(slow_peers).items() if name in PASSES_DATA}
    for name in chosen_names(only, known):
        ((train, _),) = known[name](1)
        yield from passes_to_gap(name, train)


def passes_to_gap(name: str, train: Block) -> Iterator[Row]:
    """Yield a row for each false positive rate: the passes to a relative gap, beside those over all pairs."""
    whole = None
    for beta in BETAS:
        blocks, start = LocalBlocks([train]), time.perf_counter()
        rounds = AllPairs().rounds(blocks, LAM, max_fpr=None if beta == 1.0 else beta)
        solution = solve(rounds, tol=TOL, max_passes=MAX_PASSES)
        seconds, whole = time.perf_counter() - start, whole or solution.passes
        yield {
            "data": name, "system": f"aucdist hinge, lam {LAM:g}, to gap {TOL:g}", "kind": "passes", "value": beta,
            "passes": solution.passes, "times all pairs": solution.passes / whole, "seconds": seconds,
            "relative gap": solution.certificate.relative_gap, "primal": solution.certificate.primal,
            "note": str(solution.certificate.status),
        }  # fmt: skip

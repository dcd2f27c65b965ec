"""The suite `top_passes`: passes of fits of the highest-scoring negatives, on sets where some fits are hard."""

import itertools
import time
from collections.abc import Iterator

from aucdist.engine.blocks import LocalBlocks
from aucdist.maps import expander_of
from aucdist.maps.base import map_blocks
from aucdist.pairs.cutting_planes import AllPairs
from aucdist.solvers.base import solve
from benchmarks.common import Row, split_and_scale

TOL = 1e-3
MAPS = {"bins": "bins", "bins and ten interactions": {"map": "bins", "interactions": 10}, "leaves": "leaves"}
CHOOSING = (
    "dna.scale", "abalone19", "page-blocks0", "magic04", "letter.scale", "a9a", "yeast4, bins", "letter-recognition, bins",
    "magic04, bins", "page-blocks0, bins and ten interactions", "page-blocks0, leaves", "winequality-red-4, leaves",
    "rcv1-ccat-vw1000", "covtype-ramp-test, bins and ten interactions",
)  # fmt: skip
"""Sets on which the solver was developed, and their maps."""
CONFIRMING = (
    "koil-satimage_sub", "pendigits", "yeast6", "vehicle1", "usps-esl", "abalone9-18, bins", "segment0, bins",
    "winequality-white-3_vs_7, leaves", "pendigits, bins and ten interactions",
)  # fmt: skip
PARTS = {
    "choosing": (CHOOSING, (0.01, 0.05, 0.1), (1e-2, 1e-3, 1e-4, 1e-5), 300),
    "confirming": (CONFIRMING, (0.01, 0.05), (1e-2, 1e-3, 1e-4), 200),
}
"""The sets of a part, its false positive rates, its values of lam, and the most passes of a fit."""
CONDITIONS = (
    f"to a relative gap of {TOL:g}; CPU seconds of one thread, compiling left out by a fit of ten passes before"
)


def top_passes(slow_peers: bool, only: str | None = None) -> Iterator[Row]:
    """Yield a row for each fit.

    `slow_peers`: there are none. `only`: names of sets, separated by semicolons.
    """
    for part, (sets, rates, lams, most) in PARTS.items():
        for name in sets if only is None else [name for name in sets if name in only.split("; ")]:
            file, _, features = name.partition(", ")
            blocks = LocalBlocks([split_and_scale(file)[0]])
            if features:
                blocks = map_blocks(blocks, expander_of(MAPS[features]).fit_blocks(blocks))
            solve(AllPairs().rounds(blocks, lams[0], max_fpr=rates[0]), tol=TOL, max_passes=10)
            for rate, lam in itertools.product(rates, lams):
                began = time.process_time()
                fit = solve(AllPairs().rounds(blocks, lam, max_fpr=rate), tol=TOL, max_passes=most)
                yield {
                    "set": name, "part": part, "rows": blocks.n_samples, "features": blocks.n_features,
                    "positives": blocks.n_pos, "max_fpr": rate, "lam": lam, "most passes": most, "passes": fit.passes,
                    "gap": fit.certificate.relative_gap, "CPU seconds": time.process_time() - began,
                    "status": str(fit.certificate.status),
                }  # fmt: skip

"""How often `promote --if better` replaces a model by an equal one, and by one that is better by 0.01 AUC, on 20 000 rows.

By hand: ``python tests/infra/equal_models.py``. The scores of two models with correlated errors are drawn on the same rows;
the test and the bound are those of `flows.promote`.
"""

import argparse
import itertools
import math

import numpy as np
from scipy.special import ndtri

from aucdist.metrics.compare import auc_test
from flows.promote import PairedScores

ROWS, AUC = 20_000, 0.85
"""Rows, and the AUC of the model in use."""
SHARES, CORRELATIONS = (0.5, 0.2, 0.05), (0.7, 0.9)
"""Positives among the rows, and the correlation of the two scores within a class."""


def drawn(auc_new: float, share: float, correlation: float, rng: np.random.Generator) -> PairedScores:
    """Draw labels and the scores of two models."""
    y = np.where(np.arange(ROWS) < share * ROWS, 1, -1)
    common = rng.normal(size=(ROWS, 1)) * math.sqrt(correlation)
    noise = common + rng.normal(size=(ROWS, 2)) * math.sqrt(1.0 - correlation)
    distance = math.sqrt(2.0) * ndtri(np.array([auc_new, AUC]))
    new, old = (noise + np.where(y == 1, 1.0, 0.0)[:, None] * distance).T
    return PairedScores("drawn rows", y, new, old)


def promoted(pair: PairedScores) -> bool:
    """Return whether the new model is surely better, as a promotion without a margin asks."""
    return auc_test(pair.y, pair.new, pair.old).low > 0.0


def main() -> None:
    """Print how many of the runs are promoted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    print("share,correlation,runs,equal,better", flush=True)
    for share, correlation in itertools.product(SHARES, CORRELATIONS):
        equal, better = (
            sum(promoted(drawn(auc, share, correlation, rng)) for _ in range(options.runs)) for auc in (AUC, AUC + 0.01)
        )
        print(f"{share},{correlation},{options.runs},{equal},{better}", flush=True)


if __name__ == "__main__":
    main()

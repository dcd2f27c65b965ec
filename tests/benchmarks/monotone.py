"""The suite `monotone`: passes of fits with directions beside free ones, and what `auto` does to the AUC of rare KEEL sets."""

import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from aucdist import PairwiseHingeClassifier
from aucdist.data.block import Block
from aucdist.data.sources import catalog
from aucdist.engine.blocks import LocalBlocks
from aucdist.estimators.scores import count_scores, map_for_model
from aucdist.metrics import ranking
from benchmarks.common import Row, split_and_scale
from benchmarks.peers.data_sets import data_sets, random_splits

LAMS = (1e-2, 1e-3)
LARGE = ("page-blocks0", "magic04", "a9a", "covtype-93k", "kddcup99")
SEEDS = (511, 512, 513, 514, 515)
"""Of the splits of rare sets; no other suite has them."""
LEAST, MOST = 8, 60
"""Positives of a rare set."""
WITH_MISSING = ("cleveland-0_vs_4",)
"""Left out: a straight line has no place for missing values."""
SYSTEMS: dict[str, dict[str, Any]] = {
    "linear": {}, "bins": {"features": "bins"}, "monotone": {"features": "bins", "monotone": "auto"},
}  # fmt: skip


def monotone(slow_peers: bool) -> Iterator[Row]:
    """Count passes on the sets of `LARGE`, then take the means of the rare sets."""
    known = data_sets(slow_peers)
    for name in LARGE:
        train, test = known.get(name, partial(random_splits, name))(1)[0]
        for lam in LAMS:
            fits = {system: _fit(system, lam, train, test) for system in ("bins", "monotone")}
            free, own = fits["bins"], fits["monotone"]
            row: Row = {"data": name, "train rows": train.n_samples, "lam": lam}
            row |= {"passes free": free["passes"], "passes": own["passes"], "times": own["passes"] / free["passes"]}
            yield row | {"AUC bins": free["auc"], "AUC monotone": own["auc"]}
    yield from _rare()


def _rare() -> Iterator[Row]:
    names = rare_sets()
    areas = np.zeros((len(LAMS), len(SYSTEMS), len(names)))
    for k, name in enumerate(names):
        for seed in SEEDS:
            train, test = split_and_scale(name, seed)
            for i, lam in enumerate(LAMS):
                areas[i, :, k] += [_fit(system, lam, train, test)["auc"] / len(SEEDS) for system in SYSTEMS]
    for lam, of_lam in zip(LAMS, areas, strict=True):
        row: Row = {"data": f"mean of {len(names)} rare KEEL sets", "lam": lam}
        row |= {f"AUC {system}": float(mean) for system, mean in zip(SYSTEMS, of_lam.mean(axis=1), strict=True)}
        linear, bins, own = of_lam
        below = {"bins below linear": int((bins < linear - 0.005).sum())}
        yield row | below | {"monotone below linear": int((own < linear - 0.005).sum())}


def rare_sets() -> list[str]:
    """Return the names of the KEEL sets with from `LEAST` to `MOST` positives."""
    sizes = {
        name: int((source.classes or {}).get("positive", 0))
        for name, source in catalog().items()
        if source.format == "keel"
    }
    return sorted(name for name, n_pos in sizes.items() if LEAST <= n_pos <= MOST and name not in WITH_MISSING)


def _fit(system: str, lam: float, train: Block, test: Block) -> dict[str, float]:
    model = PairwiseHingeClassifier(lam=lam, **SYSTEMS[system])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of sets with few positives
        model.fit(LocalBlocks([train]))
    counts = count_scores(map_for_model(model, LocalBlocks([test])), model.coef_[0])
    return {"passes": float(model.n_passes_), "auc": ranking.auc(counts)}

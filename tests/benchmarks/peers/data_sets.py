"""The data sets of the suites `peers` and `top`: for each one a function that returns its splits into training and test rows."""

from collections.abc import Callable
from functools import partial

from aucdist.data.block import Block
from aucdist.data.shards.sharding import simulate
from aucdist.data.sources import Source, catalog
from benchmarks.common import SEED, read_train_and_test, split_and_scale

TrainAndTest = tuple[Block, Block]
Splits = Callable[[int], list[TrainAndTest]]
"""Takes how many splits a data set with few rows is to have, and returns the splits that this one has: one at least."""

FEW_ROWS = 10_000
"""A data set with fewer training rows, and without test rows of its own, has as many splits as are asked for; others have one."""

MIN_IMBALANCE = 9.0
N_KEEL = 20
WITH_MANY_POSITIVES = (
    "page-blocks0", "yeast1", "dna.scale", "koil-poker", "koil-satimage_sub", "koil-svmguide1_sub", "koil-svmguide3",
    "pendigits", "rcv1-ccat-vw1000", "splice.all", "usps-esl.all",
)  # fmt: skip
"""Further sets of the catalog with 100 positive rows in the three tenths that are test rows, none of them the rows of another."""


def data_sets(slow_peers: bool) -> dict[str, Splits]:
    """Return the data sets by name; with `slow_peers` also the largest one."""
    configured = ("a9a", "kddcup99", "news20", "covtype-20k")
    sets: dict[str, Splits] = {name: partial(_one_split, partial(read_train_and_test, name)) for name in configured}
    named = {"letter": "letter-recognition", "covtype-93k": "covtype-ramp-test", "skin": "skin_nonskin"}
    sets |= {name: partial(random_splits, source) for name, source in named.items()}
    sets |= {name: partial(random_splits, name) for name in ("magic04", *imbalanced_keel_sets())}
    sets["simulated-581k"] = partial(_one_split, partial(_simulated, 581_012, 54, 0.18))
    if slow_peers:
        sets["simulated-10m"] = partial(_one_split, partial(_simulated, 10_000_000, 50, 0.02))
    return sets


def top_data_sets(slow_peers: bool) -> dict[str, Splits]:
    """Return the data sets of the suite `top`: those of `peers`, and those of `WITH_MANY_POSITIVES`."""
    return data_sets(slow_peers) | {name: partial(random_splits, name) for name in WITH_MANY_POSITIVES}


def random_splits(name: str, n_splits: int) -> list[TrainAndTest]:
    """Return splits of a set of the catalog with the seeds 0, 1, 2, ..., or only the first if it has too many rows."""
    first = split_and_scale(name)
    seeds = range(SEED + 1, SEED + n_splits) if first[0].n_samples < FEW_ROWS else ()
    return [first, *(split_and_scale(name, seed) for seed in seeds)]


def _one_split(read_rows: Callable[[], TrainAndTest], n_splits: int) -> list[TrainAndTest]:
    return [read_rows()]


def imbalanced_keel_sets() -> list[str]:
    """Return the twenty KEEL sets with the most positives among those with at least nine negatives for each positive."""
    counts = {name: _class_counts(source) for name, source in catalog().items() if source.format == "keel"}
    chosen = [name for name, (n_pos, n_neg) in counts.items() if n_neg >= MIN_IMBALANCE * n_pos > 0]
    return sorted(chosen, key=lambda name: (-counts[name][0], name))[:N_KEEL]


def _class_counts(source: Source) -> tuple[int, int]:
    n_pos = (source.classes or {}).get("positive", 0)
    return n_pos, (source.rows or 0) - n_pos


def _simulated(rows: int, features: int, share: float) -> TrainAndTest:
    train, test = (simulate(n, features, share, seed=SEED, index=i) for i, n in enumerate((rows, 100_000)))
    return _as_float32(train), _as_float32(test)


def _as_float32(block: Block) -> Block:
    return block.with_X(block.X.astype("float32"))

"""The data sets of the suites `peers` and `top`: for each one a function that returns its training and test rows."""

from collections.abc import Callable
from functools import partial

from aucdist.data.block import Block
from aucdist.data.shards.simulate import simulate
from aucdist.data.sources.catalog import catalog
from aucdist.data.sources.source import Source
from flows.bench.common import SEED, read_train_and_test, split_and_scale

TrainAndTest = tuple[Block, Block]

MIN_IMBALANCE = 9.0
N_KEEL = 20
WITH_MANY_POSITIVES = (
    "page-blocks0", "yeast1", "dna.scale", "koil-poker", "koil-satimage_sub", "koil-svmguide1_sub", "koil-svmguide3",
    "pendigits", "rcv1-ccat-vw1000", "splice.all", "usps-esl.all",
)  # fmt: skip
"""Further sets of the catalog with 100 positive rows in the three tenths that are test rows, none of them the rows of another."""


def data_sets(slow_peers: bool) -> dict[str, Callable[[], TrainAndTest]]:
    """Return the data sets by name; with `slow_peers` also the largest one."""
    found: dict[str, Callable[[], TrainAndTest]] = {
        name: partial(read_train_and_test, name) for name in ("a9a", "kddcup99", "news20", "covtype-20k")
    }
    named = {"letter": "letter-recognition", "covtype-93k": "covtype-ramp-test", "skin": "skin_nonskin"}
    found |= {name: partial(split_and_scale, source) for name, source in named.items()}
    found |= {name: partial(split_and_scale, name) for name in ("magic04", *imbalanced_keel_sets())}
    found["simulated-581k"] = partial(_simulated, 581_012, 54, 0.18)
    if slow_peers:
        found["simulated-10m"] = partial(_simulated, 10_000_000, 50, 0.02)
    return found


def top_data_sets(slow_peers: bool) -> dict[str, Callable[[], TrainAndTest]]:
    """Return the data sets of the suite `top`: those of `peers`, and those of `WITH_MANY_POSITIVES`."""
    return data_sets(slow_peers) | {name: partial(split_and_scale, name) for name in WITH_MANY_POSITIVES}


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

"""The data sets of the suites `peers` and `top`: for each one a function that returns its training and test rows."""

from collections.abc import Callable
from functools import partial

from aucdist.data.block import Block
from aucdist.data.formats.readers import read
from aucdist.data.preprocess import fit_preprocessor
from aucdist.data.shards.simulate import simulate
from aucdist.data.sources.catalog import catalog, find
from aucdist.data.sources.source import Source
from aucdist.data.split import split
from flows.bench.common import read_train_and_test

TrainAndTest = tuple[Block, Block]

TEST_SHARE, SEED = 0.3, 0
MIN_IMBALANCE = 9.0
N_KEEL = 20
TOP = (
    "page-blocks0", "yeast1", "dna.scale", "koil-poker", "koil-satimage_sub", "koil-svmguide1_sub", "koil-svmguide3",
    "pendigits", "rcv1-ccat-vw1000", "splice.all", "usps-esl.all",
)  # fmt: skip
"""Further sets of the catalog with 100 positive rows in the three tenths that are test rows, none of them the rows of another."""
MOST_DENSE = 1000
"""Rows of svmlight files with at most so many features become dense, and are standardised; others have unit length."""


def data_sets(slow_peers: bool) -> dict[str, Callable[[], TrainAndTest]]:
    """Return the data sets by name; with `slow_peers` also the largest one."""
    found: dict[str, Callable[[], TrainAndTest]] = {
        name: partial(read_train_and_test, name) for name in ("a9a", "kddcup99", "news20", "covtype-20k")
    }
    named = {"letter": "letter-recognition", "covtype-93k": "covtype-ramp-test", "skin": "skin_nonskin"}
    found |= {name: partial(_split_and_scale, source) for name, source in named.items()}
    found |= {name: partial(_split_and_scale, name) for name in ("magic04", *imbalanced_keel_sets())}
    found["simulated-581k"] = partial(_simulated, 581_012, 54, 0.18)
    if slow_peers:
        found["simulated-10m"] = partial(_simulated, 10_000_000, 50, 0.02)
    return found


def top_data_sets(slow_peers: bool) -> dict[str, Callable[[], TrainAndTest]]:
    """Return the data sets of the suite `top`: those of `peers`, and those of `TOP`."""
    return data_sets(slow_peers) | {name: partial(_split_and_scale, name) for name in TOP}


def imbalanced_keel_sets() -> list[str]:
    """Return the twenty KEEL sets with the most positives among those with at least nine negatives for each positive."""
    counts = {name: _class_counts(source) for name, source in catalog().items() if source.format == "keel"}
    chosen = [name for name, (n_pos, n_neg) in counts.items() if n_neg >= MIN_IMBALANCE * n_pos > 0]
    return sorted(chosen, key=lambda name: (-counts[name][0], name))[:N_KEEL]


def _class_counts(source: Source) -> tuple[int, int]:
    n_pos = (source.classes or {}).get("positive", 0)
    return n_pos, (source.rows or 0) - n_pos


def _split_and_scale(name: str) -> TrainAndTest:
    data = read(find(name))
    block, scale = data.block, "standard"
    if hasattr(block.X, "toarray"):
        if block.n_features <= MOST_DENSE:
            block = Block.of(block.X.toarray(), block.y)
        else:
            scale = "unit-row"
    train, test = (block.take(which) for which in split(block, TEST_SHARE, SEED))
    scaling = fit_preprocessor(
        [train], data.schema.feature_names, log1p=None, scale=scale, categories=data.schema.categories
    )
    return scaling.transform(train), scaling.transform(test)


def _simulated(rows: int, features: int, share: float) -> TrainAndTest:
    train, test = (simulate(n, features, share, seed=SEED, index=i) for i, n in enumerate((rows, 100_000)))
    return _as_float32(train), _as_float32(test)


def _as_float32(block: Block) -> Block:
    return block.with_X(block.X.astype("float32"))

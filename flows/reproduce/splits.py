"""What experiments over random splits share: a training part and a test part of a data set, scaled, and a fit to the former."""

import itertools
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np
from pydantic import Field

from aucdist.data.block import Block
from aucdist.data.preprocess import fit_preprocessor
from aucdist.data.split import split
from aucdist.engine.blocks import LocalBlocks, block_seed
from aucdist.estimators import ESTIMATORS
from flows.config.base import Strict
from flows.reproduce.datasets import DataSet, Version
from flows.reproduce.folds import dataset
from flows.reproduce.kind import Key, Task


class Splits(Strict):
    """How the rows are parted, and the penalty in the paper's units."""

    test: float = Field(default=0.3, gt=0, lt=1, description="Share of each class kept for the test")
    repeats: int = Field(default=10, ge=1)
    seed: int = Field(default=0, ge=0)
    scale: Literal["none", "standard", "minmax", "maxabs", "unit-row"] = "standard"
    penalty: float = Field(default=1.0, gt=0, description="lam times the number of training rows")


def split_tasks(
    protocol: Splits,
    datasets: Mapping[str, DataSet],
    systems: Mapping[str, Task],
    versions: Mapping[str, Version],
) -> Iterator[tuple[Key, Task]]:
    """Yield every split of every system on the data sets that are present; `systems` holds what else the tasks hold."""
    shared = protocol.model_dump(exclude={"repeats"})  # more of them leave those that are kept as they are
    for key, version in versions.items():
        if version.present:
            about = {"source": datasets[key].source.model_dump(mode="json"), "fingerprint": version.fingerprint}
            for (name, more), repeat in itertools.product(systems.items(), range(protocol.repeats)):
                yield Key(key, name, repeat), about | more | {"protocol": shared, "repeat": repeat}


def split_parts(task: Task) -> tuple[Block, Block]:
    """Return the training and the test rows of a split, scaled by the former."""
    data, protocol = dataset(task), task["protocol"]
    train, test = split(data.block, protocol["test"], block_seed(protocol["seed"], task["repeat"], 0))
    block, schema = data.block.take(train), data.schema
    scaling = fit_preprocessor(
        [block], schema.feature_names, log1p=None, scale=protocol["scale"], categories=schema.categories
    )
    return scaling.transform(block), scaling.transform(data.block.take(test))


def split_fit(task: Task, parameters: dict[str, Any], train: Block) -> Any:
    """Return an estimator fitted with the protocol's penalty; its warnings are left out, for fits may have a number of steps."""
    given = dict(parameters)
    made: Any = ESTIMATORS[given.pop("estimator")]
    estimator = made(**given, lam=task["protocol"]["penalty"] / train.n_samples)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(LocalBlocks([train]))


def oversampled(train: Block, seed: int) -> Block:
    """Return as many rows of either class, by SMOTE, with 5 neighbours or as many as there are."""
    from imblearn.over_sampling import SMOTE

    fewest = int(min((train.y > 0).sum(), (train.y < 0).sum()))
    sampler = SMOTE(sampling_strategy=1.0, k_neighbors=min(5, fewest - 1), random_state=seed)
    X, y = sampler.fit_resample(np.asarray(train.X), train.y)
    return Block.of(X, y)


def seed_of(task: Task) -> int:
    """Return the seed of what is random in a split's fit."""
    return block_seed(task["protocol"]["seed"], task["repeat"], 1) % 2**31

"""Random splits shared by the kinds: training and test rows of a data set, scaled, and a fit to the training rows."""

import itertools
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np
from pydantic import Field

from aucdist.data.block import Block
from aucdist.data.split import split
from aucdist.engine.blocks import LocalBlocks, block_seed
from aucdist.estimators import ESTIMATORS
from flows.config.base import Strict
from flows.reproduce.datasets import DataSet, Version
from flows.reproduce.folds import fit_scaling, read_dataset
from flows.reproduce.kind import Task, TaskKey


class Splits(Strict):
    """Repeated random splits, and the penalty in the paper's units."""

    test: float = Field(default=0.3, gt=0, lt=1, description="Share of the test rows in each class")
    repeats: int = Field(default=10, ge=1)
    seed: int = Field(default=0, ge=0)
    scale: Literal["none", "standard", "minmax", "maxabs", "unit-row"] = "standard"
    penalty: float = Field(default=1.0, gt=0, description="lam times the number of training rows")


def split_tasks(
    protocol: Splits,
    datasets: Mapping[str, DataSet],
    systems: Mapping[str, Task],
    versions: Mapping[str, Version],
) -> Iterator[tuple[TaskKey, Task]]:
    """Yield every split of every system on the data sets that are present; `systems` holds further entries of the tasks."""
    shared = protocol.model_dump(exclude={"repeats"})  # results stay valid when repeats are added
    for key, version in versions.items():
        if version.present:
            common = {"source": datasets[key].source.model_dump(mode="json"), "fingerprint": version.fingerprint}
            for (name, extra), repeat in itertools.product(systems.items(), range(protocol.repeats)):
                yield TaskKey(key, name, repeat), common | extra | {"protocol": shared, "repeat": repeat}


def split_rows(task: Task) -> tuple[Block, Block]:
    """Return the training and the test rows of a split, scaled by the training rows."""
    data, protocol = read_dataset(task), task["protocol"]
    train, test = split(data.block, protocol["test"], block_seed(protocol["seed"], task["repeat"], 0))
    rows = data.block.take(train)
    scaling = fit_scaling(data, protocol["scale"], rows)
    return scaling.transform(rows), scaling.transform(data.block.take(test))


def fit_on_split(task: Task, parameters: dict[str, Any], train: Block) -> Any:
    """Return an estimator fitted with the protocol's penalty, without the warning of a fit that stops at its step limit."""
    parameters = dict(parameters)
    estimator_class: Any = ESTIMATORS[parameters.pop("estimator")]
    estimator = estimator_class().set_params(**parameters, lam=task["protocol"]["penalty"] / train.n_samples)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(LocalBlocks([train]))


def oversample(train: Block, seed: int) -> Block:
    """Return the rows with the smaller class oversampled to the size of the larger one, by SMOTE.

    SMOTE uses 5 neighbours, or as many as the smaller class has.
    """
    from imblearn.over_sampling import SMOTE

    n_minority = int(min((train.y > 0).sum(), (train.y < 0).sum()))
    sampler = SMOTE(sampling_strategy=1.0, k_neighbors=min(5, n_minority - 1), random_state=seed)
    X, y = sampler.fit_resample(np.asarray(train.X), train.y)
    return Block.of(X, y)


def split_seed(task: Task) -> int:
    """Return the seed of a split's random steps other than the split itself."""
    return block_seed(task["protocol"]["seed"], task["repeat"], 1) % 2**31

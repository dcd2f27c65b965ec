"""What experiments over folds share: systems, how the rows are parted, and one fit and its test AUC."""

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

import numpy as np
from pydantic import Field

from aucdist.data.block import Block
from aucdist.data.formats.readers import read
from aucdist.data.preprocess import fit_preprocessor
from aucdist.data.sources.source import Source
from aucdist.engine.blocks import LocalBlocks, block_seed
from aucdist.errors import RunError
from aucdist.estimators import ESTIMATORS
from aucdist.metrics.auc import auc
from aucdist.metrics.counts import ScoreCounts
from aucdist.selection.folds import arrival, fold_numbers
from flows.config.base import Strict
from flows.config.model import ModelConfig
from flows.reproduce.datasets import DataSet, Version
from flows.reproduce.kind import Key, Task

Params = dict[str, Any]
Grid = dict[str, list[int | float]]


class System(Strict):
    """A system of a paper: an estimator with parameters."""

    model: ModelConfig

    def points(self, grid: Grid) -> list[Params]:
        """Return the parameters of every point of the grid, each accepted by the estimator."""
        own = self.model.model_dump(exclude={"estimator"}, exclude_unset=True)
        found = [own | dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
        for point in found:
            ModelConfig(estimator=self.model.estimator, **point)
        return found


class Folds(Strict):
    """How the rows are parted."""

    folds: int = Field(default=5, ge=2)
    repeats: int = Field(default=4, ge=1, description="Partitions into folds")
    seed: int = Field(default=0, ge=0)
    scale: Literal["none", "standard", "minmax", "maxabs", "unit-row"] = "none"


def fold_tasks(
    protocol: Folds,
    datasets: Mapping[str, DataSet],
    systems: Mapping[str, System],
    versions: Mapping[str, Version],
    more: Callable[[str, str], Task],
) -> Iterator[tuple[Key, Task]]:
    """Yield every fold of every system on the data sets that are present.

    Parameters
    ----------
    protocol : Folds
    datasets, systems, versions : dict
    more : callable
        Takes the names of data set and system, and returns what else the task holds.
    """
    shared = protocol.model_dump(exclude={"repeats"})  # more of them leave those that are kept as they are
    for dataset, version in versions.items():
        if not version.present:
            continue
        source = datasets[dataset].source.model_dump(mode="json")
        for name, system in systems.items():
            about = {"source": source, "fingerprint": version.fingerprint, "estimator": system.model.estimator}
            rest = about | {"protocol": shared} | more(dataset, name)
            for repeat, fold in itertools.product(range(protocol.repeats), range(protocol.folds)):
                yield Key(dataset, name, repeat, fold), rest | {"repeat": repeat, "fold": fold}


def parts(task: Task) -> tuple[Block, Block]:
    """Return the training rows of a fold, scaled and in the order in which they arrive, and its test rows.

    Raises
    ------
    RunError
        If the data are no longer those that the client read.
    """
    data = dataset(task)
    block, seed, repeat = data.block, task["protocol"]["seed"], task["repeat"]
    fold = fold_numbers(block.row_id, block.y, task["protocol"]["folds"], block_seed(seed, repeat, 0))
    order = arrival(block.row_id, block_seed(seed, repeat, 1))
    train = block.take(order[fold[order] != task["fold"]])
    test = block.take(np.flatnonzero(fold == task["fold"]))
    scale, schema = task["protocol"]["scale"], data.schema
    scaling = fit_preprocessor([train], schema.feature_names, log1p=None, scale=scale, categories=schema.categories)
    return scaling.transform(train), scaling.transform(test)


def dataset(task: Task) -> Any:
    """Return the data set of a task by its ``source`` and ``fingerprint``; the last few stay in memory.

    Raises
    ------
    RunError
        If the data are no longer those that the client read.
    """
    data = _read(Source.model_validate(task["source"]).model_dump_json())
    if data.fingerprint != task["fingerprint"]:
        raise RunError(f"{task['source']['source']}: a worker reads other data there than the client did")
    return data


@functools.lru_cache(maxsize=4)
def _read(source: str) -> Any:
    return read(Source.model_validate_json(source))


def fitted(task: Task, point: Params, train: Block) -> Any:
    """Return the task's estimator with the parameters `point`, fitted; its seed is the fold's."""
    seed = block_seed(task["protocol"]["seed"], task["repeat"], task["fold"]) % 2**31
    return ESTIMATORS[task["estimator"]](**point, random_state=seed).fit(LocalBlocks([train]))


def area(model: Any, test: Block) -> float:
    """Return the AUC of a model on rows."""
    return auc(ScoreCounts.from_scores(test.y, model.decision_function(test.X)))

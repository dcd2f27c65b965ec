"""Cross-validation shared by the kinds: systems and their grids, the rows of each fold, fits, and the choice of parameters."""

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, Protocol

import numpy as np
from pydantic import Field

from aucdist.data.block import Block
from aucdist.data.dataset import Dataset
from aucdist.data.formats.readers import read
from aucdist.data.preprocess import Preprocessor, fit_preprocessor
from aucdist.data.sources.source import Source
from aucdist.engine.blocks import LocalBlocks, block_seed
from aucdist.errors import RunError, unknown
from aucdist.estimators import ESTIMATORS
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.ranking import auc
from aucdist.selection.folds import arrival, fold_numbers
from flows.config.base import Strict
from flows.config.model import ModelConfig
from flows.reproduce.datasets import DataSet, Version
from flows.reproduce.kind import Task, TaskKey

Params = dict[str, Any]
Grid = dict[str, list[int | float]]


class System(Strict):
    """A system of a paper: an estimator with parameters."""

    model: ModelConfig

    def grid_points(self, grid: Grid) -> list[Params]:
        """Return the parameters of every point of the grid, validated by the estimator."""
        fixed = self.model.model_dump(exclude={"estimator"}, exclude_unset=True)
        points = [fixed | dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
        for point in points:
            ModelConfig(estimator=self.model.estimator, **point)
        return points


class Folds(Strict):
    """Repeated cross-validation."""

    folds: int = Field(default=5, ge=2)
    repeats: int = Field(default=4, ge=1, description="Partitions into folds")
    seed: int = Field(default=0, ge=0)
    scale: Literal["none", "standard", "minmax", "maxabs", "unit-row"] = "none"


class PrintedFigure(Protocol):
    """A printed figure of one system on one data set."""

    dataset: str
    system: str


def check_targets(targets: Iterable[PrintedFigure], datasets: Mapping[str, Any], systems: Mapping[str, Any]) -> None:
    """Raise an InputError if a printed figure names a data set or a system that the experiment does not have."""
    for target in targets:
        for what, name, known in (("data set", target.dataset, datasets), ("system", target.system, systems)):
            if name not in known:
                raise unknown(f"{what} of a target", name, known)


def fold_tasks(
    protocol: Folds,
    datasets: Mapping[str, DataSet],
    systems: Mapping[str, System],
    versions: Mapping[str, Version],
    extra: Callable[[str, str], Task],
) -> Iterator[tuple[TaskKey, Task]]:
    """Yield every fold of every system on the data sets that are present.

    Parameters
    ----------
    protocol : Folds
    datasets, systems, versions : dict
    extra : callable
        Takes the names of data set and system, and returns further entries of the task.
    """
    shared = protocol.model_dump(exclude={"repeats"})  # results stay valid when repeats are added
    for dataset, version in versions.items():
        if not version.present:
            continue
        source = datasets[dataset].source.model_dump(mode="json")
        for name, system in systems.items():
            common = {
                "source": source, "fingerprint": version.fingerprint, "estimator": system.model.estimator,
                "protocol": shared, **extra(dataset, name),
            }  # fmt: skip
            for repeat, fold in itertools.product(range(protocol.repeats), range(protocol.folds)):
                yield TaskKey(dataset, name, repeat, fold), common | {"repeat": repeat, "fold": fold}


def fold_rows(task: Task) -> tuple[Block, Block]:
    """Return the scaled training rows of a fold, in their order of arrival, and its test rows.

    Raises
    ------
    RunError
        If the data differ from those that the client read.
    """
    data = read_dataset(task)
    block, seed, repeat = data.block, task["protocol"]["seed"], task["repeat"]
    fold = fold_numbers(block.row_id, block.y, task["protocol"]["folds"], block_seed(seed, repeat, 0))
    order = arrival(block.row_id, block_seed(seed, repeat, 1))
    train = block.take(order[fold[order] != task["fold"]])
    test = block.take(np.flatnonzero(fold == task["fold"]))
    scaling = fit_scaling(data, task["protocol"]["scale"], train)
    return scaling.transform(train), scaling.transform(test)


def fit_scaling(data: Dataset, scale: str, train: Block) -> Preprocessor:
    """Return the preprocessor that scales the features of a data set by its training rows."""
    schema = data.schema
    return fit_preprocessor([train], schema.feature_names, log1p=None, scale=scale, categories=schema.categories)


def read_dataset(task: Task) -> Dataset:
    """Return the data set of a task by its ``source`` and ``fingerprint``; the last four stay in memory.

    Raises
    ------
    RunError
        If the data differ from those that the client read.
    """
    data = _read(Source.model_validate(task["source"]).model_dump_json())
    if data.fingerprint != task["fingerprint"]:
        raise RunError(f"{task['source']['source']}: a worker reads other data there than the client did")
    return data


@functools.lru_cache(maxsize=4)
def _read(source: str) -> Dataset:
    return read(Source.model_validate_json(source))


def fit_on_fold(task: Task, point: Params, train: Block) -> Any:
    """Return the task's estimator with the parameters `point`, fitted with the seed of the fold."""
    seed = block_seed(task["protocol"]["seed"], task["repeat"], task["fold"]) % 2**31
    return ESTIMATORS[task["estimator"]](random_state=seed).set_params(**point).fit(LocalBlocks([train]))


def auc_on(model: Any, rows: Block) -> float:
    """Return the AUC of a model on rows."""
    return auc(ScoreCounts.from_scores(rows.y, model.decision_function(rows.X)))


def best_point(
    train: Block, n_points: int, n_folds: int, seed: int, score: Callable[[int, Block, Block], float]
) -> int:
    """Return the point of a grid with the highest mean score over folds of the training rows.

    Parameters
    ----------
    train : Block
    n_points, n_folds : int
    seed : int
        Decides the folds.
    score : callable
        Takes the number of a point, the rows to fit to and the rows to score.
    """
    if n_points == 1:
        return 0
    fold = fold_numbers(train.row_id, train.y, n_folds, seed)
    totals = np.zeros(n_points)
    for number in range(n_folds):
        inner, validation = train.take(fold != number), train.take(fold == number)
        totals += [score(point, inner, validation) for point in range(n_points)]
    return int(np.argmax(totals))

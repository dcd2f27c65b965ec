"""The protocol of most kinds: systems are fitted to training rows and scored on test rows, over folds or random splits."""

import functools
import itertools
import json
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

import numpy as np
from pydantic import Field

from aucdist.data.block import Block, each_of
from aucdist.data.dataset import Dataset
from aucdist.data.preprocess import Preprocessor, fit_preprocessor
from aucdist.data.shards.reading import read
from aucdist.data.sources import Source
from aucdist.data.split import split
from aucdist.engine.blocks import LocalBlocks, block_seed
from aucdist.errors import RunError
from aucdist.estimators import ESTIMATORS
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.ranking import auc
from aucdist.selection.folds import arrival, fold_numbers
from flows.config.base import Strict
from flows.config.model import ModelConfig
from flows.reproduce.kind import DataSet, Kind, Task, TaskKey, Version

Params = dict[str, Any]
Grid = dict[str, list[int | float]]
Scale = Literal["none", "standard", "minmax", "maxabs", "unit-row"]
Score = Callable[[Task, Params, Block, Block], float]
"""What parameters are worth: takes the task, the parameters, the rows to fit to and the rows to score."""


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
    scale: Scale = "none"


class Splits(Strict):
    """Repeated random splits, and the penalty in the paper's units."""

    test: float = Field(default=0.3, gt=0, lt=1, description="Share of the test rows in each class")
    repeats: int = Field(default=10, ge=1)
    seed: int = Field(default=0, ge=0)
    scale: Scale = "standard"
    penalty: float = Field(default=1.0, gt=0, description="lam times the number of training rows")


class ProtocolKind(Kind):
    """An experiment each of whose tasks is one system on one fold or split of one data set."""

    datasets: Mapping[str, DataSet]
    protocol: Folds | Splits

    @abstractmethod
    def tasks_of_systems(self, dataset: str) -> dict[str, Task]:
        """Return what decides the results of each system on a data set beside rows and protocol."""

    def tasks(self, versions: Mapping[str, Version]) -> Iterator[tuple[TaskKey, Task]]:
        """Yield every fold or split of every system on the data sets that are present."""
        shared = self.protocol.model_dump(exclude={"repeats"})  # results stay valid when repeats are added
        n_folds = self.protocol.folds if isinstance(self.protocol, Folds) else 1
        for dataset, version in versions.items():
            if not version.present:
                continue
            source = self.datasets[dataset].source.model_dump(mode="json")
            common = {"source": source, "fingerprint": version.fingerprint, "protocol": shared}
            for system, own in self.tasks_of_systems(dataset).items():
                for repeat, fold in itertools.product(range(self.protocol.repeats), range(n_folds)):
                    yield TaskKey(dataset, system, repeat, fold), common | own | {"repeat": repeat, "fold": fold}


def train_and_test(task: Task) -> tuple[Block, Block]:
    """Return the training rows of a fold, in their order of arrival, or of a split, and its test rows, scaled by the former.

    Raises RunError if the data differ from those that the client read.
    """
    data, protocol = read_dataset(task), task["protocol"]
    block, seeds = data.block, [block_seed(protocol["seed"], task["repeat"], k) for k in (0, 1)]
    if "folds" in protocol:
        fold, order = fold_numbers(block.row_id, block.y, protocol["folds"], seeds[0]), arrival(block.row_id, seeds[1])
        train, test = order[fold[order] != task["fold"]], np.flatnonzero(fold == task["fold"])
    else:
        train, test = split(block, protocol["test"], seeds[0])
    rows = block.take(train)
    scaling = fit_scaling(data, protocol["scale"], rows)
    return scaling.transform(rows), scaling.transform(block.take(test))


def fit_scaling(data: Dataset, scale: str, train: Block) -> Preprocessor:
    """Return the preprocessor that scales the features of a data set by its training rows."""
    schema = data.schema
    return fit_preprocessor(
        each_of([train]), schema.feature_names, log1p=None, scale=scale, categories=schema.categories
    )


def read_dataset(task: Task) -> Dataset:
    """Return the data set of a task by its ``source`` and ``fingerprint``; the last four stay in memory.

    Raises RunError if the data differ from those that the client read.
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


def choose(task: Task, train: Block, score: Score) -> int:
    """Return the one of the task's points with the highest mean score over inner folds of the training rows."""
    points, protocol = task["points"], task["protocol"]
    seed = block_seed(protocol["seed"], task["repeat"], 2 + task["fold"])
    fold = fold_numbers(train.row_id, train.y, protocol["inner_folds"], seed)
    totals = np.zeros(len(points))
    for number in range(protocol["inner_folds"]):
        inner, validation = train.take(fold != number), train.take(fold == number)
        totals += [score(task, point, inner, validation) for point in points]
    return int(np.argmax(totals))


def choose_once(task: Task, score: Score) -> int:
    """Return the choice on the first training part; a process computes it once for all folds of a system on a data set.

    With ``choice_rows`` in the task so many rows of the part decide at most.
    """
    if len(task["points"]) == 1:
        return 0
    return _choose_on_first_part(json.dumps(task | {"repeat": 0, "fold": 0}), score)


@functools.lru_cache(maxsize=64)
def _choose_on_first_part(first_task: str, score: Score) -> int:
    task = json.loads(first_task)
    train, _ = train_and_test(task)
    train = train.take(np.arange(train.n_samples)[: task.get("choice_rows")])  # the rows are in random order
    return choose(task, train, score)

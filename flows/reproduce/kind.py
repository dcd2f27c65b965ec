"""The base of all kinds of experiments: their protocol, data sets, folds and splits, and ranks of systems.

A new kind needs one new module and one row of `run.EXPERIMENTS`:

1. Derive a class from `ExperimentKind`. If the experiment has no tasks, skip 2. and 3. The fields of the class are the keys of
   the experiment in the YAML file, and ``kind: Literal["name"]`` is the name of the kind. Declare ``datasets`` if the experiment
   uses data sets of the catalog. If there are printed figures, declare ``targets``, a list of models for one row each. In the
   YAML file, ``targets`` is then the name of a CSV file in the same folder.
2. ``tasks(versions)`` yields a `TaskKey` and a JSON mapping for each task. The mapping has everything that the result depends on
   (seeds, parameters, the fingerprint of the data), because a stored result is used again while the mapping is unchanged.
3. ``run_task(task)`` runs one task in any process. It is static, takes the mapping and returns a JSON mapping.
4. ``report(results)`` returns the tables and figures of the page, the table of the CSV file, and the counts that ``--json``
   and the page print. Results may be missing, because a data set may be absent.

A kind whose tasks import an optional package returns its name from ``packages()``.

A kind need not support ``--quick``, because this option only changes keys of the experiment and selects data sets.

The module `scores` is a good example. Kinds share the tables and curves of the module `page`, and `results_of` and `rankings` of
this module. They also share `ProtocolKind`, where systems are fitted to training rows and scored on test rows, over folds or
random splits.
"""

import functools
import itertools
import json
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from pydantic import Field

from aucdist.data.block import Block, each_of
from aucdist.data.dataset import Dataset, Scale
from aucdist.data.preprocess import Preprocessor, fit_preprocessor
from aucdist.data.shards.reading import read
from aucdist.data.sources import ClassName, Source, find_source, is_present
from aucdist.data.split import split
from aucdist.engine.blocks import LocalBlocks, block_seed
from aucdist.errors import Json, RunError
from aucdist.estimators import ESTIMATORS
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.ranking import auc
from aucdist.selection import fold_numbers, shuffled_order
from flows.config.loading import AtLeastOne, Natural, Positive, Share, Strict, validated
from flows.config.model import ModelConfig
from flows.reproduce.page import NOT_RUN, ExperimentReport, PageTable

Task = Json
Result = Json
Versions = Mapping[str, "Version"]
Tasks = Iterator[tuple["TaskKey", Task]]

DECIMALS = 12
"""Values that agree to this number of decimals count as equal; further digits are rounding."""


class DataSet(Strict):
    """A data set of a paper: an entry of the catalog, and the differences from it."""

    name: str
    """A data set of the catalog. Where its files are absent, its cells say `not run here`."""
    positive: ClassName | list[ClassName] | None = None
    """The positive class, in place of the one in the catalog."""
    note: str | None = None
    """A remark for the page."""

    @property
    def source(self) -> Source:
        """The entry of the catalog, with the positive class of the paper."""
        source = find_source(self.name)
        return source if self.positive is None else source.model_copy(update={"positive": self.positive})


@dataclass(frozen=True)
class Version:
    """The version of a data set that an experiment uses. An absent data set has no rows."""

    name: str
    source: str
    n_samples: int = 0
    n_features: int = 0
    n_pos: int = 0
    positive: str = ""
    fingerprint: str = ""
    note: str = ""

    @property
    def present(self) -> bool:
        """Whether the files are on this machine."""
        return self.n_samples > 0


def version_of_data(dataset: DataSet) -> Version:
    """Read a data set and return its version. If its files are absent, the version has only its name and note."""
    source = dataset.source
    note = dataset.note or source.note or ""
    if not is_present(source):
        return Version(dataset.name, NOT_RUN, note=note)
    data = read(source, name=dataset.name)
    location = ", ".join(source.urls())
    return Version(
        dataset.name, location, data.block.n_samples, data.block.n_features, data.block.n_pos,
        ", ".join(data.schema.positive), data.fingerprint, note,
    )  # fmt: skip


@dataclass(frozen=True, order=True)
class TaskKey:
    """The name of a task within its experiment. The file of its result is named after it."""

    dataset: str
    system: str
    repeat: int = 0
    fold: int = 0

    def __str__(self) -> str:
        return f"{self.dataset}, {self.system}, repeat {self.repeat}, fold {self.fold}"


Results = Mapping[TaskKey, Result]


class ExperimentKind(Strict):
    """An experiment of a paper. Its fields are the keys of the YAML."""

    kind: str
    title: str
    datasets: Mapping[str, DataSet] = Field(default={}, max_length=0)
    """This kind of experiment has no data sets."""
    run_task: ClassVar[Any]
    """A static method that runs a task in any process and returns its result in JSON types. A kind without tasks has none."""

    def present(self, versions: Versions) -> Iterator[tuple[str, Version, Task]]:
        """Yield each data set that is present, with its version and the values that a task needs to read it."""
        for name, version in versions.items():
            if version.present:
                source = self.datasets[name].source.model_dump(mode="json")
                yield name, version, {"source": source, "fingerprint": version.fingerprint}

    def packages(self) -> set[str]:
        """Return the names of the optional packages that the tasks import. A run checks them before its first task."""
        return set()

    def tasks(self, versions: Versions) -> Tasks:
        """Yield every task with all values that its result depends on. By default there are none.

        Parameters
        ----------
        versions : Versions
            The version of each data set; absent data sets have no rows.
        """
        yield from ()

    @abstractmethod
    def report(self, results: Results) -> ExperimentReport:
        """Return the report of the experiment."""

    def page_table(self, title: str, lines: pd.DataFrame, *cell: str) -> PageTable:
        """Return a table with a row for each data set and a column for each system.

        `cell` has templates of the texts in each cell.
        """
        return PageTable(title, lines, cell, self.datasets, getattr(self, "systems", ()))


class Claim(Strict):
    """A claim of the paper that one system is ahead of others. The page counts the data sets on which it holds."""

    text: str
    system: str
    than: list[str] = Field(min_length=1)


def results_of(results: Results, dataset: str, system: str) -> list[Result]:
    """Return the results of one system on one data set, in the order of repeats and folds."""
    keys = [key for key in results if (key.dataset, key.system) == (dataset, system)]
    return [results[key] for key in sorted(keys)]


# ---- systems over folds or splits ------------------------------------------------------------------------------------

Grid = dict[str, list[int | float]]


class System(Strict):
    """A system of a paper: an estimator with parameters, and the grid of parameters that it is chosen from."""

    model: ModelConfig
    grid: Grid = Field(default={})
    """The parameters to choose from."""

    def points(self, otherwise: Grid | None = None) -> list[Json]:
        """Return the points of the system's grid, or of `otherwise` if it has none, validated by the estimator."""
        fixed, grid = self.model.model_dump(exclude={"estimator"}, exclude_unset=True), self.grid or otherwise or {}
        points = [fixed | dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
        for point in points:
            validated(ModelConfig, {"estimator": self.model.estimator, **point}, "a point of a grid")
        return points


class RepeatedFolds(Strict):
    """Repeated cross-validation."""

    folds: int = Field(default=5, ge=2)
    repeats: AtLeastOne = 4
    """The number of partitions into folds."""
    seed: Natural = 0
    scale: Scale = "none"


class Splits(Strict):
    """Repeated random splits, and the penalty in the paper's units."""

    test: Share = 0.3
    """The share of each class that becomes test rows."""
    repeats: AtLeastOne = 10
    seed: Natural = 0
    scale: Scale = "standard"
    penalty: Positive = 1.0
    """lam times the number of training rows"""


class ProtocolKind(ExperimentKind):
    """An experiment in which each task is one system, or all systems, on one fold or split of one data set."""

    datasets: Mapping[str, DataSet]
    protocol: RepeatedFolds | Splits

    @abstractmethod
    def task_of(self, dataset: str, system: Any) -> Task:
        """Return the values that the results of a system depend on, besides the rows and the protocol."""

    def tasks(self, versions: Versions) -> Tasks:
        """Yield every fold or split of every system on the data sets that are present."""
        shared = self.protocol.model_dump(exclude={"repeats"})  # results stay valid when repeats are added
        n_folds = self.protocol.folds if isinstance(self.protocol, RepeatedFolds) else 1
        for dataset, _, data in self.present(versions):
            for name, system in getattr(self, "systems", {"all": None}).items():
                task = data | {"protocol": shared} | self.task_of(dataset, system)
                for repeat, fold in itertools.product(range(self.protocol.repeats), range(n_folds)):
                    yield TaskKey(dataset, name, repeat, fold), task | {"repeat": repeat, "fold": fold}


def train_and_test(task: Task) -> tuple[Block, Block]:
    """Return the training rows and the test rows of a fold or a split. Both are scaled by the training rows.

    The training rows of a fold keep the order in which they arrived.

    Raises
    ------
    RunError
        If the data differ from the data that the client read.
    """
    data, protocol = read_dataset(task), task["protocol"]
    block, seeds = data.block, [block_seed(protocol["seed"], task["repeat"], k) for k in (0, 1)]
    if "folds" in protocol:
        fold = fold_numbers(block.row_id, block.y, protocol["folds"], seeds[0])
        order = shuffled_order(block.row_id, seeds[1])
        train, test = order[fold[order] != task["fold"]], np.flatnonzero(fold == task["fold"])
    else:
        train, test = split(block, protocol["test"], seeds[0])
    rows = block.take(train)
    scaling = fit_scaling(data, protocol["scale"], rows)
    return scaling.transform(rows), scaling.transform(block.take(test))


def fit_scaling(data: Dataset, scale: Scale, train: Block) -> Preprocessor:
    """Return the preprocessor of a data set, whose scaling is computed from the training rows."""
    schema = data.schema
    return fit_preprocessor(
        each_of([train]), schema.feature_names, log1p=None, scale=scale, categories=schema.categories
    )


def read_dataset(task: Task) -> Dataset:
    """Return the data set of a task, given its ``source`` and ``fingerprint``. The last four data sets stay in memory.

    Raises
    ------
    RunError
        If the data differ from those that the client read.
    """
    data = _read(json.dumps(task["source"]))
    if data.fingerprint != task["fingerprint"]:
        raise RunError(f"{task['source']['source']}: a worker read other data at this path than the client")
    return data


@functools.lru_cache(maxsize=4)
def _read(source: str) -> Dataset:
    return read(Source.model_validate_json(source))


def fit_on_fold(task: Task, point: Json, train: Block) -> Any:
    """Return the task's estimator with the parameters `point`, fitted with the seed of the fold."""
    seed = block_seed(task["protocol"]["seed"], task["repeat"], task["fold"]) % 2**31
    return ESTIMATORS[task["estimator"]](random_state=seed).set_params(**point).fit(LocalBlocks([train]))


def auc_on(model: Any, rows: Block) -> float:
    """Return the AUC of a model on rows."""
    return auc(ScoreCounts.from_scores(rows.y, model.decision_function(rows.X)))


# ---- ranks: equal values get the same rank, and a system wins only if it is strictly ahead ------------------------------


def by_system(lines: pd.DataFrame, value: str, systems: Iterable[str]) -> pd.DataFrame:
    """Return a value of the lines with a row for each data set and a column for each system.

    Data sets are left out if one of the systems has no value.
    """
    return lines.pivot(index="dataset", columns="system", values=value).reindex(columns=list(systems)).dropna()


def ranks(values: pd.DataFrame, *, higher_is_better: bool) -> pd.DataFrame:
    """Return the rank of each system on each data set. The best rank is 1, and equal values get the mean of their ranks."""
    return values.round(DECIMALS).rank(axis=1, ascending=not higher_is_better)


def n_ahead(values: pd.DataFrame, system: str, rivals: Sequence[str], *, higher_is_better: bool) -> int:
    """Return the number of data sets on which a system is strictly better than each of its rivals."""
    signed = values.round(DECIMALS) * (1 if higher_is_better else -1)
    return int(signed[rivals].lt(signed[system], axis=0).all(axis=1).sum())


def rankings(values: pd.DataFrame, *, higher_is_better: bool) -> Json:
    """Return the mean rank of each system over the data sets, and the number of data sets on which it is the best.

    `best_alone` counts the data sets on which all other systems are worse. `best_shared` counts those on which another system
    is equally good.
    """
    rank = ranks(values, higher_is_better=higher_is_better) if len(values) else pd.DataFrame()
    best = rank.eq(rank.min(axis=1), axis=0)
    single_best = best.sum(axis=1) == 1
    return {
        "data_sets": len(values),
        "mean_rank": rank.mean().to_dict(),
        "best_alone": best[single_best].sum().to_dict(),
        "best_shared": best[~single_best].sum().to_dict(),
    }

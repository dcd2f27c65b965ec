"""The protocol of the kinds of experiment, which `run` calls, the data sets of a paper, and ranks of systems.

How to add a kind, in one new module and one row of `config.KINDS`:

1. Derive a class from `Kind`. Its fields are the keys of the experiment in the YAML; ``kind: Literal["name"]`` names the kind.
   Declare ``datasets`` if the experiment uses data sets of the catalog. Declare ``targets``, a list of models of one row each,
   if there are printed figures: in the YAML, ``targets`` is then the name of a CSV file beside it.
2. ``tasks(versions)`` yields one `TaskKey` and one JSON mapping for each task. The mapping holds everything that decides the
   result (seeds, parameters, the fingerprint of the data), because a stored result is used again for as long as it is unchanged.
   A kind without tasks omits this method.
3. ``run_task(task)`` runs one task in any process. It is static, takes the mapping and returns a JSON mapping.
4. ``report(name, results)`` returns the tables and figures of the page, the table of the CSV file, and the counts that ``--json``
   and the page print. Results may be missing, because a data set may be absent.

A kind whose tasks import an optional package returns its name from ``packages()``.

``--quick`` needs no support by the kind: it changes keys of the experiment and selects data sets.

`table` and `learning_curves` are good models. Shared parts: `protocol` (training and test rows over folds or splits, and the
choice of parameters), `page` (tables and curves), and `results_of`, `check_names` and `rankings` below.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from pydantic import Field, model_validator

from aucdist.data.shards.reading import read
from aucdist.data.sources import ClassName, Source, find, is_present
from aucdist.errors import unknown
from flows.config.base import Strict
from flows.reproduce.page import NOT_RUN, Report

Task = dict[str, Any]
Result = dict[str, Any]

DECIMALS = 12
"""Values that agree to so many decimals are equal: what differs beyond is rounding."""


class DataSet(Strict):
    """A data set of a paper: a catalog entry, and what differs from it."""

    name: str = Field(description="A data set of the catalog. Where its files are absent, its cells say `not run here`")
    positive: ClassName | list[ClassName] | None = Field(default=None, description="Overrides the catalog's")
    note: str | None = Field(default=None, description="A remark for the page")

    @model_validator(mode="after")
    def _check_name(self) -> "DataSet":
        find(self.name)
        return self

    @property
    def source(self) -> Source:
        """The catalog entry, with this positive class."""
        source = find(self.name)
        return source if self.positive is None else source.model_copy(update={"positive": self.positive})


@dataclass(frozen=True)
class Version:
    """The version of a data set that an experiment uses; an absent data set has no rows."""

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
        """Whether the files are here."""
        return self.n_samples > 0


def read_version(dataset: DataSet) -> Version:
    """Read a data set and return its version; where its files are absent, only its name and note."""
    source = dataset.source
    note = dataset.note or source.note or ""
    if not is_present(source):
        return Version(dataset.name, NOT_RUN, note=note)
    data = read(source, name=dataset.name)
    location = source.source if isinstance(source.source, str) else ", ".join(source.source)
    return Version(
        dataset.name, location, data.block.n_samples, data.block.n_features, int((data.block.y > 0).sum()),
        ", ".join(data.schema.positive), data.fingerprint, note,
    )  # fmt: skip


@dataclass(frozen=True)
class TaskKey:
    """The name of a task within its experiment; the file of its result is named after it."""

    dataset: str
    system: str
    repeat: int = 0
    fold: int = 0

    def __str__(self) -> str:
        return f"{self.dataset}, {self.system}, repeat {self.repeat}, fold {self.fold}"


Results = Mapping[TaskKey, Result]


class Kind(Strict):
    """An experiment of a paper. Its fields are the keys of the YAML."""

    kind: str
    title: str
    datasets: Mapping[str, DataSet] = Field(default={}, max_length=0, description="Not used by this kind")

    def packages(self) -> set[str]:
        """Return the modules of optional packages that the tasks import; a run checks them before its first task."""
        return set()

    def tasks(self, versions: Mapping[str, Version]) -> Iterator[tuple[TaskKey, Task]]:
        """Yield every task with everything that decides its result.

        `versions`: the version of each data set; absent data sets have no rows.
        """
        yield from ()

    @staticmethod
    def run_task(task: Task) -> Result:
        """Run a task in any process, and return its result in JSON types."""
        raise NotImplementedError

    @abstractmethod
    def report(self, name: str, results: Results) -> Report:
        """Return what the experiment shows of its results.

        `name`: the name of the experiment, for ids on the page.
        """


class Claim(Strict):
    """A statement of the paper: one system is ahead of others. The page counts on how many data sets it holds."""

    text: str
    system: str
    than: list[str] = Field(min_length=1)


def results_of(results: Results, dataset: str, system: str) -> list[Result]:
    """Return the results of one system on one data set, in the order of repeats and folds."""
    keys = [key for key in results if (key.dataset, key.system) == (dataset, system)]
    return [results[key] for key in sorted(keys, key=lambda key: (key.repeat, key.fold))]


def check_names(what: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Raise an InputError if one of the names is not known."""
    for name in names:
        if name not in known:
            raise unknown(what, name, known)


# ---- ranks: equal values share one, and only a system that is alone ahead wins ------------------------------------------


def by_system(cells: pd.DataFrame, value: str, systems: Iterable[str]) -> pd.DataFrame:
    """Return a value of the cells with a row for each data set for which all these systems have it, and a column for each."""
    return cells.pivot(index="dataset", columns="system", values=value).reindex(columns=list(systems)).dropna()


def ranks(values: pd.DataFrame, *, higher_is_better: bool) -> pd.DataFrame:
    """Return the rank of each system on each data set; 1 is best, and equal values get the mean of their ranks."""
    return values.round(DECIMALS).rank(axis=1, ascending=not higher_is_better)


def n_ahead(values: pd.DataFrame, system: str, rivals: Sequence[str], *, higher_is_better: bool) -> int:
    """Return on how many data sets a system is strictly better than each of its rivals."""
    signed = values.round(DECIMALS) * (1 if higher_is_better else -1)
    return int(signed[rivals].lt(signed[system], axis=0).all(axis=1).sum())


def rankings(values: pd.DataFrame, *, higher_is_better: bool) -> dict[str, Any]:
    """Return the mean rank of each system over the data sets, and on how many it is the best.

    `best_alone` counts the data sets on which every other system is worse, `best_shared` those on which another one is level.
    """
    rank = ranks(values, higher_is_better=higher_is_better) if len(values) else pd.DataFrame()
    best = rank.eq(rank.min(axis=1), axis=0)
    alone = best.sum(axis=1) == 1
    return {
        "data_sets": len(values),
        "mean_rank": rank.mean().to_dict(),
        "best_alone": best[alone].sum().to_dict(),
        "best_shared": best[~alone].sum().to_dict(),
    }

"""The protocol of the kinds of experiment, which `run` calls, and the data sets of a paper.

How to add a kind, in one new module and one row of `config.KINDS`:

1. Derive a class from `Kind`. Its fields are the keys of the experiment in the YAML; ``kind: Literal["name"]`` names the kind.
   Declare ``datasets`` if the experiment uses data sets of the catalog. Declare ``targets``, a list of models of one row each,
   if there are printed figures: in the YAML, ``targets`` is then the name of a CSV file beside it.
2. ``tasks(versions)`` yields one `TaskKey` and one JSON mapping for each task. The mapping holds everything that decides the
   result (seeds, parameters, the fingerprint of the data), because a stored result is used again for as long as it is unchanged.
   A kind without tasks omits this method.
3. ``run_task(task)`` runs one task in any process. It is static, takes the mapping and returns a JSON mapping.
4. ``page_sections(name, results)`` returns the tables and figures of the page; ``csv_files(name, results)`` returns the contents
   of the CSV files; ``summary(results)`` returns the counts, which ``--json`` and the page print. Results may be missing, because
   a data set may be absent.

A kind whose tasks import an optional package returns its name from ``packages()``.

``--quick`` needs no support by the kind: it changes keys of the experiment and selects data sets.

`table` and `learning_curves` are good models. Shared parts: `protocol` (training and test rows over folds or splits, and the
choice of parameters), `page` (tables and curves), `rankings`, and `results_of`, `csv_bytes` and `check_names` below.
"""

import csv
import io
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import Field, model_validator

from aucdist.data.shards.reading import read
from aucdist.data.sources import ClassName, Source, find, is_present
from aucdist.errors import unknown
from flows.config.base import Strict
from flows.reproduce.page import PageSection

NOT_RUN = "not run here"

Task = dict[str, Any]
Result = dict[str, Any]

CSV_DIGITS = 6
"""Significant digits of the numbers in the CSV files."""


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
    def page_sections(self, name: str, results: Results) -> list[PageSection]:
        """Return the sections of the page.

        `name`: the name of the experiment, for ids on the page.
        """

    def csv_files(self, name: str, results: Results) -> dict[str, bytes]:
        """Return the content of each CSV file, by file name."""
        return {}

    def summary(self, results: Results) -> dict[str, Any]:
        """Return counts, and lists of the cases to look at; the page prints the counts, ``--json`` all of it."""
        return {}


def results_of(results: Results, dataset: str, system: str) -> list[Result]:
    """Return the results of one system on one data set, in the order of repeats and folds."""
    keys = [key for key in results if (key.dataset, key.system) == (dataset, system)]
    return [results[key] for key in sorted(keys, key=lambda key: (key.repeat, key.fold))]


def check_names(what: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Raise an InputError if one of the names is not known."""
    for name in names:
        if name not in known:
            raise unknown(what, name, known)


def csv_bytes(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> bytes:
    """Return rows as a CSV file: floats with six significant digits, None and missing values as empty cells."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, columns, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        values = {column: row.get(column) for column in columns}
        writer.writerow({c: f"{v:.{CSV_DIGITS}g}" if isinstance(v, float) else v for c, v in values.items()})
    return stream.getvalue().encode()

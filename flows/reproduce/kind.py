"""What every kind of experiment offers to the engine."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from flows.config.base import Strict
from flows.reproduce.datasets import DataSet, Version
from flows.reproduce.page import Section

Task = dict[str, Any]
Result = dict[str, Any]


@dataclass(frozen=True)
class Key:
    """Where a result belongs within its experiment; it names the file in which the result is kept."""

    dataset: str
    system: str
    repeat: int = 0
    fold: int = 0

    def __str__(self) -> str:
        return f"{self.dataset}, {self.system}, repeat {self.repeat}, fold {self.fold}"


Results = Mapping[Key, Result]


class Kind(Strict):
    """An experiment of a paper. Its fields are the keys of the YAML."""

    kind: str
    title: str
    datasets: Mapping[str, DataSet] = Field(default={}, max_length=0, description="None, unless the kind has some")

    def tasks(self, versions: Mapping[str, Version]) -> Iterator[tuple[Key, Task]]:
        """Yield every task, each with all that decides its result.

        Parameters
        ----------
        versions : dict of str to Version
            Of the data sets; some may be absent.
        """
        yield from ()

    @staticmethod
    def run(task: Task) -> Result:
        """Do a task, in any process; both sides are types of JSON."""
        raise NotImplementedError

    def sections(self, name: str, results: Results) -> list[Section]:
        """Return what the page shows.

        Parameters
        ----------
        name : str
            The experiment's, for ids on the page and names of files.
        results : dict of Key to dict
        """
        raise NotImplementedError

    def files(self, name: str, results: Results) -> dict[str, bytes]:
        """Return the contents of the files to write, by name."""
        return {}

    def tally(self, results: Results) -> dict[str, Any]:
        """Return what ``aucdist reproduce --json`` prints: figures, and lists of what is worth a look."""
        return {}

"""The data sets of a paper: their catalog entries, and the version that was read."""

from dataclasses import dataclass

from pydantic import Field, model_validator

from aucdist.data.shards.reading import read
from aucdist.data.sources.catalog import find, is_present
from aucdist.data.sources.source import ClassName, Source
from flows.config.base import Strict

NOT_RUN = "not run here"


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

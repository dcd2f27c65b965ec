"""The data sets of a paper: the entries of the catalog that stand for them, and what was read there."""

from dataclasses import dataclass

from pydantic import Field, model_validator

from aucdist.data.formats.readers import read
from aucdist.data.sources.catalog import find, is_present
from aucdist.data.sources.source import ClassName, Source
from flows.config.base import Strict

NOT_RUN = "not run here"


class DataSet(Strict):
    """A data set of a paper: the catalog's entry that stands for it, and what is different about it."""

    name: str = Field(description="A data set of the catalog; where its files are absent, its cells are not run")
    positive: ClassName | list[ClassName] | None = Field(default=None, description="Overrides the catalog's")
    note: str | None = Field(default=None, description="What the page says of it")

    @model_validator(mode="after")
    def _in_catalog(self) -> "DataSet":
        find(self.name)
        return self

    @property
    def source(self) -> Source:
        """The entry of the catalog."""
        source = find(self.name)
        return source if self.positive is None else source.model_copy(update={"positive": self.positive})


@dataclass(frozen=True)
class Version:
    """Which version of a data set an experiment was run on; without rows where it is absent."""

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
        """Whether it was there to run on."""
        return self.n_samples > 0


def version_of(ref: DataSet) -> Version:
    """Read a data set and return what it is; where its files are absent, only what it is called."""
    source = ref.source
    if not is_present(source):
        return Version(ref.name, NOT_RUN, note=ref.note or source.note or "")
    data = read(source, name=ref.name)
    where = source.source if isinstance(source.source, str) else ", ".join(source.source)
    return Version(
        ref.name, where, data.block.n_samples, data.block.n_features, int((data.block.y > 0).sum()),
        ", ".join(data.schema.positive), data.fingerprint, ref.note or source.note or "",
    )  # fmt: skip

"""Configuration of an explanation: the model behind the options of the command."""

from typing import Annotated

from pydantic import Field, field_validator, model_validator

from aucdist.errors import InputError, unknown
from flows.config.base import Cli
from flows.config.cluster import S3Config
from flows.config.data import UnlabelledRef

SUFFIXES = (".csv", ".parquet")


class ExplainConfig(UnlabelledRef):
    """Rows whose scores are explained feature by feature."""

    model: Annotated[str, Cli(place=1)] = Field(min_length=1)
    """A run folder, or the model in it: a folder or URL"""
    rows: Annotated[int | None, Cli(metavar="N")] = Field(default=None, ge=1)
    """Explain so many rows, the first ones; by default 10, and all with `output`"""
    top: Annotated[int, Cli(metavar="N")] = Field(default=5, ge=1)
    """Contributions to show for each row, the largest ones"""
    reasons: Annotated[int | None, Cli(metavar="N")] = Field(default=None, ge=1)
    """Show so many columns that raise each score most, in place of contributions"""
    classes: Annotated[list[str], Cli(flag="--class", metavar="NAME")] = Field(default_factory=list)
    """For a model of several classes: those to explain; by default all"""
    output: Annotated[str | None, Cli(metavar="FILE")] = Field(default=None, min_length=1)
    """A .csv or .parquet file for all contributions; else they are printed"""
    s3: S3Config = Field(default_factory=S3Config)
    """How s3:// URLs are reached"""

    @model_validator(mode="after")
    def _printed(self) -> "ExplainConfig":
        if self.reasons is not None and self.output is not None:
            raise InputError("`reasons` are printed, and `output` is a file of all contributions: give one of them")
        return self

    @field_validator("output")
    @classmethod
    def _known_suffix(cls, output: str | None) -> str | None:
        if output is not None and not output.endswith(SUFFIXES):
            raise unknown("suffix of the output", output.rpartition("/")[2], SUFFIXES)
        return output

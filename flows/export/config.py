"""Configuration of an export: the model behind the options of the command."""

from pydantic import Field, field_validator, model_validator

from aucdist.errors import InputError, unknown
from flows.config.base import Strict
from flows.config.s3 import S3Config

TARGETS = ("onnx", "sql", "json")


class ExportConfig(Strict):
    """A model, and the file that another system reads."""

    model: str = Field(min_length=1, description="A run folder, or the model in it: a folder or URL")
    to: str = Field(description="`onnx`, `sql` or `json`")
    output: str | None = Field(
        default=None, min_length=1, description="The file; by default named after the run, in the current folder"
    )
    table: str | None = Field(default=None, min_length=1, description="sql: the table with the rows; by default `rows`")
    ids: list[str] = Field(
        default_factory=list,
        description="sql: columns of the table that stand beside the scores; by default those that the model reads",
    )
    force: bool = Field(default=False, description="Replace the file if it is there")
    s3: S3Config = Field(default_factory=S3Config, description="How s3:// URLs are reached")

    @field_validator("to")
    @classmethod
    def _known(cls, to: str) -> str:
        if to not in TARGETS:
            raise unknown("target", to, TARGETS)
        return to

    @model_validator(mode="after")
    def _only_for_sql(self) -> "ExportConfig":
        if self.to != "sql" and (self.table is not None or self.ids):
            raise InputError(f"`table` and `ids` belong to sql, and this is an export to {self.to}")
        return self

"""Configuration of an export: the model behind the options of the command."""

from typing import Annotated

from pydantic import Field, field_validator, model_validator

from aucdist.errors import InputError, unknown
from aucdist.export.cards import Scaling
from flows.config.base import Cli, Strict
from flows.config.cluster import S3Config

TARGETS = ("onnx", "sql", "json", "scorecard")
CARD_SUFFIXES = ("json", "md", "csv", "html")


class CardConfig(Strict):
    """The form of a scorecard."""

    rows: Annotated[int | None, Cli(metavar="N")] = Field(default=None, ge=2)
    """At most so many lines; a category counts as one"""
    total: Annotated[int | None, Cli(metavar="N")] = Field(default=None, ge=1, le=10**6)
    """Points between the lowest and the highest possible sum; by default 1000"""
    points_to_double_odds: Annotated[float | None, Cli(metavar="N")] = Field(default=None, gt=0)
    """Points that double the odds, in place of `total`; for models with logistic probabilities"""
    base_points: Annotated[float, Cli(metavar="N")] = 0.0
    """Points of a row with the odds `base_odds`"""
    base_odds: Annotated[float, Cli(metavar="N")] = Field(default=1.0, gt=0)
    """Odds of the positive class, positive to negative"""

    @model_validator(mode="after")
    def _go_together(self) -> "CardConfig":
        self.scaling().check()
        return self

    def scaling(self) -> Scaling:
        """Return what the points are to mean."""
        return Scaling(self.points_to_double_odds, self.base_points, self.base_odds, self.total)


class ExportConfig(Strict):
    """A model, and the file that another system reads."""

    model: Annotated[str, Cli(place=1)] = Field(min_length=1)
    """A run folder, or the model in it: a folder or URL"""
    to: Annotated[str, Cli(metavar="onnx|sql|json|scorecard")]
    """`onnx`, `sql`, `json` or `scorecard`"""
    output: Annotated[str | None, Cli(metavar="FILE")] = Field(default=None, min_length=1)
    """The file; by default named after the run, in the current folder"""
    table: Annotated[str | None, Cli(metavar="NAME")] = Field(default=None, min_length=1)
    """sql: the table with the rows; by default `rows`"""
    ids: Annotated[list[str], Cli(flag="--id", metavar="COLUMN")] = Field(default_factory=list)
    """sql: columns of the table that stand beside the scores; by default those that the model reads"""
    contributions: Annotated[bool, Cli()] = False
    """onnx, sql, json: whether what each feature adds to a score stands beside it"""
    card: Annotated[CardConfig | None, Cli()] = None
    """scorecard: its lines and its points"""
    force: Annotated[bool, Cli()] = False
    """Replace the file if it is there"""
    s3: S3Config = Field(default_factory=S3Config)
    """How s3:// URLs are reached"""

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
        if self.contributions and self.to == "scorecard":
            raise InputError("`contributions` belong to onnx, sql and json; the lines of a scorecard are contributions")
        if self.to != "scorecard":
            if self.card is not None:
                raise InputError(
                    "`rows`, `total`, `points_to_double_odds`, `base_points` and `base_odds` belong to a scorecard, and this is "
                    f"an export to {self.to}"
                )
        elif self.suffix not in CARD_SUFFIXES:
            raise unknown("suffix of a scorecard's file", self.suffix, CARD_SUFFIXES)
        return self

    @property
    def suffix(self) -> str:
        """The suffix of the file."""
        if self.to != "scorecard":
            return self.to
        return "json" if self.output is None else self.output.rpartition("/")[2].rpartition(".")[2]

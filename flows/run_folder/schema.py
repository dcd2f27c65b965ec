"""The types by which `metrics.json` of a run folder is checked when it is read."""

from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired, Required

from pydantic import Field, with_config
from typing_extensions import TypedDict

from aucdist.data.own_files import MORE_KEYS, Count, read_as
from aucdist.errors import Json
from aucdist.report.text import GUARANTEES, SET_ON

Number = int | float
Pair = Annotated[list[Number], Field(min_length=2, max_length=2)]


class DataResult(TypedDict):
    """The data of a run."""

    fingerprint: str


class Seconds(TypedDict):
    """The times of a run."""

    fit: Number


class SearchRow(TypedDict):
    """A row of the table of a search."""

    parameters: Json
    folds: list[Number | None]


class Search(TypedDict):
    """The search that chose the parameters of a run."""

    folds: Any
    metric: Any
    nested: list[Json] | None
    table: list[SearchRow]
    best: Json
    test_over_train: Number


if TYPE_CHECKING:
    SetOn = str
    GuaranteedMetric = str
else:
    SetOn, GuaranteedMetric = Literal[tuple(SET_ON)], Literal[tuple(GUARANTEES)]


class ThresholdRows(TypedDict):
    """The rows that set the threshold."""

    rows: SetOn
    n_pos: Count
    n_neg: Count
    weighted: bool
    shift: Count
    per_day: Number | None
    test_per_day: NotRequired[Number | None]


class Rate(TypedDict):
    """A rate, or a cost, with the ends of its interval."""

    value: Number | None
    interval: Pair | None


class Cost(TypedDict):
    """The costs of wrong decisions: numbers, or the name of a column."""

    false_positive: Annotated[Number | str, read_as("false_positive", "false_alarm")]
    miss: Number | str


class Requirement(TypedDict, total=False):
    """The requirement of an operating point."""

    fpr: Number
    recall: Number
    precision: Number
    alerts: Number
    per: str
    cost: Cost
    confidence: Number


class GuaranteeResult(TypedDict):
    """The guarantee of an operating point."""

    metric: GuaranteedMetric
    target: Number
    guaranteed: Number
    confidence: Number
    meets_target: bool
    n_pos: Count
    n_neg: Count


class OperatingPoint(TypedDict, total=False):
    """An operating point."""

    target: Required[Annotated[Requirement, Field(min_length=1), read_as("target", "wanted")]]
    rows: str
    set_on: SetOn
    recall: Rate
    fpr: Rate
    precision: Rate
    alerts: Rate
    alerts_per_day: Number
    n_alerts: Count
    n_rows: Count
    n_pos: Count
    expected_cost: Rate
    guarantee: GuaranteeResult


class AucValues(TypedDict, total=False):
    """The metrics of a run."""

    train_auc: Number | None
    test_auc: Number | None


class BoundValues(TypedDict, total=False):
    """The certificate of a run."""

    primal: Number | None
    dual: Number | None


class ClassResult(TypedDict):
    """The results of one of several classes."""

    name: str
    threshold: Number
    test_auc: Number | None
    operating_point: NotRequired[OperatingPoint | None]


@with_config(MORE_KEYS)
class RunResult(TypedDict, total=False):
    """The parts of ``metrics.json`` that other commands read."""

    name: Required[str]
    estimator: Required[str]
    solver: Required[str]
    n_samples: Required[Count]
    metrics: AucValues
    details: dict[str, Json]
    parameters: Json
    certificate: BoundValues
    monotone: Json
    digests: dict[str, str]
    versions: Json
    seconds: Required[Seconds]
    data: Required[DataResult]
    n_pos: Number
    n_neg: Number
    threshold: Number | None
    score: str
    topics: bool
    classes: list[ClassResult]
    groups: Json
    operating_point: OperatingPoint | None
    threshold_rows: ThresholdRows
    search: Search

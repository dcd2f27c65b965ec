"""The types that the content of `metrics.json` is checked against when it is read."""

from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired, Required

from pydantic import Field, with_config
from typing_extensions import TypedDict

from aucdist.data.own_files import MORE_KEYS, Count, read_as
from aucdist.errors import Json
from aucdist.report.text import GUARANTEES, SET_ON

JsonNumber = int | float
Pair = Annotated[list[JsonNumber], Field(min_length=2, max_length=2)]


class DataResult(TypedDict):
    """The data of a run."""

    fingerprint: str


class Seconds(TypedDict):
    """The times of a run."""

    fit: JsonNumber


class SearchRow(TypedDict):
    """A row of the table of a search."""

    parameters: Json
    folds: list[JsonNumber | None]


class Search(TypedDict):
    """The search that chose the parameters of a run."""

    folds: Any
    metric: Any
    nested: list[Json] | None
    table: list[SearchRow]
    best: Json
    test_over_train: JsonNumber


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
    per_day: JsonNumber | None
    test_per_day: NotRequired[JsonNumber | None]


class RateResult(TypedDict):
    """A rate or a cost, with the ends of its interval."""

    value: JsonNumber | None
    interval: Pair | None


class CostResult(TypedDict):
    """The costs of wrong decisions: numbers, or the name of a column."""

    false_positive: Annotated[JsonNumber | str, read_as("false_positive", "false_alarm")]
    miss: JsonNumber | str


class Requirement(TypedDict, total=False):
    """The requirement of an operating point."""

    fpr: JsonNumber
    recall: JsonNumber
    precision: JsonNumber
    alerts: JsonNumber
    per: str
    cost: CostResult
    confidence: JsonNumber


class GuaranteeResult(TypedDict):
    """The guarantee of an operating point."""

    metric: GuaranteedMetric
    target: JsonNumber
    guaranteed: JsonNumber
    confidence: JsonNumber
    meets_target: bool
    n_pos: Count
    n_neg: Count


class OperatingPointResult(TypedDict, total=False):
    """An operating point."""

    target: Required[Annotated[Requirement, Field(min_length=1), read_as("target", "wanted")]]
    rows: str
    set_on: SetOn
    recall: RateResult
    fpr: RateResult
    precision: RateResult
    alerts: RateResult
    alerts_per_day: JsonNumber
    n_alerts: Count
    n_rows: Count
    n_pos: Count
    expected_cost: RateResult
    guarantee: GuaranteeResult


class AucValues(TypedDict, total=False):
    """The metrics of a run."""

    train_auc: JsonNumber | None
    test_auc: JsonNumber | None


class BoundValues(TypedDict, total=False):
    """The certificate of a run."""

    primal: JsonNumber | None
    dual: JsonNumber | None


class ClassResult(TypedDict):
    """The results of one of several classes."""

    name: str
    threshold: JsonNumber
    test_auc: JsonNumber | None
    operating_point: NotRequired[OperatingPointResult | None]


class WarningResult(TypedDict):
    """A warning of a run."""

    key: str
    text: str


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
    n_pos: JsonNumber
    n_neg: JsonNumber
    threshold: JsonNumber | None
    score: str
    topics: bool
    classes: list[ClassResult]
    groups: Json
    operating_point: OperatingPointResult | None
    threshold_rows: ThresholdRows
    search: Search
    warnings: list[WarningResult]

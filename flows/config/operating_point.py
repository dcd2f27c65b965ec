"""The operating point: the requirement on the threshold of predictions."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from aucdist.errors import InputError, Json
from aucdist.metrics.decisions import Costs
from flows.config.base import Cli, Strict
from flows.config.data import DataConfig
from flows.config.loading import parse_yaml

THRESHOLD_SHARE = 0.2
"""The share of the training rows that set a threshold with a guarantee."""
Cost = Annotated[float, Field(gt=0, allow_inf_nan=False)] | Literal["cost_column"]


class CostConfig(Strict):
    """What wrong decisions cost, in any unit; only their ratio matters for the threshold."""

    false_alarm: Cost
    """What it costs to predict a negative row as positive: a number above 0, or `cost_column` for the cost that each
    row has in the column that the source names."""
    miss: Cost
    """What it costs to predict a positive row as negative: a number above 0, or `cost_column`."""


class OperatingPointConfig(Strict):
    """The requirement that the threshold has to meet on the training rows, or on rows that the fit has not seen. Give
    one requirement: `fpr`, `alerts`, `precision`, `recall` or `cost`."""

    fpr: Annotated[float | None, Cli()] = Field(default=None, ge=0, le=1)
    """At most this share of the negative rows is flagged."""
    alerts: Annotated[float | None, Cli()] = Field(default=None, ge=0)
    """At most this share of all rows is flagged. With `per`, it is the number of rows that are flagged."""
    per: Annotated[str | None, Cli(metavar="day|'N rows'")] = Field(default=None, pattern=r"^(day|[1-9][0-9]* rows)$")
    """With `alerts`: its unit. With `day`, `alerts` is the mean number of alerts per day, which needs `split.time` with a
    column of dates. With `1000 rows`, it is the number of alerts among 1,000 rows."""
    precision: Annotated[float | None, Cli()] = Field(default=None, gt=0, le=1)
    """At least this share of the flagged rows is positive."""
    recall: Annotated[float | None, Cli()] = Field(default=None, gt=0, le=1)
    """At least this share of the positive rows is flagged."""
    cost: Annotated[
        CostConfig | None,
        # a text was typed on the command line
        BeforeValidator(lambda value: parse_yaml(value, "--cost") if isinstance(value, str) else value),
        Cli(metavar="COSTS"),
    ] = None
    """The costs of wrong decisions, as in `{false_alarm: 1, miss: 40}`. The threshold minimises their total."""
    confidence: Annotated[float | None, Cli()] = Field(default=None, ge=0.5, lt=1)
    """The probability with which the requirement holds for new rows. The threshold then has a safety margin,
    computed from exact bounds on rows that the fit has not seen. `data.calibration` sets the share of these threshold
    rows; by default they are a fifth of the training rows."""
    out_of_fold: bool | None = None
    """Whether out-of-fold scores set the threshold. This takes five more fits, each to four fifths of the training rows.
    Without it, a model that overfits its training rows, as leaves do, flags more rows than you asked for. By default it
    is true if the feature map is fitted to labels (leaves, landmarks, pairs), and false otherwise."""

    @model_validator(mode="after")
    def _one(self) -> "OperatingPointConfig":
        if len({*self.options} - {"per", "confidence"}) != 1:
            raise InputError("operating_point: give one of fpr, alerts, precision, recall and cost")
        if self.per is not None and self.alerts is None:
            raise InputError("operating_point: `per` is the unit of `alerts`: give `alerts`, or leave `per` out")
        if self.per is None and self.alerts is not None and self.alerts > 1:
            raise InputError(
                f"operating_point: alerts is {self.alerts:g}, and a share is at most 1: name its unit by `per`, as in `per: day`"
            )
        if self.confidence is not None and self.cost is not None:
            raise InputError(
                "operating_point: `confidence` is for fpr, alerts, precision and recall, not for cost: leave it out"
            )
        return self

    @property
    def row_costs(self) -> Costs | None:
        """The costs of decisions, if each row has its own cost; otherwise None."""
        costs = None if self.cost is None else Costs(**self.cost.model_dump())
        return costs if costs is not None and costs.differ_by_row else None

    def scores_unseen(self, estimator: Any) -> bool:
        """Whether the threshold of this estimator is set by out-of-fold scores."""
        if self.out_of_fold is not None or self.confidence is not None:
            return self.out_of_fold is not False
        from aucdist.maps import expander_of  # here, because it loads scikit-learn

        expander = expander_of(getattr(estimator, "features", None))
        return expander is not None and expander.supervised()

    @property
    def options(self) -> Json:
        """The keys that are given, by name."""
        return self.model_dump(exclude_none=True, include={*OperatingPointConfig.model_fields} - {"out_of_fold"})

    def requirement(self, rows_per_day: float | None) -> Json:
        """Return the requirement by its name, alerts as a share of the rows.

        Raises InputError if alerts are counted by the day, and it is not known how many rows a day has.
        """
        requirement = {name: value for name, value in self.options.items() if name not in ("per", "confidence")}
        if self.per is None or self.alerts is None:
            return requirement
        if self.per == "day" and rows_per_day is None:
            raise InputError(
                "operating_point: alerts per day need rows that were split by a column of dates when the model was trained: "
                "train with `split: {time: COLUMN}`, or give `per: 1000 rows`"
            )
        rows = rows_per_day if self.per == "day" else float(self.per.removesuffix(" rows"))
        assert rows is not None
        return {"alerts": min(self.alerts / rows, 1.0)}


def hold_out(data: DataConfig, point: OperatingPointConfig | None) -> None:
    """Hold out training rows for a guarantee, unless the configuration names threshold rows or out-of-fold scores.

    Raises InputError if alerts are counted by the day and rows have no time, or both are named.
    """
    if point is None:
        return
    if point.per == "day" and (data.test is None or data.test.time is None):
        point.requirement(None)
    if point.out_of_fold and data.calibration is not None:
        raise InputError("give either `data.calibration` or `out_of_fold`: both are rows that the fit has not seen")
    if point.confidence is not None and not point.out_of_fold and data.calibration is None:
        data.calibration = THRESHOLD_SHARE
    if data.calibration is not None:
        point.out_of_fold = False

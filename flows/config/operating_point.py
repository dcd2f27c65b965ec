"""The operating point: what the threshold of predictions is to meet."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from aucdist.errors import InputError
from aucdist.maps import expander_of
from aucdist.metrics.costs import COST_COLUMN
from flows.config.base import Strict

Cost = Annotated[float, Field(gt=0, allow_inf_nan=False)] | Literal["cost_column"]


class CostConfig(Strict):
    """What wrong decisions cost, in any unit; only their ratio matters for the threshold."""

    false_alarm: Cost = Field(
        description="What a negative row costs that is predicted positive: a number above 0, or `cost_column`, the row's own "
        "cost in the column that the source names"
    )
    miss: Cost = Field(description="What a positive row costs that is predicted negative, likewise")


class OperatingPointConfig(Strict):
    """The requirement that the threshold meets on the training rows. Give exactly one."""

    fpr: float | None = Field(default=None, ge=0, le=1, description="At most this share of the negatives is flagged")
    alerts: float | None = Field(default=None, ge=0, le=1, description="At most this share of all rows is flagged")
    precision: float | None = Field(
        default=None, gt=0, le=1, description="At least this share of the flagged rows is positive"
    )
    recall: float | None = Field(
        default=None, gt=0, le=1, description="At least this share of the positives is flagged"
    )

    cost: CostConfig | None = Field(default=None, description="The total cost of wrong decisions is smallest")
    out_of_fold: bool | None = Field(
        default=None,
        description="Whether the threshold is set by scores of models that have not seen the row: five more fits, to four fifths "
        "of the training rows each. Else, where the model knows its rows well, as leaves do, more is flagged than is asked for. "
        "null: where the feature map is fitted to labels (leaves, landmarks, pairs)",
    )

    @model_validator(mode="after")
    def _one(self) -> "OperatingPointConfig":
        if len(self.wanted) != 1:
            raise InputError("operating_point: give one of fpr, alerts, precision, recall and cost")
        return self

    @property
    def uses_cost_column(self) -> bool:
        """Whether rows have a cost of their own."""
        return self.cost is not None and COST_COLUMN in (self.cost.false_alarm, self.cost.miss)

    def scores_unseen(self, estimator: Any) -> bool:
        """Whether models of other rows score the training rows of this estimator."""
        if self.out_of_fold is not None:
            return self.out_of_fold
        expander = expander_of(getattr(estimator, "features", None))
        return expander is not None and expander.supervised()

    @property
    def wanted(self) -> dict[str, Any]:
        """What is given, by its name."""
        return self.model_dump(exclude_none=True, exclude={"out_of_fold"})

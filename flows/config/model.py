"""Configuration of the estimator, and of additional fits that a report shows.

It includes the operating point, which is the target that sets the threshold.
"""

from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from aucdist.data.own_files import pattern_of
from aucdist.errors import InputError, Json, unknown
from aucdist.metrics.decisions import Costs, with_current_keys
from flows.config.loading import Cli, Rate, Strict, parse_yaml

AUTO = "auto"
"""The value of `features` for which cross-validation chooses the feature map."""


class ModelConfig(Strict):
    """The estimator and its parameters. A parameter that is left out has the default of the estimator."""

    # Extra keys are parameters of the estimator. They are checked below.
    model_config = ConfigDict(extra="allow")

    estimator: str = "PairwiseHingeClassifier"
    """The estimator, which decides what is minimised."""
    solver: str | Json | None = None
    """The solver, which decides how it is minimised: a name, or a mapping with `name` and the parameters of the solver,
    such as {name: sdcd, epochs: 10}."""
    lam: float | None = None
    """The regularisation strength (scikit-learn's `alpha`)."""
    tol: float | None = None
    """The fit stops when the relative gap of its certificate is at most this."""
    max_passes: int | None = None
    """The fit stops after this many passes over the rows."""
    random_state: int | None = None
    """The seed of the random numbers."""
    features: str | Json | None = None
    """The feature map: `bins`, `nystroem`, `leaves`, or a mapping with `map` and its parameters, such as {map: bins,
    bins: 64, basis: cumulative, linear: keep, interactions: 0}. `auto` chooses the map by cross-validation, and lam as well
    unless it is given. It chooses by the AUC, or by `metric`: {map: auto, metric: group_ndcg, k: 5} chooses by the NDCG of
    the first 5 rows, and {map: auto, metric: expected_cost, false_positive: 1, miss: 40} by the expected cost. With
    {map: auto, readable: true} it tries only linear models and bins with and without interactions, whose models can be read
    feature by feature. `aucdist init` writes this."""

    def _check(self) -> None:
        _ = self.built

    @property
    def map_name(self) -> Any:
        """The name of the feature map, or `AUTO`. It is None if there is no feature map."""
        return self.features.get("map") if isinstance(self.features, dict) else self.features

    @property
    def chooses_features(self) -> bool:
        """Whether cross-validation chooses the feature map. `built` then has none."""
        return bool(self.map_name == AUTO)

    @cached_property
    def search_options(self) -> Any:
        """The `aucdist.metrics.named.SearchOptions` of `features: auto`."""
        from aucdist.metrics.named import search_options

        return search_options(self.features)

    @property
    def resolved(self) -> Json:
        """All parameters, including the defaults of the estimator. Parameters that cross-validation chooses keep their values."""
        chosen = {"features": self.features, "lam": self.lam} if self.chooses_features else {}
        parameters: Json = self.built.plain_params()
        return parameters | {name: value for name, value in chosen.items() if name in parameters}

    def with_parameters(self, parameters: Json) -> "ModelConfig":
        """Return the same model with other values of some parameters, such as those that a search has chosen."""
        return ModelConfig(**{**self.model_dump(exclude_unset=True), **parameters})

    @cached_property
    def built(self) -> Any:
        """An unfitted estimator with these parameters."""
        from aucdist import estimators  # imported here, because it loads scikit-learn and Numba

        if self.estimator not in estimators.CLASSIFIERS:
            raise unknown("estimator", self.estimator, estimators.CLASSIFIERS)
        estimator = getattr(estimators, self.estimator)()
        extra = self.model_extra or {}  # null may be a value of such a parameter, as in `sampler: null`
        parameters = {k: v for k, v in self.model_dump(exclude={"estimator"}).items() if v is not None or k in extra}
        if self.chooses_features:
            del parameters["features"]
            _ = self.search_options
        estimator.set_params(**parameters)
        estimator.check_parameters()  # the ranges are checked before the data is read
        return estimator


def check_estimator(model: Any, *, missing: bool) -> None:
    """Check that an estimator can be stored in a run folder, which has a weight for each feature, and that it can fit the rows.

    Parameters
    ----------
    model : object
        The estimator.
    missing : bool
        Whether the rows may have missing values.

    Raises
    ------
    InputError
        If the kernel is not linear, or if rows may have missing values and the estimator does not allow them. The message says
        what to do instead.
    """
    from aucdist.estimators.tables import allows_missing

    kernel = getattr(model, "kernel", "linear")
    if kernel != "linear":
        raise InputError(
            f"model: kernel is {kernel!r}, which gives no weights of features, but a run folder stores them. "
            f"Use `kernel: linear`, or fit it in Python: {type(model).__name__}(kernel={kernel!r}).fit(X, y)"
        )

    if missing and not allows_missing(model):
        raise InputError(
            "`impute: keep` needs a feature map that accepts missing values: use `features: bins`, `leaves` or `auto` "
            f"instead of {model.features!r}, or fill the values in by `impute: mean` or `median`"
        )
    # The feature maps that allow missing values encode rows as the numbers of bins or leaves.
    if model.features is not None and allows_missing(model) and not model.resolved_solver.accepts_codes:
        raise InputError(
            f"model: solver {model.resolved_solver.name!r} does not support features={model.features!r}, which encodes rows as "
            f"numbers of bins or leaves; {model._solvers_that('codes')}. Without a feature map, any solver can fit the "
            "model: write `features: null`, or --set model.features=null"
        )


# ---- shapes ------------------------------------------------------------------------------------------------------------


class ShapesConfig(Strict):
    """Additional fits, whose results appear in the report."""

    halves: int | None = Field(default=None, ge=2, le=100)
    """The number of random halves of the training rows to which the model is also fitted. The report draws a band
    around the shapes of these fits. 10 are usually enough."""
    compare_free: bool = False
    """Whether to fit the model without `monotone` as well, so that the report says what the monotonic constraints
    cost."""

    @property
    def requested(self) -> bool:
        """Whether there is any additional fit."""
        return self.halves is not None or self.compare_free


THRESHOLD_SHARE = 0.2
"""The share of the training rows that set a threshold with a guarantee."""
Cost = Annotated[float, Field(gt=0, allow_inf_nan=False)] | Literal["cost_column"]


class CostConfig(Strict):
    """What wrong decisions cost, in any unit; only their ratio matters for the threshold."""

    false_positive: Cost
    """What it costs to predict a negative row as positive: a number above 0, or `cost_column` for the cost that each
    row has in the column that the source names."""
    miss: Cost
    """What it costs to predict a positive row as negative: a number above 0, or `cost_column`."""


PER = pattern_of("`day` or a number of rows, as in '1000 rows'", r"^(day|[1-9][0-9]* rows)$")


class OperatingPointConfig(Strict):
    """The target that the threshold has to meet on the training rows, or on rows that the fit has not seen. Give
    one target: `fpr`, `alerts`, `precision`, `recall` or `cost`."""

    fpr: float | None = Field(default=None, ge=0, le=1)
    """At most this share of the negative rows is flagged."""
    alerts: float | None = Field(default=None, ge=0)
    """At most this share of all rows is flagged. With `per`, it is the number of rows that are flagged."""
    per: Annotated[str | None, Cli(metavar="day|'N rows'")] = Field(default=None, pattern=PER)
    """The unit of `alerts`. With `day`, `alerts` is the mean number of alerts per day, which needs `test.time` with a
    column of dates. With `1000 rows`, it is the number of alerts among 1,000 rows."""
    precision: Rate = None
    """At least this share of the flagged rows is positive."""
    recall: Rate = None
    """At least this share of the positive rows is flagged."""
    cost: Annotated[
        CostConfig | None,
        # On the command line, the value is a text.
        BeforeValidator(
            lambda value: with_current_keys(parse_yaml(value, "--cost") if isinstance(value, str) else value)
        ),
        Cli(metavar="COSTS"),
    ] = None
    """The costs of wrong decisions, as in `{false_positive: 1, miss: 40}`. The threshold minimises their total."""
    confidence: float | None = Field(default=None, ge=0.5, lt=1)
    """The probability with which the target holds for new rows. The threshold then has a safety margin,
    computed from exact bounds on rows that the fit has not seen. `data.threshold_rows` sets their
    share; by default they are a fifth of the training rows."""
    out_of_fold: Annotated[bool, Cli(hidden=True)] = True
    """Whether out-of-fold scores set the threshold. This takes five more fits, each to four fifths of the training rows.
    With `false`, the scores of the training rows set it. The fit has seen these rows, so more new rows may be flagged than
    you asked for."""

    def _check(self) -> None:
        if len({*self.options} - {"per", "confidence"}) != 1:
            raise InputError("give exactly one of fpr, alerts, precision, recall and cost")
        if self.per is not None and self.alerts is None:
            raise InputError("`per` is the unit of `alerts`: give `alerts`, or leave `per` out")
        if self.per is None and self.alerts is not None and self.alerts > 1:
            raise InputError(
                f"alerts is {self.alerts:g}, but a share is at most 1: give its unit by `per`, such as `day` or `1000 rows`"
            )
        if self.confidence is not None and self.cost is not None:
            raise InputError(
                "`confidence` is for fpr, alerts, precision and recall, not for cost: leave `confidence` out"
            )

    @property
    def row_costs(self) -> Costs | None:
        """The costs of decisions if each row has its own cost, otherwise None."""
        costs = None if self.cost is None else Costs(**self.cost.model_dump())
        return costs if costs is not None and costs.differ_by_row else None

    @property
    def options(self) -> Json:
        """The keys that are given, by name."""
        return self.model_dump(exclude_none=True, include={*OperatingPointConfig.model_fields} - {"out_of_fold"})

    def requirement(self, rows_per_day: float | None) -> Json:
        """Return the target with its name. Alerts are converted to a share of the rows.

        Raises
        ------
        InputError
            If alerts are counted per day, and the number of rows per day is not known.
        """
        requirement = {name: value for name, value in self.options.items() if name not in ("per", "confidence")}
        if self.per is None or self.alerts is None:
            return requirement
        rows = rows_per_day if self.per == "day" else float(self.per.removesuffix(" rows"))
        if rows is None:
            raise InputError(
                "operating_point: `per: day` needs a column of dates. Train with `test: {time: COLUMN}`, which splits the "
                "rows by it, or give `per: 1000 rows`"
            )
        return {"alerts": min(self.alerts / rows, 1.0)}

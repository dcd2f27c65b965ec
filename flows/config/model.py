"""Configuration of the estimator, and of the fits beside it that a report shows."""

from functools import cached_property
from typing import Any

from pydantic import ConfigDict, Field, model_validator

from aucdist.errors import InputError, Json, unknown
from flows.config.base import Strict

AUTO = "auto"
"""The value of `features` for which cross-validation chooses the feature map."""


class ModelConfig(Strict):
    """The estimator and its parameters. A parameter that is left out has the default of the estimator."""

    # Extra keys are parameters of one estimator alone; they are checked against it below.
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
    bins: 64, basis: cumulative, linear: keep, pairs: 0}. `auto` chooses the map by cross-validation, and lam as well
    unless it is given. It chooses by the AUC, or by `metric`: {map: auto, metric: ndcg, k: 5} chooses by the NDCG of
    the first 5 rows, and {map: auto, metric: expected_cost, false_alarm: 1, miss: 40} by the expected cost."""

    @model_validator(mode="after")
    def _estimator_takes_them(self) -> "ModelConfig":
        _ = self.built
        return self

    @property
    def map_name(self) -> Any:
        """The name of the feature map, or `AUTO`; None without one."""
        return self.features.get("map") if isinstance(self.features, dict) else self.features

    @property
    def chooses_features(self) -> bool:
        """Whether cross-validation chooses the feature map. `built` then has none."""
        return bool(self.map_name == AUTO)

    @cached_property
    def features_metric(self) -> str | None:
        """The full name of the metric that chooses the feature map; None for the default of `aucdist.search.auto`."""
        if not isinstance(self.features, dict) or not self.chooses_features:
            return None
        from aucdist.metrics.measures import MEASURES, find_measure

        parameters = {key: value for key, value in self.features.items() if key not in ("map", "metric")}
        metric: Any = self.features.get("metric")
        metrics = {m.kind: m.takes for m in MEASURES.values() if m.needs in ("ranking", "groups", "costs")}
        if metric is None and not parameters:
            return None
        if metric not in metrics:
            raise unknown("metric of features: auto", metric, metrics)
        for key, value in parameters.items():
            if key not in metrics[metric]:
                raise unknown(f"parameter of metric {metric!r} of features: auto", key, metrics[metric])
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise InputError(f"features: auto: {key} must be a number; got {value!r}")
        return find_measure(metric, **parameters).name

    @property
    def resolved(self) -> Json:
        """All parameters, with the defaults of the estimator. Parameters that cross-validation chooses keep their values."""
        unresolved = {"features": self.features} | ({"lam": None} if self.lam is None else {})
        chosen = unresolved if self.chooses_features else {}
        parameters: Json = self.built.plain_params()
        return parameters | {name: value for name, value in chosen.items() if name in parameters}

    def with_parameters(self, parameters: Json) -> "ModelConfig":
        """Return the same model with other values of some parameters, such as those that a search has chosen."""
        return ModelConfig(**{**self.model_dump(exclude_unset=True), **parameters})

    @cached_property
    def built(self) -> Any:
        """An unfitted estimator with these parameters."""
        from aucdist import estimators  # here, because it loads scikit-learn and Numba
        from aucdist.estimators.with_solver import refuse_moved
        from aucdist.maps import MAPS

        if self.estimator not in estimators.CLASSIFIERS:
            raise unknown("estimator", self.estimator, estimators.CLASSIFIERS)
        estimator = getattr(estimators, self.estimator)()
        if self.solver is not None:
            estimator.set_params(solver=self.solver)
            _ = estimator.resolved_solver  # whose parameters are allowed, too
        allowed = estimator.get_params()
        extra = self.model_extra or {}  # null may be a value of such a parameter, as in `sampler: null`
        parameters = {k: v for k, v in self.model_dump(exclude={"estimator"}).items() if v is not None or k in extra}
        if isinstance(self.features, str) and self.features not in (*MAPS, AUTO):
            raise unknown("feature map", self.features, [*MAPS, AUTO])
        if self.chooses_features:
            del parameters["features"]
            _ = self.features_metric
        for key in parameters:
            if key not in allowed:
                refuse_moved([key], estimator.solvers)
                raise unknown(f"parameter of {self.estimator}", key, allowed)
        estimator.set_params(**parameters)
        estimator.check_parameters()  # the ranges too, before the data is read
        return estimator


def check_estimator(model: Any, *, missing: bool) -> None:
    """Check that a run folder, which has a weight for each feature, can hold an estimator, and that the rows can be fitted.

    `missing`: whether the rows may have missing values.
    Raises InputError if its kernel is not linear, or it has no place for missing values; the message says what to do instead.
    """
    from aucdist.estimators.tables import allows_missing

    kernel = getattr(model, "kernel", "linear")
    if kernel != "linear":
        raise InputError(
            f"model: kernel is {kernel!r}, which gives no weights of features, and a run folder stores those. "
            f"Take `kernel: linear`, or fit it in Python: {type(model).__name__}(kernel={kernel!r}).fit(X, y)"
        )

    if missing and not allows_missing(model):
        raise InputError(
            "`impute: keep` needs a feature map that accepts missing values: use `features: bins`, `leaves` or `auto` "
            f"instead of {model.features!r}, or fill the values in by `impute: mean` or `median`"
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
        """Whether there is anything to fit."""
        return self.halves is not None or self.compare_free


def check_shapes(config: ShapesConfig, model: ModelConfig) -> None:
    """Raise an InputError for additional fits that are not possible for a model."""
    if config.compare_free and getattr(model.built, "monotone", None) is None and not model.chooses_features:
        raise InputError(
            "shapes: `compare_free` compares with a fit without `monotone`, which the model does not have: leave it out"
        )
    if config.halves is not None and model.map_name not in ("bins", AUTO):
        raise InputError(
            f"shapes: `halves` are for models of bins, and `features` is {model.map_name!r}: use `features: bins`"
        )

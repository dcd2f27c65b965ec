"""A mock of AutoGluon's class of models, as autogluon.core 1.6.3 has it, as far as our model calls it or is called."""

from typing import Any

import numpy as np
import pandas as pd


class AbstractModel:
    """A mock of AutoGluon's class: hyperparameters, `fit`, `preprocess` and `predict_proba` call what a subclass overrides."""

    def __init__(self, *, problem_type: str, hyperparameters: dict[str, Any] | None = None) -> None:
        self.problem_type, self.params = problem_type, dict(hyperparameters or {})
        self._set_default_params()
        assert problem_type in self.supported_problem_types()
        self.model: Any = None

    def _set_default_param_value(self, param_name: str, param_value: Any, params: dict[str, Any] | None = None) -> None:
        (self.params if params is None else params).setdefault(param_name, param_value)

    def _get_default_auxiliary_params(self) -> dict[str, Any]:
        return {"valid_raw_types": None, "max_time_limit": None}

    def _get_model_params(self) -> dict[str, Any]:
        return dict(self.params) | {self.seed_name: 0}  # type: ignore[attr-defined]

    def _preprocess(self, X: pd.DataFrame, **kwargs: Any) -> pd.DataFrame:
        return X

    def preprocess(
        self, X: pd.DataFrame, preprocess_nonadaptive: bool = True, preprocess_stateful: bool = True, **kwargs: Any
    ) -> Any:
        return self._preprocess(X, **kwargs)

    def fit(self, **kwargs: Any) -> "AbstractModel":
        options = {"X_val": None, "y_val": None, "time_limit": 60.0, "num_cpus": 1, "num_gpus": 0, "verbosity": 2}
        self._fit(**options | kwargs)  # type: ignore[attr-defined]
        return self

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        proba = self.model.predict_proba(self.preprocess(X))
        return proba[:, 1] if self.problem_type == "binary" else proba

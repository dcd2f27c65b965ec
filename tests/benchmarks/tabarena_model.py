"""Our estimators as AutoGluon and TabArena take a model: a subclass of AutoGluon's `AbstractModel`, and its settings.

    from benchmarks.tabarena_model import AucdistModel
    AucdistModel.config_generator().generate_all_bag_experiments(num_random_configs=20)

The page "Outside benchmarks" has the commands. Written for autogluon.core 1.6.3 and tabarena 0.1.0, which ask for pandas below 3.
"""

# These packages are in no extra: they cannot be installed beside ours with their own bounds.
# mypy: disable-error-code="import-not-found,import-untyped,misc"

from typing import Any

import numpy as np
import pandas as pd
from autogluon.core.models import AbstractModel

from aucdist.estimators import LinkClassifier, PairwiseHingeClassifier
from aucdist.estimators.base import BlockClassifier

DEFAULTS = {"lam": 1e-3, "map": "bins", "pairs": 0, "tol": 1e-3}


class AucdistModel(AbstractModel):
    """Two classes: the hinge over all pairs, calibrated by folds. Several: the logit link, since log-loss judges probabilities.

    The hyperparameters are `lam`, `map` (``bins`` or ``leaves``), `pairs` of features that bins take, and `tol`. Columns of
    categories go into the estimators as they are. A fit cannot be stopped after a time, so `time_limit` is not looked at, nor
    are the validation rows, by which nothing is chosen within a fit.
    """

    ag_key = "AUCDIST"
    ag_name = "aucdist"
    seed_name = "random_state"

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._medians: dict[str, float] = {}

    @classmethod
    def supported_problem_types(cls) -> list[str]:
        """Return the kinds of tasks that it takes."""
        return ["binary", "multiclass"]

    def _set_default_params(self) -> None:
        for name, value in DEFAULTS.items():
            self._set_default_param_value(name, value)

    def _get_default_auxiliary_params(self) -> dict[str, Any]:
        return {**super()._get_default_auxiliary_params(), "valid_raw_types": ["int", "float", "category"]}

    def _preprocess(self, X: pd.DataFrame, is_train: bool = False, **kwargs: Any) -> pd.DataFrame:
        """Fill in, by the training rows' median, what is missing in a column of numbers that had all its values there.

        Bins have a cell for missing values where the training rows had some; of folds, some may have none.
        """
        X = super()._preprocess(X, **kwargs)
        numbers = X.select_dtypes("number")
        if is_train:
            self._medians = numbers.loc[:, numbers.notna().all()].median().to_dict()
        return X.fillna(self._medians)

    def _fit(self, X: pd.DataFrame, y: pd.Series, num_cpus: int = 1, sample_weight: Any = None, **kwargs: Any) -> None:
        X = self.preprocess(X, y=y, is_train=True)
        n_jobs = int(num_cpus) if isinstance(num_cpus, int | float) else 1
        self.model = self._estimator(self._get_model_params(), n_jobs)
        self.model.fit(X, np.asarray(y), sample_weight=sample_weight)

    def _estimator(self, params: dict[str, Any], n_jobs: int) -> BlockClassifier:
        features: dict[str, Any] = {"map": params.pop("map")}
        pairs = params.pop("pairs")
        if features["map"] == "bins" and pairs:
            features["interactions"] = pairs
        if self.problem_type == "binary":
            return PairwiseHingeClassifier(features=features, calibration="logit", n_jobs=n_jobs, **params)
        return LinkClassifier(features=features, link="logit", n_jobs=n_jobs, **params)

    @classmethod
    def config_generator(cls) -> Any:
        """Return TabArena's generator of settings: the defaults, and as many at random as it is asked for."""
        from autogluon.common.space import Categorical, Real
        from tabarena.utils.config_utils import ConfigGenerator

        space = {
            "lam": Real(1e-5, 1e-1, default=DEFAULTS["lam"], log=True),
            "map": Categorical("bins", "leaves"),
            "pairs": Categorical(0, 10, 40),
        }
        return ConfigGenerator(model_cls=cls, manual_configs=[{}], search_space=space)

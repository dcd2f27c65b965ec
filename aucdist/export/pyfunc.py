"""The class that MLflow's `mlflow.pyfunc.load_model` returns for a model.

It reads the files of `write_model` and unpickles nothing.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from aucdist.errors import InputError
from aucdist.model.files import load_two_classes
from aucdist.model.linear_model import LinearModel
from aucdist.parameters import frozen

if TYPE_CHECKING:
    import pandas as pd


@frozen
class PyfuncModel:
    """A model with the method `predict` that MLflow calls."""

    model: LinearModel

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> "pd.DataFrame":
        """Return the scores of rows, in the columns of ``aucdist score`` and equal to its results to the last bit.

        Parameters
        ----------
        model_input : object of shape (n_samples, n_features)
            A data frame has the columns of the training rows in any order, categories as they were written, and may have
            others. An array has the features as for `LinearModel.decision_function`.
        params : dict, optional
            The parameters that MLflow passes on. The model has none.

        Returns
        -------
        DataFrame
            ``score``, float64; ``prediction``, -1 or +1, int8; ``probability`` of the positive class, float64, if the model
            has one. If the input is a data frame, the result has its index.

        Raises
        ------
        InputError
            If a column is not there, if a value is missing or a category unknown where the training rows had none, if a score
            is not finite, or if there are parameters.
        """
        import pandas as pd

        if params:
            raise InputError(f"the model takes no parameters: leave out {', '.join(map(repr, params))}")
        index = model_input.index if isinstance(model_input, pd.DataFrame) else None
        if index is None and not (isinstance(model_input, np.ndarray) or sp.issparse(model_input)):
            raise InputError(f"rows are {type(model_input).__name__}: give a data frame, an ndarray or a sparse matrix")
        scores = np.empty(0) if index is not None and index.empty else self.model.decision_function(model_input)
        columns = {"score": scores, "prediction": self.model.predictions(scores)}
        if (probabilities := self.model.probabilities(scores)) is not None:
            columns["probability"] = probabilities
        return pd.DataFrame(columns, index=index)


def _load_pyfunc(path: str) -> PyfuncModel:
    """Return the model in a folder. MLflow calls this function by its name."""
    return PyfuncModel(load_two_classes(path, "an MLflow model"))

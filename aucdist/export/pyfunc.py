"""The model behind MLflow's `mlflow.pyfunc.load_model`: it reads the files of `save_model`, and unpickles nothing."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from aucdist.batch_scoring import to_score
from aucdist.data.shards.reading import open_reader
from aucdist.data.sources import parse_source
from aucdist.errors import InputError
from aucdist.linear_model import LinearModel
from aucdist.model import load_two_classes

if TYPE_CHECKING:
    import pandas as pd


ROWS = "the rows"
"""What errors call the table that was given."""


class PyfuncModel:
    """A model as MLflow calls it."""

    def __init__(self, model: LinearModel) -> None:
        self.model = model

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> "pd.DataFrame":
        """Return the scores of rows, with the bits and the columns of ``aucdist score``.

        `model_input`, of shape (n_samples, n_features): a data frame has the columns of the training rows in any order,
            categories as they were written, and may have others. An array has the features as for
            `LinearModel.decision_function`.
        `params`: MLflow's; there are none.
        Returns ``score``, float64; ``prediction``, -1 or +1, int8; ``probability`` of the positive class, float64,
            where the model has one. Its index is that of a data frame that was given.
        Raises InputError if a column is not there, a value is missing or of an unknown category where the training rows
            had none, a score is not finite, or there are parameters.
        """
        import pandas as pd

        if params:
            raise InputError(f"the model takes no parameters: leave out {', '.join(map(repr, params))}")
        index = model_input.index if isinstance(model_input, pd.DataFrame) else None
        scores = self._scores(model_input)
        columns = {"score": scores, "prediction": self.model.predictions(scores)}
        if (probabilities := self.model.probabilities(scores)) is not None:
            columns["probability"] = probabilities
        return pd.DataFrame(columns, index=index)

    def _scores(self, rows: Any) -> np.ndarray:
        import pandas as pd

        if isinstance(rows, pd.DataFrame):
            if rows.empty:
                return np.empty(0)
            # By way of a file, so that it is read as every other file is, by the rules of the training rows.
            known = [name for name in self.model.schema.columns() if name in rows.columns]
            with tempfile.TemporaryDirectory(prefix="aucdist-pyfunc-") as folder:
                file = Path(folder) / "rows.parquet"
                rows[known].to_parquet(file, index=False)
                try:
                    source = parse_source({"source": str(file), "format": "parquet"}, ROWS, labelled=False)
                    reader = open_reader(
                        to_score(source, self.model), schema=self.model.schema, labelled=False, name=ROWS
                    )
                    blocks = [reader.read(index) for index in range(reader.n_blocks)]
                    scores = np.concatenate([self.model.decision_function(block.X) for block in blocks])
                    return scores[np.argsort(np.concatenate([block.row_id for block in blocks]), kind="stable")]
                except InputError as error:
                    raise InputError(str(error).replace(str(file), ROWS)) from None
        if isinstance(rows, np.ndarray) or sp.issparse(rows):
            return self.model.decision_function(rows)
        raise InputError(f"rows are {type(rows).__name__}: give a data frame, an ndarray or a sparse matrix")


def _load_pyfunc(path: str) -> PyfuncModel:
    """Return the model in a folder; MLflow calls it by this name."""
    return PyfuncModel(load_two_classes(path, "an MLflow model"))

"""Tables of pandas, polars and pyarrow, with the types that each has: every estimator gives the same bits."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from aucdist.errors import InputError
from aucdist.estimators import ESTIMATORS, PairwiseHingeClassifier

RANDOM = np.random.default_rng(0)
N = 50
FRAME = pd.DataFrame(
    {
        "a": RANDOM.normal(size=N),
        "b": RANDOM.integers(0, 5, N),
        "c": RANDOM.random(N) < 0.5,
        "d": RANDOM.normal(size=N) ** 2,
    }
)
Y = np.where(FRAME["a"] + RANDOM.normal(size=N) > 0.2, 1, 0)


def tables() -> dict[str, Any]:
    polars = pytest.importorskip("polars", reason="polars is not installed: pip install polars")
    return {
        "pandas": FRAME,
        "nullable": FRAME.convert_dtypes(),
        "of Arrow's types": FRAME.convert_dtypes(dtype_backend="pyarrow"),
        "polars": polars.DataFrame(FRAME.to_dict("list")),
        "pyarrow": pa.Table.from_pandas(FRAME, preserve_index=False),
        "pyarrow with an index": pa.Table.from_pandas(FRAME.rename(lambda i: 2 * i), preserve_index=True),
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_gives_the_same_bits(name: str) -> None:
    found = {}
    for kind, table in tables().items():
        parameters = {"max_passes": 30} | (
            {"random_state": 0} if "random_state" in ESTIMATORS[name]().get_params() else {}
        )
        model = ESTIMATORS[name](**parameters).fit(table, Y)
        assert list(model.feature_names_in_) == list(FRAME), kind
        found[kind] = (model.coef_.tobytes(), model.decision_function(table).tobytes())
    assert len(set(found.values())) == 1, [kind for kind in found if found[kind] != found["pandas"]]


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_categories_are_refused_with_the_way_out(kind: str) -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed: pip install polars")
    frame = FRAME.assign(c=pd.Categorical(np.where(FRAME["c"], "u", "v")))
    made = {
        "pandas": lambda: frame,
        "polars": lambda: polars.DataFrame(frame.to_dict("list")).with_columns(
            polars.col("c").cast(polars.Categorical)
        ),
        "pyarrow": lambda: pa.Table.from_pandas(frame),
    }
    with pytest.raises(InputError, match=r"column 'c' holds Categorical.*OneHotEncoder"):
        PairwiseHingeClassifier().fit(made[kind](), Y)

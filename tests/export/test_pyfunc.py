"""The model behind MLflow's pyfunc: the bits of `aucdist score`, for tables and arrays."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from support.command_line import run

from aucdist.data.shards.reading import read
from aucdist.data.sources import parse_source
from aucdist.errors import InputError
from aucdist.export.pyfunc import PyfuncModel, _load_pyfunc

SOURCE = {"format": "csv", "label": "left", "positive": "yes", "categorical": ["plan"], "missing": "keep"}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pd.DataFrame, PyfuncModel]:
    """A folder with rows and a run of them: categories, missing values, and probabilities."""
    folder = tmp_path_factory.mktemp("pyfunc")
    rng = np.random.default_rng(0)
    n = 300
    table = pd.DataFrame({"age": rng.normal(size=n).round(3), "spent": rng.lognormal(4.0, 3.0, n).round(2)})
    table["plan"] = np.array(["basic", "with, comma", "gold"])[rng.integers(0, 3, n)]
    table["left"] = np.where(table["age"] + (table["plan"] == "gold") + rng.normal(size=n) > 1.0, "yes", "no")
    table.loc[::7, "spent"] = np.nan
    table.to_csv(folder / "rows.csv", index=False)
    data = {"source": SOURCE | {"source": str(folder / "rows.csv")}, "scale": "standard", "impute": "median"}
    content = {"name": "churn", "data": data, "model": {"lam": 0.01, "tol": 0.05, "calibration": "logit"}}
    (folder / "churn.yaml").write_text(json.dumps(content), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("flows.train.run.baselines", lambda rows, observer: [])
        run("train", folder / "churn.yaml", "--output", folder / "runs")
    (made,) = (folder / "runs").iterdir()
    return folder, table, _load_pyfunc(str(made / "model"))


def test_a_table_has_the_bits_of_score(trained: tuple[Path, pd.DataFrame, PyfuncModel], tmp_path: Path) -> None:
    folder, table, model = trained
    (made,) = (folder / "runs").iterdir()
    run("score", made / "model", folder / "rows.csv", tmp_path / "scores")
    ours = pd.read_parquet(tmp_path / "scores").drop(columns="row_id")
    mixed = table[["left", "plan", "spent", "age"]].sample(frac=1.0, random_state=0)
    rows = mixed.copy()
    theirs = model.predict(rows, {})
    pd.testing.assert_frame_equal(rows, mixed)  # it is only read
    assert theirs.index.tolist() == mixed.index.tolist()
    pd.testing.assert_frame_equal(theirs.sort_index(), ours, check_exact=True)
    assert list(theirs) == ["score", "prediction", "probability"]


def test_an_array_has_the_features_as_encoded(trained: tuple[Path, pd.DataFrame, PyfuncModel]) -> None:
    folder, table, model = trained
    X = read(parse_source(SOURCE | {"source": str(folder / "rows.csv")}, "rows")).block.X
    of_table = model.predict(table)
    for rows in (X, sp.csr_matrix(X)):
        pd.testing.assert_frame_equal(model.predict(rows), of_table, check_exact=True)


def test_few_and_no_rows(trained: tuple[Path, pd.DataFrame, PyfuncModel]) -> None:
    _, table, model = trained
    whole = model.predict(table)
    pd.testing.assert_frame_equal(model.predict(table.iloc[7:8]), whole.iloc[7:8], check_exact=True)
    none = model.predict(table.iloc[:0])
    assert list(none.dtypes) == list(whole.dtypes)
    assert len(none) == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.drop(columns="age"), "age"),
        (lambda table: table.assign(plan="unheard of"), "unheard of"),
        (lambda table: table.assign(age=np.inf), "age"),
        (lambda table: table["age"].tolist(), "rows are list: give a data frame, an ndarray or a sparse matrix"),
        (lambda table: np.zeros((2, 1)), "X has 1 features"),
    ],
    ids=["column", "category", "infinite", "list", "width"],
)
def test_rows_that_are_not_the_models(trained, change, message):
    _, table, model = trained
    with pytest.raises(InputError, match=message) as raised:
        model.predict(change(table))  # type: ignore[operator]
    assert "aucdist-pyfunc" not in str(raised.value)


def test_parameters_of_predict_are_refused(trained: tuple[Path, pd.DataFrame, PyfuncModel]) -> None:
    _, table, model = trained
    with pytest.raises(InputError, match="takes no parameters: leave out 'top'"):
        model.predict(table, {"top": 3})

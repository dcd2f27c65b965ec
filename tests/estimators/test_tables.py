"""Tables of pandas, polars and pyarrow, with the types that each has: every estimator gives the same bits."""

import inspect
import pickle
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import OneHotEncoder
from support.linear_models import save_model

from aucdist import LinkClassifier, PairwiseHingeClassifier, PairwiseSquareClassifier
from aucdist.data.dataset import Schema
from aucdist.data.preprocess import Preprocessor
from aucdist.data.shards.reading import read
from aucdist.data.sources import Source
from aucdist.errors import InputError
from aucdist.estimators import ESTIMATORS
from aucdist.estimators.tables import checked_rows
from aucdist.maps import BinExpander
from aucdist.model import as_model, load_model
from aucdist.model.batch_scoring import source_for_scoring
from aucdist.sampling import MWMOTE

RANDOM = np.random.default_rng(0)
N = 50
TEXTS = RANDOM.choice(["low", "mid", "high"], N).astype(object)
FRAME = pd.DataFrame(
    {
        "a": RANDOM.normal(size=N),
        "b": RANDOM.integers(0, 5, N),
        "kind": pd.Categorical(RANDOM.choice(["u", "v"], N), categories=["w", "v", "u"]),
        "c": RANDOM.random(N) < 0.5,
        "text": pd.Series(np.where(np.arange(N) == 7, None, TEXTS), dtype="str"),
        "d": RANDOM.normal(size=N) ** 2,
    }
)
Y = np.where(FRAME["a"] + RANDOM.normal(size=N) > 0.2, 1, 0)
NAMES = ["a", "b", "kind=u", "kind=v", "c", "text=(missing)", "text=high", "text=low", "text=mid", "d"]
WEIGHTS = {0: "a", 1: "b", 4: "c", 9: "d"}


def one_hot() -> np.ndarray:
    """Return the rows of `FRAME` as scikit-learn's encoder makes them."""
    made = np.empty((N, len(NAMES)))
    for j, name in WEIGHTS.items():
        made[:, j] = FRAME[name]
    encoder = OneHotEncoder(sparse_output=False)
    made[:, 2:4] = encoder.fit_transform(FRAME[["kind"]].astype(str))
    made[:, 5:9] = encoder.fit_transform(FRAME[["text"]].astype(object).fillna("(missing)"))
    return made


def tables() -> dict[str, Any]:
    polars = pytest.importorskip("polars", reason="polars is not installed: pip install polars")
    texts = FRAME.astype({"kind": object, "text": object}).replace({np.nan: None})
    of_polars = polars.DataFrame(texts.to_dict("list"))
    return {
        "pandas": FRAME,
        "objects": texts,
        "nullable": FRAME.convert_dtypes(),
        "of Arrow's types": FRAME.convert_dtypes(dtype_backend="pyarrow"),
        "polars": of_polars.with_columns(polars.col("kind", "text").cast(polars.Categorical)),
        "polars with an Enum": of_polars.with_columns(polars.col("kind").cast(polars.Enum(["v", "u", "w"]))),
        "pyarrow": pa.Table.from_pandas(FRAME, preserve_index=False),
        "pyarrow with an index": pa.Table.from_pandas(FRAME.rename(lambda i: 2 * i), preserve_index=True),
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_gives_the_same_bits(name: str) -> None:
    bits = {}
    parameters = {"max_passes": 30} | ({"random_state": 0} if "random_state" in ESTIMATORS[name]().get_params() else {})
    for kind, table in tables().items():
        model = ESTIMATORS[name](**parameters).fit(table, Y)
        assert list(model.feature_names_in_) == list(FRAME), kind
        assert model.n_features_in_ == FRAME.shape[1]
        assert list(model.feature_names_out_) == NAMES
        bits[kind] = (model.coef_.tobytes(), model.decision_function(table).tobytes())
    X = one_hot()
    model.fit(X, Y)  # which forgets the columns
    assert not hasattr(model, "categories_")
    bits["scikit-learn's encoder"] = (model.coef_.tobytes(), model.decision_function(X).tobytes())
    assert len(set(bits.values())) == 1, [kind for kind in bits if bits[kind] != bits["pandas"]]


def documented_shape(documented: Any, before: str, sizes: dict[str, int]) -> tuple[int, ...]:
    """Return the shape that follows some words in a docstring, such as ``(1, n_weights)``, with sizes for its names."""
    match = re.search(rf"^{before}.*?of shape \(([^)]*)\)", inspect.getdoc(documented) or "", re.DOTALL | re.MULTILINE)
    assert match, before
    terms = [part.split("+") for part in match[1].split(",") if part.strip()]
    return tuple(sum(int(sizes.get(size.strip(), size)) for size in term) for term in terms)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("features", [None, "bins"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_attributes_have_the_documented_shapes_with_columns_of_categories(name: str, features: str | None) -> None:
    kind = ESTIMATORS[name]
    parameters = {"max_passes": 30} | ({"monotone": {"a": "increasing"}} if "monotone" in kind().get_params() else {})
    if features:
        if not hasattr(kind, "explain"):
            pytest.skip("the estimator has no solver for bins")
        parameters |= {"features": features} | ({"solver": "rda"} if name == "HingeClassifier" else {})
    model = kind(**parameters).fit(FRAME, Y)
    sizes = {
        "n_samples": len(FRAME), "n_columns": FRAME.shape[1], "n_contributions": FRAME.shape[1],
        "n_features_in_": FRAME.shape[1], "n_encoded_features": len(NAMES),
        "n_weights": model.feature_map_.n_features_out if features else len(NAMES),
    }  # fmt: skip
    assert model.coef_.shape == documented_shape(kind, "coef_ :", sizes)
    assert model.feature_names_out_.shape == documented_shape(kind, "feature_names_out_ :", sizes)
    assert model.feature_names_in_.shape == documented_shape(kind, "feature_names_in_ :", sizes)
    if "monotone" in parameters:
        assert model.monotone_.shape == documented_shape(kind, "monotone_ :", sizes)
    if hasattr(kind, "explain"):
        assert model.explain(FRAME).shape == documented_shape(kind.explain, "DataFrame", sizes)
    if features:
        assert model.feature_importances_.shape == documented_shape(kind.feature_importances_, "How much", sizes)


CELLS = st.sampled_from(["x", "y", " y ", "10", "NA", "é", None])


@pytest.mark.filterwarnings("ignore:X has values that no training row had")
@settings(max_examples=30)
@given(
    st.lists(st.tuples(CELLS, st.sampled_from([1.5, 2.0, -3.0])), min_size=2, max_size=8),
    st.lists(st.tuples(CELLS, st.sampled_from([1.5, 7.0])), min_size=1, max_size=8),
)
def test_rows_are_encoded_as_a_plain_loop_encodes_them(trained: Any, scored: Any) -> None:
    def value(cell: str | None) -> str:
        return "(missing)" if cell is None or cell == "NA" else cell.strip()

    model = PairwiseHingeClassifier()
    trained = [("text", 0.0), *trained]
    frame = pd.DataFrame(trained, columns=["cell", "number"])
    checked_rows(model, frame, reset=True)
    known = sorted({value(cell) for cell, _ in trained})
    assert model.categories_ == {"cell": tuple(known)}
    rows = pd.DataFrame([*scored, ("text", 1.0)], columns=["cell", "number"])
    expected = [[*(float(value(cell) == name) for name in known), number] for cell, number in [*scored, ("text", 1.0)]]
    np.testing.assert_array_equal(checked_rows(model, rows), expected)
    np.testing.assert_array_equal(checked_rows(model, pa.Table.from_pandas(rows)), expected)


@pytest.mark.parametrize("convert", [lambda frame: frame, pa.Table.from_pandas], ids=["pandas", "pyarrow"])
def test_many_values_that_the_fit_did_not_see_give_one_warning(
    binned: PairwiseHingeClassifier, recwarn: pytest.WarningsRecorder, convert: Any
) -> None:
    new = pd.concat([FRAME, FRAME], ignore_index=True).astype({"kind": object, "text": object})
    calls = (binned.predict, binned.decision_function, as_model(binned).decision_function)

    def warned(**changed: Any) -> list[str]:
        texts = []
        for call in calls:
            call(convert(new.assign(**changed)))
            texts.append([str(warning.message) for warning in recwarn.list])
            recwarn.clear()
        assert texts[0] == texts[1] == texts[2]
        return texts[0]

    few = [*["U"] * 4, *new["kind"][4:]]
    assert warned() == warned(kind=few) == []
    (text,) = warned(kind=["U", *few[:-1]], text=new["text"].str.upper())
    n = int(new["text"].notna().sum())
    assert text.startswith(
        "X has values that no training row had: column 'kind' in 5 of 100 rows, such as 'U'; "
        f"column 'text' in {n} of 100 rows, such as "
    )
    assert sorted(text.split("rows, such as ")[2].split(". ")[0].split(", ")) == ["'HIGH'", "'LOW'", "'MID'"]
    assert "spell the values as in the training rows" in text.lower()
    (text,) = warned(kind=None)  # no training row had a missing value here
    assert "column 'kind' in 100 of 100 rows, such as None." in text
    assert warned(text=None) == []  # some training rows had one


def test_reasons_and_explanations_are_tables_with_the_index_and_the_columns_of_the_rows(
    binned: PairwiseHingeClassifier,
) -> None:
    rows, model = FRAME[10:20].rename(lambda i: f"row {i}"), as_model(binned)
    terms, reasons = model.explain(rows), model.reasons(rows)
    pd.testing.assert_frame_equal(terms, binned.explain(rows))
    assert [*terms] == [*reasons.above_average, "constant"]
    assert {"kind", "text", "a"} <= {*terms}
    for table in (terms, reasons.above_average, reasons.above_most_favourable):
        pd.testing.assert_index_equal(table.index, rows.index)
    pd.testing.assert_frame_equal(reasons.above_average, terms.drop(columns="constant"))
    # The difference of both is the same number in each row: the least that the column adds.
    beyond = reasons.above_average - reasons.above_most_favourable
    np.testing.assert_allclose(beyond, np.tile(beyond.iloc[0], (10, 1)), atol=1e-12)
    lowered = model.reasons(rows, -1).above_average
    pd.testing.assert_frame_equal(lowered, -reasons.above_average)
    arrays = checked_rows(binned, rows)  # rows without an index are numbered
    assert [*model.reasons(arrays).above_average.index] == [*range(10)]


def test_texts_that_are_numbers_are_numbers_as_in_files() -> None:
    model = PairwiseHingeClassifier(features="bins")
    rows = checked_rows(
        model, pd.DataFrame({"a": ["1", "?", "2.5"], "b": [1, 2, None], "c": ["1", "2", "3"]}), reset=True
    )
    np.testing.assert_array_equal(rows, [[1, 1, 1], [np.nan, 2, 2], [2.5, np.nan, 3]])
    assert not hasattr(model, "categories_")
    mixed = np.array([1, 2.5, None], dtype=object)
    of_types = pd.DataFrame({"n": mixed, "t": [1, "x", None], "k": pd.Categorical([1, "x", None])})
    np.testing.assert_array_equal(
        checked_rows(clone(model), of_types, reset=True),
        [[1, 0, 1, 0, 0, 1, 0], [2.5, 0, 0, 1, 0, 0, 1], [np.nan, 1, 0, 0, 1, 0, 0]],
    )
    with pytest.raises(InputError, match="column 'c' holds strings, but held numbers in the training rows"):
        checked_rows(model, pd.DataFrame({"a": ["1"], "b": [1], "c": ["one"]}))
    with pytest.raises(InputError, match="accepts missing values"):
        PairwiseHingeClassifier().fit(rows, [0, 1, 0])


def test_many_categories_are_sparse_rows() -> None:
    frame = pd.DataFrame({"a": np.arange(600.0), "b": pd.Categorical([f"v{i % 300}" for i in range(600)])})
    rows = checked_rows(PairwiseHingeClassifier(), frame, reset=True)
    assert rows.format == "csr"
    assert rows.shape == (600, 301)
    assert rows[301].toarray()[0, 0] == 301.0


@pytest.fixture(scope="module")
def binned() -> PairwiseHingeClassifier:
    return PairwiseHingeClassifier(features="bins").fit(FRAME, Y)


def test_what_a_model_says_of_features_has_their_names(binned, monkeypatch):
    assert list(binned.explain(FRAME).columns) == [*FRAME, "constant"]  # one term for each column
    texts = binned.explain(FRAME)["text"].groupby(FRAME["text"], observed=True)
    assert (texts.max() - texts.min()).max() < 1e-12  # what the category of the row adds, whatever the others are
    np.testing.assert_allclose(binned.explain(FRAME).sum(axis=1), binned.decision_function(FRAME), atol=1e-12)
    monkeypatch.setattr("aucdist.report.plots.inline_svg", lambda identifier, name, *rest: f"[{name}]")  # draws nothing
    widest = max(binned.shapes().shapes, key=lambda shape: shape.spread)
    assert f"[{NAMES[widest.feature]}]" in binned._html_repr()
    value = pickle.loads(pickle.dumps(binned)).decision_function(FRAME).tobytes()
    assert value == binned.decision_function(FRAME).tobytes()


def test_one_row_has_the_score_that_it_has_among_others(binned: PairwiseHingeClassifier) -> None:
    alone = [binned.decision_function(FRAME.iloc[[i]])[0] for i in (0, 7)]
    assert alone == binned.decision_function(FRAME)[[0, 7]].tolist()


def test_a_search_calibration_classes_and_groups_take_categories() -> None:
    search = GridSearchCV(PairwiseHingeClassifier(calibration="logit"), {"lam": [1e-2]}, cv=2, scoring="roc_auc").fit(
        FRAME, Y
    )
    assert search.best_estimator_.predict_proba(FRAME).shape == (N, 2)
    several = LinkClassifier(link="logit").fit(FRAME.drop(columns="b"), FRAME["b"])
    assert several.coef_.shape == (5, len(NAMES) - 1)
    assert list(several.estimators_[0].feature_names_out_) == [name for name in NAMES if name != "b"]
    of_three = LinkClassifier(link="logit").fit(FRAME.drop(columns="b"), FRAME["b"] == 3)
    assert of_three.coef_.tobytes() == several.coef_[3].tobytes()
    grouped = PairwiseSquareClassifier().fit(FRAME, Y, groups=FRAME["b"].to_numpy())
    assert grouped.coef_.tobytes() == clone(grouped).fit(one_hot(), Y, groups=FRAME["b"].to_numpy()).coef_.tobytes()


def test_directions_are_those_of_columns() -> None:
    names = PairwiseSquareClassifier(monotone={"a": "increasing", "d": "decreasing"}).fit(FRAME, Y)
    places = PairwiseSquareClassifier(monotone={0: "increasing", 5: "decreasing"}).fit(FRAME, Y)
    assert names.monotone_.tolist() == places.monotone_.tolist() == [1, *[0] * 8, -1]
    for feature in ("kind", 2, "kind=u"):
        with pytest.raises(InputError, match=r"kind"):
            PairwiseSquareClassifier(monotone={feature: "increasing"}).fit(FRAME, Y)


@pytest.mark.parametrize(
    ("column", "match"),
    [
        (pd.date_range("2025-01-01", periods=N), "column 'new' holds timestamp.*month and weekday"),
        ([f"2025-01-{1 + i % 28:02d}" for i in range(N)], "column 'new' holds dates as strings"),
        ([[1, 2]] * N, "column 'new' holds list<"),
        (np.full(N, 1j), "column .new. holds complex128"),
        ([b"\xff", b"y"] * (N // 2), "neither numbers nor strings: Invalid UTF8"),
    ],
)
def test_what_is_no_category_is_refused(column: Any, match: str) -> None:
    with pytest.raises(InputError, match=match):
        PairwiseHingeClassifier().fit(FRAME.assign(new=column), Y)


def test_identifiers_are_refused() -> None:
    frame = pd.DataFrame({"name": [f"name {i}" for i in range(60)]})
    with pytest.raises(
        InputError, match=r"column 'name' holds 60 different strings in 60 rows, such as 'name 0', and more"
    ):
        checked_rows(PairwiseHingeClassifier(), frame, reset=True)
    assert checked_rows(PairwiseHingeClassifier(), frame.astype("category"), reset=True).shape == (60, 60)


def test_other_columns_than_those_of_the_fit_are_refused(binned: PairwiseHingeClassifier) -> None:
    with pytest.raises(InputError, match=r"its columns 'kind', 'text' held categories: give a table"):
        binned.decision_function(FRAME.to_numpy())
    with pytest.raises(InputError, match="column 'a' holds strings, but held numbers"):
        binned.decision_function(FRAME.assign(a="high"))
    with pytest.raises(ValueError, match="Feature names"):
        binned.decision_function(FRAME.rename(columns={"text": "words"}))
    numbers = FRAME[["a", "b"]]
    with pytest.raises(InputError, match="column 'b' holds strings"):
        PairwiseHingeClassifier().fit(numbers, Y).predict(numbers.assign(b="one"))


def test_dask_collections_say_that_they_take_numbers(binned: PairwiseHingeClassifier) -> None:
    dataframe = pytest.importorskip("dask.dataframe")
    parts = dataframe.from_pandas(FRAME, npartitions=2)
    with pytest.raises(InputError, match="column 'kind' of the dask DataFrame holds category"):
        PairwiseHingeClassifier().fit(parts, dataframe.from_pandas(pd.Series(Y), npartitions=2))
    np.testing.assert_array_equal(binned.decision_function(parts).compute(), binned.decision_function(FRAME))


def test_dask_frames_are_matched_by_name_and_have_empty_partitions(recwarn: pytest.WarningsRecorder) -> None:
    dataframe = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(
        {"a": [1.0, 2, 3, 4, 5, 6, 7, 8], "b": [0.0, 1, 0, 1, 1, 0, 0, 1], "y": [0, 1, 0, 0, 1, 0, 1, 1]}
    )
    parts = dataframe.from_pandas(frame, npartitions=4)
    model = PairwiseHingeClassifier().fit(parts[["a", "b"]], parts["y"])
    np.testing.assert_array_equal(
        model.decision_function(parts[["a", "b"]]).compute(), model.decision_function(frame[["a", "b"]])
    )
    for wrong in (["b", "a"], ["a"], ["a", "y"]):
        with pytest.raises(ValueError, match=r"feature names|1 features"):
            model.decision_function(parts[wrong])
    some = parts[parts.a < 5]
    assert model.predict(some[["a", "b"]]).compute().tolist() == model.predict(frame.loc[:3, ["a", "b"]]).tolist()
    again = PairwiseHingeClassifier().fit(some[["a", "b"]], some["y"])
    of_frame = PairwiseHingeClassifier().fit(frame.loc[:3, ["a", "b"]], frame["y"][:4])
    np.testing.assert_allclose(again.coef_, of_frame.coef_, rtol=1e-12)  # two blocks and one
    assert not recwarn.list
    model.predict(parts[["a", "b"]].to_dask_array(lengths=True)).compute()
    assert len(recwarn.list) == 1  # of names that are not there, and none for each chunk


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of Dask
def test_dask_frames_from_parquet_are_fitted_without_a_detour(tmp_path: Path) -> None:
    dataframe = pytest.importorskip("dask.dataframe")
    X = np.random.default_rng(0).standard_normal((800, 30))
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(30)]).assign(y=(X[:, 0] > 1).astype(int))
    for i in range(8):
        pq.write_table(
            pa.Table.from_pandas(frame[100 * i : 100 * i + 100], preserve_index=False), tmp_path / f"{i}.parquet"
        )
    parts = dataframe.read_parquet(tmp_path)  # of few columns Dask makes few partitions
    model = PairwiseHingeClassifier(tol=1e-6).fit(parts.drop(columns="y"), parts["y"])
    plain = PairwiseHingeClassifier(tol=1e-6).fit(frame.drop(columns="y"), frame["y"])
    assert model.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=2e-6)
    assert model.feature_names_in_.tolist() == plain.feature_names_in_.tolist()
    with pytest.raises(InputError, match=r"X has 8 partitions, but y has.* take all of them from one DataFrame"):
        PairwiseHingeClassifier().fit(parts.drop(columns="y"), dataframe.from_pandas(frame["y"], npartitions=2))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"y": np.where(np.arange(60) == 3, None, 1)}, "label of row 3"),
        ({"y": ["a", None] * 30}, "label of row 1"),
        ({"y": pd.Series(["a", np.nan] * 30)}, "label of row 1"),
        ({"groups": pd.DataFrame({"u": range(60), "v": 1})}, r"must have one value for each row.*; got \(60, 2\)"),
        ({"groups": [[1, 2]] * 60}, r"groups must have .*; got \(60, 2\)"),
        ({"groups": "user"}, r"got \(\)"),
        (
            {"p": pd.period_range("2020-01", periods=60, freq="M")},
            r"column 'p' holds period\[M\]: give the parts of a date",
        ),
        ({"p": pd.interval_range(0, 60)}, "column 'p' holds interval"),
        ({"p": np.arange(60) * 1j}, "column 'p' holds complex128"),
        (
            {"p": pd.arrays.SparseArray([1.0, np.nan] * 30)},
            r"Input X contains NaN in 1 column \('p'\): use features='bins'",
        ),
        ({"p": [1.0, np.inf] * 30}, r"Input X contains infinity in 1 column \('p'\): correct the values"),
        ({"lazy": True}, "X is a LazyFrame"),
        ({"p": np.full(60, 1e200) * np.arange(60)}, "too large for float64"),
    ],
)
def test_what_cannot_be_fitted_ends_in_one_sentence(change: dict[str, Any], said: str) -> None:
    X = pd.DataFrame(np.random.default_rng(0).standard_normal((60, 2)), columns=["a", "b"])
    arguments = {"X": X, "y": np.arange(60) % 2} | {k: v for k, v in change.items() if k in ("y", "groups")}
    if "p" in change:
        arguments["X"] = X.assign(p=change["p"])
    if "lazy" in change:
        arguments["X"] = pytest.importorskip("polars").LazyFrame({"a": range(60)})
    with pytest.raises(InputError, match=said):  # and warnings are errors here
        PairwiseHingeClassifier().fit(**arguments)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"a": [1.0] * 5 + [None] + [1.0] * 2},
            "X has nan in row 5, column 0 .both from 0.: fill it in, or leave the row out; features='bins'",
        ),
        ({"a": [1.0] * 7 + [np.inf]}, "X has inf in row 7, column 0"),
        ({"a": pd.array([1.0] * 7 + [None], "Float64")}, "X has nan in row 7, column 0"),
        ({"y": ["p", None] * 4}, "Input y contains NaN: a label is missing"),
        ({"y": pd.array([True, None] * 4, "boolean")}, "Input y contains NaN: a label is missing"),
        ({}, "two columns are called 'a'"),
    ],
)
def test_what_dask_frames_cannot_hold_is_said(change: dict[str, Any], said: str) -> None:
    dataframe = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame({"a": np.arange(8.0), "b": [True, False] * 4, "y": [0, 1] * 4}).assign(**change)
    parts = dataframe.from_pandas(frame, npartitions=2)
    with pytest.raises(InputError, match=said):
        PairwiseHingeClassifier().fit(parts[["a", "b"] if change else ["a", "a"]], parts["y"])
    if "Float64" in str(frame["a"].dtype):
        PairwiseHingeClassifier(features="bins").fit(parts[["a", "b"]], parts["y"])


def test_a_series_is_no_table() -> None:
    rows = pd.DataFrame({"a": np.arange(60.0), "b": ["p", "q"] * 30})
    model = PairwiseHingeClassifier().fit(rows, np.arange(60) > 30)
    for call in (model.decision_function, model.explain):
        with pytest.raises(InputError, match="X is a Series: give a table"):
            call(rows.iloc[0])


def test_masked_values_are_missing_values() -> None:
    X = np.ma.masked_greater(np.arange(60.0).reshape(30, 2), 50)
    with pytest.raises(InputError, match="Input X contains NaN"):
        PairwiseHingeClassifier().fit(X, np.arange(30) % 2)
    assert PairwiseHingeClassifier(features="bins").fit(X, np.arange(30) % 2).feature_map_.missing.all()
    assert BinExpander().fit(X).map_.missing.all()
    y, mask = np.arange(30) % 2, np.arange(30) == 3
    with pytest.raises(InputError, match="the label of row 3"):
        PairwiseHingeClassifier().fit(X.data, np.ma.array(y, mask=mask))
    with pytest.raises(ValueError, match="sample_weight contains NaN"):
        PairwiseHingeClassifier().fit(X.data, y, sample_weight=np.ma.array(np.ones(30), mask=mask))
    with pytest.raises(InputError, match="labels are masked"):
        MWMOTE().fit_resample(X.data, np.ma.array(y, mask=mask))


def test_sparse_columns_of_pandas_may_miss_values() -> None:
    values = np.where(np.arange(60) % 3 == 0, np.nan, np.arange(60.0))
    X = pd.DataFrame({"a": pd.arrays.SparseArray(values), "b": pd.arrays.SparseArray(values[::-1])})
    y = np.arange(60) % 2
    coef = PairwiseHingeClassifier(features="bins").fit(X, y).coef_
    assert coef.tolist() == PairwiseHingeClassifier(features="bins").fit(X.sparse.to_dense(), y).coef_.tolist()


def test_a_saved_model_scores_files_as_the_estimator_does(tmp_path: Path) -> None:
    model = PairwiseHingeClassifier().fit(FRAME, Y)
    schema = Schema(tuple(model.feature_names_out_), "y", ("1",), ("0",), model.categories_)
    save_model(
        str(tmp_path / "model"), coef=model.coef_[0], intercept=model.decision_intercept, schema=schema,
        preprocessor=Preprocessor((), "none", None, None), about={}, reading={"missing": "keep", "unknown": "ignore"},
    )  # fmt: skip
    pq.write_table(pa.Table.from_pandas(FRAME.assign(y=Y)), tmp_path / "rows.parquet")
    saved = load_model(str(tmp_path / "model"))
    source = source_for_scoring(
        Source(source=str(tmp_path / "rows.parquet"), format="parquet", label="y"), saved, labelled=True
    )
    rows = read(source, schema=saved.schema).block
    assert saved.decision_function(rows.X).tobytes() == model.decision_function(FRAME).tobytes()
    run = load_model(str(tmp_path))  # the folder that has the model in it
    for table in (FRAME, FRAME.assign(other="x")[["other", *FRAME.columns[::-1]]], pa.Table.from_pandas(FRAME)):
        assert run.decision_function(table).tobytes() == model.decision_function(FRAME).tobytes()
    with pytest.raises(InputError, match="X has no column 'kind', which the model needs"):
        run.predict(FRAME.drop(columns="kind"))
    with pytest.raises(InputError, match="two columns of X are called 'kind'"):
        run.predict(pd.concat([FRAME, FRAME[["kind"]]], axis=1))
    written = replace(saved, reading=saved.reading | {"decimal": ",", "thousands": ".", "symbols": ["€"]})
    texts = FRAME.assign(a=FRAME["a"].map(lambda value: f"{value!r} €".replace(".", ",")))
    assert written.decision_function(texts).tobytes() == model.decision_function(FRAME).tobytes()

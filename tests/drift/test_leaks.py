"""Columns that give the label away, rows in order, times and known rows: named where they are, and only there."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from aucdist.data.block import Block, into_blocks
from aucdist.data.dataset import Schema
from aucdist.data.split import split
from aucdist.drift import leaks as module
from aucdist.drift.columns import auc_and_revealing_value, auc_of_column, is_identifier
from aucdist.drift.leaks import (
    ColumnRanking,
    Sample,
    collinear,
    column_warnings,
    date_warnings,
    leak_warnings,
    rank_by_each_column,
    sample_of,
)
from aucdist.engine.blocks import LocalBlocks

N = 400
RANDOM = np.random.default_rng(0)
POSITIVE = RANDOM.random(N) < 0.3


def sample(columns: dict[str, np.ndarray], positive: np.ndarray = POSITIVE, order: np.ndarray | None = None) -> Sample:
    values = np.column_stack([np.asarray(values, dtype=np.float64) for values in columns.values()])
    return Sample(values, positive, np.arange(len(positive)) if order is None else order)


def schema(names: list[str], categories: dict[str, tuple[str, ...]] | None = None, **more: object) -> Schema:
    return Schema(tuple(names), "y", ("1",), ("0",), categories or {}, **more)  # type: ignore[arg-type]


def texts(warned: Iterable[tuple[str, str]]) -> list[str]:
    return [text for _, text in warned]


def auc_alone(values: np.ndarray, positive: np.ndarray) -> float:
    return auc_of_column(values, np.ones(len(values)), positive.astype(float))


def test_training_rows_repeat_the_warning_about_a_column_whose_auc_is_just_lower() -> None:
    positive = np.arange(1000) >= 500
    for misplaced, reported in ((5, True), (7, False)):  # each of them lowers the AUC by 0.002
        values = np.random.default_rng(misplaced).permuted(np.arange(1000.0).reshape(2, 500), axis=1).ravel()
        values[positive.nonzero()[0][:misplaced]] = -1.0 - np.arange(misplaced)
        area = auc_alone(values, positive)
        assert area == pytest.approx(1 - misplaced / 500)
        said = "".join(texts(column_warnings(sample({"v": values}, positive), schema(["v"]))))
        assert (f"Column 'v' alone has an AUC of {area:.4f}" in said) == reported


def test_one_column_alone_against_scikit_learn() -> None:
    values = np.round(RANDOM.normal(size=N) + POSITIVE, 1)
    expected = roc_auc_score(POSITIVE, values)
    assert auc_alone(values, POSITIVE) == pytest.approx(max(expected, 1 - expected), abs=1e-12)
    assert auc_alone(-values, POSITIVE) == pytest.approx(max(expected, 1 - expected), abs=1e-12)
    assert auc_alone(np.where(POSITIVE, np.nan, values), POSITIVE) == 1.0  # whether there is a value tells it
    assert auc_alone(np.full(N, np.nan), POSITIVE) == 0.5
    few = np.arange(30) < 10
    assert auc_alone(np.where(few, 1.0, 0.0), few) == 1.0
    assert auc_alone(values[:30], np.arange(30) < 9) == 0.5  # too few to say


@pytest.mark.parametrize(
    ("rows", "positives", "n_pos", "expected"),
    [
        (46, 46, 339, True),  # a failure mode
        (46, 44, 339, True),
        (46, 40, 339, False),
        (9, 9, 100, False),  # few rows
        (16, 16, 339, False),  # a small part of the positives
        (16, 16, 6000, False),  # the positives are the larger class
    ],
)
def test_a_value_of_which_nearly_all_rows_are_positive(rows: int, positives: int, n_pos: int, expected: bool) -> None:
    n = 10_000
    counts = np.array([n - rows, rows]), np.array([n_pos - positives, positives])
    for values in (np.arange(2.0), None):
        assert auc_and_revealing_value(values, *counts)[1] == (1 if expected else None)
        # a negative that was not drawn may stand for a hundred
        assert auc_and_revealing_value(values, *counts, negatives_for_one=100.0)[1] is None


@pytest.mark.parametrize(
    ("name", "values", "n_rows", "expected"),
    [
        ("x", np.arange(100) + 7.0, 100, True),  # counts the rows
        ("x", np.arange(0, 300, 3.0), 100, False),
        ("PolicyNumber", np.arange(0, 300, 3.0), 100, True),
        ("nearly", np.arange(95.0), 100, True),
        ("user_id", np.arange(0, 300, 6.0), 100, True),  # two rows each
        ("shop_id", np.arange(5.0), 1000, False),
        ("number", np.arange(5.0), 100, False),
        ("body_index", np.arange(0, 300, 6.0), 100, False),
        ("x", np.array([1.0, 2.0**60]), 100, True),
    ],
)
def test_identifiers(name: str, values: np.ndarray, n_rows: int, expected: bool) -> None:
    assert is_identifier(name, values, n_rows) is expected


def test_columns_that_give_the_label_away() -> None:
    noise = RANDOM.normal(size=N)
    leaking = np.where(RANDOM.random(N) < 0.004, ~POSITIVE, POSITIVE).astype(float)
    kind = np.where(POSITIVE, RANDOM.integers(0, 2, N), 2)  # of three categories two are positive
    columns = {
        "noise": noise, "copy": POSITIVE * 2.0 - 1.0, "nearly": leaking,
        **{f"k={c}": kind == c for c in range(3)}, "when.year": noise, "when.days": 3.0 - POSITIVE,
    }  # fmt: skip
    described = schema(list(columns), {"k": ("0", "1", "2")}, dates={"when": ("year", "days")})
    ranked = rank_by_each_column(sample(columns), described)
    assert list(ranked) == ["noise", "copy", "nearly", "k", "when"]
    assert (ranked["copy"].auc, ranked["k"].auc, ranked["when"].auc) == (1.0, 1.0, 1.0)
    said = texts(column_warnings(sample(columns), described))
    assert [text.split("'")[1] for text in said if text.startswith("Column")] == ["copy", "k", "when", "nearly"]
    assert "tells the classes apart without an error" in said[0]
    assert 'data.source.drop=["copy"]' in said[0]
    assert "has an AUC of 0.99" in said[3]


def test_scaled_categories_are_the_same() -> None:
    kind = np.where(POSITIVE, 0, 1 + RANDOM.integers(0, 2, N))
    flags = np.column_stack([kind == c for c in range(3)]).astype(float)
    names = [f"k={c}" for c in range(3)]
    scaled = (flags - flags.mean(axis=0)) / flags.std(axis=0)
    for values in (flags, scaled):
        ranked = rank_by_each_column(Sample(values, POSITIVE, np.arange(N)), schema(names, {"k": ("0", "1", "2")}))
        assert ranked == {"k": ColumnRanking(1.0, "the value 0", int(POSITIVE.sum()), int(POSITIVE.sum()))}


def test_categories_of_few_rows_prove_nothing() -> None:
    kind = np.arange(N) // 2  # pairs of rows
    names = tuple(map(str, range(N // 2)))
    flags = (kind[:, None] == np.arange(N // 2)[None, :]).astype(float)
    ranked = rank_by_each_column(Sample(flags, POSITIVE, np.arange(N)), schema([f"k={c}" for c in names], {"k": names}))
    assert ranked["k"] == ColumnRanking(0.5)


def test_a_failure_mode_is_named() -> None:
    mode = (POSITIVE & (np.arange(N) % 4 == 0)).astype(float)
    columns = {"wear": mode * 3.0 - 1.0, "k=heat": mode, "k=none": 1.0 - mode, "noise": RANDOM.normal(size=N)}
    said = texts(column_warnings(sample(columns), schema(list(columns), {"k": ("heat", "none")})))
    n = int(mode.sum())
    assert [text.partition(". ")[0] for text in said] == [
        f"Column 'k': of {n} rows with the value heat, {n} are positive",
        f"Column 'wear': of {n} rows with its largest value, {n} are positive",
    ]
    assert said[1].endswith('leave it out with `data.source.drop=["wear"]`.')


def test_noise_is_not_named() -> None:
    columns = {f"x{j}": RANDOM.normal(size=N) for j in range(30)}
    assert column_warnings(sample(columns), schema(list(columns))) == []


def test_identifiers_and_order() -> None:
    columns = {"user_id": RANDOM.permutation(N), "x": RANDOM.normal(size=N), "count": np.arange(N) * 2.0}
    warned = column_warnings(sample(columns), schema(list(columns)))
    assert [key for key, _ in warned] == ["column-numbers-rows"] * 2
    said = texts(warned)
    assert [text.split("'")[1] for text in said] == ["user_id", "count"]
    dated = sample({"at.hour": RANDOM.normal(size=N), "at.days": np.arange(N) * 1.0})
    # There is no column to drop.
    assert column_warnings(dated, schema(["at.hour", "at.days"], dates={"at": ("hour", "days")})) == []
    ordered = np.sort(POSITIVE)
    ((key, text),) = column_warnings(sample({"x": RANDOM.normal(size=N)}, ordered), schema(["x"]))
    assert key == "rows-in-order-of-classes"
    assert text.startswith("The rows are in the order of their classes")


def test_columns_that_share_one_effect() -> None:
    noise, kind = RANDOM.normal(size=(4, N)), RANDOM.integers(0, 3, N)
    missing = np.where(np.arange(N) % 9 == 0, np.nan, noise[3])
    columns = {
        "a": noise[0], "b": -3.0 * noise[0] + 1.0, "near": noise[0] + 0.05 * noise[1], "far": noise[0] + 0.3 * noise[1],
        "gap": missing, "same gap": missing * 1e300, "constant": noise[2] * 0,
        "rare": np.arange(N) < 5, "rare too": np.arange(N) < 5,
        **{f"k={c}": kind == c for c in range(3)}, "flag": kind == 0, "when.days": noise[1], "when.year": noise[1],
    }  # fmt: skip
    described = schema(list(columns), {"k": ("0", "1", "2")}, dates={"when": ("days", "year")})
    ((key, text),) = collinear(sample(columns), described)
    assert key == "collinear-columns"
    assert text.startswith(
        "Columns 'a' and 'b', columns 'a' and 'near', columns 'b' and 'near', and others (5 pairs) have features that are equal "
        "or nearly so (absolute correlation above 0.99). Weights, shapes and reasons divide one effect"
    )
    gaps = {name: columns[name] for name in ("gap", "same gap", "far")}
    ((_, text),) = collinear(sample(gaps), schema(list(gaps)))
    assert text.startswith("Columns 'gap' and 'same gap' have features that are equal or nearly so (absolute")
    kinds = {name: columns[name] for name in columns if name[0] in "kf"}
    assert (
        "Columns 'k' and 'flag' have" in texts(collinear(sample(kinds), schema(list(kinds), {"k": ("0", "1", "2")})))[0]
    )
    assert list(collinear(Sample(np.zeros((N, 0)), POSITIVE, np.arange(N)), schema(list(columns)))) == []


def test_correlations_of_many_rows_are_those_of_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PRODUCTS", 4 * N // 3)  # a third of the rows
    noise = RANDOM.normal(size=(2, N))
    values = np.where(np.arange(N) % 4 == 0, noise[0], noise[1])
    assert len(list(collinear(sample({"a": noise[0], "b": values}), schema(["a", "b"])))) == 1


def test_training_rows_that_are_later_than_test_rows() -> None:
    described = schema(["at.days"], dates={"at": ("days",)})
    days = np.arange(N, dtype=float)
    early, late = sample({"at.days": days}), sample({"at.days": days + N})
    assert list(date_warnings(early, late, described)) == []
    ((key, text),) = date_warnings(early, early, described)
    assert key == "dates-split-at-random"
    assert "50% of the training rows are later than half of the test rows" in text
    assert "100% of the training rows" in texts(date_warnings(late, early, described))[0]


def test_known_rows() -> None:
    train = LocalBlocks([Block.of(RANDOM.normal(size=(N, 1)), np.where(POSITIVE, 1, -1))])
    said = [texts(leak_warnings(train, None, schema(["x"]), known=known, checked=100)) for known in (0, 1, 30)]
    assert said[0] == said[1] == []  # up to 1 % is counted under "Data" only
    assert said[2][0].startswith(
        "30 % of the test rows that were compared with the training rows have the same features as a training row (30 of 100)."
    )


@pytest.mark.parametrize("sparse", [False, True])
def test_a_sample_does_not_depend_on_the_blocks(monkeypatch: pytest.MonkeyPatch, sparse: bool) -> None:
    import scipy.sparse as sp

    monkeypatch.setattr(module, "MAX_ROWS", 100)
    X = RANDOM.normal(size=(N, 3)) * (RANDOM.random((N, 3)) < 0.5)
    block = Block.of(sp.csr_matrix(X) if sparse else X, np.where(POSITIVE, 1, -1), row_id=RANDOM.permutation(N))
    whole, many = (sample_of(LocalBlocks(into_blocks(block, n))) for n in (1, 7))
    for key in ("values", "positive", "row_id"):
        assert (getattr(whole, key) == getattr(many, key)).all()
    assert 25 < whole.positive.sum() < 75
    assert 25 < (~whole.positive).sum() < 75
    at = np.argsort(block.row_id)
    assert (whole.values == X[at[whole.row_id]]).all()
    monkeypatch.setattr(module, "MAX_FEATURES", 2)
    assert sample_of(LocalBlocks([block])).values.shape[1] == 0


def test_rows_are_not_sampled_by_the_numbers_of_a_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ROWS", 400)
    block = Block.of(np.zeros((8000, 1)), np.where(np.arange(8000) % 4, -1, 1))
    drawn = sample_of(LocalBlocks([block.take(split(block, 0.3, 0)[0])]))
    assert 150 < drawn.positive.sum() < 250
    assert 150 < (~drawn.positive).sum() < 250


def test_the_report_names_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from support.command_line import run

    monkeypatch.setattr("flows.train.run.baselines", lambda rows, observer: [])
    monkeypatch.chdir(tmp_path)
    y = np.arange(200) % 4 == 0
    x = RANDOM.integers(0, 3, 200)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(RANDOM.integers(0, 300, 200), "D")
    table = pd.DataFrame({"x": x, "alive": np.where(y, "no", "yes"), "y": y.astype(int), "seen": days})
    table.to_csv("t.csv", index=False)
    run("init", "t.csv", "--label", "y")
    random = ("--set", "data.test={fraction: 0.2, seed: 0}")
    run("train", "t.yaml", "--output", "out", "--set", "model.tol=0.1", *random)
    (folder,) = Path("out").iterdir()
    page = (folder / "report.html").read_text()
    assert "Before you rely on this run" in page
    assert "Column &#39;alive&#39; alone tells the classes apart without an error" in page
    assert "of the training rows are later than half of the test rows" in page
    run("train", "t.yaml", "--output", "more", "--set", "data.source.keep=[x]", "--set", "data.source.categorical=[]", "--set",
        "data.source.dates={}", "--set", "model.tol=0.1", *random)  # fmt: skip
    (folder,) = Path("more").iterdir()
    assert "test rows have the same features" not in (folder / "report.html").read_text()
    assert "have the same features as a training row" in (folder / "report.html").read_text()
    assert "Test rows with the features of a training row" in (folder / "report.html").read_text()

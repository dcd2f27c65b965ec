"""`shapes` of a configuration: a band of other fits, what directions cost, and what the report says of both."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.runs import Following, page_of, searched, trained, write_config

from aucdist import PairwiseHingeClassifier
from aucdist.data.block import Block, into_blocks
from aucdist.engine.blocks import LocalBlocks
from aucdist.errors import InputError
from aucdist.maps.explain import values_at_bins
from aucdist.report.text import directions_text
from flows.run_folder.folder import read_metrics
from flows.train.run import _half, _shapes_of_half


def rows(n: int = 300) -> pd.DataFrame:
    r = np.random.default_rng(0)
    debt, age, noise = r.normal(size=(3, n)).round(2)
    y = debt + 0.5 * np.sin(3 * debt) - 0.5 * age + r.normal(size=n) > 1.0
    return pd.DataFrame({"debt": debt, "age": age, "noise": noise, "bad": np.where(y, "yes", "no")})


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    monotone = {"debt": "increasing", "age": "decreasing"}
    model = {"lam": 1e-2, "features": {"map": "bins", "bins": 8}, "monotone": monotone}
    more = {"model": model, "shapes": {"halves": 3, "compare_free": True}}
    source, test = {"label": "bad", "positive": "yes"}, {"test": {"fraction": 0.3, "seed": 0}}
    return write_config(tmp_path_factory.mktemp("shapes"), rows(), source, test, **more)


def train(config: Path, output: Path, *settings: str) -> tuple[dict[str, Any], str]:
    observer = Following()
    return trained(config, *settings, output=output, observer=observer), "\n".join(observer.lines)


def test_the_report_has_arrows_a_band_and_what_directions_cost(config: Path, tmp_path: Path) -> None:
    result, said = train(config, tmp_path)
    assert "4 of 4 tasks" in said
    metrics = read_metrics(result["run"])
    assert metrics["monotone"] == {"debt": "increasing", "age": "decreasing"}
    free = metrics["free"]
    assert free["objective"] < metrics["certificate"]["primal"] == free["monotone"]["objective"]
    assert free["monotone"]["test_auc"] == metrics["metrics"]["test_auc"]
    plain, _ = train(config, tmp_path / "free", "model.monotone=null", "shapes={}")
    assert free["objective"] == plain["certificate"]["primal"]
    assert free["test_auc"] == plain["metrics"]["test_auc"]
    assert free["train_auc"] == plain["metrics"]["train_auc"]
    page = page_of(result)
    shown = (
        "<bdi>debt</bdi> ↗",
        "<bdi>age</bdi> ↘",
        "<bdi>noise</bdi></strong>",
        "The bands contain the shapes of 3 fits",
    )
    assert all(part in page for part in shown)
    assert directions_text(free) in page
    assert not any(word in page_of(plain) for word in ("↗", "The bands contain", "With the directions"))


def test_shapes_interactions_and_points_are_in_the_units_of_the_file(config: Path, tmp_path: Path) -> None:
    pages = [
        page_of(train(config, tmp_path / scale, f"data.scale={scale}", "model.monotone=null",
                      "model.features={map: bins, bins: 8, interactions: 1}", "shapes={halves: 2}")[0])
        for scale in ("none", "standard")
    ]  # fmt: skip
    parts = [page.split("Shapes of the features")[1].split("Decisions")[0] for page in pages]
    for ends in (r"(-?\d+\.\d+) to -?\d", r"<text[^>]*>(-?\d+\.\d+)</text>"):  # of bins, and at axes
        raw, standard = (np.array(re.findall(ends, part), dtype=float) for part in parts)
        np.testing.assert_allclose(standard, raw, atol=0.011)
        assert len(raw) >= 8


def test_the_model_is_the_same_with_and_without_more_fits(config: Path, tmp_path: Path) -> None:
    weights = [
        (Path(train(config, tmp_path / name, f"shapes={more}")[0]["run"]) / "model" / "weights.npy").read_bytes()
        for name, more in (("more", "{halves: 2}"), ("none", "{}"))
    ]
    assert weights[0] == weights[1]


def test_a_search_has_them_for_its_last_fit(config: Path, tmp_path: Path) -> None:
    model = "model={features: {map: bins, bins: 8}, monotone: {debt: increasing, age: decreasing}}"
    settings = ("shapes.halves=2", model, "grid={lam: [1e-1, 1e-2]}", "folds={number: 2}")
    assert "The bands contain the shapes of 2 fits" in page_of(searched(config, *settings, output=tmp_path))


def test_halves_do_not_depend_on_the_order_of_the_rows() -> None:
    r = np.random.default_rng(1)
    y, row_id = np.where(np.arange(101) < 31, 1, -1), np.arange(101) * 3
    order = r.permutation(101)
    for k in range(3):
        half, again = _half(row_id, y, k), _half(row_id[order], y[order], k)
        np.testing.assert_array_equal(half, again)
        assert half.sum() == half[row_id].sum() == 16 + 35
        assert half[row_id[:31]].sum() == 16
    assert (_half(row_id, y, 0) != _half(row_id, y, 1)).any()


def test_shapes_of_another_model_in_the_bins_of_this_one() -> None:
    table = rows()
    X, y = table[["debt", "age", "noise"]].to_numpy(), np.where(table["bad"] == "yes", 1, -1)
    model = PairwiseHingeClassifier(features={"map": "bins", "bins": 8}).fit(X, y)
    own = values_at_bins(model.shapes(), model.feature_map_, model.shapes())
    for shape, values in zip(model.shapes().shapes, own, strict=True):
        np.testing.assert_allclose(values, shape.values, atol=1e-12)
    constant = X.copy()
    constant[:, 1] = 0.0
    other = PairwiseHingeClassifier(features={"map": "bins", "bins": 30}).fit(constant, y)
    at_bins = values_at_bins(model.shapes(), model.feature_map_, other.shapes())
    assert [bool(values.any()) for values in at_bins] == [True, False, True]
    for shape, values in zip(model.shapes().shapes, at_bins, strict=True):
        assert shape.shares @ values == pytest.approx(0.0, abs=1e-12)


def test_a_sentence_of_training_rows_where_there_are_no_others() -> None:
    free = {"objective": 0.3, "train_auc": 0.9, "test_auc": None, "monotone": {"objective": 0.31, "train_auc": 0.89}}
    assert directions_text(free) == (
        "With monotonic constraints, the training AUC is 0.8900. Without them, it is 0.9000."
    )


def test_bands_are_about_the_same_in_any_number_of_blocks() -> None:
    table = rows()
    X, y = table[["debt", "age", "noise"]].to_numpy(), np.where(table["bad"] == "yes", 1, -1)
    unfitted = PairwiseHingeClassifier(features={"map": "bins", "bins": 8}, monotone={0: "increasing"})
    curves = []
    for n_blocks in (1, 3):
        blocks = LocalBlocks(into_blocks(Block.of(X, y), n_blocks), n_jobs=n_blocks)
        fitted = PairwiseHingeClassifier(features={"map": "bins", "bins": 8}).fit(X, y)
        curves.append(_shapes_of_half(unfitted, fitted, blocks, _half(np.arange(len(y)), y, 0)))
    for first, other in zip(*curves, strict=True):
        np.testing.assert_allclose(first, other, atol=0.05)
    assert (np.diff(curves[0][0]) >= 0.0).all()


@pytest.fixture
def clerks(tmp_path: Path) -> Path:
    table = rows().assign(job=np.where(np.arange(300) % 3, "clerk", "other"))
    source = {"label": "bad", "positive": "yes", "categorical": ["job"]}
    return write_config(tmp_path, table, source, model={"lam": 1e-1, "features": {"map": "bins", "bins": 4}})


@pytest.mark.parametrize(
    ("monotone", "said"),
    [
        ("{job: increasing}", "'job' is a column of categories or strings, which have no order; .*: debt, age, noise"),
        ("{job=clerk: increasing}", "monotone names 'job=clerk', but 'job' is a column of categories"),
        ("{3: increasing}", "monotone names 3, but 'job' is a column of categories"),
        ("{dept: increasing}", r"unknown feature in `monotone`: 'dept'\. Did you mean 'debt'\? Allowed: debt, age, noise$"),
        ("{debt: increasing, 0: increasing}", "to 'debt' and to 0, which are one feature"),
        ("{9: increasing}", "positions are from 0 to 4"),
    ],
)  # fmt: skip
def test_directions_are_held_against_the_columns_before_a_fit(clerks, tmp_path, monotone, said):
    observer = Following()
    run = {"output": tmp_path / "runs", "observer": observer}
    with pytest.raises(InputError, match=said):
        trained(clerks, f"model.monotone={monotone}", **run)
    (tmp_path / "cv.yaml").write_text(clerks.read_text() + f"grid: {{monotone: [null, {monotone}]}}\n")
    with pytest.raises(InputError, match=said):
        searched(tmp_path / "cv.yaml", **run)
    assert not {"fit", "search"} & set(observer.lines)


def test_a_grid_has_directions_by_name(clerks: Path, tmp_path: Path) -> None:
    grid = "grid: {monotone: [null, {debt: increasing}, {debt: decreasing}, auto]}\nfolds: {number: 3}\n"
    (tmp_path / "cv.yaml").write_text(clerks.read_text() + grid)
    search = searched(tmp_path / "cv.yaml", output=tmp_path)
    assert not any(row["errors"] for row in search["table"])
    means = {json.dumps(row["parameters"]["monotone"]): row["mean"] for row in search["table"]}
    assert means['{"debt": "decreasing"}'] < means['{"debt": "increasing"}']
    assert search["best"]["monotone"] != {"debt": "decreasing"}

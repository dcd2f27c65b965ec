"""Scorecards: points of any row within the bound, few lines, and files that score."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.metrics import log_loss
from support.linear_models import linear_model

from aucdist.data.block import Block
from aucdist.data.dataset import Schema
from aucdist.data.preprocess import Preprocessor
from aucdist.engine.blocks import LocalBlocks
from aucdist.errors import InputError
from aucdist.export import Scaling, to_json, to_scorecard, to_sql
from aucdist.export.cards import card_file, card_rows, losses_of_card, to_csv
from aucdist.maps import BinExpander
from aucdist.model.files import card_model, load_model
from aucdist.model.linear_model import LinearModel
from aucdist.model.scorecard import Scorecard, parse_card
from aucdist.probability.links import IsotonicMap, Link, LinkMap

LOGIT = LinkMap(1.5, Link("logit", 0.0), 0.8, -0.3)


def rows(seed: int, n: int = 200) -> np.ndarray:
    r = np.random.default_rng(seed)
    X = np.column_stack([r.normal(size=n), np.exp(r.normal(size=n)), r.integers(0, 2, n), r.integers(0, 3, n)])
    X[r.random(n) < 0.1, 1] = np.nan
    return X


def model(seed: int, *, basis: str = "cumulative", scaled: bool = True, probability=LOGIT, **about) -> LinearModel:
    X = rows(seed)
    shift, factor = (np.array([0.3, 1.0, 0.0, 0.5]), np.array([2.0, 0.1, 1.0, 3.0])) if scaled else (None, None)
    preprocessor = Preprocessor((1,) if scaled else (), "standard" if scaled else "none", shift, factor, "keep")
    block = preprocessor.transform(Block.of(X, np.where(np.arange(len(X)) % 3, -1, 1)))
    fitted = BinExpander(bins=8, basis=basis).fit_blocks(LocalBlocks([block]))
    coef = np.random.default_rng(seed).normal(size=fitted.n_features_out)
    schema = Schema(("age", "sum", "job=clerk", "kind"), "bad", ("yes",), ("no",), {"job": ("clerk",)})
    return linear_model(coef, 0.4, schema, preprocessor, about, probability, fitted)


def lines_of(card: Scorecard) -> int:
    return len(card_rows(card))


@given(
    seed=st.integers(0, 1000), basis=st.sampled_from(["cumulative", "one-hot", "hat"]), scaled=st.booleans(),
    total=st.sampled_from([1, 7, 100, 5000]), most=st.one_of(st.none(), st.integers(4, 30)),
)  # fmt: skip
def test_points_of_any_row_are_within_the_bound(seed, basis, scaled, total, most):
    exact = model(seed, basis=basis, scaled=scaled)
    card = to_scorecard(exact, Scaling(total=total), rows=most)
    of_card = card_model(parse_card(card.to_json().encode(), "card"))
    X = np.vstack([rows(seed), rows(seed + 1)])
    points = of_card.decision_function(X) + of_card.cutoff
    assert (points == np.round(points)).all()
    assert points.min() >= card.least
    assert points.max() <= card.most
    expected = card.scaling["points_per_score"] * exact.decision_function(X) + card.scaling["shift"]
    errors = points - expected
    slack = 1e-9 * (1.0 + np.abs(expected).max())
    assert np.abs(errors).max() <= card.rounding["most"] + slack
    assert np.ptp(errors) <= card.rounding["most_pair"] + slack
    if most is not None:
        assert lines_of(card) <= most
    # Whether a row is called positive changes only where its points are within the bound of the cutoff.
    clear = np.abs(expected - card.scaling["shift"]) > card.rounding["most"] + 1.0
    assert (of_card.predict(X)[clear] == exact.predict(X)[clear]).all()
    np.testing.assert_allclose(
        of_card.predict_proba(X)[:, 1],
        exact.probability((points - card.scaling["shift"]) / card.scaling["points_per_score"])[:, 1],
        rtol=1e-9, atol=1e-12,
    )  # fmt: skip


def test_a_point_without_rounding_is_the_exact_one():
    exact = model(3)
    fine = to_scorecard(exact, Scaling(total=10**6))
    assert fine.rounding["score"] < 1e-4
    scores, X = exact.decision_function(rows(3)), rows(3)
    near = (card_model(fine).decision_function(X) + fine.cutoff - fine.scaling["shift"]) / fine.scaling[
        "points_per_score"
    ]
    np.testing.assert_allclose(near, scores, atol=fine.rounding["score"] + 1e-9)


@settings(max_examples=30)
@given(seed=st.integers(0, 1000), most=st.integers(4, 20))
def test_a_rising_shape_stays_rising(seed, most):
    exact = model(seed, scaled=False)
    jumps = np.abs(exact.coef)  # of cumulative steps and rising lines: every shape rises
    card = to_scorecard(exact.with_weights(coef=jumps), rows=most)
    for feature in card.features:
        assert (np.diff(feature.points) > 0).all()


def test_points_that_double_the_odds():
    exact = model(5)
    card = to_scorecard(exact, Scaling(20.0, 600.0, 0.05))
    assert card.scaling["points_per_score"] == pytest.approx(20.0 / np.log(2.0) * 0.8)
    X = rows(5)
    probability = exact.predict_proba(X)[:, 1]
    expected = 600.0 + 20.0 * np.log2(probability / (1.0 - probability) / 0.05)
    scaled = card_model(card).decision_function(X) + card.cutoff
    assert np.abs(scaled - expected).max() <= card.rounding["most"] + 1e-6


def test_probabilities_of_an_isotonic_map():
    exact = model(2, probability=IsotonicMap(1.0, np.array([-3.0, 0.0, 4.0]), np.array([0.1, 0.2, 0.9])))
    fine = to_scorecard(exact, Scaling(total=10**6))
    np.testing.assert_allclose(card_model(fine).predict_proba(rows(2)), exact.predict_proba(rows(2)), atol=1e-4)


def test_a_card_is_a_model_for_other_exports(tmp_path: Path):
    card = to_scorecard(model(1, scaled=False), rows=12)
    (tmp_path / "card.json").write_text(card.to_json(), encoding="utf-8")
    loaded = load_model(str(tmp_path / "card.json"))
    assert json.loads(to_json(loaded))["score"]["kind"] == "steps"
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    X = rows(1)
    table = pd.DataFrame(X, columns=["age", "sum", "job", "kind"])
    table["job"] = np.where(table["job"] > 0, "clerk", "other")
    table["id"] = np.arange(len(X))
    expected = loaded.decision_function(X)
    loaded = replace(loaded, reading={"unknown": "ignore", "missing": "keep"})
    tables = duckdb.connect()
    tables.register("applicants", table)
    scored = tables.execute(to_sql(loaded, table="applicants", ids=["id"])).df()
    np.testing.assert_allclose(scored.sort_values("id")["score"], expected, rtol=1e-12, atol=1e-9)


def test_lines_name_what_they_apply_to():
    card = to_scorecard(model(0), rows=14)
    lines = card_rows(card)
    assert {row.feature for row in lines} <= {"age", "sum", "job", "kind"}
    assert any(row.value == "missing" and row.share is None for row in lines if row.feature == "sum")
    assert any(row.feature == "job" and row.value == "clerk" for row in lines)
    text = card_file(card, "md", "A | card").decode()
    assert text.count("\n| ") == len(lines) + 1
    assert "# A \\| card" in text
    assert f"; a value without a line gets 0 points. Predict yes if the points are more than {card.cutoff}." in text
    assert len(to_csv(card).splitlines()) == len(lines) + 3
    page = card_file(card, "html", "<b>").decode()
    assert "<bdi>&lt;b&gt;</bdi>" in page
    assert page.count("<tr>") == len(lines) + 1


def test_names_are_shown_as_they_are_and_are_no_formulas():
    card = to_scorecard(model(0), rows=14)
    schema = replace(card.schema, positive=("<img src=x> | *yes*\n# `no`",))
    features = tuple(replace(feature, name=f"=cmd|'{feature.name}'") for feature in card.features)
    hostile = replace(card, schema=schema, features=features)
    text = card_file(hostile, "md", "A [card](x)").decode()
    assert "Predict &lt;img src=x&gt; \\| \\*yes\\* \\# \\`no\\` if" in text
    assert "# A \\[card\\](x)" in text
    assert "<img" not in text
    names = [row[0] for row in csv.reader(to_csv(hostile).splitlines())]
    assert sum(name.startswith("'=cmd") for name in names) == len(names) - 3
    assert not any(name.startswith("=") for name in names)
    assert "<img" not in card_file(hostile, "html", "A").decode()


def test_edges_on_the_card_are_those_of_the_model():
    exact = model(4)
    card, X = to_scorecard(exact), rows(4)
    of_card = card_model(card)
    assert len(np.unique(of_card.decision_function(X))) <= len(np.unique(exact.decision_function(X)))
    edge = card.features[0].edges[0]
    at, above = X[:1].copy(), X[:1].copy()
    at[0, 0], above[0, 0] = edge, np.nextafter(edge, np.inf)
    steps = [m.decision_function(above) - m.decision_function(at) for m in (of_card, exact)]
    assert steps[0] == card.features[0].points[1] - card.features[0].points[0]
    assert steps[1] != 0.0


def test_losses_of_model_and_card():
    exact = model(7, scaled=False, estimator="PairwiseHingeClassifier")
    card = to_scorecard(exact, rows=8)
    X, y = rows(7), np.where(np.arange(200) % 3, -1, 1)
    parts = [("train", Block.of(X[part], y[part])) for part in (slice(0, 120), slice(120, 200))]
    one_class = [("test", Block.of(X[y > 0], y[y > 0]))]
    (losses,) = losses_of_card(exact, card, [*parts, *one_class]).values()
    assert losses["n_samples"] == 200
    scores = exact.decision_function(X)
    by_pairs = np.maximum(0.0, 1.0 - np.subtract.outer(scores[y > 0], scores[y < 0])).mean()
    assert losses["loss_of_model"] == pytest.approx(by_pairs)
    value = abs(losses["loss"] - losses["loss_of_model"])
    assert value <= card.rounding["pair"]  # the hinge is 1-Lipschitz in the margin
    values = losses_of_card(exact.with_weights(about={}), card, parts)["train"]
    expected = [
        log_loss(y, of.probabilities(of.decision_function(X)), labels=[-1, 1]) for of in (card_model(card), exact)
    ]
    assert values["loss_name"] == "mean log loss"
    assert [values["loss"], values["loss_of_model"]] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda m: to_scorecard(m.with_weights(feature_map=None, coef=m.coef[:4])), "needs bins: train the model"),
        (lambda m: to_scorecard(m, Scaling(20.0, total=100)), "give either `points_to_double_odds` or `total`"),
        (lambda m: to_scorecard(m, Scaling(base_points=3.0)), "go with `points_to_double_odds`"),
        (lambda m: to_scorecard(m, Scaling(total=0)), "total must be an integer from 1 to 1000000"),
        (lambda m: to_scorecard(m, Scaling(-1.0)), "points_to_double_odds must be a number above 0.*; got -1.0"),
        (lambda m: to_scorecard(m.with_weights(probability=None), Scaling(20.0)), "log odds are a linear function of its score"),
        (lambda m: to_scorecard(m, rows=1), "`rows` is 1, but a scorecard needs at least 2 lines"),
        (lambda m: to_scorecard(m.with_weights(coef=0.0 * m.coef)), "all weights of the model are 0"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_card_is_refused(make, message):
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        make(model(0))


def test_a_card_of_interactions_is_refused_with_the_settings_that_make_one():
    X = rows(0)[:, [0, 3]]
    block = Block.of(X, np.where(X[:, 0] * (X[:, 1] - 1.0) > 0.3, 1, -1))
    fitted = BinExpander(bins=4, interactions=1).fit_blocks(LocalBlocks([block]))
    coef = np.ones(fitted.n_features_out)
    schema = Schema(("age", "kind"), "bad", ("yes",), ("no",), {})
    pairs = linear_model(coef, 0.4, schema, Preprocessor((), "none", None, None, "keep"), {}, LOGIT, fitted)
    with pytest.raises(
        InputError, match=r"interactions\. Train again with `--set model.features=bins --set model.lam=1e-2`"
    ):
        to_scorecard(pairs)


def test_missing_values_keep_their_line():
    X = np.column_stack(
        [
            np.where(np.arange(60) % 5 == 0, np.nan, np.arange(60) % 7),
            np.where(np.arange(60) % 4 == 0, np.nan, np.arange(60) % 3),
        ]
    )
    fitted = BinExpander(bins=4).fit_blocks(LocalBlocks([Block.of(X, np.where(np.arange(60) % 3, -1, 1))]))
    coef = np.random.default_rng(0).normal(size=fitted.n_features_out)
    schema = Schema(("a", "b"), "y", ("1",), ("0",), {})
    exact = linear_model(coef, 0.0, schema, Preprocessor((), "none", None, None, "keep"), {}, None, fitted)
    assert len(card_rows(to_scorecard(exact, rows=4))) == 4
    with pytest.raises(InputError, match="this card needs at least 4 lines"):
        to_scorecard(exact, rows=3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.update(format="other"), "is not a scorecard, and no other JSON is read as a model"),
        (lambda c: c.update(version=2), "a card of version 2"),
        (lambda c: c["features"][0]["edges"].reverse(), "must have ascending edges"),
        (lambda c: c["features"].reverse(), "in the same order and each once"),
        (lambda c: c["features"][0].update(name="nobody"), "in the same order and each once"),
        (lambda c: c["features"][0]["points"].append(1.5), "damaged"),
        (lambda c: c["preprocessor"].update(fill=[1.0]), "damaged"),
        (
            lambda c: c["probability"].update(kind="magic"),
            "`probability` must be a mapping whose 'kind' is one of 'link', 'isotonic'",
        ),
    ],
)
def test_a_damaged_card_is_refused(change, message, tmp_path):
    content = json.loads(to_scorecard(model(0)).to_json())
    change(content)
    file = tmp_path / "card.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(InputError, match=message):
        load_model(str(file))

"""A model on disk: what is loaded scores like what was saved, and damage is noticed."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from support.linear_models import linear_model, save_model

from aucdist import PairwiseHingeClassifier
from aucdist.data.block import Block, each_of
from aucdist.data.dataset import Schema
from aucdist.data.preprocess import fit_preprocessor
from aucdist.errors import InputError
from aucdist.model.files import digest_of_model, files_of_model, load_model, load_two_classes, write_model
from aucdist.model.linear_model import LinearModel
from aucdist.probability.links import IsotonicMap, Link, LinkMap, ProbabilityMap

NAMES = ("a", "b", "c")
X = np.random.default_rng(0).gamma(1.0, size=(20, 3))
COEF = np.array([0.1, -1 / 3, 2e-17])


def save(url: str) -> LinearModel:
    block = Block.of(X, np.where(np.arange(20) % 3, -1, 1))
    preprocessor = fit_preprocessor(each_of([block]), NAMES, log1p="numeric", scale="standard", categories={})
    schema = Schema(NAMES, "label", ("yes",), ("no",), {})
    about = {"estimator": "PairwiseHingeClassifier"}
    save_model(url, coef=COEF, intercept=0.7, schema=schema, preprocessor=preprocessor, about=about)
    return linear_model(COEF, 0.7, schema, preprocessor, about)


@pytest.mark.parametrize("where", ["folder", "memory://test-model/run/model"])
def test_round_trip_to_the_bit(where: str, tmp_path: Path) -> None:
    url = where if "://" in where else str(tmp_path / where)
    saved, loaded = save(url), load_model(url)
    np.testing.assert_array_equal(saved.decision_function(X), loaded.decision_function(X))
    assert loaded.schema == saved.schema
    assert loaded.about == saved.about


def test_an_estimator_is_written_as_it_is_and_a_model_is_shown_in_a_line(tmp_path: Path) -> None:
    estimator = PairwiseHingeClassifier(features="bins").fit(X, np.arange(20) % 3 == 0)
    write_model(str(tmp_path), estimator)
    loaded = load_model(tmp_path)  # type: ignore[arg-type]  # a Path is taken as well
    np.testing.assert_array_equal(loaded.decision_function(X), estimator.decision_function(X))
    assert repr(loaded) == "<LinearModel of 3 columns, label 'y', positive class True>"
    with pytest.raises(InputError, match="a fitted estimator of aucdist is needed, not str"):
        write_model(loaded, str(tmp_path))  # type: ignore[arg-type]


def test_scores_are_those_of_the_encoded_rows(tmp_path: Path) -> None:
    save(str(tmp_path))
    log = np.log1p(X)
    expected = (log - log.mean(0)) / log.std(0) @ COEF + 0.7
    model = load_model(str(tmp_path))
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X), np.where(expected > 0, 1, -1))


@pytest.mark.parametrize("rows", [X[:, :2], np.hstack([X, X]), sp.csr_matrix(X[:, :1])])
def test_wrong_number_of_features(rows: Any, tmp_path: Path) -> None:
    save(str(tmp_path))
    with pytest.raises(InputError, match=rf"{rows.shape[1]} features, but the model was fitted on 3"):
        load_model(str(tmp_path)).predict(rows)


@pytest.mark.parametrize(
    "probability",
    [
        LinkMap(0.3, Link("gev", -0.15), 1.25, 1 / 3),
        IsotonicMap(1.0, np.array([-0.5, 0.1, 0.7]), np.array([0.0, 0.2, 1.0])),
    ],
)
def test_probabilities_to_the_bit(probability: ProbabilityMap, tmp_path: Path) -> None:
    plain = save(str(tmp_path))
    with pytest.raises(InputError, match="gives no probabilities"):
        load_model(str(tmp_path)).predict_proba(X)
    save_model(
        str(tmp_path), coef=COEF, intercept=0.7, schema=plain.schema, preprocessor=plain.preprocessor, about={},
        probability=probability,
    )  # fmt: skip
    p = load_model(str(tmp_path)).predict_proba(X)
    np.testing.assert_array_equal(p, probability(plain.decision_function(X)))


OLD = Path(__file__).with_name("old_models")
ROWS = np.array([[1.0, 1.0], [3.0, 2.0], [8.0, 7.0]])
OLD_SCORES = {
    1: [0.3068528194400547, 0.4013877113318902, 0.6705584583201643],
    2: [-1.7101668165453168, -1.1799258535104082, 0.7615533282077163],
    3: [[-0.25, 0.6875], [-0.25, 1.4375], [-2.75, 5.1875]],
}


@pytest.mark.parametrize("version", OLD_SCORES)
def test_models_of_older_formats_score_as_they_did_and_are_written_anew(version: int, tmp_path: Path) -> None:
    url = f"{OLD}/format-{version}"
    old = load_model(url)
    scores = old.decision_function(ROWS)
    np.testing.assert_allclose(scores, OLD_SCORES[version], rtol=1e-14)  # whose last bit depends on the processor
    for name, data in files_of_model(url).items():
        (tmp_path / name).write_bytes(data)
    assert json.loads((tmp_path / "model.json").read_text())["format"] == 4
    new = load_model(str(tmp_path))
    assert new.decision_function(ROWS).tolist() == scores.tolist()
    for of_new, other in zip(new.models, old.models, strict=True):
        assert (of_new.schema, of_new.about, of_new.reading) == (other.schema, other.about, other.reading)
    assert files_of_model(str(tmp_path)) == {path.name: path.read_bytes() for path in tmp_path.iterdir()}


def test_of_several_classes_too_the_row_whose_score_is_not_finite_is_named() -> None:
    with pytest.raises(InputError, match=r"row 1 \(counted from 0\)"):
        load_model(f"{OLD}/format-3").decision_function(np.array([[1.0, 1.0], [np.inf, 1.0]]))


def test_a_class_of_several_is_a_model(tmp_path: Path) -> None:
    several = load_model(f"{OLD}/format-3")
    write_model(str(tmp_path), several)
    for k in range(2):
        for url in (str(tmp_path), f"{OLD}/format-3"):
            of_class = load_model(f"{url}/class-0000{k}")
            np.testing.assert_array_equal(of_class.decision_function(ROWS), several.models[k].decision_function(ROWS))
    assert len({digest_of_model(str(tmp_path)), *(digest_of_model(f"{tmp_path}/class-0000{k}") for k in range(2))}) == 3
    with pytest.raises(InputError, match="has no class at position 2"):
        load_model(f"{tmp_path}/class-00002")
    with pytest.raises(InputError, match="a scorecard is for one: give one of them, such as"):
        load_two_classes(str(tmp_path), "a scorecard")

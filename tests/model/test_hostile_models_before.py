"""What a model on disk can say: each fault ends with one line, and never with scores."""

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.linear_models import save_model

from aucdist.data.dataset import Schema
from aucdist.data.preprocess import Preprocessor
from aucdist.data.sources import parse_source
from aucdist.errors import InputError
from aucdist.model import load_model
from aucdist.model.batch_scoring import costs_of_scoring
from aucdist.probability.links import IsotonicMap

NAMES = ("a", "b")
COEF = np.array([1.0, -2.0])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A sound model, with all that a model can have."""
    save_model(
        str(tmp_path), coef=COEF, intercept=0.5, schema=Schema(NAMES, "y", ("1",), ("0",), {}), about={"n": 1},
        preprocessor=Preprocessor((1,), "standard", np.zeros(2), np.ones(2), "mean", np.zeros(2)),
        probability=IsotonicMap(1.0, np.array([-1.0, 1.0]), np.array([0.0, 1.0])),
    )  # fmt: skip
    assert load_model(str(tmp_path)).decision_function(np.zeros((1, 2))).tolist() == [0.5]
    return tmp_path


def with_weights(folder: Path, data: bytes) -> None:
    (folder / "weights.npy").write_bytes(data)
    change(folder, lambda content: content["files"].update({"weights.npy": hashlib.sha256(data).hexdigest()}))


def change(folder: Path, edit: Any) -> None:
    content = json.loads((folder / "model.json").read_text())
    edit(content)
    (folder / "model.json").write_text(json.dumps(content))


def npy(array: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, array, allow_pickle=False)
    return out.getvalue()


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


ENDLESS = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000,), }\n"
WEIGHTS = {
    "nan": (npy(np.array([1.0, np.nan])), "weight 1 (counted from 0) is not finite"),
    "infinite": (npy(np.array([-np.inf, 1.0])), "weight 0 (counted from 0) is not finite"),
    "too few": (npy(np.ones(1)), "float64 of shape (2,); got float64 of shape (1,)"),
    "a matrix": (npy(np.ones((1, 2))), "float64 of shape (1, 2)"),
    "float32": (npy(np.ones(2, np.float32)), "float32 of shape (2,)"),
    "integers": (npy(np.ones(2, np.int64)), "int64 of shape (2,)"),
    "texts": (npy(np.array(["a", "b"])), "<U1 of shape (2,)"),
    "cut off": (npy(COEF)[:-1], "16 bytes of numbers; got 15"),
    "more behind them": (npy(COEF) + b"x", "16 bytes of numbers; got 17"),
    "an archive": (b"PK\x03\x04" + bytes(90), "model.json is damaged"),
    "no header": (b"\x93NUMPY\x01\x00", "model.json is damaged"),
    "a header that is no Python": (npy(COEF).replace(b"{", b"("), "model.json is damaged"),
    "a header that is deep": (b"\x93NUMPY\x01\x00\xff\xff" + b"(" * 65535 + bytes(16), "model.json is damaged"),
    "version 9": (b"\x93NUMPY\x09\x00" + npy(COEF)[8:], "model.json is damaged"),
    "endless": (
        b"\x93NUMPY\x01\x00" + len(ENDLESS).to_bytes(2, "little") + ENDLESS + bytes(80),
        "shape (1000000000000000,)",
    ),
}


@pytest.mark.parametrize("name", WEIGHTS)
def test_weights_that_are_none_are_refused(folder: Path, name: str) -> None:
    data, said = WEIGHTS[name]
    with_weights(folder, data)
    with pytest.raises(InputError) as caught:
        load_model(str(folder))
    assert said in str(caught.value)


def test_weights_that_are_pickled_are_not_read(folder: Path) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return (folder.joinpath("ran").write_text, ("the code of a model has run",))

    out = io.BytesIO()
    np.save(out, np.array([Evil()], dtype=object), allow_pickle=True)
    with_weights(folder, out.getvalue())
    with pytest.raises(InputError, match=r"weights\.npy must have float64 of shape \(2,\); got object of shape \(1,\)"):
        load_model(str(folder))
    assert not (folder / "ran").exists()


def of_preprocessor(**changes: Any) -> Any:
    return lambda content: content["preprocessor"].update(changes)


def of_class(**changes: Any) -> Any:
    return lambda content: content["classes"][0].update(changes)


def of_probability(**changes: Any) -> Any:
    return lambda content: content["classes"][0]["probability"].update(changes)


NOT_FOR_TWO = "the preprocessor is damaged: it was not made for 2 features"
NO_DOMAIN = {"kind": "link", "odds": 1.0, "link": {"name": "gev", "xi": -2.0}}
CONTENT = {
    "a later format": (lambda c: c.update(format=5), "model format 5; this aucdist reads up to 4"),
    "a format that is a text": (lambda c: c.update(format="x"), "`format` is not a whole number"),
    "no format": (lambda c: c.update(format=None), "not a model"),
    "an empty preprocessor": (lambda c: c.update(preprocessor={}), "damaged"),
    "an infinite intercept": (of_class(intercept=float("inf")), "Out of range float values"),
    "an intercept that is a text": (of_class(intercept="0"), "`classes.0.intercept`"),
    "no schema": (lambda c: c.pop("schema"), "`schema` must be given"),
    "a schema of numbers": (lambda c: c["schema"].update(feature_names=[1, 2]), "`schema.feature_names.0`"),
    "another number of features": (lambda c: c["schema"].update(feature_names=["a"]), "it was not made for 1 features"),
    "no class": (lambda c: c.update(classes=[]), "`classes`"),
    "two classes more": (
        lambda c: c.update(classes=3 * c["classes"]),
        "models, 3, is not the number of classes of",
    ),
    "a spread of 0": (of_class(spread=0.0), "`classes.0.spread`"),
    "a map that is no file of it": (of_class(features="digests.npy"), "digests.npy is not among its files"),
    "a map elsewhere": (of_class(features="../map.npz"), "is not the name of a file in its folder"),
    "an unknown key": (lambda c: c.update(more=1), "`more` must be left out"),
    "about as a list": (lambda c: c.update(about=[]), "`about`"),
    "a factor that is nan": (of_preprocessor(factor=[1.0, float("nan")]), "damaged"),
    "a factor that is too short": (of_preprocessor(factor=[1.0]), NOT_FOR_TWO),
    "a factor of texts": (of_preprocessor(factor=["1", "2"]), "`preprocessor.factor.0`"),
    "no factor": (of_preprocessor(factor=None), "its shift or factor is missing"),
    "a factor without a scale": (of_preprocessor(scale="none"), "its shift or factor is missing"),
    "log1p of another feature": (of_preprocessor(log1p=[2]), NOT_FOR_TWO),
    "log1p of feature -1": (of_preprocessor(log1p=[-1]), "`preprocessor.log1p.0`"),
    "nothing to fill in": (of_preprocessor(fill=None), "and its values to fill in contradict each other"),
    "an unknown scale": (of_preprocessor(scale="z"), "`preprocessor.scale` must be 'none', 'standard'"),
    "another kind of map": (of_probability(kind="x"), "`classes.0.probability` must be a mapping whose 'kind' is"),
    "a kind that is a list": (of_probability(kind=[1]), "`classes.0.probability`"),
    "a map without points": (
        of_probability(scores=[], probabilities=[]),
        "`classes.0.probability.isotonic`: it has 0 scores",
    ),
    "a map of unequal points": (of_probability(scores=[1.0]), "1 scores, but 2 probabilities"),
    "a map that falls": (of_probability(probabilities=[1.0, 0.0]), "must ascend"),
    "probabilities above 1": (of_probability(probabilities=[0.0, 2.0]), "probabilities be from 0 to 1"),
    "a rule of reading that is a number": (lambda c: c["reading"].update(missing_values=3), "`reading.missing_values`"),
    "an unknown rule for categories": (lambda c: c["reading"].update(unknown="x"), "`reading.unknown`"),
    "nan where anything may stand": (lambda c: c["about"].update(n=[1, np.nan]), "Out of range float values"),
    "a link without a domain": (of_class(probability=NO_DOMAIN), "damaged"),
    "a file elsewhere": (
        lambda c: c["files"].update({"../a.npy": "0" * 64}),
        "is not the name of a file in its folder",
    ),
    "odds of 0": (of_probability(odds=0.0), "greater than 0"),
    "odds that are a text": (of_probability(odds="1"), "`classes.0.probability.isotonic.odds`"),
}


@pytest.mark.parametrize("name", CONTENT)
def test_content_that_is_wrong_is_refused(folder: Path, name: str) -> None:
    edit, said = CONTENT[name]
    change(folder, edit)
    with pytest.raises(InputError) as caught:
        load_model(str(folder))
    assert said in str(caught.value)
    assert str(folder) in str(caught.value)


def test_one_altered_byte_is_noticed(folder: Path) -> None:
    weights = bytearray((folder / "weights.npy").read_bytes())
    weights[-1] ^= 1
    (folder / "weights.npy").write_bytes(weights)
    with pytest.raises(InputError, match="checksum"):
        load_model(str(folder))


@pytest.mark.parametrize("name", ["model.json", "weights.npy"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(InputError, match=rf"no model .*{name}"):
        load_model(str(folder))


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "null", "1", '"x"', nested(100_000), '{"format": ' + nested(100_000) + "}",
        '{"format": 1' + "0" * 5000 + "}",
        '{"format": 1, "weights": "../secret.npy", "weights_sha256": "0"}',
        '{"format": true}', '{"format": 1.0}', '{"format": -1}', "\udcff", "{\"format\": NaN}",
    ],
)  # fmt: skip
def test_json_that_is_no_model_is_refused(folder: Path, text: str) -> None:
    (folder / "model.json").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(InputError, match=r"model\.json"):
        load_model(str(folder))


@pytest.mark.parametrize("value", [1e300, np.nan, np.inf])
def test_rows_whose_score_is_not_finite_are_refused(folder: Path, value: float) -> None:
    change(folder, of_preprocessor(log1p=[], impute="refuse", fill=None, factor=[1e20, 1.0]))
    X = np.array([[0.0, 0.0], [value, 0.0]])
    with pytest.raises(InputError, match=r"row 1 \(counted from 0\)"):
        load_model(str(folder)).decision_function(X)


@pytest.mark.parametrize(
    "cost",
    [5, {}, {"false_positive": 1}, {"false_positive": 1, "miss": 2, "more": 3}, {"false_positive": 1, "miss": -2}],
)
def test_costs_that_are_none_are_refused(folder: Path, cost: Any) -> None:
    change(folder, lambda content: content["about"].update({"operating_point": {"cost": cost}}))
    source = parse_source({"source": "rows.csv", "format": "csv", "label": "y"}, "the source")
    with pytest.raises(InputError, match=r"cost must be a mapping|miss must be a number above 0 and finite; got -2"):
        costs_of_scoring(source, load_model(str(folder)))

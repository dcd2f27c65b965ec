"""Save and load models: weights as ``.npy``, feature maps as ``.npz``, everything else as JSON.

Loading does not run code from the files.

A model has a list of classes. Each class has weights that score it against the rest, and all classes share the features and
their encoding. For two classes, the list has one entry.
"""

import functools
import json
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import BaseModel, Field

from aucdist.data.dataset import Schema
from aucdist.data.formats.source_fields import ReaderOptions
from aucdist.data.labels import class_name
from aucdist.data.own_files import NO_MORE_KEYS, REPAIR, FileName, Sha256, npy_of, parse_checked, parse_npy
from aucdist.data.preprocess import Preprocessor
from aucdist.data.serialization import serialize
from aucdist.data.storage.files import exists, read_bytes, sha256_of, shown, write_bytes
from aucdist.errors import InputError, Json, error_text
from aucdist.model.linear_model import ClassWeights, LinearModel
from aucdist.model.scorecard import Scorecard, parse_card
from aucdist.probability.links import SavedMap
from aucdist.store import MODEL_FILE, resolve

if TYPE_CHECKING:
    from aucdist.maps.base import FittedMap

MODEL_FORMAT = 4
"""The format that is written. Earlier formats are read as well: 1 and 2 (with a feature map) have two classes."""
LIST_OF_FOLDERS = 3
"""The earlier format of several classes: a list of folders of formats 1 or 2."""
WEIGHTS, FEATURES = "weights.npy", "features.npz"
PROFILE, DIGESTS = "profile.json", "digests.npy"
"""Files about the training rows of the model of a run. `aucdist watch` and `aucdist promote` need them; scoring does
not."""
Spread = Annotated[float, Field(gt=0.0)]


def write_model(url: str, model: Any) -> None:
    """Write a model into a folder. It replaces a model that the folder has.

    Parameters
    ----------
    url : str
        The folder, a path or an fsspec URL. It is created if it does not exist.
    model : estimator or LinearModel
        A fitted estimator of aucdist, or what `load_model` or `as_model` returned.

    Raises
    ------
    InputError
        If it is neither, or the estimator is not fitted.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from aucdist import PairwiseHingeClassifier
    >>> from aucdist.model import write_model
    >>> fitted = PairwiseHingeClassifier().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_model(folder, fitted)
    ...     sorted(file.name for file in Path(folder).iterdir())
    ['model.json', 'weights.npy']
    """
    for name, data in model_content(as_model(model)).items():
        write_bytes(f"{url}/{name}", data)


def as_model(estimator: Any, label: str = "y") -> LinearModel:
    """Return a fitted estimator in the form of a saved model, which `write_model` writes and `aucdist.export` exports.

    Parameters
    ----------
    estimator : estimator of aucdist
        Fitted to a table, or to an array, whose features are then called ``x0``, ``x1``, ... A LinearModel is returned as it is.
    label : str, default="y"
        The name of the column of labels.

    Returns
    -------
    LinearModel
        It reads tables as the estimator does, and gives the same scores.

    Raises
    ------
    InputError
        If it is not an estimator of aucdist, or is not fitted.

    Examples
    --------
    >>> from aucdist import PairwiseHingeClassifier
    >>> from aucdist.model import as_model
    >>> model = as_model(PairwiseHingeClassifier().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]))
    >>> model.schema.feature_names, model.schema.positive
    (('x0',), ('1',))
    """
    from aucdist.estimators.base import BlockClassifier
    from aucdist.estimators.tables import LENIENT_CELLS, allows_missing, labels_of_features

    if isinstance(estimator, LinearModel):
        return estimator
    if not isinstance(estimator, BlockClassifier) or not hasattr(estimator, "classes_"):
        raise InputError(
            f"a fitted estimator of aucdist is needed, not {type(estimator).__name__}: call `fit`, or pass the end of a pipeline"
        )
    names, classes = labels_of_features(estimator), tuple(map(class_name, estimator.classes_))
    categories = vars(estimator).get("categories_", {})
    preprocessor = Preprocessor((), "none", None, None, impute="keep" if allows_missing(estimator) else "refuse")
    several = bool(estimator.has_several_classes)
    ends = (classes[:1], classes[1:]) if several else (classes[1:], classes[:1])
    topics = several and not estimator.label_sets_.exclusive
    schema = Schema(tuple(names), label, *ends, categories, classes=classes if several else (), topics=topics)
    about = [{"estimator": type(estimator).__name__}] * len(estimator.class_models)
    return LinearModel(weights_of(estimator, about), schema, preprocessor, LENIENT_CELLS)


def weights_of(estimator: Any, about: Sequence[Json]) -> tuple[ClassWeights, ...]:
    """Return the weights of each class of a fitted estimator.

    Parameters
    ----------
    estimator : estimator of aucdist
        A fitted one.
    about : sequence of dict
        What else is saved about each class.

    Returns
    -------
    tuple of ClassWeights
    """
    return tuple(
        ClassWeights(
            class_model.coef_[0], class_model.decision_intercept, content, getattr(class_model, "probability_", None),
            getattr(class_model, "feature_map_", None), spread,
        )
        for class_model, content, spread in zip(estimator.class_models, about, estimator.class_spreads.tolist(), strict=True)
    )  # fmt: skip


def model_content(model: LinearModel) -> dict[str, bytes]:
    """Return the content of the files of a model, by their names."""
    files, maps = dict[str, bytes](), dict[int, str]()
    for weights in model.weights:
        if weights.feature_map is not None and id(weights.feature_map) not in maps:
            name = FEATURES if not maps else f"features-{len(maps):05d}.npz"
            maps[id(weights.feature_map)], files[name] = name, serialize(weights.feature_map)
    files[WEIGHTS] = npy_of(np.concatenate([weights.coef for weights in model.weights], dtype=np.float64))
    common = {
        key: value
        for key, value in model.about.items()
        if all(key in weights.about and weights.about[key] == value for weights in model.weights)
    }
    content = {
        "format": MODEL_FORMAT,
        "files": {name: sha256_of(data) for name, data in files.items()},
        "schema": model.schema.to_json(),
        "preprocessor": model.preprocessor.to_json(),
        "reading": model.reading,
        "about": common,
        "classes": [
            {
                "name": name,
                "intercept": float(weights.intercept),
                "spread": float(weights.spread),
                "probability": None if weights.probability is None else weights.probability.to_json(),
                "features": maps.get(id(weights.feature_map)),
                "about": {key: value for key, value in weights.about.items() if key not in common},
            }
            for name, weights in zip(model.classes or ("",), model.weights, strict=True)
        ],
    }
    # the file that lists the others is written last
    return files | {MODEL_FILE: json.dumps(content, indent=2, allow_nan=False).encode()}


def load_model(url: str) -> LinearModel:
    """Read a model from a folder.

    Parameters
    ----------
    url : str
        The folder, the run folder that it is in, the ``.json`` file of a scorecard, a model store (for its current version), or
        ``store@3``: a path or an fsspec URL. ``class-00002`` below the folder of a model of several classes is the one
        at position 2 against the rest.

    Returns
    -------
    LinearModel
        It scores tables and arrays: see `LinearModel.decision_function`.

    Raises
    ------
    InputError
        If there is no model, if it is damaged (weights that are not finite, another number of weights than of features, ...), or
        if a newer version of aucdist wrote it.

    Examples
    --------
    >>> import tempfile
    >>> from aucdist import PairwiseHingeClassifier
    >>> from aucdist.model import as_model, load_model, write_model
    >>> fitted = PairwiseHingeClassifier().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_model(folder, as_model(fitted))
    ...     model = load_model(folder)
    >>> bool((model.decision_function([[0.5], [2.5]]) == fitted.decision_function([[0.5], [2.5]])).all())
    True
    """
    url = os.fspath(url)
    if is_card(url):
        return card_model(parse_card(read_bytes(url), shown(url)))
    folder, k = _split_class(url)
    where = shown(folder)
    try:
        content = _read_json(folder)
        if content["format"] != LIST_OF_FOLDERS and not exists(f"{folder}/{WEIGHTS}"):
            read_bytes(f"{folder}/{WEIGHTS}")  # raises an error that says why the folder cannot be read
    except InputError as e:
        if where.endswith((".yaml", ".yml")):
            raise InputError(
                f"{where} is a configuration and not a model: train it by `aucdist train {where}`, and name the run folder"
            ) from None
        raise InputError(
            f"no model can be read from {where}: {e}. Name a run folder, a folder with {MODEL_FILE} and {WEIGHTS}, or a model "
            "store"
        ) from None
    if content["format"] > MODEL_FORMAT:
        raise InputError(
            f"{where} has model format {content['format']}; this aucdist reads up to {MODEL_FORMAT}. "
            "Install a newer version of aucdist"
        )
    model = _read_folders(folder, content) if content["format"] == LIST_OF_FOLDERS else _read_model(folder, content)
    if k is None:
        return model
    if k >= len(model.classes):
        raise InputError(
            f"{where} has no class at position {k}: correct the number behind `class-`, which counts classes from 0"
        )
    return model.of_class(k)


def load_two_classes(url: str, purpose: str) -> LinearModel:
    """Read a model of two classes, or one class of a model of several classes.

    Parameters
    ----------
    url : str
        As for `load_model`. ``class-00002`` below a model of several classes names a class.
    purpose : str
        What needs a model of two classes. The error names it.

    Returns
    -------
    LinearModel

    Raises
    ------
    InputError
        As `load_model`, or if the model has several classes and `url` does not name one.
    """
    model = load_model(url)
    if model.classes:
        raise InputError(
            f"{shown(url)} has several classes, and {purpose} is for one: give one of them, such as {shown(url)}/class-00000"
        )
    return model


def model_folder(url: str) -> str:
    """Return the folder of a model.

    The file of a scorecard is returned unchanged.

    Parameters
    ----------
    url : str
        The folder of the model, its run folder, or a model store with or without ``@`` and the number of a version.

    Returns
    -------
    str
    """
    if is_card(url):
        return url
    url = resolve(url.rstrip("/"))
    run_model = f"{url}/model"
    return run_model if not exists(f"{url}/{MODEL_FILE}") and exists(f"{run_model}/{MODEL_FILE}") else url


def _split_class(url: str) -> tuple[str, int | None]:
    """Return the folder of a model, and the position of the class that its URL names, or None if it names no class."""
    folder, _, last = url.rstrip("/").rpartition("/")
    if re.fullmatch(r"class-\d{5}", last) and not exists(f"{url}/{MODEL_FILE}"):
        return model_folder(folder), int(last.removeprefix("class-"))
    return model_folder(url), None


def digest_of_model(url: str) -> str:
    """Return the SHA-256 of the file that lists the digests of a model's files. A copy of the model has the same digest."""
    if is_card(url):
        return sha256_of(read_bytes(url))
    folder, k = _split_class(url)
    data = read_bytes(f"{folder}/{MODEL_FILE}")
    return sha256_of(data if k is None else data + str(k).encode())


def files_of_model(url: str) -> dict[str, bytes]:
    """Return the content of the files of a model by their names, after checking them.

    The files of a single class, and those of an older format, are written anew in the format of today.

    Parameters
    ----------
    url : str
        As for `load_model`.

    Returns
    -------
    dict of str to bytes

    Raises
    ------
    InputError
        As `load_model`.
    """
    model = load_model(url)
    folder, k = _split_class(url)
    content = _read_json(folder)
    if k is not None or content["format"] != MODEL_FORMAT:
        return model_content(model)
    return {name: read_bytes(f"{folder}/{name}") for name in (*content["files"], MODEL_FILE)}


def _read_json(folder: str) -> Json:
    """Return the JSON of a model, whose format must be a number from 1 on."""
    where = f"{shown(folder)}/{MODEL_FILE}"
    content = parse_checked(read_bytes(f"{folder}/{MODEL_FILE}"), Json, where)
    version = content.get("format") or 0
    if type(version) is not int:
        raise InputError(f"{where} is damaged: `format` is not a whole number. {REPAIR}")
    if version < 1:
        raise InputError(
            f"{where} is not a model of aucdist: name a folder that `aucdist train` or `write_model` wrote"
        )
    return content


def _read_model(url: str, content: Json) -> LinearModel:
    where = f"{shown(url)}/{MODEL_FILE}"
    if content["format"] < MODEL_FORMAT:  # formats 1 and 2 had models of two classes only
        digests = {WEIGHTS: content.get("weights_sha256"), FEATURES: content.get("features_sha256")}
        known = {name: digest for name, digest in digests.items() if digest}
        only: Json = {key: content[key] for key in ("intercept", "probability") if key in content}
        only |= {"name": "", "features": FEATURES if FEATURES in known else None}
        kept = {key: v for key, v in content.items() if key not in (*only, "weights_sha256", "features_sha256")}
        content = {"reading": {}} | kept | {"files": known, "classes": [only]}
    checked = parse_checked(json.dumps(content).encode(), _ModelFile, where)
    schema, entries = checked.schema_, checked.classes
    n_features = len(schema.feature_names)

    @functools.cache
    def file(name: str) -> bytes:
        """Return the content of a file of the model after comparing its checksum. Each file is read once for all classes."""
        if name not in checked.files:
            raise InputError(f"{name} is not among its files")
        data = read_bytes(f"{url}/{name}")
        if sha256_of(data) != checked.files[name]:
            raise InputError(f"the checksum of {name} is not the one in {MODEL_FILE}")
        return data

    @functools.cache
    def feature_map(name: str) -> "FittedMap":
        """Return the feature map in a file. Each file is read once for all classes."""
        from aucdist.maps import map_from_bytes  # loads scikit-learn

        fitted = map_from_bytes(file(name))
        if fitted.n_features_in != n_features:
            raise InputError(f"{FEATURES} maps {fitted.n_features_in} features, and the model has {n_features}")
        return fitted

    try:
        if (len(schema.classes) or 1) != len(entries):
            raise InputError(f"its number of models, {len(entries)}, is not the number of classes of its schema")
        checked.preprocessor.check(n_features)
        maps = [None if entry.features is None else feature_map(entry.features) for entry in entries]
        ends = np.cumsum([n_features if fitted is None else fitted.n_features_out for fitted in maps])
        coefs = parse_npy(file(WEIGHTS), np.float64, int(ends[-1]), WEIGHTS)
        if not np.isfinite(coefs).all():
            raise InputError(f"{WEIGHTS}: weight {int(np.argmin(np.isfinite(coefs)))} (counted from 0) is not finite")
        weights = tuple(
            ClassWeights(coef, entry.intercept, checked.about | entry.about, entry.probability, fitted, entry.spread)
            for entry, coef, fitted in zip(entries, np.split(coefs, ends[:-1]), maps, strict=True)
        )
    except (KeyError, TypeError, ValueError, AttributeError) as e:
        raise InputError(f"{where} is damaged: {error_text(e)}. {REPAIR}") from None
    return LinearModel(weights, schema, checked.preprocessor, checked.reading)


def _read_folders(url: str, content: Json) -> LinearModel:
    """Read a model of several classes of format 3, which is a list of folders with a model of two classes each."""
    where = f"{shown(url)}/{MODEL_FILE}"
    listed, models = parse_checked(json.dumps(content).encode(), _ListOfFolders, where), []
    for member in listed.classes:
        folder = f"{url}/{member.folder}"
        if digest_of_model(folder) != member.about_sha256:
            raise InputError(
                f"{shown(folder)}/{MODEL_FILE} is damaged: its checksum is not the one in {where}. {REPAIR}"
            )
        models.append(load_two_classes(folder, "each of its folders"))
    if len({model.schema.feature_names for model in models}) > 1:
        raise InputError(f"{where} is damaged: its classes have different features. {REPAIR}")
    weights = tuple(replace(model.weights[0], spread=m.spread) for m, model in zip(listed.classes, models, strict=True))
    first = models[0]
    schema = replace(first.schema, classes=tuple(m.name for m in listed.classes), topics=listed.topics)
    return replace(first, weights=weights, schema=schema)


def is_card(url: str) -> bool:
    """Return whether the name of a model is that of the file of a scorecard."""
    return url.endswith(".json")


def card_model(card: Scorecard) -> LinearModel:
    """Return a scorecard as a model. Its scores are the points minus the cutoff."""
    weights = ClassWeights(card.weights(), float(card.base - card.cutoff), card.about, card.probability, card.bins())
    return LinearModel((weights,), card.schema, card.preprocessor, card.reading, card.cutoff)


# ---- the JSON of a model -------------------------------------------------------------------------------------------------------


class _Class(BaseModel):
    model_config = NO_MORE_KEYS

    name: str
    intercept: float
    spread: Spread = 1.0
    probability: SavedMap | None = None
    features: FileName | None
    about: Json = Field(default_factory=dict)


class _ModelFile(BaseModel):
    """The JSON of a model."""

    model_config = NO_MORE_KEYS

    format: int
    files: dict[FileName, Sha256]
    schema_: Schema = Field(alias="schema")
    preprocessor: Preprocessor
    reading: ReaderOptions
    about: Json
    classes: list[_Class] = Field(min_length=1)


class _Member(BaseModel):
    model_config = NO_MORE_KEYS

    name: str
    folder: FileName
    about_sha256: Sha256
    spread: Spread


class _ListOfFolders(BaseModel):
    """The JSON of a model of several classes of format 3."""

    model_config = NO_MORE_KEYS

    format: int
    topics: bool
    classes: list[_Member] = Field(min_length=1)

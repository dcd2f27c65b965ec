"""Whether a model is better than the one in use: a paired test on rows that neither was trained on."""

import math
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import numpy as np

from aucdist.data.sources import Source
from aucdist.data.storage.files import exists, shown
from aucdist.data.storage.urls import Location
from aucdist.drift.performance import Z
from aucdist.errors import InputError
from aucdist.held_out import HeldOutRows, load_with_seen, refuse_trained_on, same_classes, score_labelled
from aucdist.linear_model import LinearModel
from aucdist.metrics.compare import (
    Difference,
    delong_test,
    holm,
    macro_auc_test,
    measured_classes,
    partial_delong_test,
)
from aucdist.model import load_model
from flows.compare.run import Run, read_run
from flows.config.base import Cli, Strict
from flows.config.data import UnlabelledRef, batch_name, source_of
from flows.json_values import jsonable
from flows.run_folder.folder import data_of, model_folder
from flows.run_folder.scores import SCORES, max_fpr_of, members_of

LEVEL = 0.95
"""The level of the intervals. The two ends leave an equal model a chance of 2.5 % to be promoted by `better`."""
IN_USE = "the version in use"


class PromoteConfig(Strict):
    """A run whose model is to be put into use."""

    run: Annotated[Location, Cli(place=1)]
    """A run folder, a path or URL"""
    store: Annotated[Location, Cli(place=2, metavar="URL")]
    """The model store, a folder or URL, made if need be; or models:/NAME in MLflow"""
    condition: Annotated[str, Cli(flag="--if", metavar="better|not-worse|always")] = "always"
    """When to replace the version in use"""
    margin: Annotated[float, Cli()] = 0.0
    """The difference that counts: better by more, or not worse by as much"""
    data: Annotated[UnlabelledRef | None, Cli(flag="--data", data=True)] = None
    """Labelled rows for the test, which neither model has seen; by default the run's"""
    keep: Annotated[int | None, Cli(metavar="N")] = None
    """Remove old versions until N are left; by default none is removed"""


@dataclass(frozen=True, eq=False)
class Pair:
    """The scores of the same rows by two models.

    `rows`: what they are, in words.
    `y`, `new` and `old`, of shape (n_samples,): labels, the run's scores, and those of the version in use. For several
        classes ``(n_samples, n_classes)``: which of them a row has, bool, and a score for each.
    """

    rows: str
    y: np.ndarray
    new: np.ndarray
    old: np.ndarray


def decide(config: PromoteConfig, run: str, in_use: str) -> dict[str, Any]:
    """Test the model of a run against the version in use.

    `run` and `in_use`: the run folder, and the folder of the version.
    Returns the difference, run minus version in use, with its interval; ``holds``; ``classes`` of several; in types of JSON.
    Raises InputError if the rows cannot be read, or a model was trained on some of them.
    """
    new, old = load_model(model_folder(run)), load_model(in_use)
    if not same_classes([new, old]):
        raise InputError(
            f"{shown(run)} and {IN_USE} have different classes, so their scores cannot be compared: give --if always"
        )
    if config.data is None:
        pair = _on_test_rows(run, in_use, new)
    else:
        name, source = batch_name(config.data), source_of(config.data)
        before, rows = _scored_by(in_use, IN_USE, source, name), _scored_by(model_folder(run), shown(run), source, name)
        pair = Pair(name, rows.y, rows.scores, before.scores)
    if new.classes:
        test, about = _test_of_classes(pair, new.classes)
    else:
        about = {"measure": "auc", "n_pos": int((pair.y == 1).sum())}
        if (max_fpr := max_fpr_of(new, run)) is None:
            test = delong_test(pair.y, pair.new, pair.old, LEVEL)
        else:
            about |= {"measure": "partial_auc", "max_fpr": max_fpr}
            test = partial_delong_test(pair.y, pair.new, pair.old, max_fpr, LEVEL)
    condition, margin = config.condition, config.margin
    bound = margin if condition == "better" else -margin
    calibration = _calibration(pair, new, old)
    worse = calibration is not None and calibration["high"] < -margin
    decision: dict[str, Any] = jsonable(
        asdict(test)
        | about
        | {"condition": condition, "margin": margin, "rows": len(pair.y), "of": pair.rows, "calibration": calibration}
        | {"holds": test.low > bound and not worse}
    )
    return decision


def _test_of_classes(pair: Pair, names: tuple[str, ...]) -> tuple[Difference, dict[str, Any]]:
    """Return the paired test of the mean AUC, and that of each class, with its p-value corrected by Holm's method.

    The mean is over the classes that have two rows and two others.
    """
    measured = measured_classes(pair.y)
    if not len(measured):
        raise InputError(
            f"{pair.rows}: no class has two rows and two rows of other classes, so nothing can be measured"
        )
    tests = [delong_test(np.where(pair.y[:, k], 1, -1), pair.new[:, k], pair.old[:, k], LEVEL) for k in measured]
    classes = [
        {"name": names[k], "n_pos": int(pair.y[:, k].sum()), **asdict(test), "p_holm": p}
        for k, test, p in zip(measured, tests, holm([test.p_value for test in tests]), strict=True)
    ]
    mean = macro_auc_test(pair.y[:, measured], pair.new[:, measured], pair.old[:, measured], LEVEL)
    return mean, {"measure": "macro_auc", "classes": classes}


def _calibration(pair: Pair, new: LinearModel, old: LinearModel) -> dict[str, Any] | None:
    """Return the difference of the Brier losses, version in use minus run, with its interval; None without probabilities.

    For several classes the loss of a row is the mean over them.
    """
    losses = []
    for model, scores in ((new, pair.new), (old, pair.old)):
        if (probability := model.probabilities(scores)) is None:
            return None
        losses.append(((probability - (pair.y > 0)) ** 2).reshape(len(scores), -1).mean(axis=1))
    of_new, of_old = losses
    better = of_old - of_new
    value, reach = float(better.mean()), Z * float(better.std(ddof=1)) / math.sqrt(len(better))
    of_each = [float(of_new.mean()), float(of_old.mean())]
    return {"measure": "brier_loss", "value": value, "low": value - reach, "high": value + reach, "of_each": of_each}


def _on_test_rows(run: str, in_use: str, model: LinearModel) -> Pair:
    """Return the scores of the run's test rows.

    Raises InputError if the version in use was trained on some of them, or if they have to be read again and have changed.
    """

    def labels_and_scores(of: Run) -> tuple[np.ndarray, np.ndarray]:
        if not model.classes:
            return of.y, of.score()
        members = members_of(of.table["label"].to_numpy(), model.classes, topics=model.topics)
        return members, np.column_stack([of.score(name) for name in model.classes])

    new = read_run(run)
    y, scores = labels_and_scores(new)
    if exists(f"{in_use}/{SCORES}"):
        old = read_run(in_use)
        if new.about["data"]["fingerprint"] == old.about["data"]["fingerprint"]:
            y_before, scores_before = labels_and_scores(old)
            if np.array_equal(new.row_id, old.row_id) and np.array_equal(y, y_before):
                return Pair("the test rows of both runs", y, scores, scores_before)
            if in_training := int(np.count_nonzero(~np.isin(new.row_id, old.row_id))):
                raise InputError(
                    f"{IN_USE} was trained on {in_training:,} of the {len(y):,} test rows of {shown(run)}: the same data was "
                    "split in another way. Give both the same `data.test`, name rows that neither model has seen by --data, or "
                    "give --if always"
                )
    data = data_of(run)
    assert data.test is not None  # there are test scores
    apart, name = data.test.is_apart, f"the test rows of {shown(run)}"
    again = _scored_by(in_use, IN_USE, source_of(data.test if apart else data), name, None if apart else new.row_id)
    if not (np.array_equal(again.row_id, new.row_id) and np.array_equal(again.y, y)):
        raise InputError(f"{name} cannot be read again as they were: its data has changed since. Name rows by --data")
    return Pair("the test rows of the run", y, scores, again.scores)


def _scored_by(folder: str, who: str, source: Source, data: str, row_ids: np.ndarray | None = None) -> HeldOutRows:
    """Return the scores of the rows of a source by a saved model that was not trained on them."""
    model, (profile, seen) = load_with_seen(folder)
    rows = score_labelled(model, source, seen, row_ids, name=data)
    refuse_trained_on(rows, profile, who, data)
    return rows

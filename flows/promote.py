"""The command `promote`: compare the model of a run with the version in use, and replace this version.

The test is paired, on rows that neither model was trained on. The store is a folder or a registered model of MLflow.
"""

import math
from dataclasses import asdict
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy import ndarray

from aucdist.data.own_files import jsonable
from aucdist.data.sources import Source
from aucdist.data.storage.files import check_not_link, exists, read_bytes, shown
from aucdist.data.storage.urls import Location
from aucdist.drift.batch import Z_95, more_than
from aucdist.errors import InputError, Json
from aucdist.metrics import average_precision_difference
from aucdist.metrics.compare import Difference, auc_test, holm, macro_auc_test, measured_classes, partial_auc_test
from aucdist.model.files import DIGESTS, PROFILE, files_of_model, load_model, model_folder
from aucdist.model.held_out import HeldOutRows, load_with_seen, score_labelled
from aucdist.model.linear_model import LinearModel
from aucdist.store import check_name, keep_decision, promote, read_store, remove_old_versions
from flows.compare import Run, read_run
from flows.config.data import UnlabelledRef, batch_name, source_of
from flows.config.loading import BelowOne, Cli, CountOption, FolderArgument, Strict
from flows.mlflow_registry import MODELS_SCHEME, promote_to_mlflow, registered_model
from flows.model_store import decision_svg
from flows.run_folder.folder import (
    METRICS,
    SCORES,
    THRESHOLD_ROWS,
    data_config,
    max_fpr_of,
    members_of,
    read_metrics,
    score_columns,
)

NOT_WORSE_BY = 0.005
"""The default margin of `not-worse`. With a margin of 0 it would be the same as `better`."""
IN_USE = "the version in use"
SURELY = 0.001
"""The p-value below which chance repetitions of rows cannot explain how many of the test rows the model has seen."""


class PromoteConfig(Strict):
    """A run whose model is to be put into use."""

    run: FolderArgument
    """A run folder: a path or a URL."""
    store: Annotated[Location, Cli(position=2, metavar="STORE")]
    """The model store: a folder or URL, which is created if it does not exist; or models:/NAME in MLflow."""
    condition: Annotated[
        Literal["better", "not-worse", "always"], Cli(flag="--if", metavar="better|not-worse|always")
    ] = "always"
    """When to replace the version in use: always, if the new model is significantly better, or if it is not worse by
    more than --margin."""
    margin: BelowOne = None
    """The smallest difference that counts. Without it, `better` uses 0, and `not-worse` 0.005."""
    metric: Literal["average_precision"] | None = None
    """The metric to compare: average_precision. By default the AUC, or the partial AUC that the run was trained for."""
    data: Annotated[UnlabelledRef | None, Cli(flag="--data", data=True)] = None
    """Labelled rows for the test, which neither model has seen. By default they are the test rows of the run."""
    keep: CountOption = None
    """Remove the oldest versions until N are left. By default none is removed."""

    def _check(self) -> None:
        for option, value in (("a margin", self.margin), ("a metric", self.metric), ("--data", self.data)):
            if value and self.condition == "always":
                raise InputError(f"{option} has no effect with --if always: give --if better or --if not-worse")


class PairedScores(NamedTuple):
    """The scores of the same rows by two models.

    Attributes
    ----------
    rows : str
        A description of the rows.
    y, new, old : ndarray of shape (n_samples,)
        The labels, the scores of the run, and those of the version in use. For several classes, they have the shape
        (n_samples, n_classes): `y` says which classes a row has, and the scores have a column for each class.
    """

    rows: str
    y: ndarray
    new: ndarray
    old: ndarray


def decide(config: PromoteConfig, run: str, in_use: str) -> Json:
    """Test the model of a run against the version in use.

    The intervals have a confidence of 95 %, so `better` promotes an equally good model with a probability of 2.5 %.

    Parameters
    ----------
    config : PromoteConfig
        The configuration.
    run, in_use : str
        The run folder, and the folder of the version.

    Returns
    -------
    dict
        The difference (run minus version in use) with its interval, ``holds``, and ``classes`` for several classes, as JSON
        values.

    Raises
    ------
    InputError
        If the rows cannot be read, or a model was trained on some of them.
    """
    new, old = load_model(run), load_model(in_use)
    # A label must have the same meaning for both models.
    meanings = [(s.topics, s.classes or (sorted(s.positive), sorted(s.negative))) for s in (new.schema, old.schema)]
    if meanings[0] != meanings[1]:
        raise InputError(
            f"{shown(run)} and {IN_USE} have different classes: train with the same ones. --if always replaces it without a test"
        )
    if config.data is None:
        pair = _on_test_rows(run, in_use, new)
    else:
        name, source = batch_name(config.data), source_of(config.data)
        before, rows = _scored_by(in_use, IN_USE, source, name), _scored_by(run, shown(run), source, name)
        pair = PairedScores(name, rows.y, rows.scores, before.scores)
    test, about = _test_ranking(pair, new, run, config.metric)
    new_probabilities, old_probabilities = new.probabilities(pair.new), old.probabilities(pair.old)
    calibration: Json | None = None  # the improvement of the Brier score, which needs probabilities of both models
    if new_probabilities is not None and old_probabilities is not None:
        # The Brier score of each row. For several classes, it is the mean over the classes.
        new_losses, old_losses = (
            ((probability - (pair.y > 0)) ** 2).reshape(len(pair.y), -1).mean(axis=1)
            for probability in (new_probabilities, old_probabilities)
        )
        better = old_losses - new_losses
        value, reach = float(better.mean()), Z_95 * float(better.std(ddof=1)) / math.sqrt(len(better))
        calibration = {
            "metric": "brier_loss", "value": value, "low": value - reach, "high": value + reach,
            "of_each": [float(new_losses.mean()), float(old_losses.mean())],
        }  # fmt: skip
    condition, margin = config.condition, config.margin
    if margin is None:
        margin = NOT_WORSE_BY if condition == "not-worse" else 0.0
    bound = margin if condition == "better" else -margin
    worse = calibration is not None and calibration["high"] < -(config.margin or 0.0)
    return jsonable(
        asdict(test)
        | about
        | {
            "condition": condition,
            "margin": margin,
            "rows": len(pair.y),
            "of": pair.rows,
            "calibration": calibration,
            "holds": test.low > bound and not worse,
        }
    )


def _test_ranking(pair: PairedScores, new: LinearModel, run: str, metric: str | None) -> tuple[Difference, Json]:
    """Test the AUC, the partial AUC, the average precision or the macro AUC. Return the difference and facts about the metric."""
    if not new.classes:
        n_pos, max_fpr = int((pair.y == 1).sum()), max_fpr_of(new, run)
        if metric is not None or max_fpr is None:
            compare = auc_test if metric is None else average_precision_difference
            return compare(*pair[1:]), {"metric": metric or "auc", "n_pos": n_pos}
        test = partial_auc_test(*pair[1:], max_fpr)
        return test, {"metric": "partial_auc", "n_pos": n_pos, "max_fpr": max_fpr}
    if metric is not None:
        raise InputError("models of several classes are compared by the mean of their AUCs: leave `metric` out")
    measured = measured_classes(pair.y)
    if not len(measured):
        raise InputError(
            f"{pair.rows}: no class has at least two rows and at least two rows outside it, so no AUC can be computed: "
            "name more rows with --data"
        )
    tests = [auc_test(np.where(pair.y[:, k], 1, -1), pair.new[:, k], pair.old[:, k]) for k in measured]
    classes = [
        {"name": new.classes[k], "n_pos": int(pair.y[:, k].sum()), **asdict(class_test), "p_holm": p}
        for k, class_test, p in zip(measured, tests, holm([class_test.p_value for class_test in tests]), strict=True)
    ]
    test = macro_auc_test(pair.y[:, measured], pair.new[:, measured], pair.old[:, measured])
    return test, {"metric": "macro_auc", "classes": classes}


def _on_test_rows(run: str, in_use: str, model: LinearModel) -> PairedScores:
    """Return the scores of the run's test rows by both models.

    Raises
    ------
    InputError
        If the version in use was trained on some of them, or if they have to be read again and have changed.
    """

    def labels_and_scores(scored: Run) -> tuple[ndarray, ndarray]:
        """Return the labels of a run's test rows and their scores."""
        if not model.classes:
            return scored.y, scored.score()
        return (
            members_of(scored.table["label"].to_numpy(), model.classes, topics=model.topics),
            scored.table[score_columns(model.classes)].to_numpy(),
        )

    new = read_run(run)
    y, scores = labels_and_scores(new)
    if exists(f"{in_use}/{SCORES}"):
        old = read_run(in_use)
        if new.about["data"]["fingerprint"] == old.about["data"]["fingerprint"]:
            old_y, old_scores = labels_and_scores(old)
            if np.array_equal(new.row_id, old.row_id) and np.array_equal(y, old_y):
                return PairedScores("the test rows of both runs", y, scores, old_scores)
            if in_training := int(np.count_nonzero(~np.isin(new.row_id, old.row_id))):
                raise InputError(
                    f"{IN_USE} was trained on {in_training:,} of the {len(y):,} test rows of {shown(run)}: the same data was "
                    "split in another way. Give both the same `data.test`, name rows that neither model has seen with --data, or "
                    "give --if always"
                )
    data, name = data_config(run), f"the test rows of {shown(run)}"
    test_source = data.test_source
    rescored = _scored_by(in_use, IN_USE, test_source or source_of(data), name, None if test_source else new.row_id)
    if not (np.array_equal(rescored.row_id, new.row_id) and np.array_equal(rescored.y, y)):
        raise InputError(
            f"{name} cannot be read again, because its data have changed since the run. Name rows with --data"
        )
    return PairedScores("the test rows of the run", y, scores, rescored.scores)


def _scored_by(folder: str, subject: str, source: Source, data: str, row_ids: ndarray | None = None) -> HeldOutRows:
    """Return the scores of the rows of a source by a saved model.

    Parameters
    ----------
    folder : str
        The folder of the model.
    subject : str
        The name of the model in errors.
    source : Source
        The source of the rows.
    data : str
        The name of the rows in errors.
    row_ids : ndarray, optional
        The ids of the rows to score. By default all rows are scored.

    Raises
    ------
    InputError
        If the model was trained on some of the rows, beyond those that are equal by chance. The test rows of the model's
        own run, which it was not trained on, show how many rows are equal by chance. If the run had no test rows, no row
        may be among the training rows.
    """
    model, (profile, seen) = load_with_seen(folder)
    rows = score_labelled(model, source, seen, row_ids, name=data)
    by_chance = profile.test_checked and (
        more_than(rows.known, rows.checked, profile.test_known, profile.test_checked) >= SURELY
    )
    if rows.known and not by_chance:
        n = len(rows.row_id)
        number = f"{'' if rows.checked == n else 'about '}{round(rows.known / rows.checked * n):,}"
        raise InputError(
            f"{subject} was trained on {number} of the {n:,} rows of {data}: a test on these rows would favour it. Name rows "
            "that neither model has seen with --data, or give --if always"
        )
    return rows


def promote_run(config: PromoteConfig) -> Json:
    """Promote the model of a run if the condition holds.

    ``better`` holds if the interval of the difference lies above the margin. ``not-worse`` holds if it lies above minus the
    margin. The default margin is 0 for ``better`` and `NOT_WORSE_BY` for ``not-worse``.

    Returns
    -------
    dict
        What ``aucdist promote --json`` prints. For a store in MLflow, ``mlflow`` has the address of the server without
        password, and the ID of the run.

    Raises
    ------
    InputError
        If there is no such run, an argument is wrong, a model was trained on rows of the test, another promotion was made
        at the same moment, or MLflow is needed and not installed.
    RunError
        If MLflow's server cannot be reached, or refuses.
    """
    run = config.run.rstrip("/")
    if config.store.startswith(MODELS_SCHEME):
        if config.keep:
            raise InputError("--keep is for a folder or bucket: MLflow keeps the versions of a registered model")
        # A wrong URL raises an error here, before anything is read.
        target = registered_model(config.store)
        return _warnings_of(run) | promote_to_mlflow(
            target, run, _version_of(run), config.condition, partial(decide, config, run)
        )
    check_name(config.store)
    # Read before the decision, so that the promotion fails if the store changes meanwhile.
    store = read_store(config.store)
    for change in store.versions.values() if config.keep else ():
        check_not_link(store.folder_of(change))  # before anything is promoted
    content, current, condition = _version_of(run), store.current, config.condition
    result = _warnings_of(run) | {"store": shown(store.url), "run": shown(run), "condition": condition, "removed": []}
    decision: Any = None
    if condition != "always" and current:
        decision = decide(config, run, store.folder_of(current)) | {"version": current.version}
        picture = decision_svg(decision, f"{shown(run).rpartition('/')[2]} against version {current.version}")
        result["picture"] = shown(keep_decision(store, decision | {"run": shown(run)}, picture))
        if not decision["holds"]:
            return result | {"promoted": False, "version": current.version, "replaced": None, "decision": decision}
    change = promote(store, content, {"run": shown(run), "condition": condition, "decision": decision})
    if config.keep:
        result["removed"] = remove_old_versions(read_store(store.url), config.keep)
    return result | {"promoted": True, "version": change.version, "replaced": change.replaced, "decision": decision}


def _warnings_of(run: str) -> Json:
    return {"warnings": read_metrics(run).get("warnings", []) if exists(f"{run}/{METRICS}") else []}


def _version_of(run: str) -> dict[str, bytes]:
    """Return the files of a version by name: the model of a run, its profile, its metrics and its test scores."""
    folder = model_folder(run)
    optional = {PROFILE: folder, DIGESTS: folder, METRICS: run, SCORES: run, THRESHOLD_ROWS: run}
    return files_of_model(folder) | {
        name: read_bytes(f"{place}/{name}") for name, place in optional.items() if exists(f"{place}/{name}")
    }

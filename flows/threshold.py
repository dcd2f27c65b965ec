"""The command `threshold`: change the threshold of a trained model without a fit.

The result is a new run folder or a new version of the store.
"""

import os
from dataclasses import replace
from pathlib import Path

import pandas as pd

from aucdist.data.own_files import json_text
from aucdist.data.storage.files import exists, read_bytes, shown, write_bytes
from aucdist.drift.profile import Profile
from aucdist.errors import InputError, Json
from aucdist.estimators.scores import without_intercept
from aucdist.model.files import DIGESTS, PROFILE, load_two_classes, model_content, model_folder
from aucdist.model.linear_model import LinearModel
from aucdist.report.text import point_rows, render_template, warning_texts
from aucdist.store import promote, read_version
from flows.config.loading import FolderArgument, UrlOption, yaml_text
from flows.config.model import OperatingPointConfig
from flows.run_folder.folder import (
    CONFIG,
    DECISION,
    METRICS,
    SCORES,
    THRESHOLD_ROWS,
    configuration_of,
    read_metrics,
    read_scores,
    read_threshold_rows,
    run_folder,
    table_counts,
    timestamped,
)
from flows.run_folder.results import confusion_details, point_of, threshold_by, threshold_origin
from flows.run_folder.run_warnings import EQUAL_SCORES, tied_text

HISTORY = "history.parquet"
NOT_MOVED = (
    "For `fpr`, `alerts` and `recall`, a training run moves its threshold past such scores. This command does not, because a run "
    "keeps only the out-of-fold scores. To move it, train again with this `operating_point`."
)


class ThresholdConfig(OperatingPointConfig):
    """A trained model, and what its threshold is to meet."""

    model: FolderArgument
    """A run folder, a model store, or a version in a store, such as store@3: a folder or URL."""
    output: UrlOption = None
    """The folder or URL below which the new run folder is made. By default it is made next to the run."""


def change_threshold(config: ThresholdConfig) -> Json:
    """Set another threshold, and write a new run folder or a new version of the store. The old one is not changed.

    Raises
    ------
    InputError
        If there is no such run, no threshold meets the requirement, or the rows cannot guarantee it.
    """
    store, change = read_version(config.model)
    if change is not None and config.output is not None:
        raise InputError("--output is for a run folder: the new threshold of a model store is a version of the store")
    run = store.url if change is None else store.folder_of(change)
    about = read_metrics(run)
    if "classes" in about:
        raise InputError(
            f"{shown(run)} has several classes: set their thresholds with `operating_point` when they are trained"
        )
    folder = model_folder(run)
    model = load_two_classes(folder, "another threshold")
    test = read_scores(run) if exists(f"{run}/{SCORES}") else None
    cut, shift, tied, changed = _decide(config, run, about, model, test)
    about.pop("decisions", None)  # those of the default threshold
    model = model.with_weights(
        intercept=0.0 - cut,
        about=model.about | {"operating_point": config.options, "warnings": changed.get("warnings", [])},
        probability=None if model.probability is None else model.probability.shifted(shift),
    )
    files = model_content(model)
    if exists(kept := f"{folder}/{PROFILE}"):  # the scores of the profile are now lower by `shift`
        profile = Profile.from_bytes(read_bytes(kept), shown(kept))
        if profile.score is not None:
            profile = replace(
                profile, score=replace(profile.score, edges=tuple(edge - shift for edge in profile.score.edges))
            )
        files |= {PROFILE: profile.to_bytes(), DIGESTS: read_bytes(f"{folder}/{DIGESTS}")}
    others = {name: read_bytes(f"{run}/{name}") for name in (THRESHOLD_ROWS, HISTORY) if exists(f"{run}/{name}")}
    if test is not None:
        others[SCORES] = test.assign(score=test["score"] - shift).to_parquet(index=False, compression="zstd")
    point = changed["operating_point"]
    rows = point_rows(point) + ([("Equal scores", f"{tied} {NOT_MOVED}")] if tied else [])
    said: Json = {"operating_point": point, "sentences": list(map(": ".join, rows))}
    if change is not None:
        others[METRICS] = json_text(about | changed).encode()
        promoted = promote(store, files | others, {"run": f"version {change.version} with another threshold"})
        return {"run": f"{shown(store.url)}@{promoted.version}"} | said
    if exists(f"{run}/{CONFIG}"):
        others[CONFIG] = yaml_text(
            configuration_of(run) | {"operating_point": config.options | {"out_of_fold": point["out_of_fold"]}}
        ).encode()
    beside = run.rpartition("/")[0] if "://" in run else os.path.normpath(f"{run}/..")
    with run_folder(config.output or beside, timestamped(f"{about['name']}-threshold")) as made:
        changed |= {"run": made.url, "threshold_of": shown(run)}
        others[METRICS] = json_text(about | changed).encode()
        others["report.html"] = render_template(
            Path(__file__).with_name("threshold.html"),
            title=about["name"],
            sentences=rows,
            run=shown(run),
            warnings=warning_texts(about | changed),
        ).encode()
        for name, data in ({f"model/{name}": data for name, data in files.items()} | others).items():
            write_bytes(f"{made.draft}/{name}", data)
        made.publish()
    return {"run": made.url} | said


def _decide(
    config: ThresholdConfig, run: str, about: Json, model: LinearModel, test: pd.DataFrame | None
) -> tuple[float, float, str, Json]:
    """Decide about the new threshold.

    Returns
    -------
    tuple (float, float, str, dict)
        The new threshold of X w, the same threshold on the scale of the old scores, a warning if scores are equal, and the
        changes of ``metrics.json``.
    """
    kept = about.get("threshold_rows")
    if kept is not None and exists(f"{run}/{THRESHOLD_ROWS}"):
        rows, threshold_counts = kept["rows"], read_threshold_rows(run, about)
    elif test is not None:  # an older version has made the run
        rows, kept, threshold_counts = "test", {}, table_counts(test)
    else:
        raise InputError(f"{shown(run)} keeps neither the rows that set its threshold nor test rows: train it again")
    if config.row_costs is not None:
        raise InputError("costs of rows are not kept in a run folder: give numbers for false_positive and miss")
    if config.confidence is not None and rows == "training":
        raise InputError(
            f"the threshold of {shown(run)} was set on rows that the model was fitted to, which can guarantee nothing about new "
            "rows: train with `operating_point.confidence`, or with `data.threshold_rows`"
        )
    per_day = kept.get("per_day")
    cut, guarantee = threshold_by(config, threshold_counts, per_day)
    cut, shift = (without_intercept(cut, model.intercept), cut) if rows == "test" else (cut, cut + model.intercept)
    shown_rows, counts, at = "training", threshold_counts, cut
    details = about.get("details", {})
    if rows == "training":
        details["train"] = confusion_details(threshold_counts, cut)
    else:  # a run does not store the scores of the rows of the fit
        for name in ("confusion", "g_mean"):
            details.get("train", {}).pop(name, None)
    if test is not None:
        counts = table_counts(test.assign(score=test["score"] - shift))
        shown_rows, at, per_day = "test", 0.0, kept.get("test_per_day")
        details["test"] = confusion_details(counts, 0.0)
    point = point_of(counts, at, config.options, shown_rows, per_day)
    point |= threshold_origin(rows, threshold_counts, guarantee)
    tied = tied_text(counts, at, shown_rows) if rows == "out_of_fold" else ""
    changed = {"operating_point": point, "details": details, "score": DECISION, "threshold": 0.0}
    if "warnings" in about:
        others = [entry for entry in about["warnings"] if entry["key"] != EQUAL_SCORES]
        changed["warnings"] = others + [{"key": EQUAL_SCORES, "text": tied}] * bool(tied)
    return cut, shift, tied, changed


def threshold_lines(result: Json) -> list[str]:
    """Return the lines that `aucdist threshold` prints."""
    return [*result["sentences"], f"written: {result['run']}"]

"""`aucdist audit`: write a page and a JSON file of evidence about a run, or repeat the run and compare digests.

The headings are those of articles 11 to 15 of the EU's AI Act (Regulation 2024/1689), because reviewers look for them. The page
does not claim conformity.
"""

import json
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from aucdist.data.block import Block
from aucdist.data.own_files import json_digest, json_text, jsonable
from aucdist.data.storage.files import exists, read_bytes, sha256_of, shown, write_bytes
from aucdist.drift import batch as drift
from aucdist.errors import InputError, Json, RunError, as_input_error
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.guarantees import ALARM_E_VALUE
from aucdist.metrics.intervals import clopper_pearson
from aucdist.metrics.probability import brier, reliability
from aucdist.model.files import MODEL_FILE, files_of_model, load_two_classes
from aucdist.model.linear_model import LinearModel
from aucdist.report.text import point_rows, render_template, warning_texts
from aucdist.text import certificate_text
from flows.config.loading import FileOption, FolderArgument, Strict, UrlOption, config_of
from flows.export import rows_of_run
from flows.progress import RunObserver
from flows.run_folder.folder import CONFIG, GROUP_PREFIX, SCORES, configuration_of, digests, read_metrics, read_scores
from flows.train.config import TrainConfig
from flows.train.run import train

LEAST_PART = 0.1
"""The smallest share of a column for which it counts for an alert. It is a share of what the columns add beyond their means."""


class AuditConfig(Strict):
    """A run to report on, or to repeat."""

    run: FolderArgument
    """The folder of a run of `aucdist train`: a path or a URL."""
    verify: bool = False
    """Train again and compare digests. This writes no page."""
    lock: FileOption = None
    """A lock file of packages. The page then has its SHA-256."""
    output: UrlOption = None
    """The folder for audit.html and audit.json. By default it is the run folder."""


def audit(config: AuditConfig, observer: RunObserver) -> Json:
    """Write the page and the JSON file of a run. With `verify`, train again and compare the digests instead.

    Raises
    ------
    InputError
        If there is no such run, or it is not of two classes.
    RunError
        If the repeated run gives other results.
    """
    run = config.run.rstrip("/")
    about = read_metrics(run)
    if "classes" in about:
        raise InputError(
            f"{shown(run)} has several classes, but an audit is for two: train a model with `positive` set to one class"
        )
    if config.verify:
        return _verified(run, about, observer)
    with as_input_error(f"{shown(run)} lacks results that an audit needs", KeyError, TypeError, AttributeError):
        model = load_two_classes(f"{run}/model", "an audit")
        test = read_scores(run) if exists(f"{run}/{SCORES}") else None
        groups: list[Json] = []
        if test is not None:
            groups = [
                {"column": column.removeprefix(GROUP_PREFIX), "value": str(value) or "(missing)", **_metrics(rows)}
                for column in test.columns
                if column.startswith(GROUP_PREFIX)
                for value, rows in test.groupby(column, sort=True)
            ]
        record: Json = jsonable({
            "format": 1,
            "run": shown(run),
            "digests": {
                "data": about["data"]["fingerprint"],
                **digests_of_run(run, about),
                **about.get("digests", {}),
                **({} if config.lock is None else {"lock file": sha256_of(read_bytes(config.lock))}),
            },
            "code_is_that_of_the_run": about.get("digests", {}).get("code") == digests()["code"],
            "versions": about.get("versions", {}),
            "command": f"aucdist audit --verify {shown(run)}",
            "certificate": about["certificate"],
            "directions": about.get("monotone", {}),
            "metrics": about["metrics"],
            "operating_point": about.get("operating_point"),
            "calibration": None if test is None else calibration_of(model, test),
            "groups": groups,
            "contributions": contributions_of(run, model, observer),
            "drift": {
                "p_after_holm": drift.ALPHA, "limits": drift.MIN_DIFFERENCES, "losses": drift.MIN_LOSS,
                "evidence_against_a_guarantee": ALARM_E_VALUE,
            },
        })  # fmt: skip
        place = (config.output or run).rstrip("/")
        page = render_template(
            Path(__file__).with_name("audit.html"), title=f"Audit of {about['name']}", sentences=_verdict(record), about=about,
            warnings=warning_texts(about), record=record, n_pos=about["n_pos"],
            test_auc=about["metrics"]["test_auc"],
        )  # fmt: skip
        write_bytes(f"{place}/audit.html", page.encode())
        write_bytes(f"{place}/audit.json", json_text(record).encode())
        return record | {"page": f"{shown(place)}/audit.html", "json": f"{shown(place)}/audit.json"}


def audit_lines(result: Json) -> list[str]:
    """Return the lines that `aucdist audit` prints."""
    if "same" in result:
        return [*(f"the same: {name} {digest[:16]}" for name, digest in result["same"].items()), *result["notes"]]
    return [*map(": ".join, _verdict(result)), f"written: {result['page']} and {result['json']}"]


# ---- repeating a run -----------------------------------------------------------------------------------------------------------


def digests_of_run(run: str, about: Json) -> dict[str, str]:
    """Return the SHA-256 digests of the results of a run: the weights, the rest of the model, and the test scores."""
    content = json.loads(files_of_model(f"{run}/model")[MODEL_FILE])
    model = {key: content[key] for key in ("schema", "preprocessor", "reading")}
    # If the threshold was changed, scores and calibration were shifted, which has rounded them once more.
    shifted = "threshold_of" in about
    model["classes"] = [
        {key: entry[key] for key in ("intercept", "spread", *(() if shifted else ("probability",)))}
        for entry in content["classes"]
    ]
    sums = {**content["files"], "model": json_digest(model)}
    if exists(f"{run}/{SCORES}"):
        table = read_scores(run)
        columns = ["row_id", "y"] if shifted else ["row_id", "y", "score"]
        data = [table[name].to_numpy() for name in columns] + [(table["score"] > 0).to_numpy()]
        sums["test rows and decisions" if shifted else "test scores"] = sha256_of(
            b"".join(np.ascontiguousarray(column).tobytes() for column in data)
        )
    return sums


def _verified(run: str, about: Json, observer: RunObserver) -> Json:
    if "search" in about and "grid" in configuration_of(run):
        raise InputError(
            f"--verify cannot repeat the search of {shown(run)}: run `aucdist cv` again, or leave --verify out"
        )
    digests_here = digests()
    changed = {"code": "the code is not that of the run", "packages": "the packages are not those of the run"}
    notes = [text for name, text in changed.items() if about.get("digests", {}).get(name) != digests_here[name]]
    with tempfile.TemporaryDirectory(prefix="aucdist-audit-") as folder:
        repeated = train(
            config_of(TrainConfig, configuration_of(run), f"{shown(run)}/{CONFIG}", Path(folder), (), folder), observer
        )["run"]
        after = read_metrics(repeated)
        after |= {key: about[key] for key in ("threshold_of",) if key in about}
        new, old = (
            {"data": facts["data"]["fingerprint"], **digests_of_run(place, facts)}
            for place, facts in ((repeated, after), (run, about))
        )
    if other := sorted(name for name in {*old, *new} if old.get(name) != new.get(name)):
        notes += ["the data have changed since the run"] * ("data" in other)
        because = ", ".join(notes) or "files of the run were changed, or the kind of CPU is another one"
        raise RunError(f"the repeated run differs from the first one in: {', '.join(other)}; {because}")
    return {"run": shown(run), "same": old, "notes": notes}


# ---- figures -------------------------------------------------------------------------------------------------------------------


def calibration_of(model: LinearModel, test: pd.DataFrame) -> Json | None:
    """Compare the probabilities of test rows with their labels, over all rows and in bands of probability.

    Returns
    -------
    dict or None
        None if the model has no probabilities.
    """
    if model.probability is None:
        return None
    p = model.probability(test["score"].to_numpy())[:, 1]
    counts = ScoreCounts.from_scores(test["y"].to_numpy(), p)
    curve = reliability(counts)
    columns = (curve.weight, curve.predicted, curve.observed, curve.low, curve.high)
    bands = [
        {"rows": int(n), "predicted": predicted, "positive": value, "interval": [low, high]}
        for n, predicted, value, low, high in zip(*(column.tolist() for column in columns), strict=True)
    ]
    return {"positives": int(counts.n_pos), "expected": float(p.sum()), "brier": brier(counts), "bands": bands}


def _metrics(rows: pd.DataFrame) -> Json:
    """Return the metrics of a group of test rows with 95 % intervals.

    Metrics that need rows of both classes are left out if all rows are of one class.
    """
    y, scores = rows["y"].to_numpy(), rows["score"].to_numpy()
    measured, flagged = drift.performance(y, scores), int((scores > 0).sum())
    alerts = {"value": flagged / len(rows), "interval": list(clopper_pearson(flagged, len(rows)))}
    figures: Json = {"rows": len(rows), "positives": measured["n_pos"]}
    for name, metric in measured["metrics"].items():
        figures[name] = {"value": metric["value"], "interval": [metric["low"], metric["high"]]}
    if not measured["metrics"]:  # all rows are of one class
        figures["recall" if measured["n_pos"] else "fpr"] = alerts
    return figures | {"alerts": alerts}


def contributions_of(run: str, model: LinearModel, observer: RunObserver) -> Json:
    """Return the columns that contribute most to the alerts among the test rows: those with a share of at least `LEAST_PART`.

    For each alert, the share of a column is the amount that it adds beyond its mean over the test rows, divided by the sum of
    these amounts over all columns. Negative amounts count as 0. The rows are read again. If that fails, ``not_known`` says why.
    """
    try:
        blocks = [block for name, block in rows_of_run(run, observer) if name == "test"]
        if not blocks:
            return {"not_known": "the run has no test rows"}
        adds, scores = (
            pd.concat(parts, ignore_index=True)
            for parts in zip(*(_contributions(model, block) for block in blocks), strict=True)
        )
    except InputError as error:
        return {"not_known": str(error).rstrip(".")}
    alerts = (adds - adds.mean())[(scores > 0).to_numpy()].clip(lower=0.0)
    part = alerts.div(alerts.sum(axis=1).where(lambda total: total > 0, 1.0), axis=0)
    named = part >= LEAST_PART
    columns = [
        {"column": name, "alerts": float(named[name].mean()), "part": float(part[name].mean())}
        for name in part.mean().sort_values(ascending=False, kind="stable").index
        if len(part) and named[name].any()
    ]
    return {
        "alerts": len(part), "least_part": LEAST_PART, "most_of_an_alert": int(named.sum(axis=1).max()) if len(named) else 0,
        "columns": columns,
    }  # fmt: skip


def _contributions(model: LinearModel, block: Block) -> tuple[pd.DataFrame, "pd.Series[float]"]:
    """Return the contribution of each column to the scores of rows, and the scores.

    The contributions of a column's features are summed.
    """
    table, schema = model.explain(block.X), model.schema
    scores = table.sum(axis=1)
    column = {schema.feature_names[j]: name for name, features in schema.by_column().items() for j in features}
    return table.iloc[:, :-1].rename(columns=column).T.groupby(level=0, sort=False).sum().T, scores


def _verdict(record: Json) -> list[tuple[str, str]]:
    point = record["operating_point"]
    return [
        *(point_rows(point) if point else ()),
        ("Certificate", f"The training objective is {certificate_text(record['certificate'])}."),
    ]

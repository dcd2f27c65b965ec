"""Writes the run folder: model, history, test scores, configuration, report and metrics."""

import json
from pathlib import Path
from typing import Any

from aucdist.data.dataset import Schema
from aucdist.data.storage.files import shown, write_bytes
from aucdist.drift.profile import Profile, ScoreBins, score_bins
from aucdist.metrics.counts import ScoreCounts
from aucdist.model import DIGESTS, PROFILE, save_model
from aucdist.report.additive import AdditiveModel
from aucdist.report.html import Report, render_run_page
from aucdist.report.text import seconds_text
from flows.config.loading import to_yaml
from flows.json_values import jsonable
from flows.rows.rows import Rows
from flows.rows.train_test import TrainTestRows
from flows.run_folder.folder import METRICS, RunFolder
from flows.run_folder.results import FittedRun, RowsSeen, details_of
from flows.run_folder.scores import SCORES, write_scores
from flows.versions import versions


def publish(fitted: FittedRun, result: dict[str, Any], folder: RunFolder, command: str = "aucdist train") -> None:
    """Write all files of a run folder, then publish it as a whole.

    `result`: as `flows.run_folder.results.result_of` returned it.
    `command`: what runs the configuration again.
    """
    config = to_yaml(fitted.config)
    rows = fitted.rows
    save_fitted(fitted.estimator, rows, rows.schema, fitted.config, result["certificate"], folder.draft / "model")
    _save_profile(fitted, folder.draft / "model")
    fitted.estimator.history_.to_parquet(folder.draft / "history.parquet", index=False)
    if fitted.rows.test is not None:
        write_scores(fitted.evaluation.scores, folder.draft / SCORES)
    page = render_run_page(report_of(fitted, result, config, command))
    publish_texts(folder, config, page, result | details_of(fitted), fitted.search)


def publish_texts(
    folder: RunFolder, config: str, page: str, metrics: dict[str, Any], search: dict[str, Any] | None
) -> None:
    """Write the configuration, the report and the metrics of a run beside its other files, and publish the folder."""
    (folder.draft / "config.yaml").write_text(config, encoding="utf-8")
    (folder.draft / "report.html").write_text(page, encoding="utf-8")
    more = {} if search is None else {"search": search}
    (folder.draft / METRICS).write_text(json.dumps(metrics | more, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    folder.publish()


def save_fitted(
    estimator: Any, rows: TrainTestRows, schema: Schema, config: Any, certificate: dict[str, Any], folder: Path
) -> None:
    """Save a fitted estimator of two classes as a model."""
    point = getattr(config, "operating_point", None)
    save_model(
        str(folder),
        coef=estimator.coef_[0],
        intercept=estimator.decision_intercept,
        probability=getattr(estimator, "probability_", None),
        feature_map=getattr(estimator, "feature_map_", None),
        schema=schema,
        preprocessor=rows.preprocessor,
        reading=rows.source.scoring_keys(),
        about={
            "estimator": type(estimator).__name__,
            "parameters": jsonable(estimator.plain_params()),
            "threshold": jsonable(estimator.raw_threshold),
            **({} if point is None else {"operating_point": point.wanted}),
            "certificate": certificate,
            "data": {"name": rows.name, "fingerprint": rows.fingerprint},
            "versions": versions(),
        },
    )


def _save_profile(fitted: FittedRun, folder: Path) -> None:
    """Write what the model keeps of its training rows, beside it."""
    evaluation = fitted.evaluation
    counts, rows = (evaluation.train, "training") if evaluation.test is None else (evaluation.test, "test")
    score = score_bins(counts, rows, fitted.estimator.decision_intercept)
    save_profile(fitted.seen, fitted.rows.train, str(folder), score)


def save_profile(
    seen: RowsSeen,
    train: Rows,
    folder: str,
    score: ScoreBins | None = None,
    *,
    class_scores: dict[str, ScoreBins] | None = None,
) -> None:
    """Write what a model keeps of its training rows, with the bins of its score or of those of its classes."""
    profile = Profile(
        train.n_samples, train.n_features, seen.columns, score, seen.test_checked, seen.test_known,
        class_scores=class_scores or {},
    )  # fmt: skip
    write_bytes(f"{folder}/{PROFILE}", profile.to_bytes())
    write_bytes(f"{folder}/{DIGESTS}", seen.digests.to_bytes())


def report_of(fitted: FittedRun, result: dict[str, Any], config: str, command: str = "aucdist train") -> Report:
    """Return the content of the report; `config` is the configuration in YAML, other parameters as `publish`."""
    rows, estimator = fitted.rows, fitted.estimator
    return Report(
        title=fitted.config.name,
        run=result,
        data=facts_of(rows),
        config=config,
        history=estimator.history_,
        train=fitted.evaluation.train,
        test=fitted.evaluation.test,
        threshold=estimator.raw_threshold,
        weights=list(zip(_weight_names(fitted), estimator.coef_[0].tolist(), strict=True)),
        cost=cost_of(fitted),
        versions=versions(),
        command=command,
        search=fitted.search,
        probabilities=probability_counts(fitted),
        shape=getattr(estimator, "xi_trace_", None),
        of_pairs=estimator.of_pairs,
        additive=_additive_model(fitted),
        map_name=_map_name(estimator),
        max_fpr=_max_fpr(fitted),
        free=None if fitted.more is None else fitted.more.free,
        traps=fitted.seen.traps,
    )


def facts_of(rows: TrainTestRows) -> dict[str, Any]:
    """Return what the report says of the data."""
    source, schema = rows.source.source, rows.schema
    two = not schema.classes  # the schema of several has the first of them for the positive one
    facts = {
        "name": rows.name,
        "source": ", ".join(shown(url) for url in ([source] if isinstance(source, str) else source)),
        "training rows": rows.train.n_samples,
        "test rows": 0 if rows.test is None else rows.test.n_samples,
        "features": rows.train.n_features,
        "positive": ", ".join(schema.positive) if two else None,
        "negative": ", ".join(schema.negative) if two else None,
        "fingerprint": rows.fingerprint,
        "note": rows.source.note,
        "licence": rows.source.licence,
    }
    return {key: value for key, value in facts.items() if value not in (None, "")}


def _max_fpr(fitted: FittedRun) -> float | None:
    """Return the false positive rate up to which the model was trained, for the report."""
    share, number = (getattr(fitted.estimator, name, None) for name in ("max_fpr", "max_false_positives"))
    return share if number is None else number / fitted.evaluation.train.n_neg


def _weight_names(fitted: FittedRun) -> list[str]:
    """Return the name of each weight: of a feature, or of a basis function of the feature map."""
    names = list(fitted.rows.schema.feature_names)
    feature_map = getattr(fitted.estimator, "feature_map_", None)
    return names if feature_map is None else feature_map.names(names)


def _additive_model(fitted: FittedRun) -> AdditiveModel | None:
    """Return the shapes of a model of binned features, for the report; None for other models."""
    from aucdist.maps.bins import BinMap
    from aucdist.maps.shapes import points_table

    estimator, names = fitted.estimator, fitted.rows.schema.feature_names
    if not isinstance(getattr(estimator, "feature_map_", None), BinMap):
        return None
    parts, bands = estimator.shapes(), None if fitted.more is None else fitted.more.bands
    return AdditiveModel(
        parts, names, points_table(parts, names), getattr(estimator, "monotone_", None), bands,
        None if fitted.more is None else fitted.more.n_halves,
    )  # fmt: skip


def _map_name(estimator: Any) -> str | None:
    """Return the name of the feature map, for the report."""
    features = getattr(estimator, "features", None)
    if features is None:
        return None
    return features if isinstance(features, str) else str(features["map"])


def probability_counts(fitted: FittedRun) -> ScoreCounts | None:
    """Return the counts of the predicted probabilities of the test rows, or else of the training rows.

    None for a model without probabilities.
    """
    estimator, evaluation = fitted.estimator, fitted.evaluation
    if not hasattr(estimator, "predict_proba"):
        return None
    counts = evaluation.train if evaluation.test is None else evaluation.test
    return counts.mapped(lambda scores: estimator.probability_(scores + estimator.decision_intercept)[:, 1])


def cost_of(fitted: Any) -> list[tuple[str, str]]:
    """Return time, passes, rows, bytes and cluster of a run, as the report's table of costs."""
    estimator, cluster, size = fitted.estimator, fitted.config.cluster, fitted.rows.size()
    where = {
        "none": "this process",
        "local": f"{getattr(cluster, 'workers', 1)} worker processes of {getattr(cluster, 'threads', 1)} threads",
    }
    cost = [(f"Time: {stage}", seconds_text(seconds)) for stage, seconds in fitted.seconds.items()]
    cost += [
        ("Passes of the fit", f"{estimator.n_passes_:,}"),
        ("Rows of the fit", f"{size['rows']:,} x {size['features']:,}"),
        ("Bytes of these rows", f"{size['bytes'] / 2**20:,.1f} MiB"),
        ("Ran in", where.get(cluster.kind, f"a cluster ({cluster.kind})")),
    ]
    if fitted.search is not None:
        cost.insert(-1, ("Passes of the search", f"{sum(row['passes'] for row in fitted.search['table']):,}"))
    return cost

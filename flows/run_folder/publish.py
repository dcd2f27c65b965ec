"""Write the run folder: model, history, test scores, configuration, report and metrics."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from aucdist.data.own_files import json_text, jsonable, npy_of
from aucdist.data.storage.files import shown, write_bytes
from aucdist.errors import Json
from aucdist.maps.bins import BinMap
from aucdist.model.files import DIGESTS, PROFILE, weights_of, write_model
from aucdist.model.linear_model import LinearModel
from aucdist.pairs.top_negatives import trained_max_fpr
from aucdist.report.run import Report, render_run_page
from aucdist.report.sections import additive_section
from aucdist.text import percent_text, seconds_text
from flows.config.loading import to_yaml
from flows.rows.rows import LazyRows, TrainTestRows
from flows.run_folder.folder import (
    CONFIG,
    GROUP_PREFIX,
    METRICS,
    SCORES,
    THRESHOLD_ROWS,
    RunFolder,
    score_columns,
    versions,
)
from flows.run_folder.results import FittedRun, ScoredTestRows, details_of


def publish(fitted: FittedRun, result: Json, folder: RunFolder) -> None:
    """Write all files of a run folder, then publish it as a whole.

    Parameters
    ----------
    fitted : FittedRun
        The fitted run.
    result : dict
        The results, as returned by `flows.run_folder.results.run_result`.
    folder : RunFolder
        The folder to write to.
    """
    config, draft, rows, point = to_yaml(fitted.config), folder.draft, fitted.rows, fitted.config.operating_point
    contents = [
        {
            "estimator": type(model).__name__,
            "parameters": jsonable(model.plain_params()),
            **({} if point is None else {"operating_point": point.options}),
            "certificate": about["certificate"],
            "data": rows.identity,
            "versions": versions(),
            "warnings": result["warnings"],
        }
        for model, about in zip(fitted.estimator.class_models, result.get("classes", [result]), strict=True)
    ]
    model = LinearModel(
        weights_of(fitted.estimator, contents),
        replace(rows.schema, sets=()),
        rows.preprocessor,
        rows.source.keys_for_scoring(),
    )
    write_model(str(draft / "model"), model)
    write_bytes(f"{draft}/model/{PROFILE}", fitted.profile.to_bytes())
    write_bytes(f"{draft}/model/{DIGESTS}", npy_of(fitted.digests.kept))
    classes, histories = rows.schema.classes, [model.history_ for model in fitted.estimator.class_models]
    if classes:
        histories = [table.assign(**{"class": name}) for name, table in zip(classes, histories, strict=True)]
    else:
        counts = fitted.evaluation.classes[0].threshold_counts
        pq.write_table(
            pa.table({"score": counts.values, "pos": counts.pos, "neg": counts.neg}),
            draft / THRESHOLD_ROWS,
            compression="zstd",
        )
    pd.concat(histories).to_parquet(draft / "history.parquet", index=False)
    if (test := fitted.evaluation.test) is not None:
        pq.write_table(scores_table(test, classes, fitted.named_groups), draft / SCORES, compression="zstd")
    result = result | details_of(fitted)
    for name, text in (
        (CONFIG, config),
        ("report.html", render_run_page(report_of(fitted, result, config))),
        (METRICS, json_text(result)),
    ):
        (draft / name).write_text(text, encoding="utf-8")
    folder.publish()


def scores_table(test: ScoredTestRows, classes: tuple[str, ...], named_groups: Mapping[str, np.ndarray]) -> pa.Table:
    """Return the table of the test rows and their scores by the saved model.

    It has id, label and score, then weight, group, grade and cost if there are some, and named groups. For several classes it
    has id, classes, prediction, cost, and a score of each class.
    """
    table = test.table
    if not classes:
        table = table.add_column(2, "score", [test.scores[:, 0]])
        for name, values in named_groups.items():
            table = table.append_column(f"{GROUP_PREFIX}{name}", [pa.array(values, pa.string())])
        return table
    names = np.array(classes, dtype=object)
    columns: Json = {"row_id": table["row_id"]}
    for column, sets in (("label", test.members), ("prediction", test.predicted)):
        columns[column] = pa.array([",".join(names[row]) for row in sets], pa.string())
    if "cost" in table.column_names:
        columns["cost"] = table["cost"]
    return pa.table(columns | dict(zip(score_columns(classes), test.scores.T, strict=True)))


def report_of(fitted: FittedRun, result: Json, config: str) -> Report:
    """Return the content of the report.

    `result` is the content of ``metrics.json``, and `config` is the configuration in YAML.
    """
    from aucdist.export.portable import additive_in_units

    rows, estimator, test = fitted.rows, fitted.estimator, fitted.evaluation.test
    report = Report(
        run=result,
        data=facts_of(rows) | {"test rows with the features of a training row": fitted.profile.test_known or None},
        config=config,
        cost=cost_of(fitted),
        classes=[(class_evaluation.train, class_evaluation.test) for class_evaluation in fitted.evaluation.classes],
    )
    if rows.schema.classes:
        return replace(report, confusions=test and test.confusions)
    (class_evaluation,), probabilities, additive = fitted.evaluation.classes, None, None
    if hasattr(estimator, "predict_proba"):
        probabilities = class_evaluation.reported[1].mapped(
            lambda scores: estimator.probability_(scores + estimator.decision_intercept)[:, 1]
        )
    features, feature_map = estimator.features, getattr(estimator, "feature_map_", None)
    names = rows.schema.feature_names if feature_map is None else feature_map.names(rows.schema.feature_names)
    if isinstance(feature_map, BinMap):  # only models of bins have shapes
        additive = additive_section(
            additive_in_units(estimator.shapes(), rows.preprocessor),
            rows.schema,
            getattr(estimator, "monotone_", None),
            fitted.bands,
            fitted.config.shapes.halves,
            rows.train.n_samples,
        )
    return replace(
        report,
        interval=class_evaluation.interval,
        threshold=estimator.raw_threshold,
        weights=list(zip(names, estimator.coef_[0].tolist(), strict=True)),
        probabilities=probabilities,
        xi=getattr(estimator, "xi_", None),
        additive=additive,
        map_name=str(features["map"]) if isinstance(features, dict) else features,
        max_fpr=trained_max_fpr(estimator, class_evaluation.train.n_neg),
    )


def cost_of(fitted: FittedRun) -> list[tuple[str, str]]:
    """Return the costs of a run for the report: the time of each stage, passes over the rows, and memory."""
    cost = [(f"Time: {stage}", seconds_text(seconds)) for stage, seconds in fitted.seconds.items()]
    cost += [
        ("Passes of the fit", f"{fitted.estimator.n_passes_:,}"),
        ("Bytes of the training rows", f"{fitted.rows.train.n_bytes / 2**20:,.1f} MiB"),
    ]
    if fitted.search is not None:
        cost.append(("Passes of the search", f"{sum(row['passes'] for row in fitted.search['table']):,}"))
    return cost


def facts_of(rows: TrainTestRows) -> Json:
    """Return the facts about the data for the report. The report leaves out those that are None or empty."""
    schema = rows.schema

    def positives(part: LazyRows) -> str:
        return f"{part.n_pos:,} ({percent_text(part.n_pos / part.n_samples)})"

    two_class_facts: Json = {}
    if not schema.classes:  # for several classes, the schema names the first one as positive
        two_class_facts = {
            "positive class": ", ".join(schema.positive),
            f"negative class{'es' * (len(schema.negative) > 1)}": ", ".join(schema.negative),
            "positive training rows": positives(rows.train),
            "positive test rows": rows.test and positives(rows.test),
        }
    return {
        "name": rows.name,
        "source": ", ".join(map(shown, rows.source.urls())),
        "training rows": rows.train.n_samples,
        "test rows": 0 if rows.test is None else rows.test.n_samples,
        "features": rows.train.n_features,
        **two_class_facts,
        "fingerprint": rows.fingerprint,
        "version": rows.source.version,
        "note": rows.source.note,
        "licence": rows.source.licence,
    }

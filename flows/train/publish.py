"""The stage that writes the run folder."""

import io
import json
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from aucdist.data.block import Block
from aucdist.data.storage.files import read_bytes, shown
from aucdist.estimators.scores import scores_of
from aucdist.metrics.counts import ScoreCounts
from aucdist.model import save_model
from aucdist.report.html import Report, render_run_page
from aucdist.report.text import seconds_text
from flows.compute.lazy_rows import blocks_of, size_of
from flows.config.loading import to_yaml
from flows.train.results import Trained, details_of, jsonable, versions
from flows.train.run_folder import LAST, RunFolder

SCORES = "scores.parquet"


def publish(trained: Trained, result: dict[str, Any], folder: RunFolder, search: dict[str, Any] | None = None) -> None:
    """Write model, history, test scores, configuration, report and metrics aside, then show them all at once.

    `search` is what a cross-validation has found that chose the parameters.
    """
    config = to_yaml(trained.config)
    _save(trained, result, folder.aside / "model")
    trained.estimator.history_.to_parquet(folder.aside / "history.parquet", index=False)
    if trained.opened.test is not None:
        write_scores(blocks_of(trained.opened.test), trained.estimator, folder.aside / SCORES)
    (folder.aside / "config.yaml").write_text(config, encoding="utf-8")
    (folder.aside / "report.html").write_text(
        render_run_page(report_of(trained, result, config, search)), encoding="utf-8"
    )
    more = {} if search is None else {"search": search}
    metrics = json.dumps({**result, **details_of(trained), **more}, indent=2, allow_nan=False)
    (folder.aside / LAST).write_text(metrics + "\n", encoding="utf-8")
    folder.publish()


def write_scores(blocks: Iterable[Block], estimator: Any, path: Path) -> None:
    """Write number, label, weight and score of each test row, block by block: what `aucdist compare` needs."""
    with ExitStack() as stack:
        writer = None
        for block in blocks:
            scores = scores_of(
                block.X, estimator.coef_[0]
            )  # without the intercept, which could round two scores into one
            columns = {"row_id": block.row_id, "y": block.y, "score": scores}
            table = pa.table(columns if block.weight is None else columns | {"weight": block.weight})
            if writer is None:
                writer = stack.enter_context(pq.ParquetWriter(path, table.schema, compression="zstd"))
            writer.write_table(table)


def read_scores(run: str) -> pd.DataFrame:
    """Read number, label, score and maybe weight of a run's test rows, in the order of their numbers.

    Raises
    ------
    InputError
        If there is none: a run without test rows has no scores of them.
    """
    return pd.read_parquet(io.BytesIO(read_bytes(f"{run}/{SCORES}"))).sort_values("row_id", ignore_index=True)


def scored_rows(run: str) -> ScoreCounts:
    """Return the counts of a run's test scores."""
    table = read_scores(run)
    weight = table["weight"].to_numpy() if "weight" in table else None
    return ScoreCounts.from_scores(table["y"].to_numpy(), table["score"].to_numpy(), weight)


def _save(trained: Trained, result: dict[str, Any], folder: Path) -> None:
    estimator, opened = trained.estimator, trained.opened
    save_model(
        str(folder),
        coef=estimator.coef_[0],
        intercept=estimator.decision_intercept,
        probability=getattr(estimator, "probability_", None),
        schema=opened.schema,
        preprocessor=opened.preprocessor,
        about={
            "estimator": result["estimator"],
            "parameters": jsonable(estimator.get_params()),
            "threshold": jsonable(estimator.threshold_),
            "certificate": result["certificate"],
            "data": {"name": opened.name, "fingerprint": opened.fingerprint},
            "versions": versions(),
        },
    )


def report_of(trained: Trained, result: dict[str, Any], config: str, search: dict[str, Any] | None = None) -> Report:
    """Return what the report shows."""
    opened, estimator = trained.opened, trained.estimator
    source = opened.source.source
    card = {
        "name": opened.name,
        "source": ", ".join(shown(url) for url in ([source] if isinstance(source, str) else source)),
        "training rows": result["n_samples"],
        "test rows": 0 if opened.test is None else opened.test.n_samples,
        "features": result["n_features"],
        "positive": ", ".join(opened.schema.positive),
        "negative": ", ".join(opened.schema.negative),
        "fingerprint": opened.fingerprint,
        "note": opened.source.note,
        "licence": opened.source.licence,
    }
    return Report(
        title=trained.config.name,
        run=result,
        data={key: value for key, value in card.items() if value not in (None, "")},
        config=config,
        history=estimator.history_,
        train=trained.scored.train,
        test=trained.scored.test,
        threshold=estimator.threshold_,
        weights=list(zip(opened.schema.feature_names, estimator.coef_[0].tolist(), strict=True)),
        cost=cost_of(trained, search),
        versions=versions(),
        command="aucdist train" if search is None else "aucdist cv",
        search=search,
        probabilities=probabilities_of(trained),
        shape=getattr(estimator, "xi_trace_", None),
        of_pairs=estimator.of_pairs,
    )


def probabilities_of(trained: Trained) -> ScoreCounts | None:
    """Return the counts of the probabilities of the test rows, or else of the training rows; None for a model without them."""
    estimator, scored = trained.estimator, trained.scored
    if not hasattr(estimator, "predict_proba"):
        return None
    counts = scored.train if scored.test is None else scored.test
    return counts.mapped(lambda scores: estimator.probability_(scores + estimator.decision_intercept)[:, 1])


def cost_of(trained: Trained, search: dict[str, Any] | None) -> list[tuple[str, str]]:
    """Return what a run took, for the report."""
    opened, estimator, cluster = trained.opened, trained.estimator, trained.config.cluster
    size = size_of(opened.train)
    where = {
        "none": "this process",
        "local": f"{getattr(cluster, 'workers', 1)} worker processes of {getattr(cluster, 'threads', 1)} threads",
    }
    cost = [(f"Time: {stage}", seconds_text(seconds)) for stage, seconds in trained.seconds.items()]
    cost += [
        ("Passes of the fit", f"{estimator.n_passes_:,}"),
        ("Rows of the fit", f"{size['rows']:,} x {size['features']:,}"),
        ("Bytes of these rows", f"{size['bytes'] / 2**20:,.1f} MiB"),
        ("Ran in", where.get(cluster.kind, f"a cluster ({cluster.kind})")),
    ]
    if search is not None:
        cost.insert(-1, ("Passes of the search", f"{sum(row['passes'] for row in search['table']):,}"))
    return cost

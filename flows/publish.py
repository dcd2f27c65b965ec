"""The stage that writes the run folder."""

import json
from pathlib import Path
from typing import Any

from aucdist.data.files import shown
from aucdist.model import save_model
from aucdist.report.html import Report, render
from flows.loading import to_yaml
from flows.results import Trained, details_of, jsonable, versions
from flows.runs import LAST, RunFolder


def publish(trained: Trained, result: dict[str, Any], folder: RunFolder) -> None:
    """Write model, history, configuration, report and metrics aside, then show them all at once."""
    config = to_yaml(trained.config)
    _save(trained, result, folder.aside / "model")
    trained.estimator.history_.to_parquet(folder.aside / "history.parquet", index=False)
    (folder.aside / "config.yaml").write_text(config, encoding="utf-8")
    (folder.aside / "report.html").write_text(render(report_of(trained, result, config)), encoding="utf-8")
    metrics = json.dumps({**result, **details_of(trained)}, indent=2, allow_nan=False)
    (folder.aside / LAST).write_text(metrics + "\n", encoding="utf-8")
    folder.publish()


def _save(trained: Trained, result: dict[str, Any], folder: Path) -> None:
    estimator, opened = trained.estimator, trained.opened
    save_model(
        str(folder),
        coef=estimator.coef_[0],
        intercept=estimator.intercept_[0],
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


def report_of(trained: Trained, result: dict[str, Any], config: str) -> Report:
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
    )

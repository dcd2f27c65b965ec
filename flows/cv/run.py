"""A search from end to end: the folds, the choice, the model of all training rows, and the run folder."""

import time
from collections.abc import Callable
from typing import Any

from aucdist.solvers.base import REACHED
from flows.compute.clusters import cluster, fixed
from flows.compute.lazy_rows import size_of
from flows.compute.s3_environment import s3_as_configured
from flows.cv.config import CvConfig
from flows.cv.rows import cut_any, open_any, place_any
from flows.cv.search import Found, search
from flows.progress.console import RunObserver
from flows.progress.metrics import REPORT, MetricsObserver
from flows.train.config import ModelConfig
from flows.train.publish import publish
from flows.train.results import Trained, jsonable, result_of
from flows.train.run import Run, call
from flows.train.run_folder import run_folder, stamped
from flows.train.stages import evaluate, fit


def cross_validate(config: CvConfig, observer: RunObserver, run: Run = call) -> dict[str, Any]:
    """Try the grid on the folds, choose, fit the chosen setting to all training rows, and write the run folder.

    The results of the folds are kept below ``cv-<name>/tasks`` as they come: a search that was ended goes on where it was.

    Parameters
    ----------
    config : CvConfig
    watch : Watch
        Hears of stages, tasks and rounds.
    run : callable
        Takes the name of a stage, the stage and its arguments, and runs it.

    Returns
    -------
    dict
        What ``aucdist cv --json`` prints.

    Raises
    ------
    InputError
        If the configuration, the data or the cuts are wrong; nothing has been written then.
    RunError
        If every setting failed; the folds that were done are kept.
    """
    seconds: dict[str, float] = {}

    def staged(name: str, stage: Callable[..., Any], *args: Any) -> Any:
        observer.stage(name)
        start = time.perf_counter()
        value = run(name, stage, *args)
        seconds[name] = time.perf_counter() - start
        return value

    name = stamped(f"{config.name}-cv")
    observer = MetricsObserver(observer, name)
    with s3_as_configured(config.s3, config.cluster, observer), run_folder(config.output, name) as folder:
        opened = staged("open data", open_any, config, observer)
        n_parts = max(opened.n_blocks(config.blocks), config.folds.number * config.folds.repeats)
        report = folder.aside / REPORT if config.performance_report else None
        with (
            cluster(config.cluster, name) as (client, scratch),
            fixed(config.cluster, client, n_parts),
            observer.on(client, report),
        ):
            rows = staged("cut", cut_any, opened, config, client, scratch, observer)
            found: Found = staged("search", search, config, rows, client, scratch, observer)
            best = found.rows[found.chosen].parameters
            model = ModelConfig(**{**config.model.model_dump(exclude_unset=True), **best})
            opened = staged("encode", rows.encoded, client, observer)
            placed = staged("place", place_any, opened, config, client, scratch, observer)
            observer.about(size_of(opened.train))
            fitted = staged("fit", fit, model, placed.train, observer)
            scored = staged("evaluate", evaluate, fitted, placed, observer)
        trained = Trained(config, opened, fitted, scored, seconds)
        refit = result_of(trained, folder.url)
        about = search_of(config, found)
        staged("publish", publish, trained, refit, folder, about)
    return {"run": refit.pop("run"), **about, "refit": refit}


def search_of(config: CvConfig, found: Found) -> dict[str, Any]:
    """Return what a search has found, in types of JSON."""
    table = [
        {
            "parameters": row.parameters,
            "mean": row.mean,
            "deviation": row.deviation,
            "folds": row.values,
            "max_passes": row.max_passes,
            "passes": sum(result.get("passes", 0) for result in row.results),
            "not_converged": sum(result.get("status", "converged") not in REACHED for result in row.results),
            "errors": row.errors,
        }
        for row in found.rows
    ]
    nested = None
    if found.nested is not None:
        nested = [
            {"repeat": c.cut.repeat, "fold": c.cut.fold, "parameters": c.parameters, "value": c.value}
            for c in found.nested
        ]
    folds = config.folds.model_dump(mode="json", exclude_none=True)
    chosen = found.rows[found.chosen]
    result: dict[str, Any] = jsonable(
        {
            "best": chosen.parameters,
            "score": found.score,
            "interval": found.interval,
            "metric": config.metric,
            "rule": config.rule,
            "folds": folds,
            "test_over_train": found.test_over_train,
            "table": table,
            "nested": nested,
            "placement": found.placement,
            "tasks": {"all": found.jobs, "kept": found.kept, "failed": sum(bool(row.errors) for row in found.rows)},
            "seconds": found.seconds,
        }
    )
    return result

"""A search from end to end: the folds, the choice, the model of all training rows, and the run folder."""

from typing import Any

from flows.compute.clusters import fixed_worker_set, open_cluster
from flows.compute.s3_environment import s3_as_configured
from flows.compute.stages import StageRunner, Stages, call_stage
from flows.config.data import refuse_for_classes
from flows.cv.config import CvConfig
from flows.cv.rows import open_search
from flows.cv.search import SearchResult, search
from flows.json_values import jsonable
from flows.progress.console import RunObserver
from flows.progress.metrics import REPORT, MetricsObserver
from flows.rows.source import check_cost_column, check_monotone
from flows.run_folder.folder import run_folder, timestamped, unfinished_runs
from flows.train.run import fit_rows, publish_run


def cross_validate(config: CvConfig, observer: RunObserver, run_stage: StageRunner = call_stage) -> dict[str, Any]:
    """Score the grid on the folds, choose, fit the chosen setting to all training rows, and write the run folder.

    Results of jobs are cached below ``cv-<name>/tasks``: a search that was interrupted resumes from them.

    Raises InputError if the configuration, the data or the folds are wrong; nothing has been written then.
    Raises RunError if every setting failed; the results of finished jobs are in the cache.
    """
    name = timestamped(f"{config.name}-cv")
    observer = MetricsObserver(observer, name)
    stages = Stages(observer, run_stage)
    if left := unfinished_runs(config.output, "aucdist cv"):
        observer.note(left)
    with s3_as_configured(config.s3, config.cluster, observer), run_folder(config.output, name) as folder:
        opened = stages("open data", open_search, config, observer, retry=True)
        check_cost_column(config.data, config.operating_point)
        n_parts = max(opened.source.n_blocks, config.folds.number * config.folds.repeats)
        report = folder.draft / REPORT if config.performance_report else None
        with (
            open_cluster(config.cluster, name, observer) as workers,
            fixed_worker_set(config.cluster, workers, n_parts),
            observer.report_to(workers.client, report),
        ):
            search_rows = stages("make folds", opened.make_folds, config, workers, observer)
            if search_rows.classes is not None:
                refuse_for_classes(config)  # the configuration does not say that shards have several
            of_groups = search_rows.grouped, search_rows.lowest_grade
            tried = config.with_candidates(search_rows.size, observer.note, *of_groups)
            directions = [getattr(tried.model.built, "monotone", None), *(p.get("monotone") for p in tried.points)]
            check_monotone(directions, search_rows.rows.schema)
            found: SearchResult = stages("search", search, tried, search_rows, workers, observer)
            model = config.model.with_parameters(found.rows[found.chosen].parameters)
            rows = stages("encode", search_rows.encode, workers, observer)
            about = search_summary(tried, found)
            fitted, _ = fit_rows(config, model, rows, workers, stages, observer, about)
        refit = publish_run(fitted, folder, stages, "aucdist cv")
    return {"run": refit.pop("run"), **about, "refit": refit}


def search_summary(config: CvConfig, found: SearchResult) -> dict[str, Any]:
    """Return the result of a search in types of JSON."""
    nested = None
    if found.nested is not None:
        nested = [
            {"repeat": c.fold.repeat, "fold": c.fold.fold, "parameters": c.parameters, "value": c.value}
            for c in found.nested
        ]
    n_failed = sum(bool(row.errors) for row in found.rows)
    summary: dict[str, Any] = jsonable(
        {
            "best": found.rows[found.chosen].parameters,
            "score": found.score,
            "interval": found.interval,
            "metric": config.measure,
            "rule": config.rule,
            "folds": config.folds.model_dump(mode="json", exclude_none=True),
            "test_over_train": found.test_over_train,
            "table": [row.summary() for row in found.rows],
            "nested": nested,
            "placement": found.placement,
            "tasks": {"all": found.n_jobs, "kept": found.n_cached, "failed": n_failed},
            "seconds": found.seconds,
        }
        | ({} if found.of_classes is None else {"of_classes": found.of_classes})
        | ({} if found.shares is None else {"groups": found.shares})
    )
    return summary

"""A search from end to end: the folds, the choice, the model of all training rows, and the run folder."""

from typing import Any

from flows.compute.stages import StageRunner, call_stage
from flows.compute.workers import Workers
from flows.config.data import refuse_for_classes
from flows.config.model import ModelConfig
from flows.cv.config import CvConfig
from flows.cv.rows import OpenedSearch, open_search
from flows.cv.search import SearchResult, search
from flows.json_values import jsonable
from flows.progress.console import RunObserver
from flows.rows.rows import TrainTestRows
from flows.rows.source import check_monotone
from flows.run_folder.folder import timestamped
from flows.train.run import TrainRun


class SearchRun(TrainRun):
    """A training run whose model is chosen by folds of the training rows; `summary` is what they say."""

    command = "aucdist cv"
    summary: dict[str, Any]

    def new_name(self) -> str:
        """Return the name of the run folder."""
        return timestamped(f"{self.config.name}-cv")

    def open(self) -> OpenedSearch:
        """Open the data, and make the folds if this process has the rows."""
        opened: OpenedSearch = self.stages("open data", open_search, self.config, self.observer, retry=True)
        return opened

    def n_parts(self, opened: OpenedSearch) -> int:
        """Return how many workers could have something to do."""
        return max(opened.source.n_blocks, self.config.folds.number * self.config.folds.repeats)

    def choose(
        self, opened: OpenedSearch, workers: Workers
    ) -> tuple[TrainTestRows, ModelConfig, dict[str, Any] | None]:
        """Score the grid on the folds, choose, and return all training rows with their encoding."""
        config, observer, stages = self.config, self.observer, self.stages
        search_rows = stages("make folds", opened.make_folds, config, workers, observer)
        if search_rows.classes is not None:
            refuse_for_classes(config)  # the configuration does not say that shards have several
        of_groups = search_rows.grouped, search_rows.lowest_grade
        tried = config.with_candidates(search_rows.size, observer.note, *of_groups)
        directions = [getattr(tried.model.built, "monotone", None), *(p.get("monotone") for p in tried.points)]
        check_monotone(directions, search_rows.rows.schema)
        result: SearchResult = stages("search", search, tried, search_rows, workers, observer)
        self.summary = search_summary(tried, result)
        rows = stages("encode", search_rows.encode, workers, observer)
        return rows, config.model.with_parameters(result.rows[result.chosen].parameters), self.summary


def cross_validate(config: CvConfig, observer: RunObserver, run_stage: StageRunner = call_stage) -> dict[str, Any]:
    """Score the grid on the folds, choose, fit the chosen setting to all training rows, and write the run folder.

    Results of jobs are cached below ``cv-<name>/tasks``: a search that was interrupted resumes from them.

    Raises InputError if the configuration, the data or the folds are wrong; nothing has been written then.
    Raises RunError if every setting failed; the results of finished jobs are in the cache.
    """
    run = SearchRun(config, observer, run_stage)
    refit = run.run()
    return {"run": refit.pop("run"), **run.summary, "refit": refit}


def search_summary(config: CvConfig, result: SearchResult) -> dict[str, Any]:
    """Return the result of a search in types of JSON."""
    nested = None
    if result.nested is not None:
        nested = [
            {"repeat": c.fold.repeat, "fold": c.fold.fold, "parameters": c.parameters, "value": c.value}
            for c in result.nested
        ]
    n_failed = sum(bool(row.errors) for row in result.rows)
    summary: dict[str, Any] = jsonable(
        {
            "best": result.rows[result.chosen].parameters,
            "score": result.score,
            "interval": result.interval,
            "metric": config.measure,
            "rule": config.rule,
            "folds": config.folds.model_dump(mode="json", exclude_none=True),
            "test_over_train": result.test_over_train,
            "table": [row.summary() for row in result.rows],
            "nested": nested,
            "placement": result.placement,
            "tasks": {"all": result.n_jobs, "kept": result.n_cached, "failed": n_failed},
            "seconds": result.seconds,
        }
        | ({} if result.of_classes is None else {"of_classes": result.of_classes})
        | ({} if result.shares is None else {"groups": result.shares})
    )
    return summary

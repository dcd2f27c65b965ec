"""A search from end to end: the folds, the choice, the model of all training rows, and the run folder."""

from typing import Any

from flows.compute.stages import StageRunner, call_stage
from flows.compute.workers import Workers
from flows.config.data import refuse_for_classes
from flows.config.model import ModelConfig
from flows.cv.config import CvConfig
from flows.cv.rows import OpenedSearch, open_search
from flows.cv.search import search
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
        parameters, self.summary = stages("search", search, tried, search_rows, workers, observer)
        rows = stages("encode", search_rows.encode, workers, observer)
        return rows, config.model.with_parameters(parameters), self.summary


def cross_validate(config: CvConfig, observer: RunObserver, run_stage: StageRunner = call_stage) -> dict[str, Any]:
    """Score the grid on the folds, choose, fit the chosen setting to all training rows, and write the run folder.

    Results of jobs are cached below ``cv-<name>/tasks``: a search that was interrupted resumes from them.

    Raises InputError if the configuration, the data or the folds are wrong; nothing has been written then.
    Raises RunError if every setting failed; the results of finished jobs are in the cache.
    """
    run = SearchRun(config, observer, run_stage)
    refit = run.run()
    return {"run": refit.pop("run"), **run.summary, "refit": refit}

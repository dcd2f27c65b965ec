"""Chooses the feature map of a model with `features: auto`, and lam unless it is given, by folds of the training rows."""

import time
import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from aucdist.engine.classes import AnyBlocks, ClassBlocks, of_all_classes, viewed
from aucdist.errors import InputError
from aucdist.estimators.base import BlockClassifier
from aucdist.maps.base import changed, with_weight
from aucdist.metrics.measures import Measure, find_measure
from aucdist.report.text import parameters_text, value_text
from aucdist.search.auto import MOST_FOLDS, AutoSearch, auto_search
from aucdist.search.candidates import left_out
from aucdist.search.choice import Result, Row, choose, interval
from aucdist.search.classes import searched_classes, smallest_class, summary_of_classes
from aucdist.search.fold import check_measure, score_path
from aucdist.search.mask import groups_of, lowest_grade, masked_blocks, row_ids_and_labels
from aucdist.search.schedule import FitJob, run_schedules, search_schedule
from aucdist.search.splits import Folds
from flows.config.model import ModelConfig
from flows.json_values import jsonable
from flows.progress.console import RunObserver, Tasks


@dataclass(frozen=True)
class FeatureChoice:
    """A model with the feature map that folds have chosen, and what was tried.

    `search`: in the form that ``aucdist cv --json`` prints a search.
    """

    model: ModelConfig
    search: dict[str, Any]


def choose_features(model: ModelConfig, rows: AnyBlocks, missing: bool, observer: RunObserver) -> FeatureChoice:
    """Choose a feature map by folds and by the measure that is trained for.

    The rows stay where they are: those outside a fold get weight 0. Folds keep groups whole. Of several classes, one map is
    chosen for all by the mean over them, and the smallest class decides which maps are tried.

    `model`: with `features: auto`.
    `rows`: the training rows, encoded. Each fold fits its own map; their scaling is that of all training rows.
    Raises InputError if no map suits the model and the rows, a class has one row, all rows are of one group, or the
        measure is not one of these rows.
    Raises RunError if every fit failed.
    """
    start, estimator = time.perf_counter(), clone(model.built)
    of_classes = rows if isinstance(rows, ClassBlocks) else None
    blocks = of_all_classes(rows)
    if "random_state" in estimator.get_params() and estimator.random_state is None:
        estimator.set_params(random_state=0)
    row_id, y = row_ids_and_labels(blocks)
    n_pos, n_neg = blocks.n_pos, blocks.n_neg
    if of_classes is not None:
        n_pos, n_neg = smallest_class(of_classes.sets, y, MOST_FOLDS)
    size = {"n_pos": n_pos, "n_neg": n_neg, "n_features": blocks.n_features}
    groups = groups_of(blocks)
    n_groups = None if groups is None else len(np.unique(groups))
    if n_groups == 1:
        raise InputError(
            "`features: auto` chooses by folds that keep groups whole, and all rows are of one group: name a feature map, or "
            "leave the groups out"
        )
    lowest = lowest_grade(blocks)
    search = auto_search(
        estimator, **size, missing=missing, lam=model.lam, n_groups=n_groups, lowest_grade=lowest,
        metric=model.features_metric,
    )  # fmt: skip
    measure = find_measure(search.metric)
    check_measure(measure, n_groups is not None, lowest)
    if (note := left_out(estimator, **size)) is not None:
        observer.note(note)
    strata = None if of_classes is None else y
    folds = Folds(row_id, y, search.n_folds, seed=search.seed, groups=groups, strata=strata)
    folds.check()
    classes = None
    if of_classes is not None:
        classes = searched_classes(of_classes.sets, y, folds, observer.note)
        rows = replace(of_classes, sets=classes.sets)
    table, n_jobs = try_settings(estimator, search, rows, folds, observer)
    chosen = table[choose(table, measure, search.rule)]
    sizes = [folds.sizes(fold) for fold in folds.outer()]
    share = float(np.mean([held_out / n_train for n_train, held_out in sizes]))
    fewest = folds.fewest if classes is None else int(classes.n_rows.min())
    known = [v for v in chosen.values if v is not None]
    spread = interval(known, measure, share, fewest, shares=chosen.shares)
    observer.note(f"{folds.n_folds} folds chose {parameters_text(chosen.parameters)}")
    summary = _summary(table, chosen, search) | {
        "interval": spread,
        **({} if chosen.shares is None else {"groups": chosen.shares}),
        "test_over_train": share,
        "tasks": {"all": n_jobs, "kept": 0, "failed": sum(bool(row.errors) for row in table)},
        "seconds": time.perf_counter() - start,
    }
    if classes is not None:
        summary["of_classes"] = summary_of_classes(classes, chosen.results, table, measure, search.rule, share)
    return FeatureChoice(model.with_parameters(chosen.parameters), jsonable(summary))


def try_settings(
    estimator: BlockClassifier, search: AutoSearch, rows: AnyBlocks, folds: Folds, observer: RunObserver
) -> tuple[list[Row], int]:
    """Fit settings on the training rows of each fold and score them on its other rows.

    `rows`: all rows; rows outside a fold get weight 0.
    Returns `table`, for each point; `n_tasks`.
    """
    n_tasks, measure = 0, find_measure(search.metric)
    rough = clone(estimator).set_params(tol=search.tol)

    def answer(jobs: list[FitJob]) -> list[list[Result]]:
        nonlocal n_tasks
        n_tasks, results = len(jobs), []
        for done, job in enumerate(jobs, 1):
            results.append(_results(rough, job, rows, folds, measure))
            observer.tasks(Tasks(done, n_tasks, 0, f"features {value_text(job.points[0].get('features'))}", None))
        return results

    (table,) = run_schedules([search_schedule(rough, search.points, folds.outer(), measure)], answer)
    return table, n_tasks


def _results(estimator: BlockClassifier, job: FitJob, rows: AnyBlocks, folds: Folds, measure: Measure) -> list[Result]:
    """Return the results of the settings of a job; an error that the data cause becomes their result."""
    train, held_out = (viewed(rows, partial(masked_blocks, inside=side)) for side in folds.sides(job.fold))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the table says what did not converge
        # A solver that does not ignore rows of weight 0 gets the others alone.
        if not estimator.ignores_zero_weight:
            train = viewed(train, partial(changed, change=with_weight))
        try:
            return score_path(estimator, job.points, train, held_out, measure)
        except ValueError as error:  # InputError is one
            return [{"error": str(error)} for _ in job.points]


def _summary(table: list[Row], chosen: Row, search: AutoSearch) -> dict[str, Any]:
    return {
        "best": chosen.parameters,
        "score": chosen.mean,
        "metric": search.metric,
        "rule": search.rule,
        "folds": {"number": search.n_folds, "repeats": 1, "seed": search.seed},
        "table": [row.summary() for row in table],
        "nested": None,
        "placement": "masks",
    }

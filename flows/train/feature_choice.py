"""Chooses the feature map of a model with `features: auto`, and lam unless it is given, by folds of the training rows."""

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from aucdist.engine.blocks import Blocks
from aucdist.estimators.base import BlockClassifier
from aucdist.maps.base import changed, with_weight
from aucdist.metrics.measures import find_measure
from aucdist.report.text import parameters_text, value_text
from aucdist.search.candidates import LAMS, auto_grid, candidates, left_out
from aucdist.search.choice import Result, Row, Rule, choose, interval
from aucdist.search.fold import score_path
from aucdist.search.grid import Point, points_of
from aucdist.search.mask import masked_blocks, row_ids_and_labels
from aucdist.search.schedule import Job, run_schedules, search_schedule
from aucdist.search.splits import Folds
from flows.config.model import ModelConfig
from flows.json_values import jsonable
from flows.progress.console import RunObserver, Tasks

MOST_FOLDS, SEED, METRIC = 5, 0, "auc"
RULE: Rule = "simplest"
LEAST_TOL = 1e-2
"""Fits of the folds end at this relative gap, or at that of the model if it is wider: maps differ by more."""


@dataclass(frozen=True)
class FeatureChoice:
    """A model with the feature map that folds have chosen, and what was tried.

    Attributes
    ----------
    model : ModelConfig
    search : dict
        In the form that ``aucdist cv --json`` prints a search.
    """

    model: ModelConfig
    search: dict[str, Any]


def choose_features(model: ModelConfig, blocks: Blocks, missing: bool, observer: RunObserver) -> FeatureChoice:
    """Choose a feature map by folds. The rows stay where they are: those outside a fold get weight 0.

    Parameters
    ----------
    model : ModelConfig
        With `features: auto`.
    blocks : Blocks
        The training rows, encoded. Each fold fits its own map; their scaling is that of all training rows.
    missing : bool
        Whether values may be missing.
    observer : RunObserver

    Raises
    ------
    InputError
        If no map suits the model and the rows, or a class has one row.
    RunError
        If every fit failed.
    """
    start, estimator = time.perf_counter(), clone(model.built)
    if "random_state" in estimator.get_params() and estimator.random_state is None:
        estimator.set_params(random_state=SEED)
    size = {"n_pos": blocks.n_pos, "n_neg": blocks.n_neg, "n_features": blocks.n_features}
    maps = candidates(estimator, **size, missing=missing)
    if (note := left_out(estimator, **size)) is not None:
        observer.note(note)
    lams = LAMS if model.lam is None else [model.lam]
    points = points_of(estimator, auto_grid(maps, lams if "lam" in estimator.get_params() else None))
    row_id, y = row_ids_and_labels(blocks)
    folds = Folds(row_id, y, max(2, min(MOST_FOLDS, blocks.n_pos, blocks.n_neg)), seed=SEED)
    folds.check()
    table, n_jobs = try_settings(estimator, points, blocks, folds, observer)
    measure = find_measure(METRIC)
    chosen = table[choose(table, measure, RULE)]
    sizes = [folds.sizes(fold) for fold in folds.outer()]
    share = float(np.mean([held_out / n_train for n_train, held_out in sizes]))
    spread = interval([v for v in chosen.values if v is not None], measure, share, min(blocks.n_pos, blocks.n_neg))
    observer.note(f"{folds.n_folds} folds chose {parameters_text(chosen.parameters)}")
    search = _summary(table, chosen, folds.n_folds) | {
        "interval": spread,
        "test_over_train": share,
        "tasks": {"all": n_jobs, "kept": 0, "failed": sum(bool(row.errors) for row in table)},
        "seconds": time.perf_counter() - start,
    }
    return FeatureChoice(model.with_parameters(chosen.parameters), jsonable(search))


def try_settings(
    estimator: BlockClassifier, points: Sequence[Point], blocks: Blocks, folds: Folds, observer: RunObserver
) -> tuple[list[Row], int]:
    """Fit settings on the training rows of each fold and score them on its other rows.

    Parameters
    ----------
    estimator : BlockClassifier
    points : sequence of dict
        Settings, as `aucdist.search.grid.points_of` returns them.
    blocks : Blocks
        All rows; rows outside a fold get weight 0.
    folds : Folds
    observer : RunObserver
        Is called after each task.

    Returns
    -------
    table : list of Row
        For each point.
    n_tasks : int
    """
    n_tasks = 0

    def answer(jobs: list[Job]) -> list[list[Result]]:
        nonlocal n_tasks
        n_tasks, results = len(jobs), []
        for done, job in enumerate(jobs, 1):
            results.append(_results(estimator, job, blocks, folds))
            observer.tasks(Tasks(done, n_tasks, 0, f"features {value_text(job.points[0].get('features'))}", None))
        return results

    (table,) = run_schedules([search_schedule(estimator, points, folds.outer(), find_measure(METRIC))], answer)
    return table, n_tasks


def _results(estimator: BlockClassifier, job: Job, blocks: Blocks, folds: Folds) -> list[Result]:
    """Return the results of the settings of a job; an error that the data cause becomes their result."""
    train, held_out = (masked_blocks(blocks, side) for side in folds.sides(job.fold))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the table says what did not converge
        # A solver that does not ignore rows of weight 0 gets the others alone.
        rows: Blocks = train if estimator.ignores_zero_weight else changed(train, with_weight)
        try:
            return score_path(estimator, job.points, rows, held_out, find_measure(METRIC))
        except ValueError as error:  # InputError is one
            return [{"error": str(error)} for _ in job.points]


def _summary(table: list[Row], chosen: Row, n_folds: int) -> dict[str, Any]:
    return {
        "best": chosen.parameters,
        "score": chosen.mean,
        "metric": METRIC,
        "rule": RULE,
        "folds": {"number": n_folds, "repeats": 1, "seed": SEED},
        "table": [row.summary() for row in table],
        "nested": None,
        "placement": "masks",
    }

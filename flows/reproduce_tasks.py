"""One fold of one system on one data set: a task that any process can run, from JSON to JSON."""

import functools
import json
import time
import warnings
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from aucdist.data.block import Block
from aucdist.data.preprocess import fit_preprocessor
from aucdist.data.readers import read
from aucdist.data.source import Source
from aucdist.engine.blocks import LocalBlocks, block_seed
from aucdist.errors import RunError
from aucdist.estimators import ESTIMATORS
from aucdist.metrics.auc import auc
from aucdist.metrics.counts import ScoreCounts
from aucdist.selection.folds import arrival, fold_numbers
from aucdist.solvers.all_pairs import all_pairs
from aucdist.solvers.base import solve
from aucdist.solvers.pair_objective import pairwise_objective

Params = dict[str, Any]
OPTIMUM_GAP = 1e-4


@dataclass(frozen=True)
class Task:
    """A fold of a system on a data set: all that decides its result, in types of JSON.

    Attributes
    ----------
    kind : {"table", "course"}
    source : dict
        Of `Source`.
    fingerprint : str
        Of the data set as the client read it: other bytes are another task.
    estimator : str
    points : list of dict
        Parameters of the estimator: one for each point of the grid, or the one of a course.
    protocol : dict
        Of `Protocol`.
    repeat, fold : int
    steps : str or None
        For a course: the parameter that limits the steps.
    every, until : int
        For a course: where to look.
    """

    kind: str
    source: Params
    fingerprint: str
    estimator: str
    points: list[Params]
    protocol: Params
    repeat: int
    fold: int
    steps: str | None = None
    every: int = 0
    until: int = 0

    def as_dict(self) -> Params:
        """Return it in types of JSON."""
        return asdict(self)


def run(task: Task) -> Params:
    """Do a task and return its result in types of JSON.

    Raises
    ------
    RunError
        If the data are no longer those that the client read.
    """
    start = time.perf_counter()
    train, test = _parts(task)
    with warnings.catch_warnings():
        # Some points of a grid are hopeless, and the papers' solvers stop after a number of steps whatever they have reached.
        warnings.simplefilter("ignore")
        found = _table(task, train, test) if task.kind == "table" else _course(task, train, test)
    return found | {"seconds": time.perf_counter() - start}


def _parts(task: Task) -> tuple[Block, Block]:
    """Return the training rows, in the order in which they arrive, and the test rows."""
    data = _dataset(Source.model_validate(task.source).model_dump_json())
    if data.fingerprint != task.fingerprint:
        raise RunError(f"{task.source['source']}: a worker reads other data there than the client did")
    block, seed, repeat = data.block, task.protocol["seed"], task.repeat
    fold = fold_numbers(block.row_id, block.y, task.protocol["folds"], block_seed(seed, repeat, 0))
    order = arrival(block.row_id, block_seed(seed, repeat, 1))
    train = block.take(order[fold[order] != task.fold])
    test = block.take(np.flatnonzero(fold == task.fold))
    scaling = fit_preprocessor(
        [train], data.schema.feature_names, log1p=None, scale=task.protocol["scale"], categories=data.schema.categories
    )
    return scaling.transform(train), scaling.transform(test)


@functools.lru_cache(maxsize=4)
def _dataset(source: str) -> Any:
    return read(Source.model_validate_json(source))


def _table(task: Task, train: Block, test: Block) -> Params:
    """Return the test AUC at every point of the grid (`best`), or at the chosen one alone; None elsewhere."""
    which = list(range(len(task.points)))
    if task.protocol["choose"] == "cv" and len(which) > 1:
        which = [_chosen(task, train)]
    elif task.protocol["choose"] == "once" and len(which) > 1:
        which = [_chosen_once(json.dumps(replace(task, repeat=0, fold=0).as_dict()))]
    areas: list[float | None] = [None] * len(task.points)
    for i in which:
        areas[i] = _area(_fitted(task, task.points[i], train), test)
    return {"auc": areas}


@functools.lru_cache(maxsize=64)
def _chosen_once(first: str) -> int:
    """Return what is chosen on the first training part, found once in a process for all folds of a system on a data set."""
    task = Task(**json.loads(first))
    return _chosen(task, _parts(task)[0])


def _chosen(task: Task, train: Block) -> int:
    """Return the point of the grid with the highest mean AUC over folds of the training rows."""
    seed = block_seed(task.protocol["seed"], task.repeat, 2 + task.fold)
    fold = fold_numbers(train.row_id, train.y, task.protocol["inner_folds"], seed)
    means = np.zeros(len(task.points))
    for number in range(task.protocol["inner_folds"]):
        inner, held_out = train.take(fold != number), train.take(fold == number)
        means += [_area(_fitted(task, point, inner), held_out) for point in task.points]
    return int(np.argmax(means))


def _course(task: Task, train: Block, test: Block) -> Params:
    """Return test AUC and training objective after every so many steps, and the least objective there is."""
    lam, blocks = task.points[0]["lam"], LocalBlocks([train])
    steps = list(range(task.every, task.until + 1, task.every))
    if task.steps is None:
        n_pairs = blocks.n_pos * blocks.n_neg
        parts = [_arrived(train, limit) for limit in steps]
        points = [task.points[0] | {"n_pairs": n_pairs}] * len(steps)
    else:
        parts = [train] * len(steps)
        points = [task.points[0] | {task.steps: limit} for limit in steps]
    areas, objectives = [], []
    for part, point in zip(parts, points, strict=True):
        model = _fitted(task, point, part)
        areas.append(_area(model, test))
        objectives.append(pairwise_objective(blocks, model.coef_[0], lam))
    optimum = solve(all_pairs(blocks, lam), tol=OPTIMUM_GAP, max_passes=5000).certificate
    return {"steps": steps, "auc": areas, "objective": objectives, "optimum": optimum.as_dict()}


def _arrived(train: Block, n_pairs: int) -> Block:
    """Return as many of the first rows as make at most so many pairs, but at least one."""
    pairs = np.cumsum(train.y > 0) * np.cumsum(train.y < 0)
    n = max(int(np.searchsorted(pairs, n_pairs, side="right")), int(np.argmax(pairs > 0)) + 1)
    return train.take(np.arange(n))


def _fitted(task: Task, point: Params, train: Block) -> Any:
    seed = block_seed(task.protocol["seed"], task.repeat, task.fold) % 2**31
    return ESTIMATORS[task.estimator](**point, random_state=seed).fit(LocalBlocks([train]))


def _area(model: Any, test: Block) -> float:
    return auc(ScoreCounts.from_scores(test.y, model.decision_function(test.X)))

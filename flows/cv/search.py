"""The search itself: its courses, the jobs they ask for, where these run, and what comes of it."""

import math
import os
import time
import uuid
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from aucdist.errors import RunError
from aucdist.metrics.measures import Measure, find_measure
from aucdist.search.choice import Result, Row, choose, interval
from aucdist.search.schedule import Halving, Job, course, run
from aucdist.search.splits import Fold, Sides
from flows.cv.config import CvConfig, reads_in_place
from flows.cv.executors import Done, here, in_turns, on_workers
from flows.cv.jobs import How, on_masked_rows, on_own_rows, on_worker
from flows.cv.result_cache import Kept
from flows.cv.rows import Rows
from flows.cv.store import Store, placed
from flows.progress.console import RunObserver, Tasks

COPIES = 3  # a task holds all rows, its own ones, and these scaled


@dataclass(frozen=True)
class Choice:
    """What a fold of nested cross-validation chose on its training rows, and the value on its held-out rows."""

    cut: Fold
    parameters: dict[str, Any] | None
    value: float | None


@dataclass(frozen=True)
class Found:
    """What a search has found.

    Attributes
    ----------
    rows : list of Row
        In the order of the grid.
    chosen : int
        Position in `rows`.
    nested : list of Choice or None
        Fold by fold.
    score : float or None
        The mean over the folds: with `nested` of what each fold chose, else of the chosen setting, which flatters.
    interval : (float, float) or None
    test_over_train : float
        Held-out rows per training row.
    placement : {"tasks", "masks"}
    jobs, kept : int
        How many there were, and how many of them were there from an earlier search.
    seconds : float
    """

    rows: list[Row]
    chosen: int
    nested: list[Choice] | None
    score: float | None
    interval: tuple[float, float] | None
    test_over_train: float
    placement: str
    jobs: int
    kept: int
    seconds: float


def search(config: CvConfig, rows: Rows, client: Any, scratch: str, observer: RunObserver) -> Found:
    """Try every setting on every fold, and choose.

    Parameters
    ----------
    config : CvConfig
    rows : Rows
    client : distributed.Client or None
        None: this process.
    scratch : str
        A folder or URL that the workers can read.
    watch : Watch

    Raises
    ------
    RunError
        If every setting failed.
    """
    start = time.perf_counter()
    measure, cuts = find_measure(config.metric), rows.cuts
    store = rows.store(config.blocks, client)
    placement, why = _placement(config, store.n_bytes, client)
    observer.note(f"placement: {placement}, {why}")
    desk = _Desk(config, rows, store, placement, client, scratch, observer)
    halving = None if config.halving is None else Halving(config.halving.first_passes, config.halving.factor)
    sets = [cuts.outer()] + [cuts.inner(cut) for cut in cuts.outer() if config.nested is not None]
    courses = [course(config.model.built, config.points, cut, measure, halving) for cut in sets]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the results say it
        plain, *inner = run(courses, desk.answer)
    chosen = choose(plain, measure, config.rule)
    nested = _nested(config, plain, inner, cuts.outer(), measure) if config.nested is not None else None
    values = plain[chosen].values if nested is None else [choice.value for choice in nested]
    known = [value for value in values if value is not None]
    score = float(np.mean(known)) if len(known) == len(values) else None
    sizes = [cuts.sizes(cut) for cut in cuts.outer()]
    share = float(np.mean([held_out / train for train, held_out in sizes]))
    fewest = int(min((cuts.y == label).sum() for label in (-1, 1)))
    spread = None if score is None else interval(known, measure, share, fewest)
    seconds = time.perf_counter() - start
    return Found(plain, chosen, nested, score, spread, share, placement, desk.n_jobs, desk.n_kept, seconds)


def _nested(
    config: CvConfig, plain: list[Row], inner: list[list[Row]], cuts: list[Fold], measure: Measure
) -> list[Choice]:
    """Return for each fold what its own training rows would have chosen, and how that did on its held-out rows."""
    choices = []
    for k, (cut, rows) in enumerate(zip(cuts, inner, strict=True)):
        try:
            i = choose(rows, measure, config.rule)
        except RunError:
            choices.append(Choice(cut, None, None))
        else:
            choices.append(Choice(cut, rows[i].parameters, plain[i].values[k]))
    return choices


def _placement(config: CvConfig, n_bytes: int, client: Any) -> tuple[str, str]:
    """Return where the folds' rows are to be, and why."""
    if config.placement != "auto":
        return config.placement, "as configured"
    if not all(reads_in_place(clone(config.model.built).set_params(**point)) for point in config.points):
        return "tasks", "the solver works on rows of its own"
    memory = _memory(client)
    needed = f"a task needs about {COPIES * n_bytes / 2**20:,.0f} MiB of {memory / 2**20:,.0f}"
    return ("tasks", needed) if COPIES * n_bytes <= memory / 2 else ("masks", f"{needed}, more than half")


def _memory(client: Any) -> float:
    """Return the bytes that one task may use at most."""
    if client is None:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    return min(((w["memory_limit"] or math.inf) / max(w["nthreads"], 1) for w in workers), default=math.inf)


@dataclass
class _Desk:
    """Answers jobs: by what is kept, else by having them done; keeps what comes, and tells how it goes."""

    config: CvConfig
    rows: Rows
    store: Store
    placement: str
    client: Any
    scratch: str
    observer: RunObserver
    n_jobs: int = 0
    n_kept: int = 0
    n_failed: int = 0
    _place: Callable[[list[Job]], Done] | None = None
    _values: dict[str, list[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        config = self.config
        url = f"{config.output.rstrip('/')}/cv-{config.name}/tasks"
        self.how = How(
            type(config.model.built).__name__, config.model.built.get_params(), config.metric, self.rows.encoding,
            config.folds.seed,
        )  # fmt: skip
        self._kept = Kept(url, _deciding(config, self.rows, self.store.n_blocks))

    def answer(self, jobs: list[Job]) -> list[list[Result]]:
        """Return the results of each job."""
        there = {i: found for i, job in enumerate(jobs) if (found := self._kept.get(job)) is not None}
        left = [i for i in range(len(jobs)) if i not in there]
        self.n_jobs, self.n_kept = self.n_jobs + len(jobs), self.n_kept + len(there)
        for i, results in there.items():
            self._note(jobs[i], results)
        begun, n_new = time.monotonic(), 0
        self._tell(len(jobs), len(left), None)
        for k, results in self._done([jobs[i] for i in left]) if left else ():
            i = left[k]
            there[i], n_new = results, n_new + 1
            if any("error" in result for result in results):
                self.n_failed += 1
                self.observer.note(f"failed: fold {_words(jobs[i].cut)}: {results[0].get('error')}")
            else:
                self._kept.put(jobs[i], results)
            self._note(jobs[i], results)
            rest = len(left) - n_new
            self._tell(len(jobs), rest, (time.monotonic() - begun) / n_new * rest)
        return [there[i] for i in range(len(jobs))]

    def _done(self, jobs: list[Job]) -> Done:
        if self._place is None:
            self._place = self._placed()
        return self._place(jobs)

    def _placed(self) -> Callable[[list[Job]], Done]:
        """Put the rows where the jobs will find them."""
        store, client, loader = self.store, self.client, None
        if client is not None:
            loader = store.loader(self.rows.opened.schema, f"{self.scratch}/search")
        if self.placement == "masks":
            blocks = placed(store, loader, client)
            some = here if client is None else in_turns
            return lambda jobs: some(jobs, self._sides, on_masked_rows, self.how, store, blocks)
        if client is None:
            return lambda jobs: here(jobs, self._sides, on_own_rows, self.how, store.blocks)
        args = (self.how, uuid.uuid4().hex, loader, store.n_blocks)
        return lambda jobs: on_workers(jobs, self._sides, on_worker, *args, client=client)

    def _sides(self, job: Job) -> Sides:
        return self.rows.cuts.sides(job.cut)

    def _note(self, job: Job, results: list[Result]) -> None:
        for point, result in zip(job.points, results, strict=True):
            if "value" in result and job.cut.inner is None:
                text = ", ".join(f"{name} {_shown(value)}" for name, value in point.items())
                self._values.setdefault(text, []).append(result["value"])

    def _tell(self, total: int, left: int, seconds_left: float | None) -> None:
        sign = find_measure(self.config.metric).sign
        means = {text: (len(values), sign * float(np.mean(values))) for text, values in self._values.items()}
        best = max(means, key=lambda text: means[text], default=None)
        words = "" if best is None else f"best so far {self.config.metric} {abs(means[best][1]):.4f} at {best}"
        self.observer.tasks(Tasks(total - left, total, self.n_failed, words, seconds_left))


def _shown(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _words(cut: Fold) -> str:
    inner = "" if cut.inner is None else f", inner fold {cut.inner + 1}"
    return f"{cut.fold + 1} of repeat {cut.repeat + 1}{inner}"


def _deciding(config: CvConfig, rows: Rows, n_blocks: int) -> dict[str, Any]:
    """Return what decides all results alike."""
    data = config.data.model_dump(mode="json", exclude={"name", "source"})
    folds = config.folds.model_dump(
        mode="json", exclude={"repeats"}
    )  # more of them leave those that are kept as they are
    model = {"estimator": type(config.model.built).__name__, **config.model.built.get_params()}
    about = {"fingerprint": rows.opened.fingerprint, "data": data, "folds": folds, "blocks": n_blocks, "model": model}
    return about | {"metric": config.metric, "nested": config.nested}

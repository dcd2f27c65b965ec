"""The stages of training that a search uses as well: fit an estimator, evaluate it, and profile the training rows.

The module also has the checkpoints of a fit: where they are, when they are written, and how a terminated run writes a last one.

Two classes are treated like several: each stage processes the models of the estimator and the rows of their classes in parallel
lists.
"""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from aucdist import __version__
from aucdist.data.own_files import json_digest
from aucdist.data.storage.files import absolute, names_in, remove
from aucdist.drift.leaks import RowDigests, Warned, count_known, leak_warnings, row_digests
from aucdist.drift.profile import Profile, fit_columns, score_bins
from aucdist.engine.blocks import Blocks
from aucdist.engine.checkpoint import Journal
from aucdist.engine.view import AnyBlocks, ClassBlocks
from aucdist.errors import InputError, Json
from aucdist.estimators.calibration import out_of_fold
from aucdist.estimators.fitting import FitResult, WarmStart, fit_rows, give_warnings
from aucdist.estimators.ranking import RankingClassifier
from aucdist.estimators.scores import count_costs, count_scores, errors_name_class, map_for_model
from aucdist.metrics.decisions import CostCounts, Costs, best_threshold
from aucdist.metrics.ranking import auc_interval
from aucdist.model.linear_model import LinearModel
from aucdist.search.folds import MIN_ROWS
from flows.config.cluster import CheckpointConfig
from flows.config.model import ModelConfig, OperatingPointConfig
from flows.progress import RunObserver, warnings_to
from flows.rows.rows import TrainTestBlocks, TrainTestRows
from flows.run_folder.folder import score_test_rows
from flows.run_folder.results import ClassEvaluation, Evaluation, group_results, scored_rows, threshold_by

FEW_OF_CLASS = 1000
"""If a class has fewer rows than this and there is no operating point, out-of-fold scores set the threshold of a model with a
feature map. Over 25 tables, the G-mean of bins on test rows is then 0.06 higher on average. With more rows, it is nowhere higher
by 0.005."""
SIGTERM_SECONDS = 20
"""The number of seconds that the current round may still take after SIGTERM. Kubernetes kills a process after 30."""


class Checkpoints:
    """The checkpoints of the fits of a run. Each class has a folder of its own; two classes have one fit.

    If the fit of a class has converged, its last checkpoint is that of the last round. A run that resumes then takes no rounds
    for this class. The other classes resume from their last checkpoints.

    Parameters
    ----------
    url : str
        The folder of the checkpoints.
    identity : dict
        The values that determine the result of the fit to the last bit, except for the class.
    train : AnyBlocks
        The training rows.
    config : CheckpointConfig
        The configuration of the checkpoints.
    note : callable
        Called with each remark for the user.

    Attributes
    ----------
    blocks : AnyBlocks
        The training rows, as blocks that record the values that a checkpoint needs.
    """

    def __init__(
        self, url: str, identity: Json, train: AnyBlocks, config: CheckpointConfig, note: Callable[[str], None]
    ):
        self._url, self._identity, self._config, self._note = url, identity, config, note
        self._journals: dict[str, Journal] = {}
        self._terminate: Callable[[], None] | None = None  # a function that ends the process after a SIGTERM
        self._names = [] if train.sets is None else train.sets.names()
        self.blocks: AnyBlocks = (
            replace(train, record_steps=self._record_steps)
            if isinstance(train, ClassBlocks)
            else self._record_steps(None, train)
        )

    def _record_steps(self, k: int | None, blocks: Blocks) -> Blocks:
        """Return rows as blocks that record the values that a checkpoint needs.

        `k` is the number of the class if there are several.
        """
        name, url, identity = "", self._url, self._identity
        if k is not None:
            name, url = self._names[k], f"{url}/class-{k:05d}"
            identity = identity | {"class": name}

        def note(text: str) -> None:
            self._note(f"class {name!r}: {text}" if name else text)

        journal = self._journals[name] = Journal(url, identity, blocks, note)
        return journal.blocks

    def round_done(self, name: str, last: bool) -> None:
        """Write a checkpoint of the class with this name, if it is time to do so.

        This is so if the last checkpoint is old enough, if this is the `last` round, or if a SIGTERM has arrived. After a
        SIGTERM, the main thread then ends the process.
        """
        self._journals[name].round_done(
            self._config.rounds, self._config.seconds, now=last or self._terminate is not None
        )
        if self._terminate is not None and threading.current_thread() is threading.main_thread():
            self._terminate()

    def remove(self) -> None:
        """Remove the checkpoints. The run folder must be complete."""
        remove(self._url)
        above = self._url.rpartition("/")[0]
        if not names_in(above):
            remove(above)

    @contextmanager
    def finish_round_on_sigterm(self) -> Iterator[None]:
        """Delay SIGTERM until the running fits have written checkpoints, for `SIGTERM_SECONDS` seconds at most."""
        if threading.current_thread() is not threading.main_thread():
            yield  # Python handles signals only in the main thread
            return
        before = signal.getsignal(signal.SIGTERM)

        def terminate() -> None:
            signal.signal(signal.SIGTERM, before)
            signal.alarm(0)
            signal.raise_signal(signal.SIGTERM)

        def on_sigterm(number: int, frame: Any) -> None:
            if self._terminate is not None:  # this is the second SIGTERM
                terminate()
            self._terminate = terminate
            signal.alarm(SIGTERM_SECONDS)

        alarm_before = signal.signal(signal.SIGALRM, lambda number, frame: terminate())
        signal.signal(signal.SIGTERM, on_sigterm)
        try:
            yield
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, alarm_before)
            signal.signal(signal.SIGTERM, before)


def open_checkpoints(
    config: Any, model: ModelConfig, fingerprint: str, train: AnyBlocks, observer: RunObserver
) -> Checkpoints | None:
    """Open the checkpoints of a fit, which may resume from them.

    Parameters
    ----------
    config : object
        The configuration of the run. The last fit of a search has no checkpoints.
    model : ModelConfig
        The model that is fitted. It differs from that of the configuration if its features are chosen first.
    fingerprint : str
        The fingerprint of the data.
    train : AnyBlocks
        The training rows.
    observer : RunObserver
        The observer that receives a note if the fit resumes.

    Returns
    -------
    Checkpoints or None
        None if the configuration asks for none.

    Raises
    ------
    InputError
        If the folder has checkpoints of another fit.
    """
    if config.checkpoint is None:
        return None
    blocks = train.all_blocks()
    identity = {  # the values that determine the result of the fit to the last bit
        "aucdist": __version__,
        "data": fingerprint,
        "encoding": json_digest(config.data.model_dump(mode="json"))[:16],
        "blocks": f"{blocks.n_blocks} {json_digest([(i.n_samples, i.n_pos, i.weight_pos) for i in blocks.infos])[:16]}",
        "estimator": model.estimator,
        "parameters": {
            key: repr(v) for key, v in model.built.plain_params().items() if v is not None and key != "verbose"
        },
    }
    scratch = getattr(config.cluster, "scratch", None)
    folder = config.checkpoint.url or (
        f"{scratch.rstrip('/')}/checkpoints" if scratch else f"{config.output}/.checkpoints"
    )
    url = f"{absolute(folder).rstrip('/')}/{config.checkpoint.id or f'{config.name}-{json_digest(identity)[:16]}'}"
    return Checkpoints(url, identity, train, config.checkpoint, observer.note)


# ---- the stages ------------------------------------------------------------------------------------------------------


def drop_small_classes(
    rows: TrainTestRows, blocks: TrainTestBlocks, observer: RunObserver
) -> tuple[TrainTestRows, TrainTestBlocks]:
    """Return the rows with the classes that can be fitted. A remark names the classes that are left out."""
    train, test_sets = blocks.train, rows.test_sets
    if not isinstance(train, ClassBlocks) or test_sets is None:
        return rows, blocks
    known = train.sets
    n = train.blocks.sum(lambda block: known.counts(block.code))
    enough = np.minimum(n, train.n_samples - n) >= MIN_ROWS
    if enough.all():
        return rows, blocks
    if not enough.any():
        raise InputError(
            f"no class has at least {MIN_ROWS} training rows and as many rows outside it: add rows, or join rare classes"
        )
    names = known.names()
    for k in np.flatnonzero(~enough).tolist():
        observer.note(f"class {names[k]!r} has {n[k]} of {train.n_samples} training rows, and is left out")
    chosen = np.flatnonzero(enough).tolist()
    sets, test_sets = known.only(chosen), test_sets.only(chosen)
    schema = replace(rows.schema, classes=tuple(sets.names()))
    test = blocks.test and ClassBlocks(blocks.test.all_blocks(), test_sets)
    calibration = blocks.calibration and ClassBlocks(blocks.calibration.all_blocks(), sets)
    rows = replace(rows, schema=schema, sets=sets, test_sets=test_sets)
    return rows, TrainTestBlocks(ClassBlocks(train.blocks, sets), test, calibration)


def fit(
    model: ModelConfig,
    train: AnyBlocks,
    observer: RunObserver,
    checkpoints: Checkpoints | None,
    starts: Sequence[WarmStart | None] | None,
) -> tuple[Any, list[FitResult], list[Warned]]:
    """Return the fitted estimator, the results of the fit of each class, and the kind and the text of each warning.

    Rounds and warnings are reported to `observer`, and each round may write a checkpoint.

    Parameters
    ----------
    model : ModelConfig
        The model to fit.
    train : AnyBlocks
        The training rows.
    observer : RunObserver
        Reports the progress of the run.
    checkpoints : Checkpoints or None
        The checkpoints of the fit, if it has some.
    starts : sequence of WarmStart or None or None
        The weights that the fits start from, see `start_weights`.
    """
    estimator = model.built

    def round_done(record: Json) -> None:
        observer.round(record, estimator.tol)
        if checkpoints is not None:
            name = record.get("class", "")
            checkpoints.round_done(name, last=bool(name) and record["relative_gap"] <= estimator.tol)

    with (
        warnings_to(observer) as warned,
        nullcontext() if checkpoints is None else checkpoints.finish_round_on_sigterm(),
    ):
        rows = train if checkpoints is None else checkpoints.blocks
        fits = fit_rows(estimator, rows, callback=round_done, starts=starts, keep_counts=True)
        give_warnings(estimator, fits)
    return estimator, fits, warned


def evaluate_fits(
    estimator: Any,
    fits: Sequence[FitResult],
    blocks: TrainTestBlocks,
    observer: RunObserver,
    point: OperatingPointConfig | None,
    rows_per_day: float | None,
) -> Evaluation:
    """Count the scores of training and test rows, return those of the test rows, and set the threshold of each class.

    Training rows are only scored again if the fit has not counted their scores. If the operating point uses the cost column, the
    costs of training rows at each score are added up, too. Warnings are reported to `observer`.

    Parameters
    ----------
    estimator : object
        The estimator.
    fits : sequence of FitResult
        The results of the fits.
    blocks : TrainTestBlocks
        The training rows and test rows.
    observer : RunObserver
        Reports the progress of the run.
    point : OperatingPointConfig or None
        The operating point.
    rows_per_day : float or None
        The number of training rows per day, if rows are split by a column of dates.
    """
    own_costs, models = None if point is None else point.row_costs, estimator.class_models
    set_on = rows_of_threshold(estimator, blocks, point)
    calibration: Any = [None] * len(models)
    if set_on == "threshold_rows":
        assert blocks.calibration is not None
        calibration = list(blocks.calibration.each_class())
    unscored: Any = [None] * len(models), None, None
    tested, table, scores = unscored if blocks.test is None else score_test_rows(blocks.test, models)
    classes, thresholds = [], []
    by_class = zip(models, blocks.train.each_class(), calibration, fits, tested, strict=True)
    for k, (model, rows, held_out, fit, test_counts) in enumerate(by_class):
        train = fit.counts or count_model_scores(model, rows)
        costs = None if own_costs is None else count_model_scores(model, rows, own_costs)
        threshold_counts, guarantee = costs or train, None
        if held_out is not None:
            threshold_counts = count_model_scores(model, held_out, own_costs)
        elif set_on == "out_of_fold":
            threshold_counts = fit.out_of_fold_counts if own_costs is None else None
            threshold_counts = threshold_counts or out_of_fold(model, rows, own_costs)
        if point is not None:
            with errors_name_class(estimator, k):
                fitted = train if set_on == "out_of_fold" else None
                threshold, guarantee = threshold_by(point, threshold_counts, rows_per_day, fitted)
            thresholds.append(threshold)
        elif set_on == "out_of_fold":
            thresholds.append(best_threshold(threshold_counts))
        if test_counts is not None and min(test_counts.n_pos, test_counts.n_neg) == 0:
            test_counts = None
        if isinstance(threshold_counts, CostCounts):
            threshold_counts = train
        classes.append(ClassEvaluation(train, test_counts, None, threshold_counts, costs, guarantee))
    with warnings_to(observer) as warned:
        classes = [
            row._replace(interval=None if row.reported[1].weighted else auc_interval(row.reported[1]))
            for row in classes
        ]
    if thresholds:
        estimator.set_raw_threshold(thresholds)
    groups = test = None
    if isinstance(blocks.train, Blocks):
        groups = group_results(blocks.train, table, scores, estimator.group_weight or "pairs")
    if blocks.test is not None:
        test = scored_rows(estimator, blocks.test, table, scores)
    return Evaluation(classes, test, groups, set_on, warned)


def rows_of_threshold(estimator: Any, blocks: TrainTestBlocks, point: OperatingPointConfig | None) -> str:
    """Return the name of the rows that set the threshold: ``training``, ``out_of_fold`` or ``threshold_rows``."""
    if point is not None and blocks.calibration is not None:
        return "threshold_rows"
    fewest = min(min(b.n_neg, b.n_pos) for b in blocks.train.each_class())
    by_default = (
        isinstance(estimator, RankingClassifier)
        and estimator.features is not None
        and fewest < FEW_OF_CLASS
        and isinstance(blocks.train, Blocks)
        and not blocks.train.has_groups
    )
    return "out_of_fold" if fewest > 1 and (by_default if point is None else point.out_of_fold) else "training"


def count_model_scores(model: Any, rows: Blocks, costs: Costs | None = None) -> Any:
    """Return the number of rows with each score of a model. If rows have costs, return the costs at each score instead."""
    rows, w = map_for_model(model, rows), model.coef_[0]
    return count_scores(rows, w) if costs is None else count_costs(rows, w, costs)


def profile(
    estimator: Any, rows: TrainTestRows, blocks: TrainTestBlocks, evaluation: Evaluation
) -> tuple[Profile, RowDigests, list[Warned]]:
    """Return the profile of the training rows, the digests by which rows are recognised, and warnings about the rows.

    `aucdist watch` compares new rows with the profile. The warnings are those of `aucdist.drift.leaks`. If the data are wide,
    the profile has only the columns that change the scores most. For several classes, these are the columns that change the
    scores of all classes together.
    """
    train, test = blocks.train.all_blocks(), None if blocks.test is None else blocks.test.all_blocks()
    coef = np.zeros(0)
    if hasattr(estimator, "coef_"):
        coef = np.abs(estimator.coef_ / estimator.class_spreads[:, np.newaxis]).sum(axis=0)
    columns, digests = fit_columns(train, rows.schema, rows.preprocessor, coef), train.sum(row_digests)
    checked, known = (0, 0) if test is None else test.sum(count_known, digests).tolist()
    bins, several = [], estimator.has_several_classes
    for model, class_evaluation, spread in zip(
        estimator.class_models, evaluation.classes, estimator.class_spreads.tolist(), strict=True
    ):
        part, counts = class_evaluation.reported
        score_profile = score_bins(counts, part, model.decision_intercept)
        bins.append(replace(score_profile, edges=tuple(edge / spread for edge in score_profile.edges)))
    return Profile(
        rows.train.n_samples, rows.train.n_features, columns, None if several else bins[0], checked, known,
        class_scores=dict(zip(rows.schema.classes, bins, strict=False)),
    ), digests, [] if several else [*leak_warnings(train, test, rows.schema, known=known, checked=checked)]  # fmt: skip


# ---- starting a fit from the weights of an earlier model ----------------------------------------------------------------------


def start_weights(
    model: LinearModel, estimator: Any, rows: TrainTestRows, observer: RunObserver
) -> list[WarmStart | None] | None:
    """Return the start of the fit of each class: the weights of a model, if its features are the same. A remark reports this.

    The optimum does not depend on the start, within the tolerance. If features are scaled, the weights are converted to the
    scaling of the new rows. For several classes, each class starts from the weights of the same class, or from zero if the
    model does not have this class."""
    old, new, several = model.preprocessor, rows.preprocessor, rows.sets is not None
    scales = {old.scale, new.scale}
    reasons = {
        f"the model in use is of {'two' if several else 'several'} classes": bool(model.classes) != several,
        "the model in use is of another kind": model.about.get("estimator") != type(estimator).__name__
        or not hasattr(estimator, "warm_start"),
        "the solver always does": not estimator.resolved_solver.accepts_start,
        "feature maps are fitted anew": model.feature_map is not None
        or getattr(estimator, "features", None) is not None,
        "its features are others": model.schema.feature_names != rows.schema.feature_names or old.log1p != new.log1p,
        "its features are scaled in another way": "unit-row" in scales and len(scales) > 1,
    }
    if (cannot := next((reason for reason, holds in reasons.items() if holds), None)) is not None:
        observer.note(f"the fit starts from zero: {cannot}")
        return None
    before, now = (1.0 if scaling.factor is None else scaling.factor for scaling in (old, new))
    known = [WarmStart(weights.coef * before / now, weights.intercept) for weights in model.weights]
    if rows.sets is None:
        observer.note("the fit starts from the weights in use")
        return [*known]
    starts, names = dict(zip(model.classes, known, strict=True)), rows.sets.names()
    observer.note(f"{sum(name in starts for name in names)} of {len(names)} classes start from the weights in use")
    return list(map(starts.get, names))

"""A training run. Its stages are plain functions here, and tasks in `flows.orchestration.flows`.

The module also makes the additional fits of a run: those of folds that choose the feature map, those for the shapes in the
report, and those of baseline models.
"""

import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.base import clone

from aucdist.data.own_files import jsonable
from aucdist.engine.blocks import Blocks
from aucdist.engine.view import AnyBlocks
from aucdist.errors import ClusterLost, InputError, Json
from aucdist.estimators.fitting import fit_rows
from aucdist.estimators.monotone import directions_as_parameter
from aucdist.extras import load_optional
from aucdist.maps.bins import BinMap
from aucdist.maps.explain import values_at_bins
from aucdist.metrics.ranking import auc
from aucdist.model.batch_scoring import has_costs
from aucdist.model.files import load_model
from aucdist.search.fold_scores import training_rows
from aucdist.search.folds import gather_columns
from aucdist.text import parameters_text, value_text
from flows.compute.clusters import Stages, Workers, fixed_worker_set, open_cluster, s3_as_configured
from flows.config.data import check_keys_for_classes, source_of
from flows.config.model import ModelConfig, ShapesConfig
from flows.progress import REPORT, MetricsObserver, RunObserver
from flows.rows.rows import TrainTestBlocks, TrainTestRows
from flows.rows.source import check_costs_of_rows, check_monotone, named_groups, open_source
from flows.run_folder.folder import fit_name, run_folder, timestamped, unfinished_runs
from flows.run_folder.publish import publish
from flows.run_folder.results import Bands, Baseline, FittedRun, run_result
from flows.train.config import TrainConfig
from flows.train.stages import (
    Checkpoints,
    count_model_scores,
    drop_small_classes,
    evaluate_fits,
    fit,
    open_checkpoints,
    profile,
    start_weights,
)

MIN_ROWS = 100
"""Baselines are fitted with at least this many training rows."""
MAX_VALUES = 2**24
"""Baselines are fitted with at most this many values, which bounds the time."""


def choose_feature_map(
    model: ModelConfig, rows: AnyBlocks, missing: bool, whole: np.ndarray | None, observer: RunObserver
) -> tuple[ModelConfig, Json | None]:
    """Choose the feature map of a model with `features: auto` by folds.

    See `aucdist.search.auto.choose_features`.

    Returns
    -------
    tuple (ModelConfig, dict or None)
        The model with the chosen map, and the search in the form of ``aucdist cv --json``. The search is None if folds could
        not be made.
    """
    from aucdist.search import auto  # imported here, because few runs need it

    def done(number: int, n_tasks: int, point: Json) -> None:
        observer.tasks(number, n_tasks, best=f"features {value_text(point.get('features'))}")

    search = auto.choose_features(
        model.built, rows, missing=missing, lam=model.lam, whole=whole, note=observer.note, done=done,
        **model.search_options._asdict(),
    )  # fmt: skip
    model = model.with_parameters(search["best"])
    if "table" not in search:
        return model, None
    observer.note(f"cross-validation with {search['folds']['fitted']} folds chose {parameters_text(search['best'])}")
    return model, jsonable(search)


def extra_fits(
    config: ShapesConfig,
    model: ModelConfig,
    fitted: Any,
    blocks: TrainTestBlocks,
    observer: RunObserver,
) -> tuple[Json | None, Bands | None]:
    """Run the additional fits that `shapes` of a configuration requests.

    Parameters
    ----------
    config : ShapesConfig
        The configuration of these fits.
    model : ModelConfig
        The configuration of the fitted model.
    fitted : object
        The fitted estimator.
    blocks : TrainTestBlocks
        The training rows and test rows.
    observer : RunObserver
        Reports the progress of the run.

    Returns
    -------
    tuple (dict or None, Bands or None)
        Results of a fit without monotonic constraints: ``objective``, ``relative_gap``, ``passes``, ``train_auc``, ``test_auc``,
        and ``monotone`` with the same values of the model. Then the bands around the shapes.
    """
    compare_free = config.compare_free and getattr(fitted, "monotone", None) is not None
    if config.compare_free and not compare_free:
        observer.note("shapes: `compare_free` has no effect, because the model has no directions")
    n_halves, free, bands = config.halves or 0, None, None
    if n_halves and not isinstance(getattr(fitted, "feature_map_", None), BinMap):
        observer.note("shapes: `halves` has no effect, because the model has no bins")
        n_halves = 0
    train, n_fits = blocks.train.all_blocks(), n_halves + compare_free
    unfitted = clone(model.built)
    if compare_free:
        free = _fit_without_monotone(unfitted, blocks, fitted)
        observer.tasks(1, n_fits, best="without directions")
    if n_halves:
        if getattr(fitted, "monotone_", None) is not None:
            unfitted.set_params(monotone=directions_as_parameter(fitted.monotone_))
        row_id, y = gather_columns(train, "row_id", "label")
        half_results = []
        for k in range(n_halves):
            half_results.append(_shapes_of_half(unfitted, fitted, train, _half(row_id, y, k)))
            observer.tasks(compare_free + k + 1, n_fits, best=f"half {k + 1}")
        bands = [(np.min(values, axis=0), np.max(values, axis=0)) for values in zip(*half_results, strict=True)]
    return free, bands


def _fit_without_monotone(unfitted: Any, blocks: TrainTestBlocks, fitted: Any) -> Json:
    """Return the objective, the passes and the AUC of the model without monotonic constraints, and of the model itself."""
    free = clone(unfitted).set_params(monotone=None)
    fit_rows(free, blocks.train)  # its warnings are not shown, because the summary has the gap of the fit

    def area(model: Any, rows: AnyBlocks | None) -> float | None:
        return None if rows is None else auc(count_model_scores(model, rows.all_blocks()))

    def result(model: Any) -> Json:
        return {
            "objective": model.certificate_.primal,
            "relative_gap": model.certificate_.relative_gap,
            "passes": model.n_passes_,
            "train_auc": area(model, blocks.train),
            "test_auc": area(model, blocks.test),
        }

    return result(free) | {"monotone": result(fitted)}


def _half(row_id: np.ndarray, y: np.ndarray, k: int) -> np.ndarray:
    """Return whether each row is in a random half, bool, indexed by row id. It has half of each class, and `k` is its number.

    The shapes of halves that are drawn without replacement differ from those of all rows about as much as these differ from the
    truth. The reason is that the mean of n/2 of n rows varies around the mean of the n rows with the variance of the latter.
    """
    order = np.lexsort((np.random.default_rng([k, 17]).random(len(row_id))[np.argsort(np.argsort(row_id))], y))
    inside = np.zeros(int(row_id.max()) + 1, dtype=bool)
    for label in (-1, 1):
        class_rows = order[y[order] == label]
        inside[row_id[class_rows[: -(-len(class_rows) // 2)]]] = True
    return inside


def _shapes_of_half(unfitted: Any, fitted: Any, rows: Blocks, inside: np.ndarray) -> list[np.ndarray]:
    """Return the shapes of a model that is fitted to some of the rows, in the bins of the fitted model."""
    model = clone(unfitted)
    fit_rows(model, training_rows(model, rows, inside))  # warnings about a half are not shown
    return values_at_bins(fitted.shapes(), fitted.feature_map_, model.shapes())


# ---- baselines -----------------------------------------------------------------------------------------------------------


def baselines(rows: TrainTestRows, observer: RunObserver) -> list[Baseline]:
    """Return the probabilities of the test rows by baseline models.

    These are logistic regression on scaled features, and LightGBM if it is installed. Both have the default parameters of their
    libraries, and use one thread. There are none without test rows, for several classes, if the rows are not in this process,
    or if there are too few or too many rows.
    """
    if rows.sets is not None or rows.test is None or not (rows.train.in_this_process and rows.test.in_this_process):
        return []
    train, test = rows.train.block, rows.test.block
    if train.n_samples < MIN_ROWS or train.n_samples * train.n_features > MAX_VALUES:
        return []
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    scaled = make_pipeline(
        SimpleImputer(strategy="median"), StandardScaler(with_mean=not hasattr(train.X, "tocsr")), LogisticRegression()
    )
    models = [("logistic regression (defaults)", scaled, "logisticregression__sample_weight")]
    if find_spec("lightgbm") is not None:
        try:
            lightgbm = load_optional("lightgbm")
            model = lightgbm.LGBMClassifier(n_jobs=1, random_state=0, verbosity=-1, deterministic=True)
            models.append(("LightGBM (defaults)", model, "sample_weight"))
        except InputError as error:  # a system library that LightGBM needs is missing
            observer.note(f"no baseline by LightGBM: {error}")
    reached = []
    for name, model, weight in models:
        start = time.perf_counter()
        with warnings.catch_warnings(action="ignore"):  # the model may warn that all rounds were used
            model.fit(train.X, train.y, **({} if train.weight is None else {weight: train.weight}))
            probability = np.asarray(model.predict_proba(test.X))[:, 1]
        reached.append(Baseline(name, probability[np.argsort(test.row_id)], time.perf_counter() - start))
    return reached


Prepare = Callable[[Workers], tuple[TrainTestRows, ModelConfig, Json | None]]
"""A function that prepares the rows of a run. It returns the encoded rows, the model to fit to them, and the search, if folds
chose the parameters."""
Opened = tuple[int, Prepare]
"""The data of a run, opened as far as possible without workers: how many workers can be busy at a time, and the function that
reads the rows."""


def train(config: TrainConfig, observer: RunObserver, start: str | None = None) -> Json:
    """Train a model, evaluate it, write the run folder, and return what ``aucdist train --json`` prints.

    If there are several classes, each class with enough rows is fitted.

    Parameters
    ----------
    config : TrainConfig
        The configuration of the run.
    observer : RunObserver
        Reports the progress of the run.
    start : str, optional
        A model whose weights the fit starts from, if its features are the same. For several classes, this holds for the classes
        that the model has.

    Raises
    ------
    InputError
        If the configuration or the data is wrong. In this case, nothing has been written.
    RunError
        If the run itself failed.
    """
    return fit_and_publish(
        config, timestamped(fit_name(config.name, config.model)), "aucdist train", open_training_rows, observer, start
    )[0]


def open_training_rows(config: TrainConfig, observer: RunObserver, stages: Stages) -> Opened:
    """Open the rows of a training run. Its model is that of the configuration."""
    source = stages("open data", open_source, config.data, config.blocks)

    def prepare(workers: Workers) -> tuple[TrainTestRows, ModelConfig, Json | None]:
        """Return the encoded rows, and the model of the configuration."""
        rows = source.prepare(workers, observer, stages)
        if rows.sets is not None:
            check_keys_for_classes(config)  # the configuration does not say that shards have several classes
        check_monotone([getattr(config.model.built, "monotone", None)], rows.schema)
        return rows, config.model, None

    return source.n_blocks, prepare


def fit_and_publish(
    config: Any, name: str, command: str, open_run: Callable[[Any, RunObserver, Stages], Opened], observer: RunObserver,
    start: str | None = None,
) -> tuple[Json, Json | None]:  # fmt: skip
    """Prepare rows and a model, fit and evaluate the model, and write the run folder. It raises the same errors as `train`.

    Parameters
    ----------
    config : object
        A `TrainConfig` or a `flows.cv.config.CvConfig`.
    name : str
        The name of the run folder.
    command : str
        The command that runs the configuration again.
    open_run : callable
        Called as ``open_run(config, observer, stages)``. Opens the data.
    observer : RunObserver
        Reports the progress of the run.
    start : str, optional
        A model whose weights the fit starts from, as for `train`.

    Returns
    -------
    tuple (dict, dict or None)
        The object that ``aucdist train --json`` prints, and the search, if folds chose the parameters.
    """
    observer = MetricsObserver(observer, name)
    stages = Stages(observer)
    if unfinished := unfinished_runs(config.output, command):
        observer.note(unfinished)
    described = config._described
    if described:
        warned = described.warnings('leave it out with --set "data.source.drop=[{}]"')
        for text in (*warned, described.of_positive()):
            observer.note(text)
    with s3_as_configured(config, observer), run_folder(config.output, name) as folder:
        if described:
            (folder.draft / f"{config.name}.yaml").write_text(described.text, encoding="utf-8")
        n_parts, prepare = open_run(config, observer, stages)
        if config.operating_point is not None and config.operating_point.row_costs is not None:
            for part, source in {"training": source_of(config.data), "test": config.data.test_source}.items():
                if source is not None and not has_costs(source):
                    raise InputError(
                        f"operating_point.cost uses cost_column, but the {part} rows have no column of costs: give `cost_column` "
                        "in their source, for shards in the source that is sharded"
                    )
        report = folder.draft / REPORT if config.performance_report else None
        attempts = 1 if config.checkpoint is None else config.checkpoint.attempts
        for attempt in range(1, attempts + 1):
            try:
                with (
                    open_cluster(config.cluster, name, observer) as workers,
                    fixed_worker_set(config.cluster, workers, n_parts),
                    observer.report_to(workers.client, report),
                ):
                    fitted, checkpoints = fit_and_evaluate(config, prepare, workers, observer, stages, start)
                break
            except ClusterLost as error:  # the next attempt resumes from the last checkpoint
                if attempt == attempts:
                    raise
                observer.note(f"{error}; attempt {attempt + 1} of {attempts}")
        result = run_result(fitted, folder.url) | {"command": command}
        stages("publish", publish, fitted, result, folder)
        if checkpoints is not None:
            checkpoints.remove()
    return result, fitted.search


def fit_and_evaluate(
    config: Any, prepare: Prepare, workers: Workers, observer: RunObserver, stages: Stages, start: str | None
) -> tuple[FittedRun, Checkpoints | None]:
    """Read rows, fit a model to them, evaluate it, and make the additional fits of the report. Only this part needs the workers.

    Returns
    -------
    tuple (FittedRun, Checkpoints or None)
        The run, and its checkpoints. The caller removes them when the run folder is complete.
    """
    rows, model, search = prepare(workers)
    point, row_id, groups = config.operating_point, np.zeros(0), {}
    # Done before the fit, so that a wrong name is reported early.
    if config.audit is not None and rows.test is not None:
        row_id = np.sort(rows.test.gather_columns(workers.parallel_map(observer), "row_id")[0])
        groups = stages("groups", named_groups, rows.test_source or rows.source, config.audit.groups, row_id)
    blocks = stages("partition", rows.partition, config.cache, workers, observer)
    observer.about(rows.size())
    rows, blocks = drop_small_classes(rows.without_copies(), blocks, observer)
    check_costs_of_rows(blocks.train, point)
    per_day = rows.per_day.get("training")
    if point:
        point.requirement(per_day)
    if model.chooses_features:
        options = config.data.impute == "keep", rows.groups_of_split(workers.parallel_map()), observer
        model, search = stages("choose features", choose_feature_map, model, blocks.train, *options)
    checkpoints = open_checkpoints(config, model, rows.fingerprint, blocks.train, observer)
    starts = None
    if start is not None and checkpoints is None:  # a fit that resumes must start as its first attempt did
        starts = start_weights(load_model(start), model.built, rows, observer)
    estimator, fits, warned = stages("fit", fit, model, blocks.train, observer, checkpoints, starts)
    evaluation = stages("evaluate", evaluate_fits, estimator, fits, blocks, observer, point, per_day)
    training_profile, digests, leaks = stages("profile", profile, estimator, rows, blocks, evaluation)
    free = bands = None
    if config.shapes.requested:
        free, bands = stages("shapes", extra_fits, config.shapes, model, estimator, blocks, observer)
    reached = stages("baselines", baselines, rows, observer) if config.baselines else []
    if groups and evaluation.test is not None:
        tested = np.searchsorted(row_id, evaluation.test.table["row_id"].to_numpy())
        groups = {name: values[tested] for name, values in groups.items()}
    return FittedRun(
        config, rows, estimator, evaluation, stages.seconds, training_profile, digests, [*warned, *evaluation.warned], leaks,
        search=search, free=free,
        bands=bands, baselines=reached, named_groups=groups,
    ), checkpoints  # fmt: skip

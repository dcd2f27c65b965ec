"""Additional fits of a run: of folds that choose the feature map, of the report's shapes, and of baseline models."""

import time
import warnings
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.base import clone

from aucdist.engine.blocks import Blocks
from aucdist.engine.view import AnyBlocks
from aucdist.errors import InputError, Json
from aucdist.estimators.fitting import fit_rows
from aucdist.estimators.monotone import directions_as_parameter
from aucdist.estimators.scores import count_scores, mapped_rows
from aucdist.extras import load_optional
from aucdist.maps.bins import BinMap
from aucdist.maps.explain import values_at_bins
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.ranking import auc, average_precision
from aucdist.report.text import parameters_text, value_text
from aucdist.search.fold import training_rows
from aucdist.search.folds import gathered
from flows.config.model import ModelConfig, ShapesConfig
from flows.json_values import jsonable
from flows.progress import RunObserver, Tasks
from flows.rows.rows import TrainTestBlocks, TrainTestRows
from flows.run_folder.results import Bands, Evaluation

FEWEST_ROWS, MOST_VALUES = 100, 2**24
"""Baselines are fitted with at least this many training rows, and at most this many values, which bounds the time."""


def choose_feature_map(
    model: ModelConfig, rows: AnyBlocks, missing: bool, whole: np.ndarray | None, observer: RunObserver
) -> tuple[ModelConfig, Json]:
    """Return a model of `features: auto` with the map that folds choose, and what was tried, as ``aucdist cv --json`` prints it.

    See `aucdist.search.auto.choose_features`.
    """
    from aucdist.search import auto  # here, because few runs need it

    def done(number: int, n_tasks: int, point: Json) -> None:
        observer.tasks(Tasks(number, n_tasks, best=f"features {value_text(point.get('features'))}"))

    search = auto.choose_features(
        model.built, rows, missing=missing, lam=model.lam, metric=model.features_metric, whole=whole, note=observer.note,
        done=done,
    )  # fmt: skip
    observer.note(f"cross-validation with {search['folds']['fitted']} folds chose {parameters_text(search['best'])}")
    return model.with_parameters(search["best"]), jsonable(search)


def extra_fits(
    config: ShapesConfig,
    model: ModelConfig,
    fitted: Any,
    evaluation: Evaluation,
    blocks: TrainTestBlocks,
    observer: RunObserver,
) -> tuple[Json | None, Bands | None]:
    """Run the additional fits that `shapes` of a configuration requests.

    `model`: of the fitted model.
    `evaluation`: of the fitted model.
    Returns `free`, ``objective``, ``relative_gap``, ``passes``, ``train_auc`` and ``test_auc`` without directions, where
        ``monotone`` has those of the model; `bands`.
    """
    compare_free = config.compare_free and getattr(fitted, "monotone", None) is not None
    if config.compare_free and not compare_free:
        observer.note("shapes: nothing to compare, since the model has no directions")
    n_halves, free, bands = config.halves or 0, None, None
    if n_halves and not isinstance(getattr(fitted, "feature_map_", None), BinMap):
        observer.note("shapes: no band, since the model has no bins")
        n_halves = 0
    train, n_fits = blocks.train.of_all(), n_halves + compare_free
    unfitted = clone(model.built)
    if compare_free:
        free = _fit_without_monotone(unfitted, evaluation, blocks, fitted)
        observer.tasks(Tasks(1, n_fits, best="without directions"))
    if n_halves:
        if getattr(fitted, "monotone_", None) is not None:
            unfitted.set_params(monotone=directions_as_parameter(fitted.monotone_))
        row_id, y = gathered(train, "row_id", "label")
        half_results = []
        for k in range(n_halves):
            half_results.append(_shapes_of_half(unfitted, fitted, train, _half(row_id, y, k)))
            observer.tasks(Tasks(compare_free + k + 1, n_fits, best=f"half {k + 1}"))
        bands = [(np.min(values, axis=0), np.max(values, axis=0)) for values in zip(*half_results, strict=True)]
    return free, bands


def _fit_without_monotone(unfitted: Any, evaluation: Evaluation, blocks: TrainTestBlocks, fitted: Any) -> Json:
    """Return objective, passes and AUC of the model with and without monotonic constraints."""
    free = clone(unfitted).set_params(monotone=None)
    fit_rows(free, blocks.train)  # without its warnings, because the summary has the gap of the fit
    (class_evaluation,) = evaluation.classes

    def area(rows: AnyBlocks | None) -> float | None:
        return None if rows is None else auc(count_scores(mapped_rows(free, rows.of_all()), free.coef_[0]))

    model_result = {
        "objective": fitted.certificate_.primal,
        "passes": fitted.n_passes_,
        "train_auc": auc(class_evaluation.train),
        "test_auc": None if class_evaluation.test is None else auc(class_evaluation.test),
    }
    return {
        "objective": free.certificate_.primal, "relative_gap": free.certificate_.relative_gap, "passes": free.n_passes_,
        "train_auc": area(blocks.train), "test_auc": area(blocks.test), "monotone": model_result,
    }  # fmt: skip


def _half(row_id: np.ndarray, y: np.ndarray, k: int) -> np.ndarray:
    """Return a random half of the rows of each class, bool, indexed by row id. `k`: the number of the half.

    Shapes of halves that are drawn without replacement lie about as far from those of all rows as these lie from the truth: the
    variance of the mean of n/2 of n rows is that of the mean of n rows.
    """
    order = np.lexsort((np.random.default_rng([k, 17]).random(len(row_id))[np.argsort(np.argsort(row_id))], y))
    inside = np.zeros(int(row_id.max()) + 1, dtype=bool)
    for label in (-1, 1):
        class_rows = order[y[order] == label]
        inside[row_id[class_rows[: -(-len(class_rows) // 2)]]] = True
    return inside


def _shapes_of_half(unfitted: Any, fitted: Any, rows: Blocks, inside: np.ndarray) -> list[np.ndarray]:
    """Return the shapes of a model of some rows in the bins of the fitted one."""
    model = clone(unfitted)
    fit_rows(model, training_rows(model, rows, inside))  # warnings about a half are not shown
    return values_at_bins(fitted.shapes(), fitted.feature_map_, model.shapes())


# ---- baselines -----------------------------------------------------------------------------------------------------------


def baselines(rows: TrainTestRows, observer: RunObserver) -> list[Json]:
    """Return the test AUC and average precision of logistic regression on scaled features, and of LightGBM where it is installed.

    Both have the defaults of their libraries, and one thread. There are none without test rows, for several classes, and for rows
    that are not in this process, too few or too many.
    """
    if rows.sets is not None or rows.test is None or not (rows.train.in_this_process and rows.test.in_this_process):
        return []
    train, test = rows.train.block, rows.test.block
    if train.n_samples < FEWEST_ROWS or train.n_samples * train.n_features > MOST_VALUES:
        return []
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    sparse = hasattr(train.X, "tocsr")
    scaled = make_pipeline(SimpleImputer(strategy="median"), StandardScaler(with_mean=not sparse), LogisticRegression())
    models = [("Logistic regression", scaled, "logisticregression__sample_weight")]
    if find_spec("lightgbm") is not None:
        try:
            lightgbm = load_optional("lightgbm")
            model = lightgbm.LGBMClassifier(n_jobs=1, random_state=0, verbosity=-1, deterministic=True)
            models.append(("LightGBM", model, "sample_weight"))
        except InputError as error:  # a system library that it needs is missing
            observer.note(f"no baseline by LightGBM: {error}")
    reached = []
    for name, model, weight in models:
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings that all rounds were used
            model.fit(train.X, train.y, **({} if train.weight is None else {weight: train.weight}))
            probability = np.asarray(model.predict_proba(test.X))[:, 1]
        counts = ScoreCounts.from_scores(test.y, probability, test.weight)
        reached.append(
            {
                "name": name,
                "test_auc": auc(counts),
                "average_precision": average_precision(counts),
                "seconds": time.perf_counter() - start,
            }
        )
    return reached

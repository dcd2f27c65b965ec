"""More fits for a report: to halves of the training rows, whose shapes are a band, and without directions."""

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from aucdist.engine.blocks import Blocks
from aucdist.engine.classes import AnyBlocks, of_all_classes
from aucdist.estimators.monotone import directions_as_parameter
from aucdist.estimators.scores import count_scores, mapped_rows
from aucdist.maps.base import changed, with_weight
from aucdist.maps.bins import BinMap
from aucdist.maps.explain import values_at_bins
from aucdist.metrics.ranking import auc
from aucdist.search.folds import masked_blocks, row_ids_and_labels
from flows.config.model import ModelConfig
from flows.config.shapes import ShapesConfig
from flows.progress.console import RunObserver, Tasks
from flows.rows.rows import TrainTestBlocks
from flows.run_folder.results import Evaluation, MoreFits


def more_fits(
    config: ShapesConfig, model: ModelConfig, fitted: Any, evaluation: Evaluation,
    blocks: TrainTestBlocks, observer: RunObserver,
) -> MoreFits:  # fmt: skip
    """Fit what `shapes` of a configuration asks for.

    `model`: of the fitted model.
    `evaluation`: of the fitted model.
    """
    compare_free = config.compare_free and getattr(fitted, "monotone", None) is not None
    if config.compare_free and not compare_free:
        observer.note("shapes: nothing to compare, since the model has no directions")
    wants_band = config.halves is not None and isinstance(getattr(fitted, "feature_map_", None), BinMap)
    if config.halves is not None and not wants_band:
        observer.note("shapes: no band, since the model has no bins")
    train = of_all_classes(blocks.train)
    n_fits, free, bands = (config.halves or 0) * wants_band + compare_free, None, None
    unfitted = clone(model.built)
    if compare_free:
        free = _free(unfitted, evaluation, blocks, fitted)
        observer.tasks(Tasks(1, n_fits, 0, "without directions", None))
    if wants_band:
        if getattr(fitted, "monotone_", None) is not None:
            unfitted.set_params(monotone=directions_as_parameter(fitted.monotone_))
        row_id, y = row_ids_and_labels(train)
        found = []
        for k in range(config.halves or 0):
            found.append(_shapes_of_half(unfitted, fitted, train, _half(row_id, y, k)))
            observer.tasks(Tasks(compare_free + k + 1, n_fits, 0, f"half {k + 1}", None))
        bands = [(np.min(values, axis=0), np.max(values, axis=0)) for values in zip(*found, strict=True)]
    return MoreFits(free, bands, config.halves if wants_band else None)


def _free(unfitted: Any, evaluation: Evaluation, blocks: TrainTestBlocks, fitted: Any) -> dict[str, Any]:
    """Return objective, passes and AUC of the model without directions, and of the model."""
    free = clone(unfitted).set_params(monotone=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the summary has the gap of the fit
        free.fit(blocks.train)

    (of_class,) = evaluation.classes

    def area(rows: AnyBlocks | None) -> float | None:
        return None if rows is None else auc(count_scores(mapped_rows(free, of_all_classes(rows)), free.coef_[0]))

    of_model = {
        "objective": fitted.certificate_.primal, "passes": fitted.n_passes_, "train_auc": auc(of_class.train),
        "test_auc": None if of_class.test is None else auc(of_class.test),
    }  # fmt: skip
    return {
        "objective": free.certificate_.primal, "relative_gap": free.certificate_.relative_gap, "passes": free.n_passes_,
        "train_auc": area(blocks.train), "test_auc": area(blocks.test), "monotone": of_model,
    }  # fmt: skip


def _half(row_id: np.ndarray, y: np.ndarray, k: int) -> np.ndarray:
    """Return the half number k of the rows of each class, bool, indexed by row id.

    Shapes of halves that are drawn without replacement lie about as far from those of all rows as these lie from the truth: the
    variance of the mean of n/2 of n rows is that of the mean of n rows.
    """
    order = np.lexsort((np.random.default_rng([k, 17]).random(len(row_id))[np.argsort(np.argsort(row_id))], y))
    inside = np.zeros(int(row_id.max()) + 1, dtype=bool)
    for label in (-1, 1):
        of_class = order[y[order] == label]
        inside[row_id[of_class[: -(-len(of_class) // 2)]]] = True
    return inside


def _shapes_of_half(unfitted: Any, fitted: Any, rows: Blocks, inside: np.ndarray) -> list[np.ndarray]:
    """Return the shapes of a model of some rows in the bins of the fitted one."""
    masked = masked_blocks(rows, inside)
    model = clone(unfitted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a half alone
        model.fit(masked if model.ignores_zero_weight else changed(masked, with_weight))
    return values_at_bins(fitted.shapes(), fitted.feature_map_, model.shapes())

"""What the user should be warned of after a fit."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from aucdist.engine.blocks import Blocks
from aucdist.estimators.conditioning import diagnosis
from aucdist.estimators.tables import names_of_features
from aucdist.solvers.base import REACHED, Status

REASONS = {
    Status.MAX_PASSES: "max_passes was reached",
    Status.FINISHED: "the solver took all its steps",
    Status.DIVERGED: "the steps diverged in the next round, as eta is too long: the weights are those",
    Status.ROUNDING: "rounding errors are as large as what is left of the gap, or hide where to go on,",
}


class RankingWarning(UserWarning):
    """The scores rank the training rows worse than chance."""


def warnings_of_fit(model: Any, blocks: Blocks) -> Iterator[Warning]:
    """Yield what the user should be warned of after a fit: an early end, and why; scores that rank worse than chance."""
    yield from _convergence_warnings(model)
    if model.monotone is not None and not getattr(model, "coef_", np.ones(1)).any():
        yield UserWarning(
            "the directions in `monotone` leave no weights but 0: each feature would have to fall where it may only rise, or "
            "the other way round; all scores are equal"
        )
    if blocks.has_groups or blocks.has_grades:  # two rows of different groups may be in any order
        return
    area = model._training_auc(blocks)
    if area < 0.5:
        yield RankingWarning(
            f"the AUC of the training rows is {area:.3g}, worse than chance: the scores rank negative rows above positive "
            "ones. Another lam or another solver is needed, or other rows"
        )


def _convergence_warnings(model: Any) -> Iterator[ConvergenceWarning]:
    c, ranges = model.certificate_, model.__dict__.pop("_fitted_ranges", None)
    if c.status in REACHED:
        return
    # A feature map scales what it makes.
    known = ranges is not None and not hasattr(model, "feature_map_")
    fault = diagnosis(ranges, names_of_features(model)) if known else None
    proved = (
        f"primal and dual value are sure to {c.rounding:.3g} only"
        if c.status == Status.ROUNDING
        else "the certificate still holds for what was reached"
    )
    yield ConvergenceWarning(
        f"{REASONS[c.status]} after {model.n_passes_} passes at a relative gap of {c.relative_gap:.3g} "
        f"(primal {c.primal:.6g}, dual {c.dual:.6g}), above tol={model.tol:g}; {proved}"
        + ("" if fault is None else f". {fault}")
    )

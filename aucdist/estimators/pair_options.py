"""Estimators whose pairs are within groups, or of rows with grades: parameters, labels, and what is refused where."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from aucdist.engine.blocks import Blocks
from aucdist.errors import InputError
from aucdist.metrics.groups import GroupWeight
from aucdist.parameters import Constraints, Number, OneOf, count
from aucdist.solvers.pairs.groups import GRADE_WEIGHTS, GROUP_WEIGHTS

GROUP_CONSTRAINTS: Constraints = {
    "group_weight": OneOf(GROUP_WEIGHTS, optional=True),
    "grade_weight": OneOf(GRADE_WEIGHTS, optional=True),
}


def grades_of(estimator: Any, y: np.ndarray) -> np.ndarray | None:
    """Return the labels as grades, float64 of shape (n_samples,), where the estimator's `grade_weight` says that they are.

    `y`: of shape (n_samples,).
    Raises InputError if they are not finite numbers, or all the same.
    """
    if getattr(estimator, "grade_weight", None) is None:
        return None
    if y.dtype.kind not in "biuf":
        raise InputError("grade_weight takes the labels for grades, which are numbers: the larger, the more relevant")
    grades = y.astype(np.float64)
    if not np.isfinite(grades).all():
        raise InputError(f"the grade of row {int(np.argmin(np.isfinite(grades)))} (from 0) is not a finite number")
    if grades.min() == grades.max():
        raise InputError(f"all rows have the grade {grades[0]:g}: at least two different ones are needed")
    return grades


def group_weight_of(estimator: Any) -> GroupWeight:
    """Return what a group weighs in the objective of an estimator: its pairs, unless it says that each weighs the same."""
    return getattr(estimator, "group_weight", None) or "pairs"


def check_groups(estimator: Any, blocks: Blocks) -> None:
    """Check that the estimator's solver takes groups or grades, if rows have them, and that its parameters mean something.

    Raises InputError naming the estimators and solvers that take groups.
    """
    solver = estimator.resolved_solver
    called = "groups" if blocks.has_groups else "grades"
    if (blocks.has_groups or blocks.has_grades) and not solver.groups:
        able = [name for name, one in estimator.solvers.items() if one.groups]
        if able:
            raise InputError(f"solver {solver.name!r} takes no {called}; those that do: {', '.join(able)}")
        raise InputError(
            f"{type(estimator).__name__} takes no {called}. Pairs within groups are what PairwiseHingeClassifier (solver "
            "all-pairs), PairwiseRampClassifier and PairwiseSquareClassifier (solver exact) are fitted to"
        )
    if getattr(estimator, "group_weight", None) is not None and not blocks.has_groups:
        raise InputError("group_weight says what a group counts, but rows have no groups: fit(X, y, groups=...)")
    if getattr(estimator, "grade_weight", None) is not None and not blocks.has_grades:
        raise InputError("grade_weight says what a pair of grades counts, but rows have no grades")


TOP_CONSTRAINTS: Constraints = {
    "max_fpr": Number("above 0 and at most 1", lambda v: 0 < v <= 1, optional=True),
    "max_false_positives": count(optional=True),
}

NEAR_ZERO = 0.01
"""If the objective is surely above 1 minus this, the minimum is as good as w = 0, where the mean hinge is 1."""


class CollapseWarning(UserWarning):
    """The minimum over the highest-scoring negatives is near w = 0, so that the weights rank nothing."""


def check_share(estimator: Any) -> None:
    """Raise an InputError if both parameters are given, which each say which negatives count."""
    if estimator.max_fpr is not None and estimator.max_false_positives is not None:
        raise InputError("max_fpr and max_false_positives both say which negatives count: give one of them")


def collapse_warnings(estimator: Any) -> Iterator[CollapseWarning]:
    """Yield a warning if a fitted pairwise hinge over the top share is proved to have its minimum near w = 0."""
    if estimator.max_fpr is None and estimator.max_false_positives is None:
        return
    c = estimator.certificate_
    if not estimator.coef_.any() or c.dual - c.rounding > 1.0 - NEAR_ZERO:
        yield CollapseWarning(
            f"the minimum is near w = 0: no weights bring the objective below {c.dual:.4g}, and w = 0 has 1. The positives "
            "cannot be separated from so few of the highest-scoring negatives by a convex loss, and the ranking may be no "
            "better than chance. Take PairwiseRampClassifier with the same share, a larger share, or features that separate "
            "more, such as features='bins'; if lam is large, a smaller one"
        )

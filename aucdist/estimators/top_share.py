"""Training for the top of the list: the parameters that say which negatives count, and the warning where the minimum is w = 0."""

from collections.abc import Iterator
from typing import Any

from aucdist.errors import InputError
from aucdist.parameters import Constraints, Number, count

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

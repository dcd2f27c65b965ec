"""The two-way partial AUC: the area under the ROC curve within a largest false and a least true positive rate.

The area is ``integral of max(0, ROC(u) - alpha) for u from 0 to beta``, over that of the region, ``(1 - alpha) beta`` (Yang, Lu,
Lyu & Hu, "Two-way partial AUC and its properties", Statistical Methods in Medical Research 28, 2019, 184-195, who do not
divide). Without ties at the boundaries it is the share of pairs of one of the ``(1 - alpha) n_pos`` lowest-scoring positives and
one of the ``beta n_neg`` highest-scoring negatives that are ranked correctly. So it is 1 for a perfect ranking, and 0 if the
curve is nowhere in the region.

An `InputError` is raised if a class has no rows, a parameter is out of its range, or an interval of weighted rows is wanted.
"""

import math
import warnings

import numpy as np

from aucdist.errors import InputError
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.curves import roc_curve
from aucdist.metrics.intervals import Estimate, IntervalWarning, check_level, logit_interval, refuse_weights
from aucdist.metrics.partial import (
    ENOUGH_NEGATIVES,
    ENOUGH_POSITIVES,
    check_max_fpr,
    crossing,
    placements_up_to,
    variance_of,
)


def two_way_partial_auc(counts: ScoreCounts, min_tpr: float, max_fpr: float) -> float:
    """Return the share of the region up to `max_fpr` and from `min_tpr` on that is below the ROC curve, from 0 to 1.

    Parameters
    ----------
    counts : ScoreCounts
    min_tpr : float
        The least true positive rate, at least 0 and below 1.
    max_fpr : float
        The largest false positive rate, above 0 and at most 1.

    Examples
    --------
    >>> from aucdist.metrics import two_way_partial_auc_score
    >>> y, scores = [0, 0, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.7, 0.6, 0.9]
    >>> round(two_way_partial_auc_score(y, scores, min_tpr=0.5, max_fpr=0.5), 4)
    0.5
    """
    check_max_fpr(max_fpr)
    check_min_tpr(min_tpr)
    fpr, tpr, _ = roc_curve(counts)
    # Points where the curve enters and leaves the region are added, so that trapezoids between neighbours are exact.
    up, right = crossing(tpr, fpr, min_tpr), crossing(fpr, tpr, max_fpr)
    if up[1] >= max_fpr:
        return 0.0
    inside = slice(up[0], right[0])
    u = np.concatenate(([up[1]], fpr[inside], [max_fpr]))
    v = np.concatenate(([min_tpr], tpr[inside], [right[1]])) - min_tpr
    area = float(np.diff(u) @ (v[1:] + v[:-1])) / 2
    return min(area / ((1 - min_tpr) * max_fpr), 1.0)


def two_way_partial_auc_interval(counts: ScoreCounts, min_tpr: float, max_fpr: float, level: float = 0.95) -> Estimate:
    """Return the two-way partial AUC with a confidence interval of DeLong's type on the logit scale.

    The variance is that of `aucdist.metrics.partial.partial_auc_interval` with the influence functions of this area. Let a be the
    false positive rate at which the curve reaches alpha. The placement of a positive at the false positive rate u is ``max(0,
    beta - max(u, a))``, and that of a negative at the true positive rate v is ``max(0, min(v, ROC(beta)) - alpha)``. The rates at
    both boundaries are estimated; since the integrand is 0 at a, this adds nothing.

    Where no variance can be estimated, as for a share of 0 or 1, the interval is Markov's (``exact-bound``), from q times the
    share to 1 - q (1 - share) with q = 1 - level, which is wide.

    Parameters
    ----------
    counts : ScoreCounts
        Counts without weights.
    min_tpr, max_fpr : float
        As for `two_way_partial_auc_score`.
    level : float
        At least 0.5 and below 1.

    Warns
    -----
    IntervalWarning
        If there are fewer than 50 positives beyond `min_tpr`, or fewer than 20 negatives up to `max_fpr`. The interval then
        covers less often than its level says.

    Examples
    --------
    >>> import numpy as np
    >>> from aucdist.metrics import two_way_partial_auc_interval
    >>> y = np.repeat([0, 1], [6000, 200])
    >>> scores = np.random.default_rng(0).normal(size=6200) + 2 * y
    >>> found = two_way_partial_auc_interval(y, scores, min_tpr=0.5, max_fpr=0.2)
    >>> f"{found.value:.3f} from {found.low:.3f} to {found.high:.3f}"
    '0.470 from 0.385 to 0.556'
    """
    check_level(level)
    refuse_weights(counts)
    share = two_way_partial_auc(counts, min_tpr, max_fpr)
    in_range = (1 - min_tpr) * counts.rows_pos, max_fpr * counts.rows_neg
    if in_range[0] < ENOUGH_POSITIVES or in_range[1] < ENOUGH_NEGATIVES:
        warnings.warn(
            f"the interval of the two-way partial AUC may cover less often than it says: there are {in_range[0]:.3g} positives "
            f"beyond min_tpr and {in_range[1]:.3g} negatives up to max_fpr; {ENOUGH_POSITIVES} and {ENOUGH_NEGATIVES} are enough",
            IntervalWarning,
            stacklevel=2,
        )
    placements = placements_up_to(counts, max_fpr, min_tpr)
    columns = (counts.pos, counts.neg)
    variance = sum(variance_of(placed, n) / n.sum() for placed, n in zip(placements, columns, strict=True))
    error = math.sqrt(variance) / ((1 - min_tpr) * max_fpr)
    if error <= 1e-14 or share in (0.0, 1.0):
        return Estimate(share, (1 - level) * share, 1 - (1 - level) * (1 - share), level, "exact-bound")
    return Estimate(share, *logit_interval(share, error, level), level, "delong-logit")


def check_min_tpr(min_tpr: float) -> None:
    """Raise an InputError unless `min_tpr` is at least 0 and below 1."""
    if not 0 <= min_tpr < 1:
        raise InputError(f"min_tpr is {min_tpr}; it must be at least 0 and below 1")

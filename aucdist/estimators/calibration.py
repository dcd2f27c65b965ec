"""Probabilities for models that rank: a map from scores to probabilities that is fitted to out-of-fold scores.

The rows are divided into folds. A model that is fitted to the other folds scores the rows of each fold. The map is fitted to
all these scores, and is then used with the model of all rows.
"""

from functools import partial
from typing import Any

import numpy as np
from numpy import ndarray
from sklearn.exceptions import ConvergenceWarning

from aucdist.data.block import Block, concatenate_columns
from aucdist.engine.blocks import Blocks, LocalBlocks, Summary
from aucdist.engine.view import ViewBlocks
from aucdist.errors import InputError
from aucdist.estimators.fitting import fit_rows, give_warnings
from aucdist.estimators.scores import count_costs, count_scores, map_for_model, mean_and_std
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.decisions import Costs
from aucdist.metrics.probability import hull_probabilities
from aucdist.probability.links import IsotonicMap, LinkMap, ProbabilityMap
from aucdist.selection import fold_numbers, fold_numbers_of_groups

CALIBRATIONS = ("gev", "logit", "isotonic")

N_FOLDS = 5
"""The number of folds. If a class has fewer rows than this, or rows in fewer groups, there are as many folds as these are."""
SEED = 0


def calibrated(model: Any, blocks: Blocks) -> tuple[ProbabilityMap, ScoreCounts]:
    """Return the map from a fitted model's `decision_function` to probabilities, and the scores to which it was fitted.

    At any time, the rows of all folds but one are copied, on the workers that hold them. Row ids and labels are sent to this
    process (9 bytes for each row), and the numbers of folds are sent back (1 byte).

    Parameters
    ----------
    model : RankingClassifier
        A model fitted to the blocks, with the parameter `calibration` and optionally `prior`.
    blocks : Blocks
        The training rows.

    Returns
    -------
    probability : ProbabilityMap
    counts : ScoreCounts

    Raises
    ------
    InputError
        If a class has fewer than two rows.
    """
    counts: ScoreCounts = out_of_fold(model, blocks.unmapped)
    probability = isotonic(counts) if model.calibration == "isotonic" else link_map(counts, model.calibration)
    share = counts.n_pos / (counts.n_pos + counts.n_neg)
    return probability.corrected(share, model.prior).shifted(-model.decision_intercept), counts


def out_of_fold(model: Any, blocks: Blocks, costs: Costs | None = None) -> Any:
    """Return the counts of out-of-fold scores X w, where the model of the other folds scores each row.

    The scores of two models have different origins and units: a loss over pairs does not depend on the origin, and fits to
    fewer rows have larger weights. The scores of each fold's model are therefore shifted and scaled. On the training rows of
    the fold, they then have the mean and the standard deviation of the scores of the model of all rows. A threshold for these
    out-of-fold scores can then be used for the scores of new rows by the model of all rows.

    Parameters
    ----------
    model : RankingClassifier
        A model fitted to the blocks.
    blocks : Blocks
        The training rows.
    costs : Costs, optional
        What wrong decisions cost.

    Returns
    -------
    ScoreCounts or CostCounts
        `CostCounts` if there are costs.
    """
    row_id, y, groups, largest = concatenate_columns(blocks.sum(_ids_and_labels))
    fold_keys = row_id if groups is None else groups
    fewest = min(len(np.unique(fold_keys[y == label])) for label in (-1, 1))
    if fewest < 2:
        raise InputError(
            f"{'`out_of_fold`' if model.calibration is None else 'calibration'} scores each row by a model of other rows, and "
            f"needs at least 2 {'rows' if groups is None else 'groups with rows'} of each class, but one class has {fewest}: "
            f"add rows, or {'set `out_of_fold: false`' if model.calibration is None else 'leave out `calibration`'}"
        )
    folds, n_folds = np.full(largest.max() + 1, -1, dtype=np.int8), min(N_FOLDS, fewest)
    if groups is None:
        folds[row_id] = fold_numbers(row_id, y, n_folds, SEED)
    else:
        folds[row_id] = fold_numbers_of_groups(row_id, y, groups, n_folds, SEED)
    moments = mean_and_std(count_scores(map_for_model(model, blocks), model.coef_[0]))
    counts = list[Any]()
    for number in range(int(folds.max()) + 1):
        other = model._copy_with(calibration=None, prior=None, verbose=0, n_jobs=None)
        seen = ViewBlocks(blocks, partial(select_rows, side=folds != number))
        # The fit of all rows gives the ConvergenceWarning.
        give_warnings(other, fit_rows(other, seen), but=ConvergenceWarning)
        own_moments = mean_and_std(count_scores(map_for_model(other, seen), other.coef_[0]))
        scorer = partial(_scores_with_moments, other.coef_[0], own_moments, moments)
        held_out = map_for_model(other, ViewBlocks(blocks, partial(select_rows, side=folds == number)))
        counts.append(count_scores(held_out, scorer) if costs is None else count_costs(held_out, scorer, costs))
    return sum(counts[1:], start=counts[0])


def _scores_with_moments(w: ndarray, own: tuple[float, float], moments: tuple[float, float], block: Block) -> ndarray:
    """Return scores that are shifted and scaled so that their mean and standard deviation change from `own` to `moments`."""
    return (block.scores(w) - own[0]) / own[1] * moments[1] + moments[0]


def isotonic(counts: ScoreCounts) -> IsotonicMap:
    """Return the isotonic regression of labels on scores: the non-decreasing map with the smallest squared error.

    After Zadrozny and Elkan, "Transforming classifier scores into accurate multiclass probability estimates" (KDD 2002).
    """
    fit = hull_probabilities(counts)
    # Only the points where a step begins or ends are needed.
    changes = fit[1:] != fit[:-1]
    ends = np.r_[True, changes] | np.r_[changes, True]
    return IsotonicMap(1.0, counts.values[ends], fit[ends])


def link_map(counts: ScoreCounts, link: str) -> LinkMap:
    """Return a link with a slope and an offset that are fitted to standardised scores, with a standard normal prior on the slope.

    With ``logit``, this is the scaling of Platt, "Probabilistic outputs for support vector machines" (Advances in Large Margin
    Classifiers, 2000), with this prior instead of his pseudo-counts. With ``gev``, the shape is first set to the mode of its
    posterior.
    """
    from aucdist.estimators.link import LinkClassifier, SeparationWarning

    values, (middle, spread) = counts.middles(), mean_and_std(counts)
    weights = np.concatenate([counts.neg, counts.pos])
    used = weights > 0
    scores, labels = np.tile(values, 2)[used, np.newaxis], np.repeat([-1, 1], len(values))[used]
    block = Block.of((scores - middle) / spread, labels, weight=weights[used])
    model = LinkClassifier(link=link, solver="newton", lam=1.0 / (counts.rows_pos + counts.rows_neg), tol=1e-9)
    # With the prior, separable rows do no harm.
    give_warnings(model, fit_rows(model, LocalBlocks([block])), but=SeparationWarning)
    slope = float(model.coef_[0, 0]) / spread
    return LinkMap(1.0, model.probability_.link, slope, float(model.intercept_[0]) - slope * middle)


def select_rows(block: Block, side: ndarray) -> Block:
    """Return the rows of a block that are on one side of a fold.

    Parameters
    ----------
    block : Block
        The rows.
    side : ndarray of bool
        Whether the row with each ``row_id`` is on this side.
    """
    return block.take(side[block.row_id], index=block.index)


def _ids_and_labels(block: Block) -> Summary:
    counted = block.weights() > 0
    groups = None if block.group is None else block.group[counted]
    return [(block.row_id[counted], block.y[counted], groups, np.array([block.row_id.max(initial=-1)]))]

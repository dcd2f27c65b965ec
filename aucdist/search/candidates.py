"""The feature maps that `features: auto` tries, ordered from the simplest to the most complex."""

from collections.abc import Callable
from typing import Any

from aucdist.errors import InputError, Json
from aucdist.estimators.base import BlockClassifier
from aucdist.estimators.monotone import AUTO
from aucdist.extras import load_optional
from aucdist.maps.bins import MAX_COLUMNS
from aucdist.maps.leaves import MAX_ROWS
from aucdist.pairs.top_negatives import TOP_PARAMETERS

Features = Json | None
"""A feature map as `features` of an estimator names it; None for none."""
PAIRS = 40
"""The number of pairs of features of bins."""
MIN_ROWS = 50
"""The smallest number of rows of a class for which pairs and leaves are tried. With a limit of 400 rows, leaves were not tried on
a table of customers with 270 positives, on which they have an AUC of 0.905 and bins 0.849. With few positives, the rule of the
choice prefers what is simple."""
MAX_VALUES = 2**27
"""Leaves are not tried if the rows that the trees are grown on have more values than this. They are sent to the client,
and take a gigabyte."""
LANDMARKS = 512
MAX_KERNEL_ROWS = 100_000
"""Landmarks are not tried with more rows, because each row costs `LANDMARKS` products with a row."""
MAX_KERNEL_COLUMNS = 500
"""Landmarks are not tried with more columns, for the same reason."""
ORDER = ("bins", "nystroem")
LAST = "leaves"
LEAVES: Json = {"map": LAST, "leaves": 63}
"""The forest that is tried for probability models and with directions."""
SCORE = 3.0
FORESTS: tuple[Features, ...] = (
    {"map": LAST, "leaves": 15, "forest_score": SCORE},
    LEAVES | {"forest_score": SCORE},
)
"""The forests that are tried otherwise, with LightGBM's score as a column. In three folds of the training rows, the first one has
an average precision of 0.556 on promotion and 0.230 on fraud-oracle, where `LEAVES` has 0.521 and 0.200. The second one has an
AUC of 0.772 on aloi, where the first one has 0.737. Probability models are not given the score, which is too good on the training
rows: with `LEAVES` and the score, the log loss on magic04 is 0.41 instead of 0.32."""
LARGE_LEAVES: Json = LEAVES | {"trees": 300, "learning_rate": 0.05}
MANY_ROWS = 20_000
"""The number of rows from which on `LARGE_LEAVES` are tried as well. On covtype they ranked better than tuned trees of
LightGBM."""
LEAVES_OF_TOP: tuple[Features, ...] = (
    {"map": LAST, "trees": 100, "leaves": 7, "learning_rate": 0.03, "forest_score": SCORE},
    {"map": LAST, "trees": 300, "leaves": 15, "learning_rate": 0.03, "forest_score": SCORE},
    {"map": LAST, "trees": 500, "leaves": 31, "learning_rate": 0.05, "forest_score": SCORE}
    | {"row_fraction": 0.7, "feature_fraction": 0.5},
    {"map": LAST, "trees": 500, "leaves": 63, "learning_rate": 0.1, "forest_score": SCORE},
    {"map": LAST, "trees": 500, "leaves": 255, "learning_rate": 0.1, "forest_score": SCORE},
)
"""Forests for the top of the list, with LightGBM's score as a column. They were chosen on problems and splits that no suite has,
with the split seeds 411 and 412: covtype-20k (classes 1, 3 and 5), letter (H and K), pendigits (8), dna.scale (2 and 3), pima,
german.numer, vehicle1, yeast3, segment0, koil-fourclass, magic04 and covtype-93k. On twelve splits of six of them the partial AUC
at 0.01 was between .007 below and .005 above that of the same forest, at lam 0.1; without the column, at the better one of 0.1
and 0.01, between .029 below and .007 above."""
MIN_ROWS_OF_TOP = 100
"""`LEAVES_OF_TOP` are tried if both classes have this many rows."""
LEAVES_IN_GROUPS: tuple[Features, ...] = (
    {"map": LAST, "trees": 300, "leaves": 7, "learning_rate": 0.03, "within_groups": True},
    {"map": LAST, "within_groups": True},
)
"""Forests that are grown within groups, which are tried as well if rows have groups. In folds of the queries of
``lightgbm-rank`` the first one was the best of three sizes. On large groups of two classes, `LEAVES` are better."""


def candidates(
    estimator: BlockClassifier, *, n_pos: int, n_neg: int, n_features: int, missing: bool = False, grouped: bool = False,
    note: Callable[[str], None] = lambda sentence: None,
) -> list[Features]:  # fmt: skip
    """Return the feature maps to try, the simplest first.

    They are None, which stands for no map; bins whose shapes rise or fall like a linear model (`monotone`, which
    `points_of` takes out of the map); bins; landmarks of two widths; bins with pairs; and leaves if LightGBM can be
    loaded. If rows have groups, there are also leaves of trees that are grown within them, and for the top of the list
    there are `LEAVES_OF_TOP`. If the estimator has directions, bins with other directions and landmarks are left out.

    Parameters
    ----------
    estimator : BlockClassifier
        Bins and leaves are for solvers that take codes.
    n_pos, n_neg : int
        Pairs of features and leaves are for classes that both have `MIN_ROWS` rows, leaves of the top from `MIN_ROWS_OF_TOP` on.
    missing : bool
        Whether values may be missing: bins and leaves accept them.
    grouped : bool
        Whether rows have groups.
    note : callable
        Called with a sentence about a map that is not tried because its package is not installed.

    Raises
    ------
    InputError
        If no map is left.
    """
    maps: list[Features] = [] if missing else [None]
    binned = estimator.resolved_solver.takes_codes and n_features <= MAX_COLUMNS
    if binned and estimator.resolved_solver.signs and estimator.monotone is None:
        maps.append({"map": "bins", "monotone": AUTO})
    if binned:
        maps.append({"map": "bins"})
    if (
        not missing
        and estimator.monotone is None
        and n_features <= MAX_KERNEL_COLUMNS
        and n_pos + n_neg <= MAX_KERNEL_ROWS
    ):
        maps += [{"map": "nystroem", "landmarks": LANDMARKS, "sigma": sigma} for sigma in ("median", "half-median")]
    if binned and n_features > 1 and min(n_pos, n_neg) >= MIN_ROWS:
        maps.append({"map": "bins", "interactions": min(PAIRS, n_features * (n_features - 1) // 2)})
    is_top_only = any(getattr(estimator, name, None) is not None for name in TOP_PARAMETERS)
    enough, grown = MIN_ROWS_OF_TOP if is_top_only else MIN_ROWS, min(n_pos, MAX_ROWS) + min(n_neg, MAX_ROWS)
    if estimator.resolved_solver.takes_codes and min(n_pos, n_neg) >= enough and grown * n_features <= MAX_VALUES:
        try:
            load_optional("lightgbm")
        except InputError as error:
            note(f"features: auto does not try leaves, since {error}")
        else:
            if is_top_only and estimator.monotone is None:
                maps += LEAVES_OF_TOP
            else:
                # LightGBM's score may not be a column if the model has monotonic constraints or probabilities.
                may_have_score = estimator.monotone is None and "link" not in estimator.get_params()
                maps += FORESTS if may_have_score else (LEAVES,)
                maps += [LARGE_LEAVES] * (n_pos + n_neg >= MANY_ROWS)
                maps += LEAVES_IN_GROUPS if grouped else ()
    if not maps:
        raise InputError(
            f"features: auto has no feature map for both missing values and solver {estimator.resolved_solver.name!r}, "
            "which cannot read numbers of bins: fill the values in (`impute: median`), or use another solver"
        )
    return maps


def complexity(features: Any, monotone: Any = None) -> tuple[float, int, int]:
    """Return a key that orders feature maps from the simplest to the most complex. `features`: as in a configuration.

    None comes first, then bins, landmarks, landmarks of half the width, bins with pairs by the number of pairs, and leaves by
    their number. A map with monotonic constraints comes just before the same map without them.
    """
    if monotone is not None:
        first, second, third = complexity(features)
        return (first - 0.5, second, third)
    if features is None:
        return (0, 0, 0)
    options = {"map": features} if isinstance(features, str) else features
    if not isinstance(options, dict):
        options = {"map": type(features).__name__, **features.get_params()}
    pairs = int(options.get("interactions", options.get("pairs", 0)))  # `pairs` in 0.4.0
    name = options["map"]
    if name == LAST:
        return (3, int(options.get("trees", 100)) * int(options.get("leaves", 31)), 0)
    place = (*ORDER, name).index(name)
    return (2, pairs, place) if pairs else (1, place, int(options.get("sigma") == "half-median"))

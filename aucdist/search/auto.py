"""The search of `features: auto`: the feature maps and values of lam that it tries, its metric, its folds and its rule."""

import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from aucdist.engine.blocks import LocalBlocks
from aucdist.engine.view import AnyBlocks, ClassBlocks
from aucdist.errors import InputError, Json
from aucdist.estimators.base import BlockClassifier
from aucdist.estimators.monotone import AUTO
from aucdist.extras import load_optional
from aucdist.maps.binning import count_missing, sample_by_class
from aucdist.maps.bins import MAX_COLUMNS
from aucdist.maps.leaves import MAX_ROWS
from aucdist.metrics.named import Metric, find_metric, search_options
from aucdist.pairs.top_negatives import TOP_CONSTRAINTS, trained_max_fpr
from aucdist.search.choice import MIN_FOLDS, FoldScore, Rule, SettingScores, complexity_of, search_summary
from aucdist.search.fold_scores import check_metric, score_job
from aucdist.search.folds import Folds, gather_columns, searched_classes, smallest_class
from aucdist.search.schedule import FitJob, Setting, race, settings_of_grid
from aucdist.text import value_text

Features = Json | None
"""A feature map in the form of the parameter `features` of an estimator. None means no map."""
INTERACTIONS = 40
"""The number of interactions of bins."""
FEW_INTERACTIONS = 10
"""The number of interactions that is also tried if the map has to be readable, and that bins have if folds cannot choose."""
MIN_ROWS = 50
"""The smallest number of rows of a class to try interactions and leaves. With a limit of 400 rows, leaves were not tried on
a table of customers with 270 positives, on which they have an AUC of 0.905 and bins 0.849. With few positives, the rule of the
choice prefers what is simple."""
DRAWN_ROWS = 25_000
"""With more than twice this many rows, readable maps are compared on about so many rows of each class. On 400,000 rows x 100, all
rows took 67 CPU seconds, and the fit takes 8."""
MAX_VALUES = 2**27
"""Leaves are not tried if the rows that the trees are grown on have more values than this. They are sent to the client,
and take a gigabyte."""
LANDMARKS = 512
MAX_KERNEL_ROWS = 100_000
"""Landmarks are not tried with more rows, because each row costs `LANDMARKS` products with a row."""
MAX_KERNEL_COLUMNS = 500
"""Landmarks are not tried with more columns, for the same reason."""
LEAVES: Json = {"map": "leaves", "leaves": 63}
"""The forest that is tried for probability models and with directions."""
SCORE = 3.0
FORESTS: tuple[Features, ...] = (
    {"map": "leaves", "leaves": 15, "forest_score": SCORE},
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
LEAVES_OF_TOP: tuple[Features, ...] = tuple(
    {"map": "leaves", "trees": trees, "leaves": leaves, "learning_rate": rate, "forest_score": SCORE} | shares
    for trees, leaves, rate, shares in (
        (100, 7, 0.03, {}),
        (300, 15, 0.03, {}),
        (500, 31, 0.05, {"row_fraction": 0.7, "feature_fraction": 0.5}),
        (500, 63, 0.1, {}),
        (500, 255, 0.1, {}),
    )
)
"""Forests for the top of the list, with LightGBM's score as a column. They were chosen on problems and splits that no suite has,
with the split seeds 411 and 412: covtype-20k (classes 1, 3 and 5), letter (H and K), pendigits (8), dna.scale (2 and 3), pima,
german.numer, vehicle1, yeast3, segment0, koil-fourclass, magic04 and covtype-93k. On twelve splits of six of them the partial AUC
at 0.01 was between .007 below and .005 above that of the same forest, at lam 0.1; without the column, at the better one of 0.1
and 0.01, between .029 below and .007 above."""
MIN_ROWS_OF_TOP = 100
"""`LEAVES_OF_TOP` are tried if both classes have this many rows."""
LEAVES_IN_GROUPS: tuple[Features, ...] = (
    {"map": "leaves", "trees": 300, "leaves": 7, "learning_rate": 0.03, "within_groups": True},
    {"map": "leaves", "within_groups": True},
)
"""Forests that are grown within groups, which are tried as well if rows have groups. In folds of the queries of
``lightgbm-rank`` the first one was the best of three sizes. On large groups of two classes, `LEAVES` are better."""
MAX_FOLDS = 5
FIRST_HELD_OUT = 50
"""Candidates are compared once the folds have held out this many rows of the smaller class, or groups. For the top of
the list, where few of these rows decide, all candidates go through all folds."""
MIN_HELD_OUT = 500
"""For all pairs, folds are fitted until this many rows of the smaller class have been held out, and at least
`MIN_FOLDS`."""
MIN_TOL = 3e-2
"""Fits inside the folds end at this relative gap, or at that of the model if it is larger. On magic04, partial AUCs
differ by at most 0.003 from those at a gap of 1 %, for half the passes. The same holds for AUCs of leaves on aloi and
page-blocks0."""
LAMS = (1.0, 1e-1, 1e-2, 1e-3, 1e-4)
"""The values of lam that are tried if none is given."""
LAMS_OF_TOP = LAMS[1:-1]
"""The values of lam for the top of the list, where each value takes several times the passes of the one before."""
LAMS_OF_PROBABILITIES = (1e-2, 1e-3, 1e-4, 1e-5)
"""The values of lam for probability models, in units of 4 p (1 - p), like their default. Folds choose by the order of
rows, which an even larger lam hardly changes although it flattens the probabilities. On held-out training rows of seven
small tables, the log loss with 0.01 was lower by up to 0.08 (german) or the same, and on loan higher by 0.003."""
FIRST_ROWS = 10
"""The number of first rows of each group with grades that the NDCG counts."""
LAMS_OF_FORESTS = (1.0, 1e-1)
"""The values of lam for forests whose score is a column over all pairs, which makes lam matter little."""
LAMS_OF_LEAVES = (1e-1, 1e-3)
"""The values of lam for leaves that are fitted for the top of the list."""
LAMS_OF_ALL_PAIRS = (1e-1, 1e-2)
"""The values of lam for fits over all pairs where the top of the list decides."""
ALL_PAIRS: tuple[Features, ...] = (
    None,
    {"map": "bins"},
    {"map": "nystroem", "landmarks": 512, "sigma": "median"},
)
"""The maps that are also fitted over all pairs if a model is trained for the top. If few rows overlap there, no weights
separate the highest negatives, and the order of all rows is the better guide."""


Note = Callable[[str], None]
Done = Callable[[int, int, Setting], None]


def _ignore_progress(*_: Any) -> None:
    """Ignore progress and notes."""


@dataclass(frozen=True)
class AutoSearch:
    """What `features: auto` searches, in the terms of `aucdist cv`.

    Attributes
    ----------
    settings : list of dict
        The settings: feature maps, and values of lam unless lam is given.
    metric : Metric
        The metric of the folds.
    rule : str
        The rule by which a setting is chosen.
    n_folds : int
        The number of folds.
    n_first : int
        The number of folds after which maps are dropped each time: see `aucdist.search.schedule.race`.
    n_fitted : int
        The largest number of the `n_folds` folds that are fitted.
    tol : float
        The relative gap at which fits of the folds end.
    """

    settings: list[Setting]
    metric: Metric
    n_first: int
    n_folds: int
    n_fitted: int
    rule: Rule
    tol: float


def candidates(
    estimator: BlockClassifier, *, n_pos: int, n_neg: int, n_features: int, missing: bool = False, grouped: bool = False,
    readable: bool = False, note: Note = _ignore_progress,
) -> list[Features]:  # fmt: skip
    """Return the feature maps to try, the simplest first.

    They are: None, which means no map; bins whose shapes rise or fall like a linear model (`monotone`, which `settings_of_grid`
    makes a parameter of the estimator); bins; landmarks of two widths; bins with interactions; and leaves if LightGBM can be
    loaded. If rows have groups, leaves of trees that are grown within groups are tried as well, and for the top of the list
    `LEAVES_OF_TOP`. If the estimator has directions, bins with other directions and landmarks are left out.

    Parameters
    ----------
    estimator : BlockClassifier
        The estimator. Bins and leaves are tried only if its solver accepts codes.
    n_pos, n_neg : int
        The numbers of rows. Interactions and leaves are tried only if both classes have `MIN_ROWS` rows, and leaves for the top
        of the list from `MIN_ROWS_OF_TOP` rows on.
    missing : bool
        Whether values may be missing, which only bins and leaves accept.
    grouped : bool
        Whether rows have groups.
    readable : bool
        Whether to try only maps whose models are sums of functions of one and two features: no map, and bins with up to 10 and
        up to 40 interactions, 10 of them with any number of rows.
    note : callable
        Called with a sentence about a map that is not tried because its package is not installed.

    Raises
    ------
    InputError
        If no map is left.
    """
    maps: list[Features] = [] if missing else [None]
    solver, free, fewest = estimator.resolved_solver, estimator.monotone is None, min(n_pos, n_neg)
    binned, n_pairs = solver.accepts_codes and n_features <= MAX_COLUMNS, n_features * (n_features - 1) // 2
    if binned and solver.accepts_signs and free:
        maps.append({"map": "bins", "monotone": AUTO})
    if binned:
        maps.append({"map": "bins"})
    if not (missing or readable) and free and n_features <= MAX_KERNEL_COLUMNS and n_pos + n_neg <= MAX_KERNEL_ROWS:
        maps += [{"map": "nystroem", "landmarks": LANDMARKS, "sigma": sigma} for sigma in ("median", "half-median")]
    if binned and n_pairs:
        numbers = [FEW_INTERACTIONS] * readable + [INTERACTIONS] * (fewest >= MIN_ROWS)
        maps += [{"map": "bins", "interactions": n} for n in sorted({min(number, n_pairs) for number in numbers})]
    is_top_only = trained_max_fpr(estimator, n_neg) is not None
    enough, grown = MIN_ROWS_OF_TOP if is_top_only else MIN_ROWS, min(n_pos, MAX_ROWS) + min(n_neg, MAX_ROWS)
    if not readable and solver.accepts_codes and fewest >= enough and grown * n_features <= MAX_VALUES:
        try:
            load_optional("lightgbm")
        except InputError as error:
            note(f"features: auto does not try leaves, since {error}")
        else:
            if is_top_only and free:
                maps += LEAVES_OF_TOP
            else:
                # LightGBM's score may not be a column if the model has monotonic constraints or probabilities.
                may_have_score = free and "link" not in estimator.get_params()
                maps += FORESTS if may_have_score else (LEAVES,)
                maps += [LARGE_LEAVES] * (n_pos + n_neg >= MANY_ROWS)
                maps += LEAVES_IN_GROUPS if grouped else ()
    if not maps:
        raise InputError(
            f"features: auto has no feature map that accepts missing values with solver {solver.name!r}, which "
            "cannot read bins: fill the values in (`impute: median`), or use another solver"
        )
    return maps


def auto_search(
    estimator: BlockClassifier,
    *,
    n_pos: int,
    n_neg: int,
    n_features: int,
    lam: float | None = None,
    n_groups: int | None = None,
    grouped: bool = False,
    lowest_grade: float | None = None,
    metric: str | None = None,
    **options: Any,
) -> AutoSearch:
    """Return the search of `features: auto` for an estimator and rows.

    Over all pairs, the rule is ``simplest``. For the top of the list, the rule is ``best``. Few rows count there, so the
    standard error over the folds is larger than the differences between maps, and ``simplest`` would lose the gain of
    nonlinear maps.

    Parameters
    ----------
    lam : float, optional
        If given, the only `lam` to try.
    n_groups : int, optional
        The number of groups, if rows have groups. Folds then keep groups whole.
    grouped : bool
        Whether both rows of a pair belong to one group.
    lowest_grade : float, optional
        The lowest grade, if labels are grades.
    metric : str, optional
        The full name of the metric to choose by. By default it is that of `default_metric`.
    **options
        `missing`, `readable` and `note`, as for `candidates`.

    Raises
    ------
    InputError
        If no map is left, or the metric cannot be computed for these rows.
    """
    maps = candidates(estimator, n_pos=n_pos, n_neg=n_neg, n_features=n_features, grouped=grouped, **options)
    rate = trained_max_fpr(estimator, n_neg)
    default = default_metric(rate, grouped=grouped, lowest_grade=lowest_grade)
    chosen = find_metric(**default) if metric is None else find_metric(metric)
    check_metric(chosen, grouped, lowest_grade)
    fewest = min(n_pos, n_neg, n_groups or n_pos)
    n_folds = max(2, min(MAX_FOLDS, fewest))
    n_first, n_fitted = (min(n_folds, math.ceil(rows * n_folds / fewest)) for rows in (FIRST_HELD_OUT, MIN_HELD_OUT))
    own_lams = FORESTS if rate is None else LEAVES_OF_TOP
    usual = [features for features in maps if features not in own_lams]
    forests = [features for features in maps if features in own_lams]
    top: Setting = {}
    if rate is None:
        groups = [(usual, lams_for(estimator, n_pos, n_neg), top), (forests, LAMS_OF_FORESTS, top)]
    else:
        n_first = n_fitted = n_folds
        top = next({k: v} for k in TOP_CONSTRAINTS if (v := estimator.get_params()[k]) is not None)
        over_all = [features for features in maps if features in ALL_PAIRS]
        groups = [(usual, LAMS_OF_TOP, top), (forests, LAMS_OF_LEAVES, top)]
        groups += [(over_all, LAMS_OF_ALL_PAIRS, dict.fromkeys(top))]
    return AutoSearch(
        _map_settings(estimator, groups, lam),
        chosen,
        n_first,
        n_folds,
        n_fitted=max(n_fitted, min(MIN_FOLDS, n_folds)),
        rule="simplest" if rate is None else "best",
        tol=max(MIN_TOL, estimator.tol),
    )


def lams_for(estimator: BlockClassifier, n_pos: int, n_neg: int) -> tuple[float, ...]:
    """Return the values of lam to try.

    For probability models they are scaled, because the default depends on the share of positives.
    """
    if estimator.get_params().get("lam", LAMS) is not None:
        return LAMS
    from aucdist.estimators.link import balance  # imported here, because it loads the links

    scale = balance(n_pos, n_neg)
    return tuple(float(f"{lam * scale:.2g}") for lam in LAMS_OF_PROBABILITIES)


def _map_settings(
    estimator: BlockClassifier, groups: Sequence[tuple[Sequence[Features], Sequence[float], Setting]], lam: float | None
) -> list[Setting]:
    """Return the settings of groups of maps, each group with its values of lam and of other parameters.

    All settings have a value for each parameter that one of them has, because a table of settings has a column for each
    parameter."""
    params, settings = estimator.get_params(), list[Setting]()
    for maps, lams, others in groups:
        grid = {"features": maps} | ({"lam": lams if lam is None else (lam,)} if "lam" in params else {})
        settings += [setting | others for setting in settings_of_grid(estimator, grid)] if maps else []
    names = {name: params[name] for setting in settings for name in setting}
    return [names | setting for setting in settings]


def default_metric(max_fpr: float | None, *, grouped: bool = False, lowest_grade: float | None = None) -> Json:
    """Return the default metric for the choice of a feature map: ``metric`` and its parameters for `find_metric`.

    For the top of the list, it is the partial AUC, which is shrunk towards the AUC if there are few positives
    (`aucdist.metrics.partial.shrunk_partial_auc`). Within groups, it is the AUC of their pairs. If the rows of groups
    have grades of at least 0, it is the NDCG of the first rows.
    """
    if max_fpr is not None:
        return {"metric": "shrunk_partial_auc", "max_fpr": max_fpr}
    if grouped and lowest_grade is not None and lowest_grade >= 0:
        return {"metric": "group_ndcg", "k": FIRST_ROWS}
    return {"metric": "group_auc" if grouped or lowest_grade is not None else "auc"}


def choose_features(
    estimator: BlockClassifier,
    rows: AnyBlocks,
    *,
    readable: bool = False,
    whole: np.ndarray | None = None,
    note: Note = _ignore_progress,
    done: Done = _ignore_progress,
    **options: Any,
) -> Json:
    """Choose a feature map by cross-validation, with the metric that the model is trained for.

    The rows stay in their blocks, and rows outside of a fold get weight 0. Folds keep groups whole. For several classes,
    one map is chosen for all classes by the mean over them, and the smallest class decides which maps are tried.

    Parameters
    ----------
    rows : Blocks or ClassBlocks
        The encoded training rows. Each fold fits its own map. The scaling is that of all training rows.
    readable : bool
        Whether to try only maps that can be read, see `candidates`. A sample of many rows is then used, unless they have
        groups or the model is trained for the top of the list.
    whole : ndarray of int64, optional
        The group of each row, indexed by row id. Folds keep these groups whole, but pairs ignore them.
    note : callable
        Called with a sentence about each map that is left out.
    done : callable
        Called after each fit with the number of fits that are done, the number that is known so far, and its first setting.
    **options
        `missing`, `lam` and `metric`, as for `auto_search`.

    Returns
    -------
    dict
        All settings with their results, as ``aucdist cv --json`` prints a search. The key ``best`` has the chosen parameters.
        If folds are impossible and the map must be readable, there is only ``best``, with the map that has the most interactions.

    Raises
    ------
    InputError
        If no map suits the estimator and the rows, if the metric cannot be computed for these rows, or, unless the map must be
        readable, if folds are impossible because a class has one row or all rows belong to one group.
    RunError
        If every fit failed.
    """
    start, estimator = time.perf_counter(), clone(estimator)
    class_blocks = rows if isinstance(rows, ClassBlocks) else None
    blocks = rows.all_blocks()
    if estimator.get_params().get("random_state", 0) is None:
        estimator.set_params(random_state=0)
    n_pos, n_neg = blocks.n_pos, blocks.n_neg
    # A sample has too few of the rows that decide at the top of the list, and the same number of false positives is a larger
    # share of a sample.
    over_all_pairs = trained_max_fpr(estimator, n_neg) is None
    may_draw = readable and over_all_pairs and class_blocks is None and estimator.resolved_solver.accepts_weights
    if may_draw and not (blocks.has_groups or blocks.has_grades) and blocks.n_samples > 2 * DRAWN_ROWS:
        drawn = sample_by_class(blocks, DRAWN_ROWS)
        note(f"folds choose the feature map on {drawn.n_samples:,} of the {blocks.n_samples:,} rows")
        rows = blocks = LocalBlocks([drawn])
    row_id, y, pairs_in, grade = gather_columns(blocks, "row_id", "label", "group", "grade")
    if class_blocks is not None:
        n_pos, n_neg = smallest_class(class_blocks.sets, y, MAX_FOLDS)
    groups = whole[row_id] if pairs_in is None and whole is not None else pairs_in
    n_groups = None if groups is None else len(np.unique(groups))
    search = auto_search(
        estimator, n_pos=n_pos, n_neg=n_neg, n_features=blocks.n_features, n_groups=n_groups, grouped=pairs_in is not None,
        lowest_grade=None if grade is None else float(grade.min()), readable=readable, note=note, **options,
    )  # fmt: skip
    folds, classes = Folds(row_id, y, search.n_folds, groups=groups, strata=None if class_blocks is None else y), None
    try:
        if n_groups == 1:
            raise InputError(
                "`features: auto` chooses by folds that keep groups whole, and all rows are of one group: name a feature map, "
                "or leave the groups out"
            )
        folds.check()
        if class_blocks is not None:
            classes = searched_classes(class_blocks.sets, y, folds, note)
            rows = replace(class_blocks, sets=classes.sets)
    except InputError as error:
        if not readable:
            raise
        best = {"features": max(search.settings, key=complexity_of)["features"]}
        note(f"folds cannot choose the feature map, so it is {value_text(best['features'])}: {error}")
        return {"best": best}
    table, n_jobs = try_settings(estimator, search, rows, folds, done)
    return search_summary(table, folds, search.metric, search.rule, classes) | {
        "folds": {"number": search.n_folds, "fitted": len(table[0].results), "repeats": 1, "seed": folds.seed},
        "placement": "masks",
        "tasks": {"all": n_jobs, "kept": 0, "failed": sum(bool(row.errors) for row in table)},
        "seconds": time.perf_counter() - start,
    }


def try_settings(
    estimator: BlockClassifier,
    search: AutoSearch,
    rows: AnyBlocks,
    folds: Folds,
    done: Done = _ignore_progress,
) -> tuple[list[SettingScores], int]:
    """Fit settings on the training rows of each fold and score them on its other rows, which get weight 0.

    Returns
    -------
    table : list of SettingScores
        One for each setting.
    n_tasks : int
        The number of jobs.
    """
    n_tasks = 0
    fold_estimator = clone(estimator).set_params(tol=search.tol)

    def run_jobs(jobs: list[FitJob]) -> list[list[FoldScore]]:
        """Run the jobs and report each. If the data make a fit fail, the error is recorded as the result of its settings."""
        nonlocal n_tasks
        n_tasks, results = n_tasks + len(jobs), []
        for number, job in enumerate(jobs, n_tasks - len(jobs) + 1):
            try:
                # The table of settings shows which fits did not converge.
                with warnings.catch_warnings(action="ignore"):
                    results.append(score_job(fold_estimator, job, folds.masks(job.fold), rows, search.metric))
            except ValueError as error:  # InputError is a ValueError
                results.append([{"error": str(error)} for _ in job.settings])
            done(number, n_tasks, job.settings[0])
        return results

    outer = folds.outer()[: search.n_fitted]
    return race(fold_estimator, search.settings, outer, search.metric, search.n_first, run_jobs), n_tasks


def with_chosen_features(estimator: BlockClassifier, rows: AnyBlocks) -> tuple[BlockClassifier, Setting]:
    """Choose the feature map and `lam` by cross-validation. Return an unfitted estimator with them, and the chosen parameters.

    Parameters
    ----------
    estimator : BlockClassifier
        An unfitted estimator with ``features="auto"``, or with a mapping that has further options.
    rows : AnyBlocks
        The training rows.
    """
    plain = estimator._copy_with(features=None, warm_start=False, calibration=None, prior=None, verbose=0, n_jobs=None)
    chosen = choose_features(
        plain,
        rows,
        missing=bool(rows.all_blocks().sum(count_missing).any()),
        lam=None if estimator.lam == type(estimator).lam else estimator.lam,
        **search_options(estimator.features)._asdict(),
    )["best"]
    return clone(estimator).set_params(**{"features": None} | chosen), chosen

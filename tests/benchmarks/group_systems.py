"""The systems of the suite `groups`: our fits within groups, rankers of trees, and linear models that see rows or pairs."""

# The peers are optional, and some have no type annotations.
# mypy: disable-error-code="import-not-found,import-untyped"

import itertools
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import LocalBlocks
from aucdist.estimators import PairwiseHingeClassifier, PairwiseRampClassifier, PairwiseSquareClassifier
from aucdist.metrics.groups import group_auc, group_ndcg
from aucdist.search.auto import auto_search, try_settings
from aucdist.search.choice import choose
from aucdist.search.folds import Folds

Scores = Callable[[np.ndarray], np.ndarray]
Splits = Sequence[tuple[np.ndarray, np.ndarray]]
LAMS = (10.0, 1.0, 1e-1, 1e-2, 1e-3)
MAX_ROWS_OF_QUERY = 10_000
"""LightGBM's rankers refuse a query of more rows."""
MAX_PAIRS = 200_000
"""Of more pairs no system gets a row for each."""


@dataclass(frozen=True, eq=False)
class GroupRows:
    """Rows with grades, 0 and 1 for two classes, and groups."""

    X: np.ndarray
    grade: np.ndarray
    group: np.ndarray

    def take(self, which: np.ndarray) -> "GroupRows":
        """Return some of the rows."""
        return GroupRows(self.X[which], self.grade[which], self.group[which])

    @property
    def is_graded(self) -> bool:
        """Whether there are more than two grades."""
        return bool(self.grade.max() > 1)

    def by_group(self) -> tuple["GroupRows", np.ndarray]:
        """Return the rows sorted by group, and the size of each group."""
        rows = self.take(np.argsort(self.group, kind="stable"))
        return rows, np.unique(rows.group, return_counts=True)[1]

    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the positions of both rows of each pair, the higher grade first."""
        pairs = []
        for g in np.unique(self.group):
            mine = np.flatnonzero(self.group == g)
            first, second = np.nonzero(self.grade[mine][:, None] > self.grade[mine])
            pairs.append((mine[first], mine[second]))
        first, second = (np.concatenate(part) for part in zip(*pairs, strict=True))
        return first, second


@dataclass(frozen=True)
class System:
    """A system: ``fit(rows, folds)`` returns what scores rows, and the settings that the folds have chosen.

    Attributes
    ----------
    name : str
    fit : callable
    package : str
        That it needs; empty for none.
    suits : callable
        Whether it takes rows.
    slow : bool
        Whether it fits some hundred models; then it is run with `slow_peers` only.
    """

    name: str
    fit: Callable[[GroupRows, Splits], tuple[Scores, str]]
    package: str = ""
    suits: Callable[[GroupRows], bool] = lambda rows: True
    slow: bool = False

    def runs(self, rows: GroupRows, slow_peers: bool) -> bool:
        """Return whether it is installed, and to be fitted to the rows."""
        installed = not self.package or find_spec(self.package) is not None
        return installed and self.suits(rows) and (slow_peers or not self.slow)


def value(rows: GroupRows, scores: np.ndarray) -> float:
    """Return what the folds choose by: NDCG of the first ten rows for grades, and the AUC within groups for two classes."""
    if rows.is_graded:
        return group_ndcg(rows.grade, scores, groups=rows.group, k=10).mean
    return group_auc(rows.grade, scores, groups=rows.group).mean


def by_folds(
    make: Callable[..., Any], settings: Iterable[dict[str, Any]], train: Callable[[Any, GroupRows], Scores]
) -> Callable[[GroupRows, Splits], tuple[Scores, str]]:
    """Return a fit that takes the settings of the highest mean over the folds, and then all rows."""
    tried = list(settings)

    def fit(rows: GroupRows, folds: Splits) -> tuple[Scores, str]:
        means = []
        for setting in tried if len(tried) > 1 else []:
            values = []
            for which, held_out in folds:
                scores = train(make(**setting), rows.take(which))(rows.X[held_out])
                values.append(value(rows.take(held_out), scores))
            means.append(np.mean(values))
        best = tried[int(np.argmax(means))] if means else tried[0]
        return train(make(**best), rows), " ".join(f"{key} {v:g}" for key, v in best.items())

    return fit


def grid(**values: Sequence[Any]) -> list[dict[str, Any]]:
    """Return all settings of a grid."""
    return [dict(zip(values, point, strict=True)) for point in itertools.product(*values.values())]


# ---- our fits -------------------------------------------------------------------------------------------------------------


def _ours(model: Any, rows: GroupRows) -> Scores:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if rows.is_graded:
            model.set_params(grade_weight="difference")
        return model.fit(rows.X, rows.grade, groups=rows.group).decision_function


def _on_leaves(**options: Any) -> Any:
    return PairwiseHingeClassifier(features="leaves", tol=1e-2, **options)


def _across(model: Any, rows: GroupRows) -> Scores:
    """Fit pairs of all rows, whatever their group."""
    if rows.is_graded:
        model.set_params(grade_weight="difference")
    return model.fit(rows.X, rows.grade).decision_function


def _auto(rows: GroupRows, folds: Splits) -> tuple[Scores, str]:
    """Fit with the feature map that `features: auto` chooses, by its own metric and rule."""
    graded, y = rows.is_graded, np.where(rows.grade > 0, 1, -1)
    estimator = PairwiseHingeClassifier(grade_weight="difference" if graded else None)
    blocks = LocalBlocks([Block.of(rows.X, y, group=rows.group, grade=rows.grade if graded else None)])
    n_pos = int((y > 0).sum())
    search = auto_search(
        estimator, n_pos=n_pos, n_neg=len(y) - n_pos, n_features=rows.X.shape[1], n_groups=len(np.unique(rows.group)),
        lowest_grade=float(rows.grade.min()) if graded else None,
    )  # fmt: skip
    own = Folds(np.arange(len(y)), y, search.n_folds, groups=rows.group)
    table, _ = try_settings(estimator, search, blocks, own)
    best = table[choose(table, search.metric, search.rule)].parameters
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = estimator.set_params(**best).fit(blocks)
    return model.decision_function, " ".join(f"{key} {v}" for key, v in best.items())


# ---- peers ----------------------------------------------------------------------------------------------------------------


def _on_grades(model: Any, rows: GroupRows) -> Scores:
    return model.fit(rows.X, rows.grade).predict


def _on_classes(model: Any, rows: GroupRows) -> Scores:
    fitted = model.fit(rows.X, rows.grade > 0)
    if hasattr(fitted, "decision_function"):
        return fitted.decision_function
    return lambda X: fitted.predict_proba(X)[:, 1]


def _on_pairs(model: Any, rows: GroupRows) -> Scores:
    first, second = rows.pairs()
    Z, weight = rows.X[first] - rows.X[second], rows.grade[first] - rows.grade[second]
    model.fit(np.vstack([Z, -Z]), np.repeat([1, -1], len(Z)), sample_weight=np.tile(weight, 2) / weight.mean())
    w = model.coef_[0]
    return lambda X: X @ w


def _lightgbm_ranker(model: Any, rows: GroupRows) -> Scores:
    ordered, sizes = rows.by_group()
    return model.fit(ordered.X, ordered.grade.astype(int), group=sizes).predict


def _xgboost_ranker(model: Any, rows: GroupRows) -> Scores:
    ordered, _ = rows.by_group()
    numbers = np.unique(ordered.group, return_inverse=True)[1]
    return model.fit(ordered.X, ordered.grade.astype(int), qid=numbers).predict


def _lightgbm(kind: str, **fixed: Any) -> Callable[..., Any]:
    def make(**options: Any) -> Any:
        import lightgbm

        return getattr(lightgbm, kind)(n_jobs=1, random_state=0, verbosity=-1, **fixed, **options)

    return make


def _xgboost(objective: str) -> Callable[..., Any]:
    def make(**options: Any) -> Any:
        from xgboost import XGBRanker

        return XGBRanker(objective=objective, tree_method="hist", n_jobs=1, random_state=0, **options)

    return make


def _ridge(**options: Any) -> Any:
    from sklearn.linear_model import Ridge

    return Ridge(**options)


def _logistic(**options: Any) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=2000, **options)


def _svm_of_pairs(**options: Any) -> Any:
    from sklearn.svm import LinearSVC

    return LinearSVC(loss="squared_hinge", fit_intercept=False, dual=False, **options)


def _has_few_pairs(rows: GroupRows) -> bool:
    of_group = [rows.grade[rows.group == g] for g in np.unique(rows.group)]
    return sum(len(g) ** 2 for g in of_group) / 2 <= MAX_PAIRS


def _is_graded(rows: GroupRows) -> bool:
    return rows.is_graded


def _has_classes(rows: GroupRows) -> bool:
    return not rows.is_graded


def _has_small_queries(rows: GroupRows) -> bool:
    return int(np.unique(rows.group, return_counts=True)[1].max()) <= MAX_ROWS_OF_QUERY


def all_systems() -> list[System]:
    """Return the peer that others are compared with, our fits, and the other peers."""
    lams = grid(lam=LAMS)
    trees = grid(num_leaves=(7, 31), learning_rate=(0.03, 0.1))
    depths = grid(max_depth=(3, 6), learning_rate=(0.1,))
    small: dict[str, Any] = {"package": "lightgbm", "suits": _has_small_queries}
    return [
        System("LightGBM lambdarank", by_folds(_lightgbm("LGBMRanker"), trees, _lightgbm_ranker), **small),
        System("hinge within groups", by_folds(PairwiseHingeClassifier, lams, _ours)),
        System("ramp within groups", by_folds(PairwiseRampClassifier, lams, _ours)),
        System("square within groups", by_folds(PairwiseSquareClassifier, lams, _ours)),
        System("hinge of all rows", by_folds(PairwiseHingeClassifier, lams, _across)),
        System("hinge within groups, leaves", by_folds(_on_leaves, grid(lam=LAMS[1:4]), _ours), "lightgbm"),
        System("hinge within groups, auto", _auto, slow=True),
        System("ridge on grades", by_folds(_ridge, grid(alpha=(1.0, 10.0, 100.0, 1e3, 1e4)), _on_grades)),
        System("logistic regression", by_folds(_logistic, grid(C=(1e-4, 1e-3, 1e-2, 1e-1, 1.0)), _on_classes)),
        System(
            "linear SVM of pairs",
            by_folds(_svm_of_pairs, grid(C=(1e-6, 1e-5, 1e-4, 1e-3)), _on_pairs),
            "",
            _has_few_pairs,
        ),
        System("LightGBM lambdarank, default", by_folds(_lightgbm("LGBMRanker"), [{}], _lightgbm_ranker), **small),
        System("LightGBM on grades", by_folds(_lightgbm("LGBMRegressor"), trees, _on_grades), "lightgbm", _is_graded),
        System(
            "LightGBM on classes", by_folds(_lightgbm("LGBMClassifier"), trees, _on_classes), "lightgbm", _has_classes
        ),
        System("XGBoost rank:ndcg", by_folds(_xgboost("rank:ndcg"), depths, _xgboost_ranker), "xgboost", _is_graded),
        System("XGBoost rank:pairwise", by_folds(_xgboost("rank:pairwise"), depths, _xgboost_ranker), "xgboost"),
    ]

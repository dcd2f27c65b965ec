"""The systems of the suite `trees`: our models and their peers, each with its choice of settings."""

# The peers are optional, and some have no type annotations.
# mypy: disable-error-code="import-not-found,import-untyped"

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from aucdist.data.block import Block
from aucdist.engine.blocks import LocalBlocks
from aucdist.estimators import LinkClassifier, PairwiseHingeClassifier
from aucdist.estimators.base import BlockClassifier
from aucdist.metrics.named import find_metric
from aucdist.search.auto import MAX_FOLDS, MIN_TOL, AutoSearch, lams_for, try_settings
from aucdist.search.choice import choose
from aucdist.search.folds import Folds
from aucdist.search.schedule import settings_of_grid
from benchmarks.within import within

FOLDS, PEER_FOLDS = 3, 5
SMALL = 3000
"""Training rows up to which the kernel machine is run."""
EBM_SECONDS = 180
"""CPU seconds of a fit of an explainable boosting machine, which are enough for 14 000 x 16 rows; its other fits are left out."""

Scores = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Contestant:
    """A system: ``fit(block)`` returns what scores rows, and what was chosen.

    Attributes
    ----------
    name : str
    fit : callable
    ours : bool
    package : str
        That it needs; empty for none.
    most_rows : int or None
        With more training rows it is left out.
    slow : bool
        Whether a fit of a small set may take minutes; then it is run among slow peers only.
    """

    name: str
    fit: Callable[[Block], tuple[Scores, str]]
    ours: bool = False
    package: str = ""
    most_rows: int | None = None
    slow: bool = False

    @property
    def is_installed(self) -> bool:
        """Whether the package that it needs is there."""
        return not self.package or find_spec(self.package) is not None

    def runs(self, n_samples: int, slow_peers: bool) -> bool:
        """Return whether it is to be run on so many training rows."""
        return (slow_peers or not self.slow) and (self.most_rows is None or n_samples <= self.most_rows)


# ---- our models -----------------------------------------------------------------------------------------------------------


def chosen_by_folds(
    estimator: BlockClassifier, maps: Sequence[dict[str, Any] | None], n_folds: int
) -> Callable[[Block], tuple[Scores, str]]:
    """Return a fit that chooses map and lam by folds, and then takes all rows."""

    def fit(train: Block) -> tuple[Scores, str]:
        n_pos = int((train.y > 0).sum())
        n_neg = train.n_samples - n_pos
        most = train.n_features * (train.n_features - 1) // 2
        tried = [setting for setting in maps if setting is None or setting.get("interactions", 0) <= most] or [
            {"map": "bins", "interactions": most}
        ]
        points = settings_of_grid(estimator, {"features": tried, "lam": lams_for(estimator, n_pos, n_neg)})
        search = AutoSearch(points, find_metric("auc"), MAX_FOLDS, MAX_FOLDS, MAX_FOLDS, "best", MIN_TOL)
        blocks = LocalBlocks([train])
        folds = Folds(train.row_id, train.y, max(2, min(n_folds, n_pos, n_neg)), seed=1)
        table, _ = try_settings(estimator, search, blocks, folds)
        best = table[choose(table, search.metric, search.rule)].parameters
        return clone(estimator).set_params(**best).fit(blocks).decision_function, _named(best)

    return fit


def _auto(train: Block) -> tuple[Scores, str]:
    """Fit as a user does who asks for features="auto"."""
    model = PairwiseHingeClassifier(features="auto", tol=1e-2).fit(LocalBlocks([train]))
    return model.decision_function, _named(model.chosen_)


def _named(settings: dict[str, Any]) -> str:
    return " ".join(
        f"{key} {value:g}" if isinstance(value, float) else f"{key} {value}" for key, value in settings.items()
    )


def our_contestants() -> list[Contestant]:
    """Return our models: no map, each map, and the choice among them; and the logit link after bins, for its PR-AUC."""
    hinge = PairwiseHingeClassifier(tol=1e-2)
    logit = LinkClassifier(link="logit", tol=1e-2)
    pairs = [{"map": "bins", "interactions": 10}, {"map": "bins", "interactions": 40}]

    def of(name: str, estimator: BlockClassifier, maps: Any, package: str = "") -> Contestant:
        return Contestant(name, chosen_by_folds(estimator, maps, FOLDS), ours=True, package=package)

    return [
        of("linear", hinge, [None]),
        of("bins", hinge, [{"map": "bins"}]),
        of("bins + pairs", hinge, pairs),
        of("nystroem", hinge, [{"map": "nystroem"}]),
        of("leaves", hinge, [{"map": "leaves"}], "lightgbm"),
        of("bins, logit", logit, [{"map": "bins"}]),
        Contestant("auto", _auto, ours=True),
    ]


# ---- peers ------------------------------------------------------------------------------------------------------------------


LIGHTGBM: dict[str, dict[str, Any]] = {
    "default": {},
    "500 trees": {"n_estimators": 500, "learning_rate": 0.05},
    "is_unbalance": {"is_unbalance": True},
}


TUNED = {
    "num_leaves": [4, 8, 16, 31, 63],
    "learning_rate": [0.02, 0.05, 0.1, 0.2],
    "n_estimators": [100, 300],
    "min_child_samples": [1, 5, 20],
}
"""`SETTINGS` of these 120 settings of LightGBM, drawn at random, are compared by folds."""
SETTINGS = 20


def tuned(model: Any, metric: str, folds: Any) -> Any:
    """Return the search for the best of the drawn settings, with all rows fitted to it at the end."""
    from sklearn.model_selection import RandomizedSearchCV

    return RandomizedSearchCV(model, TUNED, n_iter=SETTINGS, scoring=metric, cv=folds, random_state=0)


def _lightgbm(options: dict[str, Any]) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(**{"n_jobs": 1, "random_state": 0, "verbosity": -1, **options})


def _fitted(make: Callable[[], Any]) -> Callable[[Block], tuple[Scores, str]]:
    def fit(train: Block) -> tuple[Scores, str]:
        model = make().fit(train.X, train.y)
        return lambda X: model.predict_proba(X)[:, 1], ""

    return fit


def _lightgbm_by_folds(train: Block) -> tuple[Scores, str]:
    """Choose among the three settings by as many folds as our models have."""
    from sklearn.model_selection import StratifiedKFold, cross_val_score

    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=1)
    means = {
        name: cross_val_score(_lightgbm(options), train.X, train.y, scoring="roc_auc", cv=folds).mean()
        for name, options in LIGHTGBM.items()
    }
    best = max(means, key=lambda name: means[name])
    return _fitted(lambda: _lightgbm(LIGHTGBM[best]))(train)[0], best


def _lightgbm_tuned(train: Block) -> tuple[Scores, str]:
    """Choose among `TUNED` by `PEER_FOLDS` folds."""
    from sklearn.model_selection import StratifiedKFold

    n_folds = max(2, min(PEER_FOLDS, int((train.y > 0).sum()), int((train.y < 0).sum())))
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=1)
    model = tuned(_lightgbm({}), "roc_auc", folds).fit(train.X, train.y)
    chosen = " ".join(f"{name} {value:g}" for name, value in model.best_params_.items())
    return lambda X: model.predict_proba(X)[:, 1], chosen


def _xgboost() -> Any:
    from xgboost import XGBClassifier

    return _Relabelled(XGBClassifier(tree_method="hist", n_jobs=1, random_state=0))


class _Relabelled:
    """Labels 0 and 1 for a system that takes no others."""

    def __init__(self, model: Any):
        self._model = model

    def fit(self, X: np.ndarray, y: np.ndarray) -> Any:
        """Fit the model and return it."""
        return self._model.fit(X, (y > 0).astype(int))


def _hist_boosting() -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=0)


def explainable_boosting(seconds: int) -> Callable[[Block], tuple[Scores, str]]:
    """Return a fit of an explainable boosting machine with its defaults, for so many CPU seconds at most.

    Where a few features part the classes it goes on for minutes on some hundred rows.
    """

    def fit(train: Block) -> tuple[Scores, str]:
        from interpret.glassbox import ExplainableBoostingClassifier

        machine = ExplainableBoostingClassifier(n_jobs=1, random_state=0)
        model = within(seconds, lambda: machine.fit(_dense(train.X), (train.y > 0).astype(int)))
        return lambda X: model.predict_proba(_dense(X))[:, 1], "defaults"

    return fit


def _dense(X: Any) -> np.ndarray:
    return X.toarray() if sp.issparse(X) else X


def _kernel_machine(train: Block) -> tuple[Scores, str]:
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.svm import SVC

    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=1)
    width = 1.0 / train.n_features
    grid = {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [0.1 * width, width, 10.0 * width]}
    model = GridSearchCV(SVC(class_weight="balanced"), grid, scoring="roc_auc", cv=folds).fit(train.X, train.y)
    return model.decision_function, f"C {model.best_params_['C']:g} gamma {model.best_params_['gamma']:.3g}"


def all_contestants() -> list[Contestant]:
    """Return our models and the peers."""
    lightgbm = [
        Contestant(f"LightGBM, {name}", _fitted(lambda options=options: _lightgbm(options)), package="lightgbm")  # type: ignore[misc]
        for name, options in LIGHTGBM.items()
    ]
    return [
        *our_contestants(),
        *lightgbm,
        Contestant("LightGBM, chosen by folds", _lightgbm_by_folds, package="lightgbm"),
        Contestant("LightGBM, budget of auto", _lightgbm_tuned, package="lightgbm"),
        Contestant("XGBoost hist", _fitted(_xgboost), package="xgboost"),
        Contestant("HistGradientBoosting", _fitted(_hist_boosting)),
        Contestant("EBM", explainable_boosting(EBM_SECONDS), package="interpret", slow=True),
        Contestant("SVC, RBF", _kernel_machine, most_rows=SMALL),
    ]

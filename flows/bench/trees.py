"""The suite `trees`: additive models and landmarks beside boosted trees and a kernel machine, by AUC on held-out rows.

Every system chooses its own settings by inner folds of the training rows, or has none to choose; its seconds include the choice.
The splits are stratified by class, by seeds that were not used while the maps were made.
"""

# The peers are optional, and some have no type annotations.
# mypy: disable-error-code="import-not-found,import-untyped"

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from aucdist.data.block import Block
from aucdist.data.sources.catalog import catalog
from aucdist.engine.blocks import LocalBlocks
from aucdist.errors import InputError, unknown
from aucdist.estimators import LinkClassifier, PairwiseHingeClassifier
from aucdist.estimators.base import BlockClassifier
from aucdist.metrics import average_precision_score, roc_auc_score
from aucdist.metrics.compare import corrected_t_test
from aucdist.metrics.measures import find_measure
from aucdist.search.candidates import LAMS, auto_grid, candidates
from aucdist.search.choice import Rule, choose
from aucdist.search.grid import points_of
from aucdist.search.splits import Folds
from flows.bench import common
from flows.bench.common import TEST_SHARE, Row
from flows.progress.console import LineObserver
from flows.train.feature_choice import try_settings

SEEDS = (9001, 9002, 9003, 9004, 9005)
FOLDS, AUTO_FOLDS = 3, 5
LARGE = ("letter-recognition", "magic04", "skin_nonskin", "covtype-ramp-test", "a9a")
RARE = 60
"""A set of KEEL is called rare if it has so many positives at most, and nine negatives for each."""
NEAR = 0.005
SMALL = 3000
"""Training rows up to which the kernel machine is run."""
CONDITIONS = f"{int(100 * TEST_SHARE)} % of each class held out, split seeds {SEEDS[0]} to {SEEDS[-1]}"
QUIET = LineObserver(lambda text: None)

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
    """

    name: str
    fit: Callable[[Block], tuple[Scores, str]]
    ours: bool = False
    package: str = ""
    most_rows: int | None = None


def trees(
    slow_peers: bool,
    only: str | None = None,
    splits: int = len(SEEDS),
    contestants: Sequence[Contestant] | None = None,
) -> Iterator[Row]:
    """Yield a row for each set, split and system; after each set the means, beside the best peer; in the end the goals.

    Parameters
    ----------
    slow_peers : bool
        Also the largest sets, and kernel machines on them.
    only : str, optional
        Names of data sets, separated by commas.
    splits : int
        Random splits of each set, at most five.
    contestants : sequence of Contestant, optional
        In place of all that are installed.
    """
    if not 1 <= splits <= len(SEEDS):
        raise InputError(f"--splits is {splits}; 1 to {len(SEEDS)} splits are there")
    systems = [one for one in contestants or all_contestants() if not one.package or find_spec(one.package)]
    means: list[Row] = []
    for name in _names(only, slow_peers):
        found: list[Row] = []
        for seed in SEEDS[:splits]:
            try:
                train, test = split_and_scale(name, seed)
            except InputError as error:  # such as missing values, for which most systems have no place
                yield {"set": name, "chosen": f"left out: {error}"[:200]}
                break
            for system in systems:
                if system.most_rows is None or train.n_samples <= system.most_rows or slow_peers:
                    row = _measure(system, name, seed, train, test)
                    found.append(row)
                    yield row
        own = list(_means(name, found, systems))
        means += own
        yield from own
    yield from _goals(means, systems)


def _names(only: str | None, slow_peers: bool) -> list[str]:
    known = [name for name, source in catalog().items() if source.format == "keel"] + list(LARGE)
    if only is None:
        return known if slow_peers else [name for name in known if name not in ("skin_nonskin", "covtype-ramp-test")]
    wanted = only.split(",")
    for name in wanted:
        if name not in known:
            raise unknown("data set", name, known)
    return wanted


def split_and_scale(name: str, seed: int) -> tuple[Block, Block]:
    """Return the training and test rows of a split, dense and standardised by the training rows; trees do not mind."""
    train, test = common.split_and_scale(name, seed)
    return _dense(train), _dense(test)


def _dense(block: Block) -> Block:
    X = block.X.toarray() if hasattr(block.X, "toarray") else block.X
    return Block.of(np.asarray(X, dtype=np.float64), block.y)


def _measure(system: Contestant, name: str, seed: int, train: Block, test: Block) -> Row:
    row: Row = {"set": name, "split": seed, "system": system.name, "rows": train.n_samples, "features": train.n_features,
                "positives": int((train.y > 0).sum())}  # fmt: skip
    start = time.perf_counter()
    try:
        score, chosen = system.fit(train)
    except Exception as error:  # the others still count; the table says what failed
        return row | {"chosen": f"failed: {type(error).__name__}: {error}"[:200]}
    seconds = time.perf_counter() - start
    scores = np.asarray(score(test.X), dtype=np.float64)
    return row | {
        "AUC": float(roc_auc_score(test.y, scores)), "PR-AUC": float(average_precision_score(test.y, scores)),
        "seconds": seconds, "chosen": chosen,
    }  # fmt: skip


# ---- summaries ----------------------------------------------------------------------------------------------------------


def _means(name: str, rows: list[Row], systems: Sequence[Contestant]) -> Iterator[Row]:
    """Yield the means over the splits, with the difference to the peer of the best mean AUC and its corrected interval."""
    by_system = {one.name: [row for row in rows if row["system"] == one.name and "AUC" in row] for one in systems}
    whole = {
        key: found for key, found in by_system.items() if found and len(found) == max(map(len, by_system.values()))
    }
    peers = [one.name for one in systems if not one.ours and one.name in whole]
    best = max(peers, key=lambda key: _mean(whole[key], "AUC"), default=None)
    for key, found in whole.items():
        row: Row = {
            "set": name,
            "split": "mean",
            "system": key,
            **{k: found[0][k] for k in ("rows", "features", "positives")},
        }
        row |= {measure: _mean(found, measure) for measure in ("AUC", "PR-AUC", "seconds")}
        if best is not None and key != best:
            differences = [a["AUC"] - b["AUC"] for a, b in zip(found, whole[best], strict=True)]
            row |= {"best peer": best, "AUC - best peer": float(np.mean(differences))}
            if len(differences) > 1:
                test = corrected_t_test(differences, TEST_SHARE / (1 - TEST_SHARE))
                row |= {"low": test.low, "high": test.high, "p": test.p_value}
        yield row


def _mean(rows: Sequence[Row], measure: str) -> float:
    return float(np.mean([row[measure] for row in rows]))


def _goals(means: list[Row], systems: Sequence[Contestant]) -> Iterator[Row]:
    """Yield for each system over all its sets: means, how often it is near the best peer, rare sets, the worst loss to linear."""
    names = list(dict.fromkeys(row["set"] for row in means))
    rows = {(row["set"], row["system"]): row for row in means}
    keel = {name for name, source in catalog().items() if source.format == "keel"}
    for one in systems:
        own = {name: rows[name, one.name] for name in names if (name, one.name) in rows}
        if not own:
            continue
        found = list(own.values())
        row: Row = {"set": f"{len(own)} sets", "split": "all", "system": one.name}
        row |= {measure: _mean(found, measure) for measure in ("AUC", "PR-AUC", "seconds")}
        peers = [peer.name for peer in systems if not peer.ours and peer is not one]
        best = {name: max((rows[name, p]["AUC"] for p in peers if (name, p) in rows), default=None) for name in own}
        beside = {name: area for name, area in best.items() if area is not None}
        if beside:
            near = sum(own[name]["AUC"] >= area - NEAR for name, area in beside.items())
            row[f"within {NEAR:g} of the best peer"] = f"{near} of {len(beside)}"
        rare = [row for name, row in own.items() if name in keel and _is_rare(row)]
        if rare:
            row |= {"rare sets": len(rare), "AUC of rare sets": _mean(rare, "AUC")}
        losses = [rows[name, "linear"]["AUC"] - own[name]["AUC"] for name in own if (name, "linear") in rows]
        yield row | ({"most below linear": max(losses)} if losses else {})


def _is_rare(row: Row) -> bool:
    positives = row["positives"] / (1 - TEST_SHARE)
    return bool(positives <= RARE and row["rows"] >= 10 * row["positives"])


# ---- our models -----------------------------------------------------------------------------------------------------------


def chosen_by_folds(
    estimator: BlockClassifier, maps: Sequence[Any] | None, n_folds: int, rule: Rule
) -> Callable[[Block], tuple[Scores, str]]:
    """Return a fit that chooses map and lam by folds, and then takes all rows; `maps` None: those that `auto` tries."""

    def fit(train: Block) -> tuple[Scores, str]:
        n_pos = int((train.y > 0).sum())
        n_neg = train.n_samples - n_pos
        tried = maps
        if tried is None:
            tried = candidates(estimator, n_pos=n_pos, n_neg=n_neg, n_features=train.n_features)
        most = train.n_features * (train.n_features - 1) // 2
        tried = [one for one in tried if one is None or one.get("pairs", 0) <= most] or [{"map": "bins", "pairs": most}]
        points = points_of(estimator, auto_grid(tried, LAMS))
        blocks = LocalBlocks([train])
        folds = Folds(train.row_id, train.y, max(2, min(n_folds, n_pos, n_neg)), seed=1)
        table, _ = try_settings(estimator, points, blocks, folds, QUIET)
        best = table[choose(table, find_measure("auc"), rule)].parameters
        model = type(estimator)(**{**estimator.get_params(), **best}).fit(blocks)
        chosen = " ".join(
            f"{key} {value:g}" if isinstance(value, float) else f"{key} {value}" for key, value in best.items()
        )
        return model.decision_function, chosen

    return fit


def our_contestants() -> list[Contestant]:
    """Return our models: no map, each map, and the choice among them; and the logit link after bins, for its PR-AUC."""
    hinge = PairwiseHingeClassifier(tol=1e-2)
    logit = LinkClassifier(link="logit", tol=1e-2)
    pairs = [{"map": "bins", "pairs": 10}, {"map": "bins", "pairs": 40}]

    def of(name: str, estimator: BlockClassifier, maps: Any, package: str = "") -> Contestant:
        return Contestant(name, chosen_by_folds(estimator, maps, FOLDS, "best"), ours=True, package=package)

    return [
        of("linear", hinge, [None]),
        of("bins", hinge, [{"map": "bins"}]),
        of("bins + pairs", hinge, pairs),
        of("nystroem", hinge, [{"map": "nystroem"}]),
        of("leaves", hinge, [{"map": "leaves"}], "lightgbm"),
        of("bins, logit", logit, [{"map": "bins"}]),
        Contestant("auto", chosen_by_folds(hinge, None, AUTO_FOLDS, "simplest"), ours=True),
    ]


# ---- peers ------------------------------------------------------------------------------------------------------------------


LIGHTGBM: dict[str, dict[str, Any]] = {
    "default": {},
    "500 trees": {"n_estimators": 500, "learning_rate": 0.05},
    "is_unbalance": {"is_unbalance": True},
}


TUNED = {"num_leaves": [4, 8, 16, 31, 63], "learning_rate": [0.02, 0.05, 0.1, 0.2]}
"""Twenty settings, as many as `auto` tries on a set that is too small for pairs, by as many folds."""


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
    """Choose among `TUNED` by as many folds as `auto` has: the same budget of tuning."""
    from sklearn.model_selection import GridSearchCV, StratifiedKFold

    n_folds = max(2, min(AUTO_FOLDS, int((train.y > 0).sum()), int((train.y < 0).sum())))
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=1)
    model = GridSearchCV(_lightgbm({}), TUNED, scoring="roc_auc", cv=folds).fit(train.X, train.y)
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


def _ebm() -> Any:
    from interpret.glassbox import ExplainableBoostingClassifier

    return ExplainableBoostingClassifier(n_jobs=1, random_state=0)


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
        Contestant("EBM", _fitted(_ebm), package="interpret"),
        Contestant("SVC, RBF", _kernel_machine, most_rows=SMALL),
    ]

"""The suite `curves`: `features: auto` trained for the top of the list, beside boosted trees.

Every contestant chooses among its settings, peers among as many as `auto` or more, by the same five folds of the training rows
and by the same metric, that of `auto`: the partial AUC up to `BETA`, with a part of the AUC where positives are few. Of more
than `CHOICE_ROWS` training rows the folds have so many, the same for all. Then it fits all training rows. On the test rows of
each split, `auto` and each peer are compared by the paired test of the partial AUC up to `MAX_FPR`, corrected by Holm's method
over the peers. On a data set `auto` wins or loses against a peer if it is significantly better or worse on most of the splits,
of which small sets have three. Over all sets their mean differences are ranked by Wilcoxon's test. CPU seconds include the
choice.

What `auto` tries was chosen on other problems and splits, named at `aucdist.search.auto.LEAVES_OF_TOP`. The part of the AUC
was chosen on sets that no suite of the top uses, with the same seeds: abalone9-18, haberman, ecoli1, winequality-red-4, vehicle1
and vehicle3.
"""

# The peers are optional, and some have no type annotations.
# mypy: disable-error-code="import-not-found,import-untyped"

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import wilcoxon
from sklearn.base import clone

from aucdist.data.block import Block
from aucdist.engine.blocks import LocalBlocks
from aucdist.errors import InputError
from aucdist.estimators import PairwiseHingeClassifier
from aucdist.metrics.compare import holm, partial_auc_test
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.named import find_metric
from aucdist.metrics.partial import partial_auc
from aucdist.metrics.ranking import auc
from aucdist.search.auto import auto_search, default_metric, try_settings
from aucdist.search.choice import choose
from aucdist.search.folds import Folds
from benchmarks.common import Row, chosen_names
from benchmarks.peers.contestant import CHOICE_ROWS, stratified_subset
from benchmarks.peers.data_sets import top_data_sets
from benchmarks.tree_systems import Contestant, Scores, explainable_boosting
from benchmarks.within import cpu_seconds
from flows.progress import LineObserver

BETA, MAX_FPR = 0.05, 0.01
N_FOLDS, FOLD_SEED = 5, 1
SPLITS = 3
MIN_POSITIVES = 100
EBM_SECONDS = 1800
"""CPU seconds of a fit of an explainable boosting machine; one on 16 000 x 54 rows took 282."""
AUTO = "aucdist auto"
METRIC = find_metric(**default_metric(BETA))
QUIET = LineObserver(lambda text: None)
CONDITIONS = (
    f"every system chooses by the partial AUC up to {BETA:g}, below 80 held-out positives with a part of the AUC, on five folds "
    f"of at most {CHOICE_ROWS} training rows; tested up to {MAX_FPR:g}"
)
"""Stated in the first line of the output and on the page."""

LIGHTGBM = {"num_leaves": [7, 15, 31, 63, 255], "learning_rate": [0.02, 0.05, 0.1], "n_estimators": [100, 300, 500]}
XGBOOST = {"max_depth": [3, 5, 7, 9], "learning_rate": [0.02, 0.05, 0.1], "n_estimators": [100, 300, 500]}
"""Forty-five and thirty-six settings; `auto` tries 34 at most, with trees of as many leaves."""


def curves(
    slow_peers: bool,
    *,
    only: str | None = None,
    splits: int = SPLITS,
    contestants: Sequence[Contestant] | None = None,
) -> Iterator[Row]:
    """Yield a row for each data set, split and system, and in the end wins, ties and losses against each peer.

    Parameters
    ----------
    slow_peers : bool
        Also explainable boosting machines.
    only : str, optional
        Names of data sets, separated by commas; None for all of the suite `top`.
    splits : int
        Splits of each set without test rows of its own that has fewer than 10 000 training rows; others have one.
    contestants : sequence of Contestant, optional
        In place of all that are installed; the first is `auto`.
    """
    if splits < 1:
        raise InputError(f"--splits must be at least 1; got {splits}")
    systems = [contestant for contestant in contestants or all_contestants() if contestant.is_installed]
    compared: dict[str, dict[str, list[Row]]] = {}
    known = top_data_sets(slow_peers=False)
    for name in chosen_names(only, known):
        for split, (train, test) in enumerate(known[name](splits)):
            if int((test.y > 0).sum()) < MIN_POSITIVES:
                print(f"{name}: fewer than {MIN_POSITIVES} positive test rows, left out", file=sys.stderr, flush=True)
                break
            fits = [_fit(system, train, test) for system in systems if system.runs(train.n_samples, slow_peers)]
            for row in _compared(test.y, fits):
                if "aucdist" in row:
                    compared.setdefault(row["system"], {}).setdefault(name, []).append(row)
                yield {"data": name, "split": split, **row}
    yield from summary(compared)


def _fit(system: Contestant, train: Block, test: Block) -> tuple[Row, np.ndarray | None]:
    start = cpu_seconds()  # all contestants have one thread, so that other work on the machine hardly counts
    try:
        score, chosen = system.fit(train)
        scores = np.asarray(score(test.X), dtype=np.float64).ravel()
    except Exception as error:  # a peer may fail in any way, and the others count all the same
        return {"system": system.name, "chosen": f"failed: {type(error).__name__}: {error}"[:200]}, None
    counts = ScoreCounts.from_scores(test.y, scores)
    return {
        "system": system.name, "AUC": auc(counts), f"partial AUC {MAX_FPR:g}": partial_auc(counts, MAX_FPR),
        f"partial AUC {BETA:g}": partial_auc(counts, BETA), "CPU seconds": cpu_seconds() - start, "chosen": chosen,
    }, scores  # fmt: skip


def _compared(y: np.ndarray, fits: Sequence[tuple[Row, np.ndarray | None]]) -> Iterator[Row]:
    """Yield the rows, those of the peers with the paired test of the first system against them."""
    (ours, our_scores), peers = fits[0], fits[1:]
    yield ours
    tested = [row["system"] for row, scores in peers if scores is not None and our_scores is not None]
    tests = [partial_auc_test(y, our_scores, scores, MAX_FPR) for row, scores in peers if row["system"] in tested]  # type: ignore[arg-type]
    corrected = dict(zip(tested, zip(tests, holm([test.p_value for test in tests]), strict=True), strict=True))
    for row, _ in peers:
        if row["system"] in corrected:
            test, p = corrected[row["system"]]
            outcome = "ties" if p > 0.05 else "wins" if test.value > 0 else "loses"
            row |= {"aucdist minus this": test.value, "p": p, "aucdist": outcome}
        yield row


def summary(compared: Mapping[str, Mapping[str, Sequence[Row]]]) -> Iterator[Row]:
    """Yield for each peer the sets won, tied and lost, the mean difference over the sets, and whether it is one of chance.

    Parameters
    ----------
    compared : mapping
        From a peer and a set to the rows of its splits. The mean of the splits is the difference of a set, and p that of
        Wilcoxon's signed-rank test over the sets (Demsar, Statistical Comparisons of Classifiers over Multiple Data Sets, 2006).
    """
    for name, of_sets in compared.items():
        counted = {
            outcome: sum(2 * sum(row["aucdist"] == outcome for row in rows) > len(rows) for rows in of_sets.values())
            for outcome in ("wins", "loses")
        }
        differences = [np.mean([row["aucdist minus this"] for row in rows]) for rows in of_sets.values()]
        yield {
            "data": f"all {len(of_sets)}", "system": name, "aucdist minus this": float(np.mean(differences)),
            "p": float(wilcoxon(differences).pvalue) if any(differences) else 1.0, **counted,
            "ties": len(of_sets) - sum(counted.values()),
        }  # fmt: skip


# ---- contestants ------------------------------------------------------------------------------------------------------------


def rows_of_choice(train: Block) -> Block:
    """Return the training rows, or `CHOICE_ROWS` of them with the same share of positives: those that the folds are made of."""
    return train if train.n_samples <= CHOICE_ROWS else train.take(stratified_subset(train.y, CHOICE_ROWS))


def _auto(train: Block) -> tuple[Scores, str]:
    """Choose and fit as `features: auto` does with `max_fpr`."""
    estimator = PairwiseHingeClassifier(max_fpr=BETA, tol=1e-2)
    few = rows_of_choice(train)
    n_pos = int((few.y > 0).sum())
    search = auto_search(estimator, n_pos=n_pos, n_neg=few.n_samples - n_pos, n_features=few.n_features)
    folds = Folds(few.row_id, few.y, search.n_folds, seed=FOLD_SEED)
    table, _ = try_settings(estimator, search, LocalBlocks([few]), folds)
    best = table[choose(table, search.metric, search.rule)].parameters
    model = clone(estimator).set_params(**best).fit(LocalBlocks([train]))
    return model.decision_function, f"features {best['features']} lam {best['lam']:g}"


def _tuned(make: Callable[[], Any], grid: dict[str, list[Any]]) -> Callable[[Block], tuple[Scores, str]]:
    """Return a fit that chooses from a grid by the folds and the metric of `auto`."""

    def fit(train: Block) -> tuple[Scores, str]:
        from sklearn.model_selection import GridSearchCV

        def score(model: Any, X: np.ndarray, y: np.ndarray) -> float:
            return METRIC.evaluate(ScoreCounts.from_scores(2 * y - 1, model.predict_proba(X)[:, 1]), 0.0)

        few = rows_of_choice(train)
        folds = Folds(few.row_id, few.y, N_FOLDS, seed=FOLD_SEED)
        both = [folds.masks(fold) for fold in folds.outer()]  # bool arrays by row id
        sides = [tuple(np.flatnonzero(side[few.row_id]) for side in of_fold) for of_fold in both]
        search = GridSearchCV(make(), grid, scoring=score, cv=sides, refit=False).fit(few.X, (few.y > 0).astype(int))
        model = make().set_params(**search.best_params_).fit(train.X, (train.y > 0).astype(int))
        chosen = " ".join(f"{name} {value:g}" for name, value in search.best_params_.items())
        return lambda X: model.predict_proba(X)[:, 1], chosen

    return fit


def _lightgbm() -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=1, random_state=0, verbosity=-1)


def _xgboost() -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(tree_method="hist", n_jobs=1, random_state=0)


def all_contestants() -> list[Contestant]:
    """Return `auto` and the peers."""
    return [
        Contestant(AUTO, _auto, ours=True),
        Contestant("LightGBM, budget of auto", _tuned(_lightgbm, LIGHTGBM), package="lightgbm"),
        Contestant("XGBoost, budget of auto", _tuned(_xgboost, XGBOOST), package="xgboost"),
        Contestant("EBM", explainable_boosting(EBM_SECONDS), package="interpret", slow=True),
    ]

"""What pages say about behaviour is what the code does.

Each row has a page, words of a sentence on it, and what holds them: the figure that the code has, or a check that raises an
AssertionError. A row fails if the code changes, and also if its page no longer has the words.
"""

import importlib
import re
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale
from sklearn.svm import LinearSVC

from aucdist import HingeClassifier, LinkClassifier, PairwiseHingeClassifier, PairwiseRampClassifier, lam_path
from aucdist.engine.blocks import LocalBlocks
from aucdist.errors import InputError
from aucdist.estimators import ESTIMATORS
from aucdist.maps import NystroemMap
from aucdist.metrics import (
    average_precision_interval,
    brier_score_loss,
    g_mean_score,
    group_auc,
    group_ndcg,
    guaranteed_threshold,
    partial_roc_auc_score,
    roc_auc_difference,
    roc_auc_score,
)
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.partial import shrunk_partial_auc
from aucdist.model import as_model
from aucdist.search.auto import candidates
from flows.config.model import OperatingPointConfig
from flows.cv.config import CvConfig

PAGES = Path(__file__).resolve().parents[1] / "docs" / "pages"

FIGURES = [
    ("how-to/thresholds", "the smaller class has fewer than 1,000 training rows", "flows.train.stages:FEW_ROWS", 1000),
    ("how-to/thresholds", "five models are fitted", "aucdist.estimators.calibration:N_FOLDS", 5),
    ("how-to/alert-queues", "a fifth of the training rows", "flows.config.model:THRESHOLD_SHARE", 1 / 5),
    ("how-to/alert-queues", "An e-value of 20 raises an alarm", "aucdist.metrics.guarantees:ALARM_E_VALUE", 20),
    ("how-to/cross-validation", "With n < 80 held-out positives", "aucdist.metrics.partial:FULL_POSITIVES", 80),
    ("how-to/cross-validation", "by more than half the standard error", "aucdist.search.choice:CLEAR_SE", 1 / 2),
    ("how-to/comparing", "if a class has fewer than 10 rows", "aucdist.metrics.ranking:MIN_ROWS", 10),
    ("how-to/comparing", "each class needs more rows: 5 / (1 - AUC)", "aucdist.metrics.ranking:MIN_MISRANKED", 5),
    ("how-to/explaining", "fewer than 0.5 % of the training rows", "aucdist.maps.explain:MIN_SHARE", 0.005),
    ("how-to/explaining", "1,000 by default", "aucdist.export.cards:DEFAULT_TOTAL", 1000),
    ("how-to/explaining", "`exact`, up to 1,000 weights", "aucdist.papers.tpauc.exact:MAX_FEATURES", 1000),
    ("how-to/explaining", "Five linear models are fitted", "aucdist.estimators.fitting:FOLDS_OF_DIRECTIONS", 5),
    ("how-to/scoring", "Up to 4,096 such columns", "aucdist.maps.explain:MAX_CONTRIBUTIONS", 4096),
    ("how-to/several-classes", "a class has more than 32,768 rows", "aucdist.maps.binning:MAX_ROWS", 32_768),
    ("how-to/several-classes", "on Dask workers, up to sixteen", "aucdist.engine.view:AT_ONCE", 16),
    ("how-to/groups", "Up to 64 different grades", "aucdist.pairs.groups:MAX_GRADES", 64),
    ("how-to/pipelines", "*blocks* of 100,000 or more", "aucdist.estimators.validation:MIN_ROWS", 100_000),
    ("how-to/pipelines", "more than 1,000 different strings", "aucdist.data.formats.source_fields:MAX_DETECTED", 1000),
    ("how-to/pipelines", "more than 50 and on average", "aucdist.data.formats.source_fields:MIN_DISTINCT", 50),
    ("how-to/your-own-csv", "an AUC of 0.99 or more", "aucdist.drift.columns:SUSPICIOUS_AUC", 0.99),
    ("how-to/your-own-csv", "preview` warn from 0.988 on", "aucdist.drift.leaks:REPORTED_AUC", 0.988),
    ("how-to/your-own-csv", "more than 1 % of the rows equal another row", "aucdist.drift.leaks:MANY_KNOWN", 0.01),
    ("how-to/your-own-csv", "up to 20,000 rows", "aucdist.drift.leaks:MAX_ROWS", 20_000),
    ("how-to/your-own-csv", "the last 20 % of the rows become the test rows", "flows.init.columns:TEST_SHARE", 0.2),
    ("how-to/your-own-csv", "more than 2,000 columns", "flows.init.run:WIDE", 2000),
    ("how-to/your-own-csv", "more than 50 columns", "flows.init.run:NARROW", 50),
    ("how-to/your-own-csv", "fewer than 64 rows for each column", "flows.init.run:ROWS_A_NUMBER", 64),
    ("how-to/your-own-csv", "ten 0/1 features of categories count as one", "flows.init.run:INDICATORS_A_NUMBER", 10),
    ("how-to/training-runs", "fewer than 10 % of the rows are positive", "aucdist.report.run:RARE_SHARE", 0.1),
    ("how-to/training-runs", "fewer than about 20 training rows", "aucdist.report.sections:FEW_ROWS", 20),
    ("how-to/training-runs", "more than 1 % of the test rows", "aucdist.drift.leaks:MANY_KNOWN", 0.01),
    ("how-to/models-in-production", "at most 65,536 distinct rows", "aucdist.drift.leaks:MAX_KEPT", 65_536),
    ("how-to/models-in-production", "significantly larger (p < 0.001)", "flows.promote:SURELY", 0.001),
    ("how-to/models-in-production", "is the same as `better` | 0.005 |", "flows.promote:NOT_WORSE_BY", 0.005),
    ("how-to/retraining", "lower by at most 0.005", "flows.promote:NOT_WORSE_BY", 0.005),
    ("how-to/retraining", "expires within five minutes", "aucdist.store:EXPIRY_SECONDS", 300),
    ("how-to/watching", "each of twenty bins", "aucdist.drift.profile:N_BINS", 20),
    ("how-to/watching", "the 512 that move the score most", "aucdist.drift.profile:MAX_COLUMNS", 512),
    ("how-to/watching", "with fewer than 20 training rows", "aucdist.drift.profile:RARE_ROWS", 20),
    ("how-to/watching", "p < 0.001 after Holm's correction", "aucdist.drift.batch:ALPHA", 0.001),
    ("how-to/exporting", "up to 200,000 landmarks times features", "aucdist.export.sql:MAX_PRODUCTS", 200_000),
    ("how-to/large-data", "when a fifth of the disk is left", "aucdist.data.storage.scratch:SHARE_THAT_STAYS_FREE", 0.2),
    ("how-to/formats", "up to 64 files", "flows.init.read:MAX_FILES", 64),
    ("how-to/audit", "its share is at least a tenth", "flows.audit:LEAST_PART", 0.1),
    ("reference/auto", "up to 100,000 rows", "aucdist.search.auto:MAX_KERNEL_ROWS", 100_000),
    ("reference/auto", "and 500 features", "aucdist.search.auto:MAX_KERNEL_COLUMNS", 500),
    ("reference/auto", "if each class has at least 50 rows;", "aucdist.search.auto:MIN_ROWS", 50),
    ("reference/auto", "from 20,000 rows on, in addition", "aucdist.search.auto:MANY_ROWS", 20_000),
    ("reference/auto", "more than $2^{27}$ values", "aucdist.search.auto:MAX_VALUES", 2**27),
    ("reference/auto", "at most about 25,000 rows of each class", "aucdist.search.auto:DRAWN_ROWS", 25_000),
    ("reference/auto", "| number of folds | 5.", "aucdist.search.auto:MAX_FOLDS", 5),
    ("reference/auto", "At least 3 are used", "aucdist.search.choice:MIN_FOLDS", 3),
    ("reference/auto", "to hold out 500 rows of the smaller class", "aucdist.search.auto:MIN_HELD_OUT", 500),
    ("reference/auto", "fewer than 50 rows of the smaller class", "aucdist.search.auto:FIRST_HELD_OUT", 50),
    ("reference/auto", "1, 0.1 and 0.01, and then 0.001 and 0.0001", "aucdist.search.auto:LAMS", (1, 0.1, 0.01, 1e-3, 1e-4)),
    ("reference/auto", "`lam` is 0.1, 0.01 or 0.001", "aucdist.search.auto:LAMS_OF_TOP", (0.1, 0.01, 0.001)),
    ("reference/auto", "for leaves it is 0.1 or 0.001", "aucdist.search.auto:LAMS_OF_LEAVES", (0.1, 0.001)),
    ("reference/auto", "over all pairs 0.1 or 0.01", "aucdist.search.auto:LAMS_OF_ALL_PAIRS", (0.1, 0.01)),
    ("reference/auto", "stop at a relative gap of 3 %", "aucdist.search.auto:MIN_TOL", 0.03),
    ("reference/auto", "If each class has at least 100 rows", "aucdist.search.auto:MIN_ROWS_OF_TOP", 100),
    ("rare-class", "tries no value of `lam` below 1e-4", "aucdist.search.auto:LAMS", (1, 0.1, 0.01, 1e-3, 1e-4)),
    ("reference/all-pairs", "There are at most 4,000 rows and $2^{26}$ values", "aucdist.pairs.few_rows:MAX_VALUES", 2**26),
    ("reference/all-pairs", "16 rounds of cutting planes", "aucdist.pairs.cutting_planes:STALL_ROUNDS", 16),
    ("reference/all-pairs", "one round for every ten rows", "aucdist.pairs.cutting_planes:ROWS_PER_ROUND", 10),
    ("reference/all-pairs", "If the smaller class has more than 65,536 rows", "aucdist.pairs.cutting_planes:MAX_ANCHORS", 65_536),
    ("reference/all-pairs", "into 8,192 intervals", "aucdist.pairs.cell_cuts:CELLS", 8192),
    ("reference/all-pairs", "more than 512 times its range", "aucdist.estimators.conditioning:FAR_RATIO", 2 * 512),
    ("reference/all-pairs", "has been found after 100 passes", "aucdist.pairs.cutting_planes:PATIENCE", 100),
    ("reference/guarantees", "the first gets 70 % of it", "aucdist.metrics.guarantees:TEST_STARTS", {1.0: 0.7, 4.0: 0.3}),
    ("certificate", "more than 65,536 rows in each class", "aucdist.pairs.cutting_planes:MAX_ANCHORS", 65_536),
    ("errors", "more than 1,000 different values", "aucdist.data.labels:MAX_CLASSES", 1000),
    ("papers", "at most 4,000 such rows", "aucdist.pairs.few_rows:MAX_ROWS", 4000),
    ("departures", "30 random directions in each round", "aucdist.papers.zovr.solvers:N_DIRECTIONS", 30),
]  # fmt: skip

X, Y = load_breast_cancer(return_X_y=True)
X, Y = scale(X)[:, :6], 1 - Y  # 1 is malignant
FLOWERS, KIND = load_iris(return_X_y=True)


def said(page: str) -> str:
    return " ".join((PAGES / f"{page}.md").read_text(encoding="utf-8").split())


@pytest.mark.parametrize(("page", "words", "place", "figure"), FIGURES, ids=[row[1][:40] for row in FIGURES])
def test_a_figure_on_a_page_is_that_of_the_code(page: str, words: str, place: str, figure: Any) -> None:
    assert words in said(page)
    module, _, name = place.partition(":")
    assert getattr(importlib.import_module(module), name) == figure


def ranking_threshold() -> None:
    model = PairwiseHingeClassifier().fit(X, Y)
    scores = model.decision_function(X)
    best = max(g_mean_score(Y, scores > t) for t in [-np.inf, *scores])
    assert g_mean_score(Y, model.predict(X)) == pytest.approx(best)


def link_threshold() -> None:
    model = LinkClassifier(link="logit").fit(X, Y)
    assert ((model.predict_proba(X)[:, 1] > 0.5) == (model.predict(X) == 1)).all()


def threshold_keeps_probabilities() -> None:
    model = PairwiseHingeClassifier(calibration="logit").fit(X, Y)
    before, scores = model.predict_proba(X), model.decision_function(X)
    model.set_threshold(X=X, y=Y, alerts=0.1)
    np.testing.assert_allclose(model.predict_proba(X), before)
    assert (model.decision_function(X) != scores).all()


def targets() -> None:
    model = PairwiseHingeClassifier().fit(X, Y)
    flagged = {
        name: model.set_threshold(X=X, y=Y, **{name: share}).predict(X) == 1
        for name, share in (("fpr", 0.03), ("alerts", 0.2), ("precision", 0.9), ("recall", 0.97))
    }
    assert 0 < flagged["fpr"][Y == 0].mean() <= 0.03
    assert 0 < flagged["alerts"].mean() <= 0.2
    assert Y[flagged["precision"]].mean() >= 0.9
    assert flagged["recall"][Y == 1].mean() >= 0.97


def smallest_cost() -> None:
    def cost(flags: Any) -> float:
        return float(flags[Y == 0].sum() + 40 * (~flags)[Y == 1].sum())

    model = PairwiseHingeClassifier().fit(X, Y)
    scores = model.decision_function(X)
    model.set_threshold(X=X, y=Y, cost={"false_positive": 1, "miss": 40})
    assert cost(model.predict(X) == 1) == min(cost(scores > t) for t in [-np.inf, *scores])


def exact_alerts() -> None:
    model = PairwiseHingeClassifier().fit(X, Y).set_threshold(X=X, alerts=50, per=len(X))
    assert (model.predict(X) == 1).sum() == 50


def no_confidence_with_cost() -> None:
    with pytest.raises(ValueError, match="leave `confidence` out"):
        OperatingPointConfig(cost={"false_positive": 1, "miss": 2}, confidence=0.95)


def guarantees_from_few_rows() -> None:
    def guaranteed(n_pos: int, n_neg: int, **target: float) -> Any:
        y = np.repeat([1, 0], [n_pos, n_neg])
        return guaranteed_threshold(y, np.r_[2 + np.arange(n_pos), -np.arange(1.0, n_neg + 1)], **target)

    assert guaranteed(30, 100, recall=0.99).guaranteed == pytest.approx(0.905, abs=5e-4)
    assert guaranteed(30, 2995, fpr=0.001).guaranteed <= 0.001 < guaranteed(30, 2994, fpr=0.001).guaranteed


def no_halving_with_nested() -> None:
    with pytest.raises(ValueError, match="`nested` and `halving` cannot be used together"):
        CvConfig(name="x", data={"name": "digits"}, grid={"lam": [1, 2]}, halving={}, nested=5)


def rules() -> None:
    def rule(**model: Any) -> str:
        return CvConfig(name="x", data={"name": "digits"}, grid={"lam": [1, 2]}, model=model).rule

    assert rule() == rule(features="auto", max_fpr=0.1) == "best"
    assert rule(features="auto") == "simplest"


def shrunk() -> None:
    y, scores = np.repeat([1, 0], [20, 400]), np.random.default_rng(0).normal(size=420) + np.repeat([1, 0], [20, 400])
    parts = partial_roc_auc_score(y, scores, max_fpr=0.1), roc_auc_score(y, scores)
    counts = ScoreCounts.from_scores(2 * y - 1, scores)
    assert shrunk_partial_auc(counts, 0.1) == pytest.approx(20 / 80 * parts[0] + 60 / 80 * parts[1])


def readable_candidates() -> None:
    def maps(rows: int) -> list[Any]:
        return candidates(PairwiseHingeClassifier(), n_pos=rows, n_neg=1000, n_features=20, readable=True)

    bins: dict[str, Any] = {"map": "bins"}
    few = [None, bins | {"monotone": "auto"}, bins, bins | {"interactions": 10}]
    assert maps(49) == few
    assert maps(50) == [*few, bins | {"interactions": 40}]


def liblinear() -> None:
    link = LinkClassifier(link="logit", lam=1 / (0.1 * len(Y)), tol=1e-8).fit(X, Y)
    np.testing.assert_allclose(link.coef_, LogisticRegression(C=0.1, tol=1e-8).fit(X, Y).coef_, rtol=1e-3)
    hinge = HingeClassifier(lam=1 / (2 * 0.1 * len(Y)), tol=1e-6, max_passes=100_000).fit(X, Y)
    theirs = LinearSVC(C=0.1, loss="hinge", tol=1e-4, max_iter=10**6, random_state=0).fit(X, Y)
    np.testing.assert_allclose(hinge.coef_, theirs.coef_, atol=2e-2)


def default_lams() -> None:
    assert PairwiseHingeClassifier().lam == 1e-3
    assert LinkClassifier(link="logit").fit(X, Y).lam_ == pytest.approx(1e-3 * 4 * Y.mean() * (1 - Y.mean()))


def default_tols() -> None:
    tols = {name: kind().tol for name, kind in ESTIMATORS.items()}
    assert tols.pop("LinkClassifier") == 1e-6
    assert set(tols.values()) == {1e-3}


def landmarks() -> None:
    assert NystroemMap().landmarks == 512
    few = NystroemMap(landmarks=512, linear="drop").fit(X, Y).transform(X).shape[1]
    assert few <= len(X) // 2


def missing_values_of_bins() -> None:
    rows, new = X.copy(), X[:1].copy()
    rows[:30, 0] = new[0, 1] = np.nan
    with pytest.raises(InputError, match="has a missing value but had none"):
        PairwiseHingeClassifier(features="bins").fit(rows, Y).predict(new)
    with pytest.raises(InputError):
        PairwiseHingeClassifier(features="nystroem").fit(rows, Y)


def group_penalty() -> None:
    for features in ("nystroem", "leaves"):
        with pytest.raises(InputError, match="group-l1"):
            PairwiseHingeClassifier(features=features, penalty="group-l1").fit(X, Y)


def importances() -> None:
    model = PairwiseHingeClassifier(features="bins").fit(X, Y)
    terms = model.explain(X).drop(columns="constant")
    np.testing.assert_allclose(model.feature_importances_, terms.std(ddof=0), rtol=1e-6)


def directions() -> None:
    accepted = {
        (name, solver)
        for name, kind in ESTIMATORS.items()
        for solver in kind.solvers
        if "monotone" in kind().get_params() and accepts(kind(solver=solver), monotone={0: "increasing"})
    }
    assert accepted == {
        ("PairwiseHingeClassifier", "all-pairs"), ("PairwiseRampClassifier", "lbfgs"), ("LinkClassifier", "newton"),
        ("PairwiseSquareClassifier", "exact"),
    }  # fmt: skip


def accepts(model: Any, fit: dict[str, Any] | None = None, **parameters: Any) -> bool:
    try:
        with warnings.catch_warnings(action="ignore"):  # few passes tell whether a fit is refused
            model.set_params(max_passes=20, **parameters).fit(X[::4], Y[::4], **fit or {})
    except (InputError, TypeError):
        return False
    return True


def supporters_of_groups() -> None:
    accepted = {
        (name, solver)
        for name, kind in ESTIMATORS.items()
        for solver in kind.solvers
        if accepts(kind(solver=solver), {"groups": np.arange(len(X[::4])) % 5})
    }
    assert accepted == {
        ("PairwiseHingeClassifier", "all-pairs"), ("PairwiseHingeClassifier", "sdcd"),
        ("PairwiseHingeClassifier", "sdcd-perm"), ("PairwiseRampClassifier", "lbfgs"), ("PairwiseSquareClassifier", "exact"),
    }  # fmt: skip
    for top in ({"max_fpr": 0.1}, {"max_false_positives": 5}):
        assert not accepts(PairwiseHingeClassifier(), {"groups": np.arange(len(X[::4])) % 5}, **top)


def weights_within_groups() -> None:
    random = np.random.default_rng(0)
    y, scores, groups, weight = random.random(60) < 0.4, random.random(60), np.arange(60) % 6, random.integers(1, 3, 60)
    twice = np.repeat(np.arange(60), weight)
    for metric in (group_auc, partial(group_ndcg, k=5)):
        doubled = metric(y[twice], scores[twice], groups=groups[twice])
        assert metric(y, scores, groups=groups, sample_weight=weight).mean == pytest.approx(doubled.mean)


def users_of_bins() -> None:
    refusing = {name for name, kind in ESTIMATORS.items() if not accepts(kind(), features="bins")}
    assert refusing == {"HingeClassifier", "MarginMeanClassifier"}


def users_of_weights() -> None:
    weight = {"sample_weight": np.arange(len(X[::4])) % 3 + 1}
    refusing = {
        (name, solver)
        for name, kind in ESTIMATORS.items()
        for solver in set(kind.solvers) - {"psa"}  # which needs an L1 penalty
        if not accepts(kind(solver=solver), weight)
    }
    assert refusing == {("PairwiseHingeClassifier", "msgd")}


def text_columns() -> None:
    table = pd.DataFrame({"number": ["1", "2", "?", "NA"] * 50, "letter": ["x", "y", "x", "z"] * 50})
    model = PairwiseHingeClassifier(features="bins").fit(table, np.arange(200) % 3 == 0)
    assert list(model.feature_names_out_) == ["number", "letter=x", "letter=y", "letter=z"]
    zeros = model.explain(table[:1].assign(letter="new"))[["letter=x", "letter=y", "letter=z"]].to_numpy()[0]
    others = model.explain(table[:4])
    assert zeros[0] == others["letter=x"][1]
    assert zeros[1] == others["letter=y"][0]
    assert zeros[2] == others["letter=z"][0]


def shapes_of_several_classes() -> None:
    model = PairwiseHingeClassifier().fit(FLOWERS, KIND)
    scores = model.decision_function(FLOWERS)
    assert (model.coef_.shape, model.intercept_.shape, scores.shape) == ((3, 4), (3,), (150, 3))
    assert (model.predict(FLOWERS) == model.classes_[scores.argmax(axis=1)]).all()
    alone = PairwiseHingeClassifier().fit(FLOWERS, KIND == 1)
    np.testing.assert_array_equal(model.estimators_[1].coef_, alone.coef_)
    np.testing.assert_allclose(scores[:, 1] * model.spreads_[1], alone.decision_function(FLOWERS))
    mixed = np.where(np.arange(150) % 7 == 0, (KIND + 1) % 3, KIND)
    probable = LinkClassifier(link="logit").fit(FLOWERS, mixed)
    p, predicted = probable.predict_proba(FLOWERS), probable.predict(FLOWERS)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert (predicted == probable.set_threshold(X=FLOWERS, y=mixed, fpr=0.01).predict(FLOWERS)).all()


def tables() -> None:
    table = pd.DataFrame({"size": np.where(X[:, 0] > 0, "large", "small"), "text": [f"{v:.3f}" for v in X[:, 1]]})
    model = PairwiseHingeClassifier().fit(table, Y)
    assert list(model.feature_names_out_) == ["size=large", "size=small", "text"]
    with pytest.raises(InputError, match="parts of a date"):
        PairwiseHingeClassifier().fit(table.assign(day=pd.Timestamp("2026-01-01")), Y)
    reordered = table[["text", "size"]]
    with pytest.raises(ValueError, match="same order"):
        model.predict(reordered)
    np.testing.assert_array_equal(as_model(model).decision_function(reordered), model.decision_function(table))


def interval_weights() -> None:
    for weight, fails in ((np.ones(len(Y)), False), (np.full(len(Y), 2.0), True)):
        if fails:
            with pytest.raises(InputError):
                average_precision_interval(Y, X[:, 0], sample_weight=weight)
        else:
            average_precision_interval(Y, X[:, 0], sample_weight=weight)
    roc_auc_score(Y, X[:, 0], sample_weight=np.full(len(Y), 2.5))


def gains() -> None:
    grade, scores, groups = np.array([0, 1, 3, 2]), np.array([4.0, 3, 2, 1]), np.zeros(4)
    places = 1 / np.log2(np.arange(2, 6))
    for gain, of in (("linear", grade), ("exponential", 2.0**grade - 1)):
        expected = (of @ places) / (np.sort(of)[::-1] @ places)
        value = group_ndcg(grade, scores, groups=groups, k=4, gain=gain).mean
        assert value == pytest.approx(expected)


def few_deciding_rows() -> None:
    random = np.random.default_rng(0)
    y = np.repeat([1, 0], [30, 300])
    worse = random.normal(size=330) + y
    better = worse.copy()
    for n in range(4):
        better[n], worse[n] = worse.max() + 1, worse.min() - 1
        difference = roc_auc_difference(y, better, worse)
        assert difference.n_deciding == n + 1
        assert difference.p_value > 0.05


def one_group() -> None:
    grade = np.digitize(X[:, 0] + X[:, 1], [-1, 0, 1])
    model = PairwiseHingeClassifier(grade_weight="difference")
    without = model.fit(X, grade).coef_
    np.testing.assert_array_equal(model.fit(X, grade, groups=np.zeros(len(X))).coef_, without)
    assert list(model.classes_) == [-1, 1]


def group_of_one_class() -> None:
    group, positives = np.arange(len(X)) % 7, X[Y == 1][:5] + 9
    model = PairwiseHingeClassifier()
    without = model.fit(X, Y, groups=group).coef_
    more = np.r_[X, positives], np.r_[Y, np.ones(5)], np.r_[group, np.full(5, 99)]
    np.testing.assert_array_equal(model.fit(*more[:2], groups=more[2]).coef_, without)


def numbers_of_blocks() -> None:
    signs = np.where(Y == 1, 1, -1)
    two, threads, three = (
        PairwiseHingeClassifier().fit(LocalBlocks.of(X, signs, n_blocks=n, n_jobs=jobs)).coef_
        for n, jobs in ((2, 1), (2, 2), (3, 1))
    )
    np.testing.assert_array_equal(two, threads)
    np.testing.assert_allclose(two, three, rtol=1e-9)


def missing_value_of_leaves() -> None:
    pytest.importorskip("lightgbm")
    new, zeros = X[:3].copy(), X[:3].copy()
    new[:, 0], zeros[:, 0] = np.nan, 0.0
    model = PairwiseHingeClassifier(features="leaves").fit(X, Y)
    np.testing.assert_array_equal(model.decision_function(new), model.decision_function(zeros))


def loss_of_the_top() -> None:
    model = PairwiseHingeClassifier(max_fpr=0.05, lam=1e-2).fit(X, Y)
    scores, count = X @ model.coef_[0], 0.05 * (Y == 0).sum()
    highest = np.sort(scores[Y == 0])[::-1][: int(np.ceil(count))]
    share = np.minimum(1.0, count - np.arange(len(highest)))  # the last one counts in part
    hinges = np.maximum(0.0, 1.0 - (scores[Y == 1][:, np.newaxis] - highest)) @ share
    primal = hinges.sum() / ((Y == 1).sum() * count) + 1e-2 / 2 * np.sum(model.coef_**2)
    assert model.certificate_.primal == pytest.approx(primal, rel=1e-9)


def links_without_a_bound() -> None:
    for options, status in (
        ({"loss": "likelihood", "xi": 0.3}, "stationary"),
        ({"loss": "likelihood", "xi": -0.3}, "converged"),
        ({"xi": 0.3}, "converged"),
    ):
        certificate = LinkClassifier(link="gev", **options).fit(X, Y).certificate_
        assert (certificate.status, certificate.dual > 0) == (status, status == "converged")


def single_interaction() -> None:
    model = PairwiseHingeClassifier(features={"map": "bins", "interactions": 10}).fit(X[:, :2], Y)
    assert len(model.shapes().interactions) == 1


def no_probabilities() -> None:
    (message,) = re.findall(r"ends with the error `(.*?)`", said("how-to/calibration"))
    with pytest.raises(Exception, match=re.escape(message)):
        PairwiseHingeClassifier().fit(X, Y).predict_proba(X)


def priors() -> None:
    rows, labels = make_classification(4000, 5, random_state=0)
    p = PairwiseHingeClassifier(calibration="logit", prior=0.002).fit(rows, labels).predict_proba(rows)[:, 1]
    odds = PairwiseHingeClassifier(calibration="logit").fit(rows, labels).predict_proba(rows)[:, 1]
    ratio = (0.002 / 0.998) / (labels.mean() / (1 - labels.mean()))
    np.testing.assert_allclose(p / (1 - p), ratio * odds / (1 - odds), rtol=1e-6)
    assert brier_score_loss(labels, odds) < 0.25


def ramp_is_stationary() -> None:
    certificate = PairwiseRampClassifier(max_fpr=0.1).fit(X, Y).certificate_
    assert (certificate.status, certificate.dual) == ("stationary", 0.0)


def path() -> None:
    models = lam_path(PairwiseHingeClassifier(), X, Y, lams=[1e-1, 1e-2])
    assert [model.lam for model in models] == [1e-1, 1e-2]


def dead_interactions() -> None:
    random = np.random.default_rng(0)
    rows = random.normal(size=(600, 2))
    labels = rows[:, 0] * rows[:, 1] + random.normal(size=600) > 0
    model = PairwiseHingeClassifier(
        features={"map": "bins", "interactions": 1}, monotone={0: "increasing", 1: "decreasing"}
    ).fit(rows, labels)
    assert all(np.ptp(pair.values) == 0 for pair in model.shapes().interactions)


CHECKS: list[tuple[str, str, Callable[[], None]]] = [
    ("how-to/thresholds", "take the threshold with the largest G-mean on the training rows", ranking_threshold),
    ("how-to/thresholds", "flags a row if its probability is above 0.5", link_threshold),
    ("how-to/thresholds", "The probabilities of a calibrated model do not change", threshold_keeps_probabilities),
    ("how-to/thresholds", "at least this share of the flagged rows is positive", targets),
    ("how-to/thresholds", "the total cost of wrong decisions is as low as possible", smallest_cost),
    ("how-to/thresholds", "It cannot be combined with `cost`", no_confidence_with_cost),
    ("how-to/alert-queues", "flags exactly 50 rows of X if no scores are tied", exact_alerts),
    ("how-to/alert-queues", "needs at least 2,995 negative threshold rows", guarantees_from_few_rows),
    ("how-to/cross-validation", "cannot be combined with `nested`", no_halving_with_nested),
    ("how-to/cross-validation", "It is the default, except with `features: auto` over all pairs", rules),
    ("how-to/cross-validation", "the metric is n/80 · `partial_auc` + (1 - n/80) · AUC", shrunk),
    ("how-to/comparing", "If it is below five, no difference is significant", few_deciding_rows),
    ("how-to/top-of-the-list", "the status is `stationary`", ramp_is_stationary),
    ("how-to/feature-maps", "bins with 40 interactions if both classes have at least 50", readable_candidates),
    ("how-to/feature-maps", "1/(C n) for `LinkClassifier` and 1/(2 C n) for `HingeClassifier`", liblinear),
    ("how-to/feature-maps", "The default of the pairwise estimators is 1e-3", default_lams),
    ("how-to/feature-maps", "similarity to 512 landmark rows", landmarks),
    ("how-to/feature-maps", "Landmarks do not accept missing values", missing_values_of_bins),
    ("how-to/feature-maps", "raise an error with this penalty", group_penalty),
    ("how-to/feature-maps", "`lam_path` fits a model for each value of a list", path),
    ("how-to/explaining", "the standard deviation of the feature's term over the training rows", importances),
    ("how-to/explaining", "Other solvers and estimators raise an error for `monotone`", directions),
    ("how-to/explaining", "If these have opposite directions, its weights are 0", dead_interactions),
    ("how-to/several-classes", "thresholds do not change `predict`", shapes_of_several_classes),
    ("how-to/groups", "raise an error that names those that accept groups", supporters_of_groups),
    ("how-to/groups", "Without `groups`, all rows are one group", one_group),
    ("how-to/groups", "A group without both classes has no pair and does not count", group_of_one_class),
    ("how-to/pipelines", "Another number of blocks changes the last digits of the result", numbers_of_blocks),
    ("how-to/feature-maps", "The map `leaves` treats this value as 0, as LightGBM does", missing_value_of_leaves),
    ("how-to/feature-maps", "With only two features there is only one interaction", single_interaction),
    ("how-to/top-of-the-list", "only the highest-scoring 5 % of the negative rows count in the loss", loss_of_the_top),
    ("certificate", "`LinkClassifier` with the likelihood of `gev` and a shape above 0", links_without_a_bound),
    ("how-to/groups", "a row of weight 2 counts as two rows", weights_within_groups),
    ("how-to/pipelines", "in the same order, as in scikit-learn", tables),
    ("how-to/pipelines", "gets 0 in all features of that column", text_columns),
    ("which-estimator", "If a solver cannot fit bins, `fit` raises an error", users_of_bins),
    ("how-to/faq", "A solver that does not support weights raises an error", users_of_weights),
    ("how-to/metrics", "accept only the weights 0 and 1", interval_weights),
    ("how-to/metrics", "LightGBM's own metric uses the gain $2^g - 1$", gains),
    ("how-to/calibration", "`predict_proba` ends with the error", no_probabilities),
    ("how-to/calibration", "corrects the probabilities accordingly", priors),
    ("certificate", "0.001 by default (1e-6 for `LinkClassifier`)", default_tols),
]


@pytest.mark.parametrize(("page", "words", "check"), CHECKS, ids=[row[1][:40] for row in CHECKS])
def test_a_sentence_on_a_page_is_what_the_code_does(page: str, words: str, check: Callable[[], None]) -> None:
    assert words in said(page)
    check()


ALARMS = {
    "missing values, if the model accepts them": "missing", "none of the known categories": "unknown",
    "outside the range of the training rows |": "outside", "rows with an unusual value": "rare",
    "population stability index": "moved", "PSI and Kolmogorov-Smirnov": "score", "| AUC, and the partial AUC": "auc",
    "| recall at the operating point": "recall", "observed over expected": "calibration",
}  # fmt: skip


@pytest.mark.parametrize("words", ALARMS)
def test_the_table_of_alarms_has_the_figures_of_the_code(words: str) -> None:
    from aucdist.drift.batch import MIN_DIFFERENCES, MIN_LOSS

    lines = (PAGES / "how-to" / "watching.md").read_text(encoding="utf-8").splitlines()
    (line,) = [line for line in lines if words in line and line.count("|") == 4]
    (figure,) = re.findall(r"0\.\d+", line.split("|")[3])
    assert float(figure) == (MIN_DIFFERENCES | MIN_LOSS)[ALARMS[words]]

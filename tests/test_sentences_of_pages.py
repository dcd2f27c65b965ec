"""What pages say about behaviour is what the code does.

Each row has a page, words of a sentence on it, and what holds them: the figure that the code has, or a check that raises an
AssertionError. A row fails if the code changes, and also if its page no longer has the words.
"""

import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale

from aucdist import LinkClassifier, PairwiseHingeClassifier
from aucdist.errors import InputError
from aucdist.estimators import ESTIMATORS
from aucdist.maps import NystroemMap
from aucdist.metrics import (
    average_precision_interval,
)

PAGES = Path(__file__).resolve().parents[1] / "docs" / "pages"

FIGURES = [
    ("how-to/thresholds", "the smaller class has fewer than 1,000 training rows", "flows.train.stages:FEW_OF_CLASS", 1000),
    ("how-to/thresholds", "five models are fitted", "aucdist.estimators.calibration:N_FOLDS", 5),
    ("how-to/guarantees", "a fifth of the training rows", "flows.config.model:THRESHOLD_SHARE", 1 / 5),
    ("how-to/guarantees", "An e-value of 20 raises an alarm", "aucdist.metrics.guarantees:ALARM_E_VALUE", 20),
    ("how-to/cross-validation", "With n < 80 held-out positives", "aucdist.metrics.partial:FULL_POSITIVES", 80),
    ("how-to/cross-validation", "by more than half the standard error", "aucdist.search.choice:CLEAR_SE", 1 / 2),
    ("how-to/comparing", "if a class has fewer than 10 rows", "aucdist.metrics.ranking:MIN_ROWS", 10),
    ("how-to/comparing", "each class needs more rows: 5 / (1 - AUC)", "aucdist.metrics.ranking:MIN_MISRANKED", 5),
    ("how-to/explaining", "fewer than 0.5 % of the training rows", "aucdist.maps.explain:MIN_SHARE", 0.005),
    ("how-to/explaining", "1,000 by default", "aucdist.export.cards:DEFAULT_TOTAL", 1000),
    ("how-to/monotone", "`exact`, up to 1,000 weights", "aucdist.papers.tpauc.exact:MAX_FEATURES", 1000),
    ("how-to/monotone", "Five linear models are fitted", "aucdist.estimators.fitting:FOLDS_OF_DIRECTIONS", 5),
    ("how-to/scoring", "Up to 4,096 such columns", "aucdist.maps.explain:MAX_CONTRIBUTIONS", 4096),
    ("how-to/several-classes", "a class has more than 32,768 rows", "aucdist.maps.binning:MAX_ROWS", 32_768),
    ("how-to/several-classes", "on Dask workers, up to sixteen", "aucdist.engine.view:AT_ONCE", 16),
    ("how-to/groups", "Up to 64 different grades", "aucdist.pairs.groups:MAX_GRADES", 64),
    ("how-to/pipelines", "*blocks* of 100,000 or more", "aucdist.estimators.validation:MIN_ROWS", 100_000),
    ("how-to/pipelines", "more than 1,000 different strings", "aucdist.data.formats.source_fields:MAX_DETECTED", 1000),
    ("how-to/pipelines", "more than 50 and on average", "aucdist.data.formats.source_fields:MIN_DISTINCT", 50),
    ("how-to/leaks", "an AUC of 0.99 or more", "aucdist.drift.columns:SUSPICIOUS_AUC", 0.99),
    ("how-to/leaks", "preview` warn from 0.988 on", "aucdist.drift.leaks:REPORTED_AUC", 0.988),
    ("how-to/leaks", "more than 1 % of the rows equal another row", "aucdist.drift.leaks:MANY_KNOWN", 0.01),
    ("how-to/leaks", "up to 20,000 rows", "aucdist.drift.leaks:MAX_ROWS", 20_000),
    ("how-to/init", "the last 20 % of the rows become the test rows", "flows.init.columns:TEST_SHARE", 0.2),
    ("how-to/init", "more than 2,000 columns", "flows.init.run:WIDE", 2000),
    ("how-to/init", "more than 50 columns", "flows.init.run:NARROW", 50),
    ("how-to/init", "fewer than 64 rows for each column", "flows.init.run:ROWS_A_NUMBER", 64),
    ("how-to/init", "ten 0/1 features of categories count as one", "flows.init.run:INDICATORS_A_NUMBER", 10),
    ("how-to/report", "fewer than 10 % of the rows are positive", "aucdist.report.run:RARE_SHARE", 0.1),
    ("how-to/report", "fewer than about 20 training rows", "aucdist.report.sections:FEW_ROWS", 20),
    ("how-to/report", "more than 1 % of the test rows", "aucdist.drift.leaks:MANY_KNOWN", 0.01),
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
    ("how-to/feature-maps", "tries no value of `lam` below 1e-4", "aucdist.search.auto:LAMS", (1, 0.1, 0.01, 1e-3, 1e-4)),
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


def said(page: str) -> str:
    return " ".join((PAGES / f"{page}.md").read_text(encoding="utf-8").split())


@pytest.mark.parametrize(("page", "words", "place", "figure"), FIGURES, ids=[row[1][:40] for row in FIGURES])
def test_a_figure_on_a_page_is_that_of_the_code(page: str, words: str, place: str, figure: Any) -> None:
    assert words in said(page)
    module, _, name = place.partition(":")
    assert getattr(importlib.import_module(module), name) == figure


def liblinear() -> None:
    link = LinkClassifier(link="logit", lam=1 / (0.1 * len(Y)), tol=1e-8).fit(X, Y)
    np.testing.assert_allclose(link.coef_, LogisticRegression(C=0.1, tol=1e-8).fit(X, Y).coef_, rtol=1e-3)


def default_tols() -> None:
    tols = {name: kind().tol for name, kind in ESTIMATORS.items()}
    assert tols.pop("LinkClassifier") == 1e-6
    assert set(tols.values()) == {1e-3}


def landmarks() -> None:
    assert NystroemMap().landmarks == 512
    few = NystroemMap(landmarks=512, linear="drop").fit(X, Y).transform(X).shape[1]
    assert few <= len(X) // 2


def missing_values_of_landmarks() -> None:
    with pytest.raises(InputError):
        PairwiseHingeClassifier(features="nystroem").fit(np.where(X > 2, np.nan, X), Y)


def interval_weights() -> None:
    average_precision_interval(Y, X[:, 0], sample_weight=np.arange(len(Y)) % 2)
    with pytest.raises(InputError):
        average_precision_interval(Y, X[:, 0], sample_weight=np.full(len(Y), 2.0))


def single_interaction() -> None:
    model = PairwiseHingeClassifier(features={"map": "bins", "interactions": 10}).fit(X[:, :2], Y)
    assert len(model.shapes().interactions) == 1


CHECKS: list[tuple[str, str, Callable[[], None]]] = [
    ("how-to/feature-maps", "1/(C n) for `LinkClassifier`", liblinear),
    ("how-to/feature-maps", "similarity to 512 landmark rows", landmarks),
    ("how-to/feature-maps", "Landmarks do not accept missing values", missing_values_of_landmarks),
    ("how-to/feature-maps", "With only two features there is only one interaction", single_interaction),
    ("how-to/metrics", "accept only the weights 0 and 1", interval_weights),
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

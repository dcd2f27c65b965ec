"""What pages say about behaviour is what the code does.

Each row has a page, words of a sentence on it, and what holds them: the figure that the code has (in the YAML file beside this
one), or a check that raises an AssertionError. A row fails if the code changes, and also if its page no longer has the words.
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
from support.tables import table_beside

from aucdist import LinkClassifier, PairwiseHingeClassifier
from aucdist.errors import InputError
from aucdist.estimators import ESTIMATORS
from aucdist.maps import NystroemMap
from aucdist.metrics import (
    average_precision_interval,
)

PAGES = Path(__file__).resolve().parents[1] / "docs" / "pages"

FIGURES = [(page, *row) for page, rows in table_beside(__file__).items() for row in rows]

X, Y = load_breast_cancer(return_X_y=True)
X, Y = scale(X)[:, :6], 1 - Y  # 1 is malignant


def said(page: str) -> str:
    return " ".join((PAGES / f"{page}.md").read_text(encoding="utf-8").split())


@pytest.mark.parametrize(("page", "words", "place", "figure"), FIGURES, ids=[row[1][:40] for row in FIGURES])
def test_a_figure_on_a_page_is_that_of_the_code(page: str, words: str, place: str, figure: Any) -> None:
    assert words in said(page)
    module, _, name = place.partition(":")
    value = getattr(importlib.import_module(module), name)
    assert (list(value) if isinstance(value, tuple) else value) == figure


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

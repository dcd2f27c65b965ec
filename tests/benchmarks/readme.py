"""The suite `readme`: the rows of README's example and of other random states, with logistic regression and LightGBM."""

# The peers are optional, and some have no type annotations.
# mypy: disable-error-code="import-untyped"

import time
from collections.abc import Iterator
from typing import Any

from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from aucdist.estimators import PairwiseHingeClassifier
from aucdist.extras import load_optional
from benchmarks.common import Row
from benchmarks.tree_systems import SETTINGS, tuned

STATES, ROWS, FOLDS = 4, 80_000, 3
CONDITIONS = (
    f"half of {ROWS:,} simulated rows are tested; LightGBM's {SETTINGS} settings "
    f"are compared by the average precision of {FOLDS} folds of the training rows"
)


def systems() -> dict[str, Any]:
    """Return the systems: those of the example, and others to compare them with."""
    trees = load_optional("lightgbm").LGBMClassifier(n_jobs=1, random_state=0, verbosity=-1)
    return {
        "logistic regression": LogisticRegression(),
        "LightGBM": trees,
        "LightGBM, standardised features": make_pipeline(StandardScaler(), trees),
        "LightGBM, 20 settings": tuned(trees, "average_precision", FOLDS),
        "aucdist, bins": PairwiseHingeClassifier(features="bins"),
        "aucdist, bins with ten interactions": PairwiseHingeClassifier(features={"map": "bins", "interactions": 10}),
        "aucdist, auto": PairwiseHingeClassifier(features="auto"),
    }


def readme(slow_peers: bool) -> Iterator[Row]:
    """Yield a row for each system and random state.

    `slow_peers`: there are none.
    """
    for state in range(STATES):
        X, y = make_classification(
            ROWS, 12, n_informative=5, weights=[0.99], flip_y=0, class_sep=0.8, random_state=state
        )
        X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
        for name, model in systems().items():
            began = time.process_time()
            model.fit(X_train, y_train)
            seconds = time.process_time() - began
            ours = hasattr(model, "decision_function")
            scores = model.decision_function(X_test) if ours else model.predict_proba(X_test)[:, 1]
            chosen = getattr(model, "chosen_", None) or getattr(model, "best_params_", {})
            yield {
                "random state": state,
                "system": name,
                "AUC": float(roc_auc_score(y_test, scores)),
                "average precision": float(average_precision_score(y_test, scores)),
                "CPU seconds": seconds,
                "chosen": " ".join(f"{key} {value}" for key, value in chosen.items()),
            }

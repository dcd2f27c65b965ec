"""Probabilities of rare events.

Few of the simulated rows are positive. A model with a link function estimates probabilities directly. A
ranking model is calibrated on scores of rows that its fit has not seen.
"""

import matplotlib.pyplot as plt
import numpy as np

from aucdist import LinkClassifier, PairwiseHingeClassifier
from aucdist.metrics import brier_score_loss, log_loss, reliability_curve, roc_auc_score


def simulate(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of three features, and whether the event happened."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(4000, 3))
    return X, random.random(4000) < 1 / (1 + np.exp(5 - X @ [2.0, 1.0, 0.0]))


X, y = simulate(0)
print(f"{y.mean():.1%} of the rows are positive")
X_test, y_test = simulate(1)
figure, axes = plt.subplots(figsize=(4.5, 4), layout="constrained")
for model in (LinkClassifier(), LinkClassifier(link="logit"), PairwiseHingeClassifier(calibration="logit")):
    p = model.fit(X, y).predict_proba(X_test)[:, 1]
    measures = (roc_auc_score(y_test, p), brier_score_loss(y_test, p), log_loss(y_test, p))
    print("AUC {:.4f}  Brier {:.4f}  log loss {:.4f}".format(*measures), "", model)
    curve = reliability_curve(y_test, p)
    axes.plot(curve.predicted, curve.observed, marker=".", label=str(model))
axes.axline((0, 0), slope=1, color="grey", linestyle="--", linewidth=1)
axes.set(xlabel="predicted probability", ylabel="observed share")
axes.legend(fontsize="x-small")
figure.savefig("probabilities.svg")

"""Rows that arrive in batches.

`partial_fit` of the online solvers updates the model with a batch and does not store it. The first call must
name the classes.
"""

import matplotlib.pyplot as plt
import numpy as np

from aucdist import PairwiseSquareClassifier
from aucdist.metrics import roc_auc_score

random = np.random.default_rng(0)


def batch(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return some rows in [-1, 1], a tenth of them positive."""
    y = random.random(n) < 0.1
    return np.clip(random.normal(size=(n, 10)) / 3 + 0.15 * y[:, np.newaxis], -1, 1), y


X_test, y_test = batch(4000)
model = PairwiseSquareClassifier(solver={"name": "opauc", "eta": 2**-4}, lam=1e-3, random_state=0)
areas = []
for number in range(1, 6):
    model.partial_fit(*batch(400), classes=[False, True])
    areas.append(roc_auc_score(y_test, model.decision_function(X_test)))
    print(f"after batch {number}: test AUC {areas[-1]:.3f}")

figure, axes = plt.subplots(figsize=(5, 3), layout="constrained")
axes.plot(range(1, 6), areas, marker="o")
axes.set(xlabel="batches", ylabel="test AUC", xticks=range(1, 6))
figure.savefig("stream.svg")

"""A model with few features.

With the L1 penalty, many weights become exactly 0. The example adds thirty features of noise to the breast cancer
data.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

from aucdist import PairwiseHingeClassifier

X, y = load_breast_cancer(return_X_y=True)
X = scale(np.hstack([X, np.random.default_rng(0).normal(size=X.shape)]))

figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
for penalty in ("l2", "l1"):
    model = PairwiseHingeClassifier(lam=0.03, penalty=penalty).fit(X, y)
    used = model.coef_[0] != 0
    print(f"{penalty}: {used[:30].sum()} of the 30 real features, {used[30:].sum()} of the 30 of noise")
    axes.plot(np.abs(model.coef_[0]), ".", label=penalty)
axes.axvline(29.5, color="grey", linestyle="--", linewidth=1)
axes.set(xlabel="feature; those of noise are on the right", ylabel="absolute weight")
axes.legend()
figure.savefig("few_features.svg")

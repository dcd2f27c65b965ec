"""Is one model better than another?

Both models score the same test rows, so their AUCs are correlated. A paired test detects differences that two
separate intervals would not show.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from aucdist import PairwiseHingeClassifier
from aucdist.metrics import roc_auc_difference

X, digit = load_digits(return_X_y=True)
y = digit >= 8
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, stratify=digit, test_size=0.5, random_state=0)

ours = PairwiseHingeClassifier(lam=1e-3).fit(X_train, y_train)
theirs = LogisticRegression(max_iter=1000).fit(X_train, y_train)

difference = roc_auc_difference(y_test, ours.decision_function(X_test), theirs.decision_function(X_test))
print(f"AUC differs by {difference.value:+.4f}, p = {difference.p_value:.3g}")
print(f"95 % interval {difference.low:+.4f} to {difference.high:+.4f}")

figure, axes = plt.subplots(figsize=(6, 1.8), layout="constrained")
axes.errorbar(
    difference.value,
    0,
    xerr=[[difference.value - difference.low], [difference.high - difference.value]],
    fmt="o",
    capsize=5,
)
axes.axvline(0.0, color="grey", linestyle="--", linewidth=1)
axes.set(xlabel="difference of the test AUC, with its 95 % interval", yticks=[])
figure.savefig("compare_models.svg")

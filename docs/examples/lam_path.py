"""A path of lam values for little more than the cost of one fit.

Dual points do not depend on lam, so every cut that is found for one value serves all others.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from aucdist import PairwiseHingeClassifier, lam_path
from aucdist.metrics import roc_auc_score

X, digit = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, digit == 8, stratify=digit, random_state=0)

areas, lams = [], [1.0, 1e-1, 1e-2, 1e-3]
for lam, model in zip(lams, lam_path(PairwiseHingeClassifier(), X_train, y_train, lams=lams), strict=True):
    area = roc_auc_score(y_test, model.decision_function(X_test))
    areas.append(area)
    print(f"lam {lam:<6g} {model.n_passes_:3} passes  gap {model.certificate_.relative_gap:.1e}  test AUC {area:.4f}")

figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
axes.semilogx(lams, areas, marker="o")
axes.set(xlabel="lam", ylabel="test AUC")
figure.savefig("lam_path.svg")

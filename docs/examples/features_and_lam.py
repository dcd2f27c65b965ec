"""Features and lam: what each of them changes.

With bins, the score can follow curves, and lam decides how closely the shapes follow the training rows. lam_path
starts each fit from the result of the previous one, which usually takes less time than separate fits.
"""

import matplotlib.pyplot as plt
import numpy as np

from aucdist import PairwiseHingeClassifier, lam_path
from aucdist.metrics import roc_auc_score

random = np.random.default_rng(0)
age, income = random.uniform(18, 80, 4000), random.normal(50, 15, 4000)
X = np.column_stack([(age - 49) / 18, (income - 50) / 15])
y = np.abs(age - 45) / 15 - 0.02 * income + random.normal(size=4000) > 1.5
train, test = slice(0, 2000), slice(2000, None)

lams = [1.0, 1e-1, 1e-2, 1e-3, 1e-4]
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
for name, features in (("straight lines", None), ("bins", "bins")):
    models = lam_path(PairwiseHingeClassifier(features=features), X[train], y[train], lams=lams)
    areas = [roc_auc_score(y[test], model.decision_function(X[test])) for model in models]
    left.semilogx(lams, areas, marker="o", label=name)
    print(name, *(f"lam {lam:g}: {area:.3f}" for lam, area in zip(lams, areas, strict=True)), sep="  ")
left.set(xlabel="lam", ylabel="test AUC")
left.legend()

for lam, model in zip(lams[::2], models[::2], strict=True):
    shape = model.shapes().shapes[0]
    right.step(49 + 18 * shape.edges, shape.values[1:] / np.ptp(shape.values), where="post", label=f"lam {lam:g}")
right.set(xlabel="age", ylabel="shape of age, scaled")
right.legend()
figure.savefig("features_and_lam.svg")

"""An additive model and its shapes.

In this simulation, the risk is high for young and for old people, which a linear function of the age cannot express.
Bins turn each feature into steps, and the fit still ends with a certificate. The model has a shape for each feature,
and says what each feature adds to the score of a row.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from aucdist import PairwiseHingeClassifier
from aucdist.metrics import roc_auc_score

random = np.random.default_rng(0)
age, income, height = random.uniform(18, 80, 2000), random.lognormal(3.0, 0.5, 2000), random.normal(170, 10, 2000)
risk = np.abs(age - 45) / 15 - 0.02 * income + random.normal(size=2000)
X, y = pd.DataFrame({"age": age, "income": income, "height": height}), (risk > 2.5).astype(int)

line = PairwiseHingeClassifier().fit(X[:1000], y[:1000])
bins = PairwiseHingeClassifier(features={"map": "bins", "bins": 16}, lam=1e-2).fit(X[:1000], y[:1000])
for name, model in (("linear", line), ("bins", bins)):
    area = roc_auc_score(y[1000:], model.decision_function(X[1000:]))
    print(f"{name}: test AUC {area:.3f}, {model.certificate_.relative_gap:.1e} from the optimum for its features")

for shape in sorted(bins.shapes().shapes, key=lambda shape: -shape.spread):
    print(f"{X.columns[shape.feature]}: spread {shape.spread:.3f}")
print(bins.explain(X[1000:1003]).round(3))

figure, panels = plt.subplots(1, 3, figsize=(9, 3), sharey=True, layout="constrained")
for axes, shape in zip(panels, bins.shapes().shapes, strict=True):
    axes.step(shape.edges, shape.values[1:], where="post")
    axes.axhline(0.0, color="grey", linestyle="--", linewidth=1)
    axes.set_xlabel(X.columns[shape.feature])
panels[0].set_ylabel("adds to the score")
figure.savefig("additive.svg")

"""Undersampling near the boundary.

One row in twenty is positive. The sampler keeps all rows of the smaller class and those of the larger class
that are near a separating hyperplane; the margin-mean classifier samples in this way when it is fitted.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import scale

from aucdist import MarginMeanClassifier
from aucdist.metrics import confusion_counts, g_mean_score
from aucdist.sampling import DistanceUnderSampler

random = np.random.default_rng(0)
y = (random.random(3000) < 0.05).astype(int)
X = scale(random.normal(size=(3000, 5)) + y[:, np.newaxis])

X_sampled, y_sampled = DistanceUnderSampler(random_state=0).fit_resample(X, y)
print(f"{np.bincount(y)} rows in the two classes, of which {np.bincount(y_sampled)} stay")

model = MarginMeanClassifier(random_state=0).fit(X, y)
print(confusion_counts(y, model.predict(X)))
print(f"G-mean {g_mean_score(y, model.predict(X)):.3f}")

figure, panels = plt.subplots(1, 2, figsize=(8, 3.5), sharex=True, sharey=True, layout="constrained")
for axes, title, rows, labels in zip(panels, ("all rows", "sampled"), (X, X_sampled), (y, y_sampled), strict=True):
    axes.scatter(*rows[:, :2].T, c=labels, s=6, cmap="coolwarm", rasterized=True)
    axes.set(title=f"{title}: {len(labels)}", xlabel="feature 0", ylabel="feature 1")
figure.savefig("undersampling.svg")

"""Rows near the boundary.

One row in twenty is positive. The sampler keeps rows of the larger class that are near a separating
hyperplane, and all of the smaller one; the margin-mean machine does the same by itself when it is fitted.
"""

import numpy as np
from sklearn.preprocessing import scale

from aucdist import MarginMeanClassifier
from aucdist.metrics import confusion_counts, g_mean_score
from aucdist.sampling import DistanceUnderSampler

random = np.random.default_rng(0)
y = (random.random(3000) < 0.05).astype(int)
X = scale(random.normal(size=(3000, 5)) + y[:, np.newaxis])

_, kept = DistanceUnderSampler(random_state=0).fit_resample(X, y)
print(f"{np.bincount(y)} rows of the two classes, of which {np.bincount(kept)} stay")

model = MarginMeanClassifier(solver="svrg", random_state=0).fit(X, y)
print(confusion_counts(y, model.predict(X)))
print(f"G-mean {g_mean_score(y, model.predict(X)):.3f}")

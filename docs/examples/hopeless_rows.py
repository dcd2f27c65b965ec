"""What if some rows cannot be ranked correctly?

With a convex loss such as the hinge, a pair in the wrong order costs the more, the larger its error is. The ramp
loss, like the AUC, counts such a pair at most once. Its fit has no lower bound.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import RocCurveDisplay, roc_auc_score

from aucdist import PairwiseHingeClassifier, PairwiseRampClassifier

random = np.random.default_rng(0)
y = np.where(random.random(4000) < 0.1, 1, -1)
X = random.normal(size=(4000, 5)) + 0.8 * (y[:, np.newaxis] > 0)
X[np.flatnonzero(y > 0)[::10]] -= 8.0  # every tenth positive row lies far on the wrong side
X_train, X_test, y_train, y_test = X[:2000], X[2000:], y[:2000], y[2000:]

figure, axes = plt.subplots(figsize=(5, 4), layout="constrained")
for estimator in (PairwiseHingeClassifier(lam=1e-3), PairwiseRampClassifier(lam=1e-3)):
    model = estimator.fit(X_train, y_train)
    area = roc_auc_score(y_test, model.decision_function(X_test))
    print(
        f"{type(model).__name__}: test AUC {area:.3f}, {model.certificate_.status}, dual {model.certificate_.dual:.3f}"
    )
    RocCurveDisplay.from_estimator(model, X_test, y_test, ax=axes)
figure.savefig("hopeless_rows.svg")

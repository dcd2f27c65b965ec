"""A pytest plugin that puts our `roc_auc_score` in the place of scikit-learn's, for scikit-learn's own tests."""

import sklearn.metrics

from aucdist.metrics import roc_auc_score

sklearn.metrics.roc_auc_score = roc_auc_score

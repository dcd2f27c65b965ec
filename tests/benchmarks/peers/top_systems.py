"""The systems of the suite `top`: ours for the top of the list, and those that one would use instead."""

# The peers are optional, and some have no type annotations.
# mypy: disable-error-code="import-not-found,import-untyped"

from functools import partial
from typing import Any

import numpy as np

from benchmarks.peers.linear import hinge_pairs, lbfgs, ramp_pairs
from benchmarks.peers.others import LEAVES, lightgbm
from benchmarks.peers.system import LINEAR, OTHER, OURS, FittedModel, System, linear_model

PASSES = 500
HALF_BATCH = 64


def top_hinge(
    X: Any, y: np.ndarray, lam: float, budget: int, threads: int, *, max_fpr: float | None = None,
    max_false_positives: int | None = None,
) -> FittedModel:  # fmt: skip
    """Fit our estimator of the pairwise hinge over the highest-scoring negatives."""
    from aucdist import PairwiseHingeClassifier

    share = {"max_fpr": max_fpr, "max_false_positives": max_false_positives}
    model = PairwiseHingeClassifier(lam=lam, max_passes=budget, **share).fit(X, y)  # type: ignore[arg-type]
    return linear_model(model.coef_, model.certificate_.relative_gap)


def top_ramp(X: Any, y: np.ndarray, lam: float, budget: int, threads: int, *, max_fpr: float) -> FittedModel:
    """Fit our estimator of the pairwise ramp over the highest-scoring negatives, which has no gap."""
    from aucdist import PairwiseRampClassifier

    return linear_model(PairwiseRampClassifier(lam=lam, max_passes=budget, max_fpr=max_fpr).fit(X, y).coef_)


def balanced(X: Any, y: np.ndarray, lam: float, budget: int, threads: int) -> FittedModel:
    """Fit scikit-learn's LogisticRegression with balanced classes."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=1.0 / (lam * len(y)), max_iter=budget, class_weight="balanced").fit(X, y)
    return linear_model(model.coef_)


def weighted_lightgbm(X: Any, y: np.ndarray, leaves: float, budget: int, threads: int) -> FittedModel:
    """Train lightgbm's trees for the logistic loss with `scale_pos_weight`, the ratio of the classes."""
    ratio = float((y < 0).sum() / (y > 0).sum())
    return lightgbm(X, y, leaves, budget, threads, scale_pos_weight=ratio)


def sopa(X: Any, y: np.ndarray, lam: float, budget: int, threads: int) -> FittedModel:
    """Train a linear model by libauc's partial AUC loss up to 0.01 and its optimizer SOPA, at the documentation's settings."""
    from libauc.losses import pAUC_CVaR_Loss
    from libauc.optimizers import SOPA

    loss = pAUC_CVaR_Loss(data_len=len(y), pos_len=int((y > 0).sum()), beta=0.01, device="cpu")
    return _libauc_partial(loss, SOPA, X, y, lam, budget, threads)


def sopa_s(X: Any, y: np.ndarray, lam: float, budget: int, threads: int) -> FittedModel:
    """Train a linear model by libauc's soft partial AUC loss and its optimizer SOPAs, at the documentation's settings."""
    from libauc.losses import pAUC_DRO_Loss
    from libauc.optimizers import SOPAs

    return _libauc_partial(pAUC_DRO_Loss(data_len=len(y), device="cpu"), SOPAs, X, y, lam, budget, threads)


def _libauc_partial(
    loss: Any, optimizer: Any, X: Any, y: np.ndarray, lam: float, budget: int, threads: int
) -> FittedModel:
    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    rows, labels = torch.as_tensor(X, dtype=torch.float32), torch.as_tensor(y > 0, dtype=torch.float32)[:, None]
    linear = torch.nn.Linear(X.shape[1], 1)
    steps = optimizer(linear.parameters(), mode="adam", lr=1e-3, weight_decay=lam, verbose=False, device="cpu")
    positive, negative = (torch.as_tensor(np.flatnonzero(y == label)) for label in (1, -1))
    for _ in range(budget):
        for half in negative[torch.randperm(len(negative))].split(HALF_BATCH):
            if len(half) < 2:
                continue  # the losses take no single negative row
            # Half of each batch comes from either class; the losses keep a number for each positive row, by its index.
            which = torch.cat([half, positive[torch.randint(len(positive), (HALF_BATCH,))]])
            steps.zero_grad()
            loss(torch.sigmoid(linear(rows[which])), labels[which], which).backward()
            steps.step()
    return linear_model(linear.weight.detach().numpy())


TOP = (
    System("aucdist hinge, beta 0.01", "aucdist", partial(top_hinge, max_fpr=0.01), (PASSES,), PASSES, OURS),
    System("aucdist hinge, beta 0.05", "aucdist", partial(top_hinge, max_fpr=0.05), (PASSES,), PASSES, OURS),
    System("aucdist hinge, beta 0.1", "aucdist", partial(top_hinge, max_fpr=0.1), (PASSES,), PASSES, OURS),
    System("aucdist ramp, beta 0.01", "aucdist", partial(top_ramp, max_fpr=0.01), (PASSES,), PASSES, OURS),
    System("aucdist hinge, top push", "aucdist", partial(top_hinge, max_false_positives=1), (PASSES,), PASSES, OURS),
    System("aucdist pairwise hinge", "aucdist", hinge_pairs, (PASSES,), PASSES, OURS),
)
"""Of these, held-out rows choose one: the last covers what the top does not help with. The top push with the hinge is the loss of
TopPush, whose authors' code is for MATLAB and cannot be installed from the package index."""

SYSTEMS = (
    *TOP,
    System("aucdist pairwise ramp", "aucdist", ramp_pairs, (PASSES,), PASSES, OURS),
    System("LogisticRegression lbfgs", "sklearn", lbfgs, (1000,), 1000, LINEAR),
    System("LogisticRegression, balanced", "sklearn", balanced, (1000,), 1000, LINEAR),
    System("libauc SOPA", "libauc", sopa, (16,), 16, LINEAR, dense=True),
    System("libauc SOPA-s", "libauc", sopa_s, (16,), 16, LINEAR, dense=True),
    System("lightgbm", "lightgbm", lightgbm, (100,), 100, OTHER, LEAVES),
    System("lightgbm, scale_pos_weight", "lightgbm", weighted_lightgbm, (100,), 100, OTHER, LEAVES),
)

"""The peers with interfaces of their own: xgboost, lightgbm, Vowpal Wabbit, libauc."""

# The peers are optional, and some have no type annotations.
# mypy: disable-error-code="import-not-found,import-untyped"

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.peers.system import LINEAR, OTHER, FittedModel, System, linear_model

TREES = (10, 30, 100, 300)
DEPTHS = (2.0, 3.0, 4.0, 6.0, 8.0)
LEAVES = (7.0, 15.0, 31.0, 63.0, 127.0)
SWEEPS = (1, 2, 4, 8, 16, 32, 64, 128)
EPOCHS = (1, 2, 4, 8, 16)
HALF_BATCH = 64


def _xgboost(X: Any, y: np.ndarray, budget: int, threads: int, **options: Any) -> FittedModel:
    import xgboost

    data = xgboost.DMatrix(X, label=(y > 0).astype(np.float32), nthread=threads)
    if options["objective"].startswith("rank"):
        data.set_info(qid=np.zeros(len(y), dtype=np.uint32))  # all rows form one group
    model = xgboost.train({"nthread": threads, "verbosity": 0, "seed": 0, **options}, data, budget)
    return FittedModel(lambda X: model.predict(xgboost.DMatrix(X, nthread=threads), output_margin=True))


LINES = {"booster": "gblinear", "updater": "coord_descent"}  # the default updater is random, because its threads race
PAIRS = {"objective": "rank:pairwise", "lambdarank_pair_method": "mean", "lambdarank_num_pair_per_sample": 1}
"""By default only pairs with one of the 32 top rows count; here pairs come from the whole list, as for the AUC."""
GROWN = {"booster": "gbtree", "tree_method": "hist", "eta": 0.1}


def xgboost_linear(X: Any, y: np.ndarray, lam: float, budget: int, threads: int) -> FittedModel:
    """Train xgboost's linear booster for the logistic loss."""
    return _xgboost(X, y, budget, threads, objective="binary:logistic", reg_lambda=lam, **LINES)


def xgboost_linear_pairs(X: Any, y: np.ndarray, lam: float, budget: int, threads: int) -> FittedModel:
    """Train xgboost's linear booster for pairs."""
    return _xgboost(X, y, budget, threads, reg_lambda=lam, **PAIRS, **LINES)


def xgboost_trees(X: Any, y: np.ndarray, depth: float, budget: int, threads: int) -> FittedModel:
    """Train xgboost's trees for the logistic loss."""
    return _xgboost(X, y, budget, threads, objective="binary:logistic", max_depth=int(depth), **GROWN)


def xgboost_tree_pairs(X: Any, y: np.ndarray, depth: float, budget: int, threads: int) -> FittedModel:
    """Train xgboost's trees for pairs."""
    return _xgboost(X, y, budget, threads, max_depth=int(depth), **PAIRS, **GROWN)


def lightgbm(X: Any, y: np.ndarray, leaves: float, budget: int, threads: int, **more: Any) -> FittedModel:
    """Train lightgbm's trees for the logistic loss."""
    import lightgbm as lgb

    options = {
        "objective": "binary", "num_leaves": int(leaves), "learning_rate": 0.1, "num_threads": threads, "seed": 0,
        "deterministic": True, "force_col_wise": True, "verbosity": -1, **more,
    }  # fmt: skip
    model = lgb.train(options, lgb.Dataset(X, label=(y > 0).astype(float)), budget)
    return FittedModel(lambda X: model.predict(X, raw_score=True))


# ---- Vowpal Wabbit ------------------------------------------------------------------------------------------------------


def as_text(X: Any, y: np.ndarray) -> str:
    """Write the rows as a text file for Vowpal Wabbit, and return its path."""
    rows = sp.csr_matrix(X)
    with tempfile.NamedTemporaryFile("w", suffix=".vw", delete=False) as file:
        for i, label in enumerate(y.tolist()):
            part = slice(rows.indptr[i], rows.indptr[i + 1])
            pairs = zip(rows.indices[part].tolist(), rows.data[part].tolist(), strict=True)
            file.write(f"{label} | " + " ".join(f"{j}:{value:.7g}" for j, value in pairs) + "\n")
    return file.name


def vowpal_wabbit(path: Any, y: np.ndarray, lam: float, budget: int, threads: int) -> FittedModel:
    """Train Vowpal Wabbit's logistic loss by its default online steps, with `budget` passes over a text file and its cache."""
    from vowpalwabbit import Workspace

    bits = 18
    cache = f"{path}.cache"
    model = Workspace(
        f"-d {path} --loss_function logistic --l2 {lam} --passes {budget} --cache_file {cache} -k --holdout_off -b {bits} "
        "--quiet"
    )
    w = np.array([model.get_weight(j) for j in range(2**bits)])
    model.finish()
    Path(cache).unlink(missing_ok=True)
    return FittedModel(lambda X: np.asarray(X @ w[: X.shape[1]]))


# ---- libauc -------------------------------------------------------------------------------------------------------------


def auc_margin(X: Any, y: np.ndarray, lam: float, budget: int, threads: int) -> FittedModel:
    """Train a linear model by libauc's AUC-margin loss and PESG, at the documentation's settings."""
    from libauc.losses import AUCMLoss
    from libauc.optimizers import PESG

    return _libauc(AUCMLoss(device="cpu"), PESG, X, y, lam, budget, threads)


def compositional(X: Any, y: np.ndarray, lam: float, budget: int, threads: int) -> FittedModel:
    """Train a linear model by libauc's compositional loss and PDSCA, at the documentation's settings."""
    from libauc.losses import CompositionalAUCLoss
    from libauc.optimizers import PDSCA

    return _libauc(CompositionalAUCLoss(k=1, device="cpu"), PDSCA, X, y, lam, budget, threads)


def _libauc(loss: Any, optimizer: Any, X: Any, y: np.ndarray, lam: float, budget: int, threads: int) -> FittedModel:
    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    rows, labels = torch.as_tensor(X, dtype=torch.float32), torch.as_tensor(y > 0, dtype=torch.float32)[:, None]
    linear = torch.nn.Linear(X.shape[1], 1)
    steps = optimizer(linear.parameters(), loss_fn=loss, lr=0.1, weight_decay=lam, verbose=False, device="cpu")
    minority, majority = sorted((torch.as_tensor(np.flatnonzero(y == label)) for label in (-1, 1)), key=len)
    for epoch in range(budget):
        if epoch and epoch in (budget // 2, 3 * budget // 4):
            steps.update_regularizer(decay_factor=10)
        for half in majority[torch.randperm(len(majority))].split(HALF_BATCH):
            # As the default of its DualSampler, which needs torchvision: half of each batch comes from either class.
            which = torch.cat([half, minority[torch.randint(len(minority), (HALF_BATCH,))]])
            steps.zero_grad()
            loss(torch.sigmoid(linear(rows[which])), labels[which]).backward()
            steps.step()
    return linear_model(linear.weight.detach().numpy())


SYSTEMS = (
    System("xgboost gblinear, logistic", "xgboost", xgboost_linear, SWEEPS, 32, LINEAR),
    System("xgboost gblinear, pairs", "xgboost", xgboost_linear_pairs, SWEEPS, 32, LINEAR),
    System("Vowpal Wabbit", "vowpalwabbit", vowpal_wabbit, EPOCHS, 4, LINEAR, prepare=as_text),
    System("libauc AUC-margin", "libauc", auc_margin, EPOCHS, 4, LINEAR, dense=True),
    System("libauc compositional", "libauc", compositional, EPOCHS, 4, LINEAR, dense=True),
    System("xgboost trees, logistic", "xgboost", xgboost_trees, TREES, 100, OTHER, DEPTHS),
    System("xgboost trees, pairs", "xgboost", xgboost_tree_pairs, TREES, 100, OTHER, DEPTHS),
    System("lightgbm", "lightgbm", lightgbm, TREES, 100, OTHER, LEAVES),
)

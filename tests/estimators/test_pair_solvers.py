"""`PairwiseHingeClassifier` with the solvers over single pairs."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from support.oracle import pairwise_objective

from aucdist import PairwiseHingeClassifier
from aucdist.data.block import Block, into_blocks
from aucdist.engine.blocks import LocalBlocks

SOLVERS = ["sdcd", "sdcd-perm", "msgd"]
unconverged = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@unconverged
def test_equal_weights_are_none(data):
    X, y = data
    plain, weighted = (
        PairwiseHingeClassifier()
        .set_params(solver="msgd", solver__epochs=4, random_state=0)
        .fit(X, y, sample_weight=weight)
        for weight in (None, np.full(len(y), 3.0))
    )
    assert plain.coef_.tobytes() == weighted.coef_.tobytes()


@pytest.fixture
def data():
    r = np.random.default_rng(0)
    y = np.where(r.random(120) < 0.2, 1, -1)
    return r.normal(size=(120, 4)) + 0.8 * (y[:, None] > 0), y


@pytest.mark.parametrize(
    ("solver", "n_blocks", "options"),
    [
        ("sdcd", 1, {}),
        ("sdcd-perm", 3, {}),
        ("sdcd", 3, {"solver__average": True}),
        ("sdcd-perm", 1, {"solver__average": True}),
        ("sdcd-perm", 3, {"solver__combine": "average"}),
    ],
)
def test_dual_descent_converges(data, solver, n_blocks, options):
    X, y = data
    blocks = LocalBlocks(into_blocks(Block.of(X, y), n_blocks))
    model = (
        PairwiseHingeClassifier().set_params(lam=0.1, solver=solver, tol=1e-2, random_state=0, **options).fit(blocks)
    )
    c = model.certificate_
    assert c.status == "converged"
    assert c.primal == pytest.approx(pairwise_objective(model.coef_[0], X, y, 0.1), rel=1e-10)
    best = PairwiseHingeClassifier(lam=0.1, tol=1e-6).fit(X, y).certificate_
    assert c.dual <= best.primal
    assert best.dual <= c.primal <= best.primal / 0.99


@unconverged
@pytest.mark.parametrize("solver", SOLVERS)
def test_steps_say_how_long(data, solver):
    X, y = data
    k = (y > 0).sum() * (y < 0).sum()
    models = [
        PairwiseHingeClassifier(
            lam=1e-3, solver={"name": solver, **length}, tol=0, max_passes=10**6, random_state=3
        ).fit(X, y)
        for length in ({"steps": "all"}, {"steps": int(k)}, {"epochs": 5}, {"steps": 600})
    ]
    assert models[0].coef_.tolist() == models[1].coef_.tolist()
    assert models[2].coef_.tolist() == models[3].coef_.tolist()
    assert [len(m.history_) for m in models] == [1, 1, 5, 1]
    assert models[2].n_passes_ == 13


def test_the_end_of_the_steps_warns(data):
    with pytest.warns(ConvergenceWarning, match="relative gap"):
        PairwiseHingeClassifier().set_params(solver="sdcd", solver__epochs=1, random_state=0).fit(*data)

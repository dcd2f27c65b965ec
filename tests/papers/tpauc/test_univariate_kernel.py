import numpy as np
import pytest
from support.square_twins import FORMS, problem, univariate_steps

from aucdist.data.block import Block
from aucdist.papers.tpauc.kernels import UnivariateSteps, univariate_epoch

pytestmark = pytest.mark.nojit


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("exponential", [False, True])
# The last two shrink the weights by 1 - eta lam = 0, and by nearly so; the steps must be small not to diverge then.
@pytest.mark.parametrize(("eta", "size"), [(0.02, 1.0), (5.0, 1e-3), (4.9999, 1e-3)])
def test_epoch_is_the_plain_one(form, exponential, eta, size):
    X, y, weight = problem(d=6, weighted=True)
    order, factors = np.random.default_rng(1).permutation(np.tile(np.arange(len(y)), 4)), size * weight
    block, w = Block.of(FORMS[form](X), y), np.zeros(7)
    univariate_epoch(block.rows, order, block.y, factors, UnivariateSteps(exponential, eta, 0.2), w)
    expected, expected_bias = univariate_steps(X, y, factors, order, eta, 0.2, exponential)
    np.testing.assert_allclose(w[:6], expected, rtol=1e-10, atol=1e-15)
    assert w[6] == pytest.approx(expected_bias, rel=1e-10)

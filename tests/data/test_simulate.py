import numpy as np
import pytest
from scipy.stats import norm

from aucdist.data.simulate import simulate
from aucdist.errors import InputError
from aucdist.metrics import roc_auc_score


def test_best_direction_reaches_the_stated_auc():
    block = simulate(40_000, 6, 0.3, seed=1, shift=1.0)
    direction = block.X[block.y > 0].mean(axis=0) - block.X[block.y < 0].mean(axis=0)
    assert roc_auc_score(block.y, block.X @ direction) == pytest.approx(norm.cdf(1 / np.sqrt(2)), abs=0.01)
    assert (block.y > 0).mean() == pytest.approx(0.3, abs=0.01)


def test_blocks_share_the_direction_but_not_the_rows():
    one, two = simulate(50, 3, 0.5, seed=2), simulate(50, 3, 0.5, seed=2, index=1)
    assert not np.array_equal(one.X, two.X)
    assert two.row_id.tolist() == list(range(50, 100))
    np.testing.assert_array_equal(one.X, simulate(50, 3, 0.5, seed=2).X)


@pytest.mark.parametrize("share", [0.0, 1.0, -1, 2])
def test_a_share_outside_0_and_1_is_refused(share):
    with pytest.raises(InputError, match="positive_share"):
        simulate(10, 2, share, seed=0)

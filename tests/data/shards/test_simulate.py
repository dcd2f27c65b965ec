import numpy as np
import pytest
from pydantic import ValidationError
from scipy.stats import norm

from aucdist.data.shards.manifest import read_schema, read_shard, verify_shard
from aucdist.data.shards.simulate import Simulation, simulate
from aucdist.metrics import roc_auc_score
from flows.shard import SimulateConfig


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


def test_shards_hold_the_simulated_rows(tmp_path):
    simulation = Simulation(25, 3, 0.4, rows_per_shard=10, dtype="float32", seed=4)
    url = str(tmp_path)
    manifest = simulation.commit(url, [simulation.write(url, i) for i in range(simulation.n_shards)])
    assert (manifest.n_samples, manifest.form.n_features, manifest.form.dtype) == (25, 3, "float32")
    assert read_schema(manifest).feature_names == ("x1", "x2", "x3")
    blocks = [read_shard(url, i) for i in range(3)]
    assert [b.row_id.tolist() for b in blocks] == [list(range(10)), list(range(10, 20)), list(range(20, 25))]
    expected = simulate(10, 3, 0.4, seed=4, index=1)
    np.testing.assert_array_equal(blocks[1].X, expected.X.astype(np.float32))
    np.testing.assert_array_equal(blocks[1].y, expected.y)
    assert [verify_shard(url, i) for i in range(3)] == [None] * 3


def test_a_shard_takes_64_mib_by_default():
    assert Simulation(10**12, 2**10, 0.1).per_shard == 2**14
    assert Simulation(10**12, 2**10, 0.1, dtype="float64").n_shards == -(-(10**12) // 2**13)
    assert Simulation(5, 10**9, 0.1).per_shard == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rows": 0}, "rows"),
        ({"features": -1}, "features"),
        ({"rows_per_shard": 0}, "rows_per_shard"),
        ({"positive_share": 1.0}, "positive_share"),
        ({"dtype": "float16"}, "dtype"),
    ],
)
def test_a_simulation_that_cannot_be_is_refused(options, said):
    with pytest.raises(ValidationError, match=said):
        SimulateConfig(**{"target": "rows", "rows": 5, "features": 2, "positive_share": 0.5} | options)

import numpy as np
import pytest

from aucdist.kernels.random import fill_normal, stream
from aucdist.papers.zovr.kernels import (
    unit_vectors,
)

pytestmark = pytest.mark.nojit


def unit(n_directions, size, seed=1):
    out = np.empty((n_directions, size))
    unit_vectors(seed, out)
    return out


def test_unit_vectors_are_normal_vectors_of_length_one():
    ways = unit(3, 5)
    for a in range(3):
        z = np.empty(5)
        fill_normal(np.uint64(stream(1, a)), z)
        np.testing.assert_allclose(ways[a], z / np.linalg.norm(z), rtol=1e-14)
    # A direction does not depend on how many there are.
    np.testing.assert_array_equal(unit(2, 5), ways[:2])


def test_unit_vectors_look_uniform():
    ways = unit(3000, 3)
    np.testing.assert_allclose(ways.mean(axis=0), 0, atol=4 * np.sqrt(1 / 3 / 3000))
    np.testing.assert_allclose(ways.T @ ways / 3000, np.eye(3) / 3, atol=0.03)
    # On the sphere in three dimensions a coordinate is uniform.
    assert abs((np.abs(ways[:, 0]) < 0.5).mean() - 0.5) < 4 * 0.5 / np.sqrt(3000)

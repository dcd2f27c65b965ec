import numpy as np
import pytest

from aucdist.data.block import Block, partition
from aucdist.engine.blocks import LocalBlocks
from aucdist.papers.sdcd.pairing import Pairing

pytestmark = pytest.mark.nojit


def blocks_of(n_pos, n_neg, n_blocks):
    y = np.repeat([1, -1], [n_pos, n_neg])
    return LocalBlocks(partition(Block.of(np.arange(2.0 * len(y)).reshape(-1, 2), y), n_blocks))


@pytest.mark.parametrize("n_blocks", [1, 2, 5, 40])
def test_steps_are_shared_out_by_pairs(n_blocks):
    pairing = Pairing(blocks_of(9, 23, n_blocks), 2**28)
    pairing.send_minority(0)
    assert pairing.n_working == min(n_blocks, 23)
    for n_steps in (1, 32, 1000, 2**62):
        shares = pairing.shares(n_steps)
        assert shares.sum() == n_steps
        exact = [n_steps * int(m) / 23 for m in np.diff(pairing.majority_offsets)]
        np.testing.assert_allclose(shares, exact, rtol=1e-12, atol=1)
    assert (pairing.shares(32)[np.diff(pairing.majority_offsets) > 0] > 0).all()


@pytest.mark.parametrize("sizes", [(9, 23), (23, 9)])
@pytest.mark.parametrize(("minority_bytes", "n_parts"), [(2**20, 1), (80, 2), (16, 9), (1, 9)])
def test_the_parts_of_the_minority_are_all_of_it_on_every_block(sizes, minority_bytes, n_parts):
    blocks = blocks_of(*sizes, 3)
    pairing = Pairing(blocks, minority_bytes)
    assert pairing.n_parts == n_parts
    of_parts = []
    for part in range(n_parts):
        pairing.send_minority(part)
        seen = [memory.minority.values for memory in pairing.blocks._memory]
        assert all((rows == seen[0]).all() for rows in seen)
        assert n_parts == 1 or seen[0].nbytes <= max(minority_bytes, 16)
        assert pairing.blocks._memory[0].first == sum(map(len, of_parts))
        of_parts.append(seen[0])
    label = 1 if sizes[0] < sizes[1] else -1
    whole = np.concatenate([b.X[b.y == label] for b in blocks._blocks])
    np.testing.assert_array_equal(np.concatenate(of_parts), whole)


def test_one_block_has_its_minority_in_one_part():
    assert Pairing(blocks_of(9, 23, 1), 1).n_parts == 1

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from support.code_sets import random_codes

from aucdist import LinkClassifier, PairwiseHingeClassifier, PairwiseRampClassifier, PairwiseSquareClassifier
from aucdist.data.block import Block, into_blocks, stacked
from aucdist.data.shards.sharding import simulate
from aucdist.engine.blocks import LocalBlocks
from aucdist.errors import InputError
from aucdist.kernels.rows import project


def some_block(n=20, n_pos=5, sparse=False):
    X = np.arange(2.0 * n).reshape(n, 2)
    y = np.where(np.arange(n) % (n // n_pos) == 0, 1, -1)
    return Block.of(sp.csr_matrix(X) if sparse else X, y)


def remember(block, memory, add):
    total = (0 if memory is None else memory) + add
    return total, {"ids": [block.row_id], "memory": [total], "n": block.n_samples}


def test_memory_stays_and_summaries_merge_in_block_order():
    blocks = LocalBlocks(into_blocks(some_block(), 3))
    first = blocks.reduce(remember, 2)
    assert first["memory"] == [2, 2, 2]
    assert first["n"] == 20
    again = blocks.reduce(remember, 5)
    assert again["memory"] == [7, 7, 7]
    assert sorted(np.concatenate(again["ids"])) == list(range(20))
    assert blocks.without_memory().reduce(remember, 1)["memory"] == [1, 1, 1]
    assert blocks.reduce(remember, 0)["memory"] == [7, 7, 7]


def test_every_block_gets_its_share_of_positives():
    blocks = LocalBlocks(into_blocks(some_block(200, 10), 5))
    assert [i.n_pos for i in blocks.infos] == [2] * 5
    assert (blocks.n_samples, blocks.n_pos, blocks.n_neg, blocks.n_features) == (200, 10, 190, 2)


@pytest.mark.parametrize("sparse", [False, True])
def test_more_blocks_than_rows_is_legal(sparse):
    parts = into_blocks(some_block(4, 2, sparse), 6)
    assert sum(p.n_samples for p in parts) == 4
    assert LocalBlocks(parts).n_samples == 4


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("n_blocks", [1, 3, 20])
def test_rows_in_memory_are_cut_into_neighbours(sparse, n_blocks):
    rows, weight = some_block(20, 5, sparse), np.linspace(1.0, 2.0, 20)
    blocks = LocalBlocks.of(rows.X, rows.y, weight, n_blocks=n_blocks)
    parts = [blocks.reduce(whole_block)["blocks"][index] for index in range(n_blocks)]
    assert max(part.n_samples for part in parts) - min(part.n_samples for part in parts) <= 1
    together = stacked(parts)
    assert np.array_equal(dense(together.X), dense(rows.X))
    assert together.row_id.tolist() == list(range(20))
    assert together.y.tolist() == rows.y.tolist()
    assert together.weights().tolist() == weight.tolist()


@pytest.mark.parametrize(("start", "stop"), [(0, 20), (3, 11), (5, 5), (19, 20)])
@pytest.mark.parametrize("form", ["dense", "sparse", "codes"])
def test_rows_between_are_those_taken_there(form, start, stop):
    block = some_block(sparse=form == "sparse")
    if form == "codes":
        block = Block(random_codes(20, 0), block.y, block.row_id)
    cut, taken = block.between(start, stop, index=2), block.take(np.arange(start, stop), index=2)
    w = np.linspace(-1.0, 1.0, block.n_features)
    for array, other in zip(cut.rows, taken.rows, strict=True):
        assert form == "codes" or np.array_equal(array, other)
    for name in ("y", "row_id", "index", "n_samples", "n_features"):
        assert np.array_equal(getattr(cut, name), getattr(taken, name))
    scores = np.empty((2, stop - start))
    project(cut.rows, w, scores[0])
    project(taken.rows, w, scores[1])
    assert np.array_equal(*scores)


def whole_block(block, memory):
    return memory, {"blocks": [block]}


def dense(X):
    return X.toarray() if sp.issparse(X) else X


def test_cutting_does_not_copy_features():
    X = np.ones((6, 2))
    first, two = LocalBlocks.of(X, [1, -1, 1, -1, 1, -1], n_blocks=2).reduce(whole_block)["blocks"]
    assert np.shares_memory(first.X, X)
    assert np.shares_memory(two.X, X)


@pytest.mark.parametrize("n_blocks", [0, -1, 21, 2.5, True, None])
def test_cutting_needs_a_row_for_each_block(n_blocks):
    rows = some_block()
    with pytest.raises(InputError, match=f"n_blocks must be an integer from 1 to 20.*; got {n_blocks}"):
        LocalBlocks.of(rows.X, rows.y, n_blocks=n_blocks)


@pytest.mark.parametrize(
    "model", [PairwiseHingeClassifier(), PairwiseSquareClassifier(), PairwiseRampClassifier(), LinkClassifier()]
)
def test_blocks_may_lack_a_class_and_threads_change_no_bit(model):
    rows = simulate(300, 4, 0.3, seed=1)
    order = np.argsort(rows.y, kind="stable")
    X, y = rows.X[order], rows.y[order]
    whole = clone(model).fit(X, y)
    two, three = (clone(model).fit(LocalBlocks.of(X, y, n_blocks=5, n_jobs=n_jobs)) for n_jobs in (1, 3))
    assert two.coef_.tobytes() == three.coef_.tobytes()
    np.testing.assert_allclose(two.coef_, whole.coef_, rtol=2e-2, atol=2e-3)
    assert abs(two.certificate_.primal - whole.certificate_.primal) <= 2e-3 * whole.certificate_.primal


@pytest.mark.parametrize("n", [0, -1])
def test_no_blocks_is_refused(n):
    with pytest.raises(InputError, match="n_blocks"):
        LocalBlocks.of(np.ones((4, 2)), np.array([1, -1, 1, -1]), n_blocks=n)


def test_blocks_must_agree_on_features():
    with pytest.raises(InputError, match=r"different numbers of features \(2, 3\)"):
        LocalBlocks([some_block(), Block.of(np.ones((2, 3)), np.array([1, -1]))])
    with pytest.raises(InputError, match="no blocks"):
        LocalBlocks([])


def test_block_refuses_what_does_not_fit():
    X = np.ones((3, 2))
    with pytest.raises(InputError, match="y has shape"):
        Block.of(X, np.ones(2))
    with pytest.raises(InputError, match="-1 or"):
        Block.of(X, np.array([0, 1, 1]))
    with pytest.raises(InputError, match="weights have shape"):
        Block.of(X, np.ones(3), weight=np.ones(4))
    with pytest.raises(InputError, match="must have 2 dimensions"):
        Block.of(np.ones(3), np.ones(3))


def test_csr_is_made_canonical_without_touching_the_callers():
    original = sp.csr_matrix((np.array([1.0, 2.0, 3.0]), np.array([1, 0, 1]), np.array([0, 3])), (1, 2))
    rows = Block.of(original, np.array([1])).rows
    assert rows.indices.dtype == np.int32
    assert rows.offsets.dtype == np.int64
    np.testing.assert_array_equal(rows.values, [2.0, 4.0])
    assert original.nnz == 3

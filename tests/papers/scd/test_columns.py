import numpy as np
import pytest
import scipy.sparse as sp

from aucdist.data.block import Block, partition
from aucdist.engine.blocks import LocalBlocks
from aucdist.engine.dask import DaskBlocks
from aucdist.engine.view import ClassView
from aucdist.papers.scd.columns import columns_of
from aucdist.search.folds import masked_blocks

N_BLOCKS = 3


def data(form=np.asarray, dtype=np.float64):
    r = np.random.default_rng(0)
    X = (r.normal(size=(20, 7)) * (r.random((20, 7)) < 0.6)).astype(dtype)
    return form(X), np.where(r.random(20) < 0.4, 1, -1)


def load(index):
    return partition(Block.of(*data(sp.csr_matrix)), N_BLOCKS)[index]


def collect_blocks(block, memory):
    return memory, {"blocks": [block]}


def assert_columns(columns, X, y, n_blocks):
    """Every column, times the labels, is in its block."""
    blocks = columns.reduce(collect_blocks)["blocks"]
    assert len(blocks) == n_blocks
    for b, block in enumerate(blocks):
        dense = block.X.toarray() if sp.issparse(block.X) else block.X
        assert block.row_id.tolist() == list(range(b, X.shape[1], n_blocks))
        np.testing.assert_array_equal(dense, (X * y[:, None]).T[b::n_blocks])
        assert dense.dtype == X.dtype


@pytest.mark.parametrize("n_blocks", [1, 3, 9])
@pytest.mark.parametrize(
    ("form", "dtype"), [(np.asarray, np.float64), (sp.csr_matrix, np.float32), (sp.csr_array, np.float64)]
)
def test_columns_here(n_blocks, form, dtype):
    X, y = data(form, dtype)
    parts = partition(Block.of(X, y), n_blocks)
    order = np.concatenate([part.row_id for part in parts])
    dense = data(dtype=dtype)[0]
    assert_columns(columns_of(LocalBlocks(parts)), dense[order], y[order], min(n_blocks, 7))
    np.testing.assert_array_equal(dense, X.toarray() if sp.issparse(X) else X)  # what is given stays as it is


def test_columns_on_workers(client):
    here = LocalBlocks([load(i) for i in range(N_BLOCKS)])
    X, y = data()
    order = np.concatenate([b.row_id for b in here.reduce(collect_blocks)["blocks"]])
    columns = columns_of(DaskBlocks.load(client, load, N_BLOCKS))
    assert isinstance(columns, DaskBlocks)
    assert_columns(columns, X[order], y[order], N_BLOCKS)
    masked = masked_blocks(DaskBlocks.load(client, load, N_BLOCKS), np.arange(20) > 3, Doubled())
    assert isinstance(columns_of(masked), DaskBlocks)
    assert_columns(columns_of(masked), 2.0 * X[order], y[order], N_BLOCKS)


class Doubled:
    """A scaling of a fold's own."""

    def transform(self, block):
        return Block.of(2.0 * block.X, block.y, row_id=block.row_id, weight=block.weight, index=block.index)


def test_columns_of_a_class_have_its_labels():
    X, y = data()
    rows = Block.of(X, np.ones(20, dtype=np.int8), code=(y > 0).astype(np.int64))
    assert_columns(columns_of(ClassView(LocalBlocks.split(rows, 2), np.array([-1, 1], dtype=np.int8))), X, y, 2)


def test_blocks_without_rows():
    X, y = data()
    parts = [np.arange(20), np.arange(0)]
    blocks = LocalBlocks([Block.of(X, y).take(part, index=i) for i, part in enumerate(parts)])
    assert_columns(columns_of(blocks), X, y, 2)

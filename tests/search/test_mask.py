"""Rows behind a mask give the same bits as rows of their own."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from aucdist import PairwiseHingeClassifier
from aucdist.data.block import Block, each_of, partition
from aucdist.data.preprocess import fit_preprocessor
from aucdist.engine.blocks import LocalBlocks
from aucdist.engine.dask import DaskBlocks
from aucdist.metrics.measures import MEASURES
from aucdist.search.fold import score_path
from aucdist.search.folds import masked_blocks

POINTS = [{"lam": 1.0}, {"lam": 1e-2}, {"lam": 1e-3}]


def rows(n=400, weighted=False, sparse=False):
    r = np.random.default_rng(0)
    y = np.where(r.random(n) < 0.2, 1, -1)
    X = np.round(r.normal(size=(n, 6)) + 0.5 * (y == 1)[:, None], 1)
    weight = r.integers(1, 4, n).astype(float) if weighted else None
    return Block.of(sp.csr_matrix(X) if sparse else X, y, weight=weight, row_id=r.permutation(2 * n)[:n])


def sides(block, seed=1):
    train = np.zeros(block.row_id.max() + 1, dtype=bool)
    train[block.row_id] = np.random.default_rng(seed).random(block.n_samples) < 0.7
    held_out = np.zeros_like(train)
    held_out[block.row_id] = ~train[block.row_id]
    return train, held_out


def load(index):
    return partition(rows(), 3)[index]


def own_rows(blocks, side):
    return [b.take(side[b.row_id], index=b.index) for b in blocks]


def figures(found):
    return [{k: v for k, v in result.items() if k != "seconds"} for result in found]


def scored(train, held_out, tol=1e-3):
    return figures(score_path(PairwiseHingeClassifier(tol=tol), POINTS, train, held_out, MEASURES["auc"]))


@pytest.mark.parametrize("n_blocks", [1, 3])
@pytest.mark.parametrize(("weighted", "sparse"), [(False, False), (True, True)])
def test_same_bits_as_rows_of_their_own(n_blocks, weighted, sparse):
    whole = rows(weighted=weighted, sparse=sparse)
    blocks = partition(whole, n_blocks)
    train, held_out = sides(whole)
    masked = scored(*(masked_blocks(LocalBlocks(blocks), side) for side in (train, held_out)))
    assert masked == scored(*(LocalBlocks(own_rows(blocks, side)) for side in (train, held_out)))
    assert len({result["value"] for result in masked}) > 1


def test_same_bits_with_a_scaling_of_the_folds_own():
    blocks = partition(rows(), 2)
    train, held_out = sides(rows())
    names = [str(j) for j in range(6)]
    own = own_rows(blocks, train)
    scaling = fit_preprocessor(each_of(own), names, log1p=None, scale="standard", categories={})
    masked = scored(*(masked_blocks(LocalBlocks(blocks), side, scaling) for side in (train, held_out)))
    parts = [[scaling.transform(b) for b in own_rows(blocks, side)] for side in (train, held_out)]
    assert masked == scored(*map(LocalBlocks, parts))


def test_what_the_client_knows_is_of_the_kept_rows():
    blocks, (train, _) = partition(rows(weighted=True), 3), sides(rows())
    masked, own = masked_blocks(LocalBlocks(blocks), train), LocalBlocks(own_rows(blocks, train))
    known = [replace(info, lasting=True) for info in masked.infos]  # masks read their rows through the unmasked blocks
    assert known == own.infos
    assert masked.without_memory().infos == masked.infos
    assert not masked_blocks(LocalBlocks(partition(rows(), 3)), train).has_weights


def test_same_bits_on_workers(client):
    train, held_out = sides(rows())
    there = DaskBlocks.load(client, load, 3)
    here = LocalBlocks([load(i) for i in range(3)])
    found = [scored(masked_blocks(blocks, train), masked_blocks(blocks, held_out), tol=0.2) for blocks in (here, there)]
    assert found[0] == found[1]

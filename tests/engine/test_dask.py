"""On real clusters of worker processes."""

from functools import partial

import dask.array as da
import numpy as np
import pandas as pd
import pytest

from aucdist import PairwiseHingeClassifier
from aucdist.data.block import Block, into_blocks
from aucdist.engine.blocks import LocalBlocks
from aucdist.engine.dask import DaskBlocks, local_client
from aucdist.engine.worker_part import FEW_BYTES
from aucdist.errors import InputError
from aucdist.pairs import cutting_planes
from aucdist.pairs.cutting_planes import AllPairs
from aucdist.solvers.base import Status, solve

N_BLOCKS = 5


def data(n=3000, seed=0):
    r = np.random.default_rng(seed)
    y = np.where(r.random(n) < 0.1, 1, -1)
    return r.normal(size=(n, 7)) + 0.5 * (y[:, None] > 0), y


def load(index):
    return into_blocks(Block.of(*data()), N_BLOCKS)[index]


@pytest.mark.parametrize(("most", "tol"), [(cutting_planes.MAX_ANCHORS, 1e-4), (0, 1e-3)], ids=["anchors", "cells"])
def test_any_number_of_workers_same_bits(most, tol, monkeypatch):
    monkeypatch.setattr(cutting_planes, "MAX_ANCHORS", most)
    here = LocalBlocks(into_blocks(Block.of(*data()), N_BLOCKS))
    with local_client(3, memory_limit="1GiB") as client:
        there = DaskBlocks.load(client, load, N_BLOCKS)
        fit, other = (solve(AllPairs().rounds(blocks, 1e-2), tol=tol, max_passes=100) for blocks in (here, there))
    assert fit.certificate.status is Status.CONVERGED
    assert fit.w.tobytes() == other.w.tobytes()
    assert fit.certificate == other.certificate
    drop = ["seconds"]
    pd.testing.assert_frame_equal(fit.history.drop(columns=drop), other.history.drop(columns=drop), check_exact=True)


def count_bytes(block, memory, *args):
    total = sum(a.nbytes for a in args) + (memory or 0)
    return total, {"bytes": [total], "index": [block.index]}


def test_small_and_large_arguments(client):
    blocks = DaskBlocks.load(client, load, N_BLOCKS)
    small, large = np.zeros(3), np.zeros(FEW_BYTES)
    assert blocks.reduce(count_bytes, small) == {"bytes": [24] * N_BLOCKS, "index": list(range(N_BLOCKS))}
    assert blocks.reduce(count_bytes, small, large)["bytes"] == [48 + large.nbytes] * N_BLOCKS


def echo(block, memory, *args):
    return None, {"args": [args] if block.index == 0 else []}


@pytest.mark.parametrize("size", [1, FEW_BYTES])
def test_arguments_that_look_like_tasks_are_not_run(client, size):
    """A tuple with a function at its head is one in Dask's eyes, and a string may be the key of another task."""
    blocks = DaskBlocks.load(client, load, N_BLOCKS)
    for args in [(len, "abc"), ((len, "abc"), [(len, ["a"])], {"b": (len, "c")}), ((max, 1, 2),)]:
        (echoed,) = blocks.reduce(echo, np.zeros(size), *args)["args"]
        assert echoed[1:] == args
        assert echoed[0].shape == (size,)
        assert echoed[0].flags.writeable
        (echoed,) = blocks.reduce(echo, *args, np.zeros(size))["args"]
        assert echoed[:-1] == args


def count_up(block, memory, fails):
    if fails:
        raise ValueError("no more")
    return (memory or 0) + 1, {"n": (memory or 0) + 1}


def test_a_step_that_fails_leaves_the_memory_as_it_was(client):
    blocks = DaskBlocks.load(client, load, 3)
    blocks.reduce(count_up, False)
    with pytest.raises(ValueError, match="no more"):
        blocks.reduce(count_up, True)
    assert blocks.reduce(count_up, False)["n"] == 2 * 3


def test_dask_is_told_the_true_size(client):
    blocks = DaskBlocks.load(client, load, N_BLOCKS)
    sizes = client.run_on_scheduler(lambda dask_scheduler: [t.nbytes for t in dask_scheduler.tasks.values()])
    assert max(sizes) >= 3000 * 7 * 8 / 2 > 0
    assert blocks.n_samples == 3000


@pytest.mark.parametrize("with_client", [False, True])
def test_dask_collections(with_client, request):
    if with_client:
        request.getfixturevalue("client")
    X, y = data()
    labels = np.where(y > 0, "yes", "no")
    plain = PairwiseHingeClassifier(lam=1e-2, tol=1e-5).fit(X, labels)
    model = PairwiseHingeClassifier(lam=1e-2, tol=1e-5).fit(
        da.from_array(X, chunks=(700, 3)), da.from_array(labels, chunks=1000)
    )
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=2e-5)
    scores = model.decision_function(da.from_array(X, chunks=(900, 7)))
    np.testing.assert_array_equal(scores.compute(), model.decision_function(X))
    predicted = model.predict(da.from_array(X, chunks=(900, 7)))
    np.testing.assert_array_equal(predicted.compute(), model.predict(X))


def test_dask_collections_that_do_not_match():
    X, y = data()
    with pytest.raises(InputError, match="dask collections too"):
        PairwiseHingeClassifier().fit(da.from_array(X), y)
    with pytest.raises(InputError, match="3000 rows, but y"):
        PairwiseHingeClassifier().fit(da.from_array(X), da.from_array(y[:-1]))


def unfit(scale, index):
    return Block.of(np.ones((2, scale * (index + 1))), np.array([1, -1]), index=index)


def test_blocks_that_disagree_are_refused(client):
    with pytest.raises(InputError, match=r"different numbers of features \(2, 4\)"):
        DaskBlocks.load(client, partial(unfit, 2), 2)

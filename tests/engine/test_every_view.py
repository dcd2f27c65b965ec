"""Each way to see rows, with each kind of step: the same answers as of plain blocks, and no reading that is not needed."""

import copy
import pickle

import numpy as np
import pytest
from support.scratch_room import start_anew

from aucdist.data.block import Block, into_blocks
from aucdist.engine.blocks import Blocks, LocalBlocks, StoredBlock, reads_rows_itself, without_rows
from aucdist.engine.dask import DaskBlocks
from aucdist.engine.view import ChangedBlock, Mask, ViewBlocks
from aucdist.estimators.conditioning import Shift

N_BLOCKS = 3
INSIDE = np.arange(30) % 4 != 1
READ: list[int] = []
MADE: list[int] = []


def parts() -> list[Block]:
    r = np.random.default_rng(0)
    X = np.round(r.normal(size=(30, 4)), 1)
    return into_blocks(Block.of(X, np.where(np.arange(30) < 9, 1, -1)), N_BLOCKS)


def load(index: int) -> Block:
    READ.append(index)
    return parts()[index]


def doubled(block: Block) -> Block:
    MADE.append(block.index)
    return block.with_X(2.0 * block.X)


SHIFT = Shift(np.array([1]), np.array([0.5]))
VIEWS = {
    "none": (),
    "memory": ((doubled, "memory"),),
    "disk": ((doubled, "disk"),),
    "nowhere": ((doubled, "nowhere"),),
    "unread": ((SHIFT, "unread"),),
    "mask": ((Mask(INSIDE), "nowhere"),),
    "mask over memory": ((doubled, "memory"), (Mask(INSIDE), "nowhere")),
    "mask over disk": ((doubled, "disk"), (Mask(INSIDE), "nowhere")),
    "memory over mask": ((Mask(INSIDE), "nowhere"), (doubled, "memory")),
    "disk over nowhere over mask": ((Mask(INSIDE), "nowhere"), (SHIFT, "unread"), (doubled, "disk")),
}
NEVER_READ_AGAIN = [name for name in VIEWS if "memory" in name or "disk" in name]


def viewed(blocks: Blocks, name: str) -> Blocks:
    for change, keep in VIEWS[name]:
        blocks = ViewBlocks(blocks, change, keep=keep)
    return blocks


def made(name: str) -> list[Block]:
    """The blocks that a view stands for."""
    blocks = parts()
    for change, _ in VIEWS[name]:
        blocks = [(change.for_block(block) if isinstance(change, Mask) else change)(block) for block in blocks]
    return blocks


def keep_sum(block, memory, factor):
    total = float(block.weights() @ block.X.sum(axis=1))
    return total, {"sum": [factor * total], "index": [block.index], "type": [type(block).__name__]}


@without_rows
def sum_kept(number, memory, factor):
    assert type(number) is int
    return memory, {"sum": [factor * memory], "index": [number]}


@reads_rows_itself
def read_if_first(source, memory, factor):
    if memory is None:
        block = source if isinstance(source, Block) else source.read()
        memory = float(block.weights() @ block.X.sum(axis=1))
    return memory, {"sum": [factor * memory], "index": [source.index]}


def carrier(kind: str, request: pytest.FixtureRequest) -> Blocks:
    if kind == "workers":
        return DaskBlocks.load(request.getfixturevalue("client"), load, N_BLOCKS)
    if kind == "workers, streamed":
        return DaskBlocks.load(request.getfixturevalue("client"), load, N_BLOCKS, stream=True)
    return LocalBlocks.load(load, N_BLOCKS, stream=kind == "streamed", n_jobs=2 if kind == "threads" else None)


@pytest.fixture
def no_room():
    """No copies on the local disk: each reading shows."""
    start_anew(0)
    yield
    start_anew()


KINDS = (("threads", "workers, streamed"), ("streamed", "workers"))


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for i, name in enumerate(VIEWS) for kind in KINDS[i % 2]])
def test_answers_of_each_kind_of_step(kind, name, request):
    blocks, plain = viewed(carrier(kind, request), name), LocalBlocks(made(name))
    for fit in (blocks, blocks.without_memory()):
        own = plain.without_memory()
        for step in (keep_sum, sum_kept, keep_sum):
            assert fit.reduce(step, 3.0) == own.reduce(step, 3.0)
        assert fit.fork().reduce(sum_kept, 2.0) == own.fork().reduce(sum_kept, 2.0)
    lazily, own = blocks.without_memory(), plain.without_memory()
    for factor in (1.0, 2.0):
        assert lazily.reduce(read_if_first, factor) == own.reduce(read_if_first, factor)
    assert (blocks.n_features, blocks.n_blocks) == (4, N_BLOCKS)
    assert blocks.n_samples == (INSIDE.sum() if name.startswith("mask") else 30)
    assert (blocks.weight_pos, blocks.weight_neg) == (plain.weight_pos, plain.weight_neg)


@pytest.mark.parametrize("name", VIEWS)
def test_streamed_rows_are_read_only_for_steps_that_need_them(name, no_room):
    blocks = viewed(LocalBlocks.load(load, N_BLOCKS, stream=True), name)
    READ.clear()
    blocks.reduce(keep_sum, 1.0)
    # Without room on the disk, what lies there is made again.
    assert len(READ) == (0 if "memory" in name else N_BLOCKS)
    READ.clear()
    blocks.reduce(sum_kept, 1.0)
    assert READ == []
    lazily = blocks.without_memory()
    lazily.reduce(read_if_first, 1.0)
    READ.clear()
    lazily.reduce(read_if_first, 2.0)
    assert READ == []


@pytest.mark.parametrize("name", NEVER_READ_AGAIN)
def test_what_is_kept_is_neither_read_nor_made_again(name):
    start_anew()
    blocks = viewed(LocalBlocks.load(load, N_BLOCKS, stream=True), name)
    READ.clear()
    MADE.clear()
    for fit in (blocks, blocks.without_memory()):
        fit.reduce(keep_sum, 1.0)
        fit.reduce(sum_kept, 1.0)
    assert READ == MADE == []


def test_a_view_is_described_without_reading_where_labels_and_weights_stay(no_room):
    stored = LocalBlocks.load(load, N_BLOCKS, stream=True)
    READ.clear()
    assert viewed(stored, "unread").n_pos == stored.n_pos
    assert READ == []


def test_a_made_block_that_travels_is_made_again_where_it_arrives():
    start_anew()
    stored, made, expected = StoredBlock.first_read(load, 0), ChangedBlock(None, doubled, True), 2.0 * parts()[0].X
    made.block(stored)
    for here in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        MADE.clear()
        for _ in range(2):
            np.testing.assert_array_equal(here.block(stored).X, expected)
        assert MADE == [0]

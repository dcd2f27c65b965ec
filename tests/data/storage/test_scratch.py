"""Copies of stored blocks on the local disk: the same blocks, within their limits, and gone with the blocks."""

import contextlib
import errno
import gc
import os
import pickle
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from aucdist.data.block import Block
from aucdist.data.storage import scratch
from aucdist.engine.blocks import StoredBlock
from aucdist.engine.dask import DaskBlocks
from aucdist.errors import InputError
from aucdist.pairs.cutting_planes import AllPairs


@pytest.fixture
def copies(tmp_path, monkeypatch):
    monkeypatch.setattr(scratch, "SHARE_THAT_STAYS_FREE", 0.0)
    monkeypatch.setattr(scratch, "_is_memory", lambda folder: False)
    monkeypatch.setattr(scratch, "_scratch", scratch.Scratch(tmp_path))
    return scratch.scratch()


def dense(n=500, index=0):
    r = np.random.default_rng(index)
    return Block.of(r.normal(size=(n, 3)), np.where(r.random(n) < 0.3, 1, -1), index=index)


def sparse():
    block = dense()
    return Block.of(sp.csr_matrix(block.X * (block.X > 0)), block.y, weight=np.arange(500.0))


@pytest.mark.parametrize("make", [dense, sparse])
def test_a_copy_is_the_block(copies, make):
    block = make()
    copied = copies.copy(block).read()
    assert type(copied.rows) is type(block.rows)
    for array, other in zip([*copied.rows, copied.y, copied.row_id], [*block.rows, block.y, block.row_id], strict=True):
        np.testing.assert_array_equal(array, other)
        assert np.asarray(array).dtype == np.asarray(other).dtype
    assert (copied.weight is None) == (block.weight is None)
    assert copied.rows.values.flags.aligned
    assert copied.rows.values.flags.writeable  # as kernels expect it
    copied.rows.values[:] = 0.0  # private
    np.testing.assert_array_equal(copies.copy(block).read().rows.values, block.rows.values)


def test_a_stored_block_is_read_once_and_again_where_it_was_sent(copies):
    READ.clear()
    stored = StoredBlock.first_read(dense_of, 4)
    for _ in range(3):
        np.testing.assert_array_equal(stored.read().X, dense(index=4).X)
    assert READ == [4]
    sent = pickle.loads(pickle.dumps(stored))
    for _ in range(3):
        np.testing.assert_array_equal(sent.read().X, dense(index=4).X)
    assert READ == [4, 4]


READ = []


def dense_of(index):
    READ.append(index)
    return dense(index=index)


def open_files(folder):
    """Return what this process has open in a folder, where the system tells it; other threads open other files."""
    targets = []
    for descriptor in Path("/proc/self/fd").glob("*"):
        with contextlib.suppress(OSError):
            targets.append(str(descriptor.readlink()))
    return [name for name in targets if name.startswith(str(folder))]


def test_copies_go_with_their_blocks(copies):
    stored = [StoredBlock.first_read(dense_of, i) for i in range(4)]
    assert copies.used >= 4 * dense().X.nbytes
    assert open_files(copies.folder) or not Path("/proc/self/fd").is_dir()
    block = stored[0].read()
    del stored
    gc.collect()
    np.testing.assert_array_equal(block.X, dense(index=0).X)  # mapped, it stays
    assert copies.used >= dense().X.nbytes
    del block
    gc.collect()
    assert copies.used == 0
    assert open_files(copies.folder) == []
    assert list(Path(copies.folder).iterdir()) == []


def test_files_go_with_the_last_of_their_copies(copies, monkeypatch):
    monkeypatch.setattr(scratch, "FILE_BYTES", 3 * copies.copy(dense()).size)
    kept = [copies.copy(dense(index=i)) for i in range(7)]
    size = kept[0].size
    assert copies.used == 7 * size
    for i, copy in enumerate(kept):
        np.testing.assert_array_equal(copy.read().X, dense(index=i).X)
    rows = kept[3].read().X  # an array alone holds the file
    del kept[:6], copy
    gc.collect()
    assert copies.used == 4 * size
    np.testing.assert_array_equal(rows, dense(index=3).X)
    del rows
    gc.collect()
    assert copies.used == size
    np.testing.assert_array_equal(kept[0].read().X, dense(index=6).X)


def test_threads_share_files(copies, monkeypatch):
    size = copies.copy(dense()).size
    monkeypatch.setattr(scratch, "FILE_BYTES", 2 * size)

    def write_and_read(number):
        for k in range(40):
            copy = copies.copy(dense(index=number))
            np.testing.assert_array_equal(copy.read().X, dense(index=number).X)
            if k % 3 == number % 3:
                del copy
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(write_and_read, range(4)))
    assert copies.used <= 16 * size


def test_a_limit_is_kept(tmp_path, copies):
    size = copies.copy(dense()).size
    few = scratch.Scratch(tmp_path, 2 * size)
    kept = [few.copy(dense(index=i)) for i in range(4)]
    assert [copy is not None for copy in kept] == [True, True, False, False]
    assert few.used <= 2 * size


def test_a_disk_that_is_nearly_full_gets_no_copies_unless_a_limit_is_given(copies, monkeypatch, tmp_path):
    monkeypatch.setattr(scratch, "SHARE_THAT_STAYS_FREE", 1.0)
    assert copies.copy(dense()) is None
    assert copies.used == 0
    assert not StoredBlock.first_read(lambda index: dense(index=index), 0).info.copied
    monkeypatch.setattr(scratch, "_scratch", scratch.Scratch(tmp_path, 2**30))
    assert StoredBlock.first_read(lambda index: dense(index=index), 0).info.copied


@pytest.mark.parametrize("fault", [errno.ENOSPC, errno.EIO])
def test_a_disk_that_fails_costs_only_time(copies, monkeypatch, fault):
    def fail(*_):
        raise OSError(fault, os.strerror(fault))

    monkeypatch.setattr(os, "pwrite", fail)
    read = []

    def loader(index):
        read.append(index)
        return dense(index=index)

    stored = StoredBlock.first_read(loader, 1)
    np.testing.assert_array_equal(stored.read().X, dense(index=1).X)
    assert read == [1, 1]


def test_a_file_system_in_memory_gets_no_copies(tmp_path):
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/sda1 / ext4 rw 0 0\ntmpfs {tmp_path}/shm tmpfs rw 0 0\n")
    (tmp_path / "shm").mkdir()
    assert scratch._is_memory(tmp_path / "shm", mounts)
    assert not scratch._is_memory(tmp_path, mounts)
    assert not scratch._is_memory(tmp_path, tmp_path / "none")


def test_the_environment_sets_the_limit(monkeypatch, tmp_path):
    monkeypatch.setattr(scratch, "_scratch", None)
    monkeypatch.setenv(scratch.LIMIT, "0")
    assert scratch.scratch().copy(dense()) is None
    for wrong in ("10GB", "-1", "1e9"):
        monkeypatch.setenv(scratch.LIMIT, wrong)
        with pytest.raises(InputError, match=r"AUCDIST_SCRATCH_BYTES must be a number of bytes"):
            scratch.use_folder(tmp_path / wrong)


def test_a_folder_that_is_gone_gives_way_to_the_default(tmp_path, monkeypatch):
    monkeypatch.setattr(scratch, "_scratch", None)
    folder = tmp_path / "worker"
    folder.mkdir()
    scratch.use_folder(folder)
    assert scratch.scratch().folder == folder
    folder.rmdir()
    assert scratch.scratch().folder == Path(tempfile.gettempdir())


def test_workers_write_copies_into_their_own_folders(client):
    blocks = DaskBlocks.load(client, dense_of, 4, stream=True)
    assert np.isfinite(next(AllPairs().rounds(blocks, 1e-2)).primal)
    folders = client.run(lambda: str(scratch.scratch().folder))
    assert folders == client.run(lambda dask_worker: dask_worker.local_directory)


def test_without_a_folder_for_temporary_files_there_are_no_copies(monkeypatch):
    def nowhere():
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", nowhere)
    monkeypatch.setattr(scratch, "_scratch", None)
    assert scratch.scratch().copy(dense()) is None

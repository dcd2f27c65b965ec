"""Groups and grades in shards."""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from aucdist.data.block import Block
from aucdist.data.dataset import Schema
from aucdist.data.shards.manifest import read_manifest, read_shard, verify_shard, write_shards
from aucdist.errors import InputError

SCHEMA = Schema(("a", "b"), "label", ("1",), ("-1",), {})


def block(*, sparse=False, weighted=False, grouped=True, graded=True):
    r = np.random.default_rng(0)
    X = r.normal(size=(9, 2))
    return Block.of(
        sp.csr_matrix(X) if sparse else X, np.where(np.arange(9) % 3, -1, 1), weight=np.ones(9) if weighted else None,
        group=np.arange(9) // 2 - 3 if grouped else None, grade=np.arange(9.0) if graded else None,
    )  # fmt: skip


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("grouped", "graded"), [(True, True), (True, False), (False, True), (False, False)])
def test_they_come_back(tmp_path, sparse, weighted, grouped, graded):
    written = block(sparse=sparse, weighted=weighted, grouped=grouped, graded=graded)
    write_shards([written], SCHEMA, str(tmp_path))
    found = read_shard(str(tmp_path), 0)
    for name in ("y", "row_id", "weight", "group", "grade"):
        one, other = getattr(written, name), getattr(found, name)
        assert (one is None) == (other is None)
        assert one is None or np.array_equal(one, other)
    content = json.loads(Path(read_manifest(str(tmp_path)).url).read_text())
    assert ("grouped" in content, "graded" in content) == (grouped, graded)


def test_blocks_of_a_data_set_agree():
    with pytest.raises(InputError, match="must agree"):
        write_shards([block(), block(grouped=False)], SCHEMA, "memory")


def test_a_grade_that_is_no_number_is_a_fault(tmp_path):
    wrong = block()
    wrong.grade[3] = np.nan
    write_shards([wrong], SCHEMA, str(tmp_path))
    assert "a grade is not finite" in str(verify_shard(str(tmp_path), 0))

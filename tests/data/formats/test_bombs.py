"""Files that are small on disk and would fill the memory."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from aucdist.data.formats import arrow_tables
from aucdist.data.shards.reading import open_reader, read
from aucdist.data.sources import Source
from aucdist.data.storage import guard
from aucdist.errors import InputError

ROWS = 10_000


@pytest.fixture
def small_limits(monkeypatch):
    monkeypatch.setattr(guard, "ALWAYS_ALLOWED", 2**12)
    monkeypatch.setattr(arrow_tables, "ALWAYS_ALLOWED", 2**12)
    monkeypatch.setattr(arrow_tables, "MOST_GROWTH", 20)


def a_table(path, values):
    label = ["yes", "no"] * (len(values) // 2)
    pq.write_table(pa.table({"a": values, "b": values, "label": label}), path, row_group_size=len(values) // 2)
    return Source(source=str(path), format="parquet", label="label", positive="yes")


@pytest.mark.usefixtures("small_limits")
def test_a_parquet_file_that_grows_beyond_measure_is_refused(tmp_path, monkeypatch):
    source = a_table(tmp_path / "bomb.parquet", np.zeros(ROWS))
    size = (tmp_path / "bomb.parquet").stat().st_size
    with pytest.raises(
        InputError, match=rf"bomb.parquet: the file has {size} bytes and claims {ROWS} rows of 3 columns"
    ):
        read(source)
    with pytest.raises(InputError, match="if you trust the file, name the columns that are needed under `keep`"):
        open_reader(source, n_parts=2)
    monkeypatch.setattr(arrow_tables, "MOST_GROWTH", 24 * ROWS // size + 1)
    assert read(source).block.n_samples == ROWS


def test_without_a_trap_the_limits_are_far_away(tmp_path):
    assert read(a_table(tmp_path / "zeros.parquet", np.zeros(200_000))).block.n_samples == 200_000

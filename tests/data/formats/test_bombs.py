"""Files that are small on disk and would fill the memory; and names in files that would lead out of their folder."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from aucdist.data.dataset import Schema
from aucdist.data.formats import arrow_tables
from aucdist.data.preprocess import Preprocessor
from aucdist.data.shards.reading import open_reader, read
from aucdist.data.sources import Source
from aucdist.data.storage import guard
from aucdist.errors import InputError
from aucdist.model import load_model, save_model

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


def write_about(folder, digest):
    schema = Schema(("a",), "", ("1",), ("0",), {})
    save_model(
        str(folder / "sound"), coef=np.ones(1), intercept=0.0, schema=schema,
        preprocessor=Preprocessor((), "none", None, None), about={},
    )  # fmt: skip
    about = json.loads((folder / "sound" / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps(about | {"files": {"weights.npy": digest}}))


def test_weights_that_say_to_be_endless_are_refused(tmp_path):
    import hashlib

    header = "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000,), }"
    weights = b"\x93NUMPY\x01\x00" + (len(header) + 1).to_bytes(2, "little") + header.encode() + b"\n" + bytes(80)
    (tmp_path / "weights.npy").write_bytes(weights)
    write_about(tmp_path, hashlib.sha256(weights).hexdigest())
    with pytest.raises(InputError, match=r"weights\.npy has float64 of shape \(1000000000000000,\)"):
        load_model(str(tmp_path))


def test_weights_that_are_pickled_are_not_read(tmp_path):
    import hashlib

    class Evil:
        def __reduce__(self):
            return (tmp_path.joinpath("ran").write_text, ("the code of a model has run",))

    np.save(tmp_path / "weights.npy", np.array([Evil()], dtype=object), allow_pickle=True)
    digest = hashlib.sha256((tmp_path / "weights.npy").read_bytes()).hexdigest()
    write_about(tmp_path, digest)
    with pytest.raises(InputError, match=r"weights\.npy has object of shape \(1,\); float64"):
        load_model(str(tmp_path))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("version", [1, 4])
def test_a_model_names_files_of_its_folder_only(tmp_path, version):
    (tmp_path / "secret.npy").write_bytes(b"secret")
    digest = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"
    named = {1: {"weights": "../secret.npy", "weights_sha256": digest}, 4: {"files": {"../secret.npy": digest}}}
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.json").write_text(json.dumps({"format": version, **named[version]}))
    (folder / "weights.npy").write_bytes(b"other")
    refused = {1: "Extra inputs are not permitted|Field required", 4: "is not the name of a file in its folder"}[
        version
    ]
    with pytest.raises(InputError, match=refused):
        load_model(str(folder))

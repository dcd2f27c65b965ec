"""Fuzzed readers: real files with some bytes changed are read, or refused with one of our errors, in bounded memory.

``HYPOTHESIS_PROFILE=explore`` tries more, and other, examples.
"""

import functools
import hashlib
import io
import json
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from support.linear_models import save_model
from support.parts import in_parts
from support.sharded import commit_manifest

from aucdist.data.block import Block
from aucdist.data.dataset import Schema
from aucdist.data.preprocess import Preprocessor
from aucdist.data.shards.manifest import read_manifest, read_schema, read_shard, verify_shard, write_shards
from aucdist.data.shards.reading import read
from aucdist.data.sources import Source
from aucdist.data.storage import guard
from aucdist.errors import InputError
from aucdist.model import load_model
from aucdist.probability.links import Link, LinkMap

MAX_MEMORY = 2**28
# Each example reads files twice or more, with memory traced: a third of the usual number, of each of thirteen readers.
FUZZED = functools.partial(settings, max_examples=settings().max_examples // 3, suppress_health_check=list(HealthCheck))

SVMLIGHT = (
    b"\xef\xbb\xbf# first\n+1 1:1 3:2.5e-3\n\n-1 2:-.5 7:12345678901234567890.5 # end\r\n+1 qid:3 4:7\n-1 5:1e300\n"
)
CSV = b'a,kind,"b ""x""",y\n1,tcp,0.1,no\n-2.5e3, udp ,"7",yes\r\n\n3,"i,cmp",9007199254740992,no\n4,tcp,nan,yes\n'
KEEL = (
    b"@relation r\n@attribute a real [0, 9]\n@attribute k {p, q}\n@attribute n integer\n@attribute y {0, 1}\n"
    b"@inputs a, k, n\n@outputs y\n@data\n1.5, p, 3, 0\n2, q, -4, 1\n3, p, 5, 0\n"
)

SPELT = (
    "written by a till\nname;price;share;when;y\nCafé;1.234,50 €;12,5%;2025-01-31;ja\n'a;b';-,5;n/d;2024-02-29 12:30;nein\n"
    "Zoë;$ 1.234.567;-999;;ja\n?;NULL;#N/A;nan;nein\n"
)
SPELLING = {
    "format": "csv", "label": "y", "separator": ";", "skip_lines": 1, "quote": "single", "decimal": ",", "thousands": ".",
    "symbols": ["$", "€", "%"], "missing": "keep", "missing_values": ["n/d", "-999"], "hashed": {"name": 4},
    "dates": {"when": ["year", "hour"]}, "categorical": [],
}  # fmt: skip


def parquet_file() -> bytes:
    n = np.arange(12)
    columns = {
        "a": n / 8, "f": (n / 3).astype(np.float32), "i": n * 2**40, "k": np.array(["p", "q", "r"])[n % 3],
        "d": pa.array(["u", "v"] * 6).dictionary_encode(), "b": n % 2 == 0, "y": n % 4 == 0,
    }  # fmt: skip
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out, row_group_size=5)
    return out.getvalue()


# What an attacker would write into the middle of a file, beside changed bytes.
WORDS = [
    b"", b"\x00", b"\xff", b"\n", b"\r", b'"', b",", b":", b" ", b"{", b"}", b"[", b"]", b"null", b"NaN", b"nan", b"-", b"1e999",
    b"99999999999999999999", b"2147483647", b"4294967296", b"-1", b"0", b"true", b"@data", b"@attribute", b"#", b"qid:1",
    b"\xc3\x28", b"[" * 300, b"9" * 400, b"../../etc/passwd", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\xd8\x00", b"\x81",
    b"NULL", b"#N/A", b"n/d", b"-999", b"1.234,5", b"1,2,3", b"1.2.3", b"$", b"%%", b"\xe2\x82\xac", b"\xa0", b"'", b"--1",
    b"0x1p3", b"1_000", "\u0663".encode(), b"9999-99-99", b"2025-02-30",
]  # fmt: skip
EDIT = st.tuples(
    st.floats(0.0, 1.0), st.sampled_from(["write", "insert", "delete", "repeat", "truncate"]), st.sampled_from(WORDS),
    st.integers(0, 255), st.integers(1, 40),
)  # fmt: skip


def mutated(data: bytes, edits: list[tuple[float, str, bytes, int, int]]) -> bytes:
    for at, kind, word, byte, length in edits:
        i = int(at * len(data))
        if kind == "write":
            data = data[:i] + bytes([byte]) + data[i + 1 :]
        elif kind == "insert":
            data = data[:i] + word + data[i:]
        elif kind == "delete":
            data = data[:i] + data[i + length :]
        elif kind == "repeat":
            data = data[: i + length] + data[i:]
        else:
            data = data[: i if i % 4 == 0 else len(data)]  # rarely: what is behind an edit says more
    return data


EDITS = st.lists(EDIT, min_size=1, max_size=4)


def assert_refused_or_done(function, *args):
    """Call a function that may raise nothing but our errors, of bounded length, and take no more than bounded memory."""
    pa.default_memory_pool().release_unused()
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    message = None
    try:
        function(*args)
    except InputError as e:
        message = str(e)
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert message is None or 0 < len(message) < 3000
    assert peak < MAX_MEMORY
    assert pa.total_allocated_bytes() - before < MAX_MEMORY


@pytest.fixture(autouse=True)
def little_memory(monkeypatch):
    """A machine on which a file cannot ask for much."""
    monkeypatch.setattr(guard, "total_memory", lambda: MAX_MEMORY // 4)


READERS = {
    "svmlight": (SVMLIGHT, {"format": "svmlight", "qid": "ignore"}),
    "svmlight topics": (b"a,b 1:1\nc 2:3\n 1:7\n", {"format": "svmlight", "labels": "topics", "positive": "a"}),
    "csv": (CSV, {"format": "csv", "label": "y", "categorical": "auto", "missing": "keep"}),
    "csv hashed": (CSV, {"format": "csv", "label": -1, "hashed": {"kind": 5}, "missing": "keep"}),
    **{
        f"csv in {name}": (SPELT.encode(codec), SPELLING | {"encoding": name})
        for name, codec in {"utf-8": "utf-8-sig", "utf-16": "utf-16", "cp1252": "cp1252"}.items()
    },
    "csv of apostrophes": (
        b"a,y\n1'234.5,0\n12'345'678,1\nN/A,0\n",
        {"format": "csv", "label": "y", "thousands": "'", "missing": "keep"},
    ),
    "csv of blanks": (b"1 2 0\n3 4 1\n", {"format": "csv", "label": 2, "header": False, "separator": "space"}),
    "keel": (KEEL, {"format": "keel"}),
    "parquet": (parquet_file(), {"format": "parquet", "label": "y", "categorical": ["k", "d"], "missing": "keep"}),
    "parquet auto": (parquet_file(), {"format": "parquet", "label": "k", "categorical": "auto"}),
}


@pytest.mark.parametrize("name", READERS)
def test_the_rows_are_read_as_they_are(tmp_path, name):
    """Otherwise the fuzzer would change files that are refused for another reason."""
    data, options = READERS[name]
    (tmp_path / "rows").write_bytes(data)
    assert len(read(Source(source=str(tmp_path / "rows"), **options)).block.y) >= 2


@pytest.mark.parametrize("name", READERS)
@FUZZED()
@given(edits=EDITS, n_parts=st.integers(1, 4))
def test_rows(tmp_path_factory, name, edits, n_parts):
    data, options = READERS[name]
    path = tmp_path_factory.getbasetemp() / f"fuzz-{name.replace(' ', '-')}"
    path.write_bytes(mutated(data, edits))
    source = Source(source=str(path), **options)

    def read_both():
        read(source)
        in_parts(source, n_parts)

    assert_refused_or_done(read_both)


@pytest.fixture(scope="module")
def model_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    save_model(
        str(folder), coef=np.array([1.0, -2.0, 0.5]), intercept=0.5,
        schema=Schema(("a", "k=p", "k=q"), "y", ("1",), ("0",), {"k": ("p", "q")}), about={"estimator": "E", "n": [1, 2.5]},
        preprocessor=Preprocessor((0,), "standard", np.zeros(3), np.ones(3), "median", np.zeros(3), 2.0**-10),
        probability=LinkMap(1.0, Link("gev", -0.1), 2.0, 0.5),
    )  # fmt: skip
    return folder, {name: (folder / name).read_bytes() for name in ("model.json", "weights.npy")}


def loaded(folder):
    model = load_model(str(folder))
    model.decision_function(np.ones((2, len(model.coef))))


@FUZZED()
@given(edits=EDITS)
def test_the_json_of_a_model(model_files, edits):
    folder, files = model_files
    (folder / "weights.npy").write_bytes(files["weights.npy"])
    (folder / "model.json").write_bytes(mutated(files["model.json"], edits))
    assert_refused_or_done(loaded, folder)


@FUZZED()
@given(edits=EDITS)
def test_the_weights_of_a_model(model_files, edits):
    """Their checksum is right: the attacker wrote it."""
    folder, files = model_files
    weights = mutated(files["weights.npy"], edits)
    content = json.loads(files["model.json"]) | {"files": {"weights.npy": hashlib.sha256(weights).hexdigest()}}
    (folder / "weights.npy").write_bytes(weights)
    (folder / "model.json").write_text(json.dumps(content))
    assert_refused_or_done(loaded, folder)


@pytest.fixture(scope="module")
def shard_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = np.where(np.arange(60) % 3, -1, 1)
    blocks = [Block.of(X[i::2], y[i::2], row_id=np.arange(i, 60, 2), weight=np.ones(30), index=i) for i in (0, 1)]
    write_shards(blocks, Schema(("a", "b", "c"), "y", ("1",), ("0",), {}), str(folder))
    manifest = read_manifest(str(folder))
    return folder, Path(manifest.url).read_bytes(), folder / manifest.shards[1].file


def read_all(folder):
    manifest = read_manifest(str(folder))
    read_schema(manifest)
    for i in range(len(manifest.shards)):
        verify_shard(manifest.url, i)
        read_shard(manifest.url, i)


@FUZZED()
@given(edits=EDITS)
def test_a_manifest(shard_files, edits):
    folder, manifest, _ = shard_files
    path = commit_manifest(folder, mutated(manifest, edits))
    assert_refused_or_done(read_all, folder)
    path.unlink()


@FUZZED()
@given(edits=EDITS)
def test_a_shard(shard_files, edits):
    """Its checksums in the manifest are right, as in the first test of weights."""
    import zlib

    folder, manifest, shard = shard_files
    sound = shard.read_bytes()
    data = mutated(sound, edits)
    content = json.loads(manifest)
    content["shards"][1] |= {
        "size": len(data), "crc32": zlib.crc32(data), "sha256": hashlib.sha256(data).hexdigest(),
    }  # fmt: skip
    path = commit_manifest(folder, content)
    shard.write_bytes(data)
    try:
        assert_refused_or_done(read_all, folder)
    finally:
        shard.write_bytes(sound)
        path.unlink()

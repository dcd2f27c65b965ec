"""Sharding and opening on S3: the same bytes as on a disk, in ranges, and nothing replaced that is being read."""

import uuid

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.s3_servers import SERVERS, bucket_on
from support.sharded import shard_data

from aucdist.data.shards.manifest import read_manifest, read_schema, read_shard, verify_shard
from aucdist.data.shards.reading import open_rows
from aucdist.data.shards.sharding import request
from aucdist.data.sources import Source
from aucdist.data.storage import s3
from aucdist.errors import InputError

BUCKET = f"shards-{uuid.uuid4().hex[:12]}"
N = np.arange(60)
TABLE = {"x": N / 8, "k": np.array(["p", "q", "r"])[N % 3], "unused": N, "y": N % 5 == 0}


@pytest.fixture(scope="module", params=SERVERS)
def bucket(request):
    with bucket_on(request.param, BUCKET) as client:
        yield client


@pytest.fixture
def table(bucket, tmp_path):
    """The same table on S3 and on the disk, as sources."""
    path = tmp_path / "table.parquet"
    pq.write_table(pa.table(TABLE), path, row_group_size=10)
    key = f"{uuid.uuid4().hex}/table.parquet"
    bucket.put_object(Bucket=BUCKET, Key=key, Body=path.read_bytes())
    options = {"format": "parquet", "label": "y", "categorical": ["k"], "keep": ["k", "x"]}
    return Source(source=f"s3://{BUCKET}/{key}", **options), Source(source=str(path), **options)


def objects(bucket, prefix):
    listed = bucket.list_objects_v2(Bucket=BUCKET, Prefix=prefix).get("Contents", [])
    return {
        item["Key"].removeprefix(prefix): bucket.get_object(Bucket=BUCKET, Key=item["Key"])["Body"].read()
        for item in listed
    }


def test_shards_on_s3_have_the_bytes_of_those_on_a_disk(bucket, table, tmp_path):
    there, here = table
    manifest = shard_data(request(there, f"s3://{BUCKET}/set", rows_per_shard=16, seed=2), n_parts=4)
    local = shard_data(request(here, str(tmp_path / "set"), rows_per_shard=16, seed=2))
    assert manifest.shards == local.shards
    stored = objects(bucket, "set/")
    for shard in local.shards:
        assert stored[shard.file] == (tmp_path / "set" / shard.file).read_bytes()
    assert sorted(stored) == sorted(
        ["CURRENT", manifest.url.rpartition("/")[2], manifest.features.file, *(s.file for s in manifest.shards)]
    )
    assert manifest.origin["sources"][0]["etag"] == bucket.head_object(
        Bucket=BUCKET, Key=str(there.source).removeprefix(f"s3://{BUCKET}/")
    )["ETag"].strip('"')
    assert read_schema(manifest) == read_schema(local)
    assert [verify_shard(f"s3://{BUCKET}/set", i) for i in range(len(local.shards))] == [None] * len(local.shards)
    assert open_rows(Source(source=f"s3://{BUCKET}/set", format="shards")).n_samples == 60


def test_a_generation_outlives_its_successor(bucket, table):
    there, _ = table
    first = shard_data(request(there, f"s3://{BUCKET}/twice", rows_per_shard=30))
    second = shard_data(request(there, f"s3://{BUCKET}/twice", rows_per_shard=10))
    assert read_manifest(f"s3://{BUCKET}/twice") == second
    assert sum(read_shard(first.url, i).n_samples for i in range(2)) == 60
    before = objects(bucket, "twice/")
    assert shard_data(request(there, f"s3://{BUCKET}/twice", rows_per_shard=10)) == second
    assert objects(bucket, "twice/") == before


def test_row_groups_are_read_in_ranges(bucket, monkeypatch):
    wide = pa.table(
        {f"c{i}": np.random.default_rng(i).normal(size=20_000) for i in range(8)} | {"y": np.arange(20_000) % 2}
    )
    sink = pa.BufferOutputStream()
    pq.write_table(wide, sink, row_group_size=5000, compression="none", use_dictionary=False)
    data = sink.getvalue().to_pybytes()
    bucket.put_object(Bucket=BUCKET, Key="wide.parquet", Body=data)
    source = Source(source=f"s3://{BUCKET}/wide.parquet", format="parquet", label="y", keep=["c3"])
    read, s3_read = [], s3.read_object
    monkeypatch.setattr(s3, "read_object", lambda fs, path, *args: read.append(s3_read(fs, path, *args)) or read[-1])
    opening = open_rows(source, n_parts=4)
    assert opening.n_blocks == 4
    read.clear()
    assert np.array_equal(opening.read(2).X[:, 0], wide["c3"].to_numpy()[10_000:15_000])
    value = sum(len(part) for part, _ in read)
    assert value < len(data) / 8  # one of eight columns in one of four row groups, and the footer


def test_a_file_that_changes_while_it_is_read_is_refused(bucket, table):
    there, _ = table
    opening = open_rows(there, n_parts=4)
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(TABLE), sink, row_group_size=5)
    bucket.put_object(
        Bucket=BUCKET, Key=str(there.source).removeprefix(f"s3://{BUCKET}/"), Body=sink.getvalue().to_pybytes()
    )
    with pytest.raises(InputError, match="changed"):
        opening.read(1)

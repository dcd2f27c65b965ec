"""Plans for workers have no passwords, and workers read by them all the same."""

import json
import pickle

import numpy as np
import pytest
from support.web_server import ROWS, web_server

from aucdist import batch_scoring as scoring
from aucdist.data.dataset import Schema
from aucdist.data.preprocess import Preprocessor
from aucdist.data.shards import sharding
from aucdist.data.shards.block_reader import open_reader
from aucdist.data.shards.shard import read_shard
from aucdist.data.sources.redaction import redacted, restored, secret_urls
from aucdist.data.sources.source import Source
from aucdist.model import save_model

PASSWORD = "sesame-in-a-url"
N = ROWS.count("\n")


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.setenv("AUCDIST_CACHE", str(tmp_path / "cache"))
    with web_server(PASSWORD) as address:
        yield Source(source=f"http://user:{PASSWORD}@{address}/web/rows.svm?signature={PASSWORD}", format="svmlight")


def left_behind(folder):
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_what_is_redacted_comes_back():
    plain = Source(source=["s3://bucket/a", "https://host/b"], format="svmlight")
    assert secret_urls(plain, "", "/a/path?x") == ()
    one = Source(source=["https://u:p@host/a", "https://host/a?x", "https://u:p@host/a"], format="svmlight")
    urls = secret_urls(one, "https://host/a?y")
    assert urls == ("https://u:p@host/a", "https://host/a?x", "https://host/a?y")
    content = {"a": [*urls, "https://host/a", 1, None], "b": {"c": urls[1]}}
    hidden = redacted(content, urls)
    assert not [url for url in urls if url in json.dumps(hidden)]
    assert restored(json.loads(json.dumps(hidden)), urls) == content
    assert redacted(content, ()) is content


def test_a_job_that_was_ended_keeps_no_password(source, tmp_path):
    asked = sharding.request(source, str(tmp_path / "shards"))
    job = sharding.survey(asked)
    assert PASSWORD.encode() not in left_behind(tmp_path / "shards")
    again = sharding.survey(asked)  # as a run does that goes on
    assert again == job
    starts = [sharding.route(again.url, 0, urls=again.urls)]
    manifest = sharding.finish(again, [sharding.gather(again.url, item) for item in sharding.items_of(again, starts)])
    assert read_shard(manifest.url, 0).n_samples == N
    assert PASSWORD.encode() not in left_behind(tmp_path / "shards")


def test_scores_that_were_ended_keep_no_password(source, tmp_path):
    save_model(
        str(tmp_path / "model"), coef=np.ones(2), intercept=0.0, schema=Schema(("1", "2"), "", ("+1",), ("-1",), {}),
        preprocessor=Preprocessor((), "none", None, None), about={},
    )  # fmt: skip
    args = str(tmp_path / "model"), source, str(tmp_path / "scores")
    begun = scoring.begin(*args)
    assert scoring.begin(*args) == begun
    parts = [scoring.score_part(begun.url, begun.key, 0, urls=begun.urls)]
    assert scoring.finish(begun, parts)["rows"] == N
    assert PASSWORD.encode() not in left_behind(tmp_path / "scores")


def test_an_opening_that_travels(source, tmp_path):
    saved = open_reader(source).saved(str(tmp_path / "scratch"))
    assert PASSWORD.encode() not in left_behind(tmp_path / "scratch")
    travelled = pickle.loads(pickle.dumps(saved))
    assert travelled.reader is None
    assert travelled(0).n_samples == N

"""The secrets of URLs: parsed once where a URL enters, in nothing that is printed or written, and known where it is opened."""

import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
from support.linear_models import save_model
from support.tables import table_beside
from support.web_server import ROWS, web_server

from aucdist.data.dataset import Schema
from aucdist.data.preprocess import Preprocessor
from aucdist.data.shards import sharding
from aucdist.data.shards.manifest import read_shard
from aucdist.data.shards.reading import open_rows
from aucdist.data.sources import Source
from aucdist.data.storage.urls import Url, enter, hide, hide_error, reveal, secret_urls, shown, visible_text
from aucdist.errors import InputError
from aucdist.model import batch_scoring as scoring

PASSWORD = "sesame-in-a-url"
N = ROWS.count("\n")


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.setenv("AUCDIST_CACHE", str(tmp_path / "cache"))
    with web_server(PASSWORD) as address:
        yield Source(source=f"http://user:{PASSWORD}@{address}/web/rows.svm?signature={PASSWORD}", format="svmlight")


def left_behind(folder):
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


SECRET = table_beside(__file__)
PLAIN = [
    "s3://bucket/models/churn@3", "s3://bucket/part-?.csv", "https://host/a%40b/c", "file:///a?b@c", "sqlite:////data/a@b.db",
    "tcp://[::1]:80", "tcp://host:port", "http://[::1]:8080/x", "/a/path?x=1", "models/churn@3", "duckdb:///x.db", "me@corp",
]  # fmt: skip


@pytest.mark.parametrize("url", SECRET)
def test_a_url_with_secrets_cannot_be_printed(url):
    entered = enter(url)
    assert isinstance(entered, Url)
    assert entered == enter(entered) == enter(str(entered))
    for text in (str(entered), repr(entered), f"{entered}", f"{[entered]}", json.dumps({"a": entered}), entered + "/b"):
        assert "canary" not in text
    assert "canary" not in Source(source=url, format="sql", query="select 1", label="y").model_dump_json()
    assert reveal(entered) == reveal(str(entered)) == url
    assert shown(entered) == shown(url) == SECRET[url]
    assert "canary" not in hide(f"could not open {url}: no")
    assert "canary" not in hide_error(ValueError(f"could not open {url}: no"), entered)


@pytest.mark.parametrize("url", PLAIN)
def test_a_url_without_secrets_stays_as_it_is(url):
    assert enter(url) == reveal(url) == shown(url) == url
    assert not isinstance(enter(url), Url)


def test_a_path_that_was_meant_as_a_url_shows_no_password():
    assert shown("/here/https:/user:canary/canary@host/rows.csv") == "/here/***@host/rows.csv"
    assert shown("/here/a:b.csv") == "/here/a:b.csv"


def test_urls_that_look_alike_stay_apart():
    urls = [f"https://host/api?id={i}" for i in range(3)]
    assert len({enter(url) for url in urls}) == 3
    assert [reveal(enter(url)) for url in urls] == urls


def test_files_below_a_url_have_its_secrets():
    assert reveal(f"{enter('ftp://u:canary@host/folder/?x=1')}a/b") == "ftp://u:canary@host/folder/a/b?x=1"
    with pytest.raises(InputError, match="the password or query of https://elsewhere/unknown was not kept"):
        reveal("https://secret-1@elsewhere/unknown")


def test_short_secrets_leave_no_error_behind():
    assert hide_error(ValueError("bad password: xy"), enter("postgresql://u:xy@host/db")) == "ValueError"


def test_texts_that_mention_urls():
    value = visible_text("see https://u:canary@host/y, or https://host/x?a=canary")
    assert value == "see https://host/y, or https://host/x"
    source = Source(source="a.svm", format="svmlight", note="from http://u:canary@host/x", origin="http://host/?id=5")
    assert (source.note, source.origin) == ("from http://host/x", "http://host/")


def test_what_travels_to_a_worker():
    urls = ("https://u:p@host/a", "https://host/a?x", "https://u:p@host/a", "/a/path?x", "")
    assert list(map(reveal, secret_urls(*urls))) == ["https://u:p@host/a", "https://host/a?x"]
    assert pickle.loads(pickle.dumps(enter(urls[0]))) == enter(urls[0])
    code = (
        "import pickle, sys; from aucdist.data.storage.urls import reveal; print(reveal(pickle.load(sys.stdin.buffer)))"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(enter(urls[0])), capture_output=True, check=True
    )
    assert told.stdout.decode().strip() == urls[0]


def test_a_job_that_was_ended_keeps_no_password(source, tmp_path):
    asked = sharding.request(source, str(tmp_path / "shards"))
    job = sharding.survey(asked)
    assert PASSWORD.encode() not in left_behind(tmp_path / "shards")
    again = sharding.survey(asked)  # as a run does that goes on
    assert again == job
    starts = [sharding.route(again.url, 0, urls=again.reader.secret_urls)]
    manifest = sharding.finish(again, sharding.gather_all(again, starts, map))
    assert read_shard(manifest.url, 0).n_samples == N
    assert PASSWORD.encode() not in left_behind(tmp_path / "shards")


def test_scores_that_were_ended_keep_no_password(source, tmp_path):
    save_model(
        str(tmp_path / "model"), coef=np.ones(2), intercept=0.0, schema=Schema(("1", "2"), "", ("+1",), ("-1",), {}),
        preprocessor=Preprocessor((), "none", None, None), about={},
    )  # fmt: skip
    args = str(tmp_path / "model"), source, str(tmp_path / "scores")
    begun = scoring.plan_scoring(*args)
    assert scoring.plan_scoring(*args) == begun
    parts = [scoring.score_part(begun.url, begun.key, 0, urls=begun.secret_urls)]
    assert scoring.write_summary(begun, parts)["rows"] == N
    assert PASSWORD.encode() not in left_behind(tmp_path / "scores")


def test_an_opening_that_travels(source, tmp_path):
    saved = open_rows(source).saved(str(tmp_path / "scratch"))
    assert PASSWORD.encode() not in left_behind(tmp_path / "scratch")
    travelled = pickle.loads(pickle.dumps(saved))
    assert travelled(0).n_samples == N


def test_a_secret_with_signs_that_should_be_escaped_is_hidden_as_a_whole() -> None:
    enter("duckdb:///file:x.db?password=S3(#Z![cr3T&uri=true")
    assert hide("at S3(#Z![cr3T") == "at ***"

"""The model store, on a folder and on S3: one writer wins, readers see whole versions, only old versions are removed."""

import time
import uuid

import boto3
import numpy as np
import pytest
from support.forked_workers import start_program
from support.linear_models import save_model
from support.s3_servers import MOCK, mock_server, new_bucket, new_connections, point_to

from aucdist import store
from aucdist.data.dataset import Schema
from aucdist.data.preprocess import Preprocessor
from aucdist.data.storage import files
from aucdist.errors import InputError
from aucdist.model.files import MODEL_FILE, WEIGHTS, load_model


@pytest.fixture(params=["folder", "s3"])
def url(request, tmp_path, monkeypatch):
    if request.param == "folder":
        yield str(tmp_path / "models" / "churn")
        return
    bucket = f"models-{uuid.uuid4().hex[:12]}"
    with mock_server() as endpoint, new_connections():
        point_to(monkeypatch, endpoint, *MOCK)
        with new_bucket(boto3.session.Session().client("s3"), bucket) as client:
            yield f"s3://{bucket}/models/churn"
            client.close()


def model(folder, value):
    """Return the files of a model with one weight."""
    place = str(folder / f"model-{value}")
    schema = Schema(("age",), "clicked", ("yes",), ("no",), {})
    preprocessor = Preprocessor((), "none", None, None)
    save_model(place, coef=np.array([float(value)]), intercept=0.0, schema=schema, preprocessor=preprocessor, about={})
    return {name: files.read_bytes(f"{place}/{name}") for name in (MODEL_FILE, WEIGHTS)}


def add(url, content):
    return store.promote(store.read_store(url), content, {})


def test_promote_and_roll_back(url, tmp_path):
    for value in (1, 2, 3):
        change = add(url, model(tmp_path, value))
        assert (change.version, change.replaced) == (value, value - 1 or None)
        assert load_model(url).coef.tolist() == [value]
    assert [load_model(f"{url}@{n}").coef[0] for n in (1, 2, 3)] == [1, 2, 3]
    with pytest.raises(InputError, match="has no version 0"):
        store.rollback(store.read_store(url), 0)
    assert store.rollback(store.read_store(url)).version == 2
    assert load_model(url).coef.tolist() == [2]
    assert store.rollback(store.read_store(url)).version == 1
    with pytest.raises(InputError, match="there is no version before 1 to go back to"):
        store.rollback(store.read_store(url))
    assert store.rollback(store.read_store(url), 3).version == 3
    with pytest.raises(InputError, match="current one already"):
        store.rollback(store.read_store(url), 3)
    assert add(url, model(tmp_path, 4)).version == 4
    assert len(store.read_store(url).changes) == 7
    with pytest.raises(InputError, match="has no version 9: it has 1 to 4"):
        load_model(f"{url}@9")


def test_one_of_two_promotions_wins(url, tmp_path):
    add(url, model(tmp_path, 1))
    read = store.read_store(url)
    store.promote(read, model(tmp_path, 2), {})
    with pytest.raises(
        InputError, match="changed by another process at the same moment, and this promote was not made"
    ):
        store.promote(read, model(tmp_path, 3), {})
    stale = store.read_store(url)
    store.rollback(stale, 1)
    add(url, model(tmp_path, 4))
    with pytest.raises(InputError, match="this promote was not made"):
        store.promote(stale, model(tmp_path, 5), {})
    assert load_model(url).coef.tolist() == [4]
    assert len([name for name in files.names_in(url) if name.startswith("version-")]) == 3


def test_the_same_model_promoted_twice_stays_whole(url, tmp_path):
    read = store.read_store(url)
    store.promote(read, model(tmp_path, 1), {"run": "a"})
    with pytest.raises(InputError, match="another process"):
        store.promote(read, model(tmp_path, 1), {"run": "b"})
    assert load_model(url).coef.tolist() == [1]


def test_old_versions_are_removed_and_only_those(url, tmp_path):
    for value in (1, 2, 3, 4):
        add(url, model(tmp_path, value))
    files.write_bytes(f"{url}/version-00001-mine/notes.txt", b"not a version")
    store.rollback(store.read_store(url), 3)
    assert store.remove_old_versions(store.read_store(url), 3) == [1]
    assert store.remove_old_versions(store.read_store(url), 1) == [2]
    assert store.stored_version_numbers(store.read_store(url)) == [3, 4]
    assert load_model(url).coef.tolist() == [3]
    assert files.exists(f"{url}/version-00001-mine/notes.txt")
    with pytest.raises(InputError, match=r"version 1 of .* was removed"):
        load_model(f"{url}@1")
    with pytest.raises(InputError, match=r"version 2 .* was removed"):
        store.rollback(store.read_store(url))


def test_a_damaged_history_is_refused(url, tmp_path):
    for value in (1, 2):
        add(url, model(tmp_path, value))
    files.write_bytes(f"{url}/{store.HISTORY}/00000002.json", b'{"kind": "promote"}')
    with pytest.raises(InputError, match="damaged"):
        load_model(url)
    files.remove(f"{url}/{store.HISTORY}/00000001.json")
    with pytest.raises(InputError, match="a change is missing before 00000002"):
        store.read_store(url)


def test_a_folder_that_is_no_store(tmp_path):
    with pytest.raises(InputError, match="no model can be read"):
        load_model(str(tmp_path / "nothing@3"))
    assert store.split_store_url("s3://b/m@12/") == ("s3://b/m", 12)
    assert store.split_store_url("user@example") == ("user@example", None)


PROMOTER = """
import sys
from pathlib import Path
from aucdist.data.storage import files
from aucdist.model.files import MODEL_FILE, WEIGHTS
from aucdist import store
print("ready", flush=True)
for i in range(10_000):
    source = f"{sys.argv[2]}/model-{i % 2 + 1}"
    content = {name: files.read_bytes(f"{source}/{name}") for name in (MODEL_FILE, WEIGHTS)}
    store.promote(store.read_store(sys.argv[1]), content, {})
    store.remove_old_versions(store.read_store(sys.argv[1]), 2)
"""


def test_a_kill_leaves_one_whole_current_version(tmp_path):
    url, random = str(tmp_path / "store"), np.random.default_rng(0)
    for value in (1, 2):
        content = model(tmp_path, value)
    add(url, content)
    number = 0
    while (
        number < 3 or len(store.read_store(url).changes) <= 5
    ):  # a busy machine may make one change before it is killed
        output, number = tmp_path / f"printed{number}", number + 1
        process = start_program(PROMOTER, url, str(tmp_path), cwd=tmp_path, output=output)
        while process.is_alive() and not (output.exists() and output.read_bytes() == b"ready\n"):
            time.sleep(0.01)
        time.sleep(random.uniform(0.0, 0.15))
        assert process.is_alive()
        process.kill()
        process.join()
        assert load_model(url).coef[0] in (1, 2)

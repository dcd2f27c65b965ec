"""`aucdist promote`, `models` and `rollback`, and the store wherever a model is taken."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import s3fs
from support.command_line import run
from support.s3_servers import MOCK, mock_server, new_connections

from aucdist.model import load_model

PAGE = Path(__file__).resolve().parents[3] / "docs" / "pages" / "how-to" / "in-service.md"


def trained(folder: Path, lam: float, seed: int = 0) -> str:
    settings = ("cluster=none", f"model.lam={lam}", "model.tol=0.05", f"data.test={{fraction: 0.4, seed: {seed}}}")
    args = [part for setting in settings for part in ("--set", setting)]
    return str(json.loads(run("train", "digits", "--output", folder, "--json", *args)[0])["run"])


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A good run, a bad one, one as good as the first, and one with other test rows."""
    folder = tmp_path_factory.mktemp("runs")
    return [trained(folder, 1e-2), trained(folder, 300.0), trained(folder, 1.0001e-2), trained(folder, 1e-2, seed=1)]


def promoted(*args: object, code: int = 0) -> dict:
    return json.loads(run("promote", *args, "--json", code=code)[0])


def test_from_the_first_night_to_a_rollback(runs: list[str], tmp_path: Path) -> None:
    store = tmp_path / "store"
    good, bad, equal, _ = runs
    assert promoted(bad, store, "--if", "better")["version"] == 1  # nothing is in use yet
    better = promoted(good, store, "--if", "better")
    assert (better["promoted"], better["version"], better["replaced"]) == (True, 2, 1)
    assert better["decision"]["low"] > 0.0
    worse = promoted(bad, store, "--if", "not-worse", "--margin", 0.001)
    assert (worse["promoted"], worse["version"]) == (False, 2)
    assert not promoted(equal, store, "--if", "better")["promoted"]
    assert promoted(equal, store, "--if", "not-worse", "--margin", 0.01)["version"] == 3
    said = run("models", store)[0]
    assert "in use: version 3" in said
    assert said.count("promote") == 3
    assert "version 2 is in use again; it replaces version 3" in run("rollback", store)[0]
    found = json.loads(run("models", store, "--json")[0])
    assert (found["current"], found["present"], len(found["changes"])) == (2, [1, 2, 3], 4)
    np.testing.assert_array_equal(load_model(str(store)).coef, load_model(f"{good}/model").coef)
    np.testing.assert_array_equal(load_model(f"{store}@1").coef, load_model(f"{bad}/model").coef)


def test_the_store_is_a_model_for_other_commands(runs: list[str], tmp_path: Path) -> None:
    store = tmp_path / "store"
    for one in runs[:2]:
        promoted(one, store)
    run("score", f"{store}@1", "digits", tmp_path / "first")
    run("score", f"{runs[0]}/model", "digits", tmp_path / "same")
    run("score", store, "digits", tmp_path / "second")
    first, same, second = (pd.read_parquet(tmp_path / name)["score"] for name in ("first", "same", "second"))
    assert first.tolist() == same.tolist()
    assert first.tolist() != second.tolist()
    assert "row 0: score" in run("explain", f"{store}@1", "digits", "--rows", 1)[0]
    run("export", f"{store}@1", "--to", "json", "--output", tmp_path / "model.json")
    assert json.loads((tmp_path / "model.json").read_text())["format"] == "aucdist model"
    compared = run("compare", f"{store}@1", f"{store}@2", "--output", tmp_path / "compared", "--json")[0]
    assert len(json.loads(compared.splitlines()[-1])["runs"]) == 2


def test_keep_leaves_so_many(runs: list[str], tmp_path: Path) -> None:
    store = tmp_path / "store"
    for one in runs[:3]:
        promoted(one, store)
    assert promoted(runs[0], store, "--keep", 2)["removed"] == [1, 2]
    assert "version 1 of" in run("score", f"{store}@1", "digits", tmp_path / "scores", code=2)[1]


def test_a_bucket_is_a_store(runs: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with mock_server() as endpoint, new_connections():
        for name, value in (
            ("AWS_ENDPOINT_URL", endpoint),
            ("NO_PROXY", "127.0.0.1"),
            ("AWS_DEFAULT_REGION", "us-east-1"),
        ):
            monkeypatch.setenv(name, value)
        for name, value in zip(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), MOCK, strict=True):
            monkeypatch.setenv(name, value)
        s3fs.S3FileSystem().mkdir("bucket")
        for number, one in enumerate(runs[:2], 1):
            assert promoted(one, "s3://bucket/models/digits")["version"] == number
        assert "version 1 is in use again" in run("rollback", "s3://bucket/models/digits")[0]
        np.testing.assert_array_equal(load_model("s3://bucket/models/digits").coef, load_model(f"{runs[0]}/model").coef)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("{bad}", "{store}", "--if", "perhaps"), "unknown condition 'perhaps'"),
        (("{bad}", "{store}", "--if", "better", "--margin", "2"), "at least 0 and below 1"),
        (("{bad}", "{store}", "--margin", "0.1"), "a margin has no effect with --if always"),
        (("{bad}", "{store}", "--keep", "0"), "at least 1 version is kept"),
        (
            ("{other}", "{store}", "--if", "better"),
            "different test rows|other test rows|not the same test rows|test rows",
        ),
        (("{tmp}/nosuch", "{store}"), "no model can be read"),
    ],
)
def test_what_is_wrong_is_said(runs: list[str], tmp_path: Path, args: tuple[str, ...], message: str) -> None:
    store = tmp_path / "store"
    promoted(runs[0], store)
    names = {"bad": runs[1], "other": runs[3], "store": store, "tmp": tmp_path}
    said = run("promote", *(arg.format(**names) for arg in args), code=2)[1]
    assert re.search(message, said)
    assert json.loads(run("models", store, "--json")[0])["current"] == 1
    assert "is no model store" in run("models", tmp_path / "none", code=2)[1]
    assert "is no model store" in run("rollback", tmp_path / "none", code=2)[1]


def test_the_commands_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    for command in re.findall(r"^aucdist (.*)$", block, re.MULTILINE):
        words = [str(next(iter(tmp_path.glob(word)), word)) if "*" in word else word for word in shlex.split(command)]
        run(*words)
    assert json.loads(run("models", "models/digits", "--json")[0])["current"] in (1, 2)

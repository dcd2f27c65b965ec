"""`aucdist data list | show | verify`."""

import json
from pathlib import Path

import pytest
import yaml
from support.command_line import run

from aucdist.data.shards.manifest import read_manifest
from aucdist.data.sources import catalog


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    run("simulate", tmp_path / "set", "--rows", 60, "--features", 12, "--positive-share", 0.3, "--rows-per-shard", 20)
    return tmp_path / "set"


def test_list_tells_shapes_and_presence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUCDIST_DATA", str(tmp_path))
    (tmp_path / "libsvm").mkdir()
    (tmp_path / "libsvm" / "a9a.xz").write_bytes(b"")
    lines = {line.split()[0]: line.split()[1:] for line in run("data", "list")[0].splitlines()}
    assert lines.keys() == catalog().keys()
    assert lines["a9a"] == ["svmlight", "32561", "x", "123", "here"]
    assert lines["digits"][-1] == "here"
    assert lines["news20"] == ["svmlight", "15935", "x", "62061", "absent"]
    found = json.loads(run("data", "list", "--json")[0])
    assert found["a9a"] == {"format": "svmlight", "rows": 32561, "features": 123, "present": True}
    assert found["news20"]["present"] is False


def test_show_tells_what_the_manifest_says(shards: Path) -> None:
    found = yaml.safe_load(run("data", "show", shards)[0])["set"]
    assert (found["rows"], found["features"], found["shards"]) == (60, 12, 3)
    assert found["feature_names"] == [f"x{i}" for i in range(1, 11)] + ["and 2 more"]
    assert found["positives"] == read_manifest(str(shards)).n_pos
    assert found["origin"]["simulated"]["seed"] == 0
    assert json.loads(run("data", "show", shards, "--json")[0]) == {"set": found}
    pinned = read_manifest(str(shards)).url
    assert "rows: 60" in run("data", "show", pinned)[0]
    assert "present: true" in run("data", "show", "digits")[0]


def test_verify_names_every_fault(shards: Path) -> None:
    assert run("data", "verify", shards, "digits")[0] == f"{shards}: sound\ndigits: sound\n"
    first, second, _ = read_manifest(str(shards)).shards
    (shards / first.file).unlink()
    path = shards / second.file
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    stdout, stderr = run("data", "verify", shards, "digits", code=2)
    assert stdout == f"{shards}: 2 faults\ndigits: sound\n"
    assert f"cannot read {shards / first.file}: no such file" in stderr
    assert f"{path} is truncated or altered" in stderr
    found = json.loads(run("data", "verify", shards, "--json", code=2)[0])
    assert len(found[str(shards)]) == 2
    assert "unknown data set 'nosuch'" in run("data", "verify", "nosuch", code=2)[1]


def test_verify_compares_with_the_catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rows.csv").write_text("a,y\n1,0\n2,1\n")
    entry = {"source": str(tmp_path / "rows.csv"), "format": "csv", "label": "y", "rows": 3}
    (tmp_path / "rows.yaml").write_text(yaml.safe_dump(entry))
    stdout, stderr = run("data", "verify", tmp_path / "rows.yaml", code=2)
    assert stdout.endswith("rows.yaml: 1 faults\n")
    assert "3 rows are expected, but 2 were found" in stderr


def test_verify_takes_all_that_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    import flows.data_sets

    few = {name: catalog()[name] for name in ("iris", "wine", "absent-one") if name in catalog()}
    monkeypatch.setattr(flows.data_sets, "catalog", lambda: few)
    assert run("data", "verify")[0] == "iris: sound\nwine: sound\n"

"""`aucdist shard` and `aucdist simulate`: results on stdout, progress on stderr, and nothing lost when a run is killed."""

import json
import signal
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from support.command_line import contents, refused, result_of, run
from support.forked_workers import start_program

from aucdist.data.shards.manifest import read_shard
from aucdist.data.storage import guard

KEYS = [
    "target", "manifest", "n_samples", "n_features", "n_pos", "n_neg", "layout", "dtype", "shards", "bytes", "memory",
    "seconds",
]  # fmt: skip


def write_rows(path: Path, n: int) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, 5)).round(4), rng.random(n) < 0.1
    lines = [",".join(map(str, [*row, int(label)])) for row, label in zip(X.tolist(), y, strict=True)]
    path.write_text("\n".join(["a,b,c,d,e,clicked", *lines]) + "\n")


def test_a_file_is_sharded_and_the_result_is_one_object(tmp_path: Path) -> None:
    write_rows(tmp_path / "rows.csv", 100)
    rows, target = tmp_path / "rows.csv", tmp_path / "set"
    args = ("shard", rows, target, "--set", "label=clicked", "--rows-per-shard", 30, "--dtype", "float32")
    stdout, stderr = run(*args, "--json")
    result = json.loads(stdout)
    assert list(result) == KEYS
    assert (result["n_samples"], result["n_features"], result["shards"], result["dtype"]) == (100, 5, 4, "float32")
    assert result["target"] == str(tmp_path / "set")
    assert [line for line in stderr.splitlines() if not line.startswith(" ")] == [
        "look for finished shards", "look at the files", "assign rows to shards", "write shards", "write the manifest",
    ]  # fmt: skip
    before = contents(tmp_path / "set")
    stdout, stderr = run(*args)
    assert stdout.startswith(f"{tmp_path / 'set'}: 100 rows (")
    assert "look at the files" not in stderr
    assert contents(tmp_path / "set") == before


def test_what_is_sharded_can_be_named_in_many_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_rows(tmp_path / "rows.csv", 50)
    source = {"source": str(tmp_path / "rows.csv"), "format": "csv", "label": "clicked"}
    (tmp_path / "rows.yaml").write_text(yaml.safe_dump(source))
    monkeypatch.chdir(tmp_path)
    run("shard", "rows.csv", "one", "--set", "label=-1")
    run("shard", tmp_path / "rows.yaml", "two", "--seed", 1)
    run("shard", f"file://{tmp_path}/one", "three")
    run("shard", "iris", "four", "--set", "positive=setosa", "--cluster", "none")
    for name in ("one", "two", "three"):
        assert sorted(read_shard(str(tmp_path / name), 0).row_id) == list(range(50))
    assert read_shard("one", 0).row_id.tolist() != read_shard("two", 0).row_id.tolist()


def test_a_run_that_is_killed_twice_goes_on_to_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_rows(tmp_path / "rows.csv", 4000)
    args = ("shard", "rows.csv", "set", "--set", "label=clicked", "--rows-per-shard", "20")
    for after in ("part-*.arrow", "shard-*.parquet"):
        output = tmp_path / "printed"
        process = start_program("from flows.cli import main; main()", *args, cwd=tmp_path, output=output)
        deadline = time.monotonic() + 60
        while not list((tmp_path / "set").rglob(after)) and time.monotonic() < deadline:
            time.sleep(0.001)
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        assert not (tmp_path / "set" / "CURRENT").exists()
    assert 1 <= len(list((tmp_path / "set").glob("shard-*.parquet"))) < 200
    monkeypatch.chdir(tmp_path)
    assert result_of(*args)["shards"] == 200
    run("shard", tmp_path / "rows.csv", tmp_path / "whole", *args[3:])
    assert contents(tmp_path / "set") == contents(tmp_path / "whole")


def test_simulated_rows_that_do_not_fit_on_the_disk_are_refused_before_any_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard.shutil, "disk_usage", lambda folder: SimpleNamespace(total=20 * 2**20, free=2**21))
    args = ("simulate", tmp_path / "a" / "set", "--features", 2**8)
    said = refused(*args, "--rows", 2**10 + 1)  # a twentieth of the disk stays free
    assert (
        f"cannot write 1,025 rows: the disk of {tmp_path} would be full; make room, or name another folder or fewer"
        in said
    )
    assert not list(tmp_path.iterdir())
    assert result_of(*args, "--rows", 2**10)["n_samples"] == 2**10
    assert "the disk of" in refused(*args, "--rows", 2**10, "--dtype", "float64")


def test_simulated_rows_are_written_and_sound(tmp_path: Path) -> None:
    args = ("--rows", 100, "--features", 3, "--positive-share", 0.3, "--rows-per-shard", 40, "--seed", 7)
    result = result_of("simulate", tmp_path / "set", *args)
    assert list(result) == KEYS
    assert (result["n_samples"], result["shards"], result["dtype"]) == (100, 3, "float32")
    assert run("data", "verify", tmp_path / "set")[0] == f"{tmp_path / 'set'}: intact\n"
    stdout, _ = run("simulate", tmp_path / "again", *args)
    assert stdout.startswith(f"{tmp_path / 'again'}: 100 rows")
    assert contents(tmp_path / "set") == contents(tmp_path / "again")

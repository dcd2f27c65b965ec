"""A data set of the catalog that is not here: what is missing, where it belongs, where it comes from."""

import shutil
from pathlib import Path

import pytest
from support.command_line import run

from aucdist.data.sources import find
from flows.compute.stages import Stages
from flows.progress.console import LineObserver


@pytest.mark.parametrize(
    ("command", "names"),
    [
        (("train", "a9a"), ["a9a"]),
        (("train", "digits", "--set", "data.test={name: a9a}"), ["a9a"]),
        (("cv", "a9a"), ["a9a"]),
        (("reproduce", "000"), ["sonar-raw"]),
    ],
)
def test_commands_without_their_data(
    command: tuple[str, ...], names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUCDIST_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    stderr = run(*command, code=2)[1]
    assert (
        f"data sets of the catalog that are not here, with their files below AUCDIST_DATA (now {tmp_path / 'data'})"
        in stderr
    )
    for name in names:
        assert f"  {name}: {find(name).source}; from {find(name).origin}" in stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("compiled", [True, False])
def test_a_run_says_that_it_compiles_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiled: bool) -> None:
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))
    if compiled:
        (tmp_path / "kernels_1").mkdir()
        (tmp_path / "kernels_1" / "rows.nbi").write_bytes(b"")
    lines: list[str] = []
    Stages(LineObserver(lines.append))
    assert any("compiling kernels, once per machine" in line for line in lines) == (not compiled)
    shutil.rmtree(tmp_path)

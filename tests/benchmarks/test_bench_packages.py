"""Benches and papers name the extra of a package that is not installed, in one line and before any work."""

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.contestants import means
from support.small_paper import load_paper, only, run, write

import benchmarks.__main__ as benchmarks
from aucdist.data.shards.sharding import simulate
from aucdist.errors import InputError
from aucdist.extras import EXTRAS
from benchmarks.peers.referee import run_contest
from benchmarks.peers.suite import SYSTEMS
from benchmarks.peers.system import System
from flows.cli import app
from flows.reproduce.run import reproduce


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch):
    """Make the import of a package fail as if it were not installed."""
    return lambda package: monkeypatch.setitem(sys.modules, package, None)


@pytest.mark.parametrize(
    ("package", "arguments", "extra"),
    [
        ("statsmodels", ["link"], "bench"),
        ("jinja2", ["reproduce", "000", "--quick"], "cli"),
        ("imblearn", ["reproduce", "003", "--quick"], "bench"),
    ],
)
def test_one_line_names_the_extra(without, tmp_path, monkeypatch, package, arguments, extra):
    without(package)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app if arguments[0] == "reproduce" else benchmarks.app, arguments)
    assert done.exit_code == 2, done.output
    line = f"error: {package} is not installed: in the folder of the source code, run pip install '.[{extra}]'"
    assert [text for text in done.stderr.splitlines() if text.startswith("error")] == [line]
    assert list(tmp_path.iterdir()) == []


def test_a_paper_without_smote_does_not_need_it(without, tmp_path: Path) -> None:
    without("imblearn")
    assert load_paper("003").experiments["keel"].packages() == {"imblearn"}
    config = only("nine")
    config["experiments"]["nine"]["datasets"] = {"absent": {"name": "astro-physics"}}
    with pytest.raises(InputError, match="data sets of the catalog that are not here"):  # and not of the package
        run(write(tmp_path, config, "dataset,system,value\n"))


def test_the_observer_is_not_needed_before_the_packages_are_checked(without) -> None:
    without("jinja2")
    with pytest.raises(InputError, match=r"run pip install '\.\[cli\]'"):
        reproduce(load_paper("000", quick=True), None)  # type: ignore[arg-type]


def test_a_peer_that_is_not_installed_names_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # libauc is in no extra; a user of lightgbm may want its extra for features.
    packages = {s.package for s in SYSTEMS} - {"aucdist", "sklearn", "libauc", "lightgbm"}
    assert {EXTRAS[package] for package in packages} == {"bench", "peers"}
    monkeypatch.setitem(EXTRAS, "no_such_package", "bench")
    block = simulate(60, 2, 0.3, seed=0)
    systems = [System("absent", "no_such_package", means, (1,), 1)]
    trials = run_contest([(block, block)], systems, tmp_path, threads=1, repeats=1, limit=30.0)
    assert trials["absent"][0].note == "not installed: pip install '.[bench]'"

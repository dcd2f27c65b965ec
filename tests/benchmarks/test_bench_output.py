"""The files of ``--output``."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from benchmarks import suites
from benchmarks.__main__ import app


def tiny(slow_peers, *, threads=1):
    yield {"system": "a & <b>", "seconds": 0.0123456, "gap": 1e-9, "curve": "0.1:0.5 0.2:0.6"}
    yield {"system": "c", "seconds": 12.0, "note": "not installed"}


@pytest.fixture
def suite(monkeypatch):
    """Put a suite of two rows in place of all others."""
    own = suites.Suite("tiny", tiny)
    monkeypatch.setattr(suites, "load_suite", lambda name: own)


def bench(name):
    return CliRunner().invoke(app, ["tiny", "--slow-peers", "--output", str(name)])


def test_a_table_and_what_it_was_measured_with(suite, tmp_path):
    assert bench(tmp_path / "new" / "of.html.csv").exit_code == 0
    files = {file.name for file in (tmp_path / "new").iterdir()}
    assert files == {"of.html.csv", "of.html.json"}
    about = json.loads((tmp_path / "new" / "of.html.json").read_text(encoding="utf-8"))
    assert about["command"] == "python -m benchmarks tiny --slow-peers"
    assert "one thread" in about["conditions"]
    assert about["packages"]["numpy"] == np.__version__
    assert str(tmp_path) not in json.dumps(about)
    table = pd.read_csv(tmp_path / "new" / "of.html.csv")
    assert list(table["system"]) == ["a & <b>", "c"]
    assert table["curve"][0] == "0.1:0.5 0.2:0.6"


def test_another_ending_is_refused_before_work(suite, tmp_path):
    refused = bench(tmp_path / "tiny.txt")
    assert refused.exit_code == 2
    assert "does not end in .csv" in refused.stderr
    assert refused.stdout == ""
    assert list(tmp_path.iterdir()) == []

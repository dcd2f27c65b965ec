"""The files of ``--output``."""

import json
import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from aucdist.report import plots
from benchmarks import suites
from benchmarks.__main__ import app


def tiny(slow_peers, *, threads=1):
    yield {"system": "a & <b>", "seconds": 0.0123456, "gap": 1e-9, "curve": "0.1:0.5 0.2:0.6"}
    yield {"system": "c", "seconds": 12.0, "note": "not installed"}


def draw(results):
    return plots.standalone_svg("tiny", lambda axes: axes.set(xlabel=f"{len(results)} rows"))


@pytest.fixture(params=[True, False], ids=["drawn", "not drawn"])
def suite(request, monkeypatch):
    """Put a suite of two rows in place of all others, and return whether it has a figure."""
    own = suites.Suite("tiny", tiny, draw if request.param else None)
    monkeypatch.setattr(suites, "load_suite", lambda name: own)
    return request.param


def bench(name):
    return CliRunner().invoke(app, ["tiny", "--slow-peers", "--output", str(name)])


def test_a_table_and_its_figure(suite, tmp_path):
    assert bench(tmp_path / "new" / "of.html.csv").exit_code == 0
    files = {file.name for file in (tmp_path / "new").iterdir()}
    assert files == {"of.html.csv", "of.html.json"} | ({"of.html.svg"} if suite else set())
    about = json.loads((tmp_path / "new" / "of.html.json").read_text(encoding="utf-8"))
    assert about["command"] == "python -m benchmarks tiny --slow-peers"
    assert "one thread" in about["conditions"]
    assert about["packages"]["numpy"] == np.__version__
    assert str(tmp_path) not in json.dumps(about)
    found = pd.read_csv(tmp_path / "new" / "of.html.csv")
    assert list(found["system"]) == ["a & <b>", "c"]
    assert found["curve"][0] == "0.1:0.5 0.2:0.6"
    if suite:
        ET.parse(tmp_path / "new" / "of.html.svg")


def test_another_ending_is_refused_before_work(suite, tmp_path):
    refused = bench(tmp_path / "tiny.txt")
    assert refused.exit_code == 2
    assert "does not end in .csv" in refused.stderr
    assert refused.stdout == ""
    assert list(tmp_path.iterdir()) == []

"""The suite `scale`: counts, the model on runs that were made up, and every part once on a few rows. No time is asserted."""

import math
import os
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aucdist.engine.dask
from aucdist.data.shards.simulate import Simulation
from aucdist.engine.blocks import LocalBlocks
from aucdist.engine.dask import local_client
from aucdist.solvers.base import solve
from aucdist.solvers.pairs.all_pairs import all_pairs
from flows.bench import scale as suite
from flows.bench import suites
from flows.bench.scale_model import (
    REDUCTIONS_PER_PASS,
    Constants,
    Load,
    Place,
    Run,
    counted,
    expected,
    fitted,
    predicted,
    terms,
    total,
    weight,
)

KNOWN = Constants(value=5e-9, reduction=8e-3, worker=2e-3, byte=4e-9, wire=1.05, trips=4.0)
LOAD = Load(10**6, 20, 16, 6, reductions=23, arguments=3 * 10**7, summaries=9 * 10**7, client=0.1)


@pytest.mark.parametrize(
    "simulation",
    [
        Simulation(4000, 5, 0.02, rows_per_shard=1000),
        Simulation(60_000, 7, 0.001, rows_per_shard=20_000),
        Simulation(2000, 3, 0.4, rows_per_shard=500),
    ],
)
def test_what_is_expected_is_what_is_counted(simulation):
    # So few anchors that the line search takes all of them.
    blocks = LocalBlocks.load(simulation.block, simulation.n_shards)
    load = counted(blocks, suite.fit_passes)
    anchors = min(blocks.n_pos, blocks.n_neg)
    foretold = expected(simulation.rows, simulation.features, load.blocks, load.passes, anchors, anchors)
    assert load.passes == suite.PASSES
    assert load.reductions == 1 + 2 + REDUCTIONS_PER_PASS * (load.passes - 1)
    assert replace(load, client=0.0) == foretold


def test_counting_changes_no_bit():
    simulation = Simulation(3000, 4, 0.1, rows_per_shard=1000)
    blocks = LocalBlocks.load(simulation.block, simulation.n_shards)
    found = []

    def fit(blocks):
        found.append(solve(all_pairs(blocks, 1e-2), tol=0.0, max_passes=4))
        return found[-1].passes

    counted(blocks, fit)
    fit(blocks)
    assert found[0].w.tobytes() == found[1].w.tobytes()


def test_weight_goes_into_tuples_lists_and_dataclasses():
    assert weight((1.0, [np.zeros(3), np.zeros(2, dtype=np.int32)], Place(1, 2))) == 8 + 24 + 8 + 4 * 8


def places() -> list[Place]:
    slow = [Place(k, 2, b, d) for k in (1, 2, 4) for b in (6e6, 1e8) for d in (5e-4, 5e-3)]
    return [Place(k, 2) for k in (1, 2, 4)] + slow


def loads() -> list[Load]:
    return [LOAD, replace(LOAD, rows=10**4, arguments=10**6, summaries=10**6), replace(LOAD, summaries=10**6)]


def test_the_fit_finds_the_constants_that_made_the_runs():
    runs = [Run(load, place, total(KNOWN, load, place)) for load in loads() for place in places()]
    assert fitted(runs) == pytest.approx(KNOWN, rel=1e-9)


def test_what_no_run_tells_of_is_zero():
    runs = [Run(load, Place(k, 2), total(KNOWN, load, Place(k, 2))) for load in loads() for k in (1, 2, 4)]
    found = fitted(runs)
    assert (found.wire, found.trips) == (0.0, 0.0)
    assert found[:4] == pytest.approx(KNOWN[:4], rel=1e-9)


@given(st.integers(1, 1000), st.integers(1, 64), st.floats(1e5, 1e10), st.floats(0, 0.1))
def test_the_parts_are_the_terms(workers, cores, bandwidth, delay):
    place = Place(workers, cores, bandwidth, delay)
    parts = predicted(KNOWN, LOAD, place)
    assert list(parts) == ["compute", "latency", "bytes", "client"]
    assert sum(parts.values()) == pytest.approx(LOAD.client + float(np.dot(KNOWN, terms(LOAD, place))))
    more = total(KNOWN, LOAD, replace(place, bandwidth=bandwidth / 2, delay=delay + 1.0))
    assert more > total(KNOWN, LOAD, place)


def test_a_machine_by_itself_has_no_cable():
    assert terms(LOAD, Place(4, 2)).tolist() == [
        10**6 * 20 * 6 / 2, 23, 92, 4 * 3 * 10**7 + 9 * 10**7, 0.0, 0.0,
    ]  # fmt: skip
    assert math.isfinite(total(KNOWN, LOAD, Place(1, 1)))


@pytest.fixture(scope="module")
def client():
    with local_client(2) as client:
        yield client


@pytest.fixture
def here(client, monkeypatch):
    """Every cluster that is asked for is the same one, and no process is started: that saves seconds."""
    monkeypatch.setattr(aucdist.engine.dask, "local_client", lambda *asked: nullcontext(client))
    monkeypatch.setattr(suite, "_apart", lambda work, *args: work(*args))


def test_work_is_done_in_another_process():
    assert suite._apart(os.getpid) != os.getpid()


def test_rows_for_which_there_is_no_disk_are_a_row_that_says_so(monkeypatch):
    monkeypatch.setattr(suite.shutil, "disk_usage", lambda folder: type("usage", (), {"free": 10**6}))
    (row,) = suite.growth(10**6)
    assert row["note"].startswith("not run here: ")


@pytest.mark.slow
def test_the_suite_from_end_to_end(monkeypatch, here):
    monkeypatch.setattr(suite, "SIZES", (4000,))
    monkeypatch.setattr(suite, "ON_WORKERS", (4000,))
    monkeypatch.setattr(suite, "local_places", lambda: [Place(2, 2)])
    monkeypatch.setattr(suite, "FEW_PARTS", 10)
    monkeypatch.setattr(suite, "HALVES", 4000)
    few = {name: (Simulation(2000 * (k + 1), 4, 0.1, rows_per_shard=1000), k != 1) for k, name in enumerate("ab")}
    monkeypatch.setattr(suite, "CASES", few)
    table = suites.bench("scale", slow_peers=False, say=lambda line: None)
    grown = table[table["growth"].notna()]
    assert list(grown["growth"]) == ["one process", "two workers"]
    assert list(grown["rows"]) == [4000, 4000]
    assert grown["bytes for a row"].to_numpy() * 4000 == pytest.approx(grown["more MiB"].to_numpy(float) * 2**20)
    assert set(table["fit"].dropna()) == set("ab")
    assert table.set_index("fit").loc["b", "held out"]
    assert len(table[table["design"].notna()]) == 9


def test_the_future_is_made_of_its_parts():
    table = pd.DataFrame(suite.future(KNOWN, 10.0, 1e-7))
    assert set(table["workers"]) == {10, 100, 1000}
    parts = table[["compute s", "latency s", "bytes s", "client s"]].sum(axis=1)
    assert parts.to_numpy() == pytest.approx(table["s a pass"].to_numpy())
    as_built = table[table["design"] == "as built"].set_index("workers")
    # 1e7 anchors, one histogram of them for each of 29803 blocks.
    assert as_built.loc[10, "GB at the client"] == pytest.approx(29_803 * 8e7 / 1e9, rel=0.01)
    # Read anew where a worker has more than it keeps, else from memory.
    assert as_built.loc[1000, "compute s"] == pytest.approx(10**7 * 50 * KNOWN.value)
    assert as_built.loc[10, "compute s"] == pytest.approx(10**9 * 50 * 1e-8)


def test_growth_in_one_process(monkeypatch):
    monkeypatch.setattr(suite, "_apart", lambda work, *args: work(*args))
    (row,) = suite.growth(4000, share=0.1)
    assert (row["growth"], row["rows"], row["shards"], row["anchors"]) == ("one process", 4000, 1, 400)
    assert row["bytes for a row"] * 4000 == pytest.approx(row["more MiB"] * 2**20)

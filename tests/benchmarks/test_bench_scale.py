"""The suite `scale`: counts, the model on made-up runs, and every part once on a few rows. No time is asserted."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucdist.data.shards.simulate import Simulation
from aucdist.engine.blocks import LocalBlocks
from aucdist.engine.steps import MergeTree
from aucdist.engine.worker_part import LONG, pack
from aucdist.solvers.base import solve
from aucdist.solvers.pairs.cutting_planes import AllPairs
from benchmarks import scale as suite
from benchmarks.scale_model import (
    REDUCTIONS_PER_PASS,
    ClusterSize,
    Constants,
    Run,
    Traffic,
    Workload,
    byte_count,
    count_work,
    expected_work,
    fit_constants,
    nodes_sent,
    predict,
    terms,
    total,
)

KNOWN = Constants(row=2e-8, value=5e-9, reduction=8e-3, worker=2e-3, byte=4e-9, wire=1.05, trips=4.0)
IN_MEMORY, SENT = Traffic(3 * 10**7, 10**7, 5 * 10**6), Traffic(10**7, 9 * 10**6, 10**6)
WORKLOAD = Workload(10**6, 20, 16, 6, reductions=23, in_memory=IN_MEMORY, sent=SENT, client=0.1)


@pytest.mark.parametrize(
    "simulation",
    [
        Simulation(4000, 5, 0.02, rows_per_shard=1000),
        Simulation(60_000, 7, 0.001, rows_per_shard=20_000),
        Simulation(2000, 3, 0.4, rows_per_shard=500),
    ],
)
def test_expected_work_is_counted_work_without_the_rows_that_are_drawn(simulation):
    blocks = LocalBlocks.load(simulation.block, simulation.n_shards)
    workload = count_work(blocks, suite.fit_passes)
    anchors = min(blocks.n_pos, blocks.n_neg)
    expected = expected_work(simulation.rows, simulation.features, workload.blocks, workload.passes, anchors)
    assert workload.passes == suite.PASSES
    assert expected.reductions == 1 + 2 + REDUCTIONS_PER_PASS * (workload.passes - 1)
    # Rows are drawn at most once a pass, by a count and a draw for the step and for its line search.
    assert expected.reductions < workload.reductions <= expected.reductions + 1 + 3 * workload.passes
    for name in ("arguments", "gathered", "summed"):
        least = getattr(expected.in_memory, name)
        assert least <= getattr(workload.in_memory, name)
    assert workload.in_memory.summed < 1.1 * expected.in_memory.summed + 1000


def test_counting_changes_no_bit():
    simulation = Simulation(3000, 4, 0.1, rows_per_shard=1000)
    blocks = LocalBlocks.load(simulation.block, simulation.n_shards)
    found = []

    def fit(blocks):
        found.append(solve(AllPairs().rounds(blocks, 1e-2), tol=0.0, max_passes=4))
        return found[-1].passes

    count_work(blocks, fit)
    fit(blocks)
    assert found[0].w.tobytes() == found[1].w.tobytes()


@pytest.mark.parametrize(
    "values",
    [
        np.ones(1000), np.arange(1000.0), np.arange(-4e4, 4e4), np.linspace(0.0, 1.0, 1000), np.ones(2000)[::2],
        np.ones(LONG - 1), np.arange(1000),
    ],
)  # fmt: skip
def test_bytes_are_counted_as_they_are_sent(values):
    sent = byte_count(values, sent=True)
    assert sent <= len(pack(values)) < sent + 400


def clusters() -> list[ClusterSize]:
    slow = [ClusterSize(k, 2, b, d) for k in (1, 2, 4) for b in (6e6, 1e8) for d in (5e-4, 5e-3)]
    return [ClusterSize(k, 2) for k in (1, 2, 4)] + slow


def workloads() -> list[Workload]:
    return [
        WORKLOAD,
        replace(WORKLOAD, rows=10**4, in_memory=Traffic(10**6, 10**7, 10**5)),
        replace(WORKLOAD, in_memory=replace(IN_MEMORY, gathered=10**6), sent=replace(SENT, summed=10**4)),
        replace(WORKLOAD, features=60),
    ]


def test_the_fit_finds_the_constants_that_made_the_runs():
    runs = [
        Run(workload, cluster, total(KNOWN, workload, cluster)) for workload in workloads() for cluster in clusters()
    ]
    assert fit_constants(runs) == pytest.approx(KNOWN, rel=1e-9)


@given(st.integers(1, 1000), st.integers(1, 64), st.floats(1e5, 1e10), st.floats(0, 0.1))
def test_the_parts_are_the_terms(workers, cores, bandwidth, delay):
    cluster = ClusterSize(workers, cores, bandwidth, delay)
    parts = predict(KNOWN, WORKLOAD, cluster)
    assert list(parts) == ["compute", "latency", "bytes", "client"]
    assert sum(parts.values()) == pytest.approx(WORKLOAD.client + float(np.dot(KNOWN, terms(WORKLOAD, cluster))))
    more = total(KNOWN, WORKLOAD, replace(cluster, bandwidth=bandwidth / 2, delay=delay + 1.0))
    assert more > total(KNOWN, WORKLOAD, cluster)


def test_a_prediction_is_the_sum_of_its_parts(monkeypatch):
    monkeypatch.setattr(suite, "MANY", 40_000)
    table = pd.DataFrame(suite.predict_large_fit(KNOWN, 10.0, 1e-7))
    assert set(table["workers"]) == {10, 100, 1000}
    parts = table[["compute s", "latency s", "bytes s", "client s"]].sum(axis=1)
    assert parts.to_numpy() == pytest.approx(table["s a pass"].to_numpy())
    scores = table[table["design"] == "each anchor's score"].set_index("workers")
    cells = table[table["design"] == "as built: cells"].set_index("workers")
    # The scores of 1e7 anchors, and of each node that is sent a sum for each of them in four bytes.
    assert scores.loc[10, "GB to the client"] == pytest.approx(nodes_sent(29_803, 10) * 4e7 / 1e9, rel=0.1)
    assert cells["GB to the client"].max() < 10 * scores["GB to the client"].min()
    # Read anew where a worker has more than it keeps, else from memory.
    assert scores.loc[1000, "compute s"] == pytest.approx(10**7 * (KNOWN.row + 50 * KNOWN.value))
    assert scores.loc[10, "compute s"] == pytest.approx(10**9 * 50 * 1e-8)
    assert cells["compute s"].to_list() == scores["compute s"].to_list()


@given(st.integers(1, 300), st.integers(1, 40))
def test_nodes_sent_are_those_of_the_tree(blocks, workers):
    expected = 0
    for i in range(workers):
        tree = MergeTree()
        for number in range(blocks * i // workers, blocks * (i + 1) // workers):
            tree.add(0, number, {})
        expected += len(tree.nodes())
    assert nodes_sent(blocks, workers) == expected


def test_growth_in_one_process(monkeypatch):
    monkeypatch.setattr(suite, "_in_new_process", lambda work, *args: work(*args))
    (row,) = suite.growth(4000, share=0.1)
    assert (row["growth"], row["rows"], row["shards"], row["anchors"]) == ("one process", 4000, 1, 400)
    assert row["bytes for a row"] * 4000 == pytest.approx(row["more MiB"] * 2**20)

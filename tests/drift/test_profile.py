"""Profiles of training rows: counts that a slow count confirms, whatever the blocks, and what moves in a batch."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from aucdist.data.block import Block, partition
from aucdist.data.dataset import Schema
from aucdist.data.preprocess import Preprocessor
from aucdist.drift.batch import BatchCounts, moved
from aucdist.drift.profile import MOST_COLUMNS, Profile, fit_columns, score_bins
from aucdist.engine.blocks import LocalBlocks
from aucdist.errors import InputError
from aucdist.metrics.counts import ScoreCounts

SCHEMA = Schema(("age", "town=a", "town=b", "income"), "y", ("1",), ("0",), {"town": ("a", "b")})
AS_READ = Preprocessor((), "none", None, None, "keep")


def rows(n: int, seed: int, shift: float = 0.0, third: float = 0.0, missing: float = 0.1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    town = np.where(rng.random(n) < third, 2, rng.integers(0, 2, n))
    income = np.where(rng.random(n) < missing, np.nan, rng.lognormal(size=n))
    return np.column_stack([rng.normal(40 + shift, 10, n), town == 0, town == 1, income])


def block_of(X: np.ndarray) -> Block:
    return Block.of(X, np.where(np.arange(len(X)) % 3, 1, -1).astype(np.int8))


def scores_of(X: np.ndarray) -> np.ndarray:
    return X[:, 0] - 40


def profile_of(X: np.ndarray, n_blocks: int = 3) -> Profile:
    block = block_of(X)
    columns = fit_columns(LocalBlocks(partition(block, n_blocks)), SCHEMA, AS_READ, np.ones(4))
    counts = ScoreCounts.from_scores(block.y, scores_of(X) - 2.0)
    return Profile(len(X), 4, columns, score_bins(counts, "training", 2.0))


def found(profile: Profile, X: np.ndarray) -> dict:
    parts = [BatchCounts.of(profile, block_of(part), scores_of(part)) for part in np.array_split(X, 2)]
    return moved(profile, sum(parts, BatchCounts.none(profile)))


def test_counts_are_those_of_a_slow_count_on_any_blocks() -> None:
    X = rows(1000, 0)
    profile = profile_of(X, 1)
    assert profile == profile_of(X, 4)
    assert [c.name for c in profile.columns] == ["age", "town", "income"]
    age, town, income = profile.columns
    assert town.counts == (0, int(X[:, 1].sum()), int(X[:, 2].sum()))
    for column, values in ((age, X[:, 0]), (income, X[:, 3])):
        slow = [0] * column.n_cells
        for x in values:
            slow[0 if x != x else 1 + sum(edge < x for edge in column.edges)] += 1
        assert column.counts == tuple(slow)
        assert (column.low, column.high) == (np.nanmin(values), np.nanmax(values))
    assert sum(profile.score.counts) == 1000
    assert min(profile.score.counts) >= 49


def test_a_profile_is_read_back_and_checked() -> None:
    profile = profile_of(rows(300, 1))
    assert Profile.from_bytes(profile.to_bytes(), "p") == profile
    with pytest.raises(InputError, match="do not match its bins"):
        Profile.from_bytes(profile.to_bytes().replace(b'"at": [\n    3\n   ]', b'"at": [\n    9\n   ]').replace(
            b'"n_features": 4', b'"n_features": 3'), "p")  # fmt: skip
    with pytest.raises(InputError, match="damaged"):
        Profile.from_bytes(b"{}", "p")


def test_scaled_and_sparse_rows_have_the_counts_of_the_plain_ones() -> None:
    X = rows(500, 2, missing=0.0)
    shift, factor = np.array([3.0, 0.5, 0.5, 1.0]), np.array([2.0, 4.0, 0.1, 7.0])
    scaled = Preprocessor((), "standard", shift, factor)
    block = block_of(X)
    plain = fit_columns(LocalBlocks([block]), SCHEMA, AS_READ, np.ones(4))
    encoded = fit_columns(LocalBlocks([scaled.transform(block)]), SCHEMA, scaled, np.ones(4))
    sparse = fit_columns(LocalBlocks([Block.of(sp.csr_matrix(X), block.y)]), SCHEMA, AS_READ, np.ones(4))
    assert [c.counts for c in plain] == [c.counts for c in encoded] == [c.counts for c in sparse]
    assert plain == sparse


def test_nothing_moves_in_rows_of_the_same_kind() -> None:
    profile = profile_of(rows(5000, 3))
    assert not [alarm for seed in range(10, 40) for alarm in found(profile, rows(600, seed))["alarms"]]


@pytest.mark.parametrize(
    ("change", "what", "column"),
    [
        ({"shift": 6.0}, "moved", "age"),
        ({"missing": 0.3}, "missing", "income"),
        ({"third": 0.2}, "unknown", "town"),
        ({"shift": 40.0}, "outside", "age"),
        ({"shift": 40.0}, "rare", None),
        ({"shift": 6.0}, "score", None),
    ],
)
def test_what_has_moved_is_named(change: dict, what: str, column: str | None) -> None:
    alarms = found(profile_of(rows(5000, 4)), rows(800, 5, **change))["alarms"]
    assert (what, column) in {(alarm["what"], alarm["column"]) for alarm in alarms}
    assert {alarm["column"] for alarm in alarms if alarm["what"] in ("missing", "unknown")} <= {column}


def test_a_batch_without_rows_raises_no_alarm() -> None:
    profile = profile_of(rows(500, 6))
    none = BatchCounts.none(profile)
    assert moved(profile, none)["alarms"] == []
    # A part of a file may have no rows, of one class or of several.
    several = replace(profile, score=None, class_scores={"a": profile.score, "b": profile.score})
    for one, scores in ((profile, np.zeros(0)), (several, np.zeros((0, 2)))):
        counted = BatchCounts.of(one, block_of(np.zeros((0, 4))), scores)
        assert (counted.rows, counted.score.sum()) == (0, 0)


def test_of_wide_rows_those_columns_are_watched_that_move_the_score() -> None:
    d = MOST_COLUMNS + 88
    rng = np.random.default_rng(0)
    X = sp.random(300, d, 0.2, format="csr", random_state=0, data_rvs=rng.standard_normal)
    names = tuple(f"x{j}" for j in range(d))
    coef = np.zeros(d)
    coef[-100:] = 1.0
    block = Block.of(X, np.where(rng.random(300) < 0.5, 1, -1).astype(np.int8))
    columns = fit_columns(LocalBlocks([block]), Schema(names, "y", ("1",), ("0",), {}), AS_READ, coef)
    assert len(columns) == MOST_COLUMNS
    assert {f"x{j}" for j in range(d - 100, d)} <= {column.name for column in columns}


def test_counts_of_a_batch_are_those_of_slow_loops() -> None:
    profile, X = profile_of(rows(400, 7)), rows(300, 8, shift=15.0, third=0.1)
    batch = BatchCounts.of(profile, block_of(X), scores_of(X))
    cells, outside, rare = [], [], set()
    for column in profile.columns:
        found, beyond = [0] * column.n_cells, 0
        for i, row in enumerate(X):
            if column.kind == "categories":
                cell = next((k + 1 for k, j in enumerate(column.at) if row[j] > column.edges[k]), 0)
            else:
                x = row[column.at[0]]
                cell = 0 if x != x else 1 + sum(edge < x for edge in column.edges)
                if x < column.low or x > column.high:
                    beyond += 1
                    rare.add(i)
            found[cell] += 1
            if column.counts[cell] < 20:
                rare.add(i)
        cells += found
        outside.append(beyond)
    assert batch.cells.tolist() == cells
    assert batch.outside.tolist() == outside
    assert sum(outside) > 0
    assert batch.rare == len(rare)

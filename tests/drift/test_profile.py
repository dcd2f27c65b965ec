"""Profiles of training rows: counts that a slow count confirms, whatever the blocks, and what moves in a batch."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st
from scipy import stats

from aucdist.data.block import Block, into_blocks
from aucdist.data.dataset import Schema
from aucdist.data.own_files import npy_of
from aucdist.data.preprocess import Preprocessor
from aucdist.drift.batch import BatchCounts, compare_with_profile, kolmogorov_smirnov, more_than, psi, total_variation
from aucdist.drift.leaks import MAX_KEPT, RowDigests, count_known, row_digests
from aucdist.drift.profile import MAX_COLUMNS, Profile, fit_columns, score_bins
from aucdist.engine.blocks import LocalBlocks
from aucdist.errors import InputError
from aucdist.metrics.counts import ScoreCounts
from aucdist.selection import digests_of

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
    columns = fit_columns(LocalBlocks(into_blocks(block, n_blocks)), SCHEMA, AS_READ, np.ones(4))
    counts = ScoreCounts.from_scores(block.y, scores_of(X) - 2.0)
    return Profile(len(X), 4, columns, score_bins(counts, "training", 2.0))


def comparison(profile: Profile, X: np.ndarray) -> dict:
    parts = [BatchCounts.of(profile, block_of(part), scores_of(part)) for part in np.array_split(X, 2)]
    return compare_with_profile(profile, sum(parts, BatchCounts.none(profile)))


def test_counts_are_those_of_a_slow_count_on_any_blocks() -> None:
    X = rows(1000, 0)
    profile = profile_of(X, 1)
    assert profile == profile_of(X, 4)
    assert [c.name for c in profile.columns] == ["age", "town", "income"]
    age, town, income = profile.columns
    assert town.counts == (0, int(X[:, 1].sum()), int(X[:, 2].sum()))
    for column, values in ((age, X[:, 0]), (income, X[:, 3])):
        slow = [0] * column.n_bins
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
    assert not [alarm for seed in range(10, 40) for alarm in comparison(profile, rows(600, seed))["alarms"]]


@pytest.mark.parametrize(
    ("change", "what", "column"),
    [
        ({"shift": 6.0}, "moved", "age"), ({"missing": 0.3}, "missing", "income"), ({"third": 0.2}, "unknown", "town"),
        ({"shift": 40.0}, "outside", "age"), ({"shift": 40.0}, "rare", None), ({"shift": 6.0}, "score", None),
    ],
)  # fmt: skip
def test_what_has_moved_is_named(change: dict, what: str, column: str | None) -> None:
    alarms = comparison(profile_of(rows(5000, 4)), rows(800, 5, **change))["alarms"]
    assert (what, column) in {(alarm["what"], alarm["column"]) for alarm in alarms}
    assert {alarm["column"] for alarm in alarms if alarm["what"] in ("missing", "unknown")} <= {column}


def test_a_batch_without_rows_raises_no_alarm() -> None:
    profile = profile_of(rows(500, 6))
    none = BatchCounts.none(profile)
    assert compare_with_profile(profile, none)["alarms"] == []
    # A part of a file may have no rows, of one class or of several.
    several = replace(profile, score=None, class_scores={"a": profile.score, "b": profile.score})
    for profiled, scores in ((profile, np.zeros(0)), (several, np.zeros((0, 2)))):
        counted = BatchCounts.of(profiled, block_of(np.zeros((0, 4))), scores)
        assert (counted.rows, counted.score.sum()) == (0, 0)


def test_of_wide_rows_those_columns_are_watched_that_move_the_score() -> None:
    d = MAX_COLUMNS + 88
    rng = np.random.default_rng(0)
    X = sp.random(300, d, 0.2, format="csr", random_state=0, data_rvs=rng.standard_normal)
    names = tuple(f"x{j}" for j in range(d))
    coef = np.zeros(d)
    coef[-100:] = 1.0
    block = Block.of(X, np.where(rng.random(300) < 0.5, 1, -1).astype(np.int8))
    columns = fit_columns(LocalBlocks([block]), Schema(names, "y", ("1",), ("0",), {}), AS_READ, coef)
    assert len(columns) == MAX_COLUMNS
    assert {f"x{j}" for j in range(d - 100, d)} <= {column.name for column in columns}


def test_counts_of_a_batch_are_those_of_slow_loops() -> None:
    profile, X = profile_of(rows(400, 7)), rows(300, 8, shift=15.0, third=0.1)
    batch = BatchCounts.of(profile, block_of(X), scores_of(X))
    cells, outside, rare = [], [], set()
    for column in profile.columns:
        counts, beyond = [0] * column.n_bins, 0
        for i, row in enumerate(X):
            if column.kind == "categories":
                cell = next((k + 1 for k, j in enumerate(column.at) if row[j] > column.edges[k]), 0)
            else:
                x = row[column.at[0]]
                cell = 0 if x != x else 1 + sum(edge < x for edge in column.edges)
                if x < column.low or x > column.high:
                    beyond += 1
                    rare.add(i)
            counts[cell] += 1
            if column.counts[cell] < 20:
                rare.add(i)
        cells += counts
        outside.append(beyond)
    assert batch.bins.tolist() == cells
    assert batch.outside.tolist() == outside
    assert sum(outside) > 0
    assert batch.rare == len(rare)


# ---- distances of histograms: against SciPy and slow sums, and how often they err where nothing has moved


COUNTS = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), min_size=1, max_size=20)


def test_ks_is_that_of_values_where_each_has_a_bin() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 15, 400), rng.integers(2, 17, 300)
    counts = [np.bincount(x, minlength=17) for x in (a, b)]
    distance, p = kolmogorov_smirnov(*counts)
    theirs = stats.ks_2samp(a, b, method="asymp")
    assert distance == pytest.approx(theirs.statistic)
    assert p == pytest.approx(stats.kstwobign.sf(math.sqrt(400 * 300 / 700) * distance))
    assert math.log10(p) == pytest.approx(math.log10(theirs.pvalue), abs=0.7)


def test_total_variation_has_the_chi_squared_test() -> None:
    first, second = np.array([100, 200, 50, 20]), np.array([90, 150, 90, 35])
    distance, p = total_variation(first, second)
    assert distance == pytest.approx(0.5 * np.abs(first / 370 - second / 365).sum())
    assert p == pytest.approx(stats.chi2_contingency(np.stack([first, second]), correction=False).pvalue)


@given(COUNTS)
def test_distances_are_0_of_the_same_and_never_leave_their_range(counts: list[tuple[int, int]]) -> None:
    first, second = np.array(counts).T
    assert psi(first, first) == 0.0
    assert psi(first, second) >= 0.0
    assert psi(first, second) == pytest.approx(psi(second, first), rel=1e-9, abs=1e-12)
    for of in (kolmogorov_smirnov, total_variation):
        distance, p = of(first, second)
        assert 0.0 <= distance <= 1.0 + 1e-12
        assert 0.0 <= p <= 1.0
        assert of(first, first)[0] == 0.0


def test_psi_by_hand() -> None:
    p, q = (30.5 / 101, 70.5 / 101), (60.5 / 101, 40.5 / 101)
    expected = sum((b - a) * math.log(b / a) for a, b in zip(p, q, strict=True))
    assert psi(np.array([30, 70]), np.array([60, 40])) == pytest.approx(expected)


def test_p_values_hold_their_level() -> None:
    """Of samples of one population, at most about one in a hundred has a p-value below 0.01."""
    rng = np.random.default_rng(3)
    share = np.full(20, 1 / 20)
    pairs = [(rng.multinomial(2000, share), rng.multinomial(300, share)) for _ in range(1000)]
    for of in (kolmogorov_smirnov, total_variation):
        assert sum(of(a, b)[1] < 0.01 for a, b in pairs) <= 22
    shares = [(rng.binomial(5000, 0.004), rng.binomial(400, 0.004)) for _ in range(2000)]
    assert sum(more_than(b, 400, a, 5000) < 0.01 for a, b in shares) <= 40
    assert more_than(40, 400, 20, 5000) < 1e-9
    assert more_than(0, 400, 0, 5000) == 1.0


# ---- digests of rows: the same for the same values, however they are stored; lookups that a slow set confirms


M = 2**64


def slow_mixed(z: int) -> int:
    z = (z + 0x9E3779B97F4A7C15) % M
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % M
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % M
    return z ^ (z >> 31)


def slow_digest(row: np.ndarray) -> int:
    total = 0
    for j, x in enumerate(row):
        if x != 0:
            bits = int(np.float64(x).view(np.uint64)) if x == x else 0x7FF0000000000001
            total = (total + slow_mixed(bits ^ slow_mixed(j))) % M
    return total


def digest_block(X: object) -> Block:
    return Block.of(X, np.ones(X.shape[0], dtype=np.int8))  # type: ignore[attr-defined]


def test_digests_do_not_depend_on_layout_type_or_place() -> None:
    rng = np.random.default_rng(0)
    X = np.where(rng.random((200, 7)) < 0.5, 0.0, rng.normal(size=(200, 7)).astype(np.float32)).astype(np.float64)
    X[3, 2], X[4, 1], X[5] = np.nan, -0.0, 0.0
    digests = digests_of(digest_block(X))
    assert digests.tolist() == [slow_digest(row) for row in X]
    for other in (X.astype(np.float32), sp.csr_matrix(X)):
        np.testing.assert_array_equal(digests_of(digest_block(other)), digests)
    swapped = X[:, ::-1].copy()
    assert (digests_of(digest_block(swapped))[X.any(axis=1)] != digests[X.any(axis=1)]).mean() > 0.9


def test_digests_of_blocks_are_those_of_all_rows_and_find_them_again() -> None:
    rng = np.random.default_rng(1)
    X, new = rng.normal(size=(500, 4)), rng.normal(size=(300, 4))
    whole = digest_block(X)
    known = LocalBlocks(into_blocks(whole, 1)).sum(row_digests)
    several = LocalBlocks(into_blocks(whole, 5)).sum(row_digests)
    np.testing.assert_array_equal(known.kept, several.kept)
    mixed = np.vstack([new, X[:40]])
    assert LocalBlocks(into_blocks(digest_block(mixed), 3)).sum(count_known, known).tolist() == [340, 40]


def test_of_many_rows_a_sample_is_looked_up_whether_or_not_it_is_there() -> None:
    rng = np.random.default_rng(2)
    known = RowDigests(np.unique(rng.integers(0, M, 4 * MAX_KEPT, dtype=np.uint64))[:MAX_KEPT])
    strangers = rng.integers(0, M, 40_000, dtype=np.uint64)
    checked, n_seen = known.look_up(strangers)
    assert n_seen == 0
    assert abs(checked / 40_000 - 0.25) < 0.02
    checked, n_seen = known.look_up(np.concatenate([strangers, known.kept[:1000]]))
    assert n_seen == 1000


def test_a_file_of_digests_is_checked(tmp_path: object) -> None:
    known = RowDigests(np.array([1, 5, 9], dtype=np.uint64))
    assert RowDigests.from_bytes(npy_of(known.kept), "f").kept.tolist() == [1, 5, 9]
    assert RowDigests(np.zeros(0, dtype=np.uint64)).look_up(np.array([3], dtype=np.uint64)) == (0, 0)
    unsorted = npy_of(np.array([5, 1], dtype=np.uint64))
    for data, message in ((b"x", "damaged"), (unsorted, "do not ascend")):
        with pytest.raises(InputError, match=message):
            RowDigests.from_bytes(data, "f")

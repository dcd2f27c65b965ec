"""Counts of scores and of cells: the same bits from any partition, exact at the cells' edges, and an AUC within its error."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from aucdist.errors import InputError
from aucdist.kernels.float_order import floats_of_keys, ordered_keys
from aucdist.metrics import counts as counts_module
from aucdist.metrics.counts import HIGHEST, ScoreCounts
from aucdist.metrics.decisions import best_threshold, confusion, threshold_at
from aucdist.metrics.partial import partial_auc
from aucdist.metrics.ranking import auc, auc_error, delong_variance

SCORES = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([-0.0, 0.0, 5e-324, -5e-324, 1.0, 1 + 2**-52, 1.7976931348623157e308, -1.7976931348623157e308]),
    st.floats(-1, 1),
)
ROWS = st.lists(st.tuples(st.sampled_from([-1, 1]), SCORES), max_size=60)
LIMITS = st.tuples(st.integers(2, 12), st.integers(0, 12)).map(lambda pair: (pair[0] + pair[1], pair[0]))


def counts_of(rows: list[tuple[int, float]]) -> ScoreCounts:
    y, scores = zip(*rows, strict=True) if rows else ((), ())
    return ScoreCounts.from_scores(np.array(y, dtype=np.int8), np.array(scores))


def bounded(rows: list[tuple[int, float]]) -> ScoreCounts:
    return counts_of(rows).within_bounds()


def same_bits(a: ScoreCounts, b: ScoreCounts) -> bool:
    arrays = all(getattr(a, k).tobytes() == getattr(b, k).tobytes() for k in ("values", "pos", "neg"))
    return arrays and (a.rows_pos, a.rows_neg, a.weighted, a.shift) == (b.rows_pos, b.rows_neg, b.weighted, b.shift)


@given(ROWS)
def test_counts_are_a_dictionary_of_scores(rows):
    twin: dict[float, list[int]] = {}
    for label, score in rows:
        twin.setdefault(score, [0, 0])[label == 1] += 1
    counts = counts_of(rows)
    assert counts.values.tolist() == sorted(twin)
    assert [[n, p] for n, p in zip(counts.neg, counts.pos, strict=True)] == [twin[s] for s in sorted(twin)]
    assert counts.rows_pos == counts.n_pos == sum(label == 1 for label, _ in rows)
    assert counts.rows_neg == counts.n_neg == sum(label == -1 for label, _ in rows)
    assert not np.signbit(counts.values[counts.values == 0]).any()


def test_weights_add_up_and_rows_of_weight_zero_are_left_out():
    counts = ScoreCounts.from_scores(np.array([1, 1, -1, -1]), np.array([2.0, 2, 2, 5]), np.array([0.5, 1.5, 3, 0]))
    assert (counts.values.tolist(), counts.pos.tolist(), counts.neg.tolist()) == ([2.0], [2.0], [3.0])
    assert (counts.rows_pos, counts.rows_neg, counts.n_pos, counts.n_neg, counts.weighted) == (2, 1, 2.0, 3.0, True)


def test_weights_of_zero_and_one_only_select_rows():
    y, scores, weight = np.array([1, -1, 1]), np.array([1.0, 2, 3]), np.array([1.0, 1, 0])
    assert same_bits(ScoreCounts.from_scores(y, scores, weight), ScoreCounts.from_scores(y[:2], scores[:2]))


def test_one_weighted_part_makes_the_whole_weighted():
    plain, heavy = counts_of([(1, 0.0)]), ScoreCounts.from_scores(np.array([-1]), np.array([1.0]), np.array([2.0]))
    assert (plain + heavy).weighted
    assert (heavy + plain).weighted


@pytest.mark.parametrize(
    ("y", "scores", "weight", "message"),
    [
        ([1, -1, 1], [0.0, np.nan, np.inf], None, "score at position 1 .* not finite: nan"),
        ([1, -1, 1], [0.0, 1.0, -np.inf], None, "score at position 2 .* not finite: -inf"),
        ([1, 0], [0.0, 1.0], None, "label at position 1 .* neither"),
        ([1, -1], [0.0], None, "y_score has 1 values, but y_true has shape"),
        ([1, -1], [[0.0], [1.0]], None, "scores must have one dimension"),
        ([1, -1], ["a", "b"], None, "scores are not numbers"),
        ([1, -1], [0.0, 1.0], [1.0, -1.0], "the weight of row 1 .* is -1"),
        ([1, -1], [0.0, 1.0], [np.nan, 1.0], "the weight of row 0 .* is nan"),
        ([1, -1], [0.0, 1.0], [1.0], "y_score has 2 values, but sample_weight has shape"),
    ],
)
def test_bad_input_is_named(y, scores, weight, message):
    with pytest.raises(InputError, match=message):
        ScoreCounts.from_scores(y, scores, weight)


# ---- counts in cells ----


@given(ROWS, LIMITS, st.integers(1, 7), st.randoms(use_true_random=False))
def test_any_partition_in_any_order_gives_the_same_bits(rows, limits, n_parts, random):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counts_module, "MAX_VALUES", limits[0])
        patch.setattr(counts_module, "MAX_CELLS", limits[1])
        parts: list[list[tuple[int, float]]] = [[] for _ in range(n_parts)]
        for row in rows:
            random.choice(parts).append(row)
        counted = [bounded(part) for part in parts]
        while len(counted) > 1:  # a random tree of merges
            counted.append(counted.pop(random.randrange(len(counted))) + counted.pop(random.randrange(len(counted))))
        assert same_bits(counted[0], bounded(rows))
        assert len(counted[0].values) <= limits[0]
        if counted[0].shift:
            assert len(counts_of(rows).values) > limits[0]
            assert len(counted[0].values) <= limits[1]


@given(ROWS, st.integers(1, 60))
def test_a_threshold_of_cells_parts_the_rows_as_it_parts_the_cells(rows, shift):
    whole = counts_of(rows)
    cells = whole.in_cells(shift)
    for n_below in range(len(cells.values) + 1) if rows else ():
        threshold = cells.threshold(n_below)
        if math.isfinite(threshold):
            table = confusion(whole, threshold)
            assert table == confusion(cells, threshold)
            assert table["fn"] == cells.pos[:n_below].sum()
            assert table["tn"] == cells.neg[:n_below].sum()


@given(ROWS, st.integers(1, 60))
def test_the_auc_of_cells_is_within_its_error(rows, shift):
    whole = counts_of(rows)
    if min(whole.rows_pos, whole.rows_neg) == 0:
        return
    cells = whole.in_cells(shift)
    slack = Fraction(auc_error(cells)) + Fraction(1, 10**12)
    assert abs(Fraction(auc(cells)) - Fraction(auc(whole))) <= slack
    assert auc_error(whole) == 0.0


@given(st.lists(st.floats(allow_nan=False), min_size=1))
def test_keys_have_the_order_of_the_numbers_and_can_be_undone(numbers):
    values = np.sort(np.array(numbers) + 0.0)
    assert (ordered_keys(values)[1:] >= ordered_keys(values)[:-1]).all()
    assert floats_of_keys(ordered_keys(values)).tobytes() == values.tobytes()


def test_the_highest_key_is_that_of_the_largest_number():
    ends = np.array([-np.finfo(np.float64).max, np.finfo(np.float64).max])
    assert ordered_keys(ends).tolist() == [~HIGHEST, HIGHEST]


def test_rows_that_score_zero_are_above_the_cell_of_the_small_negative_ones():
    counts = ScoreCounts.from_scores(np.array([-1, 1, 1]), np.array([-1e-310, 0.0, 1.0])).in_cells(44)
    assert confusion(counts, counts.threshold(1)) == {"tp": 2, "fp": 0, "tn": 1, "fn": 0}
    assert (np.array([0.0, 1.0]) > counts.threshold(1)).all()


def test_the_middle_of_a_cell_is_mapped():
    scores = np.linspace(0.1, 0.9, 1000)
    cells = ScoreCounts.from_scores(np.where(np.arange(1000) % 2, 1, -1), scores).in_cells(48)
    widths = np.diff(np.concatenate(([cells.threshold(0)], cells.values)))
    assert np.all(np.abs(cells.middles() - (cells.values - widths / 2))[1:] <= widths[1:])
    mean = float((cells.pos + cells.neg) @ cells.mapped(lambda p: p).values) / 1000
    assert mean == pytest.approx(scores.mean(), abs=2e-3)
    assert mean < float((cells.pos + cells.neg) @ cells.values) / 1000


def test_metrics_of_many_scores_are_near_the_exact_ones():
    random = np.random.default_rng(3)
    n = counts_module.MAX_VALUES + 300_000
    y = np.where(random.random(n) < 0.01, 1, -1)
    scores = random.normal(size=n) + 1.5 * (y > 0)
    whole = ScoreCounts.from_scores(y, scores)
    parts = [ScoreCounts.from_scores(y[i::3], scores[i::3]).within_bounds() for i in range(3)]
    cells = parts[0] + parts[1] + parts[2]
    assert len(cells.values) <= counts_module.MAX_CELLS < counts_module.MAX_VALUES < len(whole.values)
    assert 0 < auc_error(cells) < 2e-5
    assert abs(auc(cells) - auc(whole)) <= auc_error(cells)
    assert delong_variance(cells) == pytest.approx(delong_variance(whole), rel=1e-4)
    assert partial_auc(cells, 0.01) == pytest.approx(partial_auc(whole, 0.01), rel=1e-4)
    assert best_threshold(cells) == pytest.approx(best_threshold(whole), abs=2e-3)
    assert threshold_at(cells, fpr=1e-3) == pytest.approx(threshold_at(whole, fpr=1e-3), rel=1e-3)


def test_weights_add_up_in_cells():
    random = np.random.default_rng(1)
    y, scores, weight = np.where(random.random(500) < 0.3, 1, -1), random.normal(size=500), random.random(500)
    whole = ScoreCounts.from_scores(y, scores, weight)
    cells = whole.in_cells(50)
    assert cells.weighted
    assert cells.n_pos == pytest.approx(whole.n_pos, rel=1e-12)
    assert abs(auc(cells) - auc(whole)) <= auc_error(cells)

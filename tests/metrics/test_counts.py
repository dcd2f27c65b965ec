"""Counts merge: any partition, in any order, gives the same bits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucdist.errors import InputError
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.decisions import best_threshold, confusion
from aucdist.metrics.ranking import auc, average_precision, delong_variance, roc_band, roc_curve

SCORES = st.sampled_from([-2.5, -1.0, -0.0, 0.0, 0.1, 1 / 3, 1.0, 1e-300, 7e300])
ROWS = st.lists(st.tuples(st.sampled_from([-1, 1]), SCORES), max_size=60)


def counts_of(rows: list[tuple[int, float]]) -> ScoreCounts:
    y, scores = zip(*rows, strict=True) if rows else ((), ())
    return ScoreCounts.from_scores(np.array(y, dtype=np.int8), np.array(scores))


def same_bits(a: ScoreCounts, b: ScoreCounts) -> bool:
    arrays = all(getattr(a, k).tobytes() == getattr(b, k).tobytes() for k in ("values", "pos", "neg"))
    return arrays and (a.rows_pos, a.rows_neg, a.weighted) == (b.rows_pos, b.rows_neg, b.weighted)


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


@given(ROWS, st.integers(1, 7), st.randoms(use_true_random=False))
def test_any_partition_in_any_order_gives_the_same_bits(rows, n_parts, random):
    parts: list[list[tuple[int, float]]] = [[] for _ in range(n_parts)]
    for row in rows:
        random.choice(parts).append(row)
    random.shuffle(parts)
    counted = [counts_of(part) for part in parts]
    while len(counted) > 1:  # a random tree of merges
        counted.append(counted.pop(random.randrange(len(counted))) + counted.pop(random.randrange(len(counted))))
    whole, merged = counts_of(rows), counted[0]
    assert same_bits(whole, merged)
    if whole.rows_pos > 1 and whole.rows_neg > 1:
        for measure in (auc, average_precision, best_threshold, delong_variance):
            assert measure(whole).hex() == measure(merged).hex()
        for curve in (roc_band, roc_curve):
            assert [a.tobytes() for a in curve(whole)] == [a.tobytes() for a in curve(merged)]
        assert confusion(whole, 0.1) == confusion(merged, 0.1)


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
        ([1, -1], [[0.0], [1.0]], None, "scores have shape"),
        ([1, -1], ["a", "b"], None, "scores are not numbers"),
        ([1, -1], [0.0, 1.0], [1.0, -1.0], "weight at position 1 .* negative"),
        ([1, -1], [0.0, 1.0], [np.nan, 1.0], "weight at position 0"),
        ([1, -1], [0.0, 1.0], [1.0], "y_score has 2 values, but sample_weight has shape"),
    ],
)
def test_bad_input_is_named(y, scores, weight, message):
    with pytest.raises(InputError, match=message):
        ScoreCounts.from_scores(y, scores, weight)

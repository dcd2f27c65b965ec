"""The cost of wrong decisions: the cheapest threshold of all, its expected cost, and the interval of that."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucdist import metrics
from aucdist.errors import InputError
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.decisions import expected_cost, expected_cost_interval, threshold_at

ROWS = st.lists(
    st.tuples(st.integers(-3, 3).map(float), st.sampled_from([-1, 1]), st.integers(1, 4)), min_size=2, max_size=14
).filter(lambda rows: len({y for _, y, _ in rows}) == 2)


def slow_cost(rows, threshold, false_alarm, miss):
    """Return the cost of all decisions over the weight of all rows, row by row."""
    total = 0.0
    for score, y, weight in rows:
        if score > threshold and y < 0:
            total += false_alarm * weight
        if score <= threshold and y > 0:
            total += miss * weight
    return total / sum(weight for _, _, weight in rows)


@given(ROWS, st.integers(1, 50), st.integers(1, 50), st.booleans())
def test_no_threshold_is_cheaper(rows, false_alarm, miss, weighted):
    rows = [(score, y, weight if weighted else 1) for score, y, weight in rows]
    scores, y, weight = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    counts, cost = ScoreCounts.from_scores(y, scores, weight), {"false_alarm": false_alarm, "miss": miss}
    found = threshold_at(counts, cost=cost)
    value = expected_cost(counts, found, **cost)
    assert value == pytest.approx(slow_cost(rows, found, false_alarm, miss), rel=1e-12)
    cuts = [-9.0, *np.unique(scores)]
    costs = [slow_cost(rows, cut, false_alarm, miss) for cut in cuts]
    assert value <= min(costs) + 1e-12
    # Of equally cheap thresholds it flags the fewest rows.
    fewest = min((scores > cut).sum() for cut, one in zip(cuts, costs, strict=True) if one <= min(costs) + 1e-12)
    assert (scores > found).sum() == fewest


def test_costs_by_row_are_sample_weights():
    random = np.random.default_rng(4)
    y = (random.random(200) < 0.2).astype(int)
    scores, amount = random.normal(size=200) + 1.5 * y, random.exponential(size=200) * np.where(y, 30.0, 1.0)
    found = metrics.threshold_at(y, scores, cost={"false_alarm": 1, "miss": 1}, sample_weight=amount)
    costs = [amount[(scores > cut) != y].sum() for cut in [-9.0, *scores]]
    assert amount[(scores > found) != y].sum() == pytest.approx(min(costs))


def test_perfect_decisions_have_an_interval_and_wrong_input_is_refused():
    y = np.repeat([0, 1], [90, 10])
    found = metrics.expected_cost_interval(y, y.astype(float), 0.5, false_alarm=1, miss=40)
    assert found.value == found.low == 0.0
    assert 0.0 < found.high < 4.0
    for given_, said in (
        ({"false_alarm": 1}, "cost takes false_alarm and miss; false_alarm is given"),
        ({"false_alarm": 1, "miss": 0}, "miss is 0; a number above 0"),
        ({"false_alarm": 1, "miss": float("inf")}, "miss is inf"),
    ):
        with pytest.raises(InputError, match=said):
            metrics.threshold_at(y, y, cost=given_)
    with pytest.raises(InputError, match="recall, cost is given"):
        metrics.threshold_at(y, y, recall=0.5, cost={"false_alarm": 1, "miss": 2})
    with pytest.raises(InputError, match="weighted rows"):
        metrics.expected_cost_interval(y, y, 0.5, false_alarm=1, miss=2, sample_weight=np.full(100, 2.0))


@pytest.mark.parametrize(("missed", "flagged"), [(0.1, 0.02), (0.02, 0.001), (0.5, 0.2)])
def test_intervals_cover(missed, flagged):
    """Intervals of 95 % cover at least 95 % of 400 samples of 100 positives and 1000 negatives, less chance."""
    random, cost = np.random.default_rng(1), {"false_alarm": 1.0, "miss": 40.0}
    truth, covered = (100 * missed * 40 + 1000 * flagged) / 1100, 0
    for _ in range(400):
        fn, fp = random.binomial(100, missed), random.binomial(1000, flagged)
        counts = ScoreCounts(np.array([0.0, 1.0]), np.array([fn, 100.0 - fn]), np.array([1000.0 - fp, fp]), 100, 1000)
        found = expected_cost_interval(counts, 0.5, **cost)
        covered += found.low <= truth <= found.high
    assert covered / 400 > 0.93

"""The cost of wrong decisions: the cheapest threshold of all, its expected cost, and the interval of that."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from aucdist import metrics
from aucdist.errors import InputError
from aucdist.metrics import decisions as costs
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.decisions import expected_cost_interval

ROWS = st.lists(
    st.tuples(st.integers(-3, 3).map(float), st.sampled_from([-1, 1]), st.integers(1, 4)), min_size=2, max_size=14
).filter(lambda rows: len({y for _, y, _ in rows}) == 2)


@given(
    ROWS,
    st.integers(1, 50),
    st.integers(1, 50),
    st.sampled_from(["miss", "false_positive", "both", "neither"]),
    st.booleans(),
)
def test_no_threshold_is_cheaper(rows, false_positive, miss, by_row, weighted):
    scores, y, amount = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    cost = {"false_positive": false_positive, "miss": miss}
    cost = {name: amount if by_row in (name, "both") else number for name, number in cost.items()}
    weight = amount[::-1] if weighted else np.ones(len(y))
    of_row = np.where(y > 0, *(np.broadcast_to(cost[name], len(y)) for name in ("miss", "false_positive")))

    def slow(threshold):
        wrong = [of_row[i] * weight[i] * ((scores[i] > threshold) != (y[i] > 0)) for i in range(len(y))]
        return sum(wrong) / weight.sum()

    cut = metrics.threshold_at(y, scores, cost=cost, sample_weight=weight)
    value = metrics.expected_cost(y, scores, cut, **cost, sample_weight=weight)
    assert value == pytest.approx(slow(cut), rel=1e-12)
    cuts = [-9.0, *np.unique(scores)]
    assert value <= min(map(slow, cuts)) + 1e-12
    assert (scores > cut).sum() == min((scores > c).sum() for c in cuts if slow(c) <= min(map(slow, cuts)) + 1e-12)


@settings(max_examples=40)
@given(ROWS, st.integers(1, 50), st.integers(1, 50), st.sampled_from([0.0, 0.5, -4.0]))
def test_a_column_of_equal_costs_gives_the_interval_of_the_number(rows, false_positive, miss, threshold):
    scores, y, _ = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    column = metrics.expected_cost_interval(
        y, scores, threshold, false_positive=false_positive, miss=np.full(len(y), float(miss))
    )
    number = metrics.expected_cost_interval(y, scores, threshold, false_positive=false_positive, miss=miss)
    assert (column.value, column.high) == pytest.approx((number.value, number.high), rel=1e-9)
    assert column.low == pytest.approx(number.low, abs=1e-9 * number.high)
    assert (column.method, number.method) == ("stringer-mover", "mover")


def test_bounds_of_many_mistakes_are_wider_than_those_rank_by_rank(monkeypatch):
    random = np.random.default_rng(3)
    y = np.repeat([0, 1], [9000, 9000])
    wrong = random.random(len(y)) < 0.5
    args = (y > 0, wrong, random.lognormal(size=len(y)))
    bounds = costs.DecisionCosts.of(*args).interval()
    monkeypatch.setattr(costs, "EXACT_RANKS", 10**9)
    exact = costs.DecisionCosts.of(*args).interval()
    assert exact.value == bounds.value == pytest.approx(args[2][wrong].sum() / len(y))
    assert bounds.low < exact.low < exact.high < bounds.high
    assert bounds.high - bounds.low == pytest.approx(exact.high - exact.low, rel=0.02)


@pytest.mark.parametrize(("n_pos", "missed", "spread"), [(60, 0.1, 1.0), (200, 0.3, 1.0), (60, 0.02, 1.5)])
def test_intervals_of_costs_by_row_cover(n_pos, missed, spread):
    """Of 300 samples with log-normal amounts, where percentiles of resamples cover 75 to 92 %."""
    random, covered = np.random.default_rng(2), 0
    y = np.repeat([0, 1], [200, n_pos])
    truth = (n_pos * missed * np.exp(spread**2 / 2) + 200 * 0.05) / len(y)
    for _ in range(300):
        scores = np.where(random.random(len(y)) < np.where(y == 1, missed, 0.95), 0.0, 1.0)
        miss = random.lognormal(sigma=spread, size=len(y))
        bounds = metrics.expected_cost_interval(y, scores, 0.5, false_positive=1, miss=miss)
        covered += bounds.low <= truth <= bounds.high
    assert covered / 300 > 0.95


def test_differences_of_costs_cover_and_find_none_where_there_is_none():
    """Of 200 samples with the same mistakes for half of the rows; with half as many misses the difference is found."""
    random, positive = np.random.default_rng(4), np.repeat([True, False], [100, 400])
    cost = np.where(positive, 10.0, 1.0)
    for misses, truth in ((0.3, 0.0), (0.15, 100 * 0.15 * 10 / 500)):
        differences = []
        for _ in range(200):
            first, second = random.random((2, 500))
            second = np.where(random.random(500) < 0.5, first, second)
            wrong = first < np.where(positive, 0.3, 0.05), second < np.where(positive, misses, 0.05)
            differences.append(costs.mean_cost_difference(positive, wrong, cost))
        assert np.mean([difference.low <= truth <= difference.high for difference in differences]) > 0.9
        rejected = np.mean([difference.p_value < 0.05 for difference in differences])
        assert rejected < 0.1 if truth == 0.0 else rejected > 0.7
    alone = costs.mean_cost_difference(positive, (np.zeros(500, dtype=bool), positive), cost)
    assert alone.value == pytest.approx(-2.0)
    assert alone.low < alone.value < alone.high < 0.0
    same = costs.mean_cost_difference(positive, (positive, positive), cost)
    assert (same.value, same.p_value, same.method) == (0.0, 1.0, "exact-bound")
    assert 0.0 < same.high == -same.low < 0.1


def test_costs_that_are_wrong_are_refused():
    y, amount = np.repeat([0, 1], [9, 3]), np.arange(12.0)
    for cost, said in (
        ({"false_positive": 1, "miss": amount[:5]}, "miss has 5 values, but there are 12 rows"),
        ({"false_positive": 1, "miss": amount - 20}, "miss at position 0 .* is negative"),
        ({"false_positive": amount * np.nan, "miss": 2}, "false_positive at position 0 .* not finite"),
        ({"false_positive": 1, "miss": amount * 0}, "miss is 0 for all positive rows"),
        (
            {"false_positive": 1, "miss": "cost_column"},
            "miss is 'cost_column', but the rows have no costs of their own",
        ),
        ({"miss": amount}, "cost must be a mapping with the keys false_positive and miss alone"),
        ({"false_positive": 1, "miss": 0}, "miss must be a number above 0.*; got 0"),
        ({"false_positive": 1, "miss": float("inf")}, "miss must be .*; got inf"),
        (amount, "cost must be a mapping with the keys false_positive and miss"),
    ):
        with pytest.raises(InputError, match=said):
            metrics.threshold_at(y, y, cost=cost)
    for miss in (amount, 2):
        with pytest.raises(InputError, match="recall, cost is given"):
            metrics.threshold_at(y, y, recall=0.5, cost={"false_positive": 1, "miss": miss})
        with pytest.raises(InputError, match="weighted rows"):
            metrics.expected_cost_interval(y, y, 0.5, false_positive=1, miss=miss, sample_weight=amount + 2)


def test_perfect_decisions_have_an_interval():
    y = np.repeat([0, 1], [90, 10])
    bounds = metrics.expected_cost_interval(y, y.astype(float), 0.5, false_positive=1, miss=40)
    assert bounds.value == bounds.low == 0.0
    assert 0.0 < bounds.high < 4.0


@pytest.mark.parametrize(
    ("n_rows", "n_pos", "missed", "flagged"),
    [
        *((1100, 100, *rates) for rates in ((0.1, 0.02), (0.02, 0.001), (0.5, 0.2))),
        *((10 * n, None, *rates) for n in (15, 100) for rates in ((0.1, 0.02), (0.8, 0.05), (0.5, 0.001))),
    ],
)
def test_intervals_cover(n_rows, n_pos, missed, flagged):
    """Intervals of 95 % cover at least 95 % of 400 samples, less chance, also where the share of positives differs between them.

    A tenth of all rows is positive then. With the share of a sample as if it were that, 64 to 97 % of the intervals cover.
    """
    random, cost, covered = np.random.default_rng(1), {"false_positive": 1.0, "miss": 40.0}, 0
    share = n_pos / n_rows if n_pos else 0.1
    truth = share * missed * 40 + (1 - share) * flagged
    for _ in range(400):
        pos = n_pos or random.binomial(n_rows, share)
        neg = n_rows - pos
        fn, fp = random.binomial(pos, missed), random.binomial(neg, flagged)
        counts = ScoreCounts(np.array([0.0, 1.0]), np.array([fn, pos - fn]), np.array([neg - fp, fp]), pos, neg)
        bounds = expected_cost_interval(counts, 0.5, **cost)
        covered += bounds.low <= truth <= bounds.high
    assert covered / 400 > 0.93

"""The spread of groups is that of drawing them with replacement, over folds and in pairs."""

import numpy as np
import pytest

from aucdist.metrics.groups import OfGroups
from aucdist.metrics.measures import MEASURES
from aucdist.search import choice
from aucdist.search.choice import Row, choose, groups_test, interval, over_folds, shares_of, standard_error

AUC = MEASURES["group_auc"]


def fold(values, weights, names):
    found = OfGroups(np.asarray(values), np.asarray(weights, dtype=float), 0, np.asarray(names))
    return {"value": found.mean, "groups": shares_of(found)}


def folds_of(values, weights, n_folds=4):
    """Return the results of folds of groups, and their mean by place of the groups that are drawn."""
    names = np.arange(len(values))
    parts = [names[names % n_folds == k] for k in range(n_folds)]
    return [fold(values[part], weights[part], part) for part in parts]


def test_the_standard_error_is_that_of_drawing_groups(monkeypatch):
    monkeypatch.setattr(choice, "BUNDLES", 2**40)  # each group by itself
    r = np.random.default_rng(0)
    values, weights = r.random(400), r.integers(1, 9, 400).astype(float)
    other = values + 0.1 * r.normal(size=400)
    first, second = (over_folds(folds_of(v, weights)) for v in (values, other))
    means = np.zeros((2, 2000))
    for b in range(2000):
        count = r.multinomial(400, np.full(400, 1 / 400))
        for k in range(4):
            w = (count * weights)[k::4]
            means[:, b] += np.array([w @ values[k::4], w @ other[k::4]]) / w.sum() / 4
    assert standard_error(first) == pytest.approx(means[0].std(), rel=0.08)
    apart = groups_test(first, second, 0.25)
    width = 2 * 1.966 * (means[0] - means[1]).std() * np.sqrt(2.25)
    assert apart.high - apart.low == pytest.approx(width, rel=0.08)
    assert apart.value == pytest.approx(np.mean([v["value"] for v in folds_of(values, weights)]) - choice._mean(second))
    assert groups_test(first, first, 0.25) is None
    assert groups_test(first, {"0": [0.5, 1.0], "1": [0.0, 0.0]}, 0.25) is None


def test_bundles_and_repeats_change_little():
    r = np.random.default_rng(1)
    values, weights = r.random(5000), np.ones(5000)
    once = folds_of(values, weights)
    shares = over_folds(once)
    assert len(shares) <= choice.BUNDLES
    assert standard_error(shares) == pytest.approx(np.std(values) / np.sqrt(5000), rel=0.1)
    assert standard_error(over_folds(once + once)) == pytest.approx(standard_error(shares), rel=1e-9)  # no new groups
    assert over_folds([*once, {"value": 0.5}]) is None
    assert over_folds([fold([0.5], [1.0], [0]), fold([0.6], [1.0], [0])]) is None


def test_with_a_group_for_each_fold_it_is_the_error_of_the_folds():
    values = [0.6, 0.7, 0.65, 0.9]
    results = [fold([v], [3.0], [k]) for k, v in enumerate(values)]
    assert standard_error(over_folds(results)) == pytest.approx(np.std(values, ddof=1) / 2)
    assert interval(values, AUC, 1 / 3, 4, shares=over_folds(results)) == pytest.approx(interval(values, AUC, 1 / 3, 4))


def test_one_standard_error_and_the_interval_are_of_the_groups():
    r = np.random.default_rng(2)
    level = r.random(40)
    spread = [
        Row({"lam": lam}, tuple(folds_of(level + gain, np.ones(40))), 9) for lam, gain in ((1.0, 0.0), (0.1, 0.03))
    ]
    error = spread[1].standard_error
    assert spread[1].summary()["standard_error"] == error == standard_error(spread[1].shares)
    assert error > 0.03
    assert choose(spread, AUC, "one-se") == 0
    low, high = interval(spread[0].values, AUC, 1 / 3, 40, shares=spread[0].shares)
    assert low < spread[0].mean - 2 * error < spread[0].mean + 2 * error < high

"""Metrics within groups, beside counting."""

import functools

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn.metrics import ndcg_score

from aucdist.errors import InputError
from aucdist.metrics.groups import GroupMetric, group_auc, group_ndcg, group_recall
from aucdist.metrics.named import REPORTED_WITHIN_GROUPS, ScoredGroups, find_metric


def drawn(seed):
    r = np.random.default_rng(seed)
    n = int(r.integers(2, 40))
    return r.integers(0, 4, n), r.integers(-3, 4, n) / 2.0, r.integers(0, 6, n), r.choice([0.0, 0.5, 1.0, 4.0], n)


@given(st.integers(0, 10**6))
def test_gauc_counts_pairs(seed):
    y, score, group, weight = drawn(seed)
    won, pairs = {}, {}
    for i in range(len(y)):
        for j in range(len(y)):
            if group[i] == group[j] and y[i] > y[j] and weight[i] * weight[j] > 0:
                won[group[i]] = won.get(group[i], 0) + weight[i] * weight[j] * (
                    (score[i] > score[j]) + 0.5 * (score[i] == score[j])
                )
                pairs[group[i]] = pairs.get(group[i], 0) + weight[i] * weight[j]
    if not pairs:
        with pytest.raises(InputError, match="groups has rows of two classes"):
            group_auc(y, score, groups=group, sample_weight=weight)
        return
    gauc = group_auc(y, score, groups=group, sample_weight=weight)
    assert gauc.mean == pytest.approx(sum(won.values()) / sum(pairs.values()), rel=1e-12)
    assert gauc.n_without == len(np.unique(group)) - len(pairs)
    each = group_auc(y, score, groups=group, sample_weight=weight, group_weight="groups").mean
    assert each == pytest.approx(np.mean([won[g] / pairs[g] for g in pairs]), rel=1e-12)


def test_ndcg_by_hand():
    # The first two of grades 3, 0, 2: 3 / 1 + 0 / log2(3), at best 3 / 1 + 2 / log2(3).
    ndcg = group_ndcg([3, 0, 2, 0, 0], [3.0, 2.0, 1.0, 1.0, 2.0], groups=[1, 1, 1, 2, 2], k=2)
    assert ndcg.values.tolist() == pytest.approx([3 / (3 + 2 / np.log2(3))])
    assert ndcg.n_without == 1
    exponential = group_ndcg([3, 0, 2], [3.0, 2.0, 1.0], groups=[1, 1, 1], k=2, gain="exponential")
    assert exponential.mean == pytest.approx(7 / (7 + 3 / np.log2(3)))


@given(st.integers(0, 10**6), st.sampled_from([1, 3, None]))
def test_ndcg_is_that_of_scikit_learn(seed, k):
    y, score, group, _ = drawn(seed)
    rows = [np.flatnonzero(group == g) for g in np.unique(group)]
    there = [at for at in rows if len(at) > 1 and y[at].any()]
    if there:
        ndcg = group_ndcg(y, score, groups=group, k=k)
        values = [ndcg_score(y[at][None], score[at][None], k=k) for at in there]
        np.testing.assert_allclose(ndcg.values, values, rtol=1e-12, atol=1e-15)
        assert ndcg.n_without == len(rows) - len(there)


def test_recall_by_hand():
    y, score = [1, 0, 1, 1, 0, 0], [5.0, 4.0, 4.0, 1.0, 2.0, 1.0]
    assert group_recall(y, score, groups=[7, 7, 7, 7, 8, 8], k=2).values.tolist() == pytest.approx([1.5 / 3])
    assert group_recall(y, score, groups=[7, 7, 7, 7, 8, 8], k=9).mean == 1.0


def by_places(y, score, weight, k):
    """Return a group's discounted gain and recall of the first k rows, place by place: a slow twin."""
    gain = recalled = place = 0.0
    for tie in sorted(set(score), reverse=True):
        mine = score == tie
        mass, p = weight[mine].sum(), int(place)
        if mass > 0:
            end = min(place + mass, k)
            recalled += (weight * (y > 0))[mine].sum() / mass * max(0.0, end - place)
            while p < end:
                gain += (weight * y)[mine].sum() / mass * max(0.0, min(end, p + 1) - max(place, p)) / np.log2(p + 2)
                p += 1
        place += mass
    return gain, recalled


@given(st.integers(0, 10**6), st.sampled_from([1, 3, 50]), st.booleans())
def test_a_weight_is_so_many_rows(seed, k, whole):
    y, score, group, weight = drawn(seed)
    weight = np.floor(weight) if whole else weight
    there = [
        g
        for g in np.unique(group)
        if ((weight[group == g] > 0).sum() > 1 or weight[group == g].sum() > 1) and (weight * y)[group == g].any()
    ]
    if not there:
        return
    given_weights = {"groups": group, "sample_weight": weight, "k": k}
    ndcg, recall = (of(y, score, **given_weights) for of in (group_ndcg, group_recall))
    assert ndcg.groups.tolist() == there
    for g, value, part in zip(there, ndcg.values, recall.values[np.isin(recall.groups, there)], strict=True):
        mine = group == g
        of = y[mine].astype(float), weight[mine]
        gain, recalled = by_places(of[0], score[mine], of[1], k)
        assert value == pytest.approx(gain / by_places(of[0], of[0], of[1], k)[0], rel=1e-11)
        assert part == pytest.approx(recalled / (weight * (y > 0))[mine].sum(), rel=1e-11)
    if whole:
        again = np.repeat(np.arange(len(y)), weight.astype(int))
        for of, kept in ((group_ndcg, ndcg), (group_recall, recall)):
            repeated = of(y[again], score[again], groups=group[again], k=k)
            same = np.isin(repeated.groups, there)
            np.testing.assert_allclose(
                repeated.values[same], kept.values[np.isin(kept.groups, there)], rtol=1e-12, atol=1e-15
            )


def test_one_row_of_weight_two_is_a_group_of_two_rows():
    weighed = group_ndcg([1, 1, 0], [0.3, 0.1, 0.2], groups=[0, 1, 1], sample_weight=[2, 1, 1], k=5)
    repeated = group_ndcg([1, 1, 1, 0], [0.3, 0.3, 0.1, 0.2], groups=[0, 0, 1, 1], k=5)
    assert weighed.values.tolist() == repeated.values.tolist()
    assert weighed.n_without == 0
    alone = group_ndcg([1, 1, 0], [0.3, 0.1, 0.2], groups=[0, 1, 1], k=5)
    assert (alone.n_without, alone.groups.tolist()) == (1, [1])


def test_interval_covers_the_mean_of_groups():
    """Of 200 sets of 60 groups whose values vary about .7, 95 in 100 intervals should hold it: 3 sigma below is 90."""
    r, inside = np.random.default_rng(1), 0
    for _ in range(200):
        values = np.clip(r.normal(0.7, 0.1, 60), 0, 1)
        estimate = GroupMetric(values, np.ones(60), 0).interval()
        inside += estimate.low <= 0.7 <= estimate.high
    assert inside >= 178


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_groups_that_are_all_alike_have_an_interval_that_is_no_point(value):
    estimate = GroupMetric(np.full(10, value), np.ones(10), 0).interval()
    assert 0 <= estimate.low <= value <= estimate.high <= 1
    assert estimate.high - estimate.low == pytest.approx(1 - 0.05**0.1)


def test_the_measures_of_a_report_are_those_of_the_functions():
    y, score, group, _ = drawn(3)
    measured = [find_metric(name).evaluate(ScoredGroups(y, score, group)).mean for name in REPORTED_WITHIN_GROUPS]
    calls = [group_auc, *(functools.partial(of, k=k) for of in (group_ndcg, group_recall) for k in (5, 10))]
    assert measured == [of(y, score, groups=group).mean for of in calls]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: group_auc([0, 1], [0.0, 1.0], groups=[1]), "lengths"),
        (lambda: group_auc([0, 1], [0.0, np.nan], groups=[1, 1]), "score at position 1 .* is not finite"),
        (lambda: group_auc([0, np.nan], [0.0, 1.0], groups=[1, 1]), "label at position 1 .* is missing"),
        (lambda: group_recall(["a", "b"], [0.0, 1.0], groups=[1, 1]), "labels are not numbers"),
        (lambda: group_ndcg([0, 1], [0.0, 1.0], groups=np.ma.array([1, 1], mask=[0, 1])), "groups at position 1 .* masked"),
        (lambda: group_auc([0, 1, 1], [0.0, 1.0, 2.0], groups=[1, np.nan, np.nan]), "groups at position 1 .* missing"),
        (lambda: group_ndcg([0, 1], [0.0, 1.0], groups=np.array(["a", None], object)), "groups at position 1 .* missing"),
        (lambda: group_ndcg([2000, 1], [0.0, 1.0], groups=[1, 1], gain="exponential"), "grade at position 0 .* above 1000"),
        (lambda: group_auc([0, 1], [0.0, 1.0], groups=[1, 1], group_weight="rows"), "Allowed: pairs, groups"),
        (lambda: group_recall([0, 1], [0.0, 1.0], groups=[1, 1], k=0), "k must be a number above 0.*; got 0"),
        (lambda: group_recall([0, 1], [0.0, 1.0], groups=[1, 1], k=None), "k must be a number above 0.*; got None"),
        (lambda: group_ndcg([0, -1], [0.0, 1.0], groups=[1, 1]), "negative"),
        (lambda: group_ndcg([0, 1], [0.0, 1.0], groups=[1, 1], gain="square"), "Allowed: linear, exponential"),
        (lambda: group_recall([0, 0], [0.0, 1.0], groups=[1, 1]), "a label above 0"),
        (lambda: group_recall([0, 1], [0.0, 1.0], groups=[1, 1], sample_weight=[1, -1]), "the weight of row 1 .* is -1"),
        (lambda: group_ndcg([0, 1], [0.0, 1.0], groups=[1, 1], sample_weight=[1e9, 1], k=None), "give a `k`"),
    ],
)  # fmt: skip
def test_metrics_without_a_value_are_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_ndcg_is_measured_at_the_number_of_its_name():
    rows = ScoredGroups(np.array([1.0, 0.0, 1.0]), np.array([3.0, 2.0, 1.0]), np.ones(3))
    at = {name: find_metric(name).evaluate(rows).mean for name in ("ndcg@2", "ndcg@2.5", "ndcg@3", "ndcg@0.5")}
    assert at["ndcg@2"] < at["ndcg@2.5"] < at["ndcg@3"]
    assert at["ndcg@0.5"] == 1.0

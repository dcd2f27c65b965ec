"""Metrics of the top of a ranking against plain loops over thresholds and rows, their intervals against simulated samples."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import binom, norm
from support.tables import table_beside

from aucdist import metrics
from aucdist.errors import InputError
from aucdist.metrics import decisions
from aucdist.metrics.counts import ScoreCounts

ROW = st.tuples(st.sampled_from([1, -1]), st.integers(-3, 3).map(float), st.integers(1, 4))
ROWS = st.lists(ROW, min_size=2, max_size=14).filter(lambda rows: len({y for y, _, _ in rows}) == 2)
SHARES = st.sampled_from([0.0, 0.1, 0.25, 1 / 3, 0.5, 0.7, 0.9, 1.0])
Y, S = [0, 0, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.7, 0.6, 0.9]


def columns(rows):
    return tuple(np.array(column, dtype=float) for column in zip(*rows, strict=True))


def table(rows, threshold):
    """Return tp, fp, n_pos, n_neg of ``score > threshold``."""
    tp, fp = (sum(w for y, s, w in rows if y == label and s > threshold) for label in (1, -1))
    n_pos, n_neg = (sum(w for y, _, w in rows if y == label) for label in (1, -1))
    return tp, fp, n_pos, n_neg


def all_tables(rows):
    return [table(rows, threshold) for threshold in (-math.inf, *{s for _, s, _ in rows})]


def allowed(name, value, tp, fp, n_pos, n_neg):
    return {
        "fpr": fp / n_neg <= value,
        "alerts": (tp + fp) / (n_pos + n_neg) <= value,
        "precision": tp + fp > 0 and tp / max(tp + fp, 1) >= value,
        "recall": tp / n_pos >= value,
    }[name]


@given(ROWS, st.sampled_from(["fpr", "alerts", "precision", "recall"]), SHARES)
def test_threshold_meets_its_requirement_and_finds_the_most(rows, name, value):
    y, scores, weight = columns(rows)
    counts = ScoreCounts.from_scores(y, scores, weight)
    good = [cells for cells in all_tables(rows) if allowed(name, value, *cells)]
    if value == 0.0 and name in ("precision", "recall"):
        with pytest.raises(InputError, match=f"{name} must be a number above 0"):
            decisions.threshold_at(counts, **{name: value})
        return
    if not good:
        best = max(tp / (tp + fp) for tp, fp, _, _ in all_tables(rows) if tp + fp > 0)
        with pytest.raises(InputError, match=f"no threshold has a precision above {best:.4g}"):
            decisions.threshold_at(counts, **{name: value})
        return
    counted = table(rows, decisions.threshold_at(counts, **{name: value}))
    assert allowed(name, value, *counted)
    flagged = [tp + fp for tp, fp, _, _ in good]
    assert counted[0] + counted[1] == (min(flagged) if name == "recall" else max(flagged))


@given(ROWS, SHARES)
def test_recall_and_rate_are_the_best_of_all_thresholds(rows, value):
    y, scores, weight = columns(rows)
    recall = metrics.recall_at_fpr(y, scores, max_fpr=value, sample_weight=weight)
    assert recall == pytest.approx(max(tp / p for tp, fp, p, n in all_tables(rows) if fp / n <= value))
    if value > 0:
        fpr = metrics.fpr_at_recall(y, scores, min_recall=value, sample_weight=weight)
        assert fpr == pytest.approx(min(fp / n for tp, fp, p, n in all_tables(rows) if tp / p >= value))


@settings(max_examples=40)
@given(ROWS.filter(lambda rows: len(rows) <= 6), st.data())
def test_top_k_is_the_mean_over_all_orders_of_ties(rows, data):
    k = data.draw(st.integers(1, len(rows)))
    y, scores, _ = columns(rows)
    hits = []
    for order in itertools.permutations(range(len(rows))):
        if all(scores[a] >= scores[b] for a, b in itertools.pairwise(order)):
            hits.append(sum(y[i] == 1 for i in order[:k]))
    mean = sum(hits) / len(hits)
    assert metrics.precision_at_k(y, scores, k=k) == pytest.approx(mean / k)
    assert metrics.recall_at_k(y, scores, k=k) == pytest.approx(mean / (y == 1).sum())


def test_weights_are_numbers_of_rows():
    random = np.random.default_rng(0)
    y, scores, weight = random.choice([-1, 1], 40), random.normal(size=40).round(1), random.integers(1, 5, 40)
    repeated = [np.repeat(column, weight) for column in (y, scores)]
    for name, at in (("recall_at_k", {"k": 17}), ("precision_at_k", {"k": 17}), ("recall_at_fpr", {"max_fpr": 0.2})):
        measure = getattr(metrics, name)
        assert measure(y, scores, sample_weight=weight, **at) == pytest.approx(measure(*repeated, **at), rel=1e-12)


def test_thresholds_lie_between_scores():
    assert metrics.threshold_at(Y, S, fpr=0.0) == pytest.approx(0.8)
    assert metrics.threshold_at(Y, S, alerts=0.0) == 0.9
    assert metrics.threshold_at(Y, S, alerts=0.5) == pytest.approx(0.45)
    lowest = metrics.threshold_at(Y, S, alerts=1.0)
    assert 0.1 - 1e-15 < lowest < 0.1
    low = 1.0
    high = np.nextafter(low, 2.0)
    assert metrics.threshold_at([0, 1], [low, high], fpr=0.0) == low


@pytest.mark.parametrize(("name", "options", "message"), table_beside(__file__))
def test_errors_name_what_is_allowed(name, options, message):
    with pytest.raises(InputError, match=message):
        getattr(metrics, name)(Y, S, **options)


def test_pos_label_turns_the_classes_round():
    names = np.where(np.array(Y) == 1, "bad", "good")
    assert metrics.recall_at_fpr(names, S, max_fpr=0.1, pos_label="bad") == metrics.recall_at_fpr(Y, S, max_fpr=0.1)
    assert metrics.roc_auc_score(Y, S, pos_label=0) == pytest.approx(1 - metrics.roc_auc_score(Y, S))


def test_operating_point_has_exact_binomial_intervals():
    point = metrics.operating_point(Y, S, 0.5)
    shares = {"recall": (2, 2), "fpr": (1, 4), "precision": (2, 3), "alerts": (3, 6)}
    for name, (successes, n) in shares.items():
        estimate = getattr(point, name)
        assert (estimate.value, estimate.method) == (pytest.approx(successes / n), "clopper-pearson")
        # The ends are the shares for which so many successes or more, or fewer, have a probability of 2.5 %.
        if successes > 0:
            assert binom.sf(successes - 1, n, estimate.low) == pytest.approx(0.025)
        assert (
            estimate.high == 1.0 if successes == n else binom.cdf(successes, n, estimate.high) == pytest.approx(0.025)
        )
    none = metrics.operating_point(Y, S, 2.0)
    assert (none.precision.value, none.precision.low, none.precision.high) == (0.0, 0.0, 1.0)
    with pytest.raises(InputError, match="weighted"):
        decisions.operating_point(ScoreCounts.from_scores(np.array([1, -1]), np.arange(2.0), np.full(2, 3.0)), 0.0)


@pytest.mark.parametrize(
    ("name", "at"),
    [
        ("recall_at_fpr", {"max_fpr": 0.05}),
        ("fpr_at_recall", {"min_recall": 0.8}),
        ("recall_at_k", {"k": 50}),
        ("precision_at_k", {"k": 50}),
    ],
)
def test_bootstrap_interval_holds_the_value_and_depends_on_the_seed_alone(name, at):
    random = np.random.default_rng(0)
    y = np.repeat([1, 0], [60, 600])
    scores = random.normal(size=660) + 1.5 * y
    interval = getattr(metrics, f"{name}_interval")
    bootstrap = interval(y, scores, **at, n_resamples=200)
    assert bootstrap.value == getattr(metrics, name)(y, scores, **at)
    assert bootstrap.low < bootstrap.value < bootstrap.high
    assert interval(y[::-1], scores[::-1], **at, n_resamples=200) == bootstrap
    assert interval(y, scores, **at, n_resamples=200, random_state=1) != bootstrap


@pytest.mark.slow
@pytest.mark.parametrize("name", ["recall_at_fpr", "fpr_at_recall", "recall_at_k"])
def test_bootstrap_intervals_cover(name):
    """Percentile intervals of 95 % cover at least 90 % of 300 samples of 150 positives and 3000 negatives."""
    rate, recall, shift = 0.05, 0.6, 1.5
    meant = {"recall_at_fpr": norm.sf(norm.isf(rate) - shift), "fpr_at_recall": norm.sf(norm.isf(recall) + shift)}
    at = {"recall_at_fpr": {"max_fpr": rate}, "fpr_at_recall": {"min_recall": recall}, "recall_at_k": {"k": 315}}[name]
    if name == "recall_at_k":  # a tenth of all rows
        cut = np.linspace(-4, 6, 200_001)
        flagged = (150 * norm.sf(cut - shift) + 3000 * norm.sf(cut)) / 3150
        meant[name] = norm.sf(cut[np.argmin(abs(flagged - 0.1))] - shift)
    covered = 0
    y = np.repeat([1, 0], [150, 3000])
    for seed in range(300):
        scores = np.random.default_rng(seed).normal(size=3150) + shift * y
        bounds = getattr(metrics, f"{name}_interval")(y, scores, **at, n_resamples=300)
        covered += bounds.low <= meant[name] <= bounds.high
    assert covered / 300 > 0.9


def test_equal_weights_of_any_size_change_no_threshold():
    y, scores, weight = np.repeat([0, 1], 10), np.r_[np.arange(10.0), np.arange(10.0) + 2.5], np.full(20, 0.1)
    for requirement in ({"fpr": 0.3}, {"alerts": 0.3}, {"recall": 0.7}, {"precision": 0.75}):
        assert metrics.threshold_at(y, scores, sample_weight=weight, **requirement) == metrics.threshold_at(
            y, scores, **requirement
        )
    for share in np.arange(1, 10) / 10:
        for name, parameter in (("recall_at_fpr", "max_fpr"), ("recall_at_precision", "min_precision")):
            measure, limit = getattr(metrics, name), {parameter: share}
            weighted = measure(y, scores, sample_weight=weight, **limit)
            assert weighted == pytest.approx(measure(y, scores, **limit), rel=1e-12)
    labels = np.r_[np.zeros(9, int), 1]
    assert metrics.precision_at_k(labels, scores[:10], k=1.0, sample_weight=weight[:10]) == pytest.approx(0.1)


@pytest.mark.parametrize("weight", [1e-300, 1e300, -1.0, np.nan])
@pytest.mark.parametrize("metric", [metrics.roc_auc_score, metrics.average_precision_score])
def test_weights_whose_products_are_no_floats_are_refused(metric, weight):
    with pytest.raises(InputError, match=r"the weight of row 1 .*; weights are 0, or from 1e-100 to 1e\+100"):
        metric([0, 0, 1], [0.1, 0.2, 0.3], sample_weight=[1.0, weight, 1.0])
    assert metric([0, 0, 1], [0.1, 0.2, 0.3], sample_weight=[1e100, 1e-100, 0.5]) == 1.0


def guaranteed_at(*rows, **target):
    return metrics.guaranteed_threshold(*rows, confidence=0.5, **target).threshold


@pytest.mark.parametrize("kind", [np.float16, np.float32])
@pytest.mark.parametrize("find", [metrics.threshold_at, guaranteed_at])
def test_a_threshold_flags_the_same_rows_in_the_type_of_the_scores(find, kind):
    """NumPy rounds a float that is compared with float32 scores: half of the midpoints of neighbours would be the upper one."""
    scores = np.ones(40, dtype=kind)
    for k in range(1, 40):
        scores[k] = np.nextafter(scores[k - 1], kind(2))
    y = np.arange(40) % 4 == 0  # the lowest score is positive
    for target in ({"recall": 1.0}, {"recall": 0.6}, {"fpr": 0.5}, {"fpr": 0.45}, {"alerts": 0.5}, {"alerts": 0.475}):
        exactly = scores.astype(float) > find(y, scores.astype(float), **target)
        assert ((scores > find(y, scores, **target)) == exactly).all()
    assert (scores > metrics.threshold_at(y, scores, recall=1.0)).all()


@given(st.data(), st.sampled_from(["fpr", "alerts", "recall"]), st.floats(0.01, 1.0), st.booleans())
@settings(deadline=None)
def test_ties_of_the_model_that_is_used_keep_what_other_scores_chose(data, name, value, weighted):
    """Each score is of several rows. The other scores of the rows, which chose the threshold, do not even rank like these."""
    n = data.draw(st.integers(1, 8))
    tied = np.repeat(data.draw(st.permutations(range(n))), 3).astype(float)
    y = np.array(data.draw(st.lists(st.sampled_from([-1, 1]), min_size=3 * n, max_size=3 * n)))
    y[:2] = -1, 1
    weight = np.array(data.draw(st.lists(st.sampled_from([0.25, 0.5, 2.0]), min_size=3 * n, max_size=3 * n)))
    weight = weight if weighted else np.ones(3 * n)
    chosen = data.draw(st.floats(-2, n + 1))
    threshold = decisions.adjust_for_ties(ScoreCounts.from_scores(y, tied, weight), chosen, name, value)
    counted = {"fpr": y < 0, "recall": y > 0, "alerts": np.full(3 * n, True)}[name]
    share = weight[counted & (tied > threshold)].sum() / weight[counted].sum()
    assert share >= value - 1e-12 if name == "recall" else share <= value + 1e-12
    least = decisions.threshold_at(ScoreCounts.from_scores(y, tied, weight), **{name: value})
    assert threshold in (chosen, least)  # so it is moved no further than needed


def test_scores_of_single_rows_do_not_raise_a_threshold():
    rows = np.array([-1, 1] * 10), np.arange(20.0)
    assert decisions.adjust_for_ties(ScoreCounts.from_scores(*rows), 4.5, "alerts", 0.1) == 4.5
    rows[1][10:12] = 10.0  # six rows or more are flagged with these two, but only two may be
    assert decisions.adjust_for_ties(ScoreCounts.from_scores(*rows), 4.5, "alerts", 0.1) == 11.0


def test_a_precision_is_kept_by_rows_that_the_model_ties():
    y, scores = np.array([1, 1, 1, -1, 1, -1, -1, -1, -1, 1]), np.array([4, 3, 3, 3, 2, 2, 2, 2, 2, 1.0])
    counts = ScoreCounts.from_scores(y, scores)
    # above 1.5, four of nine rows are positive; above 2.5, three of four are
    assert decisions.adjust_for_ties(counts, 1.5, "precision", 0.6) == 2.5
    assert decisions.adjust_for_ties(counts, 1.5, "precision", 0.4) == 1.5
    assert decisions.adjust_for_ties(counts, 1.5, "cost", {"false_positive": 1, "miss": 1}) == 1.5
    worst_first = ScoreCounts.from_scores(-y, scores)
    assert decisions.adjust_for_ties(worst_first, 1.5, "precision", 0.9) == 1.5  # which no threshold has


def test_weights_alone_do_not_move_a_threshold():
    y, weight = np.repeat([1, -1], [5, 15]), np.arange(1.0, 21.0)
    apart, equal = (ScoreCounts.from_scores(y, np.arange(20.0) // n, weight) for n in (1, 2))
    assert decisions.adjust_for_ties(apart, 4.5, "alerts", 0.1) == 4.5
    assert decisions.adjust_for_ties(equal, 4.5, "alerts", 0.1) > 4.5

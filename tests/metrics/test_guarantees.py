"""Thresholds that keep a guarantee for new rows, and the test of whether it is still kept."""

import math

import numpy as np
import pandas as pd
import pytest
from benchmarks.guarantees import CASES, KEPT, lines, share_of_misses
from scipy import stats

from aucdist.errors import InputError
from aucdist.metrics import guaranteed_threshold
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.guarantees import ALARM_E_VALUE, evidence_against, guaranteed_threshold as of_counts

SCORES = np.arange(200.0)


def labels(positive: np.ndarray) -> np.ndarray:
    y = np.zeros(200, dtype=int)
    y[positive] = 1
    return y


def test_recall_keeps_as_many_positives_as_the_bound_needs():
    """Of 60 positives 59 have to be found for .9: P(Bin(60, .9) >= 58) is .053."""
    y = labels(np.arange(140, 200))
    needed = next(k for k in range(61) if stats.binom.sf(k - 1, 60, 0.9) <= 0.05)
    guarantee = guaranteed_threshold(y, SCORES, recall=0.9)
    assert int((SCORES[140:] > guarantee.threshold).sum()) == needed == 59
    assert (guarantee.meets_target, guarantee.guaranteed, guarantee.n_rows) == (True, 0.9, 60)


def test_false_positive_rate_and_alerts_keep_below_the_bound():
    y = labels(np.arange(190, 200))
    for measure, n, of in (("fpr", 190, y == 0), ("alerts", 200, y >= 0)):
        allowed = max(k for k in range(n) if stats.binom.cdf(k, n, 0.1) <= 0.05)
        guarantee = guaranteed_threshold(y, SCORES, **{measure: 0.1})
        assert int((SCORES[of] > guarantee.threshold).sum()) == allowed
        assert (guarantee.meets_target, guarantee.n_rows) == (True, n)


def test_precision_takes_the_longest_list_whose_tests_all_pass():
    """The 50 highest rows are positive, and every third row below."""
    y = labels(np.r_[np.arange(150, 200), np.arange(0, 150, 3)])
    guarantee = guaranteed_threshold(y, SCORES, precision=0.8)
    flagged = guarantee.threshold < SCORES
    assert guarantee.meets_target
    assert guarantee.n_rows == flagged.sum()
    assert 50 < flagged.sum() < 70
    assert stats.binom.sf(y[flagged].sum() - 1, flagged.sum(), 0.8) <= 0.05
    assert guarantee.threshold in SCORES  # that of the next row itself: no midpoint


def test_what_cannot_be_guaranteed_is_said_with_what_can():
    y = labels(np.arange(180, 200))
    recall = guaranteed_threshold(y, SCORES, recall=0.95)
    assert not recall.meets_target
    assert recall.guaranteed == pytest.approx(0.05 ** (1 / 20))
    assert SCORES[179] < recall.threshold < SCORES[180]
    rate = guaranteed_threshold(y, SCORES, fpr=1e-3)
    assert (rate.meets_target, rate.guaranteed) == (False, pytest.approx(1 - 0.05 ** (1 / 180)))
    precision = guaranteed_threshold(labels(np.arange(0, 200, 2)), SCORES, precision=0.9)
    assert not precision.meets_target
    assert 0.2 < precision.guaranteed < 0.5
    perfect = guaranteed_threshold(labels(np.arange(100, 200)), SCORES, precision=1.0)
    assert (perfect.meets_target, perfect.n_rows) == (False, 200)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({}, "one of fpr, alerts, precision, recall; none is given"), ({"fpr": 0.1, "recall": 0.5}, "fpr, recall is given"),
        ({"precision": 0.0}, "above 0"), ({"recall": 0.5, "confidence": 1.0}, "level must be .*; got 1.0"),
        ({"recall": 0.5, "sample_weight": np.full(200, 2.0)}, "weighted rows"),
    ],
)  # fmt: skip
def test_refused(wrong, message):
    with pytest.raises(InputError, match=message):
        guaranteed_threshold(labels(np.arange(100, 200)), SCORES, **wrong)


def test_scores_of_one_value_have_two_thresholds():
    counts = ScoreCounts.from_scores(np.r_[np.ones(50), -np.ones(50)].astype(int), np.zeros(100))
    assert of_counts(counts, recall=0.9).threshold < 0
    assert of_counts(counts, fpr=0.1).threshold == 0
    assert not of_counts(counts, precision=0.8).meets_target


@pytest.mark.parametrize("case", [c for c in CASES if c.prevalence == 0.02 and c.n_pos == 100], ids=str)
def test_guarantees_are_missed_in_at_most_one_sample_of_twenty(case):
    """Of 200 samples at most 17: three standard errors above 10. tests/benchmarks/guarantees.py has 2 000 of each case."""
    assert share_of_misses(case, repeats=200, seed=1)["missed"] <= 17 / 200


def test_the_page_has_the_figures_of_the_file():
    page = (KEPT.parents[1] / "pages" / "benchmarks.md").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines() if line not in page] == []


def test_kept_guarantees_are_missed_in_one_of_twenty_at_most():
    """Within three standard errors of 2 000 samples."""
    table = pd.read_csv(KEPT)
    assert table.loc[table["what"] == "guarantee", "missed"].max() <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 2000)
    assert (table["what"] == "guarantee").sum() == len(CASES)
    assert table.loc[table["what"] == "false alarms", "missed"].max() <= 0.05


def test_evidence_is_a_mean_of_likelihood_ratios():
    """One batch: half of a 52nd of the weight is on it, the rest on changes that have not come."""
    bad, rows, allowed = 3, 5, 0.2
    ratios = []
    for factor in (1.2, 1.5, 2.0, 3.0, 5.0):
        q = factor * 0.25 / (1 + factor * 0.25)
        ratios.append((q / allowed) ** bad * ((1 - q) / (1 - allowed)) ** (rows - bad))
    weight = 0.5 / 52
    assert evidence_against([bad], [rows], allowed) == pytest.approx(weight * np.mean(ratios) + 1 - weight)


def test_evidence_depends_on_all_batches_and_is_a_martingale_under_the_guarantee():
    """The mean over all outcomes of a further batch is the evidence before it."""
    bad, rows = [2, 5], [10, 12]
    before = evidence_against(bad, rows, 0.3)
    after = [evidence_against([*bad, k], [*rows, 6], 0.3) for k in range(7)]
    assert stats.binom.pmf(np.arange(7), 6, 0.3) @ after == pytest.approx(before)
    assert stats.binom.pmf(np.arange(7), 6, 0.2) @ after < before


def test_a_broken_guarantee_is_seen_and_a_kept_one_is_not():
    assert evidence_against([0] * 60, [100] * 60, 0.2) < 1
    assert evidence_against([10] * 20 + [45] * 3, [100] * 23, 0.2) > ALARM_E_VALUE
    assert math.isfinite(evidence_against([10_000] * 100, [10_000] * 100, 0.2))


@pytest.mark.parametrize("measure", ["fpr", "alerts"])
def test_a_share_of_one_lets_every_row_be_flagged(measure):
    guarantee = guaranteed_threshold(labels(np.arange(190, 200)), SCORES, **{measure: 1.0})
    assert (guarantee.threshold < SCORES).all()
    assert guarantee.meets_target

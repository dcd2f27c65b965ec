"""Figures as texts: rounded for reading, and bounds never rounded down."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucdist.report.text import (
    auc_text,
    certificate_text,
    count_text,
    number_text,
    percent_text,
    proved_excess,
    rounded_up_text,
    seconds_text,
    summary_rows,
)

RUN = {
    "run": "a9a-1",
    "estimator": "PairwiseHingeClassifier",
    "solver": "all-pairs",
    "n_samples": 48_842,
    "n_features": 123,
    "n_pos": 11_687,
    "n_neg": 37_155,
    "metrics": {"train_auc": 0.90531, "test_auc": 0.902177, "test_auc_interval": [0.8971, 0.90699]},
    "certificate": {"primal": 0.238123456, "dual": 0.23794, "relative_gap": 7.7e-4, "status": "converged"},
    "passes": 23,
    "seconds": {"data": 0.412, "fit": 1.1634, "evaluate": 0.0531},
}


def test_summary_of_a_run():
    assert summary_rows(RUN) == [
        ("Run", "a9a-1"),
        ("Estimator", "PairwiseHingeClassifier, solver all-pairs"),
        ("Training data", "48,842 rows, 123 features"),
        ("Positive rows", "11,687 (23.9 %)"),
        ("Train AUC", "0.9053"),
        ("Test AUC", "0.9022 (95 % interval 0.8971 to 0.9070)"),
        ("Objective", "0.23812 (dual 0.23794)"),
        ("Certificate", "at most 0.078 % above the minimum"),
        ("Status", "converged after 23 passes"),
        ("Time", "data 412 ms, fit 1.16 s, evaluate 53 ms"),
    ]


def test_the_ends_of_an_interval_have_the_decimals_of_the_auc():
    metrics = {"train_auc": 1.0, "test_auc": 0.999, "test_auc_interval": [0.9985, 0.99931]}
    assert dict(summary_rows(RUN | {"metrics": metrics}))["Test AUC"] == "0.99900 (95 % interval 0.99850 to 0.99931)"


def test_summary_without_test_rows_interval_or_dual():
    run = RUN | {
        "metrics": {"train_auc": 0.9, "test_auc": None, "test_auc_interval": None},
        "certificate": {"primal": 0.2, "dual": None, "relative_gap": None, "status": "max-passes"},
    }
    rows = dict(summary_rows(run))
    assert rows["Test AUC"] == "not measured"
    assert rows["Objective"] == "0.2 (dual unknown)"
    assert rows["Certificate"].startswith("not bounded")
    assert rows["Status"] == "max-passes after 23 passes"


@given(st.floats(1e-6, 1e6), st.floats(0, 1))
def test_the_stated_excess_is_never_below_the_true_one(primal, share):
    certificate = {"primal": primal, "dual": primal * share}
    excess = proved_excess(certificate)
    if excess is None:
        assert share <= 1e-9
    elif excess > 0:
        stated = float(certificate_text(certificate).split()[2])
        assert stated >= 100 * excess * (1 - 1e-8)
        assert stated <= 100 * excess * 1.101


@pytest.mark.parametrize(
    ("primal", "dual", "excess"),
    [
        (0.5, 0.4, 0.25),
        (0.4, 0.4, 0.0),
        (0.0, 0.0, 0.0),
        (0.4, 0.4000001, 0.0),
        (0.4, 0.0, None),
        (0.4, -1.0, None),
        (0.4, None, None),
        (None, 0.1, None),
        (0.4, math.nan, None),
        (math.inf, 0.1, None),
    ],
)
def test_excess_over_the_optimum(primal, dual, excess):
    assert proved_excess({"primal": primal, "dual": dual}) == (None if excess is None else pytest.approx(excess))


def test_certificate_as_text():
    text = certificate_text({"primal": 1.00079, "dual": 1.0}, "over all 2.6e9 pairs")
    assert text == "at most 0.079 % above the minimum, over all 2.6e9 pairs"
    assert certificate_text({"primal": 1.0, "dual": 1.0}, "over all 12 pairs") == (
        "the minimum, to the last digit, over all 12 pairs"
    )


@pytest.mark.parametrize(
    ("function", "value", "text"),
    [
        (number_text, 1234.5678, "1235"),
        (number_text, 0.00012345, "0.000123"),
        (number_text, 1.5e-9, "1.5e-9"),
        (number_text, -2.5e12, "-2.5e12"),
        (number_text, math.nan, "unknown"),
        (number_text, None, "unknown"),
        (rounded_up_text, 0.0791, "0.08"),
        (rounded_up_text, 0.079, "0.079"),
        (rounded_up_text, 991.0, "1000"),
        (count_text, 9_999_999, "9,999,999"),
        (count_text, 2_582_345_120, "2.6e9"),
        (auc_text, None, "not measured"),
        (auc_text, 0.5, "0.5000"),
        (auc_text, 1.0, "1.0000"),
        (auc_text, 0.99996, "0.999960"),
        (auc_text, 0.9999998, "0.99999980"),
        (percent_text, 0.0, "0.0 %"),
        (percent_text, 1.0, "100.0 %"),
        (percent_text, 0.00407, "0.41 %"),
        (percent_text, 0.9996, "99.960 %"),
        (seconds_text, 0.0, "below 1 ms"),
        (seconds_text, 0.25, "250 ms"),
        (seconds_text, 45.678, "45.7 s"),
        (seconds_text, 200.0, "3 min 20 s"),
        (seconds_text, 7300.0, "2 h 1 min"),
    ],
)
def test_texts(function, value, text):
    assert function(value) == text

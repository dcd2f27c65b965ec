"""Figures as texts: rounded for reading, and bounds never rounded down."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from support.browser import CLIPPED, WINDOW, Browser

from aucdist.metrics.counts import ScoreCounts
from aucdist.report.run import Report, render_run_page
from aucdist.report.text import point_rows, summary_rows
from aucdist.text import (
    auc_text,
    certificate_text,
    count_text,
    number_text,
    percent_text,
    proved_excess,
    rounded_up_text,
    seconds_text,
)

RUN = {
    "run": "a9a-1", "estimator": "PairwiseHingeClassifier", "solver": "all-pairs", "n_samples": 48_842, "n_features": 123,
    "n_pos": 11_687, "n_neg": 37_155, "n_test_pos": 35, "n_test_neg": 325,
    "passes": 23, "command": "aucdist train", "seconds": {"data": 0.412, "fit": 1.1634, "evaluate": 0.0531},
    "metrics": {"train_auc": 0.90531, "test_auc": 0.902177, "test_auc_interval": [0.8971, 0.90699],
                "test_average_precision": 0.7451, "test_average_precision_interval": [0.73211, 0.7578]},
    "decisions": {
        "target": {}, "threshold": 0.0, "rows": "test", "set_on": "out_of_fold", "n_alerts": 50, "n_rows": 360, "n_pos": 35,
        "recall": {"value": 30 / 35, "interval": None}, "precision": {"value": 0.6, "interval": None},
        "fpr": {"value": 20 / 325, "interval": None}, "alerts": {"value": 50 / 360, "interval": None}, "r_precision": 0.8,
    },
    "certificate": {"primal": 0.238123456, "dual": 0.23794, "relative_gap": 7.7e-4, "status": "converged"},
}  # fmt: skip


def test_summary_of_a_run():
    assert summary_rows(RUN) == [
        ("Run", "a9a-1"),
        ("Estimator", "PairwiseHingeClassifier, solver all-pairs"),
        ("Training data", "48,842 rows, 11,687 positive (23.9 %), 123 features"),
        ("Test data", "360 rows, 35 positive (9.7 %)"),
        ("Test AUC", "0.9022 (95 % interval 0.8971 to 0.9070)"),
        ("Test average precision", "0.7451 (95 % interval 0.7321 to 0.7578)"),
        (
            "R-precision",
            "80.0 %: 28 of the 35 test rows with the highest scores are positive. This is the precision of as many rows as there "
            "are positive ones. A random order would have 9.7 %.",
        ),
        ("Flagged", "50 of 360 test rows (13.9 %)."),
        ("Precision", "60.0 %: 30 of the 50 flagged rows are positive."),
        ("Recall", "85.7 %: 5 of 35 positive rows are missed."),
        (
            "Threshold",
            "No target was given, so the threshold has the largest G-mean on out-of-fold scores of the training rows: each score "
            "is from a model that has not seen the row. To set another threshold without another fit, run "
            "`aucdist threshold a9a-1 --alerts 0.01`.",
        ),
        ("Train AUC", "0.9053"),
        ("Objective", "0.23812, lower bound 0.23794"),
        ("Certificate", "at most 0.078 % above the minimum"),
        ("Status", "converged after 23 passes"),
        ("Time", "data 412 ms, fit 1.16 s, evaluate 53 ms"),
    ]


def test_the_summary_has_the_baselines_after_the_metrics_of_the_model():
    test = {"value": 0.02, "low": -0.01, "high": 0.05}
    differences = {"test_auc": test, "average_precision": test, "recall": {"value": 0.1, "low": -0.01, "high": 0.2}}
    more = {"rates": {"recall": 31 / 35, "precision": 31 / 35}, "differences": differences}
    baselines = [
        {"name": "logistic regression (defaults)", "test_auc": 0.9, "average_precision": 0.7} | more,
        {"name": "LightGBM (defaults)", "test_auc": 0.9995, "average_precision": 0.75} | more,
    ]
    rows = summary_rows(RUN | {"baselines": baselines})
    names = [name for name, _ in rows]
    assert names.index("Other models") == names.index("Test average precision") + 1
    assert dict(rows)["Other models"] == (
        "logistic regression (defaults): AUC 0.9000, average precision 0.7000. "
        "LightGBM (defaults): AUC 0.99950, average precision 0.7500. "
        "The test AUC of LightGBM (defaults) is higher than that of this model by 0.02, but not significantly (95 % interval "
        "-0.01 to 0.05). The test average precision of LightGBM (defaults) is higher than that of this model by 0.02, but not "
        "significantly (95 % interval -0.01 to 0.05)."
    )
    # without a target, models are compared by as many rows as are positive
    assert dict(rows)["Equal number of alerts"].startswith(
        "With 35 alerts each, this model finds 28 positive rows. Logistic regression (defaults) finds 31, which is 3 more"
    )


def test_the_ends_of_an_interval_have_the_decimals_of_the_auc():
    metrics = RUN["metrics"] | {"test_auc": 0.999, "test_auc_interval": [0.9985, 0.99931]}
    assert dict(summary_rows(RUN | {"metrics": metrics}))["Test AUC"] == "0.99900 (95 % interval 0.99850 to 0.99931)"


def test_each_share_of_an_interval_has_its_own_decimals():
    assert [percent_text(share) for share in (1 / 26, 0.00097, 0.19637)] == ["3.8 %", "0.097 %", "19.6 %"]
    rate = {"value": 33 / 35, "interval": [0.80843, 0.99300]}
    point = {"target": {"alerts": 0.1}, "rows": "test"} | dict.fromkeys(("recall", "fpr", "precision", "alerts"), rate)
    assert dict(point_rows(point))["Recall"] == "94.3 % (95 % interval 80.8 % to 99.3 %)."


def test_a_single_alert_is_in_the_singular():
    rate = {"value": 1.0, "interval": None}
    point = {"target": {"alerts": 0.1}, "rows": "test", "n_alerts": 1, "n_rows": 9, "n_pos": 1}
    rows = dict(point_rows(point | dict.fromkeys(("recall", "fpr", "precision", "alerts"), rate)))
    assert rows["Precision"].endswith(": 1 of the 1 flagged row is positive.")
    assert rows["Recall"].endswith(": 0 of 1 positive row is missed.")


def test_the_result_of_a_threshold_comes_first_and_other_models_are_beside_it():
    """Counts are whole, and the ends of their intervals are rounded outwards."""
    point = {
        "target": {"alerts": 0.05}, "rows": "test", "set_on": "out_of_fold", "n_alerts": 134, "n_rows": 3085, "n_pos": 185,
        "recall": {"value": 27 / 185, "interval": [0.098, 0.205]}, "precision": {"value": 27 / 134, "interval": [0.137, 0.279]},
        "fpr": {"value": 107 / 2900, "interval": None}, "alerts": {"value": 134 / 3085, "interval": [0.0366, 0.0511]},
    }  # fmt: skip
    rates, difference = (
        {"recall": 41 / 185, "precision": 41 / 134},
        {"value": 14 / 185, "low": -0.2 / 185, "high": 22.1 / 185},
    )
    baselines = [{"name": "LightGBM (defaults)", "rates": rates, "differences": {"recall": difference}}]
    expected = {
        "Flagged": "134 of 3,085 test rows (4.3 %).",
        "Precision": "20.1 % (95 % interval 13.7 % to 27.9 %): 27 of the 134 flagged rows are positive.",
        "Recall": "14.6 % (95 % interval 9.8 % to 20.5 %): 158 of 185 positive rows are missed.",
        "Threshold": "The threshold was set for a share of alerts of at most 5 %, on out-of-fold scores of the training rows: "
        "each score is from a model that has not seen the row.",
        "Target": "The share of alerts of the test rows, 4.3 % (95 % interval 3.7 % to 5.1 %), meets the target. The interval "
        "contains the target, so on new rows the target may be missed.",
        "Equal number of alerts": "With 134 alerts each, this model finds 27 positive rows. LightGBM (defaults) finds 41, "
        "which is 14 more (95 % interval: 1 fewer to 23 more). A difference may be chance if its interval contains 0.",
    }
    assert point_rows(point, baselines) == list(expected.items())
    shown = summary_rows(RUN | {"operating_point": point})
    assert [row for row in shown if row[0] in expected] == list(expected.items())[:-1]
    weighted = {name: value for name, value in point.items() if not name.startswith("n_")}
    said = dict(point_rows(weighted, baselines))
    assert (said["Flagged"], said["Precision"]) == (
        "4.3 % of the test rows.",
        "20.1 % (95 % interval 13.7 % to 27.9 %).",
    )
    assert "Equal number of alerts" not in said


@pytest.mark.parametrize("high", [0.68, 0.82])
def test_a_guarantee_that_the_test_rows_contradict_is_not_to_be_relied_on(high: float) -> None:
    rate = {"value": 0.636, "interval": [0.58, high]}
    guarantee = {
        "metric": "recall",
        "target": 0.8,
        "confidence": 0.95,
        "meets_target": True,
        "n_pos": 200,
        "n_neg": 800,
    }
    point = {
        "target": {"recall": 0.8, "confidence": 0.95},
        "rows": "test",
        "set_on": "out_of_fold",
        "guarantee": guarantee,
    }
    said = dict(point_rows(point | dict.fromkeys(("recall", "fpr", "precision", "alerts"), rate)))
    assert ("by more than chance explains" in said["Target"]) == (high < 0.8)
    refuted = (
        "The test rows contradict it: new rows are not drawn like the training rows. Do not rely on this guarantee."
    )
    assert (refuted in said["Guarantee"]) == (high < 0.8)


def test_the_summary_of_several_classes_bounds_their_objectives():
    run = RUN | {"topics": False, "classes": [{"certificate": RUN["certificate"]}, {"certificate": RUN["certificate"]}]}
    said = dict(summary_rows(run))["Certificates"]
    bound = "the training objective is at most 0.078 % above its minimum"
    assert said == f"For each of the 2 classes, {bound}. 2 of 2 converged after 23 passes"
    run["classes"][1] = {"certificate": {"primal": 0.2, "dual": 0.0, "status": "stationary"}}
    assert dict(summary_rows(run))["Certificates"].startswith(f"For 1 of the 2 classes, {bound}")
    run["classes"] = run["classes"][1:]
    said = dict(summary_rows(run))["Certificates"]
    assert said.startswith("The training objectives are at an unknown distance from the minimum: ")


def test_summary_without_test_rows_interval_or_dual():
    run = {key: value for key, value in RUN.items() if "n_test" not in key} | {
        "metrics": dict.fromkeys(RUN["metrics"]) | {"train_auc": 0.9},
        "certificate": {"primal": 0.2, "dual": None, "relative_gap": None, "status": "max-passes"},
    }
    rows = dict(summary_rows(run))
    assert rows["Test AUC"] == rows["Test average precision"] == "not measured"
    assert "Test data" not in rows
    assert rows["Objective"] == "0.2, lower bound unknown"
    assert rows["Certificate"].startswith("at an unknown distance from the minimum")
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
        assert stated <= max(1e-4, 100 * excess * 1.101)


@pytest.mark.parametrize(
    ("primal", "dual", "excess"),
    [
        (0.5, 0.4, 0.25), (0.4, 0.4, 0.0), (0.0, 0.0, 0.0), (0.4, 0.4000001, 0.0), (0.4, 0.0, None), (0.4, -1.0, None),
        (0.4, None, None), (None, 0.1, None), (0.4, math.nan, None), (math.inf, 0.1, None),
    ],
)  # fmt: skip
def test_excess_over_the_optimum(primal, dual, excess):
    assert proved_excess({"primal": primal, "dual": dual}) == (None if excess is None else pytest.approx(excess))


def test_certificate_as_text():
    text = certificate_text({"primal": 1.00079, "dual": 1.0})
    assert text == "at most 0.079 % above the minimum"
    assert certificate_text({"primal": 1.0, "dual": 1.0 - 2.2e-10}) == "at most 0.0001 % above the minimum"
    assert certificate_text({"primal": 1.0, "dual": 1.0}) == "the minimum, up to rounding errors"


@pytest.mark.parametrize(
    ("function", "value", "text"),
    [
        (number_text, 1234.5678, "1235"), (number_text, 0.00012345, "0.000123"), (number_text, 1.5e-9, "1.5e-9"),
        (number_text, -2.5e12, "-2.5e12"), (number_text, math.nan, "unknown"), (number_text, None, "unknown"),
        (rounded_up_text, 0.0791, "0.08"), (rounded_up_text, 0.079, "0.079"), (rounded_up_text, 991.0, "1000"),
        (count_text, 9_999_999, "9,999,999"), (count_text, 2_582_345_120, "2.6 billion"),
        (count_text, 41_000_000, "41 million"), (auc_text, None, "not measured"), (auc_text, 0.5, "0.5000"),
        (auc_text, 1.0, "1.0000"), (auc_text, 0.99996, "0.999960"), (auc_text, 0.9999998, "0.99999980"),
        (percent_text, 0.0, "0.0 %"), (percent_text, 1.0, "100.0 %"), (percent_text, 0.00407, "0.41 %"),
        (percent_text, 0.9996, "99.96 %"), (seconds_text, 0.0004, "0.4 ms"), (seconds_text, 0.25, "250 ms"),
        (seconds_text, 45.678, "45.7 s"), (seconds_text, 200.0, "3 min 20 s"), (seconds_text, 7300.0, "2 h 1 min"),
    ],
)  # fmt: skip
def test_texts(function, value, text):
    assert function(value) == text


# ---- the page of several classes escapes names, is the same every time, shows what went wrong, and fits its window


EVIL = "</title></style></svg><script>alert('x')</script>&\"'"


def made(n_classes: int, *, topics: bool = False, tested: bool = True, excess: float = 1e-3) -> Report:
    random = np.random.default_rng(n_classes)
    confusions = random.integers(0, 4, (n_classes, n_classes)) + 30 * np.eye(n_classes, dtype=int)
    classes, rows, bounds = [], [], {"primal": 1.0, "dual": 1.0 - excess, "relative_gap": excess}
    for k in range(n_classes):
        y = np.repeat([1, -1], [30, 200])
        counts = ScoreCounts.from_scores(y, random.normal(size=230) + 1.5 * (y > 0))
        classes.append((counts, counts if tested else None))
        area = 0.7 + 0.2 * random.random()
        rows.append(
            {
                "name": f"{EVIL} {k}", "n_pos": 70, "n_neg": 400, "train_auc": 0.95, "test_pos": int(confusions[k].sum()),
                "test_auc": area if tested and k else None,
                "test_auc_interval": [area - 0.1, area + 0.05] if tested and k else None,
                "recall": 0.5 if tested else None, "precision": 0.25 if tested else None, "threshold": 0.0, "passes": 12,
                "certificate": {**bounds, "status": "converged" if k else "max_passes"},
            }
        )  # fmt: skip
    metrics = {
        "train_auc": 0.95, "test_auc": 0.8 if tested else None, "test_auc_weighted": 0.81 if tested else None,
        "test_accuracy": None if topics or not tested else 0.7,
    }  # fmt: skip
    run = {
        "name": f"title {EVIL}", "versions": {}, "run": f"runs/{EVIL}", "command": "aucdist train",
        "estimator": "PairwiseHingeClassifier", "solver": "all-pairs", "topics": topics, "passes": 99,
        "metrics": metrics, "classes": rows, "warnings": [],
    }  # fmt: skip
    table = confusions if tested else None
    return Report(run, {"name": EVIL}, f"name: {EVIL}", classes, [("Time", "1 s")], confusions=table)


@pytest.mark.parametrize("topics", [False, True])
@pytest.mark.parametrize("tested", [False, True])
def test_the_page_says_what_there_is(topics: bool, tested: bool) -> None:
    report = made(5, topics=topics, tested=tested)
    page = render_run_page(report)
    assert page == render_run_page(report)
    assert "<script>" not in page
    assert page.count('aria-label="ROC curve"') == 5
    assert ("The most frequent mistakes" in page) == (tested and not topics)
    assert ("Recall and precision are those of the predictions" in page) == tested
    order = [page.index(f"&#39; {k}</bdi>") for k in range(5)]
    if tested:
        areas = [row["test_auc"] for row in report.run["classes"][1:]]
        assert np.argsort(order)[:4].tolist() == (1 + np.argsort(areas)).tolist()
        assert order[0] == max(order)  # the class without an AUC comes last


def test_a_bound_of_exactly_0() -> None:
    assert "the training objective is at most 0\u00a0% above its minimum" in render_run_page(made(3, excess=0.0))


@pytest.mark.parametrize("n_classes", [3, 100])
def test_the_page_fits(n_classes: int, chromium: Browser, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(render_run_page(made(n_classes)), encoding="utf-8")
    for width in (1300, 400):
        chromium.open(page, width=width)
        assert chromium.evaluate("document.documentElement.scrollWidth") <= width


def test_operating_points_have_a_table_of_their_own_that_fits(chromium: Browser, tmp_path: Path) -> None:
    report, rate = made(4), {"value": 0.5, "interval": [0.4, 0.6]}
    cost = {"value": 1.4429511, "interval": [1.3211019, 1.5970482], "without_model": 4.264}
    point = {"target": {"cost": {"false_positive": 5, "miss": "cost_column"}}, "rows": "test", "expected_cost": cost}
    for k, row in enumerate(report.run["classes"]):
        row |= {"name": f"class {k}", "operating_point": point | dict.fromkeys(("recall", "precision", "fpr"), rate)}
    page = tmp_path / "page.html"
    page.write_text(render_run_page(report), encoding="utf-8")
    assert "<td>144</td><td>132 to 160</td><td>426</td>" in page.read_text(encoding="utf-8")
    chromium.open(page, width=WINDOW)
    assert chromium.evaluate(CLIPPED) == []

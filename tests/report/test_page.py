"""The page stands alone, escapes everything, is the same every time, and shows what went wrong."""

import itertools
import math
import re
import warnings
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest

from aucdist.data.dataset import Schema
from aucdist.errors import InputError
from aucdist.maps.explain import Additive, InteractionShape, Shape
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.decisions import recall_at_k
from aucdist.metrics.ranking import auc_interval
from aucdist.report.comparison import comparison_sentences, p_text, render_comparison_page, warnings_of_runs
from aucdist.report.plots import central_range, inline_svg, reliability_diagram, thin
from aucdist.report.run import Report, render_run_page
from aucdist.report.sections import additive_section, cells_of, search_section
from aucdist.report.text import search_verdict
from flows.run_folder.results import point_of

EVIL = "</title></style></svg><script>alert('$x^{')</script>&\u202e\x07\ud800\"'"


def scores(n_pos: int, n_neg: int, shift: float = 1.5, weight: float | None = None, seed: int = 0) -> ScoreCounts:
    random = np.random.default_rng(seed)
    y = np.repeat([1, -1], [n_pos, n_neg])
    values = random.normal(size=n_pos + n_neg) + shift * (y == 1)
    return ScoreCounts.from_scores(y, values, None if weight is None else np.full(len(y), weight))


@pytest.fixture(scope="module")
def report() -> Report:
    run = {
        "name": "Demo", "versions": {"python": "3.11"}, "run": "r1",
        "estimator": "PairwiseHingeClassifier", "solver": "all-pairs", "n_samples": 3000, "n_features": 3,
        "n_pos": 600, "n_neg": 2400, "metrics": {"train_auc": 0.85, "test_auc": 0.85, "test_auc_interval": [0.8, 0.9]},
        "certificate": {"primal": 0.2, "dual": 0.1999, "relative_gap": 5e-4, "status": "converged"},
        "passes": 40, "seconds": {"data": 0.1, "fit": 2.0, "evaluate": 0.1}, "warnings": [], "command": "aucdist train",
    }  # fmt: skip
    card = {"name": "demo", "training rows": 3000, "positive class": "a", "note": None}
    return with_decisions(Report(
        run=run, data=card, config="lam: 0.001\n",
        classes=[(scores(400, 1600), scores(200, 800, seed=1))], threshold=0.75,
        weights=[("age", 0.5), ("height", -2.0), ("unused", 0.0)],
        cost=[("Passes of the fit", "40")],
    ))  # fmt: skip


def with_decisions(report: Report, set_on: str = "training") -> Report:
    """Return the report with the results at its threshold, as a run without a target has them."""
    ((train, test),) = report.classes
    shown, rows = (train, "training") if test is None else (test, "test")
    point = point_of(shown, report.threshold, {}, rows, None) | {"set_on": set_on}
    if not shown.weighted:
        point["r_precision"] = recall_at_k(shown, shown.n_pos)
    return replace(report, run=report.run | {"decisions": point})


def with_test(report: Report, test: ScoreCounts | None) -> Report:
    """Return the report of other test rows."""
    with warnings.catch_warnings(action="ignore"):
        interval = None if test is None or test.weighted else auc_interval(test)
    return with_decisions(replace(report, classes=[(report.classes[0][0], test)], interval=interval))


def with_search(report: Report, search: dict) -> Report:
    """Return the report of a run whose parameters a search chose."""
    return replace(report, run=report.run | {"search": search})


@pytest.fixture(scope="module")
def page(report) -> str:
    return render_run_page(report)


class Tags(HTMLParser):
    """Collects what the tests look at."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in ("meta", "br", "wbr"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.text.append(data)


def text_of(page: str) -> str:
    return " ".join(" ".join(Tags(page).text).split())


def test_the_page_is_well_formed_and_stands_alone(page):
    tags = Tags(page)
    assert tags.open == []
    assert not {tag for tag, _ in tags.seen} & {"script", "link", "img", "iframe", "object", "image"}
    assert "http:" not in page
    assert "https:" not in page
    assert "@import" not in page
    for target in re.findall(r'url\(([^)]*)\)|href="([^"]*)"', page):
        assert "".join(target).startswith("#")


def test_ids_are_unique_and_every_reference_has_its_target(page):
    ids = [attrs["id"] for _, attrs in Tags(page).seen if "id" in attrs]
    assert len(ids) == len(set(ids))
    targets = re.findall(r'url\(#([^)]*)\)|href="#([^"]*)"', page)
    labels = [i for _, attrs in Tags(page).seen for i in (attrs.get("aria-labelledby") or "").split()]
    assert {a or b for a, b in targets} | set(labels) <= set(ids)


def test_figures_have_a_name_a_description_and_the_colours_of_the_page(page):
    figures = [attrs for tag, attrs in Tags(page).seen if tag == "svg"]
    assert len(figures) == 4
    assert all(attrs["role"] == "img" and attrs["aria-labelledby"] for attrs in figures)
    drawn = "".join(re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL))
    assert not re.search(r"#[0-9a-f]{6}\b", drawn)
    assert set(re.findall(r"var\(--(\w+)\)", drawn)) >= {"pos", "neg", "ink", "grid", "muted"}


def test_the_same_report_gives_the_same_page(report, page):
    assert render_run_page(report) == page


@pytest.mark.parametrize(
    ("estimator", "said"),
    [
        (
            "PairwiseHingeClassifier",
            "the threshold has the largest G-mean on the training rows, which the fit has seen.",
        ),
        ("LinkClassifier", "a row is flagged if its probability is above 0.5"),
        ("HingeClassifier", "the threshold is the intercept that was fitted"),
    ],
)
def test_the_default_threshold_is_that_of_the_estimator(report, monkeypatch, estimator, said):
    page = render_run_page(replace(report, run=report.run | {"estimator": estimator}))
    assert f"No target was given, so {said}" in text_of(page)


def test_the_page_says_how_another_threshold_is_set_and_on_which_rows(report, page):
    command = "To set another threshold without another fit, run aucdist threshold r1 --alerts 0.01"
    assert f"{command} , but new rows may miss the target, because the fit has seen these rows." in text_of(page)
    kept = text_of(render_run_page(with_decisions(report, "out_of_fold")))
    assert f"{command} ." in kept
    assert "has the largest G-mean on out-of-fold scores of the training rows: each" in kept


def test_the_verdict_comes_first_then_the_numbers_and_how_to_run_it_again(page):
    text = text_of(page)
    for expected in (
        "The objective is at most 0.051 % above the minimum",
        "95 % interval",
        "Training rows 3,000",
        "Positive class a", "lam: 0.001", "height", "The list has the 2 largest of 3 weights", "95 % band, test",
        "aucdist train r1/config.yaml repeats the run", "python 3.11", "Passes of the fit 40",
    ):  # fmt: skip
        assert expected in text
    assert "Before you rely on this run" not in text
    assert "unused" not in text
    headings = re.findall(r"<h2>([^<]+)</h2>", page)
    assert headings[:5] == ["Decisions", "Other thresholds", "Ranking", "Weights", "Data"]
    assert page.index('title="height"') < page.index('title="age"')
    order = [
        "Test AUC",
        "In this share of all pairs of a positive and a negative row, the positive one has the higher score.",
        "R-precision",
        "Threshold No target",
        "ROC curve",
    ]
    assert sorted(order, key=text.index) == order


def test_probabilities_get_their_diagram_and_losses(report, page):
    counts = report.classes[0][1].mapped(lambda v: 1 / (1 + np.exp(-v)))
    shown = render_run_page(replace(report, probabilities=counts))
    assert 'id="reliability-title"' in shown
    for expected in ("Brier score", "Log loss", "Calibration loss", "Expected calibration error"):
        assert expected in text_of(shown)
    assert "Reliability" not in text_of(page)


def test_the_shape_of_the_link_is_shown_where_it_was_found(report):
    counts = report.classes[0][1].mapped(lambda v: 1 / (1 + np.exp(-v)))
    page = render_run_page(replace(report, probabilities=counts, xi=-0.25))
    assert "The shape xi of the link is -0.25." in text_of(page)
    assert "of the link" not in text_of(render_run_page(replace(report, probabilities=counts)))


def test_the_average_precision_has_its_interval(report):
    run = report.run | {"metrics": report.run["metrics"] | {"test_average_precision_interval": [0.40123, 0.6]}}
    shown = text_of(render_run_page(replace(report, run=run)))
    assert (
        "95 % interval 0.4012 to 0.6000. The mean of the precision at each positive row. A random order would have 0.2."
        in shown
    )


def test_confusion_matrix_is_that_of_the_threshold(report, page):
    _, test = report.classes[0]
    caught = int(test.pos[test.values > 0.75].sum())
    cells = re.findall(r'<td class="(right|wrong)">([\d,]+)<', page)
    false = int(test.neg[test.values > 0.75].sum())
    expected = [("right", caught), ("wrong", 200 - caught), ("wrong", false), ("right", 800 - false)]
    assert cells[:4] == [(kind, str(n)) for kind, n in expected]
    assert f"Flagged: {caught + false} of 1,000 test rows ({(caught + false) / 10:.1f} %)." in page
    for rate in (caught / 200, caught / (caught + false)):
        assert f"{100 * rate:.1f}\u00a0%" in page


def baseline(auc: float, precision: float, **differences: tuple[float, float, float]) -> dict:
    """Return a baseline; `differences`: value and interval of each."""
    ends = {name: dict(zip(("value", "low", "high"), values, strict=True)) for name, values in differences.items()}
    rates = {"recall": 0.123, "precision": 0.456}
    return {"name": "LightGBM", "test_auc": auc, "average_precision": precision, "rates": rates, "differences": ends}


RATE = {"value": 0.08, "interval": None}
POINT = {"target": {"alerts": 0.05}, "rows": "test"} | dict.fromkeys(("recall", "fpr", "precision", "alerts"), RATE)
UP, UNSURE, DOWN = (0.02, 0.01, 0.03), (0.02, -0.01, 0.05), (-0.02, -0.03, -0.01)


@pytest.mark.parametrize(
    ("auc", "average_precision", "better"),
    [(UP, UNSURE, True), (DOWN, UP, True), (UNSURE, UNSURE, False), (DOWN, DOWN, False)],
)
def test_a_baseline_that_ranks_significantly_better_is_a_reason_to_look_on(report, auc, average_precision, better):
    other = baseline(0.7, 0.6, test_auc=auc, average_precision=average_precision)
    text = text_of(render_run_page(replace(report, run=report.run | {"baselines": [other]})))
    assert "Best other model 0.6000 The average precision of LightGBM. Its AUC is 0.7000." in text
    assert re.search(r"R-precision this model 0\.\d{4} 0\.\d{4} \d+\.\d % LightGBM 0\.7000 0\.6000 12\.3 % ", text)
    aimed = text_of(render_run_page(replace(report, run=report.run | {"baselines": [other], "operating_point": POINT})))
    assert re.search(
        r"Precision this model 0\.\d{4} 0\.\d{4} \d+\.\d % \d+\.\d % LightGBM 0\.7000 0\.6000 12\.3 % 45\.6 %", aimed
    )
    said = {
        UP: "{} of LightGBM is higher than that of this model by 0.02 (95 % interval 0.01 to 0.03).",
        UNSURE: "{} of LightGBM is higher than that of this model by 0.02, but not significantly (95 % interval -0.01 to 0.05).",
        DOWN: "{} of this model is higher than that of LightGBM by 0.02 (95 % interval 0.01 to 0.03).",
    }
    assert said[auc].format("The test AUC") in text
    assert said[average_precision].format("The test average precision") in text
    command = (
        "aucdist cv r1/config.yaml --set metric=average_precision --set 'grid={features: [null, {map: bins, interactions: "
        "10}], lam: [1e-2, 1e-3, 1e-4, 1e-5]}'"
    )
    advice = f"To look for a better model that can still be read, run {command} . If nobody has to read it"
    assert (advice in text.replace("&#39;", "'")) == better


def test_baselines_of_weighted_rows_are_not_tested(report):
    other = baseline(0.999, 0.999) | {"rates": {"recall": None, "precision": None}}
    weighted = with_test(report, scores(200, 800, weight=0.5))
    text = text_of(render_run_page(replace(weighted, run=weighted.run | {"baselines": [other]})))
    assert "LightGBM 0.9990 0.9990" in text
    assert "of LightGBM is higher" not in text


def test_where_positives_are_rare_a_baseline_with_more_precision_is_a_reason_to_look_on(report):
    random = np.random.default_rng(0)
    scores, y = random.normal(size=1000), np.where(np.arange(1000) < 20, 1, -1)
    test = ScoreCounts.from_scores(y, scores + (y > 0), None)
    other = baseline(0.5, 0.9, test_auc=DOWN, average_precision=UP)
    rare = replace(
        report, run=report.run | {"baselines": [other]}, classes=[(report.classes[0][0], test)], map_name=None
    )
    text = text_of(render_run_page(rare))
    assert "To look for a better model" in text


def test_without_a_target_the_top_of_the_list_is_a_tile_and_the_default_threshold_is_not(report):
    y, values = np.where(np.arange(1000) < 20, 1, -1), np.zeros(1000)
    values[:15], values[20:25] = 2.0, 1.0  # five negatives are among the twenty highest scores
    test = ScoreCounts.from_scores(y, values, None)
    page = render_run_page(with_test(report, test)).replace("\u00a0", " ")
    tiles, rest = text_of(page).split("Threshold No target", 1)
    assert (
        "R-precision 75.0 % 15 of the 20 test rows with the highest scores are positive. This is the precision of as many rows "
        "as there are positive ones. A random order would have 2.0 %."
    ) in tiles
    for name in ("Recall", "Precision ", "Alerts"):
        assert name not in tiles
    assert "Flagged: 20 of 1,000 test rows (2.0 %)." in rest.split("Decisions")[1]
    weighted = text_of(render_run_page(with_test(report, ScoreCounts.from_scores(y, values, np.full(1000, 2.0)))))
    aimed = text_of(render_run_page(replace(report, run=report.run | {"operating_point": POINT})))
    for text in (weighted, aimed):
        assert "with the highest scores" not in text
        assert " Recall " in text.split("Decisions")[0]


def test_without_an_alert_the_precision_is_undefined(report):
    y, values = np.where(np.arange(100) < 1, 1, -1), np.zeros(100)
    rows = with_decisions(replace(with_test(report, ScoreCounts.from_scores(y, values, None)), threshold=1.0))
    aimed = text_of(render_run_page(replace(rows, run=rows.run | {"operating_point": POINT})))
    assert "Precision undefined no test row is flagged Alerts 0 " in aimed
    text = text_of(render_run_page(rows))
    assert "0 of the 1 test row with the highest scores is positive." in text
    assert "Flagged: 0 of 100 test rows (0.0 %)." in text
    assert "Precision undefined Balanced accuracy 50.0 %" in text.replace("\u00a0", " ")
    assert "undefined" in text.split("Other thresholds")[1].split("Ranking")[0]
    assert "0 of 0 alerts" not in text


def test_a_tile_has_the_alerts(report):
    _, test = report.classes[0]
    above = test.values > 0.75
    caught, false = int(test.pos[above].sum()), int(test.neg[above].sum())
    page = render_run_page(replace(report, run=report.run | {"operating_point": POINT}))
    for said in (
        f"; {200 - caught} of 200 positive test rows are missed Precision ",
        f"; {false} of {caught + false} alerts are false Alerts {caught + false} ",
        f" {(caught + false) / 10:.1f} % of the test rows have a score above the threshold",
    ):
        assert said in text_of(page)


@pytest.mark.parametrize("pairs", [[], [{"name": "age, height", "note": "", "figure": ""}]], ids=["without", "with"])
def test_bins_that_lose_are_told_of_interactions_only_where_they_have_none(report, pairs):
    additive = {
        "interactions": pairs, "ranking": [("age", 1.0)], "n_halves": None, "shapes": [],
        "points": [], "pair_points": [], "reach": 1.0, "binary": set(), "widest": 1.0,
    }  # fmt: skip
    other, run = baseline(0.9, 0.9, test_auc=UP, average_precision=UP), "my runs/x"
    bins = replace(report, run=report.run | {"run": run, "baselines": [other]}, map_name="bins", additive=additive)
    text = text_of(render_run_page(bins)).replace("&#39;", "'")
    maps, lam = "features: [bins, {map: bins, interactions: 10}]", "lam: [1e-2, 1e-3, 1e-4, 1e-5]"
    grid = lam if pairs else f"{maps}, {lam}"
    command = f"aucdist cv '{run}'/config.yaml --set metric=average_precision --set 'grid={{{grid}}}'"
    best = f"aucdist train '{run}'/config.yaml --set model.features=auto --set model.lam=null , which also tries trees."
    assert f"run {command} . If nobody has to read it, take what ranks best: run {best}" in text
    searched = search([row({"lam": 0.1}, [0.8, 0.9]), row({"lam": 0.2}, [0.7, 0.8])])
    text = text_of(render_run_page(with_search(bins, searched))).replace("&#39;", "'")
    assert lam not in text
    assert ("'grid={features:" in text) == (not pairs)
    assert best in text


def test_hostile_text_is_escaped_everywhere(report):
    run = report.run | {"name": EVIL, "run": EVIL, "solver": EVIL, "estimator": EVIL}
    run["certificate"] = run["certificate"] | {"status": EVIL}
    hostile = replace(report, run=run, data={EVIL: EVIL}, config=EVIL, weights=[(EVIL, 1.0)])
    page = render_run_page(hostile)
    page.encode("utf-8")
    assert "<script" not in page
    assert "alert" in text_of(page)
    assert Tags(page).open == []


def test_warnings_come_first(report):
    certificate = {"primal": 0.2, "dual": -1.0, "relative_gap": 6.0, "status": "max-passes"}
    entry = {
        "key": "few",
        "text": "Choose by `folds={duplicates: together}; grid={lam: [1, 2]}`, `data.test=x y` or `a=b`, not <b>",
    }
    untested = with_test(report, None)
    page = render_run_page(replace(untested, run=untested.run | {"certificate": certificate, "warnings": [entry]}))
    said = re.search(r"<li>(Choose.*?)</li>", page)[1].replace("&#39;", "'")
    assert said == (
        "Choose by <code>aucdist cv r1/config.yaml --set 'folds={duplicates: together}' --set 'grid={lam: [1, 2]}'</code>, "
        "<code>aucdist train r1/config.yaml --set 'data.test=x y'</code> or <code>a=b</code>, not &lt;b&gt;"
    )
    head = text_of(page)[: text_of(page).index("Ranking")]
    for expected in ("Before you rely on this run", "Training AUC"):
        assert expected in head
    assert "test rows" not in text_of(page)


def test_weighted_rows_have_no_interval_and_no_band(report):
    text = text_of(render_run_page(with_test(report, scores(200, 800, weight=0.5))))
    assert "no interval for weighted rows" in text
    assert "95 % band" not in text
    assert "Weight per bar" in text


@pytest.mark.parametrize(
    "test",
    [
        ScoreCounts.from_scores(np.array([1, -1]), np.array([2.0, 1.0])),
        ScoreCounts.from_scores(np.array([1, -1, -1]), np.zeros(3)),
        ScoreCounts.from_scores(np.repeat([1, -1], [3, 4000]), np.r_[np.full(3, 1e12), np.linspace(-1, 1, 4000)]),
    ],
    ids=["two rows", "constant", "outliers"],
)
def test_odd_scores_can_be_drawn(report, test):
    assert "Average precision" in text_of(render_run_page(replace(with_test(report, test), weights=[])))


def test_one_class_is_refused(report):
    with pytest.raises(InputError, match="one class only"):
        render_run_page(with_test(report, ScoreCounts.from_scores(np.array([1]), np.array([0.0]))))


def test_a_page_of_many_rows_and_rounds_stays_small(report):
    big = replace(
        report,
        classes=[(scores(5_000, 60_000), scores(2_000, 40_000, seed=3))],
        weights=[(f"feature {i}", i / 7) for i in range(20_000)],
    )  # fmt: skip
    assert len(render_run_page(big).encode()) < 1_500_000


@pytest.mark.parametrize("n_points", [10, 1000])
def test_thinning_keeps_the_ends_and_stays_near_the_curve(n_points):
    x = np.r_[np.zeros(20_000), np.linspace(0, 1, 50_000) ** 3]
    y = np.r_[np.linspace(0, 0.8, 20_000), np.linspace(0.8, 1, 50_000)]
    kept = thin(x, y, n_points)
    assert len(kept) <= n_points + 2
    assert (kept[0], kept[-1]) == (0, len(x) - 1)
    assert (np.diff(kept) > 0).all()
    gaps = np.abs(np.diff(x[kept])) + np.abs(np.diff(y[kept]))
    assert gaps.max() <= 3 / n_points
    assert thin(np.zeros(5000), np.zeros(5000)).tolist() == [0, 4999]
    assert thin(x[:7], y[:7], n_points).tolist() == list(range(7))


def test_the_range_of_the_histogram_leaves_outliers_out():
    counts = ScoreCounts.from_scores(np.tile([1, -1], 5000), np.r_[np.linspace(0, 1, 9998), -1e9, 1e9])
    low, high = central_range(counts)
    assert 0 <= low < 0.01
    assert 0.99 < high <= 1


# ---- probability figures -----------------------------------------------------------------------


def counts(share, weighted=False):
    r = np.random.default_rng(0)
    p = np.clip(share * r.gamma(1.0, size=4000), 0, 1)
    y = np.where(r.random(4000) < p, 1, -1)
    return ScoreCounts.from_scores(y, p, np.full(4000, 0.5) if weighted else None)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("share", "log"), [(0.3, False), (0.01, True)])
def test_reliability_diagram(share, log, weighted):
    svg = inline_svg("r", "Reliability", "d", lambda axes: reliability_diagram(axes, counts(share, weighted)))
    assert ("log scale" in svg) == log
    assert ("95 % interval" in svg) == (not weighted)
    assert "Share of positives" in svg
    assert "nan" not in svg.lower().replace("#", "")


def test_a_rare_class_without_positives_in_some_bins_is_drawn():
    counts = ScoreCounts.from_scores(np.where(np.arange(1000) > 997, 1, -1), np.linspace(1e-6, 1e-3, 1000))
    assert "<svg" in inline_svg("r", "t", "d", lambda axes: reliability_diagram(axes, counts))


def test_scores_are_refused():
    with pytest.raises(InputError, match="predict_proba"):
        reliability_diagram(None, ScoreCounts.from_scores(np.array([1, -1]), np.array([3.0, -2.0])))


# ---- what the page shows of a search ---------------------------------------------------------


def row(parameters, folds, **more):
    failed = None in folds
    mean = None if failed else sum(folds) / len(folds)
    return {
        "parameters": parameters, "folds": folds, "mean": mean, "deviation": None if failed else 0.02,
        "standard_error": None if failed else 0.01, "max_passes": 1000,
        "passes": 12, "not_converged": 0, "errors": ["it broke"] if failed else [], **more,
    }  # fmt: skip


def search(table, best=0, **more):
    return {
        "best": table[best]["parameters"], "score": 0.9, "interval": [0.85, 0.95], "metric": "auc", "rule": "best",
        "folds": {"number": 5, "repeats": 2, "seed": 0, "duplicates": "apart"}, "test_over_train": 0.25, "table": table,
        "nested": None, "placement": "tasks", "tasks": {"all": 10, "kept": 3, "failed": 0}, "seconds": 3.0, **more,
    }  # fmt: skip


PATH = [row({"lam": lam}, [0.8 + 0.01 * i, 0.82]) for i, lam in enumerate((1.0, 0.1, 0.01))]


def test_features_kept_have_a_column_where_they_are_known(report):
    assert "features kept" not in text_of(render_run_page(with_search(report, search(PATH))))
    table = [{**PATH[0], "features_kept": [3, 3]}, {**PATH[1], "features_kept": [12, 1400]}, PATH[2]]
    page = render_run_page(with_search(report, search(table)))
    assert Tags(page).open == []
    assert "features kept" in text_of(page)
    assert re.findall(r"<td>12</td><td>([^<]*)</td>", page) == ["3", "12 to 1,400", ""]


def test_a_search_over_one_parameter_is_drawn(report):
    page = render_run_page(with_search(report, search(PATH, best=2)))
    assert Tags(page).open == []
    text = text_of(page)
    for expected in (
        "Chosen: lam 0.01. The mean AUC over 2 folds is 0.9000 (95 % interval 0.8500 to 0.9500).",
        "The search compared 3 settings by 5-fold cross-validation, repeated 2 times, stratified by class.",
        "which is slightly optimistic",
        "AUC against lam",
        "aucdist train",
    ):
        assert expected in text
    assert text.count("chosen") >= 2


@pytest.mark.parametrize(
    "table",
    [
        [row({"solver": s}, [0.8, 0.9]) for s in ("all-pairs", "sdcd")],
        [row({"lam": 1.0}, [0.8, 0.9])],
        [row({"lam": 1.0}, [0.8, 0.9]), row({"lam": 0.1}, [None, 0.9])],
        [row({"lam": 0.0}, [0.8, 0.9]), row({"lam": -1.0}, [0.7, 0.9], not_converged=1)],
        [row({"lam": lam, "a": a, "b": b}, [0.8, 0.9]) for lam, a, b in itertools.product((1, 2), (1, 2), (1, 2))],
        [row({"features": f, "max_fpr": m}, [0.8, 0.9]) for f, m in ((None, 0.1), ("bins", 0.1), (None, None))],
    ],
    ids=["words", "one", "failed", "not positive", "three", "no grid"],
)
def test_any_search_can_be_shown(report, table):
    text = text_of(render_run_page(with_search(report, search(table))))
    assert ("it broke" in text) == any(r["errors"] for r in table)
    assert ("1 of 2 fits not converged" in text) == any(r["not_converged"] for r in table)


def test_the_paragraphs_state_folds_rule_and_score(report):
    def text(of):
        return text_of(render_run_page(with_search(report, of)))

    nested = [{"repeat": 0, "fold": 0, "parameters": {"lam": 1.0}, "value": 0.8}]
    folds = {"number": 4, "repeats": 1, "seed": 0, "groups": "patient"}
    one_se = search(PATH, rule="one-se", nested=nested, folds=folds)
    for expected in ("each patient kept together", "one standard error", "were not used to choose the setting"):
        assert expected in text(one_se)
    assert "by nested cross-validation" in search_verdict(one_se)
    for metric, words in (
        ("average_precision", "average precision"),
        ("partial_auc@0.05", "partial AUC at FPR ≤ 0.05"),
    ):
        assert f"The mean {words} " in search_verdict(one_se | {"metric": metric})
    time = search(PATH, folds={"number": 4, "repeats": 1, "seed": 0, "time": "day"}, score=None, interval=None)
    assert "in the order of day" in text(time)
    assert "a fold failed" in search_verdict(time)
    equal = search(PATH, folds={"number": 4, "repeats": 1, "seed": 0, "duplicates": "together"})
    assert "equal rows kept together" in text(equal)
    for fitted in (3, 5):
        said = text(search(PATH, folds={"number": 5, "fitted": fitted, "repeats": 1, "seed": 0}))
        assert ("The search planned 5 folds and ended after 3." in said) == (fitted == 3)
        assert ("5-fold" in said) == (fitted == 5)


def test_a_long_table_shows_the_best(report):
    table = [row({"lam": float(i)}, [i / 100, i / 100]) for i in range(1, 90)] + [row({"lam": 0.5}, [None, 0.1])]
    rows = search_section(search(table, best=88))["rows"]
    assert len(rows) == 60
    assert rows[0]["parameters"] == {"lam": 89.0}
    assert math.isclose(rows[-1]["mean"], 0.30)
    assert "30 more settings, with worse means" in text_of(render_run_page(with_search(report, search(table, best=88))))


# ---- the page of a comparison ----------------------------------------------------------------


NAMES = ("auc", "average_precision", "g_mean", "balanced_accuracy")


def pair(first, second, value, p, low=None, high=None):
    return {
        "first": first, "second": second, "value": value, "low": low, "high": high, "p_value": p, "p_holm": p,
        "level": 0.95, "method": "delong",
    }  # fmt: skip


@pytest.fixture
def result():
    def run(name, warnings=()):
        about = {"name": name, "run": "r", "estimator": "E", "solver": "s", "seconds": 2.0, "warnings": [*warnings]}
        return about | {key: {"value": 0.9, "interval": [0.85, 0.95]} for key in NAMES}

    return {
        "run": "c", "n_pos": 20, "n_neg": 80, "runs": [run("a", ["few rows"]), run("<b>", ["few rows"])],
        "same_scores": [], "settings": [{"setting": "model.lam", "values": {"a": "0.1", "<b>": "<i>"}}],
        "differences": {
            "auc": [pair("a", "<b>", -0.02, 0.01, -0.03, -0.01)],
            "average_precision": [pair("a", "<b>", 0.1, 0.2)],
        },
    }  # fmt: skip


def test_the_page_begins_with_the_comparison_of_the_auc(result):
    page = render_comparison_page(result, [("a", scores(20, 80)), ("<b>", scores(20, 80, seed=1))])
    text = text_of(page)
    assert Tags(page).open == []
    assert "<b>" not in page
    assert "The test AUC of <b> is higher than that of a by 0.02 (95 % interval 0.01 to 0.03, p = 0.01)." in text
    assert "both runs: few rows" in text
    assert "no bound to no bound" in text
    shown = ("Comparison of 2 runs", "20 positive and 80 negative", "0.8500 to 0.9500", "model.lam 0.1 <i>")
    assert all(expected in text for expected in shown)


def test_a_warning_of_several_runs_is_printed_once(result):
    texts = {"a": ["Do `x one/config.yaml`."], "b": ["Do `x two/config.yaml`.", "Few rows."], "c": ["No rows."]}
    runs = [
        {"name": name, "run": folder, "warnings": texts[name]}
        for name, folder in (("a", "one"), ("b", "two"), ("c", "c"))
    ]
    assert warnings_of_runs({"runs": runs}) == ["a, b: Do `x one/config.yaml`.", "b: Few rows.", "c: No rows."]
    assert warnings_of_runs({"runs": runs[:2]}) == ["both runs: Do `x one/config.yaml`.", "b: Few rows."]


def test_an_insignificant_difference_is_not_claimed(result):
    result["differences"]["auc"] = [pair("a", "b", 0.001, 0.4, -0.001, 0.003), pair("a", "c", 0.0, 1.0, -0.1, 0.1)]
    unsure, same, _ = comparison_sentences(result)
    assert unsure.startswith(
        "The test AUC of a is higher than that of b by 0.001, but not significantly (95 % interval -0.001 to 0.003, p = 0.4)."
    )
    assert same == "a and c have the same test AUC."
    assert p_text(1e-9) == "below 0.0001"


def test_the_categories_of_a_column_are_one_figure_with_what_a_row_of_each_adds(report):
    names, shares = ("fault=me", "fault=you", "age"), (0.6, 0.3, 0.5)
    values = np.array([[-0.6, 0.4], [0.3, -0.7], [-0.1, 0.1]])
    shapes = tuple(
        Shape(
            j,
            np.array([0.5 + 1e-14 * j]),
            values[j],
            np.array([1 - share, share]),
            None,
            np.arange(2.0),
            np.array([0.0, 1.0]),
        )
        for j, share in enumerate(shares)
    )
    schema = Schema(names, "bad", ("yes",), ("no",), {"fault": ("me", "you")})
    parts = Additive(0.0, shapes, ())
    section = additive_section(parts, schema, None, None, None, 100)
    assert [name for name, _ in section["ranking"]] == ["fault", "age"]
    (_, of_fault), bars = section["ranking"][0], section["shapes"][0]["bars"]
    assert [value for value, _, _ in bars] == ["me", "other values", "you"]
    np.testing.assert_allclose([row[1:] for row in bars], [[0.6, 0.7], [0.1, -0.3], [0.3, -1.3]])
    assert of_fault == pytest.approx(math.sqrt(sum(share * adds**2 for _, share, adds in bars)))
    assert section["reach"] == pytest.approx(1.3)
    page = render_run_page(replace(report, map_name="bins", additive=section, run=report.run | {"n_samples": 100}))
    assert page.count('<li class="few">') == page.count('<li class="few"><bdi title="other values">') == 1
    text = text_of(page).replace("\u00a0", " ")
    # a row has one category, so 100 points are possible
    assert (
        "fault you 0.0 30.0 % fault other values 45.5 10.0 % fault me 90.9 60.0 % age 0 0.0" in text
    )  # no "up to 0.5"
    assert "fault from -1.3 to 0.7 me (60.0 %) 0.70 other values (10.0 %) -0.30 you (30.0 %) -1.30 age" in text
    assert "The sum is 0 for the lowest possible score and 100 for the highest. Values with equal points" in text
    bands = [(shape.values, shape.values) for shape in shapes]
    banded = additive_section(parts, schema, None, bands, 2, 100)
    assert {shape["name"] for shape in banded["shapes"]} == set(names)


def test_the_points_of_a_model_with_interactions_are_not_called_its_score(report):
    edge, half = np.array([0.5]), np.array([0.5, 0.5])
    shapes = tuple(
        Shape(j, edge, np.array([-size, size]), half, None, np.arange(2.0), np.array([0.0, 1.0]))
        for j, size in enumerate((0.3, 0.2))
    )
    pair = InteractionShape((0, 1), (edge, edge), (False, False), np.array([[0.5, -0.5], [-0.5, 0.5]]), (half, half))
    schema = Schema(("age", "sum"), "bad", ("yes",), ("no",), {})
    section = additive_section(Additive(0.0, shapes, (pair,)), schema, None, None, None, 100)
    # The shapes span 1, which is 100 points, so 0.5 of the score is 50 points.
    assert section["pair_points"] == [("age & sum", pytest.approx(-50.0), pytest.approx(50.0))]
    assert sum(points for *_, points, _ in section["points"]) == pytest.approx(100.0)
    page = render_run_page(replace(report, map_name="bins", additive=section, run=report.run | {"n_samples": 100}))
    text = text_of(page)
    assert Tags(page).open == []
    assert "Table of points of the shapes, without the interactions" in text
    assert (
        "The sum is 0 for the lowest possible sum of the shapes and 100 for the highest. These points are not the"
        in text
    )
    assert "Interaction Fewest points Most points age & sum -50.0 +50.0" in text


def test_an_edge_that_scaling_moved_away_from_0_is_shown_as_0():
    shape = SimpleNamespace(
        edges=np.array([1.1e-16, 1.0]), extremes=np.array([-4e-16, 3.0]), distinct=False, missing=None,
        shares=np.full(3, 1 / 3), values=np.arange(3.0),
    )  # fmt: skip
    assert [cell[0] for cell in cells_of(shape)] == [(0.0, 0.0), (0.0, 1.0), (1.0, 3.0)]

"""Write the page of a run of two or of several classes: verdict, warnings, figures, tables, and how to run it again."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from aucdist.errors import Json
from aucdist.metrics import decisions, ranking
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.intervals import Estimate
from aucdist.report import plots
from aucdist.report.plots import share_of_positives
from aucdist.report.sections import search_section
from aucdist.report.text import (
    baseline_tests,
    best_baselines,
    decision_rows,
    directions_text,
    group_rows,
    objectives_text,
    operating_points_text,
    render_template,
    search_verdict,
    warning_texts,
)
from aucdist.text import auc_text, certificate_text, count_text, number_text, proved_excess, rounded_up_text

TOP_WEIGHTS = 30
SHARES = (0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""The shares of flagged rows in the table of thresholds."""
MISTAKES = 12
CURVE_POINTS = 80
TILES = ("R-precision", "Flagged", "Precision", "Recall")
"""The rows of the result that tiles of the page, or the section about decisions, show."""


@dataclass(frozen=True)
class Report:
    """The contents of the page of a run.

    Attributes
    ----------
    run : dict
        The content of ``metrics.json`` of the run.
    data : dict
        Name, source, counts and note of the data, in the order of the page. Entries that are None or empty are left out.
    config : str
        The resolved configuration, as YAML.
    classes : sequence of tuple (ScoreCounts, ScoreCounts or None)
        For each class, the counts of X w of the training rows and of the test rows. For two classes, it has only the positive
        one. None stands for counts that do not exist: without test rows, or if one of the two sides has no rows.
    cost : sequence of tuple (str, str)
        Label and value of each cost of the run.
    interval : Estimate or None
        For two classes, the confidence interval of the AUC of the test rows, or else of the training rows. None if the rows are
        weighted.
    threshold : float
        For two classes, the threshold of X w. The scores of the model are X w - threshold, so they are positive above it.
    weights : sequence of tuple (str, float)
        For two classes, the feature names and their weights in any order. The page shows the largest.
    probabilities : ScoreCounts or None
        For two classes, the probabilities of the test rows, or else of the training rows, if the model has probabilities.
    xi : float or None
        For two classes, the shape parameter of a GEV link.
    additive : dict or None
        For two classes, the result of `aucdist.report.sections.additive_section` for a model of binned features. The page shows
        it in place of the weights.
    map_name : str or None
        For two classes, the feature map of the model. The certificate holds for the features that this map returns.
    max_fpr : float or None
        For two classes, the false positive rate up to which the partial AUC was trained.
    confusions : ndarray of shape (n_classes, n_classes), int64, or None
        For several classes, how many test rows of each class were predicted to be of each class. None without test rows.
    """

    run: Json
    data: Json
    config: str
    classes: Sequence[tuple[ScoreCounts, ScoreCounts | None]]
    cost: Sequence[tuple[str, str]] = ()
    interval: Estimate | None = None
    threshold: float = 0.0
    weights: Sequence[tuple[str, float]] = ()
    probabilities: ScoreCounts | None = None
    xi: float | None = None
    additive: Json | None = None
    map_name: str | None = None
    max_fpr: float | None = None
    confusions: np.ndarray | None = None


def render_run_page(report: Report) -> str:
    """Return the page as HTML. Equal reports give equal text.

    Raises
    ------
    InputError
        If the training or the test scores of two classes have one class only.
    """
    values, search = _several(report) if "classes" in report.run else _two_classes(report), report.run.get("search")
    if search:
        values["sentences"].append(("Search", search_verdict(search)))
    return render_template(
        Path(__file__).with_name("run.html"),
        title=report.run["name"],
        report=report,
        run=report.run,
        search=search and search_section(search),
        warnings=warning_texts(report.run),
        notes=warning_texts(report.run, notes=True),
        **values,
    )


# ---- two classes ---------------------------------------------------------------------------------------------------------------


def _two_classes(report: Report) -> Json:
    ((train, test),), run = report.classes, report.run
    shown, rows = (train, "training") if test is None else (test, "test")
    reliability: Json = {}
    if (counts := report.probabilities) is not None:
        from aucdist.metrics import probability  # loads SciPy

        metrics = {
            "Brier score": probability.brier,
            "Log loss": probability.log_loss,
            "Calibration loss": probability.calibration_loss,
            "Refinement loss": probability.refinement_loss,
            "Expected calibration error": probability.expected_calibration_error,
        }
        losses = [(name, number_text(metric(counts))) for name, metric in metrics.items()]
        reliability = {
            "figure": plots.inline_svg(
                "reliability", "Reliability", ", ".join(map(" ".join, losses)), plots.reliability_diagram, counts=counts
            ),
            "losses": losses,
        }
    results = dict(decision_rows(run))
    sentences = [
        *((label, text) for label, text in results.items() if label not in TILES),
        *(group_rows(run["groups"]) if "groups" in run else []),
        ("Other models", " ".join(baseline_tests(run))),
        ("What to try", _advice(report)),
        ("Directions", directions_text(run["free"]) if "free" in run else ""),
    ]
    return {
        "which": rows,
        "sentences": [row for row in sentences if row[1]],
        "flagged": results["Flagged"],
        "highest": results.get("R-precision", "").partition(": ")[2],
        "r_precision": decisions.recall_at_k(shown, shown.n_pos),
        "area": ranking.auc(shown),
        "error": (error := ranking.auc_error(shown)) and rounded_up_text(error),
        "train_area": ranking.auc(train),
        "interval": report.interval,
        "average_precision": ranking.average_precision(shown),
        "prevalence": share_of_positives(shown),
        "certificate": certificate_text(run["certificate"]),
        "figures": _pictures(report, shown, rows),
        "decision": _decision(report, shown, rows),
        "thresholds": _thresholds(report, shown),
        "reliability": reliability,
        "additive": report.additive,
        "weights": sorted((w for w in report.weights if w[1] != 0), key=lambda w: (-abs(w[1]), w[0]))[:TOP_WEIGHTS],
    }


def _advice(report: Report) -> str:
    """Return what to try if a baseline is significantly better."""
    if not any(test["low"] > 0 for *_, test in best_baselines(report.run)):
        return ""
    grid, advice = [], ""
    if report.map_name is None or (report.additive and not report.additive["interactions"]):
        grid.append(f"features: [{report.map_name or 'null'}, {{map: bins, interactions: 10}}]")
    if "lam" not in report.run.get("search", {}).get("best", {}):
        grid.append("lam: [1e-2, 1e-3, 1e-4, 1e-5]")
    config = f"{shlex.quote(report.run['run'])}/config.yaml"
    if grid:
        command = f"aucdist cv {config} --set metric=average_precision --set 'grid={{{', '.join(grid)}}}'"
        advice = f"To look for a better model that can still be read, run `{command}`. "
    # The configuration has a value of lam. While it is there, no other value would be tried.
    command = f"{report.run['command']} {config} --set model.features=auto --set model.lam=null"
    return f"{advice}If nobody has to read it, take what ranks best: run `{command}`, which also tries trees."


def _pictures(report: Report, shown: ScoreCounts, rows: str) -> dict[str, str]:
    """Return the SVG of each figure that the data allow."""
    curve = f"The {rows} curve has an AUC of {auc_text(ranking.auc(shown))}; chance has 0.5."
    point = report.run.get("operating_point")
    train, test = report.classes[0]
    figures = {
        "roc": ("ROC curve", curve, lambda axes: plots.roc(axes, train, test, log_x=False)),
        "roc-low": (
            "ROC curve at low false positive rates",
            curve,
            lambda axes: plots.roc(
                axes,
                train,
                test,
                log_x=True,
                point=point and (point["fpr"]["value"], point["recall"]["value"]),
                max_fpr=report.max_fpr,
            ),
        ),
        "pr": (
            "Precision and recall",
            f"The {rows} curve has an average precision of {auc_text(ranking.average_precision(shown))}; a random order has "
            f"{number_text(share_of_positives(shown), 2)}.",
            lambda axes: plots.precision_recall(axes, train, test),
        ),
        "scores": (
            "Scores by class",
            f"{count_text(shown.rows_pos)} positive and {count_text(shown.rows_neg)} negative {rows} rows; "
            "rows with scores above 0 are flagged.",
            lambda axes: plots.score_distributions(axes, shown, report.threshold),
        ),
    }
    return {name: plots.inline_svg(name, *parts) for name, parts in figures.items()}


def _decision(report: Report, shown: ScoreCounts, rows: str) -> Json:
    """Return the confusion matrix of the rows, its rates, and intervals of some of the rates."""
    table, ends = decisions.confusion(shown, report.threshold), {}
    alerts = table["tp"] + table["fp"]
    if rows == "test" and not shown.weighted:  # on rows that set the threshold, intervals would be too narrow
        point = decisions.operating_point(shown, report.threshold)
        ends = {
            "recall": (point.recall.low, point.recall.high),
            "specificity": (1 - point.fpr.high, 1 - point.fpr.low),
        }
        if alerts:
            ends["precision"] = (point.precision.low, point.precision.high)
    return {
        "table": table,
        "rates": {
            "recall": decisions.recall(table),
            "specificity": decisions.specificity(table),
            "precision": decisions.precision(table) if alerts else None,
            "balanced accuracy": decisions.balanced_accuracy(table),
            "G-mean": decisions.g_mean(table),
        },
        "ends": ends,
    }


def _thresholds(report: Report, shown: ScoreCounts) -> list[Json]:
    """Return the table of thresholds: the rates at several shares of flagged rows, and at the model's own threshold."""
    cost = report.run.get("operating_point", {}).get("target", {}).get("cost")
    if cost and decisions.Costs(**cost).differ_by_row:
        cost = None  # the counts do not contain the costs of single rows
    n = shown.n_pos + shown.n_neg
    cuts = {decisions.threshold_at(shown, alerts=share) for share in SHARES if share * n >= 1}
    rows = []
    for cut in sorted({*cuts, report.threshold}, reverse=True):
        table = decisions.confusion(shown, cut)
        alerts = table["tp"] + table["fp"]
        row: Json = {
            "score": cut - report.threshold,
            "chosen": cut == report.threshold,
            "alerts": alerts,
            "share": alerts / n,
            "recall": decisions.recall(table),
            "precision": decisions.precision(table) if alerts else None,
            "point": None if shown.weighted else decisions.operating_point(shown, cut),
        }
        if cost:
            row["cost"] = decisions.expected_cost(shown, cut, **cost)
            row["spread"] = None if shown.weighted else decisions.expected_cost_interval(shown, cut, **cost)
        if alerts or row["chosen"]:
            rows.append(row)
    return rows


# ---- several classes -----------------------------------------------------------------------------------------------------------


def _several(report: Report) -> Json:
    run, rows, tested = report.run, report.run["classes"], report.confusions is not None
    said = [("Thresholds", operating_points_text(rows))] if "operating_point" in rows[0] else []
    curves = [train if test is None else test for train, test in report.classes]
    part = "test_auc" if tested else "train_auc"
    order = sorted(range(len(rows)), key=lambda k: (rows[k][part] is None, rows[k][part] or 0.0, k))
    confusions: Json = {}
    if report.confusions is not None:
        names = [rows[k]["name"] for k in order]
        table = report.confusions[np.ix_(order, order)]
        shares = table / np.array([[max(rows[k]["test_pos"], 1)] for k in order])
        wrong = shares - np.diag(np.diag(shares))
        # A row may have both of two topics. Then neither prediction would be wrong.
        largest = [] if run["topics"] else np.argsort(-wrong, axis=None, kind="stable")[:MISTAKES].tolist()
        places = (divmod(place, len(names)) for place in largest)
        confusions = {
            "names": names,
            "table": table.tolist(),
            "shares": shares.tolist(),
            "largest": [(i, j) for i, j in places if table[i, j] > 0 and i != j],
        }
    return {
        "which": "test" if tested else "training",
        "sentences": [*said, ("Certificates", objectives_text(run))],
        "classes": [rows[k] | {"excess": proved_excess(rows[k]["certificate"])} for k in order],
        "confusions": confusions,
        "curves": [(rows[k]["name"], rows[k][part], _roc_pairs(curves[k])) for k in order],
    }


def _roc_pairs(counts: ScoreCounts) -> list[tuple[float, float]]:
    """Return points of the ROC curve. There are none if one side has no rows."""
    if counts.n_pos == 0 or counts.n_neg == 0:
        return []
    fpr, tpr = plots.thinned(*ranking.roc_curve(counts), CURVE_POINTS)
    return list(zip(fpr.tolist(), tpr.tolist(), strict=True))

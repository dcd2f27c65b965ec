"""The page of a run, of two classes or of several: verdict, warnings, figures, tables, and how to run it again."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from aucdist.metrics import decisions, ranking
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.curves import roc_curve
from aucdist.metrics.intervals import IntervalWarning
from aucdist.report import plots
from aucdist.report.additive import AdditiveModel, additive_section
from aucdist.report.html import render_template
from aucdist.report.search import search_section
from aucdist.report.text import (
    auc_text,
    certificate_text,
    cost_of_100_text,
    count_text,
    directions_text,
    group_sentences,
    number_text,
    operating_point_text,
    operating_points_text,
    percent_text,
    proved_excess,
    rounded_up_text,
    search_verdict,
    seconds_text,
    threshold_origin_text,
    wanted_text,
)

TOP_WEIGHTS = 30
SHARES = (0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""Shares of the rows that the table of thresholds flags."""
MISTAKES = 12
MANY = 40
"""Classes above which the picture has the whole width of the page."""
NAME = 24
"""Characters of a name in a picture."""
CURVE_POINTS = 80
POINT = {"recall": "Recall", "precision": "Precision", "fpr": "False alarms"}
"""What the table of classes says of their operating points."""


@dataclass(frozen=True)
class Report:
    """The contents of the page of a run.

    `run`: the object that ``aucdist train --json`` prints.
    `data`: name, source, counts and note of the data, in the order of the page. Entries that are None are left out.
    `config`: the resolved configuration, as YAML.
    `cost`: label and value of each cost of the run.
    `versions`: versions of the packages that decide the result.
    `command`: the command that runs the configuration again.
    `search`: the object that ``aucdist cv --json`` prints, where a search chose the parameters.

    Of two classes:

    `train` and `test`: counts of X w; `test` is None where there are no test rows.
    `threshold`: of X w: the scores of the model, X w - threshold, are positive above it.
    `history`: one row per round: ``round``, ``passes``, ``seconds``, ``primal``, ``dual``, ``relative_gap``.
    `weights`: feature name and weight, in any order; the page shows the largest.
    `probabilities`: probabilities of the test rows, or else of the training rows, if the model has probabilities.
    `shape`: the search for the shape of the GEV link: `xi_trace_` of a LinkClassifier.
    `of_pairs`: whether the objective is a mean over pairs rather than over rows.
    `additive`: the shapes of a model of binned features, which are shown in place of its weights.
    `map_name`: the feature map of the model: the certificate is given the map.
    `max_fpr`: the false positive rate up to which the partial AUC was trained for.
    `free`: objective and AUC of the same fit without directions of features, and of this one:
        `flows.run_folder.results.MoreFits`.
    `traps`: what makes the test look better than new rows will.

    Of several classes:

    `curves`: counts of each class: of the test rows, or of the training rows where there are none.
    `confusions`, of shape (n_classes, n_classes), int64, or None: how many test rows of each class were predicted to be
        of each. None without test rows.
    """

    title: str
    run: dict[str, Any]
    data: dict[str, Any]
    config: str
    cost: Sequence[tuple[str, str]] = ()
    versions: dict[str, str] = field(default_factory=dict)
    command: str = "aucdist train"
    search: dict[str, Any] | None = None
    train: ScoreCounts | None = None
    test: ScoreCounts | None = None
    threshold: float = 0.0
    history: pd.DataFrame | None = None
    weights: Sequence[tuple[str, float]] = ()
    probabilities: ScoreCounts | None = None
    shape: pd.DataFrame | None = None
    of_pairs: bool = True
    additive: AdditiveModel | None = None
    map_name: str | None = None
    max_fpr: float | None = None
    free: dict[str, Any] | None = None
    traps: Sequence[str] = ()
    curves: Sequence[ScoreCounts] = ()
    confusions: np.ndarray | None = None


def render_run_page(report: Report) -> str:
    """Return the page as HTML. Equal reports give equal text.

    Raises InputError if the training or the test scores of two classes have one class only.
    """
    values = _several(report) if "classes" in report.run else _two_classes(report)
    if report.search is not None:
        values["sentences"].append(search_verdict(report.search))
    return render_template(
        Path(__file__).with_name("run.html"),
        title=report.title,
        run=report.run,
        search=None if report.search is None else search_section(report.search),
        data=_data_rows(report.data),
        cost=report.cost,
        versions=report.versions.items(),
        command=report.command,
        config=report.config,
        **values,
    )


# ---- of two classes ------------------------------------------------------------------------------------------------------------


def _two_classes(report: Report) -> dict[str, Any]:
    assert report.train is not None
    shown, which = (report.train, "training") if report.test is None else (report.test, "test")
    interval, interval_warnings = _interval(shown)
    return {
        "several": False,
        "which": which,
        "sentences": _verdict_of_two(report, shown, which, interval),
        "warnings": _warnings_of_two(report, interval, interval_warnings),
        "tiles": _tiles_of_two(report, shown, interval),
        "band": report.test is not None and not report.test.weighted,
        "certificate": certificate_text(report.run["certificate"], _population_text(report)),
        "figures": _figures(report, shown, which),
        "decisions": _decisions(report),
        "rule": _rule_text(report),
        "thresholds": _thresholds(report, shown),
        "reliability": None if report.probabilities is None else _reliability(report.probabilities),
        "shape": None if report.shape is None else _shape(report.shape),
        "additive": None if report.additive is None else additive_section(report.additive),
        "weights": _weights(report.weights),
        "n_weights": f"{len(report.weights):,}",
    }


def _interval(counts: ScoreCounts) -> tuple[ranking.Interval | None, list[str]]:
    """Return the interval of the AUC, and the warnings of its computation."""
    if counts.weighted:
        return None, []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", IntervalWarning)
        interval = ranking.auc_interval(counts)
    return interval, [_capitalise(str(w.message)) for w in caught]


def _warnings_of_two(report: Report, interval: ranking.Interval | None, more: list[str]) -> list[str]:
    certificate = report.run["certificate"]
    found = []
    if certificate["status"] == "stationary":
        found.append(
            "The objective is not convex: the weights are a stationary point, and other weights may have a lower objective."
        )
    elif certificate["status"] == "rounding":
        found.append(
            f"Rounding ended the fit after {number_text(report.run['passes'], 6)} passes: the objective is "
            f"{certificate_text(certificate)}, and both values are sure to {certificate.get('rounding', 0.0):.2g} only. "
            "Scale the columns."
        )
    elif certificate["status"] != "converged":
        found.append(
            f"The fit did not converge: it ended with status {certificate['status']} after "
            f"{number_text(report.run['passes'], 6)} passes. The objective is {certificate_text(certificate)}."
        )
    elif proved_excess(certificate) is None:
        found.append("The objective has no certificate: there is no positive dual value to compare it with.")
    if report.test is None:
        found.append("There are no test rows: all measures are of the training rows, which is optimistic.")
    if interval is not None and interval.low <= 0.5:
        found.append(
            "The interval of the AUC includes 0.5: these rows do not show that the ranking is better than chance."
        )
    return found + more + list(report.traps)


def _verdict_of_two(report: Report, shown: ScoreCounts, which: str, interval: ranking.Interval | None) -> list[str]:
    """Return the main results as sentences."""
    area, run = ranking.auc(shown), report.run
    ends = [] if interval is None else [interval.low, interval.high]
    texts = [auc_text(v, area, *ends) for v in (area, *ends)]
    between = f", 95 % interval {texts[1]} to {texts[2]}" if ends else ""
    if (error := ranking.auc_error(shown)) > 0:
        between += f", counted in {len(shown.values):,} cells of scores, which is exact to {rounded_up_text(error)}"
    groups = run.get("groups", {})
    whichever = " of whatever groups" if groups.get("grouped") else ""
    of = 100 if area < 0.99 else 1000 if area < 0.999 else 10_000
    often = "every time" if area == 1 else f"{int(area * of):,} times in {of:,}"  # rounded down
    given = "" if report.map_name is None else f", given the feature map {report.map_name}: other maps may do better"
    found = [
        f"Of a positive and a negative {which} row{whichever}, the positive one scores higher {often}: AUC {texts[0]}{between}.",
        f"The objective is {certificate_text(report.run['certificate'], _population_text(report))}{given}.",
    ]
    if report.free is not None:
        found.append(directions_text(report.free))
    if run.get("baselines"):
        reached = "; ".join(
            f"{one['name']} {auc_text(one['test_auc'])} (average precision {one['average_precision']:.4f})"
            for one in run["baselines"]
        )
        found.append(f"Test AUC on the same split, with the defaults of the libraries: {reached}.")
    if "groups" in run:
        found = [*group_sentences(run["groups"]), *found]
    point = run.get("operating_point")
    return found if point is None else [operating_point_text(point), threshold_origin_text(point), *found]


def _population_text(report: Report) -> str:
    """Return what the objective is a mean over."""
    assert report.train is not None
    pos, neg = report.train.rows_pos, report.train.rows_neg
    if (groups := report.run.get("groups")) is not None and report.of_pairs:
        graded = "rows with different grades" if groups["graded"] else "a positive and a negative row"
        return f"over all pairs of {graded}" + (
            f" of one of {groups['with_pairs']:,} groups" if groups["grouped"] else ""
        )
    return f"over all {count_text(pos * neg)} pairs" if report.of_pairs else f"over all {count_text(pos + neg)} rows"


def _tiles_of_two(report: Report, shown: ScoreCounts, interval: ranking.Interval | None) -> list[tuple[str, str, str]]:
    """Return the headline numbers: label, value, and the text below it."""
    assert report.train is not None
    certificate, table = report.run["certificate"], decisions.confusion(shown, report.threshold)
    which = "Training" if report.test is None else "Test"
    spread = "no interval for weighted rows"
    if interval is not None:
        low, high = (auc_text(v, interval.low, interval.auc, interval.high) for v in (interval.low, interval.high))
        spread = f"95 % interval {low} to {high}"
    excess = proved_excess(certificate)
    bound = "no bound" if excess is None else f"≤ {rounded_up_text(100 * excess)} %" if excess > 0 else "0 %"
    found, precise = percent_text(decisions.recall(table)), percent_text(decisions.precision(table))
    rates = f"finds {found} of the positives; precision {precise}"
    prevalence = shown.n_pos / (shown.n_pos + shown.n_neg)
    area = (f"{which} AUC", auc_text(ranking.auc(shown)), f"{spread}; train {auc_text(ranking.auc(report.train))}")
    of_groups = report.run.get("groups", {}).get("measures", {}).get("group_auc")
    if of_groups is not None:
        ends = (of_groups["interval"][0], of_groups["value"], of_groups["interval"][1])
        low, value, high = (auc_text(v, *ends) for v in ends)
        small = f"95 % interval {low} to {high}; of all rows together {area[1]}"
        area = (f"{which} AUC within groups", value, small)
    return [
        area,
        ("Above the optimum", bound, f"proved {_population_text(report)}"),
        ("G-mean", f"{decisions.g_mean(table):.4f}", rates),
        (
            "Average precision",
            f"{ranking.average_precision(shown):.4f}",
            f"random order has {prevalence:.2g}",
        ),
        (
            "Time of the fit",
            seconds_text(report.run["seconds"]["fit"]),
            f"{number_text(report.run['passes'], 6)} passes over {report.train.rows_pos + report.train.rows_neg:,} rows",
        ),
    ]


def _figures(report: Report, shown: ScoreCounts, which: str) -> dict[str, Any]:
    """Return the SVG of each figure for which there is data."""
    from markupsafe import Markup

    assert report.train is not None
    assert report.history is not None
    area, history = auc_text(ranking.auc(shown)), plots.thin_history(report.history)
    curve = f"The {which} curve has an AUC of {area}; chance has 0.5."
    precision, share = ranking.average_precision(shown), shown.n_pos / (shown.n_pos + shown.n_neg)
    found = f"The {which} curve has an average precision of {precision:.4f}; random order has {share:.2g}."
    split = (
        f"{count_text(shown.rows_pos)} positive and {count_text(shown.rows_neg)} negative {which} rows; "
        "scores above 0 are predicted positive."
    )
    point = report.run.get("operating_point")
    at = None if point is None else (point["fpr"]["value"], point["recall"]["value"])
    low = plots.roc(report.train, report.test, log_x=True, point=at, max_fpr=report.max_fpr)
    made: dict[str, tuple[Any, ...]] = {
        "roc": ("ROC curve", curve, plots.roc(report.train, report.test, log_x=False)),
        "roc-low": ("ROC curve at low false positive rates", curve, low),
        "pr": ("Precision and recall", found, plots.precision_recall(report.train, report.test)),
        "scores": ("Scores by class", split, plots.score_distributions(shown, report.threshold)),
    }
    if np.isfinite(pd.to_numeric(history["primal"])).any():
        certificate = f"The objective is {certificate_text(report.run['certificate'])}."
        made["objective"] = ("Objective and dual bound against passes", certificate, plots.objective(history))
        made["gap"] = ("Relative gap against passes", certificate, plots.relative_gap(history))
    return {name: Markup(plots.inline_svg(name, *parts)) for name, parts in made.items()}


def _reliability(counts: ScoreCounts) -> dict[str, Any]:
    """Return the reliability diagram and the losses of the probabilities."""
    from markupsafe import Markup

    from aucdist.metrics import probability  # loads SciPy

    losses = [
        ("Brier score", probability.brier(counts)),
        ("Log loss", probability.log_loss(counts)),
        ("Calibration loss", probability.calibration_loss(counts)),
        ("Refinement loss", probability.refinement_loss(counts)),
        ("Expected calibration error", probability.expected_calibration_error(counts)),
    ]
    description = ", ".join(f"{name} {number_text(value)}" for name, value in losses)
    svg = plots.inline_svg("reliability", "Reliability", description, plots.reliability_diagram(counts))
    return {"figure": Markup(svg), "losses": [(name, number_text(value)) for name, value in losses]}


def _shape(trace: pd.DataFrame) -> dict[str, Any]:
    """Return the plot of the search for the shape of the link, and its result."""
    from markupsafe import Markup

    last = number_text(float(trace["xi"].iloc[-1]))
    svg = plots.inline_svg("shape", "Shape of the link", f"The last xi is {last}", plots.shape_trace(trace))
    return {"figure": Markup(svg), "xi": last, "rounds": len(trace)}


def _decisions(report: Report) -> list[dict[str, Any]]:
    """Return the confusion matrix and its rates, for the training and the test rows."""
    rows = []
    for name, counts in (("test", report.test), ("training", report.train)):
        if counts is None:
            continue
        table = decisions.confusion(counts, report.threshold)
        cells = {key: f"{value:,}" if isinstance(value, int) else number_text(value, 6) for key, value in table.items()}
        rates = {
            "recall": decisions.recall(table),
            "specificity": decisions.specificity(table),
            "precision": decisions.precision(table),
            "balanced accuracy": decisions.balanced_accuracy(table),
            "G-mean": decisions.g_mean(table),
        }
        texts = {key: percent_text(value) for key, value in rates.items()}
        if name == "test" and not counts.weighted:  # of the rows that set the threshold, intervals would be too short
            point = decisions.operating_point(counts, report.threshold)
            ends = {
                "recall": (point.recall.low, point.recall.high),
                "specificity": (1 - point.fpr.high, 1 - point.fpr.low),
                "precision": (point.precision.low, point.precision.high),
            }
            for key, (low, high) in ends.items():
                texts[key] += f" (95 %: {percent_text(low)} to {percent_text(high)})"
        rows.append({"name": name, **cells, "rates": list(texts.items())})
    return rows


def _rule_text(report: Report) -> str:
    """Return the rule that set the threshold, as a sentence."""
    point = report.run.get("operating_point")
    if point is not None:
        return f"{wanted_text(point['wanted'])}: the operating point that was asked for set the threshold."
    return "The threshold is the one with the largest G-mean of the training rows, as no operating point was asked for."


def _thresholds(report: Report, shown: ScoreCounts) -> dict[str, Any]:
    """Return the table of thresholds: what flagging some shares of the rows finds, and what the threshold of the model does."""
    cost = report.run.get("operating_point", {}).get("wanted", {}).get("cost")
    if cost is not None and any(isinstance(value, str) for value in cost.values()):
        cost = None  # the row's own amounts: the counts do not have them
    n, prevalence = shown.n_pos + shown.n_neg, shown.n_pos / (shown.n_pos + shown.n_neg)
    cuts = {decisions.threshold_at(shown, alerts=share) for share in SHARES if share * n >= 1}
    rows = []
    for cut in sorted({*cuts, report.threshold}, reverse=True):
        table = decisions.confusion(shown, cut)
        alerts, own = table["tp"] + table["fp"], cut == report.threshold
        if alerts == 0 and not own:
            continue
        values = {"recall": decisions.recall(table), "precision": decisions.precision(table)}
        texts = {name: (percent_text(value), "") for name, value in values.items()}
        if not shown.weighted:
            point = decisions.operating_point(shown, cut)
            for name in values:
                ends = getattr(point, name)
                texts[name] = texts[name][0], f"{percent_text(ends.low)} to {percent_text(ends.high)}"
        cells = [
            (number_text(alerts, 6) if shown.weighted else f"{alerts:,.0f}", percent_text(alerts / n)),
            texts["recall"],
            texts["precision"],
            (number_text(values["precision"] / prevalence, 3) if alerts else "", ""),
        ]
        if cost is not None:
            value = decisions.expected_cost(shown, cut, **cost)
            spread = None if shown.weighted else decisions.expected_cost_interval(shown, cut, **cost)
            ends = "" if spread is None else f"{number_text(100 * spread.low)} to {number_text(100 * spread.high)}"
            cells.append((number_text(100 * value), ends))
        rows.append({"score": "0" if own else number_text(cut - report.threshold, 4), "cells": cells, "chosen": own})
    headings = ["Alerts", "Recall", "Precision", "Lift", *(["Cost of 100 rows"] if cost is not None else [])]
    return {"headings": headings, "rows": rows}


def _weights(weights: Sequence[tuple[str, float]]) -> list[dict[str, Any]]:
    """Return the largest nonzero weights, each with the width of its bar in percent of the largest."""
    largest = sorted((w for w in weights if w[1] != 0), key=lambda w: (-abs(w[1]), w[0]))[:TOP_WEIGHTS]
    scale = abs(largest[0][1]) if largest else 1.0
    return [
        {"name": name, "value": number_text(value, 4), "width": f"{100 * abs(value) / scale:.1f}", "up": value > 0}
        for name, value in largest
    ]


def _data_rows(data: dict[str, Any]) -> list[tuple[str, str]]:
    """Return label and value of each entry of the data."""
    return [(_capitalise(k), f"{v:,}" if isinstance(v, int) else str(v)) for k, v in data.items() if v is not None]


def _capitalise(text: str) -> str:
    return text[:1].upper() + text[1:]


# ---- of several classes --------------------------------------------------------------------------------------------------------


def _several(report: Report) -> dict[str, Any]:
    from markupsafe import Markup

    run, rows, tested = report.run, report.run["classes"], report.confusions is not None
    part, word = "test" if tested else "train", "topic" if run["topics"] else "class"
    order = sorted(range(len(rows)), key=lambda k: (_area(rows[k], part) is None, _area(rows[k], part) or 0.0, k))
    return {
        "several": True,
        "one": word,
        "which": "test" if tested else "training",
        "sentences": _verdict(run, word),
        "warnings": _warnings(run, tested),
        "tiles": _tiles(run),
        "headings": _headings(tested),
        "classes": [(rows[k]["name"], _cells(rows[k], tested)) for k in order],
        "point_headings": _point_headings(rows[0]),
        "points": [(rows[k]["name"], _point_cells(rows[k])) for k in order] if "operating_point" in rows[0] else [],
        "confusions": None if report.confusions is None else _confusions(report, report.confusions, order),
        "curves": [
            (_short(rows[k]["name"]), auc_text(_area(rows[k], part)), Markup(_curve(report.curves[k]))) for k in order
        ],
    }


def _area(row: dict[str, Any], part: str) -> float | None:
    area: float | None = row[f"{part}_auc"]
    return area


def _verdict(run: dict[str, Any], word: str) -> list[str]:
    metrics, n = run["metrics"], len(run["classes"])
    plural = {"class": "classes", "topic": "topics"}[word]
    if metrics["test_auc"] is None:
        first = f"The mean training AUC of {n} {plural}, each against the rest, is {auc_text(metrics['train_auc'])}."
    else:
        first = (
            f"The mean test AUC of {n} {plural}, each against the rest, is {auc_text(metrics['test_auc'])}; weighted by their "
            f"test rows it is {auc_text(metrics['test_auc_weighted'])}."
        )
    excesses = [proved_excess(row["certificate"]) for row in run["classes"]]
    proved = [excess for excess in excesses if excess is not None]
    sentences = [first]
    if metrics.get("test_accuracy") is not None:
        sentences.append(
            f"{percent_text(metrics['test_accuracy'])} of the test rows are predicted to be of their class."
        )
    if "operating_point" in run["classes"][0]:
        sentences.append(operating_points_text(run["classes"]))
    if proved:
        text = f"The objective of {'each' if len(proved) == n else f'{len(proved)} of them'} is above its minimum by at most"
        sentences.append(f"{text} {_percent_above(max(proved))}.")
    return sentences


def _warnings(run: dict[str, Any], tested: bool) -> list[str]:
    found = []
    early = [row["name"] for row in run["classes"] if row["certificate"]["status"] not in ("converged", "stationary")]
    if early:
        found.append(f"The fit did not converge for {_listed(early)}.")
    if tested and (absent := [row["name"] for row in run["classes"] if row["test_auc"] is None]):
        which = "these" if len(absent) > 1 else "it"
        found.append(f"The test rows do not have both sides of {_listed(absent)}: the means leave {which} out.")
    if not tested:
        found.append("There are no test rows: all measures are of the training rows, which is optimistic.")
    chance = [
        row["name"]
        for row in run["classes"]
        if row["test_auc_interval"] is not None and row["test_auc_interval"][0] <= 0.5
    ]
    if chance:
        found.append(
            f"The interval of the AUC includes 0.5 for {_listed(chance)}: these rows do not show that the ranking is better than "
            "chance."
        )
    return found


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(_short, names[:8])) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _tiles(run: dict[str, Any]) -> list[tuple[str, str, str]]:
    metrics = run["metrics"]
    tiles = [
        ("Mean test AUC", auc_text(metrics["test_auc"]), "of all classes alike"),
        ("Weighted test AUC", auc_text(metrics["test_auc_weighted"]), "by their test rows"),
        ("Mean training AUC", auc_text(metrics["train_auc"]), "of all classes alike"),
        ("Classes" if not run["topics"] else "Topics", f"{len(run['classes']):,}", f"{run['passes']:,} passes"),
    ]
    if metrics.get("test_accuracy") is not None:
        tiles.insert(2, ("Accuracy", percent_text(metrics["test_accuracy"]), "of the test rows"))
    return [tile for tile in tiles if tile[1] != auc_text(None)]


def _headings(tested: bool) -> list[str]:
    headings = ["Training rows", "Training AUC", "Proved within", "Passes", "Status"]
    return ["Test rows", "Test AUC", "Interval", "Recall", "Precision", *headings] if tested else headings


def _cells(row: dict[str, Any], tested: bool) -> list[str]:
    excess = proved_excess(row["certificate"])
    cells = [
        f"{row['n_pos']:,}", auc_text(row["train_auc"]), "unknown" if excess is None else _percent_above(excess),
        f"{row['passes']:,}", row["certificate"]["status"],
    ]  # fmt: skip
    if not tested:
        return cells
    interval = row["test_auc_interval"]
    ends = "" if interval is None else " to ".join(auc_text(end, row["test_auc"], *interval) for end in interval)
    shares = ["" if row[name] is None else percent_text(row[name]) for name in ("recall", "precision")]
    return [f"{row['test_pos']:,}", auc_text(row["test_auc"]), ends, *shares, *cells]


def _point_headings(row: dict[str, Any]) -> list[str]:
    """Return the headings for the operating point of each class; empty where the run has none."""
    point = row.get("operating_point")
    if point is None:
        return []
    costs = [f"100 {point['rows']} rows cost", "Interval", "Without a model"] if "expected_cost" in point else []
    return [*POINT.values(), *costs]


def _point_cells(row: dict[str, Any]) -> list[str]:
    point = row["operating_point"]
    values = [point[name]["value"] for name in POINT]
    costs = cost_of_100_text(point["expected_cost"]) if "expected_cost" in point else ()
    return [*("" if value is None else percent_text(value) for value in values), *costs]


def _confusions(report: Report, confusions: np.ndarray, order: list[int]) -> dict[str, Any]:
    names = [report.run["classes"][k]["name"] for k in order]
    table = confusions[np.ix_(order, order)]
    n = np.array([max(report.run["classes"][k]["test_pos"], 1) for k in order])
    shares = table / n[:, np.newaxis]
    wrong = shares - np.diag(np.diag(shares))
    # Of topics a row may have both, and then nothing is wrong.
    largest = [] if report.run["topics"] else np.argsort(-wrong, axis=None, kind="stable")[:MISTAKES].tolist()
    found = []
    for place in largest:
        i, j = divmod(place, len(names))
        if table[i, j] > 0 and i != j:
            found.append((_short(names[i]), _short(names[j]), f"{table[i, j]:,}", percent_text(float(shares[i, j]))))
    caption = (
        "Each topic is predicted by itself, where its score is above the threshold; a row may have several."
        if report.run["topics"]
        else "The class of the largest probability, or without probabilities of the largest score in units of its spread."
    )
    heading = "Topics and predicted topics" if report.run["topics"] else "Classes and predicted classes"
    cells = [
        [
            {
                "shade": 0 if n == 0 else round(12 + 88 * min(1.0, float(shares[i, j]))),
                "right": i == j,
                "about": f"{names[i]}, predicted {names[j]}: {n:,} rows, {percent_text(float(shares[i, j]))}",
            }
            for j, n in enumerate(row)
        ]
        for i, row in enumerate(table.tolist())
    ]
    rows = list(zip(map(_short, names), cells, strict=True))
    return {"caption": caption, "heading": heading, "largest": found, "rows": rows, "many": len(names) > MANY}


def _curve(counts: ScoreCounts) -> str:
    """Return a small SVG of the ROC curve; empty axes where one side has no rows."""
    axes = (
        '<rect x="1" y="1" width="98" height="98" fill="none" stroke="var(--grid)"/>'
        '<path d="M1 99L99 1" stroke="var(--grid)"/>'
    )
    line = ""
    if counts.n_pos > 0 and counts.n_neg > 0:
        fpr, tpr, _ = roc_curve(counts)
        points = plots.thin(fpr, tpr, CURVE_POINTS)
        path = "L".join(f"{1 + 98 * x:.1f} {99 - 98 * y:.1f}" for x, y in zip(fpr[points], tpr[points], strict=True))
        line = f'<path d="M{path}" fill="none" stroke="var(--pos)" stroke-width="2"/>'
    return f'<svg role="img" aria-label="ROC curve" viewBox="0 0 100 100">{axes}{line}</svg>'


def _percent_above(excess: float) -> str:
    """Return by how much at most an objective is above its minimum."""
    return "0 %" if excess == 0 else f"{rounded_up_text(100 * excess)} %"


def _short(name: str) -> str:
    return name if len(name) <= NAME else name[: NAME - 1] + "…"

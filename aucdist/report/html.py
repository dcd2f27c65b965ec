"""The page of a run: one self-contained HTML file without scripts and external resources."""

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from aucdist.extras import load_optional
from aucdist.metrics import decisions, ranking
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.intervals import IntervalWarning
from aucdist.report import plots
from aucdist.report.additive import AdditiveModel, additive_section
from aucdist.report.search import search_section
from aucdist.report.text import (
    auc_text,
    certificate_text,
    count_text,
    directions_text,
    group_sentences,
    number_text,
    operating_point_text,
    percent_text,
    proved_excess,
    rounded_up_text,
    search_verdict,
    seconds_text,
    threshold_origin_text,
)

TOP_WEIGHTS = 30
DATA_LABELS = {"n_samples": "Rows", "n_features": "Features", "n_pos": "Positive rows", "n_neg": "Negative rows"}


@dataclass(frozen=True)
class Report:
    """The contents of the page of a run.

    `run`: the object that ``aucdist train --json`` prints.
    `data`: name, source, counts and note of the data, in the order of the page. Entries that are None are left out.
    `config`: the resolved configuration, as YAML.
    `history`: one row per round: ``round``, ``passes``, ``seconds``, ``primal``, ``dual``, ``relative_gap``.
    `train` and `test`: scores of the fitted model; `test` is None where there are no test rows.
    `threshold`: ``score > threshold`` predicts the positive class.
    `weights`: feature name and weight, in any order; the page shows the largest.
    `cost`: label and value of each cost of the run.
    `versions`: versions of the packages that decide the result.
    `command`: the command that runs the configuration again.
    `search`: the object that ``aucdist cv --json`` prints, where a search chose the parameters.
    `probabilities`: probabilities of the test rows, or else of the training rows, if the model has probabilities.
    `shape`: the search for the shape of the GEV link: `xi_trace_` of a LinkClassifier.
    `of_pairs`: whether the objective is a mean over pairs rather than over rows.
    `additive`: the shapes of a model of binned features, which are shown in place of its weights.
    `map_name`: the feature map of the model: the certificate is given the map.
    `max_fpr`: the false positive rate up to which the partial AUC was trained for.
    `free`: objective and AUC of the same fit without directions of features, and of this one:
        `flows.run_folder.results.MoreFits`.
    `traps`: what makes the test look better than new rows will.
    """

    title: str
    run: dict[str, Any]
    data: dict[str, Any]
    config: str
    history: pd.DataFrame
    train: ScoreCounts
    test: ScoreCounts | None
    threshold: float
    weights: list[tuple[str, float]]
    cost: Sequence[tuple[str, str]] = ()
    versions: dict[str, str] = field(default_factory=dict)
    command: str = "aucdist train"
    search: dict[str, Any] | None = None
    probabilities: ScoreCounts | None = None
    shape: pd.DataFrame | None = None
    of_pairs: bool = True
    additive: AdditiveModel | None = None
    map_name: str | None = None
    max_fpr: float | None = None
    free: dict[str, Any] | None = None
    traps: Sequence[str] = ()


def render_run_page(report: Report) -> str:
    """Return the page as HTML. Equal reports give equal text.

    Raises InputError if the training or the test scores have one class only.
    """
    shown, which = (report.train, "training") if report.test is None else (report.test, "test")
    interval, interval_warnings = _interval(shown)
    return render_template(
        Path(__file__).with_name("run.html"),
        title=report.title,
        run=report.run,
        which=which,
        sentences=_verdict(report, shown, which, interval),
        warnings=_warnings(report, interval, interval_warnings),
        tiles=_tiles(report, shown, interval),
        band=report.test is not None and not report.test.weighted,
        certificate=certificate_text(report.run["certificate"], _population_text(report)),
        figures=_figures(report, shown, which),
        decisions=_decisions(report),
        threshold=number_text(report.threshold, 5),
        reliability=None if report.probabilities is None else _reliability(report.probabilities),
        shape=None if report.shape is None else _shape(report.shape),
        search=None if report.search is None else search_section(report.search),
        additive=None if report.additive is None else additive_section(report.additive),
        weights=_weights(report.weights),
        n_weights=f"{len(report.weights):,}",
        data=_data_rows(report.data),
        cost=report.cost,
        versions=report.versions.items(),
        command=report.command,
        config=report.config,
    )


def render_template(template: Path, **values: Any) -> str:
    """Return a page rendered from a template.

    `template`: an HTML template, which may extend ``base.html`` of this folder.
    """
    jinja2 = load_optional("jinja2")
    folder = Path(__file__).parent
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        loader=jinja2.FileSystemLoader([template.parent, folder]),
    )
    environment.filters["code"] = _with_code
    style = (folder / "style.css").read_text(encoding="utf-8")
    page = environment.get_template(template.name).render(style=style, **values)
    # A lone surrogate, which a file name or a feature name may contain, has no UTF-8 encoding.
    return page.encode("utf-8", "replace").decode("utf-8")


def _with_code(text: str) -> Any:
    """Return a sentence as HTML, with what stands between backticks as code."""
    markupsafe = load_optional("markupsafe")
    return markupsafe.Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(markupsafe.escape(text))))


def _interval(counts: ScoreCounts) -> tuple[ranking.Interval | None, list[str]]:
    """Return the interval of the AUC, and the warnings of its computation."""
    if counts.weighted:
        return None, []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", IntervalWarning)
        interval = ranking.auc_interval(counts)
    return interval, [_capitalise(str(w.message)) for w in caught]


def _warnings(report: Report, interval: ranking.Interval | None, more: list[str]) -> list[str]:
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


def _verdict(report: Report, shown: ScoreCounts, which: str, interval: ranking.Interval | None) -> list[str]:
    """Return the main results as sentences."""
    area = ranking.auc(shown)
    ends = [] if interval is None else [interval.low, interval.high]
    texts = [auc_text(v, area, *ends) for v in (area, *ends)]
    between = f", 95 % interval {texts[1]} to {texts[2]}" if ends else ""
    if (error := ranking.auc_error(shown)) > 0:
        between += f", counted in {len(shown.values):,} cells of scores, which is exact to {rounded_up_text(error)}"
    groups = report.run.get("groups", {})
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
    if "groups" in report.run:
        found = [*group_sentences(report.run["groups"]), *found]
    point = report.run.get("operating_point")
    if point is not None:
        found = [operating_point_text(point), threshold_origin_text(point), *found]
    return found if report.search is None else [*found, search_verdict(report.search)]


def _population_text(report: Report) -> str:
    """Return what the objective is a mean over."""
    pos, neg = report.train.rows_pos, report.train.rows_neg
    if (groups := report.run.get("groups")) is not None and report.of_pairs:
        graded = "rows with different grades" if groups["graded"] else "a positive and a negative row"
        return f"over all pairs of {graded}" + (
            f" of one of {groups['with_pairs']:,} groups" if groups["grouped"] else ""
        )
    return f"over all {count_text(pos * neg)} pairs" if report.of_pairs else f"over all {count_text(pos + neg)} rows"


def _tiles(report: Report, shown: ScoreCounts, interval: ranking.Interval | None) -> list[tuple[str, str, str]]:
    """Return the headline numbers: label, value, and the text below it."""
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

    area, history = auc_text(ranking.auc(shown)), plots.thin_history(report.history)
    curve = f"The {which} curve has an AUC of {area}; chance has 0.5."
    precision, share = ranking.average_precision(shown), shown.n_pos / (shown.n_pos + shown.n_neg)
    found = f"The {which} curve has an average precision of {precision:.4f}; random order has {share:.2g}."
    split = (
        f"{count_text(shown.rows_pos)} positive and {count_text(shown.rows_neg)} negative {which} rows; "
        f"scores above the threshold {number_text(report.threshold, 5)} are predicted positive."
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
    from aucdist.report.probability import reliability_diagram

    losses = [
        ("Brier score", probability.brier(counts)),
        ("Log loss", probability.log_loss(counts)),
        ("Calibration loss", probability.calibration_loss(counts)),
        ("Refinement loss", probability.refinement_loss(counts)),
        ("Expected calibration error", probability.expected_calibration_error(counts)),
    ]
    description = ", ".join(f"{name} {number_text(value)}" for name, value in losses)
    svg = plots.inline_svg("reliability", "Reliability", description, reliability_diagram(counts))
    return {"figure": Markup(svg), "losses": [(name, number_text(value)) for name, value in losses]}


def _shape(trace: pd.DataFrame) -> dict[str, Any]:
    """Return the plot of the search for the shape of the link, and its result."""
    from markupsafe import Markup

    from aucdist.report.probability import shape_trace

    last = number_text(float(trace["xi"].iloc[-1]))
    svg = plots.inline_svg("shape", "Shape of the link", f"The last xi is {last}", shape_trace(trace))
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


def _weights(weights: list[tuple[str, float]]) -> list[dict[str, Any]]:
    """Return the largest nonzero weights, each with the width of its bar in percent of the largest."""
    largest = sorted((w for w in weights if w[1] != 0), key=lambda w: (-abs(w[1]), w[0]))[:TOP_WEIGHTS]
    scale = abs(largest[0][1]) if largest else 1.0
    return [
        {"name": name, "value": number_text(value, 4), "width": f"{100 * abs(value) / scale:.1f}", "up": value > 0}
        for name, value in largest
    ]


def _data_rows(data: dict[str, Any]) -> list[tuple[str, str]]:
    """Return label and value of each entry of the data."""
    return [
        (DATA_LABELS.get(k, _capitalise(k.replace("_", " "))), _value_text(v)) for k, v in data.items() if v is not None
    ]


def _value_text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k}: {_value_text(v)}" for k, v in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_value_text(v) for v in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _capitalise(text: str) -> str:
    return text[:1].upper() + text[1:]

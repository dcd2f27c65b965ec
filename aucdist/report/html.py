"""The page of a run: one self-contained file that needs no network and no script."""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from aucdist.metrics import auc as measures
from aucdist.metrics.counts import ScoreCounts
from aucdist.report import plots
from aucdist.report.table import (
    auc_text,
    certificate_words,
    count_text,
    figure,
    percent,
    proved_excess,
    round_up,
    seconds_text,
    summary_rows,
)

TOP_WEIGHTS = 30
NAMES = {"n_samples": "Rows", "n_features": "Features", "n_pos": "Positive rows", "n_neg": "Negative rows"}


@dataclass(frozen=True)
class Report:
    """What the page of a run shows.

    Attributes
    ----------
    title : str
        Heading of the page.
    run : dict
        The object that ``aucdist train --json`` prints.
    data : dict
        The data card, shown as it is given: name, source, counts, note. Entries that are None are left out.
    config : str
        The resolved configuration, as YAML.
    history : DataFrame
        One row per round: ``round``, ``passes``, ``seconds``, ``primal``, ``dual``, ``relative_gap``.
    train, test : ScoreCounts
        Scores of the fitted model; `test` is None where there are no test rows.
    threshold : float
        ``score > threshold`` predicts the positive class.
    weights : list of (str, float)
        Feature name and weight, in any order; the largest are shown.
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


def render(report: Report) -> str:
    """Return the page as HTML. The same report gives the same text.

    Raises
    ------
    InputError
        If the training or the test scores have one class only.
    """
    import jinja2

    shown, which = (report.train, "training") if report.test is None else (report.test, "test")
    interval, doubts = _interval(shown)
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    template = environment.from_string(Path(__file__).with_name("template.html").read_text(encoding="utf-8"))
    page = template.render(
        title=report.title,
        style=style(),
        run=report.run,
        which=which,
        warnings=_warnings(report, interval, doubts),
        tiles=_tiles(report, shown, interval),
        certificate=certificate_words(report.run["certificate"], _pairs(report)),
        figures=_figures(report, shown, which),
        decisions=_decisions(report),
        threshold=figure(report.threshold, 5),
        weights=_weights(report.weights),
        n_weights=f"{len(report.weights):,}",
        data=_card(report.data),
        summary=summary_rows(report.run),
        config=report.config,
    )
    # A lone surrogate, which a file name or a feature name may hold, could not be written as UTF-8.
    return page.encode("utf-8", "replace").decode("utf-8")


def style() -> str:
    """Return the style sheet that the pages share."""
    return Path(__file__).with_name("style.css").read_text(encoding="utf-8")


def _interval(counts: ScoreCounts) -> tuple[measures.Interval | None, list[str]]:
    """Return the interval of the AUC and what speaks against trusting it."""
    if counts.weighted:
        return None, []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", measures.IntervalWarning)
        interval = measures.auc_interval(counts)
    return interval, [_sentence(str(w.message)) for w in caught]


def _warnings(report: Report, interval: measures.Interval | None, doubts: list[str]) -> list[str]:
    certificate = report.run["certificate"]
    found = []
    if certificate["status"] != "converged":
        found.append(
            f"The fit did not converge: it ended with status {certificate['status']} after "
            f"{figure(report.run['passes'], 6)} passes. The objective is {certificate_words(certificate)}."
        )
    elif proved_excess(certificate) is None:
        found.append("Nothing is proved about the objective: there is no positive dual value to hold it against.")
    if report.test is None:
        found.append("There are no test rows: all measures are of the rows the model was fitted to, which flatters it.")
    if interval is not None and interval.low <= 0.5:
        found.append(
            "The interval of the AUC reaches down to 0.5: these rows do not show that the ranking beats chance."
        )
    return found + doubts


def _pairs(report: Report) -> int:
    return report.train.rows_pos * report.train.rows_neg


def _tiles(report: Report, shown: ScoreCounts, interval: measures.Interval | None) -> list[tuple[str, str, str]]:
    """Return the headline numbers: label, value, and the sentence below it."""
    certificate, table = report.run["certificate"], measures.confusion(shown, report.threshold)
    which = "Training" if report.test is None else "Test"
    spread = "no interval for weighted rows"
    if interval is not None:
        low, high = (auc_text(v, interval.low, interval.auc, interval.high) for v in (interval.low, interval.high))
        spread = f"95 % interval {low} to {high}"
    excess = proved_excess(certificate)
    bound = "no bound" if excess is None else f"≤ {round_up(100 * excess)} %" if excess > 0 else "0 %"
    rates = f"finds {percent(measures.recall(table))} of the positives, with {percent(measures.precision(table))}"
    prevalence = shown.n_pos / (shown.n_pos + shown.n_neg)
    return [
        (f"{which} AUC", auc_text(measures.auc(shown)), f"{spread}; train {auc_text(measures.auc(report.train))}"),
        ("Above the optimum", bound, f"The objective is {certificate_words(certificate, _pairs(report))}."),
        ("G-mean", f"{measures.g_mean(table):.4f}", f"{rates} of its alarms right"),
        (
            "Average precision",
            f"{measures.average_precision(shown):.4f}",
            f"{prevalence:.2g} is what random order gives",
        ),
        (
            "Time of the fit",
            seconds_text(report.run["seconds"]["fit"]),
            f"{figure(report.run['passes'], 6)} passes over {report.train.rows_pos + report.train.rows_neg:,} rows",
        ),
    ]


def _figures(report: Report, shown: ScoreCounts, which: str) -> dict[str, Any]:
    """Return the SVG of every figure that there are numbers for."""
    from markupsafe import Markup

    area, history = auc_text(measures.auc(shown)), plots.thin_history(report.history)
    curve = f"The {which} curve has an AUC of {area}; chance has 0.5."
    split = (
        f"{count_text(shown.rows_pos)} positive and {count_text(shown.rows_neg)} negative {which} rows; "
        f"scores above the threshold {figure(report.threshold, 5)} are predicted positive."
    )
    made: dict[str, tuple[Any, ...]] = {
        "roc": ("ROC curve", curve, plots.roc(report.train, report.test, log_x=False)),
        "roc-low": ("ROC curve at low false positive rates", curve, plots.roc(report.train, report.test, log_x=True)),
        "scores": ("Scores by class", split, plots.score_distributions(shown, report.threshold), 4.8),
    }
    if np.isfinite(pd.to_numeric(history["primal"])).any():
        course = f"The objective is {certificate_words(report.run['certificate'])}."
        for against in ("passes", "seconds"):
            made[f"objective-{against}"] = (
                f"Objective and dual bound against {against}", course, plots.objective(history, against),
            )  # fmt: skip
            made[f"gap-{against}"] = (f"Relative gap against {against}", course, plots.relative_gap(history, against))
    return {name: Markup(plots.draw(name, *parts)) for name, parts in made.items()}


def _decisions(report: Report) -> list[dict[str, Any]]:
    """Return the confusion matrix and its rates, for the training and the test rows."""
    rows = []
    for name, counts in (("test", report.test), ("training", report.train)):
        if counts is None:
            continue
        table = measures.confusion(counts, report.threshold)
        cells = {key: f"{value:,}" if isinstance(value, int) else figure(value, 6) for key, value in table.items()}
        rates = {
            "recall": measures.recall(table),
            "specificity": measures.specificity(table),
            "precision": measures.precision(table),
            "balanced accuracy": measures.balanced_accuracy(table),
            "G-mean": measures.g_mean(table),
        }
        rows.append({"name": name, **cells, "rates": [(key, percent(value)) for key, value in rates.items()]})
    return rows


def _weights(weights: list[tuple[str, float]]) -> list[dict[str, Any]]:
    """Return the largest weights that are not 0, each with the width of its bar in percent of the largest."""
    largest = sorted((w for w in weights if w[1] != 0), key=lambda w: (-abs(w[1]), w[0]))[:TOP_WEIGHTS]
    scale = abs(largest[0][1]) if largest else 1.0
    return [
        {"name": name, "value": figure(value, 4), "width": f"{100 * abs(value) / scale:.1f}", "up": value > 0}
        for name, value in largest
    ]


def _card(data: dict[str, Any]) -> list[tuple[str, str]]:
    return [(NAMES.get(k, _sentence(k.replace("_", " "))), _plain(v)) for k, v in data.items() if v is not None]


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k}: {_plain(v)}" for k, v in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_plain(v) for v in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]

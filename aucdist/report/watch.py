"""The page of what was watched: small multiples over all batches."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aucdist.report.html import render_template
from aucdist.report.text import percent_text

MOST_FEATURES = 60
LEAST_PSI = 0.1
WIDTH, HEIGHT, EDGE = 240.0, 76.0, 6.0
NAMES = {
    "macro_auc": "Mean AUC of the classes", "auc": "AUC", "partial_auc": "Partial AUC", "recall": "Recall",
    "fpr": "False positive rate", "precision": "Precision",
    "calibration": "Positives over expected ones",
}  # fmt: skip
MOVED = {
    "moved": "{column} has moved: PSI {value:.2f}",
    "missing": "{column}: the share of missing values has risen by {share}",
    "unknown": "{column}: the share of rows with none of the known categories has risen by {share}",
    "outside": "{column}: {share} of the rows are outside of the range of the training rows",
    "score": "the score has moved: PSI {value:.2f}",
    "class score": "the score of class {column} has moved: PSI {value:.2f}",
    "rare": "the share of rows with values that training hardly knew has risen by {share}",
    "macro_auc": "the mean AUC of the classes is lower than promised by {value:.3f}",
    "class auc": "the AUC of class {column} is lower than promised by {value:.3f}",
    "auc": "the AUC is lower than promised by {value:.3f}",
    "partial_auc": "the partial AUC is lower than promised by {value:.3f}",
    "recall": "the recall at the operating point is lower than promised by {value:.3f}",
    "new": "{column}: {share} of the rows have a category that training did not have",
    "unreadable": "the rows cannot be read as those of the training: {text}",
    "calibration": "the ratio of positives to those that the probabilities expect is off by {value:.2f}",
}


def alarm_text(alarm: dict[str, Any]) -> str:
    """Return an alarm in a sentence without a full stop."""
    if alarm["what"] in ("new", "unreadable"):
        return MOVED[alarm["what"]].format(**{"text": "", **alarm}, share=percent_text(alarm["value"]))
    p = "p < 1e-12" if alarm["p"] < 1e-12 else f"p = {alarm['p']:.1g}"
    return f"{MOVED[alarm['what']].format(**alarm, share=percent_text(alarm['value']))} ({p})"


def measure_text(name: str, value: dict[str, float], promised: dict[str, float] | None) -> str:
    """Return a measure with its interval, beside what was promised."""
    text = f"{NAMES[name]}: {_interval(value)}"
    return text if promised is None else f"{text}, promised {_interval(promised)}"


def _interval(value: dict[str, float]) -> str:
    return f"{value['value']:.3f} ({value['low']:.3f} to {value['high']:.3f})"


def render_watch_page(title: str, records: Sequence[dict[str, Any]]) -> str:
    """Return the page as HTML. Equal records give equal text.

    `records`: the records of the batches, the first one first, each with ``performance``, None without labels.
    """
    from markupsafe import Markup

    def figure(name: str, last: str, svg: str) -> dict[str, Any]:
        return {"name": name, "last": last, "svg": Markup(svg)}

    measures = [figure(*_measure(name, records)) for name in NAMES if any(_measured(r, name) for r in records)]
    psi = [record["found"]["score"]["psi"] for record in records]
    several = any("scores" in record["found"] for record in records)
    of_score = "Largest PSI of the scores of the classes" if several else "PSI of the score"
    rare = [record["found"]["rare"]["share"] for record in records]
    overall = [
        figure(of_score, f"{psi[-1]:.3f}" if psi else "", _line(psi, _alarmed(records, "score"), LEAST_PSI)),
        figure(
            "Hardly known rows", percent_text(rare[-1]) if rare else "", _line(rare, _alarmed(records, "rare"), None)
        ),
    ]
    features = _features(records)
    return render_template(
        Path(__file__).with_name("watch.html"),
        title=title,
        sentences=_sentences(records),
        measures=measures,
        overall=overall,
        features=[figure(*one) for one in features[:MOST_FEATURES]],
        hidden=max(len(features) - MOST_FEATURES, 0),
        least=LEAST_PSI,
        batches=[_batch(record) for record in reversed(records)],
    )


def _sentences(records: Sequence[dict[str, Any]]) -> list[str]:
    if not records:
        return ["No batch was watched yet."]
    last, alarms = records[-1], _alarms(records[-1])
    if not alarms:
        return [f"The last batch, {last['batch']}, raised no alarm."]
    number = "an alarm" if len(alarms) == 1 else f"{len(alarms)} alarms"
    more = [] if len(alarms) <= 5 else [f"and {len(alarms) - 5} more, which the table of batches names"]
    return [f"The last batch, {last['batch']}, raised {number}:", *map(alarm_text, alarms[:5]), *more]


def _alarms(record: dict[str, Any]) -> list[dict[str, Any]]:
    known = record["performance"]
    found = record["found"]["alarms"] + ([] if known is None else known["alarms"])
    return sorted(found, key=lambda alarm: (alarm["p"], -alarm["value"]))


def _batch(record: dict[str, Any]) -> dict[str, Any]:
    known = record["performance"]
    return {
        "name": record["batch"],
        "time": record["time"][:16].replace("T", " "),
        "version": "" if record["version"] is None else record["version"],
        "rows": f"{record['rows']:,}",
        "labelled": "" if known is None else f"{known['labelled']:,}",
        "alarms": "; ".join(map(alarm_text, _alarms(record)[:12])),
    }


OF_CLASSES = {"score": "class score", "macro_auc": "class auc"}
"""The alarm of a single class that belongs to the figure of all."""


def _alarmed(records: Sequence[dict[str, Any]], what: str) -> list[bool]:
    return [any(alarm["what"] in (what, OF_CLASSES.get(what)) for alarm in _alarms(record)) for record in records]


def _features(records: Sequence[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """Return name, last value and picture of each feature,"""
    series: dict[str, list[float | None]] = {}
    alarmed: dict[str, list[bool]] = {}
    for place, record in enumerate(records):
        named = {alarm["column"] for alarm in record["found"]["alarms"]}
        for column in record["found"]["columns"]:
            name = column["name"]
            series.setdefault(name, [None] * len(records))[place] = column["psi"]
            alarmed.setdefault(name, [False] * len(records))[place] = name in named
    order = sorted(series, key=lambda name: (not any(alarmed[name][-4:]), -max(v or 0.0 for v in series[name][-4:])))
    return [(name, f"{series[name][-1] or 0.0:.3f}", _line(series[name], alarmed[name], LEAST_PSI)) for name in order]


def _measured(record: dict[str, Any], name: str) -> dict[str, float] | None:
    known = record["performance"]
    found: dict[str, float] | None = None if known is None else known["measures"].get(name)
    return found


def _measure(name: str, records: Sequence[dict[str, Any]]) -> tuple[str, str, str]:
    values = [_measured(record, name) for record in records]
    promised = [
        None if r["performance"] is None or r["performance"]["promised"] is None
        else r["performance"]["promised"]["measures"].get(name)
        for r in records
    ]  # fmt: skip
    last = next(value for value in reversed(values) if value is not None)
    shown = [v for v in [*values, *promised] if v is not None]
    low, high = min(v["low"] for v in shown), max(v["high"] for v in shown)
    place = _places(len(records))
    bands = "".join(
        f'<rect x="{x - _step(len(records)) / 2:.1f}" y="{_y(p["high"], low, high):.1f}" width="{_step(len(records)):.1f}" '
        f'height="{max(_y(p["low"], low, high) - _y(p["high"], low, high), 1.0):.1f}" fill="var(--grid)" opacity=".5"/>'
        for x, p in zip(place, promised, strict=True) if p is not None
    )  # fmt: skip
    marks = "".join(
        f'<path d="M{x:.1f} {_y(v["low"], low, high):.1f}V{_y(v["high"], low, high):.1f}" stroke="var(--muted)"/>'
        + _dot(x, _y(v["value"], low, high), alarm)
        for x, v, alarm in zip(place, values, _alarmed(records, name), strict=True) if v is not None
    )  # fmt: skip
    return NAMES[name], _interval(last), _svg(bands + marks, low, high)


def _line(values: Sequence[float | None], alarmed: Sequence[bool], least: float | None) -> str:
    """Return the picture of a series: from 0 to its largest value, or twice the least that counts."""
    there = [v for v in values if v is not None]
    high = max([*there, 2.0 * (least or 0.005)])
    place = _places(len(values))
    points = [(x, _y(v, 0.0, high), a) for x, v, a in zip(place, values, alarmed, strict=True) if v is not None]
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y, _ in points) if points else ""
    dashed = "" if least is None else (
        f'<path d="M{EDGE} {_y(least, 0.0, high):.1f}H{WIDTH - EDGE}" stroke="var(--muted)" stroke-dasharray="4 3"/>'
    )  # fmt: skip
    dots = "".join(_dot(x, y, True) for x, y, a in points if a)
    last = "" if not points or points[-1][2] else _dot(points[-1][0], points[-1][1], False)
    return _svg(f'{dashed}<path d="{path}" fill="none" stroke="var(--neg)" stroke-width="1.6"/>{dots}{last}', 0.0, high)


def _svg(content: str, low: float, high: float) -> str:
    scale = (
        f'<text x="{WIDTH}" y="10" text-anchor="end">{_number(high)}</text>'
        f'<text x="{WIDTH}" y="{HEIGHT - 1}" text-anchor="end">{_number(low)}</text>'
    )
    return f'<svg viewBox="0 0 {WIDTH + 2:.0f} {HEIGHT:.0f}" aria-hidden="true">{content}{scale}</svg>'


def _number(value: float) -> str:
    return f"{value:.2f}" if value >= 0.095 or value == 0 else f"{value:.3f}"


def _dot(x: float, y: float, alarm: bool) -> str:
    fill = "var(--pos)" if alarm else "var(--card)"
    stroke = "var(--pos)" if alarm else "var(--neg)"
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{fill}" stroke="{stroke}" stroke-width="1.5"/>'


def _places(n: int) -> list[float]:
    """Return where batches lie from left to right; the last one always at the same place."""
    return [WIDTH - 34.0 - (n - 1 - i) * _step(n) for i in range(n)]


def _step(n: int) -> float:
    return min((WIDTH - 34.0 - EDGE) / max(n - 1, 1), 16.0)


def _y(value: float, low: float, high: float) -> float:
    share = (value - low) / (high - low) if high > low and math.isfinite(value) else 0.5
    return HEIGHT - EDGE - share * (HEIGHT - 2 * EDGE)

"""Write the page of a watch, with small charts over all batches."""

from collections.abc import Sequence
from pathlib import Path

from aucdist.errors import Json
from aucdist.metrics.guarantees import ALARM_E_VALUE
from aucdist.report.text import GUARANTEES, render_template
from aucdist.text import percent_text

MIN_PSI = 0.1
NAMES = {
    "macro_auc": "Mean AUC of the classes", "auc": "AUC", "partial_auc": "Partial AUC", "recall": "Recall",
    "fpr": "False positive rate", "precision": "Precision", "alerts": "Share of alerts",
    "calibration": "Observed over expected positives",
}  # fmt: skip
ALARM_TEXTS = {
    "moved": "{column} has drifted: PSI {value:.2f}",
    "missing": "{column}: the share of missing values has risen by {points}",
    "unknown": "{column}: the share of rows with none of the known categories has risen by {points}",
    "outside": "{column}: {share} of the rows are outside the range of the training rows",
    "score": "the score has drifted: PSI {value:.2f}",
    "class score": "the score of class {column} has drifted: PSI {value:.2f}",
    "rare": "the share of rows with values that were rare or absent in training has risen by {points}",
    "macro_auc": "the mean AUC of the classes is {value:.3f} lower than on the test rows",
    "class auc": "the AUC of class {column} is {value:.3f} lower than on the test rows",
    "auc": "the AUC is {value:.3f} lower than on the test rows",
    "partial_auc": "the partial AUC is {value:.3f} lower than on the test rows",
    "guarantee": "the threshold no longer keeps its guarantee: over all batches the {metric} is {value:.3f}",
    "recall": "the recall at the operating point is {value:.3f} lower than on the test rows",
    "new": "{column}: {share} of the rows have a category that training did not have",
    "unreadable": "the rows cannot be read like the training rows: {text}",
    "calibration": "the ratio of observed positives to those that the probabilities predict differs from 1 by {value:.2f}",
}
CLASS_ALARMS = {"score": "class score", "macro_auc": "class auc"}
"""Alarms of a single class that belong to the figure of all classes."""


def alarm_text(alarm: Json) -> str:
    """Describe an alarm in a sentence that has no full stop."""
    if alarm["what"] in ("new", "unreadable"):
        return ALARM_TEXTS[alarm["what"]].format(**{"text": "", **alarm}, share=percent_text(alarm["value"]))
    p = "p < 1e-12" if alarm["p"] < 1e-12 else f"p = {alarm['p']:.1g}"
    metric = NAMES.get(alarm["column"], alarm["column"] or "").lower()
    share = percent_text(alarm["value"])
    points = share.replace("%", "percentage points")
    return f"{ALARM_TEXTS[alarm['what']].format(**alarm, share=share, points=points, metric=metric)} ({p})"


def evidence_text(test: Json) -> str:
    """Describe the test of a guarantee in a line of text."""
    noun, bound = GUARANTEES[test["metric"]]
    evidence = f"the e-value against it is {test['evidence']:.3g} ({ALARM_E_VALUE:g} raises an alarm)"
    return f"Guaranteed: {noun} at {bound} {test['guaranteed']:.4g}; {evidence}"


def metric_text(name: str, value: dict[str, float], on_test_rows: dict[str, float] | None) -> str:
    """Describe a metric with its interval, and its value on the test rows of the run."""
    text = f"{NAMES[name]}: {_interval(value)}"
    return text if on_test_rows is None else f"{text}, on the test rows {_interval(on_test_rows)}"


def _interval(value: dict[str, float]) -> str:
    return f"{value['value']:.3f} ({value['low']:.3f} to {value['high']:.3f})"


def render_watch_page(title: str, records: Sequence[Json]) -> str:
    """Return the page as HTML. Equal records give equal text.

    Parameters
    ----------
    title : str
        The title of the page.
    records : sequence of dict
        The records of the batches in the order in which they were watched. ``performance`` of a record has the metrics of its
        labelled rows, or is None without labels.
    """
    psi = [record["comparison"]["score"]["psi"] for record in records]
    several = any("scores" in record["comparison"] for record in records)
    rare = [record["comparison"]["rare"]["share"] for record in records]
    psi_of_columns = [
        {column["name"]: column["psi"] for column in record["comparison"]["columns"]} for record in records
    ]
    features = []
    for name in dict.fromkeys(name for batch_psi in psi_of_columns for name in batch_psi):
        values = [batch_psi.get(name) for batch_psi in psi_of_columns]
        raised = [
            {alarm["what"] for alarm in record["comparison"]["alarms"] if alarm["column"] == name} for record in records
        ]
        features.append(_series(name, f"{values[-1] or 0.0:.3f}", values, raised, MIN_PSI))
    # The columns with an alarm in the last four batches come first, and then those with the largest drift.
    features.sort(key=lambda shown: (not any(shown["alarmed"][-4:]), -max(v or 0.0 for v in shown["values"][-4:])))
    return render_template(
        Path(__file__).with_name("watch.html"),
        title=title,
        sentences=_sentences(records),
        metrics=[_metric(name, records) for name in NAMES if any(_values(name, records))],
        overall=[
            _series(
                "Largest PSI of the scores of the classes" if several else "PSI of the score",
                f"{psi[-1]:.3f}" if psi else "",
                psi,
                _alarmed(records, "score"),
                MIN_PSI,
            ),
            _series(
                "Rows unlike the training rows",
                percent_text(rare[-1]) if rare else "",
                rare,
                _alarmed(records, "rare"),
                None,
            ),
        ],
        features=features,
        least=MIN_PSI,
        batches=[record | {"alarms": list(map(alarm_text, _alarms(record)[:12]))} for record in reversed(records)],
    )


def _sentences(records: Sequence[Json]) -> list[str]:
    if not records:
        return ["No batch was watched yet."]
    last, alarms = records[-1], _alarms(records[-1])
    if not alarms:
        return [f"The last batch, {last['batch']}, raised no alarm."]
    number = "an alarm" if len(alarms) == 1 else f"{len(alarms)} alarms"
    more = [] if len(alarms) <= 5 else [f"and {len(alarms) - 5} more, which the table of batches names"]
    return [f"The last batch, {last['batch']}, raised {number}:", *map(alarm_text, alarms[:5]), *more]


def _alarms(record: Json) -> list[Json]:
    """Return the alarms of a batch. Those about the labels come first, because they say whether the model still ranks well."""
    parts = (record["performance"] or {"alarms": []})["alarms"], record["comparison"]["alarms"]
    return [alarm for part in parts for alarm in sorted(part, key=lambda alarm: (alarm["p"], -alarm["value"]))]


def _alarmed(records: Sequence[Json], subject: str) -> list[bool]:
    return [
        any(alarm["what"] in (subject, CLASS_ALARMS.get(subject)) for alarm in _alarms(record)) for record in records
    ]


def _series(
    name: str, last: str, values: Sequence[float | None], alarmed: Sequence[object], least: float | None
) -> Json:
    """Return the chart of a series.

    It starts at 0 and ends at the largest value, or at twice the alarm threshold if that is larger.

    Parameters
    ----------
    name : str
        The name of the series.
    last : str
        The last value as text.
    values : sequence of float or None
        The value of each batch; None where there is none.
    alarmed : sequence
        For each batch, whether the value raised an alarm. For a feature, it is what the alarm is about.
    least : float or None
        The threshold of an alarm; None if there is none.
    """
    high = max([*(v for v in values if v is not None), 2.0 * (least or 0.005)])
    return {"name": name, "last": last, "values": values, "alarmed": alarmed, "least": least, "low": 0.0, "high": high}


def _values(name: str, records: Sequence[Json], part: str = "performance") -> list[Json | None]:
    """Return the interval of a metric for each batch, or None where there is none.

    `part` selects the labelled rows of the batch, or the test rows of the run.
    """
    return [(record.get(part) or {}).get("metrics", {}).get(name) for record in records]


def _metric(name: str, records: Sequence[Json]) -> Json:
    """Return the chart of a metric, with its intervals on the batches and on the test rows of the run."""
    values = _values(name, records)
    on_test_rows = _values(name, [record["performance"] or {} for record in records], "on_test_rows")
    shown = [v for v in [*values, *on_test_rows] if v]
    return {
        "name": NAMES[name],
        "last": _interval([v for v in values if v][-1]),
        "values": values,
        "on_test_rows": on_test_rows,
        "alarmed": _alarmed(records, name),
        "low": min(v["low"] for v in shown),
        "high": max(v["high"] for v in shown),
    }

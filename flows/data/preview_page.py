"""The page of `aucdist data preview --html`: a histogram by class of each column, its missing values, and its AUC alone."""

import itertools
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import aucdist.report.html
from aucdist.data.dataset import Dataset, Schema, date_features
from aucdist.data.label_sets import LabelSets
from aucdist.data.storage import files
from aucdist.drift.traps import Sample, columns_alone, sample_of
from aucdist.engine.blocks import LocalBlocks
from aucdist.report.html import render_template

MOST_SHOWN, BINS, MOST_BARS = 200, 20, 12
WIDTH, HEIGHT = 160.0, 56.0


@dataclass(frozen=True)
class Bar:
    """The shares of the negative and of the positive rows in a bin, as heights and places in a drawing."""

    x: float
    width: float
    negative: float
    positive: float
    label: str


@dataclass(frozen=True)
class Shown:
    """A column as the page shows it."""

    name: str
    kind: str
    range: str
    missing: str
    auc: str
    suspicious: bool
    bars: list[Bar]


def write_page(path: Path, data: Dataset, warnings: list[str], classes: list[dict[str, Any]]) -> None:
    """Write the page.

    `classes`: of several, as `flows.data.preview.classes_of` returns them; the histograms are of the first of them.
    Raises InputError if jinja2 is not installed, or the file cannot be written.
    """
    block = data.block
    if classes:
        sets = LabelSets.of_schema(data.schema)
        block = replace(block, y=sets.signs(sets.names().index(classes[0]["class"]))[block.code], code=None)
    sample = sample_of(LocalBlocks([block]))
    columns = shown_columns(sample, data.schema)
    n, n_pos = block.n_samples, int((block.y == 1).sum())
    page = render_template(
        Path(aucdist.report.html.__file__).with_name("preview.html"),
        title=data.name.rpartition("/")[2],
        rows=f"{n:,}",
        seen=None if len(sample.values) == n else f"{len(sample.values):,}",
        positives=f"{n_pos:,}",
        negatives=f"{n - n_pos:,}",
        positive=classes[0]["class"] if classes else ", ".join(data.schema.positive),
        negative="all others" if classes else ", ".join(data.schema.negative),
        classes=classes,
        warnings=warnings,
        columns=columns,
        more=max(0, len(data.schema.columns()) - len(columns)),
        width=WIDTH,
        height=HEIGHT,
    )
    files.write_bytes(str(path.absolute()), page.encode())


def shown_columns(sample: Sample, schema: Schema) -> list[Shown]:
    """Return the columns as they are shown, those that rank the rows best first."""
    alone = columns_alone(sample, schema)
    names = sorted(alone, key=lambda name: (-alone[name].auc, name))[:MOST_SHOWN]
    position = {name: j for j, name in enumerate(schema.feature_names)}
    return [_shown(name, alone[name].auc, sample, schema, position) for name in names]


def _shown(name: str, auc: float, sample: Sample, schema: Schema, position: dict[str, int]) -> Shown:
    said, suspicious = f"AUC alone {auc:.3f}" if auc < 0.9995 else f"AUC alone {auc:.4f}", auc >= 0.99
    if name in schema.categories:
        values = [value for value in schema.categories[name] if f"{name}={value}" in position]
        flags = sample.values[:, [position[f"{name}={value}"] for value in values]] > 0
        counts = [(flags[sample.positive == side]).sum(axis=0).astype(float) for side in (False, True)]
        missing = float(flags[:, values.index("(missing)")].mean()) if "(missing)" in values else 0.0
        order = np.argsort(-(counts[0] + counts[1]), kind="stable")[:MOST_BARS]
        labels = [values[i] for i in order]
        bars = _bars(counts[0][order], counts[1][order], sample.positive, labels)
        return Shown(
            name, "categories", f"{len(values)}: {', '.join(labels[:3])}", _share(missing), said, suspicious, bars
        )
    feature, kind = name, "number"
    if name in schema.dates:
        feature, kind = date_features(name, schema.dates[name])[-1], "date"
    column = sample.values[:, position[feature]]
    there = ~np.isnan(column)
    if not there.any():
        return Shown(name, kind, "no values", "100 % missing", said, suspicious, [])
    low, high = (float(v) for v in (column[there].min(), column[there].max()))
    few = np.unique(column[there])
    if len(few) <= MOST_BARS:
        cells = np.searchsorted(few, column[there])
        labels = [f"{value:.6g}" for value in few]
    else:
        first, last = (float(v) for v in np.quantile(column[there], [0.01, 0.99]))
        first, last = (first, last) if first < last else (low, high if high > low else low + 1.0)
        edges = np.linspace(first, last, BINS + 1)
        cells = np.clip(np.searchsorted(edges, column[there], "right") - 1, 0, BINS - 1)
        labels = [f"{a:.4g} to {b:.4g}" for a, b in itertools.pairwise(edges)]
    negative, positive = (
        np.bincount(cells[sample.positive[there] == side], minlength=len(labels)).astype(float)
        for side in (False, True)
    )
    bars = _bars(negative, positive, sample.positive, labels)
    return Shown(name, kind, f"{low:.4g} to {high:.4g}", _share(1.0 - float(there.mean())), said, suspicious, bars)


def _bars(negative: np.ndarray, positive: np.ndarray, sides: np.ndarray, labels: list[str]) -> list[Bar]:
    """Return bars whose heights are shares of each class, the highest filling the drawing."""
    negative, positive = negative / max(1, int((~sides).sum())), positive / max(1, int(sides.sum()))
    top = max(float(negative.max(initial=0.0)), float(positive.max(initial=0.0))) or 1.0
    step = WIDTH / max(1, len(labels))
    return [
        Bar(
            i * step,
            step,
            HEIGHT * float(n) / top,
            HEIGHT * float(p) / top,
            f"{label}: {n:.1%} of negative, {p:.1%} of positive",
        )
        for i, (n, p, label) in enumerate(zip(negative, positive, labels, strict=True))
    ]


def _share(missing: float) -> str:
    return "none missing" if missing == 0.0 else f"{missing:.1%} missing"

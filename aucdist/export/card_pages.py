"""A scorecard to read: as rows, in Markdown, as CSV and as a page."""

import csv
import html
import io
import itertools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from aucdist.errors import unknown
from aucdist.report.text import auc_text, count_text, number_text
from aucdist.scorecard import Scorecard

CARD_SUFFIXES = ("json", "md", "csv", "html")
HEADINGS = ("feature", "value", "points", "share of rows")


@dataclass(frozen=True)
class CardRow:
    """A line of a card.

    `above` and `up_to`: the bin; infinite where it has no end.
    `category`: in place of a bin: which category gets these points, or that missing values do.
    `share`: of the training rows with a value; None for missing values.
    """

    feature: str
    points: int
    share: float | None
    category: str = ""
    above: float = -np.inf
    up_to: float = np.inf

    @property
    def value(self) -> str:
        """Which values get these points."""
        ends = [] if np.isinf(self.above) else [f"above {self.above:.10g}"]
        ends += [] if np.isinf(self.up_to) else [f"up to {self.up_to:.10g}"]
        return "missing" if self.share is None else self.category or ", ".join(ends) or "any"


def card_rows(card: Scorecard) -> list[CardRow]:
    """Return the lines of a card, feature by feature; a row of data finds one line of each feature, or of a category none."""
    items = {f"{name}={value}": (name, value) for name, values in card.schema.categories.items() for value in values}
    rows: list[CardRow] = []
    for feature in card.features:
        item = items.get(feature.name)
        if item is not None and len(feature.points) == 2 and feature.missing is None and feature.points[0] == 0:
            rows.append(CardRow(item[0], int(feature.points[1]), float(feature.shares[1]), item[1]))
            continue
        if feature.missing is not None:
            rows.append(CardRow(feature.name, feature.missing, None, "(missing)"))
        ends = itertools.pairwise([-np.inf, *feature.edges.tolist(), np.inf])
        for points, share, (above, up_to) in zip(feature.points.tolist(), feature.shares.tolist(), ends, strict=True):
            rows.append(CardRow(feature.name, points, share, "", above, up_to))
    return rows


def verdict(card: Scorecard) -> str:
    """Return how points become a decision, as a sentence."""
    positive = ", ".join(card.schema.positive) or "positive"
    start = "" if card.base == 0 else f"Begin with {card.base} points. "
    return f"{start}Add the points of each line that applies. More than {card.cutoff} points: {positive}."


def sentences(card: Scorecard) -> list[str]:
    """Return what the points mean, and what rounding them cost."""
    scaling, rounding, texts = card.scaling, card.rounding, []
    odds = scaling.get("points_to_double_odds")
    if odds is not None:
        texts.append(
            f"{number_text(odds)} points more double the odds; {number_text(scaling['base_points'])} points stand for odds of "
            f"{number_text(scaling['base_odds'])} to 1."
        )
    texts.append(f"Rows have from {card.least} to {card.most} points.")
    texts.append(
        f"The points of any row, be it among these or not, are at most {number_text(rounding['most'])} from those of the model, "
        f"and the difference of any two rows at most {number_text(rounding['most_pair'])}."
    )
    for part in ("train", "test"):
        if part in rounding:
            texts.append(_measured(part, rounding[part]))
    if "not_measured" in rounding:
        texts.append(f"What rounding costs on the rows was not measured: {rounding['not_measured']}.")
    return texts


def _measured(part: str, values: dict[str, Any]) -> str:
    rows = f"{count_text(values['n_samples'])} {'training' if part == 'train' else 'test'} rows"
    own, other = values["auc"], values["auc_of_model"]
    text = f"On the {rows} the AUC of the card is {auc_text(own, other)}, that of the model {auc_text(other, own)}"
    if "loss" in values:
        loss, before = (number_text(values[key], 5) for key in ("loss", "loss_of_model"))
        text += f"; {values['loss_name']} {loss} in place of {before}"
    return text + "."


def to_markdown(card: Scorecard, title: str) -> str:
    """Return a card as Markdown."""
    lines = [f"# {_escaped(title)}", "", _escaped(verdict(card)), ""]
    lines += ["| " + " | ".join(HEADINGS) + " |", "|---|---|---:|---:|"]
    for row in card_rows(card):
        share = "" if row.share is None else f"{100 * row.share:.1f} %"
        lines.append(f"| {_escaped(row.feature)} | {_escaped(row.value)} | {row.points} | {share} |")
    lines += ["", *(f"* {_escaped(sentence)}" for sentence in sentences(card)), ""]
    return "\n".join(lines)


SIGNS = re.compile(r"([\\|`*_\[\]#])")
"""What means something in Markdown within a line: ends of cells, code, emphasis, links, headings."""


def _escaped(text: str) -> str:
    """Return a text that is shown in Markdown as it is, in one line."""
    return SIGNS.sub(r"\\\1", html.escape(" ".join(text.split()), quote=False))


def _cell(text: str) -> str:
    """Return a text as a cell of CSV that no spreadsheet takes for a formula: one that begins so gets an apostrophe."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) else text


def to_csv(card: Scorecard) -> str:
    """Return a card as CSV: feature, bounds (above, up to) or category, points and share."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("feature", "above", "up_to", "category", "points", "share"))
    writer.writerow(("(base)", "", "", "", card.base, ""))
    for row in card_rows(card):
        ends = ("" if np.isinf(end) else end for end in (row.above, row.up_to))
        share = "" if row.share is None else row.share
        writer.writerow((_cell(row.feature), *ends, _cell(row.category), row.points, share))
    writer.writerow(("(cutoff)", "", "", "", card.cutoff, ""))
    return out.getvalue()


def to_page(card: Scorecard, title: str) -> str:
    """Return a card as a page in the look of a run's report."""
    from aucdist.report.html import render_template  # loads pandas

    rows = card_rows(card)
    groups = [list(lines) for _, lines in itertools.groupby(rows, key=lambda row: row.feature)]
    return render_template(
        Path(__file__).with_name("card.html"),
        title=title, verdict=verdict(card), sentences=sentences(card), groups=groups, n_rows=len(rows),
    )  # fmt: skip


def card_file(card: Scorecard, suffix: str, title: str) -> bytes:
    """Return a card as a file of one of `CARD_SUFFIXES`."""
    if suffix not in CARD_SUFFIXES:
        raise unknown("suffix of a scorecard's file", suffix, CARD_SUFFIXES)
    if suffix == "json":
        return card.to_json().encode()
    text = to_csv(card) if suffix == "csv" else to_markdown(card, title) if suffix == "md" else to_page(card, title)
    return text.encode()

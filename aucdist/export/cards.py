"""Convert models of binned features to scorecards with integer points, and write them as JSON, Markdown, CSV or HTML."""

import csv
import html
import io
import itertools
import math
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray

from aucdist.data.block import Block
from aucdist.data.dataset import category_features
from aucdist.engine.blocks import LocalBlocks
from aucdist.errors import InputError, Json, unknown
from aucdist.export.portable import describe
from aucdist.maps.explain import Additive, Shape
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.ranking import auc
from aucdist.model.files import as_model, card_model
from aucdist.model.linear_model import LinearModel
from aucdist.model.scorecard import CardFeature, Scorecard
from aucdist.pairs.problem import pairwise_objective
from aucdist.parameters import frozen
from aucdist.probability.links import IsotonicMap, LinkMap, ProbabilityMap
from aucdist.report.text import render_template
from aucdist.text import auc_text, count_text, number_text

DEFAULT_TOTAL = 1000
"""The default number of points between the lowest and the highest possible sum."""
MIN_ROWS = 2
CARD_SUFFIXES = ("json", "md", "csv", "html")
HEADINGS = ("feature", "value", "points", "share of rows")
MARKDOWN_SIGNS = re.compile(r"([\\|`*_\[\]#])")
"""Characters with a meaning in Markdown: ends of cells, code, emphasis, links and headings."""


@dataclass(frozen=True)
class Scaling:
    """The meaning of the points of a scorecard.

    Attributes
    ----------
    points_to_double_odds : float or None, default=None
        The points that double the odds of the positive class. This needs a model whose probability is a logistic function of the
        score.
    base_points, base_odds : float, default=0.0 and 1.0
        A row with the odds `base_odds` (positive to negative) has `base_points` points.
    total : int or None, default=None
        Used without odds: the number of points between the lowest and the highest possible sum. None means 1000.

    Examples
    --------
    >>> from aucdist.export import Scaling
    >>> Scaling(points_to_double_odds=20, base_points=600)  # even odds have 600 points, and 620 points have odds of 2 to 1
    Scaling(points_to_double_odds=20, base_points=600, base_odds=1.0, total=None)
    """

    points_to_double_odds: float | None = None
    base_points: float = 0.0
    base_odds: float = 1.0
    total: int | None = None

    def check(self) -> None:
        """Raise an InputError unless the numbers can be used and go together."""
        odds = self.points_to_double_odds
        if odds is not None and self.total is not None:
            raise InputError("give either `points_to_double_odds` or `total`: both set the size of a point")
        if odds is None and (self.base_points != 0.0 or self.base_odds != 1.0):
            raise InputError("`base_points` and `base_odds` go with `points_to_double_odds`: give it as well")
        for name, value in (("points_to_double_odds", odds), ("base_odds", self.base_odds)):
            if value is not None and not 0.0 < value <= 1e6:
                raise InputError(f"{name} must be a number above 0 and at most 1e6; got {value!r}")
        if not abs(self.base_points) <= 1e9:
            raise InputError(f"base_points must be a number between -1e9 and 1e9; got {self.base_points!r}")
        if self.total is not None and not 1 <= self.total <= 10**6:
            raise InputError(f"total must be an integer from 1 to 1000000; got {self.total!r}")


@frozen
class _Draft(Shape):
    """A feature of the card while neighbouring bins are merged. Means over bins are weighted by the shares of the training rows.

    Parameters
    ----------
    name : str
        The name of the feature.
    is_category : bool
        Whether the feature is one category of a column.
    ends : list of int
        For each line of the card, the number of bins up to its end. The last entry is the number of all bins.
    """

    name: str
    is_category: bool
    ends: list[int]

    @property
    def n_rows(self) -> int:
        """The number of lines that the feature has on the card. It is 0 if all its points are equal."""
        rows = len(self.ends) + (self.missing is not None)
        if rows == 1:
            return 0
        return 1 if self.is_category and self.missing is None else rows

    def merged(self) -> tuple[ndarray, ndarray]:
        """Return the value of each line of the card and the share of the rows in it, without the line of missing values."""
        starts = np.concatenate(([0], self.ends[:-1])).astype(np.intp)
        share = np.add.reduceat(self.shares, starts)
        plain = np.add.reduceat(self.values, starts) / np.diff(np.append(starts, len(self.values)))
        weighted = np.add.reduceat(self.values * self.shares, starts)
        return np.divide(weighted, share, out=plain, where=share > 0), share

    def cheapest(self) -> tuple[float, int]:
        """Find the merge of two neighbouring lines that changes the score least.

        Returns
        -------
        tuple (float, int)
            The mean squared change of the score for each line that the merge saves, and the position of the first of the two
            lines.
        """
        if len(self.ends) < 2:
            return np.inf, -1
        value, share = self.merged()
        joint_share = np.maximum(share[1:] + share[:-1], 1e-300)
        costs = share[1:] * share[:-1] / joint_share * np.diff(value) ** 2
        k = int(np.argmin(costs))
        saved = 2 if len(self.ends) == 2 and self.missing is None and not self.is_category else 1
        return float(costs[k]) / saved, k

    def points(self, factor: float) -> tuple[ndarray, int | None, float]:
        """Return the points of each line of the card, the points of missing values, and the value with 0 points."""
        value, _ = self.merged()
        lowest = value.min() if self.missing is None else min(value.min(), self.missing)
        zero = float(value[0] if self.is_category else lowest)
        missing = None if self.missing is None else round(factor * (self.missing - zero))
        return np.rint(factor * (value - zero)).astype(np.int64), missing, zero

    def merge_equal(self, factor: float) -> None:
        """Merge neighbouring lines with equal points."""
        points, _, _ = self.points(factor)
        self.ends[:] = itertools.compress(self.ends, np.append(np.diff(points) != 0, True))

    def errors(self, factor: float) -> ndarray:
        """Return the points on the card minus the exact points, for each bin of the model and for missing values, float64."""
        points, missing, zero = self.points(factor)
        wide = np.repeat(points, np.diff(np.append(0, self.ends)))
        return (wide if missing is None else np.append(missing, wide)) - factor * (self.bin_values - zero)


def to_scorecard(model: Any, scaling: Scaling | None = None, *, rows: int | None = None) -> Scorecard:
    """Convert a model of binned features to a scorecard.

    Neighbouring bins with equal points share one line. If `rows` is given, the neighbours are merged for which the mean squared
    change of the training scores is smallest. A monotone shape stays monotone, because the value of a line is a mean of
    neighbours, and rounding keeps their order.

    Parameters
    ----------
    model : estimator or LinearModel
        A fitted model with the feature map ``bins`` and without interactions.
    scaling : Scaling, optional
        How scores become points; ``Scaling()`` by default.
    rows : int, optional
        The largest number of lines. Each category counts as one line.

    Returns
    -------
    Scorecard
        The card. Its ``rounding`` has bounds on the effect of rounding: ``most`` bounds how far the points of a row are from the
        exact ones, and ``most_pair`` bounds the same for the difference of two rows. ``score`` and ``pair`` are these
        bounds in units of the model's score.

    Raises
    ------
    InputError
        If the model is not one of bins without interactions, if it lacks the log odds that the scaling needs, or if `rows` is
        below the smallest number that the card can have.

    Examples
    --------
    The page "Explaining and defending a model" goes from a CSV file to a card.

    >>> from aucdist.model import load_model
    >>> from aucdist.export import Scaling, to_scorecard
    >>> card = to_scorecard(load_model("runs/credit"), Scaling(points_to_double_odds=20), rows=30)  # doctest: +SKIP
    """
    model = as_model(model)
    if model.classes:
        raise InputError("a scorecard belongs to one class: give one of the `models` of this model")
    scaling = scaling or Scaling()
    scaling.check()
    constant, drafts = _drafts(model)
    factor, shift = _points_per_score(model, scaling, constant, drafts)
    for draft in drafts:
        draft.merge_equal(factor)
    if rows is not None:
        if rows < MIN_ROWS:
            raise InputError(
                f"`rows` is {rows}, but a scorecard needs at least {MIN_ROWS} lines: give a larger number, or leave `rows` out"
            )
        while (least := sum(draft.n_rows for draft in drafts)) > rows:
            costs = [draft.cheapest() for draft in drafts]
            at = int(np.argmin([cost for cost, _ in costs]))
            cost, k = costs[at]
            if not np.isfinite(cost):
                raise InputError(
                    f"`rows` is {rows}, but this card needs at least {least} lines, because missing values have lines of their "
                    f"own: give {max(least, MIN_ROWS)} or more"
                )
            del drafts[at].ends[k]
            drafts[at].merge_equal(factor)
    exact_base, low, high, features = factor * constant + shift, 0.0, 0.0, []
    for draft in drafts:
        points, missing, zero = draft.points(factor)
        exact_base += factor * zero
        errors = draft.errors(factor)
        low, high = low + float(errors.min()), high + float(errors.max())
        if draft.n_rows > 0:
            _, shares = draft.merged()
            edges = draft.edges[np.array(draft.ends[:-1], dtype=np.intp) - 1]
            features.append(CardFeature(draft.name, edges, points, np.minimum(shares, 1.0), missing))
        else:
            exact_base += float(points[0])  # would be 0 in exact arithmetic
    base, cutoff = round(exact_base), math.floor(shift)
    base_rounding = base - exact_base
    most = max(abs(low + base_rounding), abs(high + base_rounding))
    rounding = {"most": most, "most_pair": high - low, "score": most / factor, "pair": (high - low) / factor}
    scaling_options = {name: value for name, value in vars(scaling).items() if value is not None}
    preprocessor = replace(model.preprocessor, log1p=(), scale="none", shift=None, factor=None)
    probability: ProbabilityMap | None = None
    # The probability at ``points - cutoff`` is that of the model at the score ``(points - shift) / factor``.
    if isinstance(fitted := model.probability, LinkMap):
        probability = replace(fitted, slope=fitted.slope / factor).shifted(cutoff - shift)
    elif isinstance(fitted, IsotonicMap):
        probability = replace(fitted, scores=factor * fitted.scores).shifted(cutoff - shift)
    return Scorecard(
        base, cutoff, tuple(features), model.schema, preprocessor, probability,
        model.reading, {"points_per_score": factor, "shift": shift} | scaling_options, rounding, model.about,
    )  # fmt: skip


def _drafts(model: LinearModel) -> tuple[float, list[_Draft]]:
    described = describe(model)
    steps = described.score
    if not isinstance(steps, Additive):
        raise InputError("a scorecard needs bins: train the model with `features: bins`")
    if steps.interactions:
        raise InputError(
            "each line of a scorecard has one feature, and this model has interactions. Train again with "
            "`--set model.features=bins --set model.lam=1e-2`"
        )
    if described.unit_rows:
        raise InputError(
            "a scorecard needs features that are scaled one by one: train the model without `scale: unit-row`"
        )
    described.check_no_hashes("a scorecard")
    items = {j for j, feature in enumerate(described.features) if described.columns[feature.column].kind == "category"}
    drafts = [
        _Draft(
            **vars(shape), name=model.schema.feature_names[shape.feature],
            is_category=shape.feature in items and len(shape.values) == 2, ends=list(range(1, len(shape.values) + 1)),
        )
        for shape in steps.shapes
    ]  # fmt: skip
    return steps.constant, drafts


def _points_per_score(
    model: LinearModel, scaling: Scaling, constant: float, drafts: list[_Draft]
) -> tuple[float, float]:
    """Return the factor and the shift that convert scores to points."""
    if scaling.points_to_double_odds is not None:
        probability = model.probability
        if not isinstance(probability, LinkMap) or probability.link.name != "logit" or probability.slope <= 0.0:
            raise InputError(
                "`points_to_double_odds` needs a model whose log odds are a linear function of its score: train it with "
                "`estimator: LinkClassifier` and the logit link, or with `calibration: logit`; or give `total`"
            )
        per_log_odds = scaling.points_to_double_odds / math.log(2.0)
        at_zero = probability.offset + math.log(probability.odds) - math.log(scaling.base_odds)
        return per_log_odds * probability.slope, scaling.base_points + per_log_odds * at_zero
    reach, least = 0.0, constant
    for draft in drafts:
        reach += float(np.ptp(draft.bin_values))
        least += float(draft.bin_values.min())
    if reach <= 0.0:
        raise InputError("all weights of the model are 0, so the card would have no points: train with a smaller `lam`")
    factor = (scaling.total or DEFAULT_TOTAL) / reach
    return factor, -factor * least


def losses_of_card(model: LinearModel, card: Scorecard, rows: Iterable[tuple[str, Block]]) -> Json:
    """Compare a card with its model on rows: return the AUC and the mean training loss of both for each part of the rows.

    Parts that lack rows of one class are left out. Each other part has ``n_samples``, ``auc`` and ``auc_of_model``. If the
    training loss is known, the part also has ``loss``, ``loss_of_model`` and ``loss_name``.

    Parameters
    ----------
    model : LinearModel
        The model.
    card : Scorecard
        The card that was made from the model.
    rows : iterable of tuple (str, Block)
        Blocks of rows, each with the name of the part that it belongs to, such as ``train``.
    """
    from aucdist.metrics.probability import log_loss  # loads SciPy

    rounded = card_model(card)
    scored, losses_by_part = defaultdict(list), {}
    for part, block in rows:
        both = [scorer.decision_function(block.X) for scorer in (rounded, model)]
        scored[part].append((block.y, block.weights(), *both))
    for part, blocks in scored.items():
        y, weight, card_scores, model_scores = map(np.concatenate, zip(*blocks, strict=True))
        if len(np.unique(y)) < 2:
            continue
        of_card, of_model = (auc(ScoreCounts.from_scores(y, scores, weight)) for scores in (card_scores, model_scores))
        values: Json = {"n_samples": len(y), "auc": of_card, "auc_of_model": of_model}
        losses_by_part[part] = values
        losses, name = [], "mean log loss"
        if model.about.get("estimator") == "PairwiseHingeClassifier":
            name = "mean pairwise hinge"
            for scores in (card_scores / card.scaling["points_per_score"], model_scores):
                one_feature = LocalBlocks([Block.of(scores[:, np.newaxis], y, weight=weight)])
                losses.append(pairwise_objective(one_feature, np.ones(1), 0.0))
        elif model.probability is not None and rounded.probability is not None:
            for probability_of, scores in ((rounded.probability, card_scores), (model.probability, model_scores)):
                losses.append(log_loss(ScoreCounts.from_scores(y, probability_of(scores)[:, 1], weight)))
        if losses:
            values |= {"loss": losses[0], "loss_of_model": losses[1], "loss_name": name}
    return losses_by_part


class CardRow(NamedTuple):
    """A line of a card.

    Attributes
    ----------
    feature : str
        The name of the feature.
    points : int
        The points of rows whose value falls into this line.
    share : float or None
        The share of these rows among the training rows with a value; None for the line of missing values.
    category : str
        The category that gets these points, or the text for missing values. It is empty for a bin.
    above, up_to : float
        The bounds of the bin; a bound is infinite if the bin is open on that side.
    """

    feature: str
    points: int
    share: float | None
    category: str = ""
    above: float = -np.inf
    up_to: float = np.inf

    @property
    def value(self) -> str:
        """The values that get these points, as text."""
        ends = [] if np.isinf(self.above) else [f"above {self.above:.10g}"]
        ends += [] if np.isinf(self.up_to) else [f"up to {self.up_to:.10g}"]
        return "missing" if self.share is None else self.category or ", ".join(ends) or "any"


def card_rows(card: Scorecard) -> list[CardRow]:
    """Return the lines of a card, feature by feature.

    A row of data falls into one line of each binned feature. It falls into no line of a column of categories if it has none of
    the categories on the card.
    """
    items = category_features(card.schema.categories)
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
    """Describe in a sentence how a row's points decide its predicted class."""
    positive = ", ".join(card.schema.positive) or "positive"
    start = f"Begin with {card.base} points. " if card.base else ""
    return (
        f"{start}Add the points of each line that applies; a value without a line gets 0 points. Predict {positive} if the "
        f"points are more than {card.cutoff}."
    )


def card_sentences(card: Scorecard) -> list[str]:
    """Describe the meaning of the points and the effect of rounding."""
    scaling, rounding, texts = card.scaling, card.rounding, []
    odds = scaling.get("points_to_double_odds")
    if odds is not None:
        texts.append(
            f"Every {number_text(odds)} points double the odds; {number_text(scaling['base_points'])} points stand for odds of "
            f"{number_text(scaling['base_odds'])} to 1."
        )
    texts.append(f"Rows have from {card.least} to {card.most} points.")
    texts.append(
        f"For any possible row, also one that is unlike all training rows, the card differs from the model by at most "
        f"{number_text(rounding['most'])} points. For the difference between two such rows, the error is at most "
        f"{number_text(rounding['most_pair'])} points. Rows of the data are usually much closer."
    )
    for part, name in (("train", "training"), ("test", "test")):
        if values := rounding.get(part):
            area, other, losses = values["auc"], values["auc_of_model"], ""
            if "loss" in values:
                loss, before = (number_text(values[key], 5) for key in ("loss", "loss_of_model"))
                losses = f"; {values['loss_name']} {loss} in place of {before}"
            texts.append(
                f"On the {count_text(values['n_samples'])} {name} rows the AUC of the card is {auc_text(area, other)}, that of "
                f"the model {auc_text(other, area)}{losses}."
            )
    if "not_measured" in rounding:
        texts.append(f"What rounding costs on the rows was not measured: {rounding['not_measured']}.")
    return texts


def _escaped(text: str) -> str:
    """Escape a text for Markdown, in one line."""
    return MARKDOWN_SIGNS.sub(r"\\\1", html.escape(" ".join(text.split()), quote=False))


def _csv_cell(text: str) -> str:
    """Return a text as a CSV cell. An apostrophe precedes texts that a spreadsheet would take for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) else text


def to_csv(card: Scorecard) -> str:
    """Return a card as CSV with the columns feature, above, up_to, category, points and share."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows(
        [("feature", "above", "up_to", "category", "points", "share"), ("(base)", "", "", "", card.base, "")]
    )
    for row in card_rows(card):
        ends = ("" if np.isinf(end) else end for end in (row.above, row.up_to))
        writer.writerow((_csv_cell(row.feature), *ends, _csv_cell(row.category), row.points, row.share))
    writer.writerow(("(cutoff)", "", "", "", card.cutoff, ""))
    return out.getvalue()


def card_file(card: Scorecard, suffix: str, title: str) -> bytes:
    """Return the content of a card's file. The suffix is one of `CARD_SUFFIXES`."""
    if suffix not in CARD_SUFFIXES:
        raise unknown("suffix of a scorecard's file:", suffix, CARD_SUFFIXES)
    if suffix == "json":
        return card.to_json().encode()
    if suffix == "csv":
        return to_csv(card).encode()
    rows = card_rows(card)
    if suffix == "md":
        lines = [f"# {_escaped(title)}", "", _escaped(verdict(card)), ""]
        lines += ["| " + " | ".join(HEADINGS) + " |", "|---|---|---:|---:|"]
        for row in rows:
            share = "" if row.share is None else f"{100 * row.share:.1f} %"
            lines.append(f"| {_escaped(row.feature)} | {_escaped(row.value)} | {row.points} | {share} |")
        lines += ["", *(f"* {_escaped(sentence)}" for sentence in card_sentences(card)), ""]
        return "\n".join(lines).encode()
    groups = [list(lines) for _, lines in itertools.groupby(rows, key=lambda row: row.feature)]
    return render_template(
        Path(__file__).with_name("card.html"),
        title=title, verdict=verdict(card), sentences=card_sentences(card), groups=groups, n_rows=len(rows),
    ).encode()  # fmt: skip

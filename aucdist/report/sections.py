"""Make sections of the page of a run: the search that chose the parameters, and the shapes and points of an additive model."""

import itertools
import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from aucdist.data.dataset import Schema, category_features
from aucdist.errors import Json
from aucdist.metrics.named import find_metric
from aucdist.report import plots
from aucdist.report.svg import HEIGHT, INK, MUTED, NEG, POS, grid_text
from aucdist.report.text import search_verdict
from aucdist.text import number_text

# ---- a search: the curve over one parameter, and all settings ----------------------------------------------------------

MAX_ROWS = 60
MAX_SHAPES = 24
"""The largest number of shapes that are drawn, those with the widest spread."""
MAX_INTERACTIONS = 8
"""The largest number of interactions that are drawn, those with the widest spread."""
FEW_ROWS = 20
"""Steps of a shape with fewer training rows than this are drawn as a thin line."""
SKEWED = 0.05
"""If a bin is narrower than this multiple of the length of the axis times the bin's share of the rows, all bins get the same
width."""
Panel = tuple[str, float, Any, list[tuple[Any, float, float]]]
"""Name, spread, first shape, and cells: value, share of the rows, and what it adds to the score. A value is a category,
"missing", or the two ends of a bin, which are equal if the bin has one training value."""
DIRECTION_MARKS = {0: ("", ""), 1: ("↗", "may only rise: "), -1: ("↘", "may only fall: ")}
"""The mark of the direction of a shape, and the beginning of its description."""


def search_section(search: Json) -> Json:
    """Return the variables of the section in the template.

    Parameters
    ----------
    search : dict
        The object that ``aucdist cv --json`` prints.

    Returns
    -------
    dict
        ``result``: the search itself. ``figure``: the picture, or None. ``table``: the rows of the table. ``classes``: the
        results of the classes, the worst first.
    """
    table = search["table"]
    metric, rows = find_metric(search["metric"]), table
    if len(rows) > MAX_ROWS:  # the settings with the best means are shown
        rows = sorted(rows, key=lambda row: math.inf if row["mean"] is None else -metric.sign * row["mean"])[:MAX_ROWS]
    varied = [name for name in search["best"] if len({repr(row["parameters"][name]) for row in table}) > 1]
    return {
        "result": search,
        "figure": _curve_figure(search, varied[0]) if len(varied) == 1 else None,
        "metric": metric.heading,
        "rows": rows,
        "sign": metric.sign,
    }


def _curve_figure(search: Json, name: str) -> str | None:
    """Return the picture of the means against a parameter, or None if its values are not numbers."""
    values = [row["parameters"][name] for row in search["table"]]
    if not all(isinstance(value, Real) and not isinstance(value, bool) for value in values):
        return None
    rows = sorted(search["table"], key=lambda row: row["parameters"][name])
    numbers = [(row["parameters"][name], row["mean"], row["standard_error"]) for row in rows]
    x, means, errors = np.array(numbers, dtype=float).T  # None becomes NaN
    heading = find_metric(search["metric"]).heading
    chosen = [row["parameters"] for row in rows].index(search["best"])

    def draw(axes: Any) -> None:
        """Draw the means, with bars of one standard error."""
        plots.intervals(axes, x, means - errors, means + errors, "± 1 standard error")
        axes.plot(x, means, "o-", color=POS, label="mean")
        axes.plot(x[chosen], means[chosen], "D", color=INK, label="chosen", markersize=6)
        log_x = bool((x > 0).all() and x.max() > 20 * x.min())
        axes.set(
            xlabel=name + ", log scale" * log_x,
            ylabel=f"{heading}, mean over the folds",
            xscale="log" if log_x else "linear",
        )

    return plots.inline_svg("path", f"{heading} against {name}", search_verdict(search), draw)


# ---- an additive model: a step plot of each feature, heat maps of interactions, and the points ----------------------------


def additive_section(
    parts: Any,
    schema: Schema,
    directions: np.ndarray | None,
    bands: Sequence[tuple[np.ndarray, np.ndarray]] | None,
    n_halves: int | None,
    n_rows: int,
) -> Json:
    """Return the variables of the section of an additive model: the ranking, the figures, and the points.

    ``pair_points`` has the smallest and the largest number of points that each interaction adds to those of the shapes.

    Parameters
    ----------
    parts : object
        The shapes and interactions of the model, as `aucdist.maps.explain` returns them.
    schema : Schema
        The names of the features. The categories of a column share one figure if no shape has a band or a direction.
    directions : ndarray of shape (n_features,), or None
        +1 where the score may only rise in a feature, -1 where it may only fall.
    bands : sequence of tuple (ndarray, ndarray) or None
        For each shape, the lowest and the highest value in each bin among other fits.
    n_halves : int or None
        The number of fits, each to a half of the training rows.
    n_rows : int
        The number of training rows.
    """
    features = schema.feature_names
    categories = {} if bands or (directions is not None and directions.any()) else schema.categories
    drawn = _panels(parts.shapes, features, categories)
    band_of = dict(zip((s.feature for s in parts.shapes), bands or (), strict=False))
    added = [adds for *_, cells in drawn for *_, adds in cells]
    reach = float(np.abs(np.concatenate([added, *itertools.chain(*bands or ())])).max(initial=0.0)) or 1.0
    figures = []
    for k, (name, _, shape, cells) in enumerate(drawn[:MAX_SHAPES]):
        arrow, rule = DIRECTION_MARKS[0 if directions is None else int(directions[shape.feature])]
        figure: Json = {"name": name, "arrow": arrow, "note": rule + shape_text(shape)}
        figures.append(figure)
        if name in categories:
            figure["note"] = _ends_text(np.array([adds for *_, adds in cells]))
            if len(cells) > MAX_SHAPES:
                figure["note"] += f"; the {MAX_SHAPES} most frequent of {len(cells)} values"
            figure["bars"] = sorted(sorted(cells, key=lambda cell: -cell[1])[:MAX_SHAPES], key=lambda cell: -cell[2])
        else:
            figure["figure"] = plots.inline_svg(
                f"feature-{k}", f"Shape of {name}", figure["note"], shape_plot, 216.0,
                shape=shape, name=name, reach=reach, band=band_of.get(shape.feature), n_rows=n_rows,
            )  # fmt: skip
    interactions = sorted((shape for shape in parts.interactions if shape.spread > 0), key=lambda shape: -shape.spread)
    ranking, heats, pair_points = [(name, spread) for name, spread, *_ in drawn], [], []
    panels = _panels(parts.shapes, features, schema.categories)
    # The points for a score of 1: the sum over all columns is 0 at the lowest and 100 at the highest.
    scale = 100.0 / (sum(np.ptp([adds for *_, adds in cells]) for *_, cells in panels) or math.inf)
    widest = max((float(np.abs(interaction.values).max()) for interaction in interactions), default=0.0)
    distinct = {features[shape.feature]: shape.means for shape in parts.shapes if shape.distinct}
    for k, interaction in enumerate(interactions):
        names = [features[j] for j in interaction.features]
        title, note = " & ".join(names), _ends_text(interaction.values)
        ranking.append((title, interaction.spread))
        pair_points.append((title, scale * float(interaction.values.min()), scale * float(interaction.values.max())))
        if k < MAX_INTERACTIONS:
            svg = plots.inline_svg(
                f"interaction-{k}", title, note, interaction_plot, min(HEIGHT, 130.0 + 24.0 * len(interaction.values)),
                interaction=interaction, names=names, distinct=distinct, reach=widest,
            )  # fmt: skip
            heats.append({"name": title, "note": note, "figure": svg})
    return {
        "ranking": sorted(ranking, key=lambda row: -row[1]),
        "reach": reach,
        "shapes": figures,
        "n_halves": n_halves,
        "interactions": heats,
        "widest": widest,
        "points": point_lines(panels, scale),
        "pair_points": pair_points,
    }


def _panels(shapes: Sequence[Any], features: Sequence[str], categories: Mapping[str, Sequence[str]]) -> list[Panel]:
    """Return the columns that change the score. Those with the widest spread come first."""
    column_of = {name: (name, "") for name in features} | category_features(categories)
    columns: dict[str, list[tuple[str, Any]]] = {}  # the shapes of each column, with the category of a 0/1 feature
    for shape in shapes:
        column, value = column_of[features[shape.feature]]
        columns.setdefault(column, []).append((value, shape))
    rows = []
    for name, members in columns.items():
        (_, shape), *_ = members
        spread, cells = shape.spread, cells_of(shape)
        if name in categories:  # A row adds the values of all shapes of the column: one at 1, and the others at 0.
            absent = sum(shape.values[0] for _, shape in members)
            cells = [(value, s.shares[-1], absent + (s.values[-1] - s.values[0])) for value, s in members]
            rest = 1.0 - sum(share for _, share, _ in cells)
            cells += [("other values", rest, absent)] * bool(rest > 1e-9)
            spread = math.sqrt(sum(share * adds**2 for _, share, adds in cells))
        if spread > 0:
            rows.append((name, spread, shape, cells))
    return sorted(rows, key=lambda row: -row[1])


def cells_of(shape: Any) -> list[tuple[Any, float, float]]:
    """Return the cells of a shape."""
    edges = np.array([shape.extremes[0], *shape.edges, shape.extremes[1]])
    edges[np.abs(edges) < 1e-12 * np.abs(shape.edges).max(initial=0.0)] = 0.0  # scaling has rounded these edges at 0
    values = list(itertools.pairwise(edges.tolist()))
    if shape.distinct:
        values = [(mean, mean) for mean in shape.means]
    cells: list[tuple[Any, float, float]] = list(zip(values, shape.shares, shape.values, strict=True))
    return cells if shape.missing is None else [("missing", math.nan, shape.missing), *cells]


def point_lines(columns: Sequence[Panel], scale: float) -> list[Any]:
    """Return the lines of the table of points: column, values, points and share of the rows.

    Neighbouring bins with equal points share one line, and so do categories.
    """
    lines = []
    for name, _, _, cells in columns:
        low = min(adds for *_, adds in cells)
        rows = [(round(scale * (adds - low), 1), value, share) for value, share, adds in cells]
        if isinstance(cells[-1][0], str):  # categories
            rows.sort(key=lambda row: row[0])
        for (points, _), equal in itertools.groupby(rows, lambda row: (row[0], row[1] == "missing")):
            _, values, shares = zip(*equal, strict=True)
            lines.append((name, values, points, sum(shares)))
    return lines


def shape_text(shape: Any) -> str:
    """Describe the figure of a shape for screen readers."""
    ends = _ends_text(shape.values)
    return ends if shape.missing is None else f"{ends}; {number_text(shape.missing)} where the value is missing"


def _ends_text(values: np.ndarray) -> str:
    return f"from {number_text(float(values.min()))} to {number_text(float(values.max()))}"


def shape_plot(
    axes: Any, shape: Any, name: str, reach: float, band: tuple[np.ndarray, np.ndarray] | None = None,
    n_rows: float = math.inf,
) -> None:  # fmt: skip
    """Plot what a feature adds to the score as steps in the feature's units, with the histogram of the rows beneath.

    Parameters
    ----------
    axes : object
        The axes to draw into: `aucdist.report.svg.Axes`, or those of matplotlib.
    shape : object
        The shape to plot.
    name : str
        The name of the feature.
    reach : float
        The largest absolute contribution of any feature, so that all plots have the same scale.
    band : tuple (ndarray, ndarray), optional
        The lowest and the highest contribution in each bin among other fits.
    n_rows : float, default=math.inf
        The number of training rows. If it is finite, steps with few rows are drawn thin.
    """
    low, edges, ends = -1.08 * reach, shape.edges, shape.extremes
    # Older models do not store the ends of the outer bins. The mean of an outer bin is then drawn in its middle.
    if shape.distinct or np.abs(ends).max() > 1e308:
        with np.errstate(over="ignore"):
            ends = 2.0 * shape.means[[0, -1]] - edges[[0, -1]]
    ends = np.nan_to_num(np.concatenate((ends[:1], edges, ends[1:])))
    widths, values = np.diff(ends / 2), shape.means if shape.distinct else edges
    skewed = (shape.shares * SKEWED * widths.sum() > widths).any()
    if skewed:
        ends, name = np.arange(len(shape.values) + 1.0), f"{name}, bins of equal width"
    if skewed or shape.distinct:
        at, texts = _ticks(values)
        axes.set(xticks=(at + (0.5 if shape.distinct else 1.0) if skewed else values[at]).tolist(), xticklabels=texts)
    heights = low + 0.5 * reach * shape.shares / shape.shares.max()
    axes.stairs(heights, ends, baseline=low, fill=True, color=MUTED, alpha=0.25)
    axes.axhline(0.0, color=MUTED)
    if band is not None:
        axes.stairs(band[1], ends, baseline=band[0], fill=True, color=POS, alpha=0.2)
    axes.stairs(shape.values, ends, color=POS, linewidth=0.7)
    # Rows with a missing value count as well.
    axes.stairs(np.where(shape.shares < FEW_ROWS / n_rows, np.nan, shape.values), ends, color=POS)
    if shape.missing is not None:
        axes.plot(ends[0], shape.missing, "D", color=INK, markersize=5, label="missing")
    axes.set(xlabel=name, ylabel="Adds to the score", ylim=(low, -low))


def _ticks(values: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Return the positions of at most six values, and texts with enough digits to distinguish them."""
    values = np.where(np.abs(values) < 1e-12 * np.abs(values).max(), 0.0, values)
    at = np.arange(0, len(values), max(1, -(-len(values) // 6)))
    shown = values[at].tolist()
    digits = next((d for d in range(3, 17) if len({grid_text(value, d) for value in shown}) == len(shown)), 17)
    return at, [grid_text(value, digits) for value in shown]


def interaction_plot(
    axes: Any, interaction: Any, names: Sequence[str], distinct: Mapping[str, np.ndarray], reach: float
) -> None:
    """Plot a heat map of what an interaction adds to the score, beyond the contributions of its two features.

    Parameters
    ----------
    axes : object
        The axes to draw into.
    interaction : object
        The interaction to plot.
    names : sequence of str
        The names of the features.
    distinct : mapping of str to ndarray
        The values of each feature whose bins have one value each.
    reach : float
        The largest absolute contribution of any interaction, so that all heat maps have the same scale of colours.
    """
    for (row, column), value in np.ndenumerate(interaction.values):
        across, up = column + np.array([-0.5, 0.5, 0.5, -0.5]), row + np.array([-0.5, -0.5, 0.5, 0.5])
        axes.fill(across, up, color=POS if value > 0 else NEG, alpha=abs(value) / reach)
    n_rows, n_columns = interaction.values.shape
    axes.set(xlim=(-0.5, n_columns - 0.5), ylim=(-0.5, n_rows - 0.5), xlabel=names[1], ylabel=names[0])
    for axis, name, edges, missing in zip("yx", names, interaction.edges, interaction.missing, strict=True):
        values = distinct.get(name, edges)
        merged = len(values) != len(edges) + 1
        at, texts = _ticks(edges if merged else values)
        at = (at + missing + 0.5 * merged).tolist()
        axes.set(
            **{f"{axis}ticks": [0.0] * bool(missing) + at, f"{axis}ticklabels": ["missing"] * bool(missing) + texts}
        )

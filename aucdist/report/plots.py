"""The figures of the pages. Each function draws into `aucdist.report.svg.Axes`."""

import html
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.ranking import pr_band, pr_curve, roc_band, roc_curve
from aucdist.report.svg import HEIGHT, INK, LIGHT, MUTED, NEG, POS, WIDTH, Axes

Plot = Callable[..., None]
"""A function that draws into axes."""
CurvePoints = tuple[np.ndarray, np.ndarray]
"""Positions along the horizontal and the vertical axis."""
CURVE_STYLES = [(POS, "-"), (NEG, "--"), (INK, "-."), (MUTED, ":"), (POS, ":"), (NEG, "-.")]
"""The colour and the line style of each curve, in order. The line styles distinguish curves without colours."""
MAX_POINTS = 1000
N_BINS = 60
RARE_SHARE = 0.05
"""Below this share of positives, a reliability diagram has log axes, because linear axes would show only one corner."""


def inline_svg(name: str, title: str, description: str, plot: Plot, height: float = HEIGHT, /, **options: Any) -> str:
    """Return an accessible SVG element, in the colours and the font of the page.

    Parameters
    ----------
    name : str
        Unique on the page; every id in the element starts with it.
    title, description : str
        The text for screen readers.
    plot : Plot
        The function that draws into the axes.
    height : float, default=HEIGHT
        The height in points, for a width of 360 points. A long legend increases it.
    **options : object
        Keyword arguments of `plot`.
    """
    plot(axes := Axes(), **options)
    drawn, height = axes.render(name, height)
    for variable, colour in LIGHT.items():
        drawn = drawn.replace(f'"{colour}"', f'"var(--{variable})"')
    return (
        f'<svg role="img" aria-labelledby="{name}-title {name}-description" viewBox="0 0 {WIDTH:g} {height:g}">'
        f'<title id="{name}-title">{html.escape(title)}</title>'
        f'<desc id="{name}-description">{html.escape(description)}</desc>{drawn}</svg>'
    )


def standalone_svg(name: str, plot: Plot) -> str:
    """Return a standalone SVG file, in the light colours of the pages on white."""
    plot(axes := Axes())
    drawn, height = axes.render(name, HEIGHT)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH:g}pt" height="{height:g}pt" viewBox="0 0 {WIDTH:g} {height:g}" '
        f'font-family="sans-serif"><rect width="100%" height="100%" fill="#ffffff"/>{drawn}</svg>'
    )


def roc(
    axes: Any, train: ScoreCounts, test: ScoreCounts | None, *, log_x: bool, point: tuple[float, float] | None = None,
    max_fpr: float | None = None,
) -> None:  # fmt: skip
    """Plot the ROC curve, with a 95 % band around the test curve if its rows are not weighted.

    Parameters
    ----------
    axes : object
        The axes to draw into.
    train : ScoreCounts
        The counts of the scores of the training rows.
    test : ScoreCounts or None
        The counts of the scores of the test rows, if there are any.
    log_x : bool
        Whether the axis of false positive rates has a log scale.
    point : tuple (float, float), optional
        The false and the true positive rate of the threshold.
    max_fpr : float, optional
        The false positive rate up to which the model was trained.
    """
    smallest = _set_roc_axes(axes, test or train, log_x)
    if test is not None and not test.weighted:
        # The outline follows the upper edge of the band and returns along the lower edge. It passes the two corners in which
        # every ROC curve starts and ends. From where all positives are found, the lower edge is a straight line to (1, 1).
        fpr_low, fpr_high, tpr_low, tpr_high = roc_band(test)
        last = int(np.searchsorted(roc_curve(test)[1], 1.0)) + 1
        above, below = _spread(fpr_low, tpr_high, smallest), _spread(fpr_high[:last], tpr_low[:last], smallest)
        x = np.concatenate(([0], fpr_low[above], [1], fpr_high[below][::-1]))
        y = np.concatenate(([0], tpr_high[above], [1], tpr_low[below][::-1]))
        axes.fill(np.maximum(x, smallest), y, color=POS, alpha=0.18, label="95 % band, test")
    _plot_train_and_test(axes, train, test, lambda counts: _roc_points(counts, smallest))
    chance = np.geomspace(smallest or 1e-3, 1, 100)
    axes.plot(chance, chance, "--", color=MUTED, linewidth=1, label="chance")
    if max_fpr is not None:
        axes.axvline(max_fpr, color=NEG, label="trained up to here")
    if point is not None:
        axes.plot(max(point[0], smallest), point[1], "o", color=NEG, label="threshold")


def roc_curves(axes: Any, curves: Sequence[tuple[str, ScoreCounts]], *, log_x: bool) -> None:
    """Plot the ROC curves of several models."""
    smallest = _set_roc_axes(axes, curves[0][1], log_x)
    for (label, counts), (colour, style) in zip(curves, CURVE_STYLES * len(curves), strict=False):
        axes.plot(*_roc_points(counts, smallest), style, color=colour, label=label)


def _set_roc_axes(axes: Any, counts: ScoreCounts, log_x: bool) -> float:
    """Label and scale the axes of a ROC curve. Return the left end of a log axis, and 0 for a linear axis."""
    axes.set(xlabel="False positive rate" + ", log scale" * log_x, ylabel="True positive rate", ylim=(-0.01, 1.01))
    if not log_x:
        axes.set(xlim=(-0.01, 1.01))
        return 0.0
    smallest = float(10.0 ** np.floor(np.log10(1 / max(counts.rows_neg, 10))))
    axes.set(xscale="log", xlim=(smallest, 1))
    return smallest


def _plot_train_and_test(
    axes: Any, train: ScoreCounts, test: ScoreCounts | None, points: Callable[[ScoreCounts], CurvePoints]
) -> None:
    axes.plot(*points(train), ":", color=INK, label="train")
    if test is not None:
        axes.plot(*points(test), "-", color=POS, label="test")


def _roc_points(counts: ScoreCounts, smallest: float) -> CurvePoints:
    """Return the points of a ROC curve that are drawn.

    `smallest` is the left end of a log axis, and 0 for a linear axis. No point lies left of it.
    """
    fpr, tpr = roc_curve(counts)
    points = _spread(fpr, tpr, smallest)
    return np.maximum(fpr[points], smallest), tpr[points]


def _spread(x: np.ndarray, y: np.ndarray, smallest: float) -> np.ndarray:
    """Return the positions of points that represent a curve and are spread evenly along the axis.

    If `smallest` is above 0, the axis has a log scale that starts there.
    """
    return thin(np.log10(np.maximum(x, smallest)) if smallest else x, y)


def precision_recall(axes: Any, train: ScoreCounts, test: ScoreCounts | None) -> None:
    """Plot precision against recall, with a 95 % band around the test curve if its rows are not weighted."""
    if test is not None and not test.weighted:
        # At each recall, the lowest and highest precision of the points whose confidence rectangles contain this recall.
        recall, precision = pr_curve(test)
        points = thin(recall, precision)
        low, high, precision_low, precision_high = (side[points, np.newaxis] for side in pr_band(test))
        x = np.linspace(float(low.min()), float(high.max()), 300)
        in_range = (low <= x) & (x <= high)
        # With few positives there are gaps between the rectangles. The point with the nearest recall is used there.
        in_range[np.abs(recall[points, np.newaxis] - x).argmin(axis=0), np.arange(len(x))] = True
        lowest = np.where(in_range, precision_low, np.inf).min(axis=0)
        highest = np.where(in_range, precision_high, -np.inf).max(axis=0)
        axes.fill_between(x, lowest, highest, color=POS, alpha=0.18, label="95 % band, test")
    _plot_train_and_test(axes, train, test, lambda counts: thinned(*pr_curve(counts)))
    axes.axhline(share_of_positives(train if test is None else test), color=MUTED, label="random order")
    axes.set(xlabel="Recall", ylabel="Precision", xlim=(-0.01, 1.01), ylim=(-0.01, 1.01))


def score_distributions(axes: Any, counts: ScoreCounts, threshold: float) -> None:
    """Plot the histograms of ``score - threshold`` by class.

    The scale is logarithmic if one class is ten times as frequent as the other.
    """
    low, high = (end - threshold for end in central_range(counts))
    edges = np.linspace(low, high, N_BINS + 1)
    inside = np.clip(counts.values - threshold, low, high)
    bars = [np.histogram(inside, edges, weights=weight)[0] for weight in (counts.neg, counts.pos)]
    log_y = max(counts.n_pos, counts.n_neg) > 10 * min(counts.n_pos, counts.n_neg)
    floor = 0.6 * min(float(b[b > 0].min()) for b in bars) if log_y else 0.0
    for heights, name, colour, style in zip(bars, ("negative", "positive"), (NEG, POS), ("--", "-"), strict=True):
        raised = np.maximum(heights, floor)
        axes.stairs(raised, edges, baseline=floor, fill=True, alpha=0.25, color=colour)
        axes.stairs(raised, edges, baseline=floor, style=style, linewidth=1.5, color=colour, label=name)
    if low <= 0.0 <= high:
        axes.axvline(0.0, color=INK, label="threshold")
    label = "Weight per bar" if counts.weighted else "Rows per bar"
    axes.set(
        xlabel="Score", ylabel=label + ", log scale" * log_y, yscale="log" if log_y else "linear", ylim=(floor, None)
    )


def reliability_diagram(axes: Any, counts: ScoreCounts) -> None:
    """Plot observed against predicted probability in bins of nearly equal numbers of rows.

    Each bin has a confidence interval, unless the rows are weighted.

    Parameters
    ----------
    axes : object
        The axes to draw into.
    counts : ScoreCounts
        Counts of the predicted probabilities.

    Raises
    ------
    InputError
        If a score is not a probability.
    """
    from aucdist.metrics.probability import reliability  # loads SciPy

    bins = reliability(counts)
    log = share_of_positives(counts) < RARE_SHARE
    shares = np.concatenate((bins.predicted, bins.observed))
    least = 0.5 * float(shares[shares > 0].min()) if log else -np.inf
    x, y, low, high = (np.maximum(v, least) for v in (bins.predicted, bins.observed, bins.low, bins.high))
    line = np.array([max(least, 0.0), 1.0])
    axes.plot(line, line, "--", color=MUTED, linewidth=1, label="as predicted")
    if not np.isnan(low).any():
        intervals(axes, x, low, high, f"{100 * bins.level:g} % interval")
    axes.plot(x, y, "o-", color=POS, label="observed")
    axes.set(xlabel="Predicted probability" + ", log scale" * log, ylabel="Share of positives")
    if log:
        axes.set(xscale="log", yscale="log")


def intervals(axes: Any, x: np.ndarray, low: np.ndarray, high: np.ndarray, label: str) -> None:
    """Plot a vertical line from the lower to the upper end at each x."""
    ends = np.column_stack([low, high, np.full(len(x), np.nan)])
    axes.plot(np.repeat(x, 3), ends.ravel(), "-", color=POS, linewidth=1, label=label)


def share_of_positives(counts: ScoreCounts) -> float:
    """Return the share of the rows that are positive, which is the precision of a random order."""
    return counts.n_pos / (counts.n_pos + counts.n_neg)


def thin(x: np.ndarray, y: np.ndarray, n_points: int = MAX_POINTS) -> np.ndarray:
    """Return the positions of at most n_points points that represent a monotone curve. Both its ends are among them.

    The points are spread evenly along the drawn curve, where x and y are each scaled to [0, 1]. So steep parts have points as
    well.
    """
    if len(x) <= n_points:
        return np.arange(len(x))
    steps = sum(np.abs(np.diff(v)) / max(float(np.ptp(v)), 1e-300) for v in (x, y))
    along = np.concatenate(([0.0], np.cumsum(steps)))
    spread = np.searchsorted(along, np.linspace(0, along[-1], n_points - 1))
    return np.unique(np.concatenate((spread, [0, len(x) - 1])).clip(0, len(x) - 1))


def thinned(x: np.ndarray, y: np.ndarray, n_points: int = MAX_POINTS) -> CurvePoints:
    """Return at most n_points points that represent a monotone curve, see `thin`."""
    points = thin(x, y, n_points)
    return x[points], y[points]


def central_range(counts: ScoreCounts) -> tuple[float, float]:
    """Return the range of the scores without the outermost thousandth of each class.

    A histogram over this range is not compressed by outliers.
    """
    ends: list[float] = []
    for weight in (counts.pos, counts.neg):
        if weight.sum() > 0:
            share = np.cumsum(weight) / weight.sum()
            ends += [counts.values[np.searchsorted(share, q).clip(max=len(share) - 1)] for q in (0.001, 0.999)]
    low, high = float(min(ends)), float(max(ends))
    return (low, high) if low < high else (low - 0.5, high + 0.5)

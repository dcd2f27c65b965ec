"""Draw figures as SVG, which takes its colours and its font from the page.

Importing matplotlib and drawing a page with it would take longer than most fits. The methods `stairs`, `plot`, `axhline` and
`set` of `Axes` work as in matplotlib, because `plot_shapes` of the estimators draws the same figures with matplotlib. The other
methods exist only here.
"""

import html
import math
from collections.abc import Callable, Sequence
from typing import Any
from unicodedata import east_asian_width

import numpy as np

from aucdist.errors import printable
from aucdist.text import number_text

LIGHT = {"ink": "#1c2127", "muted": "#59616b", "grid": "#c9ccd0", "pos": "#c24e00", "neg": "#0067a8"}
"""The light colours of the pages. On a page, variables of CSS replace them, so that one SVG serves light, dark and print."""
INK, MUTED, GRID, POS, NEG = LIGHT.values()
WIDTH, HEIGHT, RIGHT = 360.0, 266.0, 12.0
SIZE = 10.5
"""The size of text in points."""
LETTER = 0.62 * SIZE
"""The assumed mean width of a letter, with a margin, because only the browser knows the true width."""
DASHES = {
    "-": "",
    "--": ' stroke-dasharray="6 3"',
    "-.": ' stroke-dasharray="8 2.5 1.5 2.5"',
    ":": ' stroke-dasharray="1.8 2.6"',
}
MARKERS = {
    "o": "m-1,0a1,1 0 1,0 2,0a1,1 0 1,0 -2,0",
    "s": "m-.9,-.9h1.8v1.8h-1.8z",
    "D": "m0,-1.3l1.3,1.3l-1.3,1.3l-1.3,-1.3z",
}
"""Outlines around a point, of radius 1."""


class Axis:
    """The horizontal or the vertical axis: its range, its ticks, and the positions of values."""

    def __init__(self) -> None:
        self.label, self.scale = "", "linear"
        self.low: float | None = None
        self.high: float | None = None
        self.ticks: Sequence[float] = ()
        self.ticklabels: Sequence[str] = ()
        self.seen: list[np.ndarray] = []
        self.first, self.last = 0.0, 1.0  # the positions of the ends in points; `Axes.render` sets them

    @property
    def log(self) -> bool:
        """Whether the axis has a log scale."""
        return self.scale == "log"

    def _scaled(self, values: Any) -> np.ndarray:
        values = np.asarray(values, dtype=float)
        # On a log axis, values that are not positive lie below the picture.
        return np.log10(np.maximum(values, 1e-300)) if self.log else values

    def settle(self) -> None:
        """Choose the ends that were not set or are not finite, with a small margin around the data, and keep them distinct.

        Here and below, a difference is computed as the difference of halves, because the range of float64 does not fit into a
        float64.
        """
        values = np.concatenate([np.ravel(part) for part in self.seen] or [np.zeros(0)])
        values = self._scaled(values[np.isfinite(values) & ((values > 0) | (not self.log))])
        low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
        pad = 0.08 * (high / 2 - low / 2) or 0.05 * abs(low) or 0.5
        limit = 300.0 if self.log else 1.7e308
        self.start, self.end = (
            min(max(end if fixed is None or not math.isfinite(fixed) else float(self._scaled(fixed)), -limit), limit)
            for end, fixed in ((low - pad, self.low), (high + pad, self.high))
        )
        largest = max(abs(self.start), abs(self.end))
        if self.end / 2 - self.start / 2 <= 1e-12 * largest + 1e-300:  # too close for distinct numbers on the grid
            pad = max(0.5, 1e-6 * largest)
            self.start, self.end = self.start - pad, self.start + pad

    def place(self, values: Any) -> np.ndarray:
        """Return the positions of values in the picture, in points."""
        share = (self._scaled(values) / 2 - self.start / 2) / (self.end / 2 - self.start / 2)
        return np.atleast_1d(self.first + (self.last - self.first) * np.clip(share, -9, 9))

    def grid(self) -> Sequence[tuple[float, str]]:
        """Return the values of the grid lines and their labels."""
        if self.ticks:
            return list(zip(self.ticks, self.ticklabels, strict=True))
        low, high = self.start, self.end
        decades = np.arange(np.ceil(low - 1e-9), np.floor(high + 1e-9) + 1) if self.log else np.zeros(0)
        if len(decades) > 1:
            return [(value, number_text(value, 6)) for value in (10.0 ** decades[:: -(-len(decades) // 7)]).tolist()]
        if self.log:
            low, high = 10.0**low, 10.0**high
        half = high / 2 - low / 2
        step = 10.0 ** math.floor(math.log10(half / 2.5))
        step *= next(factor for factor in (1, 2, 5, 10) if 2.75 * factor * step >= half)
        at = step * np.arange(np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9) + 1) + 0.0
        digits = max(6, math.ceil(math.log10(max(abs(low), abs(high)) / step)) + 1)
        return [(value, grid_text(value, digits)) for value in at.tolist()]


class Axes:
    """A picture with two axes, and a legend above it that covers no data."""

    def __init__(self) -> None:
        self.x, self.y = Axis(), Axis()
        self._marks: list[Callable[[], str]] = []
        self._legend: list[tuple[str, str]] = []

    def set(self, **values: Any) -> None:
        """Set labels, limits, scales and ticks: xlabel, xlim, xscale, xticks, xticklabels, and the same for y."""
        for key, value in values.items():
            axis = self.x if key[0] == "x" else self.y
            if key[1:] == "lim":
                axis.low, axis.high = value
            else:
                setattr(axis, key[1:], value)

    def plot(
        self, x: Any, y: Any, style: str = "-", *, color: str, label: str = "", linewidth: float = 1.8, markersize: float = 4.0
    ) -> None:  # fmt: skip
        """Draw a line through points, marks at the points, or both. The style is, for example, "--", "o" or "o-"."""
        marker, line = MARKERS.get(style[0]), style.lstrip("".join(MARKERS))
        stroke = f' fill="none" stroke="{color}" stroke-width="{linewidth:g}"{DASHES.get(line, "")}'
        mark = f'<path transform="translate({{:.1f}} {{:.1f}}) scale({markersize / 2:g})" d="M0,0{marker}" fill="{color}"/>'

        def draw() -> str:
            """Return the line and its marks as SVG, once the axes know their ranges."""
            across, up = self.x.place(x), self.y.place(y)
            marks = (mark.format(*at) for at in zip(across, up, strict=True) if np.isfinite(at).all())
            return f'<path d="{_path(across, up)}"{stroke}/>' * bool(line) + "".join(marks if marker else ())

        sample = f'<path d="M0,0h22"{stroke}/>' * bool(line) + mark.format(11, 0) * bool(marker)
        self._add(x, y, draw, label, sample)

    def fill(self, x: Any, y: Any, *, color: str, alpha: float, label: str = "") -> None:
        """Fill the area within an outline."""
        shape = f'z" fill="{color}" fill-opacity="{alpha:.3g}"/>'

        def draw() -> str:
            """Return the area as SVG, once the axes know their ranges."""
            return f'<path d="{_path(self.x.place(x), self.y.place(y))}{shape}'

        self._add(x, y, draw, label, f'<path d="M0,-5h22v10h-22{shape}')

    def fill_between(self, x: Any, low: Any, high: Any, **look: Any) -> None:
        """Fill the area between two curves."""
        self.fill(np.concatenate([x, x[::-1]]), np.concatenate([high, low[::-1]]), **look)

    def stairs(self, values: Any, edges: Any, *, baseline: Any = None, fill: bool = False, **look: Any) -> None:
        """Draw one value for each interval between edges, as a line of steps or as an area down to a baseline."""
        x, y = np.repeat(edges, 2)[1:-1], np.repeat(values, 2)
        if fill:
            self.fill_between(x, np.repeat(np.broadcast_to(baseline, np.shape(values)), 2), y, **look)
            return
        if baseline is not None:
            x, y = np.pad(x, 1, mode="edge"), np.pad(y, 1, constant_values=baseline)
        self.plot(x, y, **look)

    def axhline(self, y: float, **look: Any) -> None:
        """Draw a horizontal line over the whole width."""
        self.plot([-np.inf, np.inf], [y, y], "--", linewidth=1, **look)

    def axvline(self, x: float, style: str = "-.", **look: Any) -> None:
        """Draw a vertical line over the whole height."""
        self.plot([x, x], [-np.inf, np.inf], style, linewidth=1, **look)

    def note(self, text: str) -> None:
        """Put a text above the picture."""
        self._legend.append(("", text))

    def _add(self, x: Any, y: Any, draw: Callable[[], str], label: str, sample: str) -> None:
        self.x.seen.append(np.asarray(x, dtype=float))
        self.y.seen.append(np.asarray(y, dtype=float))
        self._marks.append(draw)
        if label:
            self._legend.append((sample, label))

    def render(self, name: str, height: float) -> tuple[str, float]:
        """Return the content of the SVG element (legend, grid with numbers, drawings), and its height.

        Parameters
        ----------
        name : str
            A name that is unique on the page.
        height : float
            The smallest height. A long legend increases it.
        """
        x, y = self.x, self.y
        x.settle()
        y.settle()
        across, up = x.grid(), y.grid()
        legend, below = _flow(self._legend)
        widest, widest_up = (max((_width(text) for _, text in ticks), default=0.0) for ticks in (across, up))
        x.first, x.last = 8 + 15 * bool(y.label) + widest_up, WIDTH - RIGHT
        crowded = sum(_width(text) + 1.5 * LETTER for _, text in across) > x.last - x.first
        x.first = max(x.first, crowded * (4 + 0.77 * widest))
        foot = 34 + crowded * 0.6 * widest
        y.last = below + 8
        y.first = max(height - foot, y.last + 110)  # the picture grows with a long legend
        height = y.first + foot
        grid, texts = f"M{x.first:.1f},{y.last:.1f}V{y.first:.1f}H{x.last:.1f}", []
        end = -math.inf  # The end of the label before. A label that would overlap with it is left out.
        for value, text in across:
            at, half = float(x.place(value)[0]), SIZE / 2 if crowded else _width(text) / 2
            if x.first - 0.1 <= at <= x.last + 0.1:
                grid += f"M{at:.1f},{y.last:.1f}V{y.first:.1f}"
                if at - half >= end:
                    end = at + half
                    texts.append(_text(at, y.first + 13, text, "end" if crowded else "middle", -40 * crowded))
        for value, text in up:
            at = float(y.place(value)[0])
            if y.last - 0.1 <= at <= y.first + 0.1:
                grid += f"M{x.first:.1f},{at:.1f}H{x.last:.1f}"
                texts.append(_text(x.first - 4, at + 3.6, text, "end"))
        middle = (x.first + x.last) / 2
        texts.append(_text(middle, height - 5, _short(x.label, x.last - x.first)))
        texts.append(_text(11, (y.first + y.last) / 2, _short(y.label, y.first - y.last), turn=-90))
        size = f'width="{x.last - x.first + 4:.1f}" height="{y.first - y.last + 4:.1f}"'
        return (
            f'<clipPath id="{name}-area"><rect x="{x.first - 2:.1f}" y="{y.last - 2:.1f}" {size}/></clipPath>'
            f'<g font-size="{SIZE}">{legend}'
            f'<path d="{grid}" fill="none" stroke="{GRID}" stroke-width="0.6"/>{"".join(texts)}</g>'
            f'<g clip-path="url(#{name}-area)" stroke-linejoin="round">{"".join(draw() for draw in self._marks)}</g>',
            height,
        )


def _flow(entries: Sequence[tuple[str, str]]) -> tuple[str, float]:
    """Lay out the legend in as many lines as necessary, and return it with the position of its lower end."""
    drawn, at, line = "", 0.0, 0
    for sample, label in entries:
        label = _short(label, WIDTH - 27 * bool(sample))
        width = 27 * bool(sample) + _width(label)
        if at > 0 and at + width > WIDTH:
            at, line = 0.0, line + 1
        middle = 8 + 15 * line
        drawn += f'<g transform="translate({at:.1f} {middle})">{sample}</g>'
        drawn += _text(at + 27 * bool(sample), middle + 3.6, label, "start", colour=INK)
        at += width + 14
    return drawn, 15.0 * (line + 1) if entries else 0.0


def _text(x: float, y: float, text: str, anchor: str = "middle", turn: int = 0, colour: str = MUTED) -> str:
    turned = f' transform="rotate({turn} {x:.1f} {y:.1f})"' if turn else ""
    if anchor == "middle" and not turn:  # the label of the last grid line may be wider than the margin
        x = min(max(x, _width(text) / 2), WIDTH - _width(text) / 2)
    look = f'text-anchor="{anchor}" fill="{colour}"{turned}'
    return f'<text x="{x:.1f}" y="{y:.1f}" {look}>{html.escape(text)}</text>' if text else ""


def _width(text: str) -> float:
    """Estimate the width of a text in points. Chinese, Japanese and Korean letters count twice."""
    return LETTER * sum(1 + (east_asian_width(letter) in "WF") for letter in text)


def _short(text: str, room: float) -> str:
    """Return a text without control characters, shortened to a width in points."""
    text = printable(text)
    if _width(text) <= room:
        return text
    text = text[: int(room / LETTER)]
    while text and _width(text) > room - LETTER:
        text = text[:-1]
    return text + "…"


def grid_text(value: float, digits: int) -> str:
    """Return a number with significant digits. Numbers from 1 to 1e15 have no exponent."""
    text = number_text(value, digits)
    return f"{value:.0f}" if "e" in text and 1 <= abs(value) < 1e15 else text


def _path(x: np.ndarray, y: np.ndarray) -> str:
    """Return the line through points as an SVG path. The line is interrupted where a value is unknown."""
    drawn, pen = [], "M"
    for at, height in zip(x.tolist(), y.tolist(), strict=True):
        known = math.isfinite(at) and math.isfinite(height)
        drawn += [f"{pen}{at:.1f},{height:.1f}"] * known
        pen = "L" if known else "M"
    return "".join(drawn) or "M0,0"

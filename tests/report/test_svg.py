"""The axes that draw themselves: numbers at the grid, places of points, what is clipped, and text that is only text."""

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest

from aucdist.maps.explain import Shape
from aucdist.report.plots import inline_svg, standalone_svg
from aucdist.report.sections import interaction_plot, shape_plot
from aucdist.report.svg import LETTER, POS, WIDTH, Axes, Axis


@pytest.mark.parametrize(
    ("low", "high", "log", "names"),
    [
        (0, 1, False, ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
        (-3.2, 2.9, False, ["-2", "0", "2"]),
        (0, 2_500_000, False, ["0", "500000", "1000000", "1500000", "2000000", "2500000"]),
        (1e-4, 1, True, ["0.0001", "0.001", "0.01", "0.1", "1"]),
        (2, 9, True, ["2", "4", "6", "8"]),
        (1e-20, 1, True, ["1e-20", "1e-17", "1e-14", "1e-11", "1e-8", "1e-5", "0.01"]),
    ],
)
def test_numbers_at_the_grid_are_round(low: float, high: float, log: bool, names: list[str]) -> None:
    axis = Axis()
    axis.low, axis.high, axis.scale = low, high, "log" if log else "linear"
    axis.settle()
    ticks = [tick for tick in axis.grid() if low <= tick[0] * (1 + 1e-9) <= high * (1 + 1e-8) or tick[0] == 0]
    assert [name for _, name in ticks] == names
    assert [float(name) for name in names] == pytest.approx([value for value, _ in ticks])


@pytest.mark.parametrize(
    ("low", "high", "log", "some"),
    [
        (1.7e9, 1.7e9 + 100, False, ["1700000020", "1700000040"]), (20240101, 20240105, False, ["20240101", "20240105"]),
        (0, 5e9, False, ["0", "5000000000"]), (-1e-7, 1 - 1e-7, False, ["0", "0.8"]), (1, 1 + 1e-9, False, ["1.0000000002"]),
        (5, 5, False, ["4.6", "5.4"]), (5, np.nextafter(5, 6), False, ["4.6", "5.4"]), (1e20, 1e20, False, []),
        (7, 3, False, ["6.6", "7.4"]), (np.nan, np.inf, False, ["0", "1"]),
        (-1.2e308, 1.2e308, False, ["-1e308", "0", "5e307"]), (-np.finfo(float).max, np.finfo(float).max, False, ["0"]),
        (0, 5e-324, False, ["0"]), (0, 0, True, ["1e-300"]), (1e-300, 1e300, True, ["1e-300", "1e216"]),
        (1e-320, np.finfo(float).max, True, ["1e-300"]), (2e9, 9e9, True, ["2000000000", "8000000000"]),
    ],
)  # fmt: skip
def test_numbers_at_one_grid_differ_whatever_the_ends(low: float, high: float, log: bool, some: list[str]) -> None:
    axis = Axis()
    axis.low, axis.high, axis.scale = low, high, "log" if log else "linear"
    axis.settle()
    values, names = zip(*axis.grid(), strict=True)
    assert 2 <= len(names) == len(set(names)) <= 8
    assert set(some) <= set(names)
    assert [float(name) for name in names] == pytest.approx(values, rel=1e-9)
    places = axis.place(values)
    assert (np.diff(places) > 0).all()
    assert -0.01 < places[0] < places[-1] < 1.01


def shape_of(edges: Sequence[float], shares: Sequence[float], values: Sequence[float], **more: Any) -> Shape:
    """Return a shape of a model that knows neither its smallest nor its largest training value, unless `more` has them."""
    middle = np.convolve(edges, [0.5, 0.5], "valid") if len(edges) > 1 else np.zeros(0)
    outer = np.array([edges[0] - 0.5, edges[-1] + 0.5])
    about = {"missing": None, "means": np.concatenate((outer[:1], middle, outer[1:]))} | more
    extremes = about.pop("extremes", np.array([-np.inf, np.inf]))
    return Shape(0, np.array(edges), np.array(values), np.array(shares), extremes=extremes, **about)


def drawn(draw: object) -> ET.Element:
    return ET.fromstring(standalone_svg("p", draw))  # type: ignore[arg-type]


def test_points_lie_where_their_values_are() -> None:
    def draw(axes: Axes) -> None:
        axes.plot([0, 1, np.nan, 0.5], [0, 1, 0, 0.25], "-", color=POS)
        axes.set(xlim=(0, 1), ylim=(0, 1))

    clipped = next(g for g in drawn(draw).iter() if "clip-path" in g.attrib)
    line = next(path.attrib["d"] for path in clipped.iter() if "d" in path.attrib)
    (x0, y0), (x1, y1), (x, y) = (map(float, point) for point in re.findall(r"[ML]([\d.]+),([\d.]+)", line))
    assert line.count("M") == 2  # it breaks where a value is unknown
    assert 0 < x0 < x1 < WIDTH
    assert y1 < y0
    assert (x, y) == (pytest.approx((x0 + x1) / 2, abs=0.1), pytest.approx(0.75 * y0 + 0.25 * y1, abs=0.1))


def test_what_is_not_positive_lies_below_a_log_axis() -> None:
    axis = Axis()
    axis.scale = "log"
    axis.seen = [np.array([0.0, -1.0, 1e-3, 10.0, np.inf])]
    axis.settle()
    assert 0 < 10**axis.start < 1e-3
    assert 10 < 10**axis.end < 20
    assert (axis.place([0.0, -1.0]) < 0).all()
    assert axis.place([1e-3, 10.0]) == pytest.approx([0.04 / 1.08, 1.04 / 1.08])


def test_nothing_drawn_and_one_point_have_axes() -> None:
    for draw in (lambda axes: None, lambda axes: axes.plot(5.0, 5.0, "D", color=POS, label="one")):
        assert "nan" not in standalone_svg("p", draw)
        assert drawn(draw) is not None


@pytest.mark.parametrize(
    "edges", [[-1.2e308, 1.2e308], [-1.7e308, 0.0, 1.7e308], [3.0], [1e-320, 2e-320], [5e-324, 1e300]]
)
def test_shapes_over_the_whole_range_of_numbers_are_drawn(edges: list[float]) -> None:
    n_bins = len(edges) + 1
    shares, values = np.full(n_bins, 1 / n_bins), np.linspace(-1, 1, n_bins)
    shape = shape_of(edges, shares, values, missing=0.5)
    text = standalone_svg("p", partial(shape_plot, shape=shape, name="x", reach=1.0))
    assert not re.search(r"nan|\binf", text)
    assert "missing" in text


def test_steps_of_few_rows_are_thin() -> None:
    shape = shape_of([1.0, 2.0], [0.5, 0.4, 0.1], [0.0, 1.0, 0.5])
    for n_rows, points in ((100, 4), (1000, 6), (np.inf, 6)):
        text = standalone_svg("p", partial(shape_plot, shape=shape, name="x", reach=1.0, n_rows=n_rows))
        lines = re.findall(rf'd="([^"]*)" fill="none" stroke="{POS}" stroke-width="([\d.]+)"', text)
        assert {float(width): line.count(",") for line, width in lines} == {0.7: 6, 1.8: points}


def test_edges_of_pairs_have_digits_that_tell_them_apart() -> None:
    pair = SimpleNamespace(
        values=np.eye(4),
        edges=(np.array([10_000_000.0, 10_000_002.0, 10_000_005.0]), np.array([0.5, 0.50001, 2.0])),
        missing=(False, False),
    )
    shown = [
        text
        for text, *_ in texts(
            drawn(partial(interaction_plot, interaction=pair, names=["a", "b"], distinct={}, reach=1.0))
        )
    ]
    assert {"10000000", "10000002", "10000005", "0.5", "0.50001", "2"} <= set(shown)


def test_the_cells_of_a_feature_with_few_values_are_named_after_these() -> None:
    pair = SimpleNamespace(values=np.eye(3, 2), edges=(np.array([0.5]), np.array([0.5])), missing=(True, False))
    distinct = {"is b": np.array([1e-17, 1.0])}  # scaling rounds
    picture = drawn(partial(interaction_plot, interaction=pair, names=["is b", "count"], distinct=distinct, reach=2.0))
    assert sorted(text for text, *_ in texts(picture)) == ["0", "0.5", "1", "count", "is b", "missing"]
    strongest = max(float(path.get("fill-opacity", 0)) for path in picture.iter())
    assert strongest == 0.5  # half of what the strongest cell of any map adds


RATINGS = [1.5, 2.5, 4.5], [0.2, 0.4, 0.3, 0.1], np.zeros(4)


@pytest.mark.parametrize(
    ("more", "ends", "ticks"),
    [
        ({}, [0.5, 1.5, 2.5, 4.5, 5.5], None),  # a mean is in the middle of an outer bin
        ({"extremes": np.array([0.25, 8.0])}, [0.25, 1.5, 2.5, 4.5, 8.0], None),
        (
            {"extremes": np.array([1.0, 6.0]), "means": np.array([1.0, 2.0, 3.0, 6.0])},
            [0.5, 1.5, 2.5, 4.5, 7.5],
            ["1", "2", "3", "6"],
        ),
    ],
    ids=["of an older model", "from the smallest to the largest value", "of few values"],
)
def test_a_shape_is_drawn_to_its_ends_with_grey_bars_as_high_as_their_shares(more, ends, ticks) -> None:
    axes, shape = mock.Mock(), shape_of(*RATINGS, **more)
    shape_plot(axes, shape, "rating", reach=1.0)
    (heights, drawn_ends), drawn_as = axes.stairs.call_args_list[0]
    assert drawn_ends.tolist() == ends
    np.testing.assert_allclose(heights - drawn_as["baseline"], 1.25 * shape.shares)
    labels = [call.kwargs["xticklabels"] for call in axes.set.call_args_list if "xticklabels" in call.kwargs]
    assert labels == ([] if ticks is None else [ticks])


def test_where_bars_of_equal_units_could_not_be_seen_all_bins_have_equal_width() -> None:
    shares, values = [0.4, 0.2, 0.2, 0.2], [1.0, 0.5, -0.5, -1.0]
    even, skewed, few = (
        [text for text, *_ in texts(drawn(partial(shape_plot, shape=shape, name="money", reach=1.0)))]
        for shape in (
            shape_of([1.0, 2.0, 3.0], shares, values),
            shape_of([0.5, 900.0, 1e6], shares, values),
            shape_of(
                [0.5, 450.5, 1e6], shares, values, means=np.array([0, 1, 900, 1999100]), extremes=np.array([0, 1999100])
            ),
        )
    )
    assert "money" in even
    assert {"money, bins of equal width", "0.5", "900", "1000000"} <= set(skewed)
    assert {"money, bins of equal width", "0", "1", "900", "1999100"} <= set(
        few
    )  # the values, since bins have one each


def test_a_long_legend_makes_the_picture_grow() -> None:
    def draw(axes: Axes) -> None:
        for k in range(20):
            axes.plot([0, 1], [0, 1], color=POS, label=f"a9a-all-pairs-lam1e-3-20261127-043000 {k}")

    picture = drawn(draw)
    height = float(picture.attrib["viewBox"].split()[3])
    assert picture.attrib["height"] == f"{height:g}pt"
    area = next(element for element in picture.iter() if element.tag.endswith("clipPath"))[0].attrib
    assert float(area["height"]) >= 100
    assert float(area["y"]) > 20 * 15
    assert float(area["y"]) + float(area["height"]) < height
    line = next(g for g in picture.iter() if "clip-path" in g.attrib)[0].attrib["d"]
    (_, first), (_, last) = re.findall(r"[ML]([\d.]+),([\d.]+)", line)
    assert float(first) > float(last) + 90
    assert f'viewBox="0 0 {WIDTH:g} {height:g}"' in inline_svg("p", "t", "d", draw, 187.0)


def texts(picture: ET.Element) -> list[tuple[str, float, float, float, float]]:
    """Return each text with the ends of its line: the left and the right one, the upper and the lower one."""
    ends = []
    for element in picture.iter():
        if not element.tag.endswith("text"):
            continue
        shown, look = element.text or "", element.attrib
        length = LETTER * sum(2 if "\u3000" < letter < "\uffff" else 1 for letter in shown)
        x, y = float(look["x"]), float(look["y"])
        turn = math.radians(float(re.findall(r"rotate\((-?\d+)", look.get("transform", "rotate(0"))[0]))
        before = {"start": 0.0, "middle": 0.5, "end": 1.0}[look["text-anchor"]] * length
        along = [(x + s * math.cos(turn), y + s * math.sin(turn)) for s in (-before, length - before)]
        (left, right), (top, bottom) = map(sorted, zip(*along, strict=True))
        ends.append((shown, left, right, top, bottom))
    return ends


def assert_texts_fit(picture: ET.Element) -> None:
    height = float(picture.attrib["viewBox"].split()[3])
    for shown, left, right, top, bottom in texts(picture):
        assert left >= -0.1, shown
        assert right <= WIDTH + 0.1, shown
        assert top >= 0, shown
        assert bottom <= height, shown


NAME = '</text><script>"&\x07' + "x" * 100


@pytest.mark.parametrize(
    "name", [NAME, "<b>" + "字" * 60, "z" * 60, "z" * 58], ids=["markup", "wide letters", "60 letters", "58 letters"]
)
@pytest.mark.parametrize("limits", [(0, 1), (0, 2_500_000), (1.7e9, 1.7e9 + 100), (-1.2e308, 1.2e308)])
def test_labels_are_text_alone_and_fit_into_the_picture(name: str, limits: tuple[float, float]) -> None:
    def draw(axes: Axes) -> None:
        for k in range(9):
            axes.plot([0, 1], [0, k], color=POS, label=f"{k}{name}")
        axes.note(name)
        axes.set(xlabel=f"X {name}", ylabel=f"Y {name}", xlim=limits, ylim=(1e-7, 1e7), yscale="log")

    text = inline_svg("p", "t", "d", draw)
    assert POS not in text
    assert "<script" not in text
    assert ("&lt;/text&gt;" in text) == ("script" in name)
    picture = drawn(draw)
    assert sum(name[:6] in shown for shown, *_ in texts(picture)) == 12
    assert_texts_fit(picture)


def test_slanted_numbers_are_within_the_picture() -> None:
    picture = drawn(lambda axes: axes.set(xlim=(1e14, 1.5e14)))  # type: ignore[attr-defined]
    assert sum("rotate(-40" in element.attrib.get("transform", "") for element in picture.iter()) == 6
    assert_texts_fit(picture)


def test_a_number_that_would_reach_into_the_one_before_it_is_left_out() -> None:
    def draw(axes: Any) -> None:
        axes.set(xlim=(400, 900), xticks=[408.0, 415.0, 510.0], xticklabels=["408", "415", "510"])

    shown = [text for text, *_ in texts(drawn(draw))]
    assert ("408" in shown, "415" in shown, "510" in shown) == (True, False, True)

"""The axes that draw themselves: numbers at the grid, places of points, what is clipped, and text that is only text."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from aucdist.report.plots import inline_svg, standalone_svg
from aucdist.report.svg import POS, WIDTH, Axes, Axis


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
    axis.low, axis.high, axis.log = low, high, log
    axis.settle()
    ticks = [
        (value, name) for value, name in axis.ticks() if low <= value * (1 + 1e-9) <= high * (1 + 1e-8) or value == 0
    ]
    assert [name for _, name in ticks] == names
    assert [float(name) for name in names] == pytest.approx([value for value, _ in ticks])


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
    axis.log = True
    axis.seen = [np.array([0.0, -1.0, 1e-3, 10.0, np.inf])]
    axis.settle()
    assert 0 < 10**axis.start < 1e-3
    assert 10 < 10**axis.end < 20
    assert (axis.place([0.0, -1.0]) < 0).all()
    assert axis.place([1e-3, 10.0]) == pytest.approx([0.04 / 1.08, 1.04 / 1.08])


def test_nothing_drawn_and_one_point_have_axes() -> None:
    for draw in (lambda axes: None, lambda axes: axes.plot(5.0, 5.0, "D", color=POS, hollow=True, label="one")):
        text = standalone_svg("p", draw)
        assert "nan" not in text
        assert drawn(draw) is not None


def test_labels_are_text_alone_and_fit_into_the_picture() -> None:
    def draw(axes: Axes) -> None:
        for k in range(9):
            axes.plot([0, 1], [0, k], color=POS, label=f'</text><script>"{k}&\x07' + "x" * 100)
        axes.set(xlabel="a<b")

    text = inline_svg("p", "t", "d", draw)
    assert "<script" not in text
    assert "a&lt;b" in text
    assert POS not in text
    shown = [element.text or "" for element in drawn(draw).iter() if element.tag.endswith("text")]
    assert max(map(len, shown)) <= 70
    assert sum("script" in label for label in shown) == 9

"""The picture of the README: the top of the list beside LightGBM, drawn from `docs/benchmarks/curves.csv` by `make benchmarks`.

Written as text, so that the same file always gives the same picture, on a ground of its own, for pages that are dark.
"""

import csv
from collections.abc import Iterable
from pathlib import Path
from statistics import mean

DOCS = Path(__file__).resolve().parent
PICTURE = DOCS / "pages" / "images" / "top-of-the-list.svg"
OURS, THEIRS = "aucdist auto", "LightGBM, budget of auto"
LEFT, RIGHT, TOP, STEP = 150, 540, 62, 24
"""Where the axis begins and ends, and the first row and the distance between two, in pixels."""


def top_of_the_list(rows: list[dict[str, str]]) -> str:
    """Return an SVG picture: for each set the partial AUC of both systems, the mean over splits, and their CPU seconds."""
    sets = {row["data"] for row in rows if row["system"] == OURS}
    height = TOP + STEP * len(sets) + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 {height}" font-family="sans-serif" font-size="13" '
        'role="img">',
        "<title>The top of the list on each set: aucdist and LightGBM</title>",
        f'<rect width="720" height="{height}" fill="white"/>',
        f'<circle cx="{LEFT}" cy="20" r="6" fill="#3949ab"/>',
        _text(LEFT + 12, 24, "aucdist, features: auto"),
        f'<circle cx="{LEFT + 180}" cy="20" r="5" fill="white" stroke="#e65100" stroke-width="2"/>',
        _text(LEFT + 192, 24, "LightGBM, more settings"),
        _text(RIGHT + 160, 24, "CPU seconds", "end"),
        _text(RIGHT + 90, 44, "aucdist", "end"),
        _text(RIGHT + 160, 44, "LightGBM", "end"),
    ]
    for tick in (0.5, 0.6, 0.7, 0.8, 0.9, 1.0):
        parts.append(f'<path d="M{_x(tick):.1f} {TOP - 14}V{height - 40}" stroke="#ddd"/>')
        parts.append(_text(_x(tick), height - 24, f"{tick:.1f}", "middle"))
    parts.append(_text((LEFT + RIGHT) / 2, height - 6, "partial AUC up to a false positive rate of 0.01", "middle"))
    order = sorted(sets, key=lambda name: -_mean(rows, name, OURS, "partial AUC 0.01"))
    for place, name in enumerate(order):
        parts.extend(_row(rows, name, TOP + STEP * place))
    return "\n".join([*parts, "</svg>", ""])


def _row(rows: list[dict[str, str]], name: str, y: int) -> Iterable[str]:
    ours, theirs = (_x(_mean(rows, name, system, "partial AUC 0.01")) for system in (OURS, THEIRS))
    yield _text(LEFT - 12, y + 4, name, "end")
    yield f'<path d="M{ours:.1f} {y}H{theirs:.1f}" stroke="#999" stroke-width="2"/>'
    yield f'<circle cx="{ours:.1f}" cy="{y}" r="6" fill="#3949ab"/>'
    yield f'<circle cx="{theirs:.1f}" cy="{y}" r="5" fill="white" stroke="#e65100" stroke-width="2"/>'
    for system, x in ((OURS, RIGHT + 90), (THEIRS, RIGHT + 160)):
        yield _text(x, y + 4, f"{_mean(rows, name, system, 'CPU seconds'):.0f}", "end")


def _mean(rows: list[dict[str, str]], name: str, system: str, column: str) -> float:
    return mean(float(row[column]) for row in rows if row["data"] == name and row["system"] == system)


def _x(value: float) -> float:
    return LEFT + (value - 0.5) / 0.5 * (RIGHT - LEFT)


def _text(x: float, y: float, words: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="#222">{words}</text>'


def write_pictures() -> None:
    """Write the picture."""
    with (DOCS / "benchmarks" / "curves.csv").open(encoding="utf-8", newline="") as file:
        PICTURE.write_text(top_of_the_list(list(csv.DictReader(file))), encoding="utf-8")


if __name__ == "__main__":
    write_pictures()

"""Several pictures in one file."""

import re
from collections.abc import Sequence


def panels(pictures: Sequence[str], columns: int = 3) -> str:
    """Return one SVG file of several, side by side and then below each other.

    Parameters
    ----------
    pictures : sequence of str
        As `aucdist.report.plots.picture` returns them.
    columns : int
    """
    placed, x, y, width, height = [], 0.0, 0.0, 0.0, 0.0
    for i, picture in enumerate(pictures):
        wide, high = (_size(picture, side) for side in ("width", "height"))
        if i % columns == 0:
            x, y = 0.0, height
        placed.append(picture.replace("<svg ", f'<svg x="{x:g}" y="{y:g}" ', 1).replace("pt", "", 2))
        x += wide
        width, height = max(width, x), max(height, y + high)
    inner = "\n".join(placed)
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
    return f'{opening}width="{width:g}pt" height="{height:g}pt">\n{inner}\n</svg>\n'


def _size(picture: str, side: str) -> float:
    found = re.search(rf'<svg [^>]*?\b{side}="([0-9.]+)pt"', picture)
    assert found is not None
    return float(found[1])

"""Several figures in one SVG file."""

import re
from collections.abc import Sequence


def panels(figures: Sequence[str], columns: int = 3) -> str:
    """Return one SVG file with several figures in rows.

    Parameters
    ----------
    figures : sequence of str
        SVG files, as `aucdist.report.plots.standalone_svg` returns them.
    columns : int
    """
    placed, x, y, width, height = [], 0.0, 0.0, 0.0, 0.0
    for i, figure in enumerate(figures):
        wide, high = (_size(figure, side) for side in ("width", "height"))
        if i % columns == 0:
            x, y = 0.0, height
        placed.append(figure.replace("<svg ", f'<svg x="{x:g}" y="{y:g}" ', 1).replace("pt", "", 2))
        x += wide
        width, height = max(width, x), max(height, y + high)
    inner = "\n".join(placed)
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
    return f'{opening}width="{width:g}pt" height="{height:g}pt">\n{inner}\n</svg>\n'


def _size(figure: str, side: str) -> float:
    found = re.search(rf'<svg [^>]*?\b{side}="([0-9.]+)pt"', figure)
    assert found is not None
    return float(found[1])

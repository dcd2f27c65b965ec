"""The kind `links`: the GEV link at several shapes, as a distribution function and as a density."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from pydantic import Field

from aucdist.kernels.link_functions import curvature
from aucdist.objectives.links import Link, LinkLoss
from flows.reproduce.kind import Kind, Results
from flows.reproduce.lines import Curve, drawing, lines
from flows.reproduce.page import Section


class Links(Kind):
    """Two figures that need no data."""

    kind: Literal["links"]
    shapes: list[float] = Field(min_length=1)
    reach: float = 4.0

    def sections(self, name: str, results: Results) -> list[Section]:
        """Return the figures."""
        u = np.linspace(-self.reach, self.reach, 401)
        drawings = [
            drawing(
                f"{name}-{what}",
                heading,
                "",
                f"{heading} of the GEV link at several shapes.",
                self._plot(u, what, heading),
            )
            for what, heading in (("cdf", "Distribution function"), ("pdf", "Density"))
        ]
        return [Section(self.title, drawings=drawings)]

    def _plot(self, u: np.ndarray, what: str, heading: str) -> Callable[[Any], None]:
        curves = [
            Curve(f"xi = {xi:g}", u, distribution(xi, u) if what == "cdf" else density(xi, u)) for xi in self.shapes
        ]
        return lines(curves, xlabel="Score", ylabel=heading)


def distribution(xi: float, u: np.ndarray) -> np.ndarray:
    """Return the GEV distribution function of shape xi."""
    return Link("gev", xi).probabilities(u)[0]


def density(xi: float, u: np.ndarray) -> np.ndarray:
    """Return its density: the curvature of the calibrated loss."""
    terms = LinkLoss(Link("gev", xi)).terms
    return np.array([curvature(terms, score, True) for score in u])

"""The kind `links`: distribution function and density of the GEV link at several shapes."""

from typing import Literal

import numpy as np
from pydantic import Field

from aucdist.kernels.link_functions import curvature
from aucdist.objectives.links import Link, LinkLoss
from flows.reproduce.figures import Curve, line_plot, page_figure
from flows.reproduce.kind import Kind, Results
from flows.reproduce.page import PageSection


class Links(Kind):
    """Two figures that need no data."""

    kind: Literal["links"]
    shapes: list[float] = Field(min_length=1)
    reach: float = Field(default=4.0, gt=0, description="The figures show scores from -reach to reach")

    def page_sections(self, name: str, results: Results) -> list[PageSection]:
        """Return the figures."""
        scores = np.linspace(-self.reach, self.reach, 401)
        figures = []
        for suffix, heading, function in (
            ("cdf", "Distribution function", gev_distribution), ("pdf", "Density", gev_density)
        ):  # fmt: skip
            curves = [Curve(f"xi = {xi:g}", scores, function(xi, scores)) for xi in self.shapes]
            description = f"{heading} of the GEV link at several shapes."
            plot = line_plot(curves, xlabel="Score", ylabel=heading)
            figures.append(page_figure(f"{name}-{suffix}", heading, "", description, plot))
        return [PageSection(self.title, figures=figures)]


def gev_distribution(xi: float, scores: np.ndarray) -> np.ndarray:
    """Return the GEV distribution function of shape xi."""
    return Link("gev", xi).probabilities(scores)[0]


def gev_density(xi: float, scores: np.ndarray) -> np.ndarray:
    """Return the GEV density of shape xi, which is the curvature of the calibrated loss."""
    terms = LinkLoss(Link("gev", xi)).terms
    return np.array([curvature(terms, score, True) for score in scores])

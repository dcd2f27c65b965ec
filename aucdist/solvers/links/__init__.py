"""Solvers for probability models: logit, cloglog and GEV links."""

from aucdist.solvers.links.solvers import Gradient, Lipschitz, Newton

__all__ = ["Gradient", "Lipschitz", "Newton"]

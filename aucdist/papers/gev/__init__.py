"""Fu & Liu (2018): class probabilities by the generalised extreme value link, and by the logit, probit and cloglog links."""

from aucdist.papers.gev.solvers import Gradient, Lipschitz, Newton

__all__ = ["Gradient", "Lipschitz", "Newton"]

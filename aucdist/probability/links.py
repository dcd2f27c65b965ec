"""Link functions, which map linear scores to probabilities of the positive class, and the losses that fit them.

Fu & Liu (2018) write g for the inverse link, u = beta.x for the score, xi for the shape and y in {0, 1} for the label. Their
calibrated loss (4) is ``G(u) - y u`` with G' = g. It is convex for every link, because g increases. G is determined up to a
constant. Here the constant of each class is chosen so that the minimum of the loss is 0. Then the loss of a negative row is the
integral of g up to u, and that of a positive row is the integral of 1 - g from u on. With X distributed as g these are the
means of ``max(0, u - X)`` and ``max(0, X - u)``. The choice changes neither gradient nor minimiser, and a value that is never
negative can be compared with a lower bound. For GEV this needs xi < 1: from xi = 1 on, X has no mean and the loss of a positive
row has no minimum.

The other loss is minus the logarithm of the likelihood (3). It is convex, except for GEV with xi > 0.

The module also has the maps from a model's scores to probabilities. They are saved as JSON, which pydantic checks.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy import ndarray
from numpy.polynomial.chebyshev import cheb2poly, chebinterpolate
from pydantic import Field
from scipy.special import expm1, ndtri, zeta

from aucdist.data.own_files import NO_MORE_KEYS, to_jsonable
from aucdist.data.preprocess import Floats
from aucdist.errors import InputError, unknown
from aucdist.parameters import frozen
from aucdist.probability.link_kernels import (
    DEGREE,
    GEV,
    GRID,
    LOG_GRID,
    LOGIT,
    NO_SHAPE,
    PROBIT,
    Terms,
    far_part,
    near_part,
    write_probabilities,
)

LOSSES = ("calibrated", "likelihood")
MIN_XI = -1.0
"""The smallest shape. Below it the slope of g has no bound."""
NO_MEAN_XI = 1.0
"""The shape from which the distribution has no mean, so that the calibrated loss has no minimum."""
LINK_KINDS = {"gev": (GEV, 1.0), "logit": (LOGIT, 1.0), "probit": (PROBIT, 1.0), "cloglog": (GEV, -1.0)}
LINKS = tuple(LINK_KINDS)
Probabilities = tuple[ndarray, ndarray]
"""The probabilities of the positive and of the negative class."""
NO_TABLE = np.zeros((1, DEGREE + 1))
STEEPEST = {"logit": 0.25, "probit": 1.0 / math.sqrt(2.0 * math.pi)}


@dataclass(frozen=True)
class Link:
    """An inverse link function g, from scores to probabilities.

    Attributes
    ----------
    name : {"gev", "logit", "probit", "cloglog"}
        ``gev``: ``exp(-(1 + xi u) ** (-1 / xi))``, and ``exp(-exp(-u))`` at xi = 0. ``logit``: ``1 / (1 + exp(-u))``.
        ``probit``: the normal distribution function. ``cloglog``: ``1 - exp(-exp(u))``.
    xi : float
        The shape of ``gev``, at least -1. Other links ignore it.

    Raises
    ------
    InputError
        If the name is unknown, or the shape is out of range.
    """

    __pydantic_config__ = NO_MORE_KEYS
    name: str
    xi: float = 0.0

    def __post_init__(self) -> None:
        if self.name not in LINKS:
            raise unknown("link", self.name, LINKS)
        check_shape(self.xi)
        if self.name != "gev" and self.xi:
            raise InputError(f"xi is {self.xi!r}, but only the link gev has a shape: leave xi out")

    def probabilities(self, scores: Any) -> Probabilities:
        """Return g and 1 - g at each score, both with full relative precision. Outside of the support, they are exactly 0 and 1.

        Parameters
        ----------
        scores : array-like of shape (n_samples,)
            The scores.

        Returns
        -------
        above, below : ndarray of shape (n_samples,), float64
        """
        u = np.ascontiguousarray(scores, dtype=float)
        above, below = np.empty((2, len(u)))
        write_probabilities(self.terms(likelihood=True), u, above, below)
        return above, below

    def score(self, probability: float) -> float:
        """Return the score with this probability, which must be above 0.

        A probability of 1 is treated as one that was rounded to 1.
        """
        probability = min(probability, 1.0 - 1e-16)
        if self.name == "logit":
            return math.log(probability / (1.0 - probability))
        if self.name == "probit":
            return float(ndtri(probability))
        if self.name == "cloglog":
            return math.log(-math.log1p(-probability))
        minus_log_t = -math.log(-math.log(probability))
        return minus_log_t if abs(self.xi) < NO_SHAPE else float(expm1(self.xi * minus_log_t)) / self.xi

    @property
    def steepest(self) -> float:
        """The largest slope of g: (9) of the paper for ``gev``, ``exp(-(1 + xi)) (1 + xi) ** (1 + xi)``."""
        return STEEPEST.get(self.name) or math.exp(-(1.0 + self.xi)) * (1.0 + self.xi) ** (1.0 + self.xi)

    @property
    def mean(self) -> float:
        """The mean of the distribution with distribution function g. xi must be below 1."""
        if self.name in STEEPEST:
            return 0.0
        xi = self.xi  # the mean is (Gamma(1 - xi) - 1) / xi, which is Euler's constant at xi = 0
        if abs(xi) > 0.1:
            return math.expm1(math.lgamma(1.0 - xi)) / xi
        k = np.arange(2, 20)
        log_gamma_over_xi = np.euler_gamma + float(np.sum(zeta(k) / k * xi ** (k - 1)))
        return log_gamma_over_xi if abs(xi) < NO_SHAPE else math.expm1(xi * log_gamma_over_xi) / xi

    def terms(self, *, likelihood: bool) -> Terms:
        """Return the link and its loss in the form that the kernels take."""
        kind, sign = LINK_KINDS[self.name]
        mean, near, far = 0.0, NO_TABLE, NO_TABLE
        if kind == GEV and not likelihood:
            mean = self.mean
            near = _polynomials(lambda t: near_part(self.xi, t), GRID)
            far = _polynomials(lambda log_t: far_part(self.xi, math.exp(log_t)), LOG_GRID)
        return Terms(kind, sign, float(self.xi), mean, near, far, likelihood)


def check_shape(xi: float) -> None:
    """Raise an InputError if a shape is below -1 or not finite."""
    if not MIN_XI <= xi < math.inf:
        raise InputError(f"xi must be at least -1 and finite; got {xi!r}. Below -1 the slope of the link has no bound")


def _polynomials(function: Callable[[float], float], intervals: tuple[float, float, int]) -> ndarray:
    """Return polynomials that interpolate a function, one per interval, as coefficients of a variable from -1 to 1."""
    start, width, n = intervals
    table = np.zeros((n, DEGREE + 1))
    for k in range(n):
        middle = start + width * (k + 0.5)
        values = np.vectorize(lambda x, middle=middle: function(middle + 0.5 * width * x))
        table[k] = chebinterpolate(values, DEGREE) @ _powers_of_chebyshev()
    return table


@cache
def _powers_of_chebyshev() -> ndarray:
    """Return the coefficients of the Chebyshev polynomials, one per row.

    They are computed once, because NumPy's conversion takes 3 ms for each link.
    """
    out = np.zeros((DEGREE + 1, DEGREE + 1))
    for k in range(DEGREE + 1):
        out[k, : k + 1] = cheb2poly(np.eye(DEGREE + 1)[k, : k + 1])
    return out


@dataclass(frozen=True)
class LinkLoss:
    """A link and the loss by which it is fitted.

    Attributes
    ----------
    name : {"calibrated", "likelihood"}
        The name of the loss.

    Raises
    ------
    InputError
        If the name is unknown, or the loss has no minimum for the shape.
    """

    link: Link
    name: str = "calibrated"

    def __post_init__(self) -> None:
        if self.name not in LOSSES:
            raise unknown("loss", self.name, LOSSES)
        if not self.likelihood and self.link.xi >= NO_MEAN_XI:
            raise InputError(
                f"with loss='calibrated', xi must be below 1; got {self.link.xi!r}. From 1 on the distribution has no mean, and "
                "the loss has no minimum. loss='likelihood' takes any xi from -1"
            )

    @property
    def likelihood(self) -> bool:
        """Whether the loss is minus the log-likelihood."""
        return self.name == "likelihood"

    @property
    def convex(self) -> bool:
        """Whether the loss is convex in the score, so that a gradient gives a lower bound."""
        return not (self.likelihood and self.link.xi > 0.0)

    @property
    def largest_curvature(self) -> float | None:
        """An upper bound on the second derivative of the loss by the score, or None if there is no bound."""
        if not self.likelihood:
            return self.link.steepest
        # The two losses of logit are the same. That of probit is bounded by the variance of a truncated normal variable.
        return {"logit": 0.25, "probit": 1.0}.get(self.link.name)

    @cached_property
    def terms(self) -> Terms:
        """The loss in the form that the kernels take."""
        return self.link.terms(likelihood=self.likelihood)


@frozen
class ProbabilityMap(ABC):
    """A map from scores to probabilities of the positive class.

    Attributes
    ----------
    odds : float
        Factor for the odds of the positive class, see `corrected`.
    """

    __pydantic_config__ = NO_MORE_KEYS
    odds: Annotated[float, Field(gt=0.0)]

    def __call__(self, scores: ndarray) -> ndarray:
        """Return the probabilities of the negative and of the positive class, float64 of shape (n_samples, 2).

        Parameters
        ----------
        scores : ndarray of shape (n_samples,), float64
            The scores of the rows.
        """
        positive, negative = self._both(scores)
        weighted = self.odds * positive
        whole = weighted + negative
        return np.column_stack([negative / whole, weighted / whole])

    def corrected(self, share: float, prior: float | None) -> Self:
        """Return the map for data with another share of positives, but the same distribution within each class.

        By Bayes' rule, the odds of every row are multiplied by the ratio of the odds of the two shares. This is exact if training
        rows were left out at random within a class, as by undersampling.

        Parameters
        ----------
        share : float
            Share of positives among the rows that the map was fitted to.
        prior : float or None
            Share of positives among the rows to predict; None for the same share.
        """
        if prior is None:
            return self
        return replace(self, odds=prior / (1.0 - prior) * (1.0 - share) / share)

    @abstractmethod
    def _both(self, scores: ndarray) -> Probabilities:
        """Return the probabilities of the positive and of the negative class, before the odds are corrected."""

    @abstractmethod
    def shifted(self, by: float) -> Self:
        """Return the same map for scores from which `by` has been subtracted."""

    def to_json(self) -> Any:
        """Return the map as a dict of JSON values, which is read as `SavedMap`."""
        return to_jsonable(self, SavedMap)


@frozen
class LinkMap(ProbabilityMap):
    """The map from a score to the probability of the link at ``slope * score + offset``."""

    link: Link
    slope: float
    offset: float
    kind: Literal["link"] = "link"

    def _both(self, scores: ndarray) -> Probabilities:
        return self.link.probabilities(self.slope * scores + self.offset)

    def shifted(self, by: float) -> "LinkMap":
        """Return the same map for scores from which `by` has been subtracted."""
        return replace(self, offset=self.offset + self.slope * by)


@frozen
class IsotonicMap(ProbabilityMap):
    """The map that interpolates linearly between points, and is constant beyond the first and the last point.

    Attributes
    ----------
    scores, probabilities : ndarray of shape (n_points,), float64
        The points, both ascending.
    """

    scores: Floats
    probabilities: Floats
    kind: Literal["isotonic"] = "isotonic"

    def __post_init__(self) -> None:
        scores, probabilities = self.scores, self.probabilities
        if len(scores) != len(probabilities) or not len(scores):
            raise InputError(f"it has {len(scores)} scores, but {len(probabilities)} probabilities")
        falls = (np.diff(scores) < 0).any() or (np.diff(probabilities) < 0).any()
        if falls or not 0.0 <= probabilities[0] <= probabilities[-1] <= 1.0:
            raise InputError("its scores and probabilities must ascend, and its probabilities be from 0 to 1")

    def _both(self, scores: ndarray) -> Probabilities:
        positive = np.interp(scores, self.scores, self.probabilities)
        return positive, 1.0 - positive

    def shifted(self, by: float) -> "IsotonicMap":
        """Return the same map for scores from which `by` has been subtracted."""
        return replace(self, scores=self.scores - by)


def probabilities_of_classes(maps: Sequence[ProbabilityMap], scores: ndarray, exclusive: bool) -> ndarray:
    """Return the probability of each class, given the scores of each class against the rest.

    Probabilities of classes that exclude each other are divided by their sum. If all of them are 0, each class gets the same
    probability. If rows may have several classes, the probabilities are not normalised.

    Parameters
    ----------
    maps : sequence of ProbabilityMap
        The map of each class.
    scores : ndarray of shape (n_samples, n_classes), float64
        The scores of each class.
    exclusive : bool
        Whether classes exclude each other.

    Returns
    -------
    ndarray of shape (n_samples, n_classes), float64
    """
    each = np.column_stack([probability(scores[:, k])[:, 1] for k, probability in enumerate(maps)])
    if not exclusive:
        return each
    total = each.sum(axis=1, keepdims=True)
    return np.divide(each, total, out=np.full_like(each, 1.0 / len(maps)), where=total > 0.0)


SavedMap: Any = Annotated[LinkMap | IsotonicMap, Field(discriminator="kind")]
"""The types of the maps that `to_json` writes."""

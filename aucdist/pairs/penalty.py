"""Penalties of cutting planes. A new one is a subclass of `Penalty` or of `SparsePenalty`, and is listed in `PENALTIES`.

A differentiable penalty is minimised by line searches towards the minimum of all cuts, and any other one by proximal steps.
Newton steps, the interior-point method and L-BFGS support only `L2`.

The bundle's lower model of the loss is a combination of lines, ``offset + slope.w``. A penalty computes the minimum of
the sum of such a line and the penalty, over the cone of the signs of the weights (`aucdist.solvers.signs`). This
minimum is the dual value of the combination. With a proximal term it is

    min over w of  offset + slope.w + penalty(w) + mu/2 |w - centre|^2,

and `aucdist.pairs.bundle` needs its value, its minimiser, its bound and its quadratic model in the combination.
"""

from abc import ABC, abstractmethod
from dataclasses import field, replace
from functools import cached_property
from typing import ClassVar, Protocol, Self

import numpy as np
from numpy import ndarray

from aucdist.parameters import frozen
from aucdist.solvers.rounding import EPS, EXTRA_OPERATIONS, Rounding
from aucdist.solvers.signs import FREE, outside, project_onto_cone


class Combination(Protocol):
    """The properties of a combination of dual points on which bounds on rounding depend.

    It is a protocol, because modules must not import each other.
    """

    @property
    def offset(self) -> float:
        """The offset of the lower model, which is its value at w = 0."""

    @property
    def n_points(self) -> int:
        """The number of points."""


@frozen
class Penalty(ABC):
    """A convex penalty of the weights.

    Attributes
    ----------
    lam : float
        The strength of the penalty, above 0.
    signs : ndarray of shape (n_features,), int8, or None
        The signs of the weights, see `aucdist.solvers.signs`.
    groups : ndarray of shape (n_features,), int64
        The number of each weight's group, ascending from 0, for penalties that have groups.
    name : str
        The name in configurations.
    has_corners : bool
        Whether the penalty is not differentiable where weights are 0. It then sets weights to 0. A point between two others has
        the nonzero weights of both, so there is no line search.
    precision : float
        If the values of the bundle's best combination for two patterns of zeros and signs differ by a smaller share, they count
        as equal.
    """

    lam: float = 1.0
    signs: ndarray | None = None
    groups: ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    name: ClassVar[str]
    has_corners = True
    precision: ClassVar[float]

    def with_lam(self, lam: float) -> Self:
        """Return the same penalty with another strength."""
        return replace(self, lam=lam)

    @abstractmethod
    def value(self, w: ndarray) -> float:
        """Return the penalty of the weights, float64 of shape (n_features,)."""

    @abstractmethod
    def minimiser(self, slope: ndarray, centre: ndarray, mu: float) -> ndarray:
        """Return the w that minimises ``slope.w + penalty(w) + mu/2 |w - centre|^2`` over the cone.

        Parameters
        ----------
        slope : ndarray
            The linear term.
        centre : ndarray
            The weights that the quadratic term is centred at.
        mu : float
            At least 0, and above 0 for a penalty with corners.
        """

    @abstractmethod
    def quadratic(
        self, points: ndarray, slope: ndarray, w: ndarray, centre: ndarray, mu: float
    ) -> tuple[ndarray, ndarray]:
        """Return H and q, so that the dual value near a combination is ``(offsets + q).b - b'Hb / 2``, up to a constant.

        Parameters
        ----------
        points : ndarray of shape (n_points, n_features), float64
            The gradients of the bundle's points.
        slope, w : ndarray of shape (n_features,), float64
            The slope ``b @ points`` of the combination, and its minimiser.
        centre, mu
            As for `minimiser`.

        Returns
        -------
        H : ndarray of shape (n_points, n_points), float64
        q : ndarray of shape (n_points,), float64
        """

    @abstractmethod
    def bound(self, offset: float, slope: ndarray, w: ndarray) -> float:
        """Return a lower bound on ``offset + slope.v + penalty(v)`` at every v of the cone. If it has a minimum, this is at w."""

    @abstractmethod
    def bound_error(
        self, bound: float, w: ndarray, bundle: Combination, rounding: Rounding, weight_error: float
    ) -> float:
        """Return a bound on the rounding error of a bound.

        Parameters
        ----------
        bound : float
            What `bound` returned.
        w : ndarray of shape (n_features,), float64
            The argument `w` of `bound`.
        bundle : Combination
            The combination for which the bound was computed.
        rounding : Rounding
            The sizes of the data.
        weight_error : float
            A bound on the relative error of the weight of the combination.

        Returns
        -------
        float
        """

    @abstractmethod
    def steepest_square(self, gradient: ndarray) -> float:
        """Return the squared length of the steepest descent of loss and penalty at w = 0, for a loss with this gradient."""

    def slope_along(self, w: ndarray, move: ndarray, step: float) -> float:
        """Return the derivative by the step along a direction from w.

        Solvers do not use it for penalties that set weights to 0.
        """
        raise NotImplementedError


@frozen
class L2(Penalty):
    """``lam/2 |w|^2``, with which all weights may differ from 0."""

    name = "l2"
    has_corners = False
    precision = 1e-10

    def value(self, w: ndarray) -> float:
        """Return ``lam/2 |w|^2``."""
        return 0.5 * self.lam * float(w @ w)

    def minimiser(self, slope: ndarray, centre: ndarray, mu: float) -> ndarray:
        """Return ``(mu centre - slope) / (lam + mu)``, projected onto the cone."""
        return project_onto_cone((mu * centre - slope) / (self.lam + mu) if mu > 0.0 else -slope / self.lam, self.signs)

    def quadratic(
        self, points: ndarray, slope: ndarray, w: ndarray, centre: ndarray, mu: float
    ) -> tuple[ndarray, ndarray]:
        """Return the quadratic in the weights that are not 0, or that may have any sign."""
        total = self.lam + mu
        free = (w != 0.0) | (self.signs == FREE)
        part = points[:, free]
        return part @ part.T / total, (mu / total) * (part @ centre[free])

    def bound(self, offset: float, slope: ndarray, w: ndarray) -> float:
        """Return ``offset - lam/2 |w|^2``. It is valid because w is orthogonal to the part that the projection removes."""
        return float(offset - 0.5 * self.lam * (w @ w))

    def bound_error(
        self, bound: float, w: ndarray, bundle: Combination, rounding: Rounding, weight_error: float
    ) -> float:
        """Return a bound on the rounding error of the offset and of ``|lam w|^2 / (2 lam)``."""
        offset, n_points = bundle.offset, bundle.n_points
        slope_error = rounding.combination(2.0 * offset, extra=2 * n_points)
        offset_error = (rounding.over_rows + EPS * n_points) * offset
        return offset_error + rounding.half_square(self.lam * w, slope_error) / self.lam + weight_error * offset

    def steepest_square(self, gradient: ndarray) -> float:
        """Return ``|gradient|^2``."""
        return float(gradient @ gradient)

    def slope_along(self, w: ndarray, move: ndarray, step: float) -> float:
        """Return ``lam move.(w + step move)``."""
        return self.lam * float(w @ move + step * (move @ move))


@frozen
class SparsePenalty(Penalty):
    """A norm of the weights times lam, which sets weights to 0.

    Dual variables give a bound if the dual norm of their slope is at most lam. If it is larger, all of them are scaled down.
    """

    precision = 1e-9

    @abstractmethod
    def dual_norm(self, sizes: ndarray) -> float:
        """Return the dual norm of a slope, given the absolute values of its entries, float64 of shape (n_features,)."""

    def bound(self, offset: float, slope: ndarray, w: ndarray) -> float:
        """Return the offset, scaled down until w = 0 is optimal within the cone."""
        size = self.dual_norm(outside(slope, self.signs))
        return (min(1.0, self.lam / size) if size > 0.0 else 1.0) * offset

    def bound_error(
        self, bound: float, w: ndarray, bundle: Combination, rounding: Rounding, weight_error: float
    ) -> float:
        """Return a bound on the rounding error of a bound, including that of the dual norm which scales it."""
        slope_error = rounding.combination(2.0 * bundle.offset, extra=2 * bundle.n_points)
        relative = rounding.over_rows + EPS * bundle.n_points
        return bound * (relative + self.dual_norm(slope_error) / self.lam) + weight_error * bound


@frozen
class L1(SparsePenalty):
    """``lam |w|_1``, which sets single weights to 0."""

    name = "l1"

    def value(self, w: ndarray) -> float:
        """Return ``lam |w|_1``."""
        return self.lam * float(np.abs(w).sum())

    def dual_norm(self, sizes: ndarray) -> float:
        """Return the largest entry."""
        return float(sizes.max(initial=0.0))

    def minimiser(self, slope: ndarray, centre: ndarray, mu: float) -> ndarray:
        """Return ``centre - slope / mu`` with each entry moved towards 0 by ``lam / mu``, projected onto the cone."""
        w = centre - slope / mu
        return project_onto_cone(np.sign(w) * np.maximum(np.abs(w) - self.lam / mu, 0.0), self.signs)

    def quadratic(
        self, points: ndarray, slope: ndarray, w: ndarray, centre: ndarray, mu: float
    ) -> tuple[ndarray, ndarray]:
        """Return the quadratic in the weights that are not 0, for their present signs."""
        used = np.flatnonzero(w)
        part = points[:, used]
        return part @ part.T / mu, part @ (centre[used] - self.lam / mu * np.sign(w[used]))

    def steepest_square(self, gradient: ndarray) -> float:
        """Return the squared length of the part of the gradient that exceeds lam."""
        slope = np.maximum(np.abs(gradient) - self.lam, 0.0)
        return float(slope @ slope)


@frozen
class GroupL1(SparsePenalty):
    """``lam sum over groups of sqrt(size) |w_g|_2``, the group lasso, which sets whole groups of weights to 0.

    After Yuan & Lin, "Model selection and estimation in regression with grouped variables" (JRSS B 68, 2006), who also weight
    groups by the square roots of their sizes. A group of one weight is penalised as by `L1`. Over a cone, the proximal point is
    that of the projected weights, because it only shortens them, and shortened weights stay in the cone.
    """

    name = "group-l1"

    @cached_property
    def sizes(self) -> ndarray:
        """The factor of each group, float64 of shape (n_groups,): the square root of its size."""
        return np.sqrt(np.bincount(self.groups))

    def norms(self, values: ndarray) -> ndarray:
        """Return the length of each group's part of a vector, float64 of shape (n_groups,)."""
        return np.sqrt(np.bincount(self.groups, values * values, minlength=len(self.sizes)))

    def value(self, w: ndarray) -> float:
        """Return lam times the sum of the groups' norms, each times the factor of the group."""
        return self.lam * float(self.sizes @ self.norms(w))

    def dual_norm(self, sizes: ndarray) -> float:
        """Return the largest length of a group's part divided by the factor of the group."""
        return float((self.norms(sizes) / self.sizes).max(initial=0.0))

    def bound_error(
        self, bound: float, w: ndarray, bundle: Combination, rounding: Rounding, weight_error: float
    ) -> float:
        """Return a bound on the rounding error of a bound, including that of the lengths of groups."""
        return super().bound_error(bound, w, bundle, rounding, weight_error) + EPS * (len(w) + EXTRA_OPERATIONS) * bound

    def minimiser(self, slope: ndarray, centre: ndarray, mu: float) -> ndarray:
        """Return ``centre - slope / mu``, projected onto the cone, with each group shortened by ``lam sqrt(size) / mu``."""
        w = project_onto_cone(centre - slope / mu, self.signs)
        lengths = self.norms(w)
        shrunk = np.maximum(lengths - self.lam / mu * self.sizes, 0.0)
        return w * np.divide(shrunk, lengths, out=shrunk, where=lengths > 0.0)[self.groups]

    def quadratic(
        self, points: ndarray, slope: ndarray, w: ndarray, centre: ndarray, mu: float
    ) -> tuple[ndarray, ndarray]:
        """Return the second-order model. The proximal point of a group moves with the slope, but its length changes less.

        Let v be the point before it is shortened by k, and u its direction. The derivative of w by v is ``(1 - k/|v|) I + k/|v|
        uu'``.
        """
        used = np.flatnonzero(w)
        lengths, shortened = self.norms(w), self.lam / mu * self.sizes
        kept = (lengths / (lengths + shortened))[self.groups[used]]
        part, direction = points[:, used], w[used] / lengths[self.groups[used]]
        groups, at = np.unique(self.groups[used], return_inverse=True)
        along = np.zeros((len(used), len(groups)))
        along[np.arange(len(used)), at] = direction
        across, on = part * np.sqrt(kept), part @ (along * np.sqrt(1.0 - kept)[:, np.newaxis])
        moved = kept * slope[used] + (1.0 - kept) * direction * (along.T @ slope[used])[at]
        return (across @ across.T + on @ on.T) / mu, part @ (w[used] + moved / mu)

    def steepest_square(self, gradient: ndarray) -> float:
        """Return the squared length of the part of each group's gradient that exceeds lam times the factor of the group."""
        slope = np.maximum(self.norms(gradient) - self.lam * self.sizes, 0.0)
        return float(slope @ slope)


PENALTIES: dict[str, type[Penalty]] = {kind.name: kind for kind in (L2, L1, GroupL1)}
"""The penalties, by the names that the parameter `penalty` accepts."""

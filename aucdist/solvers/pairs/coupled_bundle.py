"""A bundle whose components share one budget: the rows that count weigh no more in all components together than they may."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from aucdist.kernels import simplex
from aucdist.kernels.simplex_factor import Maximiser
from aucdist.solvers.pairs.bundle import FEW_POINTS, Bundle, maximise, zero_points

MOST_PRICES = 30
"""The most prices that are tried for a combination."""

NEAR = 1e-6
"""A combination that leaves so little of the budget is good enough."""

ROUNDED = 1e-12
"""Shares that add up to so much more than 1 count as 1: the bound's rounding error includes it."""

STEP, NEAR_PRICE = 0.02, 1e-6
"""The first step of the price, and how near it is found. A price is a hinge: of about 1 where nothing is separated."""


class Tried(NamedTuple):
    """A price, the best combination at it, and by how much its shares exceed 1."""

    price: float
    combination: np.ndarray
    excess: float


class CoupledBundle(Bundle):
    """`Bundle` for dual points of components, the shares of whose combination add up to 1 at most.

    A point of a component has a share m: what the rows of the component that count weigh, over what all rows that count weigh.
    The bound is that of `Bundle` over the b with ``sum b_t m_t <= 1``.

    A price on the shares replaces the last constraint; its best value is enclosed. Of the combinations on both sides of it a
    mixture has the sum 1, so the bound is true however near the price is. It is true for a smaller sum as well: parts of other
    rows, with dual variables of 0, would fill the budget.

    `n_components`, `n_features` and `idle_rounds`: as for `Bundle`.
    """

    def __init__(self, n_components: int, n_features: int, idle_rounds: int = 40):
        super().__init__(n_components, n_features, idle_rounds)
        self._shares = np.zeros(0)
        self._prices = {"best": 0.0, "proximal": 0.0}

    def add(self, heights: np.ndarray, gradients: np.ndarray, shares: np.ndarray | None = None) -> np.ndarray:
        """Add one point per component; the shares add up to 1.

        A point that is zero has no share: what its rows weigh is not needed for it.
        """
        assert shares is not None
        shares = np.where(zero_points(heights, gradients), 0.0, shares)
        added = super().add(heights, gradients)  # drops idle points first, with their shares
        self._shares = np.append(self._shares, shares[added])
        return added

    def _maximise(self, which: str, H: np.ndarray, heights: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return about the maximiser of ``heights'b - b'Hb / 2`` whose shares add up to 1 at most."""
        if self.n_components == 1:
            return maximise(H, heights, self._component, b)

        H, n_components = np.ascontiguousarray(H), self.n_components
        factor = Maximiser(H, self._component, n_components) if len(H) > FEW_POINTS else None

        def at(price: float, start: np.ndarray) -> np.ndarray:
            a = heights - price * self._shares
            if factor is None:
                return maximise(H, a, self._component, start)
            found = start.copy()
            factor.maximise(a, found)
            combination: np.ndarray = found / np.bincount(self._component, found)[self._component]
            return combination

        def slope(combination: np.ndarray) -> float:
            if factor is None:
                return -float(
                    simplex.slopes(H, self._shares, self._component, n_components, combination) @ self._shares
                )
            return -float(factor.slopes(self._shares, combination) @ self._shares)

        b, self._prices[which] = find_price(at, slope, self._shares, self._prices[which], b)
        return b

    def _drop_idle(self) -> None:
        active = self._idle < self.idle_rounds
        super()._drop_idle()
        self._shares = self._shares[active]


def find_price(
    at: Callable[[float, np.ndarray], np.ndarray],
    slope: Callable[[np.ndarray], float],
    shares: np.ndarray,
    price: float,
    start: np.ndarray,
) -> tuple[np.ndarray, float]:
    """Return the best combination whose shares add up to at most 1, nearly, and the price that belongs to it.

    `at`: ``at(price, start)`` is the best combination at a price, from a feasible start. The higher the price, the less
        its shares.
    `slope`: ``slope(combination)`` is by how much the sum of its shares rises with the price, as long as it has the
        same points.
    `shares`: of shape (n_points,), float64.
    `price`: where the search begins, at least 0.
    `start`, of shape (n_points,), float64: a feasible combination.
    """
    low, high = Tried(0.0, start, np.inf), Tried(np.inf, start, -np.inf)
    step, found = STEP, start
    for _ in range(MOST_PRICES):
        found = at(price, found)
        excess = float(found @ shares) - 1.0
        if excess > ROUNDED:
            low = Tried(price, found, excess)
        else:
            high = Tried(price, found, excess)
            if price == 0.0 or excess >= -NEAR:
                return found, price
        if high.price - low.price <= NEAR_PRICE:
            break
        # As long as the points stay the same the shares are linear in the price. The aim is half of what may be left of them.
        falls = -slope(found)
        aim = price + (excess + NEAR / 2) / falls if falls > 0.0 else np.nan
        if high.price == np.inf:
            step, price = 2.0 * step, aim if aim < price + step else price + step
        elif low.excess == np.inf:
            step, price = 2.0 * step, max(0.0, aim if aim > price - step else price - step)
        elif low.price < aim < high.price:
            price = aim
        else:
            # The zero of the chord, but not too close to an end, since the shares fall in steps.
            part = min(max(low.excess / (low.excess - high.excess), 0.1), 0.9)
            price = low.price + part * (high.price - low.price)
    if low.excess == np.inf or high.price == np.inf:
        return (start if high.price == np.inf else high.combination), price
    part = low.excess / (low.excess - high.excess)
    return (1.0 - part) * low.combination + part * high.combination, price

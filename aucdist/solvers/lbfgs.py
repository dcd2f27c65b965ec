"""L-BFGS (Liu & Nocedal, 1989): steps by the gradients of the last few points, for objectives without corners."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

REMEMBERED = 10
"""Steps whose change of gradient is remembered."""

ENOUGH, FLAT = 1e-4, 0.9
"""Of the slope at the start: a step must go down by so much of it, and leave no more than so much of it (Wolfe)."""

MOST_TRIES = 40


@dataclass(frozen=True, eq=False)
class Point:
    """Weights, the objective there, and its gradient."""

    w: np.ndarray
    value: float
    gradient: np.ndarray

    def better_than(self, other: "Point") -> bool:
        """Tell whether the value is lower, or as low where the gradient is smaller.

        Close to a minimum the value is flat to all its digits where the gradient still has half of its own to lose. And points
        that get better one by one never come round again, so a descent ends.
        """
        if self.value != other.value:
            return self.value < other.value
        return float(np.linalg.norm(self.gradient)) < float(np.linalg.norm(other.gradient))


class Curvature:
    """What the last steps tell of the inverse of the Hessian."""

    def __init__(self) -> None:
        self._pairs: deque[tuple[np.ndarray, np.ndarray, float]] = deque(maxlen=REMEMBERED)

    def remember(self, before: Point, after: Point) -> None:
        """Remember a step; a search that ends where Wolfe's conditions hold makes the product positive."""
        step, change = after.w - before.w, after.gradient - before.gradient
        product = float(step @ change)
        if product > 0.0:
            self._pairs.append((step, change, product))

    def direction(self, gradient: np.ndarray) -> np.ndarray:
        """Return where to go from here: minus the gradient, times the inverse; of length 1 where nothing is known."""
        if not self._pairs:
            return -gradient / np.linalg.norm(gradient)
        way, parts = -gradient, []
        for step, change, product in reversed(self._pairs):
            part = float(step @ way) / product
            parts.append(part)
            way = way - part * change
        _, change, product = self._pairs[-1]
        way = way * (product / float(change @ change))
        for (step, change, product), part in zip(self._pairs, reversed(parts), strict=True):
            way = way + (part - float(change @ way) / product) * step
        return way


def line_search(evaluate: Callable[[np.ndarray], Point], start: Point, way: np.ndarray) -> tuple[Point, int]:
    """Return a point along the way where Wolfe's conditions hold, and how many were tried.

    By doubling and halving (Lewis & Overton, 2013), from the whole way. Where rounding leaves nothing better to be found, the
    point returned is the start.
    """
    slope = float(start.gradient @ way)
    low, high, step = 0.0, np.inf, 1.0
    best = start
    for n_tries in range(1, MOST_TRIES + 1):
        point = evaluate(start.w + step * way)
        if point.better_than(best):
            best = point
        if not point.value <= start.value + ENOUGH * step * slope:
            high = step
        elif point.gradient @ way < FLAT * slope:
            low = step
        else:  # where values are equal to the last digit, both conditions hold at points that are no better, too
            return point if point.better_than(start) else best, n_tries
        step = 0.5 * (low + high) if high < np.inf else 2.0 * low
    return best, MOST_TRIES

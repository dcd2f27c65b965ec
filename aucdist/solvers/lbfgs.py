"""L-BFGS (Liu & Nocedal, 1989) for smooth objectives: steps from the gradients of the last few points.

Over a cone of signs, the steps are projected. Weights that are 0 and would leave the cone stay at 0. The others take the step
of L-BFGS in their own gradient, and stop at 0 if the step would change their sign (two-metric projection, after Bertsekas,
"Projected Newton methods for optimization problems with simple constraints", SIAM J. Control Optim. 20, 1982).
"""

from collections import deque
from collections.abc import Callable, Iterator

import numpy as np
from numpy import ndarray

from aucdist.parameters import frozen
from aucdist.solvers.signs import blocked, project_onto_cone

STEPS_STORED = 10
"""The number of steps whose change of gradient is stored."""

SUFFICIENT_DECREASE = 1e-4
"""Wolfe's first condition: the smallest decrease for a unit of the step, as a share of the slope at its start."""

CURVATURE_CONDITION = 0.9
"""Wolfe's second condition: the largest slope at the end of a step, as a share of the slope at its start."""

MAX_TRIES = 40


@frozen
class Point:
    """Weights, the value of the objective there, and its gradient."""

    w: ndarray
    value: float
    gradient: ndarray

    def better_than(self, other: "Point") -> bool:
        """Return whether the value is lower, or equal with a shorter gradient.

        Close to a minimum, the value no longer changes in any digit, while the gradient still changes in half of its digits.
        If each point is better than the last, no point occurs twice, so a descent ends.
        """
        if self.value != other.value:
            return self.value < other.value
        return float(np.linalg.norm(self.gradient)) < float(np.linalg.norm(other.gradient))


class Curvature:
    """An estimate of the inverse of the Hessian, from the last steps."""

    def __init__(self) -> None:
        self._pairs: deque[tuple[ndarray, ndarray, float]] = deque(maxlen=STEPS_STORED)

    @property
    def is_new(self) -> bool:
        """Whether no step is stored."""
        return not self._pairs

    def remember(self, before: Point, after: Point) -> None:
        """Store a step. Its product with the change of the gradient is positive if Wolfe's conditions hold at its end."""
        step, change = after.w - before.w, after.gradient - before.gradient
        product = float(step @ change)
        if product > 0.0:
            self._pairs.append((step, change, product))

    def direction(self, gradient: ndarray) -> ndarray:
        """Return minus the inverse of the Hessian times the gradient.

        Before the first step, return minus the gradient, of length 1.
        """
        if not self._pairs:
            return -gradient / np.linalg.norm(gradient)
        direction, parts = -gradient, []
        for step, change, product in reversed(self._pairs):
            part = float(step @ direction) / product
            parts.append(part)
            direction = direction - part * change
        _, change, product = self._pairs[-1]
        direction = direction * (product / float(change @ change))
        for (step, change, product), part in zip(self._pairs, reversed(parts), strict=True):
            direction = direction + (part - float(change @ direction) / product) * step
        return direction


def line_search(
    evaluate: Callable[[ndarray], Point], start: Point, direction: ndarray, signs: ndarray | None = None
) -> tuple[Point, int]:
    """Return a point along a direction at which Wolfe's conditions hold, and the number of points that were tried.

    The step is 1 at first, and is then doubled or bisected (Lewis & Overton, 2013). If rounding hides every better point, the
    start is returned. With signs, the points are projected onto their cone, and the conditions are evaluated along the step to
    the projected point.
    """
    slope = float(start.gradient @ direction)
    low, high, step = 0.0, np.inf, 1.0
    best = start
    for n_tries in range(1, MAX_TRIES + 1):
        point = evaluate(project_onto_cone(start.w + step * direction, signs))
        if signs is not None:
            direction_there = (point.w - start.w) / step
            slope = float(start.gradient @ direction_there)
        else:
            direction_there = direction
        if point.better_than(best):
            best = point
        if not point.value <= start.value + SUFFICIENT_DECREASE * step * slope:
            high = step
        elif point.gradient @ direction_there < CURVATURE_CONDITION * slope:
            low = step
        else:  # if values are equal to the last digit, both conditions can hold at a point that is not better
            return point if point.better_than(start) else best, n_tries
        step = 0.5 * (low + high) if high < np.inf else 2.0 * low
    return best, MAX_TRIES


def descend(
    evaluate: Callable[[ndarray], Point], point: Point, signs: ndarray | None = None
) -> Iterator[tuple[Point, int]]:
    """Yield a point and then better points, each with the number of points that were evaluated to find it.

    The iterator ends if rounding hides every better point, or if no weight may move within the cone of the signs.
    """
    curvature, n_tries = Curvature(), 0
    while True:
        yield point, n_tries
        stays = blocked(point.w, point.gradient, signs)
        gradient = np.where(stays, 0.0, point.gradient)
        if not gradient.any():
            return
        direction = curvature.direction(gradient)
        if signs is not None:
            direction[stays] = 0.0
        after, n_tries = line_search(evaluate, point, direction, signs)
        if after is point:
            if signs is None or curvature.is_new:
                return
            curvature = Curvature()  # a step along the gradient may still lead within the cone
            continue
        curvature.remember(point, after)
        point = after

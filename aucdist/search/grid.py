"""The settings that a search tries, and which of them are fitted one after the other."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from sklearn.base import clone

from aucdist.errors import InputError, unknown
from aucdist.estimators.base import BlockClassifier
from aucdist.estimators.solver_parameter import PREFIX, moved, solver_of

Point = dict[str, Any]


def points_of(estimator: BlockClassifier, grid: Mapping[str, Sequence[Any]]) -> list[Point]:
    """Return all combinations of the grid's values, each accepted by the estimator.

    A feature map may name directions, as in ``{"map": "bins", "monotone": "auto"}``: these are the estimator's `monotone` then.

    Parameters
    ----------
    estimator : BlockClassifier
        Its own parameters hold where the grid says nothing.
    grid : mapping of str to sequence
        Values by parameter.

    Raises
    ------
    InputError
        For an empty grid, an unknown parameter, or a value that the estimator refuses.
    """
    if not grid:
        raise InputError("the grid is empty: name a parameter and its values, such as lam: [1e-4, 1e-3, 1e-2]")
    allowed = estimator.get_params()
    for name, values in grid.items():
        # Whether the solver has its parameter is known at a point, which may name another solver.
        if name not in allowed and not name.startswith(PREFIX):
            if (error := moved(name, estimator.solvers)) is not None:
                raise error
            raise unknown(f"parameter of {type(estimator).__name__} in the grid", name, allowed)
        if len(values) == 0:
            raise InputError(f"the grid has no values for {name}")
        if len(set(map(repr, values))) < len(values):
            raise InputError(f"the grid has a value of {name} twice")
    points = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    if "monotone" in allowed and any("monotone" in _map_of(point) for point in points):
        points = [_with_directions(point, estimator.monotone) for point in points]
    for point in points:
        clone(estimator).set_params(**point).check_parameters()
    return points


def _map_of(point: Point) -> Mapping[str, Any]:
    features = point.get("features")
    return features if isinstance(features, Mapping) else {}


def _with_directions(point: Point, otherwise: Any) -> Point:
    """Return a point whose directions are a parameter of their own; the others get those of the grid, or the estimator's."""
    features = dict(_map_of(point))
    if "monotone" not in features:
        return {"monotone": otherwise} | point
    return point | {"monotone": features.pop("monotone"), "features": features}


def paths_of(estimator: BlockClassifier, points: Sequence[Point]) -> list[list[int]]:
    """Return the positions of the points that one task fits together: along lam where the solver has a path, else each alone.

    Returns
    -------
    list of list of int
        Each position once. Where several points are fitted together they differ in lam alone.
    """
    paths: dict[str, list[int]] = {}
    for i, point in enumerate(points):
        solver = solver_of(point.get("solver", estimator.solver), estimator.solvers)
        key = {name: value for name, value in point.items() if name != "lam" or not solver.has_path}
        paths.setdefault(repr(sorted(key.items())), []).append(i)
    return list(paths.values())

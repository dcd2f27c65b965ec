"""What the score of a row is, as one expression in SQL."""

from collections.abc import Callable, Sequence

import numpy as np

from aucdist.export.portable import Kernel, Linear, Portable, Steps
from aucdist.export.sql_parts import case, number, total
from aucdist.export.trees import Leaf, Node

IsCategory = Callable[[int, str], str]


def score_of(described: Portable, values: Sequence[str], texts: dict[int, str], is_category: IsCategory) -> str:
    """Return the score of a row that has one.

    `values`: the expression of each feature's value; of a kernel of each scaled feature, and of the sum of their
        squares.
    `texts`: the expression of each column whose categories are there as texts.
    `is_category`: from a column and a category to the condition that the column has it.
    """
    score = described.score
    if isinstance(score, Linear):
        adds = {
            j: _product(values[j], weight, center)
            for j, (weight, center) in enumerate(zip(score.weights, score.centers, strict=True))
        }
        both = {
            j: (w * (0.0 - c), w * (1.0 - c)) for j, (w, c) in enumerate(zip(score.weights, score.centers, strict=True))
        }
        return _sum(described, score.constant, adds, both, texts, is_category)
    if isinstance(score, Steps):
        adds = {
            shape.feature: _bins(values[shape.feature], shape.edges, _numbers(shape.values), shape.missing)
            for shape in score.shapes
        }
        both = {}
        for shape in score.shapes:
            at = [float(shape.values[np.searchsorted(shape.edges, x)]) for x in (0.0, 1.0)]
            both[shape.feature] = (at[0], at[1])
        more = [_grid(pair.features, pair.edges, pair.missing, pair.values, values) for pair in score.pairs]
        return _sum(described, score.constant, adds, both, texts, is_category, more)
    if isinstance(score, Kernel):
        return _kernel(score, values)
    trees = [_tree(tree, values) for tree in score.trees]
    return total([number(score.constant), *trees])


def contributions_of(described: Portable, values: Sequence[str]) -> list[str]:
    """Return what each feature and each pair adds, and last the constant, in the order of `LinearModel.contribution_names`."""
    score = described.score
    if isinstance(score, Linear):
        return [*(_product(values[j], w, c) for j, (w, c) in enumerate(zip(score.weights, score.centers, strict=True))),
                number(score.constant)]  # fmt: skip
    assert isinstance(score, Steps)
    shapes = [
        _bins(values[shape.feature], shape.edges, _numbers(shape.values), shape.missing) for shape in score.shapes
    ]
    pairs = [_grid(pair.features, pair.edges, pair.missing, pair.values, values) for pair in score.pairs]
    return [*shapes, *pairs, number(score.constant)]


def _product(value: str, weight: float, center: float) -> str:
    return f"{number(weight)} * ({value} - {number(center)})" if center else f"{number(weight)} * {value}"


def _numbers(values: np.ndarray) -> list[str]:
    return [number(value) for value in values]


def _sum(
    described: Portable, constant: float, adds: dict[int, str], both: dict[int, tuple[float, float]],
    texts: dict[int, str], is_category: IsCategory, more: Sequence[str] = (),
) -> str:  # fmt: skip
    """Return the sum of what features add, with one CASE for all features of a column of categories.

    `adds` is what each feature adds, and `both` what it adds at 0 and at 1.
    """
    terms = []
    for i, features in enumerate(described.of_columns):
        of_column = [j for j in features if j in adds]
        if i not in texts:
            terms += [adds[j] for j in of_column]
            continue
        constant += sum(both[j][0] for j in of_column)
        gains = {str(described.features[j].item): both[j][1] - both[j][0] for j in of_column}
        cases = [(is_category(i, value), number(gain)) for value, gain in gains.items() if gain]
        if cases:
            terms.append(case(cases, number(0.0)))
    return total([number(constant), *terms, *more])


def _bins(value: str, edges: np.ndarray, adds: Sequence[str], missing: float | str | None) -> str:
    """Return what the bin of a value adds."""
    cases = [] if missing is None else [(f"{value} IS NULL", missing if isinstance(missing, str) else number(missing))]
    cases += [(f"{value} <= {number(edge)}", add) for edge, add in zip(edges, adds, strict=False)]
    return case(cases, adds[-1])


def _grid(
    features: tuple[int, int], edges: tuple[np.ndarray, np.ndarray], missing: tuple[bool, bool], grid: np.ndarray,
    values: Sequence[str],
) -> str:  # fmt: skip
    """Return what the cell of a pair of features adds."""
    row, column = (values[j] for j in features)
    rows = []
    for of_row in grid:
        cells, gap = of_row[int(missing[1]) :], float(of_row[0]) if missing[1] else None
        rows.append(_bins(column, edges[1], _numbers(cells), gap))
    return _bins(row, edges[0], rows[int(missing[0]) :], rows[0] if missing[0] else None)


def _kernel(score: Kernel, values: Sequence[str]) -> str:
    *z, square = values
    terms = [number(score.constant)]
    terms += [f"{number(weight)} * {name}" for weight, name in zip(score.weights, z, strict=True) if weight]
    width = score.width**2
    for landmark, amount in zip(score.landmarks, score.amounts, strict=True):
        products = [f"{number(2.0 * place)} * {name}" for place, name in zip(landmark, z, strict=True) if place]
        distance = f"{total([number(-float(landmark @ landmark)), *products])} - {square}"
        # Rounding can make a distance slightly negative; and some systems refuse to underflow.
        terms.append(f"{number(amount)} * EXP(GREATEST(LEAST(({distance}) / {number(width)}, 0E0), -7E2))")
    return total(terms)


def _tree(node: Node, values: Sequence[str]) -> str:
    if isinstance(node, Leaf):
        return number(node.value)
    value, then, otherwise = values[node.feature], _tree(node.then, values), _tree(node.otherwise, values)
    test = f"{value} <= {number(node.at_most)}"
    return case([(f"{test} OR {value} IS NULL" if node.missing_to_then else test, then)], otherwise)

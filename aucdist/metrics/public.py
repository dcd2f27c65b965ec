"""Turns measures of counts into functions of labels and scores, as scikit-learn takes them: the larger label is positive.

A measure is written once, as a function of `ScoreCounts`. What is added to its signature and to its docstring is the same for
all: the data in place of the counts, sample weights, and the positive label.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import Parameter, Signature
from typing import Any, Protocol, TypeVar

import numpy as np

from aucdist.errors import InputError
from aucdist.metrics.counts import ScoreCounts, as_column, refuse
from aucdist.metrics.intervals import Estimate, bootstrap_interval

T = TypeVar("T", covariant=True)

LABELS = """y_true : array-like of shape (n_samples,)
    Two different labels, numbers or strings; the larger one is positive.
"""
SCORES = {
    "y_score": "y_score : array-like of shape (n_samples,)\n    Finite scores; higher means more likely positive.\n",
    "y_proba": "y_proba : array-like of shape (n_samples,)\n    Probabilities of the positive label, from 0 to 1.\n",
}
TWO_SCORES = "first, second : array-like of shape (n_samples,)\n    Finite scores of the two models.\n"
WEIGHT = """sample_weight : array-like of shape (n_samples,), optional
    Weights, at least 0; the weight of a pair is the product of its rows' weights. Intervals take none but 0 and 1.
"""
LABEL = "pos_label : label, optional\n    The positive label; the larger one by default.\n"
RESAMPLES = """level : float
    At least 0.5 and below 1.
n_resamples : int
    At least 100.
seed : int
    Seed of the resamples, not negative.
"""
RAISES = """Raises
------
InputError
    If the input is invalid, holds one class only, or a parameter is out of its range."""
SECTION = re.compile(r"\n\n(?=(?:Parameters|Returns|Raises|Warns|Examples)\n-+\n)")
DATA = re.compile(r"^Parameters\n-+\n(?:(?:counts|y|first, second) : .*\n?(?:    .*\n?)*)*")


class OnLabels(Protocol[T]):
    """A measure as a function of labels and scores; ``help`` shows its parameters."""

    def __call__(
        self, y_true: Any, *scores_and_parameters: Any, sample_weight: Any = None, pos_label: Any = None, **named: Any
    ) -> T:
        """Return the measure."""


def public_metric(
    measure: Callable[..., T],
    name: str,
    scores: str = "y_score",
    *,
    one_class: bool = False,
    columns: Sequence[str] = (),
    by_row: Callable[[dict[str, Any]], T] | None = None,
) -> OnLabels[T]:
    """Return a measure of counts as a function of ``(y_true, y_score, ..., *, sample_weight, pos_label)``.

    Parameters
    ----------
    measure : callable
        Takes `ScoreCounts` first; its docstring describes them first, too, if it has a section of parameters.
    name : str
        Of the function.
    scores : {"y_score", "y_proba"}
        What the scores are called.
    one_class : bool
        Whether rows of one class only are legal.
    columns : sequence of str
        Parameters of the measure that may be columns, one value a row, or mappings to such; counts cannot say them.
    by_row : callable, optional
        Takes the arguments in place of the measure where one of these is a column.

    Examples
    --------
    >>> from aucdist.metrics.public import public_metric
    >>> def highest(counts):
    ...     "Return the highest score."
    ...     return float(counts.values[-1])
    >>> public_metric(highest, "highest_score")(["no", "yes", "yes"], [0.1, 0.2, 0.3])
    0.3
    """

    of_rows = ("y_true", scores, "sample_weight", "pos_label")

    def function(given: dict[str, Any]) -> Any:
        if by_row is not None and _has_columns(given.get(key) for key in columns):
            return by_row(given)
        data = [given.pop(key, None) for key in of_rows]
        return measure(counts_of(*data, one_class=one_class), **given)

    return _public(measure, name, function, {scores: SCORES[scores]}, {"sample_weight": WEIGHT, "pos_label": LABEL})


def on_two_models(test: Callable[..., T], name: str) -> OnLabels[T]:
    """Return a paired test on labels -1 and +1 as a function of ``(y_true, first, second, ..., *, pos_label)``."""

    def function(given: dict[str, Any]) -> Any:
        signs = signs_of(given.pop("y_true"), given.pop("pos_label", None))[1]
        return test(signs, given.pop("first"), given.pop("second"), **given)

    return _public(test, name, function, {"first": TWO_SCORES, "second": ""}, {"pos_label": LABEL})


def with_bootstrap(measure: Callable[..., float], call: str, result: str) -> Callable[..., Estimate]:
    """Return a measure of counts with its stratified percentile bootstrap interval, as a function of counts.

    Parameters
    ----------
    measure : callable
        Takes `ScoreCounts` first.
    call, result : str
        For its example: the parameters of the measure, and the value with its bounds.
    """
    counts, *own = inspect.signature(measure).parameters.values()
    more = [Parameter(key, Parameter.KEYWORD_ONLY, default=value) for key, value in RESAMPLING.items()]

    def function(counts: ScoreCounts, **given: Any) -> Estimate:
        resampling = {key: given.pop(key, value) for key, value in RESAMPLING.items()}
        return bootstrap_interval(counts, lambda drawn: measure(drawn, **given), **resampling)

    name = measure.__name__
    described = _sections(measure)[1]
    function.__doc__ = f"""Return `{name}` with its stratified percentile bootstrap interval.

Parameters
----------
counts : ScoreCounts
{described}{RESAMPLES}
Returns
-------
Estimate
    With ``value``, ``low``, ``high``, ``level`` and ``method``.

Examples
--------
>>> import numpy as np
>>> from aucdist.metrics import {name}_interval
>>> y = np.repeat([0, 1], [600, 60])
>>> found = {name}_interval(y, np.random.default_rng(0).normal(size=660) + 2 * y, {call})
>>> f"{{found.value:.3f}} from {{found.low:.3f}} to {{found.high:.3f}}"
{result!r}"""
    function.__signature__ = Signature([counts, *own, *more], return_annotation=Estimate)  # type: ignore[attr-defined]
    return function


def _has_columns(values: Iterable[Any]) -> bool:
    return any(_has_columns(value.values()) if isinstance(value, Mapping) else np.ndim(value) > 0 for value in values)


RESAMPLING = {"level": 0.95, "n_resamples": 1000, "seed": 0}


def _public(
    measure: Callable[..., Any],
    name: str,
    function: Callable[[dict[str, Any]], Any],
    data: dict[str, str],
    options: dict[str, str],
) -> Any:
    """Return the function that a user sees: its signature, its docstring and its place."""
    positional = [Parameter(key, Parameter.POSITIONAL_OR_KEYWORD, annotation=Any) for key in ("y_true", *data)]
    inner = inspect.signature(measure)
    own = [p for p in inner.parameters.values() if p.name not in ("counts", "y", "first", "second")]
    named = [Parameter(key, Parameter.KEYWORD_ONLY, default=None, annotation=Any) for key in options]
    signature = inner.replace(parameters=[*positional, *own, *named])

    def public(*args: Any, **kwargs: Any) -> Any:
        return function(signature.bind(*args, **kwargs).arguments)

    head, described, *rest = _sections(measure)
    if not any(part.startswith("Raises") for part in rest):
        at = len(rest) - 1 if rest and rest[-1].startswith("Examples") else len(rest)
        rest.insert(at, RAISES)
    parameters = "Parameters\n----------\n" + LABELS + "".join(data.values()) + described + "".join(options.values())
    public.__doc__ = "\n\n".join([head, parameters.rstrip(), *rest])
    public.__name__ = public.__qualname__ = name
    public.__module__ = "aucdist.metrics"
    public.__signature__ = signature  # type: ignore[attr-defined]
    return public


def _sections(measure: Callable[..., Any]) -> list[str]:
    """Return the parts of a docstring: what comes first, what it says of the measure's own parameters, and the other sections."""
    head, *rest = SECTION.split(inspect.getdoc(measure) or "")
    own = DATA.sub("", rest.pop(0)) if rest and rest[0].startswith("Parameters") else ""
    return [head, own.rstrip() + "\n" if own else "", *rest]


def counts_of(
    y_true: Any, y_score: Any, sample_weight: Any = None, pos_label: Any = None, *, one_class: bool = False
) -> ScoreCounts:
    """Return the counts of checked labels and scores; errors start with scikit-learn's words."""
    signs = signs_of(y_true, pos_label, one_class=one_class)[1]
    scores = as_column("scores", y_score)
    from sklearn.utils import check_consistent_length  # scikit-learn takes most of a second to load

    try:
        check_consistent_length(signs, scores, sample_weight)
    except ValueError as error:
        raise InputError(str(error)) from None
    kind = "NaN" if np.isnan(scores).any() else "infinity"
    refuse(f"Input y_score contains {kind}: the score", scores, ~np.isfinite(scores), "is not finite")
    return ScoreCounts.from_scores(signs, scores, sample_weight)


def signs_of(y_true: Any, pos_label: Any = None, *, one_class: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels, ascending, and -1 or +1 for every row; one label is an error unless `one_class`.

    The label `pos_label` is positive, or the larger one if it is None.
    """
    column = labels_of("y_true", y_true)
    try:
        labels = np.unique(column)
    except TypeError:
        raise InputError("y_true mixes labels that cannot be compared, such as numbers and strings") from None
    refuse("label", column, column != column, "is missing")
    shown = ", ".join(str(label) for label in labels[:5])
    if len(labels) != 2 and not (one_class and len(labels) == 1):
        raise InputError(f"y_true must hold two different labels; it holds {len(labels)}: {shown}")
    if pos_label is None:
        return labels, np.where(column == labels[-1], 1, -1)
    if pos_label not in labels.tolist() and len(labels) == 2:
        raise InputError(f"pos_label is {pos_label!r}; it must be one of the labels of y_true: {shown}")
    return labels, np.where(column == pos_label, 1, -1)


def labels_of(name: str, values: Any) -> np.ndarray:
    """Return labels as an array of one dimension."""
    column = np.asarray(values)
    if column.ndim != 1:
        raise InputError(f"{name} has shape {column.shape}; one dimension is expected")
    return column

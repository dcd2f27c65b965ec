"""Maps from a model's scores to probabilities. They are saved as JSON, which pydantic checks."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field

from aucdist.data.own_files import CHECKED, to_jsonable
from aucdist.data.preprocess import Floats
from aucdist.errors import InputError
from aucdist.probability.links import Link, Probabilities


@dataclass(frozen=True, eq=False)
class ProbabilityMap(ABC):
    """A map from scores to probabilities of the positive class.

    Attributes
    ----------
    odds : float
        Factor for the odds of the positive class, see `corrected`.
    """

    __pydantic_config__ = CHECKED
    odds: Annotated[float, Field(gt=0.0)]

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Return the probabilities of the negative and of the positive class, float64 of shape (n_samples, 2).

        Parameters
        ----------
        scores : ndarray of shape (n_samples,), float64
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
    def _both(self, scores: np.ndarray) -> Probabilities:
        """Return the probabilities of the positive and of the negative class, before the correction of the odds."""

    @abstractmethod
    def shifted(self, by: float) -> Self:
        """Return the same map for scores from which `by` has been subtracted."""

    def to_json(self) -> Any:
        """Return the map as a dict of JSON types, which is read as `SavedMap`."""
        return to_jsonable(self, SavedMap)


@dataclass(frozen=True, eq=False)
class LinkMap(ProbabilityMap):
    """The map to the link's probability at ``slope * score + offset``."""

    link: Link
    slope: float
    offset: float
    kind: Literal["link"] = field(default="link", kw_only=True)

    def _both(self, scores: np.ndarray) -> Probabilities:
        return self.link.probabilities(self.slope * scores + self.offset)

    def shifted(self, by: float) -> "LinkMap":
        """Return the same map for scores from which `by` has been subtracted."""
        return replace(self, offset=self.offset + self.slope * by)


@dataclass(frozen=True, eq=False)
class IsotonicMap(ProbabilityMap):
    """The map that interpolates linearly between points, and is constant beyond the first and the last point.

    Attributes
    ----------
    scores, probabilities : ndarray of shape (n_points,), float64
        The points, both ascending.
    """

    scores: Floats
    probabilities: Floats
    kind: Literal["isotonic"] = field(default="isotonic", kw_only=True)

    def __post_init__(self) -> None:
        scores, probabilities = self.scores, self.probabilities
        if len(scores) != len(probabilities) or not len(scores):
            raise InputError(f"{len(scores)} scores, but {len(probabilities)} probabilities")
        falls = (np.diff(scores) < 0).any() or (np.diff(probabilities) < 0).any()
        if falls or not 0.0 <= probabilities[0] <= probabilities[-1] <= 1.0:
            raise InputError("scores and probabilities must ascend, and probabilities be from 0 to 1")

    def _both(self, scores: np.ndarray) -> Probabilities:
        positive = np.interp(scores, self.scores, self.probabilities)
        return positive, 1.0 - positive

    def shifted(self, by: float) -> "IsotonicMap":
        """Return the same map for scores from which `by` has been subtracted."""
        return replace(self, scores=self.scores - by)


def probabilities_of_classes(maps: Sequence[ProbabilityMap], scores: np.ndarray, exclusive: bool) -> np.ndarray:
    """Return the probability of each class, float64 of shape (n_samples, n_classes).

    Probabilities of classes that exclude each other are divided by their sum; if all of them are 0, each class gets the same
    probability. Probabilities of topics are not normalised, because a row may have several topics or none.
    """
    each = np.column_stack([probability(scores[:, k])[:, 1] for k, probability in enumerate(maps)])
    if not exclusive:
        return each
    total = each.sum(axis=1, keepdims=True)
    return np.divide(each, total, out=np.full_like(each, 1.0 / len(maps)), where=total > 0.0)


SavedMap: Any = Annotated[LinkMap | IsotonicMap, Field(discriminator="kind")]
"""What a map is read as from JSON: `to_json` wrote it."""

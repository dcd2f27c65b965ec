"""A scorecard: whole points for each bin of each feature, which can be added up by hand, and its file.

A card is read back as a `LinearModel` of bins whose weights are its points, so that whatever takes a model takes a card.
"""

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, Field

from aucdist.data.dataset import Schema
from aucdist.data.formats.source_fields import Reading
from aucdist.data.own_files import CHECKED, REPAIR, parse_checked
from aucdist.data.preprocess import Preprocessor
from aucdist.errors import InputError

if TYPE_CHECKING:
    from aucdist.maps.bins import BinMap

FORMAT = "aucdist scorecard"
VERSION = 1
MOST_POINTS = 2**31
"""Sums of so many points over so many features are exact in float64."""

Points = Annotated[int, Field(ge=-MOST_POINTS, le=MOST_POINTS)]


@dataclass(frozen=True, eq=False)
class CardFeature:
    """The points that one feature adds, by ranges of its values.

    Attributes
    ----------
    name : str
        As in the schema: a column, or ``column=category``, whose two bins are "another category" and "this category".
    edges : ndarray of shape (n_bins - 1,), float64
        In the units of the column. A value is in the bin of the number of edges below it.
    points : ndarray of shape (n_bins,), int64
    shares : ndarray of shape (n_bins,), float64
        Share of the training rows with a value that are in each bin.
    missing : int or None
        The points of a missing value, if the training rows had some.
    """

    name: str
    edges: np.ndarray
    points: np.ndarray
    shares: np.ndarray
    missing: int | None

    @property
    def cells(self) -> np.ndarray:
        """The points of all cells: that of missing values first, where there is one."""
        return self.points if self.missing is None else np.append(self.missing, self.points)

    @property
    def least(self) -> int:
        """The fewest points that a row can get."""
        return int(self.cells.min())

    @property
    def most(self) -> int:
        """The most points that a row can get."""
        return int(self.cells.max())


@dataclass(frozen=True, eq=False)
class Scorecard:
    """A scorecard: the points of a row are added up, and a row with more than `cutoff` points is predicted positive.

    Attributes
    ----------
    base : int
        The points that each row starts with.
    features : tuple of CardFeature
        The features with more than one row on the card, in the order of the schema.
    preprocessor : Preprocessor
        It fills in missing values. It scales nothing, because the edges are in the units of the columns.
    probability : dict or None
        The map from ``points - cutoff`` to probabilities, as `ProbabilityMap.to_json` writes it.
    reading : dict
        As in `LinearModel`.
    scaling : dict
        The scale of the points: ``points_per_score`` and ``shift``, so that a row has about ``points_per_score * score +
        shift`` points, and the scale that was asked for.
    rounding : dict
        What whole points cost: see `aucdist.export.cards`.
    about : dict
        The description of the model that the card was made from.
    """

    base: int
    cutoff: int
    features: tuple[CardFeature, ...]
    schema: Schema
    preprocessor: Preprocessor
    probability: dict[str, Any] | None
    reading: dict[str, Any] = field(default_factory=dict)
    scaling: dict[str, Any] = field(default_factory=dict)
    rounding: dict[str, Any] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def least(self) -> int:
        """The fewest points that a row can have."""
        return self.base + sum(feature.least for feature in self.features)

    @property
    def most(self) -> int:
        """The most points that a row can have."""
        return self.base + sum(feature.most for feature in self.features)

    def bins(self) -> "BinMap":
        """Return the bins of the card as a feature map, whose weights are `weights`."""
        from aucdist.maps.binning import Bins
        from aucdist.maps.bins import BinMap  # loads scikit-learn

        own = {feature.name: feature for feature in self.features}
        bins, missing = [], []
        for name in self.schema.feature_names:
            feature = own.get(name)
            if feature is None:
                bins.append(Bins(np.zeros(0), np.zeros(1), np.ones(1)))
            else:
                bins.append(Bins(feature.edges, np.arange(float(len(feature.points))), feature.shares))
            missing.append(feature is not None and feature.missing is not None)
        no_pairs = np.zeros((0, 2), dtype=np.int64)
        return BinMap(len(bins), tuple(bins), np.array(missing, dtype=bool), "one-hot", "drop", 1.0, 1.0, no_pairs)

    def weights(self) -> np.ndarray:
        """Return the points as weights of the cells of `bins`, float64."""
        return np.concatenate([np.zeros(0), *(feature.cells for feature in self.features)]).astype(np.float64)

    def to_json(self) -> str:
        """Return the file of the card."""
        content = {
            "format": FORMAT,
            "version": VERSION,
            "base": self.base,
            "cutoff": self.cutoff,
            "features": [
                {
                    "name": feature.name,
                    "edges": feature.edges.tolist(),
                    "points": feature.points.tolist(),
                    "shares": feature.shares.tolist(),
                    "missing": feature.missing,
                }
                for feature in self.features
            ],
            "scaling": self.scaling,
            "rounding": self.rounding,
            "probability": self.probability,
            "schema": self.schema.to_json(),
            "preprocessor": self.preprocessor.to_json(),
            "reading": self.reading,
            "about": self.about,
        }
        return json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


class _CardFeatureFile(BaseModel):
    model_config = CHECKED

    name: str
    edges: list[float] = Field(max_length=254)
    points: list[Points] = Field(min_length=1, max_length=255)
    shares: list[Annotated[float, Field(ge=0.0, le=1.0)]]
    missing: Points | None = None

    def feature(self) -> CardFeature:
        """Return the feature; an InputError if its parts do not fit together."""
        edges = np.array(self.edges, dtype=np.float64)
        if not len(edges) + 1 == len(self.points) == len(self.shares) or not (np.diff(edges) > 0).all():
            raise InputError(f"the edges of {self.name!r} do not ascend, or do not go with its points and shares")
        if len(self.points) == 1 and self.missing is None:
            raise InputError(f"{self.name!r} has one row, so that it tells no two rows apart")
        points = np.array(self.points, dtype=np.int64)
        return CardFeature(self.name, edges, points, np.array(self.shares, dtype=np.float64), self.missing)


class _CardFile(BaseModel):
    model_config = CHECKED

    format: Literal["aucdist scorecard"]
    version: int
    base: Points
    cutoff: Points
    features: list[_CardFeatureFile]
    scaling: dict[str, Any]
    rounding: dict[str, Any]
    probability: dict[str, Any] | None
    schema_: Schema = Field(alias="schema")
    preprocessor: Preprocessor
    reading: Reading
    about: dict[str, Any]


def parse_card(data: bytes, where: str) -> Scorecard:
    """Return the card in a file.

    Parameters
    ----------
    where : str
        Names the file in errors.

    Raises
    ------
    InputError
        If it is not a card, is damaged, or was written by a newer version of aucdist.
    """
    card = parse_checked(data, _CardFile, where)
    if card.version != VERSION:
        raise InputError(
            f"{where} is a card of version {card.version}, but this aucdist reads version {VERSION}: export the card "
            "again"
        )
    try:
        preprocessor = card.preprocessor
        preprocessor.check(len(card.schema_.feature_names))
        if preprocessor.scale != "none" or preprocessor.log1p:
            raise InputError("a card scales nothing")
        features = tuple(feature.feature() for feature in card.features)
        names = [feature.name for feature in features]
        order = {name: place for place, name in enumerate(card.schema_.feature_names)}
        places = [order.get(name, -1) for name in names]
        if min(places, default=0) < 0 or places != sorted(set(places)):
            raise InputError("its features are not features of its schema, in their order and once each")
    except InputError as e:
        raise InputError(f"{where} is damaged: {e}. {REPAIR}") from None
    return Scorecard(
        card.base, card.cutoff, features, card.schema_, preprocessor, card.probability, card.reading,
        card.scaling, card.rounding, card.about,
    )  # fmt: skip

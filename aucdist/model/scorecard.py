"""A scorecard and its file. A scorecard has whole points for each bin of each feature, which can be added up by hand.

A scorecard is loaded as a `LinearModel` of bins whose weights are the points, so that it can be used wherever a model can.
"""

import json
from dataclasses import field
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import Field

from aucdist.data.dataset import Schema
from aucdist.data.formats.source_fields import ReaderOptions
from aucdist.data.own_files import NO_MORE_KEYS, REPAIR, parse_checked, to_jsonable
from aucdist.data.preprocess import Floats, Preprocessor, array_of
from aucdist.errors import InputError, Json
from aucdist.parameters import frozen
from aucdist.probability.links import SavedMap

if TYPE_CHECKING:
    from aucdist.maps.bins import BinMap

CARD_VERSION = 1
MAX_POINTS = 2**31
"""The largest number of points, and of features, for which sums are exact in float64."""
MAX_BINS = 255

Points = Annotated[int, Field(ge=-MAX_POINTS, le=MAX_POINTS)]
if TYPE_CHECKING:
    ArrayOfPoints = np.ndarray
else:
    ArrayOfPoints = array_of(Points, np.int64)


@frozen
class CardFeature:
    """The points that one feature adds, for each range of its values.

    Attributes
    ----------
    name : str
        The name in the schema: that of a column, or ``column=category``. The two bins of a category are "another category" and
        "this category".
    edges : ndarray of shape (n_bins - 1,), float64
        The edges between the bins, in the units of the column. The number of edges below a value is the number of its bin.
    points : ndarray of shape (n_bins,), int64
        The points of each bin.
    shares : ndarray of shape (n_bins,), float64
        The share of each bin among the training rows that have a value.
    missing : int or None
        The points of a missing value, or None if no training row had one.
    """

    __pydantic_config__ = NO_MORE_KEYS
    name: str
    edges: Floats
    points: ArrayOfPoints
    shares: Floats
    missing: Points | None = None

    def __post_init__(self) -> None:
        if not len(self.edges) + 1 == len(self.points) == len(self.shares) or not (np.diff(self.edges) > 0).all():
            raise InputError(
                f"{self.name!r} must have ascending edges, and one share and one number of points more than edges"
            )
        if len(self.points) > MAX_BINS or not ((self.shares >= 0.0) & (self.shares <= 1.0)).all():
            raise InputError(f"{self.name!r} has more than {MAX_BINS} bins, or shares that are not from 0 to 1")
        if len(self.points) == 1 and self.missing is None:
            raise InputError(
                f"{self.name!r} has one line, so every row gets the same points: remove the feature from the card"
            )

    @property
    def all_points(self) -> np.ndarray:
        """The points of all bins. Those of missing values come first, if there are any."""
        return self.points if self.missing is None else np.append(self.missing, self.points)


@frozen
class Scorecard:
    """A scorecard: the points of a row are added up, and a row with more than `cutoff` points is predicted positive.

    Attributes
    ----------
    base : int
        The points that each row starts with.
    cutoff : int
        A row with more points is predicted positive.
    features : tuple of CardFeature
        The features with at least two rows on the card, in the order of the schema.
    schema : Schema
        Features, label and classes.
    preprocessor : Preprocessor
        It fills in missing values. It scales nothing, because the edges are in the units of the columns.
    probability : ProbabilityMap or None
        The map from ``points - cutoff`` to probabilities.
    reading : dict
        As in `LinearModel`.
    scaling : dict
        The scale of the points: ``points_per_score`` and ``shift``, such that a row has about ``points_per_score * score +
        shift`` points, and the scale that was asked for.
    rounding : dict
        The errors that whole points cause: ``most`` bounds the error of the points of a row, and ``most_pair`` that of the
        difference of two rows. ``score`` and ``pair`` are these bounds in units of the score.
    about : dict
        The description of the model from which the card was made.
    """

    __pydantic_config__ = NO_MORE_KEYS
    base: Points
    cutoff: Points
    features: tuple[CardFeature, ...]
    schema: Schema
    preprocessor: Preprocessor
    probability: SavedMap | None
    reading: ReaderOptions = field(default_factory=dict)
    scaling: Json = field(default_factory=dict)
    rounding: Json = field(default_factory=dict)
    about: Json = field(default_factory=dict)
    format: Literal["aucdist scorecard"] = "aucdist scorecard"
    version: int = CARD_VERSION

    @property
    def least(self) -> int:
        """The fewest points that a row can have."""
        return self.base + sum(int(feature.all_points.min()) for feature in self.features)

    @property
    def most(self) -> int:
        """The most points that a row can have."""
        return self.base + sum(int(feature.all_points.max()) for feature in self.features)

    def bins(self) -> "BinMap":
        """Return the bins of the card as a feature map, whose weights are `weights`."""
        from aucdist.maps.binning import Bins
        from aucdist.maps.bins import BinMap  # loads scikit-learn

        by_name = {feature.name: feature for feature in self.features}
        bins, missing = [], []
        for name in self.schema.feature_names:
            feature = by_name.get(name)
            if feature is None:
                bins.append(Bins(np.zeros(0), np.zeros(1), np.ones(1)))
            else:
                bins.append(Bins(feature.edges, np.arange(float(len(feature.points))), feature.shares))
            missing.append(feature is not None and feature.missing is not None)
        no_interactions = np.zeros((0, 2), dtype=np.int64)
        return BinMap(
            len(bins), tuple(bins), np.array(missing, dtype=bool), "one-hot", "drop", 1.0, 1.0, no_interactions
        )

    def weights(self) -> np.ndarray:
        """Return the points as weights for the feature map that `bins` returns, float64."""
        return np.concatenate([np.zeros(0), *(feature.all_points for feature in self.features)]).astype(np.float64)

    def to_json(self) -> str:
        """Return the content of the file of the card."""
        # The kind of the file comes first, and the keys of the schema are those that older versions can read.
        content = {"format": self.format, "version": self.version} | to_jsonable(self, Scorecard)
        content["schema"] = self.schema.to_json()
        return json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def parse_card(data: bytes, where: str) -> Scorecard:
    """Return the scorecard in a file.

    Parameters
    ----------
    data : bytes
        The content of the file.
    where : str
        The name of the file in error messages.

    Returns
    -------
    Scorecard

    Raises
    ------
    InputError
        If it is not a card, is damaged, or was written by a newer version of aucdist.
    """
    if Scorecard.format.encode() not in data:
        raise InputError(
            f"{where} is not a scorecard, and no other JSON is read as a model. If `aucdist export --to json` wrote it, name "
            "the run, the model or the store that it was exported from"
        )
    card = parse_checked(data, Scorecard, where)
    if card.version != CARD_VERSION:
        raise InputError(
            f"{where} is a card of version {card.version}, but this aucdist reads version {CARD_VERSION}: export it again"
        )
    try:
        card.preprocessor.check(len(card.schema.feature_names))
        if card.preprocessor.scale != "none" or card.preprocessor.log1p:
            raise InputError(
                "its preprocessor scales features, but the edges of a card are in the units of the columns"
            )
        order = {name: position for position, name in enumerate(card.schema.feature_names)}
        positions = [order.get(feature.name, -1) for feature in card.features]
        if min(positions, default=0) < 0 or positions != sorted(set(positions)):
            raise InputError("its features must be features of its schema, in the same order and each once")
    except InputError as e:
        raise InputError(f"{where} is damaged: {e}. {REPAIR}") from None
    return card

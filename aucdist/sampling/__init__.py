"""Samplers with imbalanced-learn's `fit_resample`: rows of the larger class left out, or rows of the smaller one made up."""

from aucdist.sampling.distance import DistanceUnderSampler
from aucdist.sampling.mwmote import MWMOTE

__all__ = ["MWMOTE", "DistanceUnderSampler"]

"""Feature maps: what turns a linear model into an additive one, or into one of landmarks or of a forest's leaves."""

from aucdist.maps.bins import BinExpander
from aucdist.maps.leaves import LeafExpander
from aucdist.maps.nystroem import NystroemMap

__all__ = ["BinExpander", "LeafExpander", "NystroemMap"]

"""Solvers for losses on pairs of a positive and a negative row."""

from aucdist.pairs.cutting_planes import AllPairs
from aucdist.pairs.smooth import RampLBFGS

__all__ = ["AllPairs", "RampLBFGS"]

"""Solvers for losses on pairs of a positive and a negative row."""

from aucdist.solvers.pairs.cutting_planes import AllPairs
from aucdist.solvers.pairs.smooth import RampLBFGS

__all__ = ["AllPairs", "RampLBFGS"]

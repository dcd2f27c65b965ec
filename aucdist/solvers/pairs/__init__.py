"""Solvers for losses on pairs of a positive and a negative row."""

from aucdist.solvers.pairs.all_pairs import AllPairs
from aucdist.solvers.pairs.top_ramp import RampLBFGS

__all__ = ["AllPairs", "RampLBFGS"]

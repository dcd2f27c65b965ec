"""Solvers for losses on pairs of a positive and a negative row."""

from aucdist.solvers.pairs.all_pairs import AllPairs
from aucdist.solvers.pairs.dual import SDCD, SDCDPerm
from aucdist.solvers.pairs.oam import OAMGra, OAMInf, OAMSeq
from aucdist.solvers.pairs.sgd import MSGD
from aucdist.solvers.pairs.top_ramp import RampLBFGS

__all__ = ["MSGD", "SDCD", "AllPairs", "OAMGra", "OAMInf", "OAMSeq", "RampLBFGS", "SDCDPerm"]

"""Jiang, Tao, Gao & Chu, "Dual coordinate descent method for solving AUC optimization problem" (2014): steps along pairs."""

from aucdist.papers.sdcd.dual import SDCD, SDCDPerm
from aucdist.papers.sdcd.online import MSGD, OAMGra, OAMInf, OAMSeq

__all__ = ["MSGD", "SDCD", "OAMGra", "OAMInf", "OAMSeq", "SDCDPerm"]

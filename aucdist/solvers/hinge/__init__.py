"""Solvers for the hinge loss on rows."""

from aucdist.solvers.hinge.columns import SCD
from aucdist.solvers.hinge.dual import CDCD, SDCD
from aucdist.solvers.hinge.pegasos import Pegasos
from aucdist.solvers.hinge.subgradient import COMID, PSA, RDA

__all__ = ["CDCD", "COMID", "PSA", "RDA", "SCD", "SDCD", "Pegasos"]

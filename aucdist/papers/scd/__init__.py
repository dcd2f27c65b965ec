"""Tao, Zhu, Luo & Kong (2013): the hinge of rows.

Their paper is "A new Comid-based stochastic coordinate descent method for non-smooth losses".
"""

from aucdist.papers.scd.dual import CDCD, SDCD
from aucdist.papers.scd.primal import SCD
from aucdist.papers.scd.subgradient import COMID, PSA, RDA, Pegasos

__all__ = ["CDCD", "COMID", "PSA", "RDA", "SCD", "SDCD", "Pegasos"]

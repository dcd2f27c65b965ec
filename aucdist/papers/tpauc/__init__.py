"""Luan & Gao, "Two-pass AUC optimization" (2018): solvers of the pairwise square, and of the univariate losses beside it."""

from aucdist.papers.tpauc.descent import SVRG
from aucdist.papers.tpauc.exact import Exact
from aucdist.papers.tpauc.online import OPAUC, TPAUC, UniExp, UniSqu, UnivariateLBFGS

__all__ = ["OPAUC", "SVRG", "TPAUC", "Exact", "UniExp", "UniSqu", "UnivariateLBFGS"]

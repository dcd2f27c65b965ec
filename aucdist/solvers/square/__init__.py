"""Solvers for the pairwise square loss, and for the univariate losses that stand in for it in paper 002."""

from aucdist.solvers.square.exact import Exact
from aucdist.solvers.square.opauc import OPAUC
from aucdist.solvers.square.svrg import SVRG
from aucdist.solvers.square.tpauc import TPAUC
from aucdist.solvers.square.univariate import UniExp, UniSqu, UnivariateLBFGS

__all__ = ["OPAUC", "SVRG", "TPAUC", "Exact", "UniExp", "UniSqu", "UnivariateLBFGS"]

"""Solvers for the margin-mean loss, from values alone (zeroth-order) and by gradients."""

from aucdist.solvers.margin_mean.svrg import SVRG
from aucdist.solvers.margin_mean.zovr import ZOSGD, ZOVR

__all__ = ["SVRG", "ZOSGD", "ZOVR"]

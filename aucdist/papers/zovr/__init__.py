"""Lu, Zhang & Cai, "Zeroth order optimization algorithm based on undersampling" (2019): the margin mean, by values and by
gradients."""

from aucdist.papers.zovr.solvers import SVRG, ZOSGD, ZOVR

__all__ = ["SVRG", "ZOSGD", "ZOVR"]

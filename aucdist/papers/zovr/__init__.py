"""Lu, Zhang & Cai (2019): the margin mean, by values and by gradients.

Their paper is "Zeroth order optimization algorithm based on undersampling".
"""

from aucdist.papers.zovr.solvers import SVRG, ZOSGD, ZOVR

__all__ = ["SVRG", "ZOSGD", "ZOVR"]

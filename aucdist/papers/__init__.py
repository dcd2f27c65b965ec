"""Published algorithms as they were printed, and those that their papers compare them with: a package for each paper.

`sdcd`: Jiang, Tao, Gao & Chu (2014), dual coordinate descent on pairs. `scd`: Tao, Zhu, Luo & Kong (2013), coordinate descent for
losses with corners. `tpauc`: Luan & Gao (2018), two-pass AUC optimisation. `gev`: Fu & Liu (2018), class probabilities by the
generalised extreme value link. `zovr`: Lu, Zhang & Cai (2019), zeroth-order steps on a sample. A package holds solvers,
and beside them their kernels and objective. `epochs` drives all those that take steps along single rows.
"""

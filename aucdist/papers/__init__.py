"""Published algorithms, and the algorithms that their papers compare them with. Each paper is a package.

* `sdcd`: Jiang, Tao, Gao & Chu (2014), dual coordinate descent on pairs.
* `scd`: Tao, Zhu, Luo & Kong (2013), coordinate descent for losses with corners.
* `tpauc`: Luan & Gao (2018), two-pass AUC optimisation.
* `gev`: Fu & Liu (2018), class probabilities by the generalised extreme value link.
* `zovr`: Lu, Zhang & Cai (2019), zeroth-order steps on a sample.

A package contains solvers, kernels and the objective. The module `epochs` runs all algorithms that take steps along single
rows.
"""

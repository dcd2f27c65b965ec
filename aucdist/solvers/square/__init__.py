"""Solvers for the pairwise square loss, and for the univariate losses that stand in for it in paper 002."""

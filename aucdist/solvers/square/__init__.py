"""Solvers for the pairwise square loss."""

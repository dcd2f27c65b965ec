"""Solvers for losses on pairs of a positive and a negative row."""

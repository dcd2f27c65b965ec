"""Solvers for the hinge loss on rows."""

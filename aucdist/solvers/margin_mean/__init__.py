"""Solvers for the margin-mean loss, from values alone (zeroth-order) and by gradients."""

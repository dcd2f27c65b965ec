"""Solvers for probability models: logit, cloglog and GEV links."""

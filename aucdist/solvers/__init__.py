"""Solvers: what happens in a round. Each is a generator of `Round`; `solve` is the one loop that runs them."""

"""Solvers. Each is a generator of `Round` objects, and `aucdist.solvers.base.solve` is the loop that runs them."""

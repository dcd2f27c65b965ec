"""Numba kernels. They take and fill arrays, create no Python objects, allocate nothing in loops, and add up in float64."""

"""Numba kernels: arrays in, arrays out; no Python objects, no allocation in the loop, float64 sums."""

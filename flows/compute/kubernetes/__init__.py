"""Dask clusters on Kubernetes, by the Dask operator."""

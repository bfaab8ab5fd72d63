"""Layer 8: whatever maps a function over chunks: local, dask, spark."""

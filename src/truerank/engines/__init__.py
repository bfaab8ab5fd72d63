"""Engines: what maps a pure function over chunks of whole units, in this process, on Dask or on Spark."""

"""Jobs of the workers of a Dask cluster."""

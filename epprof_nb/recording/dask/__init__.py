"""Recording of the tasks that Dask runs in this process."""

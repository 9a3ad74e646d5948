"""Time that profiling added to the profiled code, measured or estimated."""

"""NumPy helpers that know nothing of profiles."""

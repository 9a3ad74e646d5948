"""NumPy helpers that do not depend on profiles."""

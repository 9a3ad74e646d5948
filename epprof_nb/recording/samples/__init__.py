"""Samples of the Python code that the host runs between launches."""

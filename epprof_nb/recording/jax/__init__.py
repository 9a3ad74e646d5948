"""Jitted functions, compilations and XLA's ranges of JAX as ops."""

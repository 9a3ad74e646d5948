"""Modules, operators, phases and kernels' lines of PyTorch and JAX."""
